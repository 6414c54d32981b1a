//! The schemas of arguments and results, in the plain form that all clients read.
//!
//! They are flat and closed: no references, no alternatives, no formats of a vendor. What may be absent is left out, never `null`.

use super::outside::{OUTSIDE, OUTSIDE_MARK};
use rmcp::model::JsonObject;
use rmcp::schemars::generate::SchemaSettings;
use rmcp::schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

/// The argument that each tool of a wiki has.
pub(crate) const WORKSPACE: &str = "workspace";

/// The schema of arguments, with the workspace.
pub(crate) fn describe_arguments<A: JsonSchema>() -> JsonObject {
    let mut schema = generate::<A>();
    let workspace = json!({"type": "string", "maxLength": 96, "description": "The name of the wiki."});
    match schema.get_mut("properties").and_then(Value::as_object_mut) {
        Some(properties) => {
            properties.shift_insert(0, WORKSPACE.to_owned(), workspace);
        }
        None => drop(schema.insert("properties".to_owned(), json!({WORKSPACE: workspace}))),
    }
    schema
}

/// The schema of arguments of a tool that shows the whole vault.
pub(crate) fn describe_vault_arguments<A: JsonSchema>() -> JsonObject {
    generate::<A>()
}

/// The schema of a result.
pub(crate) fn describe_result<R: JsonSchema>() -> JsonObject {
    let mut schema = generate::<R>();
    // A list of tools takes room in every conversation. What is within needs no more than names, types and meanings.
    schema.shift_remove("required");
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut() {
            shorten_result(property);
        }
    }
    schema
}

/// Takes out of a schema of results what no client needs.
fn shorten_result(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(shorten_result),
        Value::Object(object) => {
            for name in ["minimum", "additionalProperties", "required"] {
                if !object.get(name).is_some_and(Value::is_object) {
                    object.shift_remove(name);
                }
            }
            // What a list holds is said at the list, and what its fields are by their names.
            if let Some(Value::Object(items)) = object.get_mut("items")
                && let Some(Value::Object(fields)) = items.get_mut("properties")
            {
                for field in fields.values_mut() {
                    shorten_outside_field(field);
                }
                items.shift_remove("description");
            }
            object.values_mut().for_each(shorten_result);
        }
        _ => {}
    }
}

/// Leaves of the description of a field with outside words that it has them.
fn shorten_outside_field(field: &mut Value) {
    if let Some(Value::String(description)) = field.get_mut("description")
        && description.starts_with(OUTSIDE)
    {
        OUTSIDE.clone_into(description);
    }
}

fn generate<T: JsonSchema>() -> JsonObject {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema: Schema = settings.into_generator().into_root_schema_for::<T>();
    let mut object = schema.ensure_object().clone();
    object.shift_remove("title");
    let mut value = Value::Object(object);
    simplify(&mut value);
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

/// Takes out `null`, formats and defaults that say nothing, and closes objects.
fn simplify(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(simplify),
        Value::Object(object) => {
            if let Some(Value::Array(types)) = object.get("type") {
                let kept = types.iter().find(|it| *it != "null").cloned().unwrap_or(Value::Null);
                object.insert("type".to_owned(), kept);
            }
            if let Some(Value::Array(choices)) = object.shift_remove("anyOf") {
                let kept = choices.into_iter().find(|it| it.get("type") != Some(&json!("null")));
                for (name, value) in kept.as_ref().and_then(Value::as_object).into_iter().flatten() {
                    object.entry(name.clone()).or_insert_with(|| value.clone());
                }
            }
            if let Some(Value::Array(choices)) = object.shift_remove("oneOf") {
                let values = choices.iter().filter_map(|choice| choice.get("const").cloned()).collect();
                object.insert("type".to_owned(), json!("string"));
                object.insert("enum".to_owned(), Value::Array(values));
            }
            if let Some(Value::Array(values)) = object.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
            object.shift_remove("format");
            if object.get("default") == Some(&Value::Null) {
                object.shift_remove("default");
            }
            if object.contains_key("properties") {
                object.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
            let is_outside = |object: &Map<String, Value>| {
                object.get("description").and_then(Value::as_str).is_some_and(|it| it.starts_with(OUTSIDE))
            };
            // The description of a list is that of its items.
            if is_outside(object)
                && let Some(Value::Object(items)) = object.get_mut("items")
            {
                items.shift_remove(OUTSIDE_MARK);
            }
            debug_assert!(
                !object.contains_key(OUTSIDE_MARK) || is_outside(object),
                "a field with outside words does not say so: {object:?}"
            );
            object.shift_remove(OUTSIDE_MARK);
            object.values_mut().for_each(simplify);
        }
        _ => {}
    }
}

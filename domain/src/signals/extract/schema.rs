//! The JSON schema of an extraction answer: closed, with the offered records.
//!
//! It must use only what the strict mode of common servers accepts: every property is required, no other one is
//! allowed, and alternatives are an `anyOf`. [`super::ExtractAnswer::parse_answer`] checks the lengths of texts.

use super::ExtractQuestion;
use super::MAX_SIGNALS;
use crate::action::mutation::{ContextField, MutationClass, RelatedField};
use crate::record::entity::RecordState;
use crate::record::path::RecordKind;
use serde_json::{Map, Value, json};

/// The schema of an answer to this question.
#[must_use]
pub fn answer_schema(question: &ExtractQuestion) -> Value {
    let refs: Vec<&str> = question.offers.iter().map(|o| o.path.as_str()).collect();
    let number = json!({"type": "number", "minimum": 0, "maximum": 1});
    let scores: Map<String, Value> = refs.iter().map(|r| ((*r).to_owned(), number.clone())).collect();
    let target = json!({"anyOf": [{"type": "null"}, {"type": "string", "enum": refs}]});
    let finding = object_schema(&[
        ("quote", json!({"type": "string"})),
        ("target", target),
        ("scores", closed_object_schema(scores)),
        ("effect", enum_schema(&["mutation", "action", "none"])),
        ("mutation", json!({"anyOf": mutation_schemas(question)})),
        ("effect_confidence", number),
        ("reasoning", json!({"type": "string"})),
    ]);
    object_schema(&[("signals", json!({"type": "array", "items": finding, "maxItems": MAX_SIGNALS}))])
}

fn mutation_schemas(question: &ExtractQuestion) -> Vec<Value> {
    let text = || json!({"type": "string"});
    let mut forms = vec![json!({"type": "null"})];
    let states = enum_schema(&[RecordState::Open, RecordState::Done, RecordState::Archived].map(RecordState::as_str));
    forms.push(change_schema(MutationClass::StateChange, "set", "state", states));
    for field in ContextField::ALL {
        forms.push(change_schema(MutationClass::ContextEdit, "set", field.as_str(), text()));
    }
    let matters: Vec<String> =
        question.offers.iter().filter(|o| o.kind == RecordKind::Matter).map(|o| o.path.to_string()).collect();
    if !matters.is_empty() {
        let matters = json!({"type": "string", "enum": matters});
        forms.push(change_schema(MutationClass::ParentMatter, "set", "parent_matter", matters));
    }
    for field in RelatedField::ALL {
        forms.push(change_schema(MutationClass::Related, "add", field.as_str(), text()));
        forms.push(change_schema(MutationClass::Related, "remove", field.as_str(), text()));
    }
    forms
}

/// `{class, set: {field: value}}`, or the same with `add` or `remove` instead of `set`.
fn change_schema(class: MutationClass, part: &str, field: &str, value: Value) -> Value {
    object_schema(&[("class", enum_schema(&[class.as_str()])), (part, object_schema(&[(field, value)]))])
}

fn enum_schema(all: &[&str]) -> Value {
    json!({"type": "string", "enum": all})
}

fn object_schema(properties: &[(&str, Value)]) -> Value {
    closed_object_schema(properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect())
}

/// An object with exactly these properties.
fn closed_object_schema(properties: Map<String, Value>) -> Value {
    let required: Vec<&String> = properties.keys().collect();
    json!({"type": "object", "additionalProperties": false, "required": required, "properties": properties})
}

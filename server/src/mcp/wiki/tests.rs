mod bench;
mod git;
mod paging;
mod streams;

use super::*;
use crate::mcp::tokens::count_tokens;
use rmcp::model::Tool;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// What the list of tools may take of a model's context, in tokens, and one description.
const MAX_LIST_TOKENS: usize = 10_000;
const MAX_DESCRIPTION_TOKENS: usize = 250;
/// The hash of the list, so that no description changes unseen. A change of it belongs into the changelog.
const LIST_SHA256: &str = "abe30d503b4cb61d8d18252d64b6266e4a42567ed69a4d822c4996f8dc5a3491";

fn list_tools() -> Vec<Tool> {
    WIKI_TOOLS.iter().map(ToolDefinition::describe).collect()
}

/// Calls `check` with each schema in a schema, and where it stands.
fn walk(schema: &Value, place: &str, check: &mut dyn FnMut(&str, &Value)) {
    check(place, schema);
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        walk(property, &format!("{place}.{name}"), check);
    }
    if let Some(items) = schema.get("items") {
        walk(items, &format!("{place}[]"), check);
    }
}

#[test]
fn the_list_is_small_and_changes_only_on_purpose() {
    let text = serde_json::to_string(&list_tools()).unwrap();
    assert!(count_tokens(&text) <= MAX_LIST_TOKENS, "{} tokens", count_tokens(&text));
    for tool in list_tools() {
        let description = tool.description.clone().unwrap();
        assert!(count_tokens(&description) <= MAX_DESCRIPTION_TOKENS, "{}: {description}", tool.name);
        assert!(description.contains(&format!("Example: {}(", tool.name)), "{}: {description}", tool.name);
        let hints = tool.annotations.unwrap();
        let all = (
            hints.title.is_some(),
            hints.read_only_hint,
            hints.destructive_hint,
            hints.idempotent_hint,
            hints.open_world_hint,
        );
        let reads = !["write", "delete", "eval"].contains(&tool.name.as_ref());
        assert_eq!(all, (true, Some(reads), Some(false), Some(reads), Some(false)), "{}", tool.name);
    }
    let hash: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hash, LIST_SHA256, "the list of tools is another one");
}

#[test]
fn every_schema_is_flat_closed_and_bounded() {
    for tool in list_tools() {
        let arguments = Value::Object(tool.input_schema.as_ref().clone());
        let text = arguments.to_string() + &serde_json::to_string(&tool.output_schema).unwrap();
        for banned in ["$ref", "oneOf", "anyOf", "allOf", "$defs", "\"null\"", "\"format\"", "x-outside", "$schema"] {
            assert!(!text.contains(banned), "{}: {banned} in {text}", tool.name);
        }
        assert!(arguments["properties"]["workspace"].is_object(), "{}", tool.name);
        walk(&arguments, &tool.name, &mut |place, schema| match schema["type"].as_str() {
            Some("object") => assert_eq!(schema["additionalProperties"], json!(false), "{place}"),
            Some("string") if schema.get("enum").is_none() => {
                assert!(schema["maxLength"].is_number(), "{place}: {schema}")
            }
            Some("integer") => {
                assert!(schema["minimum"].is_number() && schema["maximum"].is_number(), "{place}: {schema}")
            }
            Some("array") => assert!(schema["maxItems"].is_number(), "{place}"),
            Some("boolean" | "string") => {}
            other => panic!("{place}: {other:?}: {schema}"),
        });
        for output in tool.output_schema.iter() {
            walk(&Value::Object(output.as_ref().clone()), &tool.name, &mut |place, schema| {
                assert!(schema["type"].is_string(), "{place}: {schema}");
            });
        }
    }
}

#[test]
fn a_tool_that_answers_in_text_has_no_schema_of_results() {
    let texts: Vec<&str> = WIKI_TOOLS.iter().filter(|tool| tool.result.is_none()).map(|tool| tool.name).collect();
    assert_eq!(texts, ["guide", "read", "git_show"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_shown_to_all_and_measured_for_nobody_who_may_only_read() {
    let bench = bench::Bench::new();
    let vault = bench.open([]);
    let ids = async |arguments: Value| {
        let shown = bench::ask(&vault, "eval", arguments).await;
        shown["metrics"].as_array().unwrap().iter().map(|it| it["metric"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(json!({})).await, ["M1", "M2", "M3", "M4", "M5"]);
    assert_eq!(ids(json!({"metric": "M4"})).await, ["M4"]);
    assert_eq!(ids(json!({"since": "2026-11-01"})).await, [Value::Null; 0], "nothing was measured since");
    let refused = bench::refuse(&vault, "eval", json!({"metric": "M1", "action": "run"})).await;
    assert!(refused.starts_with("error scope_too_small: "), "{refused}");
    let refused = bench::refuse(&vault, "eval", json!({"action": "run"})).await;
    assert!(refused.starts_with("error bad_arguments: "), "{refused}");
}

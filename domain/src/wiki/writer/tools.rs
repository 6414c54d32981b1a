//! The tools of the writer: their schemas, and the reading of their calls.
//!
//! What a model sends is untrusted: a call is read into typed values here, or refused with a reply that says what is missing.

use crate::steward::conversation::{ToolCall, ToolDefinition, ToolReply};
use serde::Deserialize;
use serde_json::{Value, json};

/// The tool that never holds up a run.
pub(super) const NOTE_RELATIONS: &str = "note_relations";

/// A call that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WriterCall {
    WritePage(PageContent),
    UpdateIdeas { ideas: Vec<String> },
    NoteRelations { relations: Vec<NotedRelation> },
    EditPage { slug: String, old: String, new: String },
    MarkDisputed(Dispute),
    NoChange { slug: String, reason: String },
    ReadPage { slug: String },
    SearchWiki { query: String },
}

/// A page as the model writes it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct PageContent {
    pub(super) page_type: String,
    pub(super) title: String,
    /// Markdown with footnotes that quote the source.
    pub(super) content: String,
    /// One sentence for the index.
    #[serde(default)]
    pub(super) summary: String,
}

/// A claim that the source contradicts, and what the source says.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Dispute {
    pub(super) slug: String,
    /// The id of the claim on its page, or a label of it.
    pub(super) claim: String,
    pub(super) statement: String,
    pub(super) quote: String,
}

/// How two pages relate to each other, as the model names them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct NotedRelation {
    pub(super) subject: String,
    pub(super) relation: String,
    pub(super) object: String,
}

#[derive(Deserialize)]
struct EditArguments {
    slug: String,
    old: String,
    new: String,
}

#[derive(Deserialize)]
struct IdeasArguments {
    ideas: Vec<String>,
}

#[derive(Deserialize)]
struct RelationArguments {
    triples: Vec<Value>,
}

#[derive(Deserialize)]
struct NoChangeArguments {
    slug: String,
    reason: String,
}

#[derive(Deserialize)]
struct SlugArgument {
    slug: String,
}

#[derive(Deserialize)]
struct QueryArgument {
    query: String,
}

/// The tools.
#[must_use]
pub fn list_tools() -> Vec<ToolDefinition> {
    let text = |description: &str| json!({"type": "string", "description": description});
    let define = |name, description, fields: &[(&str, Value)]| {
        let properties: serde_json::Map<String, Value> =
            fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
        let required: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        let parameters =
            json!({"type": "object", "additionalProperties": false, "required": required, "properties": properties});
        ToolDefinition { name, description, parameters }
    };
    let slug = ("slug", text("the slug of the page"));
    let list = json!({"type": "array", "items": {"type": "string"}, "description": "questions, one sentence each"});
    vec![
        define(
            "write_wiki_page",
            "Make a page, or extend the one with this title: then repeat everything that stands on it and add to it.",
            &[
                ("page_type", text("the kind, one of `kinds`")),
                ("title", text("the name of the person, place, thing or idea")),
                (
                    "content",
                    text(
                        "Markdown; every paragraph, list item and table row ends in a mark such as [^1], with `[^1]: \"verbatim words of the source\"` at the end",
                    ),
                ),
                ("summary", text("one sentence for the index")),
            ],
        ),
        define(
            "edit_wiki_page",
            "Replace text of a page. What stood there must stay; use it to add a sentence or a mark.",
            &[
                slug.clone(),
                ("old", text("text that stands on the page exactly once")),
                ("new", text("the text in its place, with its footnotes below")),
            ],
        ),
        define(
            "mark_disputed",
            "Set what the source says beside a claim that it contradicts or supersedes. Both stay.",
            &[
                slug.clone(),
                ("claim", text("the label of the claim, such as c6107d23f")),
                ("statement", text("what the source says, in one sentence")),
                ("quote", text("the verbatim words of the source")),
            ],
        ),
        define(
            "no_change",
            "Say that a related page needs no change.",
            &[slug.clone(), ("reason", text("why, in a few words"))],
        ),
        define("update_ideas", "Keep two or three questions that the source leaves open.", &[("ideas", list)]),
        define(
            NOTE_RELATIONS,
            "Note how pages of the wiki relate to each other, as far as the source says so.",
            &[("triples", describe_triples())],
        ),
        define("read_page", "Read a page.", &[slug]),
        define("search_wiki", "Find pages by their words.", &[("query", text("words"))]),
    ]
}

/// The schema of a list of relations.
fn describe_triples() -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    json!({"type": "array", "items": {
        "type": "object", "additionalProperties": false, "required": ["subject", "relation", "object"],
        "properties": {
            "subject": text("the slug or title of a page"),
            "relation": text("a short verb, such as `owned_by`"),
            "object": text("the slug or title of another page"),
        },
    }})
}

/// Reads a call.
///
/// # Errors
/// The reply to one that cannot be read.
pub(super) fn read_call(call: &ToolCall) -> Result<WriterCall, ToolReply> {
    let tools = list_tools();
    let Some(arguments) = &call.arguments else { return Err(ToolReply::error("error: truncated arguments")) };
    let Some(tool) = tools.iter().find(|tool| tool.name == call.name) else {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name).collect();
        return Err(ToolReply::error(format!("unknown tool; there are {}", names.join(", "))));
    };
    let required = tool.parameters["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    // A page may be written without its summary: the first sentence stands for it.
    let is_missing = |name: &&str| *name != "summary" && arguments.get(*name).is_none_or(Value::is_null);
    let missing: Vec<&str> = required.filter(is_missing).collect();
    if !missing.is_empty() {
        return Err(ToolReply::error(format!("error: missing fields {{{}}}", missing.join(", "))));
    }
    let value = Value::Object(arguments.clone());
    let read = match tool.name {
        "write_wiki_page" => serde_json::from_value(value).map(WriterCall::WritePage),
        "edit_wiki_page" => serde_json::from_value(value)
            .map(|EditArguments { slug, old, new }| WriterCall::EditPage { slug, old, new }),
        "mark_disputed" => serde_json::from_value(value).map(WriterCall::MarkDisputed),
        "no_change" => serde_json::from_value(value)
            .map(|NoChangeArguments { slug, reason }| WriterCall::NoChange { slug, reason }),
        "update_ideas" => {
            serde_json::from_value(value).map(|IdeasArguments { ideas }| WriterCall::UpdateIdeas { ideas })
        }
        // One that cannot be read does not spoil the others.
        NOTE_RELATIONS => {
            serde_json::from_value(value).map(|RelationArguments { triples }| WriterCall::NoteRelations {
                relations: triples.into_iter().filter_map(|triple| serde_json::from_value(triple).ok()).collect(),
            })
        }
        "read_page" => serde_json::from_value(value).map(|SlugArgument { slug }| WriterCall::ReadPage { slug }),
        _ => serde_json::from_value(value).map(|QueryArgument { query }| WriterCall::SearchWiki { query }),
    };
    read.map_err(|_| ToolReply::error("error: a field has another type than its schema says"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: &Value) -> ToolCall {
        ToolCall { id: String::new(), name: name.to_owned(), arguments: arguments.as_object().cloned() }
    }

    #[test]
    fn every_tool_reads_its_own_call() {
        for tool in list_tools() {
            let fill = |schema: &Value| if schema["type"] == "array" { json!(["x"]) } else { json!("x") };
            let properties = tool.parameters["properties"].as_object().unwrap();
            let arguments: serde_json::Map<String, Value> =
                properties.iter().map(|(name, schema)| (name.clone(), fill(schema))).collect();
            assert!(read_call(&call(tool.name, &Value::Object(arguments))).is_ok(), "{}", tool.name);
        }
    }

    #[test]
    fn a_bad_call_is_answered_with_what_is_wrong() {
        for (name, arguments, expected) in [
            ("read_page", json!(7), "error: truncated arguments"),
            ("run_shell", json!({}), "unknown tool; there are write_wiki_page"),
            ("edit_wiki_page", json!({"slug": "a", "new": null}), "error: missing fields {old, new}"),
            ("read_page", json!({"slug": ["a"]}), "error: a field has another type"),
        ] {
            let reply = read_call(&call(name, &arguments)).unwrap_err();
            assert!(reply.is_error && reply.text.starts_with(expected), "{reply:?}");
        }
        let no_summary = json!({"page_type": "concept", "title": "T", "content": "C"});
        assert!(
            matches!(read_call(&call("write_wiki_page", &no_summary)), Ok(WriterCall::WritePage(page)) if page.summary.is_empty())
        );
    }
}

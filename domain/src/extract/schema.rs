//! The JSON schema of an answer: closed, with the records that were offered.
//!
//! It uses only what strict mode of the common servers takes: every property is required, none is
//! free, alternatives are an `anyOf`. Lengths of texts are left to [`super::Answer::check`].

use super::{ExtractQuestion, MAX_SIGNALS};
use crate::mutation::{ContextField, MutationClass, RelatedField, link};
use crate::path::RecordKind;
use crate::record::State;
use serde_json::{Map, Value, json};

/// The schema of an answer to this question.
#[must_use]
pub fn answer_schema(question: &ExtractQuestion) -> Value {
    let refs: Vec<&str> = question.offers.iter().map(|o| o.path.as_str()).collect();
    let number = json!({"type": "number", "minimum": 0, "maximum": 1});
    let scores: Map<String, Value> = refs.iter().map(|r| ((*r).to_owned(), number.clone())).collect();
    let target = json!({"anyOf": [{"type": "null"}, {"type": "string", "enum": refs}]});
    let finding = object(&[
        ("quote", json!({"type": "string"})),
        ("target", target),
        ("scores", closed(scores)),
        ("effect", words(&["mutation", "action", "none"])),
        ("mutation", json!({"anyOf": mutations(question)})),
        ("effect_confidence", number),
        ("reasoning", json!({"type": "string"})),
    ]);
    object(&[("signals", json!({"type": "array", "items": finding, "maxItems": MAX_SIGNALS}))])
}

fn mutations(question: &ExtractQuestion) -> Vec<Value> {
    let text = || json!({"type": "string"});
    let mut forms = vec![json!({"type": "null"})];
    let states = words(&[State::Open, State::Done, State::Archived].map(State::word));
    forms.push(change(MutationClass::StateChange, "set", "state", states));
    for field in ContextField::ALL {
        forms.push(change(MutationClass::ContextEdit, "set", field.word(), text()));
    }
    let matters: Vec<String> =
        question.offers.iter().filter(|o| o.path.kind() == RecordKind::Matter).map(|o| link(&o.path)).collect();
    if !matters.is_empty() {
        let matters = json!({"type": "string", "enum": matters});
        forms.push(change(MutationClass::ParentMatter, "set", "parent_matter", matters));
    }
    for field in RelatedField::ALL {
        forms.push(change(MutationClass::Related, "add", field.word(), text()));
        forms.push(change(MutationClass::Related, "remove", field.word(), text()));
    }
    forms
}

/// `{class, set: {field: value}}`, and with `add` or `remove` in the place of `set`.
fn change(class: MutationClass, part: &str, field: &str, value: Value) -> Value {
    object(&[("class", words(&[class.word()])), (part, object(&[(field, value)]))])
}

fn words(all: &[&str]) -> Value {
    json!({"type": "string", "enum": all})
}

fn object(properties: &[(&str, Value)]) -> Value {
    closed(properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect())
}

/// An object with exactly these properties.
fn closed(properties: Map<String, Value>) -> Value {
    let required: Vec<&String> = properties.keys().collect();
    json!({"type": "object", "additionalProperties": false, "required": required, "properties": properties})
}

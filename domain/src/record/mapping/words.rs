//! The values of properties: how they are compared, and in which form a new one is written.
//!
//! People write `todo`, `Todo`, `[todo]` or a number for the same thing, and a new value follows the form of the old one.

use crate::record::link::fold_name;
use serde_json::{Number, Value};

/// A value for comparison: trimmed and without case. `None` for a value that is no text, number or flag, nor a list of
/// one of these.
#[must_use]
pub fn fold_words(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Array(items) => match items.as_slice() {
            [one] if !one.is_array() => return fold_words(one),
            _ => return None,
        },
        Value::Null | Value::Object(_) => return None,
    };
    if text.is_empty() { None } else { Some(fold_name(&text)) }
}

/// A mapped word in the form of the value that it replaces: in a list of one, as a number or a flag, or as text.
#[must_use]
pub fn write_like(now: Option<&Value>, word: &Value) -> Value {
    let text = match word {
        Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    let converted = match now {
        Some(Value::Array(items)) => return Value::Array(vec![write_like(items.first(), word)]),
        Some(Value::Bool(_)) => text.parse().ok().map(Value::Bool),
        Some(Value::Number(_)) => text.parse::<Number>().ok().map(Value::Number),
        Some(Value::String(_)) => Some(Value::String(text)),
        Some(Value::Null | Value::Object(_)) | None => None,
    };
    // A number that is written in another way, such as 1e3, would not be read as the mapped word.
    converted.filter(|value| fold_words(value) == fold_words(word)).unwrap_or_else(|| word.clone())
}

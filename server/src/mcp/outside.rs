//! Outside words: what pages, documents and people wrote. They are data, never instructions.
//!
//! Shown, they hide nothing: characters that cannot be seen, and the marks of our fences, stand as `\u{…}`. In structured results they stand only in
//! fields of this type, whose description says so.

use rmcp::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use steward_domain::record::plain_text::is_unseen;

/// How the description of a field with outside words begins.
pub(crate) const OUTSIDE: &str = "Outside words:";
/// Marks the schema of such a field until its description is checked.
pub(crate) const OUTSIDE_MARK: &str = "x-outside";

/// Words from outside, escaped when they are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutsideWords(pub(crate) String);

impl From<String> for OutsideWords {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for OutsideWords {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl Serialize for OutsideWords {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&escape_outside(&self.0))
    }
}

impl JsonSchema for OutsideWords {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "OutsideWords".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", OUTSIDE_MARK: true})
    }
}

/// Whether a character hides, turns or forges.
fn is_escaped(c: char) -> bool {
    is_unseen(c) || matches!(c, '⟦' | '⟧')
}

/// The text with everything that hides, turns or forges shown as `\u{…}`. Line breaks and tabs stay.
pub(crate) fn escape_outside(text: &str) -> Cow<'_, str> {
    let is_shown = |c: char| matches!(c, '\n' | '\t') || !is_escaped(c);
    if text.chars().all(is_shown) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| if is_shown(c) { c.to_string() } else { c.escape_unicode().to_string() };
    // A carriage return before a line break is part of it.
    Cow::Owned(text.replace("\r\n", "\n").chars().map(escape).collect())
}

/// The text with `\u{…}` as the character that it stands for, where [`escape_outside`] would show it so.
pub(crate) fn decode_outside(text: &str) -> String {
    let (mut decoded, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once("\\u{") {
        decoded.push_str(before);
        let character = after.split_once('}').and_then(|(digits, behind)| {
            let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
            is_escaped(c).then_some((c, behind))
        });
        match character {
            Some((c, behind)) => {
                decoded.push(c);
                rest = behind;
            }
            None => {
                decoded.push_str("\\u{");
                rest = after;
            }
        }
    }
    decoded.push_str(rest);
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hides_and_no_fence_can_be_forged() {
        assert_eq!(escape_outside("Jörg\n\tends."), "Jörg\n\tends.");
        assert_eq!(escape_outside("a\r\nb"), "a\nb");
        assert_eq!(
            escape_outside("⟦end 3f⟧\u{1b}[2J\u{202e}\u{e0041}"),
            "\\u{27e6}end 3f\\u{27e7}\\u{1b}[2J\\u{202e}\\u{e0041}"
        );
        for text in ["⟦end 3f⟧\u{202e}", "a \\u{41} stays", "\\u{x} and \\u{", "plain"] {
            assert_eq!(decode_outside(&escape_outside(text)), text);
        }
        assert_eq!(serde_json::to_string(&OutsideWords::from("\u{200b}")).unwrap(), r#""\\u{200b}""#);
    }
}

//! Text in Steward's own files that must not read as a link.
//!
//! When a person renames a note, Obsidian rewrites the links to it in the properties of every file. In an audit record
//! that would break the chain. So a backslash stands between the two brackets of every `[[` that Steward writes into a
//! property. Where backslashes stand there already, one more is added, so that every text reads back as it was.

use serde_json::Value;
use std::borrow::Cow;

/// The text without any `[[`.
#[must_use]
pub fn unlink_text(text: &str) -> Cow<'_, str> {
    change_backslashes(text, 0, |count| count + 1)
}

/// The text that [`unlink_text`] was given.
#[must_use]
pub fn relink_text(text: &str) -> Cow<'_, str> {
    change_backslashes(text, 1, |count| count - 1)
}

/// Changes every text in a value with [`unlink_text`].
pub(crate) fn unlink_value(value: &mut Value) {
    change_texts(value, &unlink_text);
}

/// Changes every text in a value with [`relink_text`].
pub(crate) fn relink_value(value: &mut Value) {
    change_texts(value, &relink_text);
}

/// Changes the number of backslashes between two `[` where there are at least so many.
fn change_backslashes(text: &str, at_least: usize, change: impl Fn(usize) -> usize) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    for (at, _) in text.match_indices('[') {
        let rest = &text[at + 1..];
        let count = rest.len() - rest.trim_start_matches('\\').len();
        if count >= at_least && rest[count..].starts_with('[') {
            out.push_str(&text[copied..=at]);
            out.extend(std::iter::repeat_n('\\', change(count)));
            copied = at + 1 + count;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

fn change_texts(value: &mut Value, change: &impl Fn(&str) -> Cow<'_, str>) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(changed) = change(text) {
                *text = changed;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| change_texts(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| change_texts(field, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_backslash_parts_the_brackets_and_is_taken_out_again() {
        for (text, unlinked) in [
            ("[[Roof]]", "[\\[Roof]]"),
            ("![[a]] and [[b|c]]", "![\\[a]] and [\\[b|c]]"),
            ("[[[x", "[\\[\\[x"),
            ("[\\[x]]", "[\\\\[x]]"),
            ("[x](y) ]] \\[", "[x](y) ]] \\["),
        ] {
            assert_eq!((unlink_text(text), relink_text(unlinked)), (unlinked.into(), text.into()));
        }
    }

    proptest! {
        #[test]
        fn every_text_reads_back_and_holds_no_link(text in "[\\[\\]\\\\a]{0,12}") {
            let unlinked = unlink_text(&text).into_owned();
            prop_assert!(!unlinked.contains("[["), "{}", unlinked);
            prop_assert_eq!(relink_text(&unlinked), text);
        }
    }
}

//! The hash of a record's content: its fields and its text, without their formatting.
//!
//! Steward's own timestamps in the file are left out, and a link counts by the note that it names. So a new hash means
//! that somebody changed a value or the text. It must not be used to compare bytes.

use crate::action::plan::ContentHash;
use crate::record::frontmatter::RecordFields;
use crate::record::moves::LinkReader;
use crate::steward::timestamps;
use serde_json::Value;
use std::collections::BTreeMap;

/// The hash of fields and a text. The order of fields, quoting, comments and line endings do not count, and neither does
/// the name by which a link calls the same note.
#[must_use]
pub fn hash_content(fields: &RecordFields, text: &str, links: LinkReader<'_>) -> ContentHash {
    let fields: BTreeMap<&String, Value> = fields
        .iter()
        .filter(|(field, _)| !timestamps::is_timestamp_field(field))
        .map(|(field, value)| (field, with_stable_links(value, links)))
        .collect();
    let text = name_links(&text.replace("\r\n", "\n"), |link| links.stable_name(link));
    let content = serde_json::to_string(&(fields, text.trim_end())).unwrap_or_default();
    ContentHash::hash_bytes(content.as_bytes())
}

/// The value, with links by the notes that they name. To YAML, `[[Acme]]` without quotes is a list in a list.
fn with_stable_links(value: &Value, links: LinkReader<'_>) -> Value {
    match value {
        Value::String(text) => Value::from(name_links(text, |link| links.stable_path(link))),
        Value::Array(items) => match items.as_slice() {
            [Value::Array(inner)] if matches!(inner.as_slice(), [Value::String(_)]) => {
                let link = inner.first().and_then(Value::as_str).unwrap_or_default();
                serde_json::json!([[links.stable_path(link)]])
            }
            items => items.iter().map(|item| with_stable_links(item, links)).collect(),
        },
        other => other.clone(),
    }
}

/// Replaces the target of each link in a text: `[[target#heading|title]]` and `[title](target.md)`.
fn name_links(text: &str, name: impl Fn(&str) -> String) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    loop {
        let next = [rest.find("[["), rest.find("](")].into_iter().flatten().min();
        let Some(start) = next.map(|at| at + 2) else { break };
        let (before, after) = rest.split_at(start);
        out.push_str(before);
        rest = after;
        let is_wikilink = before.ends_with("[[");
        let Some(end) = after.find(if is_wikilink { "]]" } else { ")" }) else { continue };
        let inner = &after[..end];
        let target = inner.split(['|', '#']).next().unwrap_or_default();
        let decoded = target.replace("%20", " ");
        if inner.contains(['\n', '[']) || !(is_wikilink || decoded.ends_with(".md")) {
            continue;
        }
        out.push_str(&name(&decoded));
        rest = &after[target.len()..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::frontmatter;
    use crate::record::link::{LinkScope, NoteNames};
    use crate::record::moves::{MoveHistory, NoteMove, PathTime, RecordedMoves};
    use crate::record::path::RecordPath;
    use crate::record::schema::NoteAccess;

    fn hash(text: &str) -> ContentHash {
        let document = frontmatter::read_document(text.as_bytes()).unwrap();
        let note = RecordPath::parse("task/t.md").unwrap();
        let links = NoteAccess::unmapped().links(&note, chrono::DateTime::UNIX_EPOCH);
        hash_content(document.fields(), document.body(), links)
    }

    /// The hash in a vault with these notes, where these have moved.
    fn hash_in(text: &str, notes: &[&str], moved: &[(&str, &str)]) -> ContentHash {
        let path = |text: &str| RecordPath::parse(text).unwrap();
        let mut names = NoteNames::new(LinkScope::Vault);
        notes.iter().for_each(|note| names.insert(path(note)));
        let moves = moved.iter().map(|(from, to)| NoteMove { from: path(from), to: Some(path(to)) }).collect();
        let moves =
            MoveHistory::new(LinkScope::Vault, [RecordedMoves { seq: 1, at: chrono::DateTime::UNIX_EPOCH, moves }]);
        let (document, note) = (frontmatter::read_document(text.as_bytes()).unwrap(), path("t.md"));
        let links = LinkReader { names: &names, moves: &moves, note: &note, time: PathTime::Seq(0) };
        hash_content(document.fields(), document.body(), links)
    }

    #[test]
    fn a_link_counts_by_the_note_that_it_names() {
        let text = |link: &str| {
            format!(
                "---\nproject: \"[[{link}]]\"\npeople:\n- \"[[{link}|Title]]\"\n---\nSee [[{link}#Part]] and [it]({}.md).\n",
                link.replace(' ', "%20")
            )
        };
        let before = hash_in(&text("Old name"), &["Projects/Old name.md"], &[]);
        let moved = [("Projects/Old name.md", "Archive/New name.md")];
        assert_eq!(hash_in(&text("New name"), &["Archive/New name.md"], &moved), before);
        let with_folder = hash_in(&text("Projects/Old name"), &["Projects/Old name.md"], &[]);
        assert_eq!(hash_in(&text("Archive/New name"), &["Archive/New name.md"], &moved), with_folder);
        assert_ne!(hash_in(&text("Other"), &["Archive/New name.md", "Other.md"], &moved), before);
        let other_heading = text("New name").replace("#Part", "#Else");
        assert_ne!(hash_in(&other_heading, &["Archive/New name.md"], &moved), before);
    }

    #[test]
    fn only_the_target_of_a_link_is_replaced() {
        let named = |text: &str| name_links(text, |link| format!("<{link}>"));
        for text in ["[[", "a ](b", "[[a\nb]]", "[x](https://a.example/New%20name)", "](", "[x](a.png)", "[ ] a"] {
            assert_eq!(named(text), text);
        }
        for (text, expected) in [
            ("[[a]] and [[b#c|d]]", "[[<a>]] and [[<b>#c|d]]"),
            ("[x](New%20name.md) [[é|ü]]", "[x](<New name.md>) [[<é>|ü]]"),
            ("![[a]]]", "![[<a>]]]"),
        ] {
            assert_eq!(named(text), expected);
        }
    }

    #[test]
    fn a_note_that_has_not_moved_has_one_hash_wherever_others_have() {
        let text = "---\nproject: \"[[./Projects/Roof]]\"\n---\nSee [[./Roof]] and [[roof]].\n";
        let notes = ["Projects/Roof.md", "Other.md"];
        assert_eq!(hash_in(text, &notes, &[("Else.md", "Other.md")]), hash_in(text, &notes, &[]));
    }

    #[test]
    fn only_a_changed_value_or_text_changes_the_hash() {
        let expected = hash("---\nstate: open\nowner: Ann\n---\nCall the bank\n");
        for same in [
            "---\nowner: \"Ann\" # by hand\nstate: open\n---\nCall the bank\n",
            "---\r\nstate: open\r\nowner: Ann\r\n---\r\nCall the bank\r\n",
            "---\nstate: open\nowner: Ann\nlast_steward_check_at: 2026-11-21T10:00:00Z\n\
             next_check_after: 2026-11-21T14:00:00Z\n---\nCall the bank",
        ] {
            assert_eq!(hash(same), expected, "{same}");
        }
        for other in [
            "---\nstate: open\nowner: Bob\n---\nCall the bank\n",
            "---\nstate: open\n---\nCall the bank\n",
            "---\nstate: open\nowner: Ann\n---\nCalled the bank\n",
        ] {
            assert_ne!(hash(other), expected, "{other}");
        }
    }
}

//! The hash of a record's content: its fields and its text, without their formatting.
//!
//! Steward's own timestamps in the file are left out. So a new hash means that somebody changed a value or the text.
//! It must not be used to compare bytes.

use crate::action::plan::ContentHash;
use crate::record::frontmatter::Document;
use crate::steward::timestamps;
use serde_json::Value;
use std::collections::BTreeMap;

/// The hash of a document's content. The order of fields, quoting, comments and line endings do not count.
#[must_use]
pub fn content_hash(document: &Document) -> ContentHash {
    let fields: BTreeMap<&String, &Value> =
        document.fields().iter().filter(|(field, _)| !timestamps::is_timestamp_field(field)).collect();
    let text = document.body().replace("\r\n", "\n");
    let content = serde_json::to_string(&(fields, text.trim_end())).unwrap_or_default();
    ContentHash::hash_bytes(content.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::frontmatter;

    fn hash(text: &str) -> ContentHash {
        content_hash(&frontmatter::read_document(text.as_bytes()).unwrap())
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

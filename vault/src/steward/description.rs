//! The `description` of a note, for the clerk who is asked about it.
//!
//! It is read where the clerk is asked, so no workflow holds it. The body of the note is never taken.

use crate::files::root::VaultRoot;
use serde_json::Value;
use steward_domain::record::frontmatter;
use steward_domain::record::path::RecordPath;
use steward_domain::steward::clerk::shorten_description;

/// What a clerk sees of the description in a note's frontmatter; `None` if there is none, or the note cannot be read.
#[must_use]
pub fn read_description(root: &VaultRoot, note: &RecordPath) -> Option<String> {
    let bytes = root.read_file(note).ok()?.bytes;
    let document = frontmatter::read_note(&bytes).ok()?;
    shorten_description(document.fields().get("description").and_then(Value::as_str)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_one_short_line_of_the_frontmatter_and_never_the_body() {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        std::fs::create_dir(dir.path().join("task")).unwrap();
        let read = |text: &str| {
            std::fs::write(dir.path().join("task/a.md"), text).unwrap();
            read_description(&root, &RecordPath::parse("task/a.md").unwrap())
        };
        assert_eq!(
            read("---\ndescription: \"The bill of\\n City Water.\"\n---\nThe body.\n").unwrap(),
            "The bill of  City Water."
        );
        assert_eq!(read(&format!("---\ndescription: {}\n---\n", "é".repeat(400))).unwrap(), "é".repeat(300));
        for none in [
            "---\ntype: task\n---\ndescription: no\n",
            "---\ndescription: \" \"\n---\n",
            "---\ndescription: [a]\n---\n",
            "no note",
        ] {
            assert_eq!(read(none), None, "{none}");
        }
        assert_eq!(read_description(&root, &RecordPath::parse("task/none.md").unwrap()), None);
    }
}

//! A note on its page: its text, a few of its fields, its limits, and links that open it in an editor.
//!
//! The text of a note is shown as plain text and nothing in it is followed. It must not become HTML.

use serde_json::Value;
use steward_domain::gates::matter_policy::MatterPolicy;
use steward_domain::record::frontmatter;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::record::schema::NoteSchema;
use steward_domain::record::url::{encode_path, encode_path_segment};
use steward_vault::files::root::VaultRoot;

/// Lines of a note's text that its page shows.
const LINES: usize = 300;
/// The longest field that is shown, in characters.
const MAX_FIELD_CHARS: usize = 200;

/// Links that open a note in the programs that people edit it with.
pub(crate) struct NoteLinks {
    pub(crate) obsidian: String,
    pub(crate) vscode: String,
}

impl NoteLinks {
    /// The links to a note of this vault. Obsidian names a vault by its folder.
    pub(crate) fn new(root: &VaultRoot, note: &str) -> Self {
        let vault = root.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let file = note.strip_suffix(".md").unwrap_or(note);
        let full = root.path().join(note);
        Self {
            obsidian: format!(
                "obsidian://open?vault={}&file={}",
                encode_path_segment(&vault),
                encode_path_segment(file)
            ),
            vscode: format!("vscode://file{}", encode_path(&full.to_string_lossy())),
        }
    }
}

/// What the page of a note shows of its file.
#[derive(Default)]
pub(crate) struct NoteText {
    /// The first lines of the text below the frontmatter, or of the whole file if its frontmatter cannot be read.
    pub(crate) text: String,
    /// How many lines are left out.
    pub(crate) more: usize,
    /// Fields as they are written: their names and values.
    pub(crate) fields: Vec<(&'static str, String)>,
}

/// Reads a note of this kind; empty if there is no such file or if it cannot be read.
pub(crate) fn read_note(root: &VaultRoot, note: &RecordPath, kind: RecordKind, schema: &NoteSchema) -> NoteText {
    let Ok(content) = root.read_file(note) else { return NoteText::default() };
    let document = frontmatter::read_document(&content.bytes).ok();
    let text = match &document {
        Some(document) => document.body().to_owned(),
        None => String::from_utf8_lossy(&content.bytes).into_owned(),
    };
    let field = |name: &'static str| {
        let fields = document.as_ref()?.fields();
        let property = schema.property_in(kind, name, fields)?;
        Some((name, format_field(fields.get(&property)?)?))
    };
    let is_repeated = document.as_ref().is_some_and(|document| schema.is_repeated(kind, document.fields()));
    let repeats = is_repeated.then(|| ("repeats", "yes, so Steward only asks about it".to_owned()));
    let mut lines = text.trim_matches('\n').lines();
    let shown: Vec<&str> = lines.by_ref().take(LINES).collect();
    NoteText {
        text: shown.join("\n"),
        more: lines.count(),
        fields: ["due", "owner"].into_iter().filter_map(field).chain(repeats).collect(),
    }
}

fn format_field(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    Some(text.chars().take(MAX_FIELD_CHARS).collect())
}

/// The limits that a matter's note sets, one text each; empty if it sets none.
pub(crate) fn describe_policy(policy: &MatterPolicy) -> Vec<String> {
    let list = |name: &str, items: Vec<&str>| {
        format!("{name}: {}", if items.is_empty() { "none".to_owned() } else { items.join(", ") })
    };
    let mut limits = Vec::new();
    limits.extend(policy.ceiling.map(|ceiling| format!("ceiling: {}", ceiling.as_str())));
    limits.extend(policy.classes.as_ref().map(|all| list("classes", all.iter().map(|class| class.as_str()).collect())));
    limits.extend(policy.fields.as_ref().map(|all| list("fields", all.iter().map(String::as_str).collect())));
    limits.extend(policy.quiet_hours.map(|hours| format!("quiet hours: {hours}")));
    let sources = policy.trusted_sources.as_ref();
    limits.extend(sources.map(|all| list("trusted sources", all.iter().map(String::as_str).collect())));
    limits.extend(policy.daily_budget.map(|budget| format!("live changes in 24 h: at most {budget}")));
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vault() -> (tempfile::TempDir, VaultRoot) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("My vault/task")).unwrap();
        let root = VaultRoot::open(&dir.path().join("My vault")).unwrap();
        (dir, root)
    }

    #[test]
    fn a_link_holds_every_name_and_none_of_its_marks() {
        let (_dir, root) = vault();
        let links = NoteLinks::new(&root, "task/50 % & \"Blüte\" #2?.md");
        assert_eq!(
            links.obsidian,
            "obsidian://open?vault=My%20vault&file=task%2F50%20%25%20%26%20%22Bl%C3%BCte%22%20%232%3F"
        );
        assert!(
            links.vscode.starts_with("vscode://file/")
                && links.vscode.ends_with("/My%20vault/task/50%20%25%20%26%20%22Bl%C3%BCte%22%20%232%3F.md")
        );
    }

    #[test]
    fn the_first_300_lines_are_shown_and_the_others_counted() {
        let (dir, root) = vault();
        let write = |text: String| std::fs::write(dir.path().join("My vault/task/t.md"), text).unwrap();
        let path = RecordPath::parse("task/t.md").unwrap();
        write(format!("---\ntype: task\ndue: 2026-12-01\nowner: [ann]\n---\n\n{}", "line\n".repeat(302)));
        let read = || read_note(&root, &path, RecordKind::Task, &NoteSchema::Folders);
        let note = read();
        assert_eq!((note.text.lines().count(), note.more), (300, 2));
        assert_eq!(note.fields, [("due", "2026-12-01".to_owned()), ("owner", "[\"ann\"]".to_owned())]);
        write("---\nbroken: [\n---\n<b>x</b>\n".into());
        let note = read();
        assert!(note.text.starts_with("---\nbroken") && note.text.ends_with("<b>x</b>") && note.fields.is_empty());
        std::fs::remove_file(dir.path().join("My vault/task/t.md")).unwrap();
        assert_eq!(read().text, "");
    }

    #[test]
    fn a_mapped_note_shows_its_own_properties_and_that_it_repeats() {
        let (dir, root) = vault();
        let mapping = r#"{
            "matter": {"where": {"folder": "P"}, "owner": {"property": "lead"}},
            "task": {"where": {"tag": "t"}, "state": {"property": "s", "open": ["o"], "done": ["d"]},
                "due": {"property": "fällig"}, "parent": {"property": "p"}}}"#;
        let schema = NoteSchema::from_mapping(serde_json::from_str(mapping).unwrap(), |_| None);
        let text = "---\ndue: wrong\nFällig: '[[2026-12-01]]'\nlead: Ann\nrecurrence: weekly\n---\n";
        std::fs::write(dir.path().join("My vault/task/t.md"), text).unwrap();
        let read = |kind| read_note(&root, &RecordPath::parse("task/t.md").unwrap(), kind, &schema).fields;
        let repeats = ("repeats", "yes, so Steward only asks about it".to_owned());
        assert_eq!(read(RecordKind::Task), [("due", "[[2026-12-01]]".to_owned()), repeats]);
        assert_eq!(read(RecordKind::Matter), [("owner", "Ann".to_owned())]);
    }

    #[test]
    fn each_limit_of_a_note_is_said_and_a_note_without_one_says_nothing() {
        assert_eq!(describe_policy(&MatterPolicy::default()), Vec::<String>::new());
        assert_eq!(describe_policy(&MatterPolicy::ask_only()), ["ceiling: ask"]);
        let policy = MatterPolicy { classes: Some(Vec::new()), daily_budget: Some(3), ..MatterPolicy::default() };
        assert_eq!(describe_policy(&policy), ["classes: none", "live changes in 24 h: at most 3"]);
    }
}

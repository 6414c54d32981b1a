//! A matter note for the tasks that name no matter.
//!
//! It is only described here. It is written if a person agrees to it, and to nothing else with the same word.

use super::VaultMapping;
use crate::record::entity::RecordState;
use crate::record::frontmatter::render_note;
use crate::record::link::NoteNames;
use crate::record::path::RecordPath;
use crate::record::schema::{NoteClass, NoteSchema};

/// The most names that are tried.
const MAX_NAMES: usize = 20;

/// A note that does not exist yet, and that the mapping would read as a matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatterNote {
    pub path: RecordPath,
    pub text: String,
    /// The link that names it, such as `[[Other tasks]]`.
    pub link: String,
}

impl VaultMapping {
    /// Describes the matter note for tasks without a matter. `None` if `except` leaves out whatever `where` selects.
    #[must_use]
    pub fn propose_matter_note(&self, names: &NoteNames) -> Option<MatterNote> {
        let schema = NoteSchema::from_mapping(self.clone(), |_| None);
        let (folder, mut fields) = self.matter.selector.describe_member();
        if let Some(state) = &self.matter.state {
            fields.insert(state.property.clone(), state.values(RecordState::Open).first()?.clone());
        }
        let name = (1..=MAX_NAMES).map(spell_name).find(|name| names.count_named(name) == 0)?;
        let place = if folder.is_empty() { format!("{name}.md") } else { format!("{folder}/{name}.md") };
        let path = RecordPath::parse(&place).ok()?;
        let is_matter = schema.classify(&path, &fields) == NoteClass::Matter;
        let text = render_note(&fields, "\nTasks that name no other matter belong to this one.\n");
        is_matter.then(|| MatterNote { path, text, link: format!("[[{name}]]") })
    }

    /// The mapping in which tasks that name no matter belong to this note.
    #[must_use]
    pub fn with_default_matter(mut self, note: &MatterNote) -> Self {
        self.task.parent.get_or_insert_default().default = Some(note.link.clone());
        self
    }
}

fn spell_name(number: usize) -> String {
    if number == 1 { "Other tasks".to_owned() } else { format!("Other tasks {number}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::frontmatter::read_note;
    use crate::record::link::LinkScope;
    use crate::record::path::RecordKind;
    use serde_json::{Value, json};

    fn mapping(matter: Value) -> VaultMapping {
        let task = json!({
            "where": {"tag": "task"}, "parent": {"property": "project"},
            "state": {"property": "status", "open": ["todo"], "done": ["done"]},
        });
        serde_json::from_value(json!({"matter": matter, "task": task})).unwrap()
    }

    #[test]
    fn the_note_is_a_matter_by_whatever_the_mapping_asks_for() {
        let state = json!({"property": "zustand", "open": ["läuft"], "done": ["fertig"]});
        for selector in [
            json!({"type": "matter"}),
            json!({"folder": "Pro/jekte", "tag": "#p", "art": 7}),
            json!({"folder": "/Projects/", "pinned": true}),
            json!({"kind": "[[Project]]"}),
        ] {
            let mapping = mapping(json!({"where": selector, "state": state}));
            let mut names = NoteNames::new(LinkScope::Vault);
            names.insert(RecordPath::parse("Else/other TASKS.md").unwrap());
            let note = mapping.propose_matter_note(&names).unwrap();
            assert_eq!(note.link, "[[Other tasks 2]]", "the first name is taken: {selector}");
            let fields = read_note(note.text.as_bytes()).unwrap().into_fields();
            let schema = NoteSchema::from_mapping(mapping.clone(), |_| None);
            assert_eq!(schema.classify(&note.path, &fields), NoteClass::Matter, "{}", note.text);
            assert_eq!(schema.read_matter(&note.path, &fields).unwrap().state, RecordState::Open);

            let task = read_note(b"---\ntags: [task]\nstatus: todo\n---\n").unwrap().into_fields();
            let path = RecordPath::parse("t.md").unwrap();
            let schema = NoteSchema::from_mapping(mapping.with_default_matter(&note), |_| None);
            names.insert(note.path.clone());
            let reading = schema.read_note(RecordKind::Task, &path, &task);
            let link = reading.fields["parent_matter"].as_str().unwrap();
            assert_eq!(schema.resolve_parent(&names, link, &path), Ok(note.path));
        }
    }

    #[test]
    fn a_mapping_that_would_leave_the_note_out_gets_none() {
        let matter = json!({"where": {"tag": "p"}, "except": [{"tag": "p"}]});
        assert_eq!(mapping(matter).propose_matter_note(&NoteNames::new(LinkScope::Vault)), None);
    }
}

//! Reads a mapped note under the fixed names.
//!
//! What cannot be read lowers the ceiling of the note or is left out. It must never be guessed.

use super::{MappedNotes, NoteReading, find_property, first_text, spell_folder_note};
use crate::gates::mode::Ceiling;
use crate::record::entity::RecordState;
use crate::record::frontmatter::RecordFields;
use crate::record::link::make_link_absolute;
use crate::record::mapping::{NoteRole, ParentProperty};
use crate::record::path::{RecordKind, RecordPath, strip_link};
use crate::time;
use chrono::{DateTime, NaiveDate, Utc};
use serde_json::Value;

impl MappedNotes {
    pub(super) fn read_note(&self, kind: RecordKind, path: &RecordPath, fields: &RecordFields) -> NoteReading {
        let notes = self.mapping.notes(kind);
        let mut read = RecordFields::new();
        let mut ceiling = Ceiling::Act;
        let mut further_parents = Vec::new();
        let mut has_unreadable_due = false;
        for (key, value) in fields.iter().filter(|(key, _)| is_own_key(key)) {
            read.insert(key.clone(), value.clone());
        }
        read.insert("type".into(), Value::from(kind.folder()));
        for (role, property) in notes.roles() {
            let Some((_, value)) = find_property(fields, property) else { continue };
            if value.is_null() {
                continue;
            }
            let translated = match role {
                NoteRole::State => {
                    let state = notes.state.as_ref().and_then(|state| state.read_state(value));
                    // Nobody knows what such a matter's state means, so it keeps its schedule and a person decides.
                    if state.is_none() {
                        ceiling = Ceiling::Ask;
                    }
                    Some(Value::from(state.unwrap_or(RecordState::Open).as_str()))
                }
                NoteRole::Parent => {
                    // A member that is no link names a matter whose policy is not known.
                    if value.as_array().is_some_and(|links| links.iter().any(|link| first_text(link).is_none())) {
                        ceiling = Ceiling::Ask;
                    }
                    let links = value.as_array().into_iter().flatten().filter_map(first_text);
                    further_parents = links.skip(1).map(|link| make_link_absolute(link, path)).collect();
                    first_text(value).map(|link| Value::from(make_link_absolute(link, path)))
                }
                NoteRole::Importance => {
                    let importance = notes.importance.as_ref().map(|importance| importance.read_importance(value));
                    importance.map(|importance| Value::from(importance.as_str()))
                }
                NoteRole::Due => {
                    let due = first_text(value).and_then(|text| self.read_moment(text));
                    has_unreadable_due = due.is_none() && is_filled(value);
                    due.map(|due| Value::from(time::format_millis(due)))
                }
                NoteRole::Snooze => {
                    let until = first_text(value).and_then(|text| self.read_moment(text));
                    // A guess would act against a person who asked for quiet.
                    if until.is_none() && is_filled(value) {
                        ceiling = Ceiling::Ask;
                    }
                    let own = read.get("snoozed_until").and_then(Value::as_str).and_then(time::parse);
                    until.max(own).map(|until| Value::from(time::format_millis(until)))
                }
                NoteRole::Recurrence => None,
                NoteRole::Title => first_text(value).map(Value::from),
                _ => Some(value.clone()),
            };
            let is_kept = role == NoteRole::Importance && read.contains_key(role.field());
            if let Some(translated) = translated.filter(|_| !is_kept) {
                read.insert(role.field().to_owned(), translated);
            }
        }
        if self.is_repeated(kind, fields) {
            ceiling = Ceiling::Ask;
        }
        if kind == RecordKind::Task && !read.contains_key(NoteRole::Parent.field()) {
            let link = spell_unwritten_parent(notes.parent.as_ref(), path);
            if let Some(link) = link {
                read.insert(NoteRole::Parent.field().to_owned(), Value::from(link));
            }
        }
        NoteReading { fields: read, ceiling, further_parents, has_unreadable_due }
    }

    /// Whether a plugin makes the next task when this one is done. It would not do so for a change of ours.
    pub(super) fn is_repeated(&self, kind: RecordKind, fields: &RecordFields) -> bool {
        let mapped = self.mapping.notes(kind).property(NoteRole::Recurrence);
        let recurrence = mapped.unwrap_or(NoteRole::Recurrence.field());
        kind == RecordKind::Task && find_property(fields, recurrence).is_some_and(|(_, value)| is_filled(value))
    }

    /// A time, a date, or a link to the note of a day.
    fn read_moment(&self, text: &str) -> Option<DateTime<Utc>> {
        let name = strip_link(text);
        let last = name.rsplit('/').next().unwrap_or(name);
        match NaiveDate::parse_from_str(last.trim(), "%Y-%m-%d") {
            Ok(day) => (self.day_end)(day),
            Err(_) => time::parse(text),
        }
    }
}

/// The link to the matter of a task that names none: by its folder, or the default.
fn spell_unwritten_parent(parent: Option<&ParentProperty>, path: &RecordPath) -> Option<String> {
    let by_folder = || spell_folder_note(path);
    let default = |parent: &ParentProperty| parent.default.clone();
    match parent {
        Some(parent) if parent.folder => by_folder().or_else(|| default(parent)),
        parent => parent.and_then(default).or_else(by_folder),
    }
}

/// Whether Steward gives a meaning to a key, so that it holds in every note.
fn is_own_key(key: &str) -> bool {
    const OWN: [&str; 6] =
        ["id", "next_check_after", "last_steward_check_at", "plane_issue_id", "snoozed_until", "surface_class"];
    key.starts_with("steward") || OWN.contains(&key)
}

/// Whether a property says anything.
pub(super) fn is_filled(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(flag) => *flag,
        Value::Number(_) => true,
    }
}

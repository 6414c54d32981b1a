//! The names of properties and the words that a proposal recognises.
//!
//! A word that is not here is never guessed. It is shown to the person as not mapped.

use super::super::words::fold_words;
use super::super::{ImportanceProperty, NoteMapping, NoteRole, PlainProperty};
use super::{NoteSample, find};
use crate::record::entity::RecordState;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) const STATE_NAMES: [&str; 9] =
    ["status", "state", "zustand", "taskstatus", "task status", "done", "completed", "complete", "erledigt"];
pub(super) const PARENT_NAMES: [&str; 9] =
    ["project", "projects", "projekt", "parent", "matter", "area", "bereich", "epic", "belongs to"];
const OPEN_WORDS: [&str; 24] = [
    "todo",
    "to do",
    "to-do",
    "open",
    "doing",
    "in progress",
    "in-progress",
    "active",
    "waiting",
    "next",
    "started",
    "ongoing",
    "backlog",
    "planned",
    "blocked",
    "on hold",
    "not started",
    "offen",
    "in arbeit",
    "läuft",
    "wartet",
    "aktiv",
    "geplant",
    "false",
];
const DONE_WORDS: [&str; 10] =
    ["done", "✅ done", "complete", "completed", "finished", "closed", "erledigt", "fertig", "abgeschlossen", "true"];
pub(super) const ARCHIVED_WORDS: [&str; 9] =
    ["archived", "archive", "cancelled", "canceled", "dropped", "abandoned", "archiviert", "abgebrochen", "verworfen"];
/// Names of properties for the other roles of a task.
pub(super) const TASK_ROLES: [(NoteRole, &[&str]); 4] = [
    (NoteRole::Due, &["due", "deadline", "due date", "due-date", "fällig", "fällig am"]),
    (NoteRole::Recurrence, &["recurrence", "rrule", "repeat", "wiederholung"]),
    (NoteRole::RelatedTo, &["people", "personen", "contacts", "related"]),
    (NoteRole::Importance, &["priority", "prio", "importance", "priorität"]),
];
pub(super) const MATTER_ROLES: [(NoteRole, &[&str]); 4] = [
    (NoteRole::Owner, &["owner", "lead", "verantwortlich"]),
    (NoteRole::Summary, &["summary", "zusammenfassung"]),
    (NoteRole::Description, &["description", "beschreibung"]),
    (NoteRole::RelatedTo, &["people", "personen", "contacts", "related"]),
];
const HIGH_WORDS: [&str; 5] = ["high", "urgent", "hoch", "highest", "1"];
const LOW_WORDS: [&str; 5] = ["low", "lowest", "niedrig", "4", "5"];

pub(super) fn read_known_state(value: &Value) -> Option<RecordState> {
    let words = fold_words(value)?;
    let words = words.as_str();
    if OPEN_WORDS.contains(&words) {
        Some(RecordState::Open)
    } else if DONE_WORDS.contains(&words) {
        Some(RecordState::Done)
    } else {
        ARCHIVED_WORDS.contains(&words).then_some(RecordState::Archived)
    }
}

pub(super) fn is_known_state(value: &Value) -> bool {
    read_known_state(value).is_some()
}

pub(super) fn fits_role(role: NoteRole, value: &Value) -> bool {
    match role {
        NoteRole::RelatedTo => value.is_array(),
        NoteRole::Importance => fold_words(value)
            .is_some_and(|word| HIGH_WORDS.contains(&word.as_str()) || LOW_WORDS.contains(&word.as_str())),
        _ => fold_words(value).is_some(),
    }
}

/// Sets a role that the proposal knows how to fill.
pub(super) fn set_role(mapping: &mut NoteMapping, role: NoteRole, property: &str, notes: &[&NoteSample]) -> bool {
    let plain = || Some(PlainProperty { property: property.to_owned() });
    match role {
        NoteRole::Due => mapping.due = plain(),
        NoteRole::Recurrence => mapping.recurrence = plain(),
        NoteRole::RelatedTo => mapping.related_to = plain(),
        NoteRole::Owner => mapping.owner = plain(),
        NoteRole::Summary => mapping.summary = plain(),
        NoteRole::Description => mapping.description = plain(),
        NoteRole::Importance => {
            let words = |known: &[&str]| -> Vec<Value> {
                let values = notes.iter().filter_map(|note| find(&note.fields, property));
                let known = values.filter(|value| fold_words(value).is_some_and(|word| known.contains(&word.as_str())));
                let distinct: BTreeMap<String, &Value> =
                    known.filter_map(|value| Some((fold_words(value)?, value))).collect();
                distinct.into_values().filter(|value| !value.is_array()).cloned().collect()
            };
            let property = property.to_owned();
            mapping.importance =
                Some(ImportanceProperty { property, high: words(&HIGH_WORDS), low: words(&LOW_WORDS) });
        }
        NoteRole::State
        | NoteRole::Parent
        | NoteRole::Snooze
        | NoteRole::Title
        | NoteRole::RelatedOrgs
        | NoteRole::RelatedProjects => return false,
    }
    true
}

//! Finds the faults for which a mapping cannot be accepted.
//!
//! Each fault names the keys that lead to it, so that a message can name the line. Nothing here changes the mapping.

use super::selector::NoteSelector;
use super::words::fold_words;
use super::{MappingFault, NoteMapping, NoteRole, StateProperty, VaultMapping};
use crate::record::link::fold_name;
use crate::record::path::RecordKind;
use serde_json::Value;
use std::collections::BTreeMap;

/// Properties to which Steward, Obsidian or a plugin gives a meaning. No role may name them.
const PROTECTED: [&str; 14] = [
    "type",
    "id",
    "next_check_after",
    "last_steward_check_at",
    "plane_issue_id",
    "tag",
    "tags",
    "alias",
    "aliases",
    "cssclass",
    "cssclasses",
    "publish",
    "permalink",
    "position",
];

impl VaultMapping {
    /// Everything for which the mapping cannot be accepted.
    #[must_use]
    pub fn find_faults(&self) -> Vec<MappingFault> {
        let mut faults = Vec::new();
        for kind in [RecordKind::Matter, RecordKind::Task] {
            let mut found = FaultList { kind, faults: &mut faults };
            self.notes(kind).find_faults(&mut found);
        }
        if self.matter.selector == self.task.selector && self.matter.except == self.task.except {
            let keys = ["map", "task", "where"].map(str::to_owned).to_vec();
            let message = "it selects the same notes as `map.matter`: name what distinguishes a task from a matter";
            faults.push(MappingFault { keys, message: message.into() });
        }
        faults
    }
}

/// Collects the faults of one table.
struct FaultList<'a> {
    kind: RecordKind,
    faults: &'a mut Vec<MappingFault>,
}

impl FaultList<'_> {
    fn add(&mut self, keys: &[&str], message: impl Into<String>) {
        let path = ["map", self.kind.folder()].iter().chain(keys).map(|key| (*key).to_owned()).collect();
        self.faults.push(MappingFault { keys: path, message: message.into() });
    }
}

impl NoteMapping {
    /// Whether it cannot be the mapping of tasks.
    pub(super) fn has_task_faults(&self) -> bool {
        let mut faults = Vec::new();
        self.find_faults(&mut FaultList { kind: RecordKind::Task, faults: &mut faults });
        !faults.is_empty()
    }

    fn find_faults(&self, faults: &mut FaultList<'_>) {
        self.find_selector_faults(faults);
        self.find_property_faults(faults);
        match (&self.state, faults.kind) {
            (Some(state), _) => {
                state.find_value_faults(faults);
            }
            (None, RecordKind::Task) => faults.add(&["state"], "it is missing: name the property with the state"),
            (None, _) => {}
        }
        if let Some(importance) = &self.importance {
            find_value_faults("importance", &[("high", &importance.high), ("low", &importance.low)], faults);
        }
        match &self.parent {
            None if faults.kind == RecordKind::Task => {
                faults.add(&["parent"], "it is missing: write `{ property = \"…\" }` or `{ folder = true }`");
            }
            Some(parent) if parent.folder == parent.property.is_some() => {
                faults.add(&["parent"], "it needs either `property` or `folder = true`");
            }
            None | Some(_) => {}
        }
    }

    fn find_selector_faults(&self, faults: &mut FaultList<'_>) {
        let named: Vec<String> = self.roles().map(|(_, property)| fold_name(property)).collect();
        if self.selector.matches_everything() {
            faults.add(&["where"], "it matches every note: name a folder, a tag, a type or another property");
        }
        if self.except.iter().any(NoteSelector::matches_everything) {
            faults.add(&["except"], "an entry matches every note: name a folder, a tag, a type or another property");
        }
        for (key, selector) in
            std::iter::once(("where", &self.selector)).chain(self.except.iter().map(|s| ("except", s)))
        {
            if let Some(fault) = selector.find_fault() {
                faults.add(&[key], fault);
            }
        }
        if let Some(property) = self.selector.properties().find(|property| named.contains(&fold_name(property))) {
            let message = format!(
                "`{property}` also has a role: a change of it would take the note out of the mapping; use another property"
            );
            faults.add(&["where"], message);
        }
    }

    fn find_property_faults(&self, faults: &mut FaultList<'_>) {
        let mut roles: BTreeMap<String, NoteRole> = BTreeMap::new();
        let kind = faults.kind;
        for (role, property) in self.roles() {
            let key = role.as_str();
            let folded = fold_name(property);
            if !role.fits(kind) {
                faults.add(&[key], format!("a {} has no `{key}`: remove it", kind.folder()));
            }
            if property.trim().is_empty() || property.trim() != property {
                faults.add(&[key], "the name of the property is empty or has blanks around it");
            }
            if is_protected(&folded, role) {
                let why = "Steward, Obsidian or a plugin gives a meaning to it";
                faults.add(&[key], format!("`{property}` cannot be mapped, because {why}: use another property"));
            }
            if let Some(other) = roles.insert(folded, role) {
                let message = format!("`{property}` has the role `{}` already: name another property", other.as_str());
                faults.add(&[key], message);
            }
        }
        if self.parent.as_ref().is_some_and(|parent| parent.folder) && kind == RecordKind::Matter {
            faults.add(&["parent"], "a matter has no `parent`: remove it");
        }
    }
}

fn is_protected(folded: &str, role: NoteRole) -> bool {
    let own = [("snoozed_until", NoteRole::Snooze), ("surface_class", NoteRole::Importance)];
    let is_elsewhere = own.iter().any(|(key, theirs)| *key == folded && *theirs != role);
    folded.starts_with("steward") || PROTECTED.contains(&folded) || is_elsewhere
}

impl StateProperty {
    fn find_value_faults(&self, faults: &mut FaultList<'_>) {
        for (key, values) in [("open", &self.open), ("done", &self.done)] {
            if values.is_empty() {
                faults.add(&["state", key], "it is empty: name the value that is written");
            }
        }
        let groups = [("open", &self.open), ("done", &self.done), ("archived", &self.archived)];
        find_value_faults("state", &groups, faults);
    }
}

/// Finds values that are no plain value, and values that stand for two things.
fn find_value_faults(role: &str, groups: &[(&str, &Vec<Value>)], faults: &mut FaultList<'_>) {
    let mut known: BTreeMap<String, &str> = BTreeMap::new();
    for (key, values) in groups {
        for value in *values {
            let words = if value.is_array() { None } else { fold_words(value) };
            let Some(folded) = words else {
                faults.add(&[role, key], "a value is not text, a number, `true` or `false`");
                continue;
            };
            if let Some(other) = known.insert(folded, key).filter(|other| other != key) {
                faults.add(&[role, key], format!("`{value}` also stands for `{other}`: a value means one thing"));
            }
        }
    }
}

//! Proposes a mapping from the notes of a vault.
//!
//! Tasks are notes with a known word for a state and a link to another note, or in a folder with a note of its name. The
//! notes that they point to are matters. Every line of the proposal says what it rests on, and a person decides. What is
//! not recognised is left out of the proposal, never guessed.

mod apart;
mod known;
mod state;
mod tasknotes;

use super::selector::NoteSelector;
use super::{NoteMapping, NoteRole, ParentProperty, PlainProperty, VaultMapping};
use crate::record::frontmatter::RecordFields;
use crate::record::link::{NoteNames, fold_name};
use crate::record::path::{RecordKind, RecordPath};
use apart::{choose_selector, describe_selection};
use known::{MATTER_ROLES, PARENT_NAMES, STATE_NAMES, TASK_ROLES, fits_role, is_known_state, set_role};
use serde_json::Value;
use state::{build_state, describe_state};
use std::collections::{BTreeMap, BTreeSet};

pub use tasknotes::TaskNotesSettings;

/// The most notes that a message names.
const SHOWN_NOTES: usize = 3;

/// A note with its properties as they are written.
#[derive(Clone, Debug)]
pub struct NoteSample {
    pub path: RecordPath,
    pub fields: RecordFields,
}

/// A mapping, and what each line of it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct MappingProposal {
    pub mapping: VaultMapping,
    /// By the key in the mapping, such as `task.state`.
    pub reasons: BTreeMap<String, String>,
}

/// What a vault shows.
#[derive(Clone, Copy, Debug)]
pub struct VaultSample<'a> {
    pub notes: &'a [NoteSample],
    /// All notes that links may name.
    pub names: &'a NoteNames,
    /// Folders that are ignored and become exceptions, such as one of templates.
    pub left_out: &'a [String],
    /// The settings of the plugin TaskNotes, if the vault uses it.
    pub tasknotes: Option<&'a TaskNotesSettings>,
}

/// Why no mapping can be proposed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProposalError {
    #[error("no note has a property such as `status` with a known word such as `todo` or `done`")]
    NoStates,
    #[error(
        "no folder, tag or property tells the {what} apart from other notes, such as {}: give them a property such as \
         `type: {}`, and try again", .examples.join(", "), .what.trim_end_matches('s')
    )]
    NotApart { what: &'static str, examples: Vec<String> },
}

/// The tasks of a vault, and how they are mapped.
struct FoundTasks {
    mapping: NoteMapping,
    tasks: BTreeSet<RecordPath>,
    /// The notes that they belong to.
    matters: BTreeSet<RecordPath>,
    /// By role.
    reasons: BTreeMap<&'static str, String>,
}

impl FoundTasks {
    /// The settings of TaskNotes cannot be expressed as a mapping. The plugin repeats tasks by its own property all the
    /// same, so that one counts.
    fn without_plugin(mut self, settings: &TaskNotesSettings) -> Self {
        let with_recurrence = NoteMapping {
            recurrence: Some(PlainProperty { property: settings.recurrence().to_owned() }),
            ..self.mapping.clone()
        };
        if !with_recurrence.has_task_faults() {
            self.mapping = with_recurrence;
            self.reasons.insert(NoteRole::Recurrence.as_str(), "from the settings of TaskNotes".into());
        }
        let reason = self.reasons.entry("where").or_default();
        reason.push_str("; the other settings of TaskNotes fit no task, or cannot be written as a mapping");
        self
    }
}

/// Proposes a mapping. If no task names a matter, the matters are proposed as notes with `type: matter`.
///
/// # Errors
/// [`ProposalError`] if the notes do not show what is a task.
pub fn propose_mapping(sample: &VaultSample<'_>) -> Result<MappingProposal, ProposalError> {
    let exceptions: Vec<NoteSelector> = sample.left_out.iter().map(|folder| NoteSelector::in_folder(folder)).collect();
    let is_kept = |note: &&NoteSample| !exceptions.iter().any(|except| except.matches_place(&note.path));
    let notes: Vec<&NoteSample> = sample.notes.iter().filter(is_kept).collect();
    let by_plugin = sample.tasknotes.and_then(|settings| settings.find_tasks(&notes, sample.names));
    let found = match (by_plugin, sample.tasknotes) {
        (Some(found), _) => found,
        (None, None) => find_tasks(&notes, sample.names)?,
        (None, Some(settings)) => find_tasks(&notes, sample.names)?.without_plugin(settings),
    };
    let FoundTasks { mapping: mut task, tasks, matters, reasons } = found;
    let mut reasons: BTreeMap<String, String> =
        reasons.into_iter().map(|(role, reason)| (format!("task.{role}"), reason)).collect();
    task.except.splice(0..0, exceptions.iter().cloned());
    let mut matter = NoteMapping { except: exceptions, ..NoteMapping::default() };
    if matters.is_empty() {
        matter.selector = NoteSelector::with_property("type", Value::from(RecordKind::Matter.folder()));
        reasons.insert("matter.where".into(), "no task names a matter yet".into());
    } else {
        let chosen = choose_selector(&notes, &matters, &tasks).ok_or_else(|| not_apart("matters", &matters))?;
        reasons.insert("matter.where".into(), describe_selection(&chosen, matters.len(), "notes that tasks belong to"));
        matter.selector = chosen.selector;
    }
    let matter_notes: Vec<&NoteSample> = notes.iter().copied().filter(|note| matters.contains(&note.path)).collect();
    if let Some(state) = choose_property(&matter_notes, &STATE_NAMES, |_, value| is_known_state(value)) {
        let state = build_state(&matter_notes, &state.name);
        reasons.insert("matter.state".into(), describe_state(&state, &matter_notes));
        matter.state = Some(state);
    }
    for (role, reason) in find_roles(&mut matter, &MATTER_ROLES, &matter_notes) {
        reasons.insert(format!("matter.{role}"), reason);
    }
    Ok(MappingProposal { mapping: VaultMapping { matter, task }, reasons })
}

/// Finds the tasks by what the notes themselves show.
fn find_tasks(notes: &[&NoteSample], names: &NoteNames) -> Result<FoundTasks, ProposalError> {
    let state = choose_property(notes, &STATE_NAMES, |_, value| is_known_state(value));
    let state = state.ok_or(ProposalError::NoStates)?;
    let stateful: Vec<&NoteSample> =
        notes.iter().copied().filter(|note| find(&note.fields, &state.name).is_some_and(is_known_state)).collect();
    let (parent, pairs) = find_parents(&stateful, names);
    let matters: BTreeSet<RecordPath> = pairs.iter().map(|(_, matter)| matter.clone()).collect();
    let tasks: BTreeSet<RecordPath> = if pairs.is_empty() {
        stateful.iter().map(|note| note.path.clone()).collect()
    } else {
        pairs.into_iter().map(|(task, _)| task).collect()
    };
    // Without matters nothing else tells tasks apart, so a selector that takes in more than it should is no proposal.
    let chosen = choose_selector(notes, &tasks, &matters)
        .filter(|chosen| !matters.is_empty() || chosen.is_mostly_wanted())
        .ok_or_else(|| not_apart("tasks", &tasks))?;
    let mut reasons = BTreeMap::new();
    let what = if matters.is_empty() { "notes with a state" } else { "notes with a state and a matter" };
    reasons.insert("where", describe_selection(&chosen, tasks.len(), what));
    let counts = format!("tasks: {}, matters: {}", tasks.len(), matters.len());
    let parent_reason = match &parent.property {
        _ if matters.is_empty() => "no task names a matter yet".to_owned(),
        Some(property) => format!("`{property}` links to another note; {counts}"),
        None => format!("they lie below a folder with a note of its name; {counts}"),
    };
    reasons.insert("parent", parent_reason);
    let task_notes: Vec<&NoteSample> = notes.iter().copied().filter(|note| tasks.contains(&note.path)).collect();
    let state = build_state(&task_notes, &state.name);
    reasons.insert("state", describe_state(&state, &task_notes));
    let mut mapping =
        NoteMapping { selector: chosen.selector, state: Some(state), parent: Some(parent), ..NoteMapping::default() };
    reasons.extend(find_roles(&mut mapping, &TASK_ROLES, &task_notes));
    Ok(FoundTasks { mapping, tasks, matters, reasons })
}

/// Sets the further roles that properties of known names can play. Returns what each rests on.
fn find_roles(
    mapping: &mut NoteMapping,
    roles: &[(NoteRole, &[&str])],
    notes: &[&NoteSample],
) -> Vec<(&'static str, String)> {
    let mut reasons = Vec::new();
    for (role, known) in roles {
        let Some(found) = choose_property(notes, known, |_, value| fits_role(*role, value)) else { continue };
        let is_taken = mapping.roles().any(|(_, property)| fold_name(property) == fold_name(&found.name))
            || mapping.selector.properties().any(|property| fold_name(property) == fold_name(&found.name));
        if !is_taken && set_role(mapping, *role, &found.name, notes) {
            reasons.push((role.as_str(), format!("notes that have it: {}", found.count)));
        }
    }
    reasons
}

fn not_apart(what: &'static str, notes: &BTreeSet<RecordPath>) -> ProposalError {
    let examples = notes.iter().take(SHOWN_NOTES).map(|note| format!("`{}`", note.as_str().escape_debug())).collect();
    ProposalError::NotApart { what, examples }
}

/// A property, as most notes spell it.
struct FoundProperty {
    name: String,
    count: usize,
}

/// The property of a list of known names that most notes have with a fitting value. Of equals the first name wins.
fn choose_property(
    notes: &[&NoteSample],
    known: &[&str],
    fits: impl Fn(&NoteSample, &Value) -> bool,
) -> Option<FoundProperty> {
    let mut best: Option<FoundProperty> = None;
    for wanted in known {
        let mut spellings: BTreeMap<&str, usize> = BTreeMap::new();
        for note in notes {
            let fitting = note.fields.iter().find(|(key, value)| fold_name(key) == *wanted && fits(note, value));
            if let Some((key, _)) = fitting {
                *spellings.entry(key).or_default() += 1;
            }
        }
        let count = spellings.values().sum();
        let name = spellings.into_iter().max_by_key(|(_, count)| *count).map(|(name, _)| name.to_owned());
        if let Some(name) = name.filter(|_| best.as_ref().is_none_or(|best| count > best.count)) {
            best = Some(FoundProperty { name, count });
        }
    }
    best
}

fn find<'a>(fields: &'a RecordFields, property: &str) -> Option<&'a Value> {
    let wanted = fold_name(property);
    fields.iter().find(|(key, _)| fold_name(key) == wanted).map(|(_, value)| value)
}

/// How the notes name what they belong to, and the pairs of a note and the note it belongs to. Without a pair it is the
/// property that they would use.
fn find_parents(stateful: &[&NoteSample], names: &NoteNames) -> (ParentProperty, Vec<(RecordPath, RecordPath)>) {
    let resolves = |note: &NoteSample, value: &Value| resolve_parent(note, value, names).is_some();
    if let Some(found) = choose_property(stateful, &PARENT_NAMES, resolves) {
        let pairs = list_parents(stateful, &found.name, names);
        return (ParentProperty::by_property(&found.name), pairs);
    }
    let pairs: Vec<(RecordPath, RecordPath)> = stateful
        .iter()
        .filter_map(|note| Some((note.path.clone(), names.find_folder_note(&note.path).ok()?)))
        .collect();
    let matters: BTreeSet<RecordPath> = pairs.iter().map(|(_, matter)| matter.clone()).collect();
    let pairs: Vec<_> = pairs.into_iter().filter(|(task, _)| !matters.contains(task)).collect();
    if pairs.is_empty() {
        let named = choose_property(stateful, &PARENT_NAMES, |_, value| !value.is_null());
        return (ParentProperty::by_property(named.as_ref().map_or(PARENT_NAMES[0], |found| &found.name)), pairs);
    }
    (ParentProperty { folder: true, ..ParentProperty::default() }, pairs)
}

/// The pairs of a note and the note that its property links to.
fn list_parents(notes: &[&NoteSample], property: &str, names: &NoteNames) -> Vec<(RecordPath, RecordPath)> {
    let parent = |note: &NoteSample| resolve_parent(note, find(&note.fields, property)?, names);
    notes.iter().filter_map(|note| Some((note.path.clone(), parent(note)?))).collect()
}

/// The other note that a value links to; of a list the first counts.
fn resolve_parent(note: &NoteSample, value: &Value, names: &NoteNames) -> Option<RecordPath> {
    let link = match value {
        Value::String(link) => link.as_str(),
        Value::Array(items) => items.first()?.as_str()?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    names.resolve(RecordKind::Matter, link, &note.path).ok().filter(|found| *found != note.path)
}

#[cfg(test)]
mod tests;

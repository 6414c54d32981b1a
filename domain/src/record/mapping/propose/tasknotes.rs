//! The settings of TaskNotes, a plugin of Obsidian, as the mapping of tasks.
//!
//! The settings say which notes are tasks and what their properties mean, so nothing is guessed from the notes. A setting
//! that is missing counts as the plugin's default. Settings that a mapping cannot express are ignored as a whole.

use super::super::words::fold_words;
use super::super::{ImportanceProperty, NoteMapping, ParentProperty, PlainProperty, StateProperty};
use super::known::ARCHIVED_WORDS;
use super::{FoundTasks, NoteSample, list_parents};
use crate::record::link::{NoteNames, fold_name};
use crate::record::mapping::selector::NoteSelector;
use crate::record::path::RecordPath;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The settings that say what a task is. Their names and defaults are those of TaskNotes 4.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TaskNotesSettings {
    /// `tag` or `property`.
    task_identification_method: String,
    task_tag: String,
    task_property_name: String,
    task_property_value: String,
    /// Folders, separated by commas.
    excluded_folders: String,
    /// Whether archived tasks are moved into the archive folder.
    move_archived_tasks: bool,
    archive_folder: String,
    /// The title is the file's name.
    store_title_in_filename: bool,
    default_task_priority: String,
    default_task_status: String,
    field_mapping: FieldNames,
    custom_statuses: Vec<TaskStatus>,
    custom_priorities: Vec<TaskPriority>,
}

/// The names of the properties of a task.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct FieldNames {
    title: String,
    status: String,
    priority: String,
    due: String,
    projects: String,
    recurrence: String,
    archive_tag: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskStatus {
    value: String,
    #[serde(default)]
    is_completed: bool,
    #[serde(default)]
    order: f64,
}

#[derive(Clone, Debug, Deserialize)]
struct TaskPriority {
    value: String,
    /// From 0; the higher, the more important.
    #[serde(default)]
    weight: f64,
}

impl Default for TaskNotesSettings {
    fn default() -> Self {
        let status = |value: &str, order| TaskStatus { value: value.into(), is_completed: value == "done", order };
        let priority = |value: &str, weight| TaskPriority { value: value.into(), weight };
        Self {
            task_identification_method: "tag".into(),
            task_tag: "task".into(),
            task_property_name: String::new(),
            task_property_value: String::new(),
            excluded_folders: String::new(),
            move_archived_tasks: false,
            archive_folder: String::new(),
            store_title_in_filename: true,
            default_task_priority: "normal".into(),
            default_task_status: "open".into(),
            field_mapping: FieldNames::default(),
            custom_statuses: vec![
                status("none", 0.0),
                status("open", 1.0),
                status("in-progress", 2.0),
                status("done", 3.0),
            ],
            custom_priorities: vec![
                priority("none", 0.0),
                priority("low", 1.0),
                priority("normal", 2.0),
                priority("high", 3.0),
            ],
        }
    }
}

impl Default for FieldNames {
    fn default() -> Self {
        let [title, status, priority, due, projects, recurrence, archive_tag] =
            ["title", "status", "priority", "due", "projects", "recurrence", "archived"].map(str::to_owned);
        Self { title, status, priority, due, projects, recurrence, archive_tag }
    }
}

impl TaskNotesSettings {
    /// The tasks by these settings; `None` if a mapping cannot express them, or if no note is a task.
    pub(super) fn find_tasks(&self, notes: &[&NoteSample], names: &NoteNames) -> Option<FoundTasks> {
        let fields = &self.field_mapping;
        let mapping = NoteMapping {
            selector: self.build_selector()?,
            except: self.list_exceptions(),
            state: Some(self.build_state()?),
            parent: Some(ParentProperty::by_property(&fields.projects)),
            importance: self.build_importance(),
            due: Some(PlainProperty { property: fields.due.clone() }),
            recurrence: Some(PlainProperty { property: fields.recurrence.clone() }),
            title: (!self.store_title_in_filename).then(|| PlainProperty { property: fields.title.clone() }),
            ..NoteMapping::default()
        };
        if mapping.has_task_faults() {
            return None;
        }
        let is_task = |note: &&NoteSample| {
            mapping.selector.matches(&note.path, &note.fields)
                && !mapping.except.iter().any(|except| except.matches(&note.path, &note.fields))
        };
        let task_notes: Vec<&NoteSample> = notes.iter().copied().filter(is_task).collect();
        let tasks: BTreeSet<RecordPath> = task_notes.iter().map(|note| note.path.clone()).collect();
        if tasks.is_empty() {
            return None;
        }
        // A task that belongs to another task is not mapped: Steward knows no tasks of tasks.
        let pairs = list_parents(&task_notes, &fields.projects, names);
        let matters: BTreeSet<RecordPath> =
            pairs.into_iter().map(|(_, matter)| matter).filter(|matter| !tasks.contains(matter)).collect();
        let mut reasons: BTreeMap<&'static str, String> =
            mapping.roles().map(|(role, _)| (role.as_str(), "from the settings of TaskNotes".to_owned())).collect();
        reasons.insert("where", format!("from the settings of TaskNotes; tasks: {}", tasks.len()));
        Some(FoundTasks { mapping, tasks, matters, reasons })
    }

    /// The property by which the plugin repeats a task.
    pub(super) fn recurrence(&self) -> &str {
        &self.field_mapping.recurrence
    }

    fn build_selector(&self) -> Option<NoteSelector> {
        match self.task_identification_method.as_str() {
            "tag" => Some(NoteSelector::with_tag(&self.task_tag)),
            "property" if !self.task_property_value.trim().is_empty() => {
                let value = Value::from(self.task_property_value.trim());
                Some(NoteSelector::with_property(self.task_property_name.trim(), value))
            }
            _ => None,
        }
    }

    fn list_exceptions(&self) -> Vec<NoteSelector> {
        let archive = Some(self.archive_folder.as_str()).filter(|_| self.move_archived_tasks);
        let folders = self.excluded_folders.split(',').chain(archive).map(|folder| folder.trim().trim_matches('/'));
        // Hidden folders are never read.
        let is_read = |folder: &&str| folder.split('/').all(|part| !part.is_empty() && !part.starts_with('.'));
        let mut found: Vec<NoteSelector> = folders.filter(is_read).map(NoteSelector::in_folder).collect();
        if !self.field_mapping.archive_tag.trim().is_empty() {
            found.push(NoteSelector::with_tag(&self.field_mapping.archive_tag));
        }
        found
    }

    /// The status that new tasks get is the first open one, because the first is written when a task is opened again.
    fn build_state(&self) -> Option<StateProperty> {
        let mut statuses: Vec<&TaskStatus> = self.custom_statuses.iter().collect();
        statuses.sort_by(|a, b| a.order.total_cmp(&b.order));
        statuses.sort_by_key(|status| status.value != self.default_task_status);
        let is_archived = |status: &TaskStatus| ARCHIVED_WORDS.contains(&fold_name(status.value.trim()).as_str());
        let list = |wanted: fn(&TaskStatus, bool) -> bool| -> Vec<Value> {
            let chosen = statuses.iter().filter(|status| wanted(status, is_archived(status)));
            chosen.map(|status| Value::from(status.value.trim())).collect()
        };
        let open = list(|status, archived| !status.is_completed && !archived);
        let done = list(|status, archived| status.is_completed && !archived);
        let archived = list(|_, archived| archived);
        let property = self.field_mapping.status.clone();
        (!open.is_empty() && !done.is_empty()).then_some(StateProperty { property, open, done, archived })
    }

    /// What is more important than a new task is high. What is less, and has a weight, is low.
    fn build_importance(&self) -> Option<ImportanceProperty> {
        let normal = self.custom_priorities.iter().find(|p| p.value == self.default_task_priority)?.weight;
        let list = |fits: &dyn Fn(f64) -> bool| -> Vec<Value> {
            let chosen = self.custom_priorities.iter().filter(|priority| fits(priority.weight));
            chosen.map(|priority| Value::from(priority.value.trim())).collect()
        };
        let (high, low) = (list(&|weight| weight > normal), list(&|weight| weight > 0.0 && weight < normal));
        let property = self.field_mapping.priority.clone();
        let is_plain = high.iter().chain(&low).all(|value| fold_words(value).is_some());
        (is_plain && !(high.is_empty() && low.is_empty())).then_some(ImportanceProperty { property, high, low })
    }
}

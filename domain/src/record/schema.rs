//! How the notes of a vault are classified, read and written.
//!
//! Without a mapping, a matter lies in `matter/` and a task in `task/`, and their properties have fixed names. With a
//! mapping, any note may be either, and properties and values have the names that people gave them. Everywhere but in a
//! note the fixed names are used (`state: done`, `parent_matter`). Only this module translates. It opens no file.

mod exclusion;
mod reading;

use crate::action::mutation::Mutation;
use crate::action::plan::ContentHash;
use crate::gates::mode::Ceiling;
use crate::record::content_hash::hash_content;
use crate::record::entity::{Matter, RecordFaults, RecordState, Task};
use crate::record::frontmatter::{Document, RecordFields, strip_link_markup};
use crate::record::link::{LinkError, LinkScope, NoteNames, fold_name, make_link_absolute};
use crate::record::mapping::{NoteMapping, NoteRole, VaultMapping, write_like};
use crate::record::moves::{LinkReader, MoveHistory, PathTime};
use crate::record::path::{RecordKind, RecordPath};
use chrono::{DateTime, NaiveDate, Utc};
use serde_json::Value;
use std::sync::Arc;

use exclusion::find_exclusion;
pub use exclusion::{NoteExclusion, is_sync_copy};

/// The mapping in force, or none.
#[derive(Clone, Debug, Default)]
pub enum NoteSchema {
    /// The folders `matter/` and `task/`, with fixed names of properties.
    #[default]
    Folders,
    Mapped(MappedNotes),
}

/// A mapping in force.
#[derive(Clone, Debug)]
pub struct MappedNotes {
    mapping: Arc<VaultMapping>,
    hash: ContentHash,
    day_end: DayEnd,
}

/// How the target of a plan is read and written, and the notes that links name.
#[derive(Clone, Copy, Debug)]
pub struct NoteAccess<'a> {
    pub schema: &'a NoteSchema,
    pub names: &'a NoteNames,
    /// Where notes have moved since older records.
    pub moves: &'a MoveHistory,
}

impl NoteAccess<'static> {
    /// A vault without a mapping whose notes are not known: a link names the path that it spells.
    #[must_use]
    pub fn unmapped() -> Self {
        static NAMES: NoteNames = NoteNames::new(LinkScope::KindFolder);
        static MOVES: MoveHistory = MoveHistory::empty();
        Self { schema: &NoteSchema::Folders, names: &NAMES, moves: &MOVES }
    }
}

impl<'a> NoteAccess<'a> {
    /// Reads the links of a note, and older ones that were written at this time.
    #[must_use]
    pub fn links(self, note: &'a RecordPath, time: DateTime<Utc>) -> LinkReader<'a> {
        LinkReader { names: self.names, moves: self.moves, note, time: PathTime::At(time) }
    }
}

/// The end of a day in the zone of the vault's owner. A due date ends with its day.
pub type DayEnd = fn(NaiveDate) -> Option<DateTime<Utc>>;

/// What a note is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoteClass {
    Matter,
    Task,
    /// Neither. Steward leaves it alone.
    Other,
    /// It would be a matter or a task, and is left out.
    Excluded(NoteExclusion),
}

impl NoteClass {
    /// The kind of a matter or task.
    #[must_use]
    pub fn kind(&self) -> Option<RecordKind> {
        match self {
            Self::Matter => Some(RecordKind::Matter),
            Self::Task => Some(RecordKind::Task),
            Self::Other | Self::Excluded(_) => None,
        }
    }
}

/// A note as everything but the note itself spells it.
#[derive(Clone, Debug, PartialEq)]
pub struct NoteReading {
    /// The fields under their fixed names, with the fixed words for states.
    pub fields: RecordFields,
    /// How far a steward may go with this note, whatever its matter allows.
    pub ceiling: Ceiling,
    /// The links to matters beyond the first, which is in the fields. Their policies hold too.
    pub further_parents: Vec<String>,
    /// A due date is there that cannot be read.
    pub has_unreadable_due: bool,
}

impl NoteSchema {
    /// The schema of a vault with this accepted mapping.
    #[must_use]
    pub fn from_mapping(mapping: VaultMapping, day_end: DayEnd) -> Self {
        Self::Mapped(MappedNotes { hash: mapping.hash(), mapping: Arc::new(mapping), day_end })
    }

    /// The end of a day in the zone of the vault's owner.
    #[must_use]
    pub fn day_end(&self) -> Option<DayEnd> {
        match self {
            Self::Folders => None,
            Self::Mapped(mapped) => Some(mapped.day_end),
        }
    }

    #[must_use]
    pub fn is_mapped(&self) -> bool {
        matches!(self, Self::Mapped(_))
    }

    /// The mapping, if there is one.
    #[must_use]
    pub fn mapping(&self) -> Option<&VaultMapping> {
        match self {
            Self::Folders => None,
            Self::Mapped(mapped) => Some(&mapped.mapping),
        }
    }

    /// The hash of the mapping, by which records name it.
    #[must_use]
    pub fn hash(&self) -> Option<&ContentHash> {
        match self {
            Self::Folders => None,
            Self::Mapped(mapped) => Some(&mapped.hash),
        }
    }

    /// Which notes a link may name.
    #[must_use]
    pub fn link_scope(&self) -> LinkScope {
        if self.is_mapped() { LinkScope::Vault } else { LinkScope::KindFolder }
    }

    /// Whether a note of this kind may lie here. It says nothing about what is in the note.
    #[must_use]
    pub fn allows_place(&self, kind: RecordKind, path: &RecordPath) -> bool {
        match self {
            Self::Folders => path.scanned_kind() == Some(kind),
            Self::Mapped(_) => kind.is_note() && path.own_kind().is_none(),
        }
    }

    /// Whether the note must be read to classify it.
    #[must_use]
    pub fn may_select(&self, path: &RecordPath) -> bool {
        match self {
            Self::Folders => path.scanned_kind().is_some_and(RecordKind::is_note),
            Self::Mapped(mapped) => {
                let mapping = &mapped.mapping;
                path.own_kind().is_none()
                    && [&mapping.matter, &mapping.task].iter().any(|notes| notes.selector.matches_place(path))
            }
        }
    }

    /// Whether notes of this kind have the property that a change writes.
    #[must_use]
    pub fn can_write(&self, kind: RecordKind, mutation: &Mutation) -> bool {
        let Self::Mapped(mapped) = self else { return mutation.is_applicable_to(kind) };
        let notes = mapped.mapping.notes(kind);
        let has_property = NoteRole::from_field(mutation.field()).and_then(|role| notes.property(role)).is_some();
        let has_value = match mutation {
            Mutation::StateChange { to } => notes.state.as_ref().is_some_and(|state| !state.values(*to).is_empty()),
            Mutation::ContextEdit { .. } | Mutation::ParentMatter { .. } | Mutation::Related { .. } => true,
        };
        mutation.is_applicable_to(kind) && has_property && has_value
    }

    /// Whether a change can be written into a note with these properties. A list of matters is left to its person.
    #[must_use]
    pub fn can_write_into(&self, kind: RecordKind, mutation: &Mutation, fields: &RecordFields) -> bool {
        let is_list = || {
            let property = self.property_in(kind, mutation.field(), fields);
            property.and_then(|property| fields.get(&property)).is_some_and(Value::is_array)
        };
        self.can_write(kind, mutation) && !(self.is_mapped() && mutation.new_parent().is_some() && is_list())
    }

    /// Classifies a note. `fields` are its properties as they are written.
    #[must_use]
    pub fn classify(&self, path: &RecordPath, fields: &RecordFields) -> NoteClass {
        let Self::Mapped(mapped) = self else {
            return match path.scanned_kind() {
                Some(RecordKind::Matter) => NoteClass::Matter,
                Some(RecordKind::Task) => NoteClass::Task,
                _ => NoteClass::Other,
            };
        };
        if path.own_kind().is_some() {
            return NoteClass::Other;
        }
        let selects = |notes: &NoteMapping| {
            notes.selector.matches(path, fields) && !notes.except.iter().any(|except| except.matches(path, fields))
        };
        let kind = match (selects(&mapped.mapping.matter), selects(&mapped.mapping.task)) {
            (false, false) => return NoteClass::Other,
            (true, true) => return NoteClass::Excluded(NoteExclusion::BothKinds),
            (true, false) => RecordKind::Matter,
            (false, true) => RecordKind::Task,
        };
        match find_exclusion(path, fields, mapped.mapping.notes(kind), kind) {
            Some(exclusion) => NoteClass::Excluded(exclusion),
            None if kind == RecordKind::Matter => NoteClass::Matter,
            None => NoteClass::Task,
        }
    }

    /// Reads the properties of a matter or task under their fixed names.
    #[must_use]
    pub fn read_note(&self, kind: RecordKind, path: &RecordPath, fields: &RecordFields) -> NoteReading {
        match self {
            Self::Folders => NoteReading {
                fields: fields.clone(),
                ceiling: Ceiling::Act,
                further_parents: Vec::new(),
                has_unreadable_due: false,
            },
            Self::Mapped(mapped) => mapped.read_note(kind, path, fields),
        }
    }

    /// Whether a plugin repeats this task, so that only its person may complete it.
    #[must_use]
    pub fn is_repeated(&self, kind: RecordKind, fields: &RecordFields) -> bool {
        matches!(self, Self::Mapped(mapped) if mapped.is_repeated(kind, fields))
    }

    /// The hash of a note's content: what its roles say, and its text. Other properties of a mapped note do not count.
    #[must_use]
    pub fn content_hash(&self, kind: RecordKind, document: &Document, links: LinkReader<'_>) -> ContentHash {
        match self {
            Self::Folders => hash_content(document.fields(), document.body(), links),
            Self::Mapped(mapped) => {
                let mut reading = mapped.read_note(kind, links.note, document.fields());
                if !reading.further_parents.is_empty() {
                    reading.fields.insert("further_parents".into(), Value::from(reading.further_parents));
                }
                hash_content(&reading.fields, document.body(), links)
            }
        }
    }

    /// Reads a matter, and how far a steward may go with it.
    ///
    /// # Errors
    /// [`RecordFaults`] naming each field.
    pub fn read_matter(&self, path: &RecordPath, fields: &RecordFields) -> Result<Matter, RecordFaults> {
        let reading = self.read_note(RecordKind::Matter, path, fields);
        let matter = Matter::read(&reading.fields)?;
        Ok(Matter { ceiling: matter.ceiling.min(reading.ceiling), ..matter })
    }

    /// Reads a task.
    ///
    /// # Errors
    /// [`RecordFaults`] naming each field.
    pub fn read_task(&self, path: &RecordPath, fields: &RecordFields) -> Result<Task, RecordFaults> {
        Task::read(&self.read_note(RecordKind::Task, path, fields).fields)
    }

    /// The property of this note that has the role of a field, as the note spells it or, if it has none, as the mapping
    /// does. `None` if notes of this kind have no such property.
    #[must_use]
    pub fn property_in(&self, kind: RecordKind, field: &str, fields: &RecordFields) -> Option<String> {
        let Self::Mapped(mapped) = self else { return Some(field.to_owned()) };
        let property = mapped.mapping.notes(kind).property(NoteRole::from_field(field)?)?;
        Some(find_property(fields, property).map_or_else(|| property.to_owned(), |(key, _)| key.clone()))
    }

    /// The property with the role of a field, as a person writes it.
    #[must_use]
    pub fn spell_property(&self, kind: RecordKind, field: &'static str) -> &str {
        let mapped = self.mapping().and_then(|mapping| mapping.notes(kind).property(NoteRole::from_field(field)?));
        mapped.unwrap_or(field)
    }

    /// The line by which a person sets the state of a note, such as `status: todo`.
    #[must_use]
    pub fn spell_state(&self, kind: RecordKind, state: RecordState) -> String {
        let mapped = self.mapping().and_then(|mapping| mapping.notes(kind).state.as_ref());
        let word = mapped.and_then(|mapped| mapped.values(state).first());
        let word = word.map_or_else(
            || state.as_str().to_owned(),
            |word| word.as_str().map_or_else(|| word.to_string(), str::to_owned),
        );
        format!("{}: {word}", self.spell_property(kind, "state"))
    }

    /// Whether a property has the role of a field. Names are compared without case.
    #[must_use]
    pub fn has_role(&self, kind: RecordKind, field: &str, property: &str) -> bool {
        let Self::Mapped(mapped) = self else { return field == property };
        let mapped_property = NoteRole::from_field(field).and_then(|role| mapped.mapping.notes(kind).property(role));
        mapped_property.is_some_and(|mapped| fold_name(mapped) == fold_name(property))
    }

    /// The value of a field under its fixed name, from the words in a note at this path, as [`NoteSchema::read_note`]
    /// reads it. `None` if the words have no meaning.
    #[must_use]
    pub fn read_value(&self, kind: RecordKind, path: &RecordPath, field: &str, written: &Value) -> Option<Value> {
        if !self.is_mapped() {
            return Some(written.clone());
        }
        match NoteRole::from_field(field)? {
            NoteRole::State => self.read_state(kind, written).map(|state| Value::from(state.as_str())),
            NoteRole::Parent => first_text(written).map(|link| Value::from(make_link_absolute(link, path))),
            _ => Some(written.clone()),
        }
    }

    /// The state that the words in a note mean.
    #[must_use]
    pub fn read_state(&self, kind: RecordKind, written: &Value) -> Option<RecordState> {
        match self {
            Self::Folders => written.as_str().and_then(RecordState::parse),
            Self::Mapped(mapped) => mapped.mapping.notes(kind).state.as_ref()?.read_state(written),
        }
    }

    /// The words that a note gets for a value of a field, in the form of the value that it replaces.
    #[must_use]
    pub fn write_value(&self, kind: RecordKind, field: &str, value: &Value, now: Option<&Value>) -> Option<Value> {
        let Self::Mapped(mapped) = self else { return Some(value.clone()) };
        if NoteRole::from_field(field)? != NoteRole::State {
            return Some(value.clone());
        }
        let state = value.as_str().and_then(RecordState::parse)?;
        let word = mapped.mapping.notes(kind).state.as_ref()?.values(state).first()?;
        Some(write_like(now, word))
    }

    /// Finds the matter of a task, by its link or by its folder.
    ///
    /// # Errors
    /// [`LinkError`] if there is no such note, or several.
    pub fn resolve_parent(&self, names: &NoteNames, link: &str, task: &RecordPath) -> Result<RecordPath, LinkError> {
        let is_by_folder = self.has_folder_parents() && spell_folder_note(task).as_deref() == Some(link);
        if !is_by_folder {
            return names.resolve(RecordKind::Matter, link, task);
        }
        let parent = self.mapping().and_then(|mapping| mapping.task.parent.as_ref());
        match (names.find_folder_note(task), parent.and_then(|parent| parent.default.as_deref())) {
            (Err(LinkError::Missing(_)), Some(default)) => names.resolve(RecordKind::Matter, default, task),
            (found, _) => found,
        }
    }

    /// Whether tasks belong to the matter of their folder.
    #[must_use]
    pub fn has_folder_parents(&self) -> bool {
        self.mapping().and_then(|mapping| mapping.task.parent.as_ref()).is_some_and(|parent| parent.folder)
    }
}

/// A property of a note, as the note spells it. Names are compared without case.
fn find_property<'a>(fields: &'a RecordFields, property: &str) -> Option<(&'a String, &'a Value)> {
    let wanted = fold_name(property);
    fields.get_key_value(property).or_else(|| fields.iter().find(|(key, _)| fold_name(key) == wanted))
}

/// The text of a value, or of the first member of a list.
fn first_text(value: &Value) -> Option<&str> {
    let text = match value {
        Value::String(text) => text.as_str(),
        Value::Array(items) => items.iter().find_map(Value::as_str)?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    Some(text).filter(|text| !strip_link_markup(text).trim().is_empty())
}

/// The path of the note that would describe the folder of a note.
fn spell_folder_note(note: &RecordPath) -> Option<String> {
    let folder = note.split_folder().0;
    let name = folder.rsplit('/').next().filter(|name| !name.is_empty())?;
    Some(format!("{folder}/{name}.md"))
}

#[cfg(test)]
mod tests;

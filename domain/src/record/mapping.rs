//! The mapping of a vault: which notes are matters and tasks, and which property plays which role.
//!
//! A person writes it as `[map.matter]` and `[map.task]`. It counts as that person last accepted it. This module holds
//! the mapping and finds its faults. [`crate::record::schema`] applies it to notes.

mod faults;
mod matter_note;
pub mod propose;
mod selector;
mod words;

use crate::action::mutation::RelatedField;
use crate::action::plan::ContentHash;
use crate::record::entity::{RecordState, SurfaceClass};
use crate::record::path::RecordKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use matter_note::MatterNote;
pub use selector::NoteSelector;
pub use words::{fold_words, write_like};

/// The mapping of a vault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaultMapping {
    pub matter: NoteMapping,
    pub task: NoteMapping,
}

/// How the notes of one kind are found, and the properties that play their roles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoteMapping {
    #[serde(rename = "where")]
    pub selector: NoteSelector,
    /// Notes that are not of this kind, although `where` fits them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<NoteSelector>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateProperty>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentProperty>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importance: Option<ImportanceProperty>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<PlainProperty>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snooze: Option<PlainProperty>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recurrence: Option<PlainProperty>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<PlainProperty>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<PlainProperty>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<PlainProperty>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<PlainProperty>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub related_orgs: Option<PlainProperty>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub related_projects: Option<PlainProperty>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub related_to: Option<PlainProperty>,
}

/// A property whose value is used as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlainProperty {
    pub property: String,
}

/// The property with the state, and its values. Of each state the first value is the one that is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateProperty {
    pub property: String,
    pub open: Vec<Value>,
    pub done: Vec<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub archived: Vec<Value>,
}

/// The property with the importance. Every other value means `normal`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportanceProperty {
    pub property: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub high: Vec<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub low: Vec<Value>,
}

/// How a task names its matter: by a property, or by the folder in which it lies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParentProperty {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub property: Option<String>,
    /// The matter is the nearest folder upward that has a note of its name, inside or beside it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub folder: bool,
    /// The link to the matter of the tasks that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

impl ParentProperty {
    /// The matter is what this property links to.
    #[must_use]
    pub fn by_property(property: &str) -> Self {
        Self { property: Some(property.to_owned()), ..Self::default() }
    }
}

/// What a property is for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum NoteRole {
    State,
    Parent,
    Importance,
    Due,
    Snooze,
    Recurrence,
    Title,
    Summary,
    Description,
    Owner,
    RelatedOrgs,
    RelatedProjects,
    RelatedTo,
}

/// A fault of a mapping. It is not accepted while it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingFault {
    /// The keys from the root of the file to the fault, such as `map`, `task`, `due`.
    pub keys: Vec<String>,
    pub message: String,
}

impl NoteRole {
    /// Every role, in the order of the documents.
    pub const ALL: [Self; 13] = [
        Self::State,
        Self::Parent,
        Self::Importance,
        Self::Due,
        Self::Snooze,
        Self::Recurrence,
        Self::Title,
        Self::Summary,
        Self::Description,
        Self::Owner,
        Self::RelatedOrgs,
        Self::RelatedProjects,
        Self::RelatedTo,
    ];

    /// The key in the mapping.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The field that has this role in a vault without a mapping, and everywhere but in a note.
    #[must_use]
    pub fn field(self) -> &'static str {
        match self {
            Self::Parent => "parent_matter",
            Self::Importance => "surface_class",
            Self::Snooze => "snoozed_until",
            Self::Title => "name",
            other => other.as_str(),
        }
    }

    /// The role of a field.
    #[must_use]
    pub fn from_field(field: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.field() == field)
    }

    /// Whether notes of this kind have such a property.
    fn fits(self, kind: RecordKind) -> bool {
        match self {
            Self::State | Self::Title | Self::RelatedOrgs | Self::RelatedProjects | Self::RelatedTo => true,
            Self::Summary | Self::Description | Self::Owner => kind == RecordKind::Matter,
            Self::Parent | Self::Importance | Self::Due | Self::Snooze | Self::Recurrence => kind == RecordKind::Task,
        }
    }
}

impl VaultMapping {
    /// The mapping of the notes of one kind.
    #[must_use]
    pub fn notes(&self, kind: RecordKind) -> &NoteMapping {
        if kind == RecordKind::Matter { &self.matter } else { &self.task }
    }

    /// The hash by which records name the mapping. Comments and the layout of the file do not count.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        ContentHash::hash_bytes(serde_json::to_string(self).unwrap_or_default().as_bytes())
    }
}

impl NoteMapping {
    /// The property with this role.
    #[must_use]
    pub fn property(&self, role: NoteRole) -> Option<&str> {
        let plain = match role {
            NoteRole::State => return self.state.as_ref().map(|state| state.property.as_str()),
            NoteRole::Parent => return self.parent.as_ref().and_then(|parent| parent.property.as_deref()),
            NoteRole::Importance => return self.importance.as_ref().map(|importance| importance.property.as_str()),
            NoteRole::Due => &self.due,
            NoteRole::Snooze => &self.snooze,
            NoteRole::Recurrence => &self.recurrence,
            NoteRole::Title => &self.title,
            NoteRole::Summary => &self.summary,
            NoteRole::Description => &self.description,
            NoteRole::Owner => &self.owner,
            NoteRole::RelatedOrgs => &self.related_orgs,
            NoteRole::RelatedProjects => &self.related_projects,
            NoteRole::RelatedTo => &self.related_to,
        };
        plain.as_ref().map(|plain| plain.property.as_str())
    }

    /// Every role that has a property, and the property.
    pub fn roles(&self) -> impl Iterator<Item = (NoteRole, &str)> {
        NoteRole::ALL.into_iter().filter_map(|role| Some((role, self.property(role)?)))
    }
}

impl StateProperty {
    /// The values of a state; the first is the one that is written.
    #[must_use]
    pub fn values(&self, state: RecordState) -> &[Value] {
        match state {
            RecordState::Open => &self.open,
            RecordState::Done => &self.done,
            RecordState::Archived => &self.archived,
        }
    }

    /// The state that a value means; `None` if it is not mapped.
    #[must_use]
    pub fn read_state(&self, value: &Value) -> Option<RecordState> {
        let found = fold_words(value)?;
        let states = [RecordState::Open, RecordState::Done, RecordState::Archived];
        states.into_iter().find(|state| holds(self.values(*state), &found))
    }
}

impl ImportanceProperty {
    /// The importance that a value means.
    #[must_use]
    pub fn read_importance(&self, value: &Value) -> SurfaceClass {
        match fold_words(value) {
            Some(found) if holds(&self.high, &found) => SurfaceClass::High,
            Some(found) if holds(&self.low, &found) => SurfaceClass::Low,
            Some(_) | None => SurfaceClass::Normal,
        }
    }
}

fn holds(values: &[Value], folded: &str) -> bool {
    values.iter().any(|value| fold_words(value).as_deref() == Some(folded))
}

impl From<RelatedField> for NoteRole {
    fn from(field: RelatedField) -> Self {
        match field {
            RelatedField::RelatedOrgs => Self::RelatedOrgs,
            RelatedField::RelatedProjects => Self::RelatedProjects,
            RelatedField::RelatedTo => Self::RelatedTo,
        }
    }
}

#[cfg(test)]
mod tests;

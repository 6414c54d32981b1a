//! Matters, tasks and instincts, read from the frontmatter of their records.
//!
//! Unknown fields are ignored and stay in the file. A malformed known field is an error that names the field. It must
//! never be guessed. All malformed fields are reported at once. The caller adds the file's path to the message.

mod faults;

pub use faults::RecordFaults;

use crate::gates::mode::Ceiling;
use crate::record::frontmatter::read_own_fields;
use crate::record::path::{PathError, RecordKind, RecordPath, parse_link, strip_link};
use crate::signals::signal::source_key;
use crate::time;
use crate::trust::confidence::ConfidenceStatus;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

type Fields = Map<String, Value>;

/// Why a record's frontmatter is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RecordError {
    #[error("`type` is `{found}` but the record is in {folder}/: set `type: {folder}` or move the file")]
    WrongType { found: String, folder: &'static str },
    #[error("`{field}` is missing: add it")]
    Missing { field: &'static str },
    #[error("`{field}` is `{found}`, expected {expected}")]
    Value { field: &'static str, found: String, expected: &'static str },
    #[error("`{field}`: {source}")]
    Link { field: &'static str, source: PathError },
}

impl RecordError {
    /// The field under its fixed name.
    #[must_use]
    pub fn field(&self) -> &'static str {
        match self {
            Self::WrongType { .. } => "type",
            Self::Missing { field } | Self::Value { field, .. } | Self::Link { field, .. } => field,
        }
    }
}

/// The state of a task or a matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RecordState {
    Open,
    Done,
    Archived,
}

impl RecordState {
    /// Parses a state in any case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.trim().to_ascii_lowercase().parse().ok()
    }

    /// The spelling in a record.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// How prominently a task is shown, and so how often it is checked.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SurfaceClass {
    Low,
    #[default]
    Normal,
    High,
}

impl SurfaceClass {
    /// The spelling in a record.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Something that the principal looks after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matter {
    pub name: String,
    pub state: RecordState,
    /// The ceiling that a human set in `steward_ceiling`.
    pub ceiling: Ceiling,
}

/// A piece of work under a matter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub name: String,
    /// The field `id`, for people who number their tasks. Two tasks must not share one.
    pub id: Option<String>,
    pub state: RecordState,
    /// The path that the link to the matter spells.
    pub parent_matter: RecordPath,
    /// The link to the matter, as it is written.
    pub parent_link: String,
    pub surface_class: SurfaceClass,
    pub due: Option<DateTime<Utc>>,
    pub snoozed_until: Option<DateTime<Utc>>,
    /// The date in the file. A malformed one counts as missing, which means due.
    pub next_check_after: Option<DateTime<Utc>>,
    pub plane_issue_id: Option<String>,
}

/// The effect of a signal on its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalEffect {
    /// It would change the record.
    Mutation,
    /// It asks the principal to do something.
    Action,
    /// It changes nothing.
    None,
}

/// The facts that are known about a source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Instinct {
    /// The source's name, or `None` if the file's name is the source's name.
    pub source: Option<String>,
    /// How often the source was right, confirmed by an outcome. It is 0 while the source is pruned.
    pub observations: u32,
    /// The ceiling that a human set.
    pub ceiling: Option<Ceiling>,
    /// The confidence from which the source's average starts, 0 to 1. `None` if no human wrote one.
    pub start: Option<f64>,
}

impl Matter {
    /// Reads a matter's frontmatter.
    ///
    /// # Errors
    /// [`RecordFaults`] naming each field.
    pub fn read(fields: &Fields) -> Result<Self, RecordFaults> {
        let mut faults = RecordFaults::default();
        faults.check_field(check_type(fields, RecordKind::Matter));
        let name = faults.check_field(read_text(fields, "name"));
        let state = faults.check_field(read_state(fields));
        let ceiling = read_ceiling(fields, "steward_ceiling").unwrap_or_default();
        let matter = || Some(Self { name: name?.unwrap_or_default(), state: state?, ceiling });
        faults.finish_record(matter())
    }
}

impl Task {
    /// Reads a task's frontmatter.
    ///
    /// # Errors
    /// [`RecordFaults`] naming each field.
    pub fn read(fields: &Fields) -> Result<Self, RecordFaults> {
        let mut faults = RecordFaults::default();
        faults.check_field(check_type(fields, RecordKind::Task));
        let name = faults.check_field(read_text(fields, "name"));
        let id = faults.check_field(read_text(fields, "id"));
        let state = faults.check_field(read_state(fields));
        let parent = faults.check_field(read_parent(fields));
        let surface_class = faults.check_field(read_surface_class(fields));
        let due = faults.check_field(read_instant(fields, "due"));
        let snoozed_until = faults.check_field(read_instant(fields, "snoozed_until"));
        let plane_issue_id = faults.check_field(read_text(fields, "plane_issue_id"));
        let task = || {
            let ParentLink { path, link } = parent?;
            Some(Self {
                name: name?.unwrap_or_default(),
                id: id?,
                state: state?,
                parent_matter: path,
                parent_link: link,
                surface_class: surface_class?,
                due: due?,
                snoozed_until: snoozed_until?,
                next_check_after: read_text(fields, "next_check_after").ok().flatten().and_then(|t| time::parse(&t)),
                plane_issue_id: plane_issue_id?,
            })
        };
        faults.finish_record(task())
    }
}

impl Instinct {
    /// The key of the source of a file with this name, without `.md`. A file without `source` counts for its own name,
    /// because a person chose that name.
    #[must_use]
    pub fn source_key(&self, file_stem: &str) -> String {
        self.source.as_deref().map_or_else(|| file_stem.trim().to_lowercase(), source_key)
    }

    /// The field with the number of observations that Steward counted. Without a valid number there, a human wrote
    /// all numbers of the instinct.
    pub const COUNTED: &str = "counted";
    /// The field with the human's confidence. It is kept when Steward starts to write `confidence`.
    pub const START: &str = "initial_confidence";

    /// Reads an instinct's frontmatter. A malformed count is 0.
    #[must_use]
    pub fn read(fields: &Fields) -> Self {
        let fields = &read_own_fields(fields);
        let pruned = read_text(fields, "status")
            .ok()
            .flatten()
            .is_some_and(|status| status == ConfidenceStatus::Pruned.as_str());
        let observations = if pruned { None } else { fields.get("observations").and_then(Value::as_u64) }.unwrap_or(0);
        let source = read_text(fields, "source").ok().flatten().filter(|source| !source.trim().is_empty());
        let share = |field| fields.get(field).and_then(Value::as_f64).filter(|share| (0.0..=1.0).contains(share));
        let is_counted = fields.get(Self::COUNTED).and_then(Value::as_u64).is_some();
        let by_hand = if is_counted { None } else { share("confidence") };
        Self {
            source,
            observations: u32::try_from(observations).unwrap_or(u32::MAX),
            ceiling: read_ceiling(fields, "ceiling"),
            start: by_hand.or_else(|| share(Self::START)),
        }
    }
}

pub(crate) fn check_type(fields: &Fields, kind: RecordKind) -> Result<(), RecordError> {
    let folder = kind.folder();
    match read_text(fields, "type")? {
        None => Err(RecordError::Missing { field: "type" }),
        Some(found) if found == folder => Ok(()),
        Some(found) => Err(RecordError::WrongType { found: escape_value(&found), folder }),
    }
}

/// The link of a task to its matter, and the path that it spells.
struct ParentLink {
    path: RecordPath,
    link: String,
}

fn read_parent(fields: &Fields) -> Result<ParentLink, RecordError> {
    let field = "parent_matter";
    let link = require_text(fields, field)?;
    let path = spell_matter(&link).map_err(|source| RecordError::Link { field, source })?;
    Ok(ParentLink { path, link })
}

/// The path that a link to a matter spells. A relative link spells it by its last part, until the note is found.
fn spell_matter(link: &str) -> Result<RecordPath, PathError> {
    let name = strip_link(link);
    let last = name.rsplit('/').next().unwrap_or(name);
    let inside = name.strip_prefix("../").unwrap_or(name);
    // A task lies in a folder of the root, so a second `..` leaves the vault.
    let is_relative = (name.starts_with("./") || name.starts_with("../")) && !inside.contains("../");
    parse_link(RecordKind::Matter, if is_relative { last } else { link })
}

fn read_state(fields: &Fields) -> Result<RecordState, RecordError> {
    let Some(found) = read_text(fields, "state")? else {
        return Ok(RecordState::Open);
    };
    RecordState::parse(&found).ok_or_else(|| invalid_value("state", &found, "`open`, `done` or `archived`"))
}

fn read_surface_class(fields: &Fields) -> Result<SurfaceClass, RecordError> {
    match read_text(fields, "surface_class")?.as_deref().map(str::trim) {
        None | Some("normal") => Ok(SurfaceClass::Normal),
        Some("low") => Ok(SurfaceClass::Low),
        Some("high") => Ok(SurfaceClass::High),
        Some(other) => Err(invalid_value("surface_class", other, "`low`, `normal` or `high`")),
    }
}

pub(crate) fn read_effect(fields: &Fields) -> Result<SignalEffect, RecordError> {
    match require_text(fields, "effect")?.as_str() {
        "mutation" => Ok(SignalEffect::Mutation),
        "action" => Ok(SignalEffect::Action),
        "none" => Ok(SignalEffect::None),
        other => Err(invalid_value("effect", other, "`mutation`, `action` or `none`")),
    }
}

/// The ceiling that a human set. A value that is not text counts as malformed, which means `ask`.
fn read_ceiling(fields: &Fields, field: &str) -> Option<Ceiling> {
    let value = fields.get(field)?;
    Some(value.as_str().map_or(Ceiling::Ask, Ceiling::parse_or_ask))
}

pub(crate) fn require_text(fields: &Fields, field: &'static str) -> Result<String, RecordError> {
    read_text(fields, field)?.ok_or(RecordError::Missing { field })
}

pub(crate) fn read_text(fields: &Fields, field: &'static str) -> Result<Option<String>, RecordError> {
    match fields.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(t)) => Ok(Some(t.clone())),
        Some(Value::Number(n)) => Ok(Some(n.to_string())),
        Some(other @ (Value::Bool(_) | Value::Array(_) | Value::Object(_))) => {
            Err(invalid_value(field, &other.to_string(), "text"))
        }
    }
}

pub(crate) fn read_instant(fields: &Fields, field: &'static str) -> Result<Option<DateTime<Utc>>, RecordError> {
    let Some(found) = read_text(fields, field)? else {
        return Ok(None);
    };
    match time::parse(&found) {
        Some(at) => Ok(Some(at)),
        None => Err(invalid_value(field, &found, "a time such as 2026-11-21T09:30:00Z")),
    }
}

pub(crate) fn read_confidence(fields: &Fields, field: &'static str) -> Result<f64, RecordError> {
    let found = fields.get(field).ok_or(RecordError::Missing { field })?;
    found
        .as_f64()
        .filter(|x| (0.0..=1.0).contains(x))
        .ok_or_else(|| invalid_value(field, &found.to_string(), "a number from 0 to 1"))
}

pub(crate) fn invalid_value(field: &'static str, found: &str, expected: &'static str) -> RecordError {
    RecordError::Value { field, found: escape_value(found), expected }
}

/// A value for a message: short, on one line, without control characters.
pub(crate) fn escape_value(text: &str) -> String {
    text.chars().take(60).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests;

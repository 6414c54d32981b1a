//! The kinds of change there are, and nothing else.
//!
//! A signal may propose one ([`Mutation::read`]); whatever does not fit this closed form is no
//! proposal, whoever wrote it. A mutation names one field of an allow-list and a value of the
//! right type; which record it changes is the target, and never part of it. Plans are made from
//! mutations in [`mod@crate::steward::decide`] and [`crate::action::undo`] alone.

use crate::record::entity::RecordState;
use crate::record::frontmatter;
use crate::record::path::{RecordKind, RecordPath, parse_link};
use crate::record::plain_text;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Longest text that a `context_edit` may write, in characters.
pub const MAX_TEXT_CHARS: usize = 500;
/// Longest member of a `related_*` field, in characters.
pub const MAX_MEMBER_CHARS: usize = 120;

/// The classes of change; nothing else can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MutationClass {
    StateChange,
    ContextEdit,
    ParentMatter,
    Related,
}

impl MutationClass {
    /// Every class, in the order of the contract.
    pub const ALL: [Self; 4] = [Self::StateChange, Self::ContextEdit, Self::ParentMatter, Self::Related];

    /// The word used in records, schemas and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StateChange => "state_change",
            Self::ContextEdit => "context_edit",
            Self::ParentMatter => "parent_matter",
            Self::Related => "related",
        }
    }
}

/// Fields of a matter that say what it is about, and nothing of its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextField {
    Summary,
    Description,
    Owner,
}

impl ContextField {
    /// Every field, in the order of the schema.
    pub const ALL: [Self; 3] = [Self::Summary, Self::Description, Self::Owner];

    /// The field's name in the frontmatter.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Description => "description",
            Self::Owner => "owner",
        }
    }
}

/// Fields that hold a set of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RelatedField {
    RelatedOrgs,
    RelatedProjects,
    RelatedTo,
}

impl RelatedField {
    /// Every field, in the order of the schema.
    pub const ALL: [Self; 3] = [Self::RelatedOrgs, Self::RelatedProjects, Self::RelatedTo];

    /// The field's name in the frontmatter.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RelatedOrgs => "related_orgs",
            Self::RelatedProjects => "related_projects",
            Self::RelatedTo => "related_to",
        }
    }
}

/// One change of one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "class", rename_all = "snake_case")]
pub enum Mutation {
    /// `state` of a task or matter.
    StateChange { to: RecordState },
    /// A text of a matter.
    ContextEdit { field: ContextField, to: String },
    /// A task moves under another matter.
    ParentMatter { to: RecordPath },
    /// One member enters or leaves a set of links.
    Related { field: RelatedField, member: String, present: bool },
}

/// Why a proposal is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MutationError {
    #[error("`class` is none of `state_change`, `context_edit`, `parent_matter`, `related`")]
    Class,
    #[error("it names not exactly one field that `{0}` may change")]
    Field(&'static str),
    #[error("the value of `{0}` is not one that may be written")]
    Value(&'static str),
    #[error("the value of `{field}` holds U+{code:04X}, which some readers take for a line break: write it without")]
    LineSeparator { field: String, code: u32 },
    #[error(
        "the member of `{0}` names nothing, or not the same when it is read again: write a plain name or `[[name]]`"
    )]
    Member(&'static str),
}

impl Mutation {
    /// The class it belongs to.
    #[must_use]
    pub fn class(&self) -> MutationClass {
        match self {
            Self::StateChange { .. } => MutationClass::StateChange,
            Self::ContextEdit { .. } => MutationClass::ContextEdit,
            Self::ParentMatter { .. } => MutationClass::ParentMatter,
            Self::Related { .. } => MutationClass::Related,
        }
    }

    /// The one field it changes.
    #[must_use]
    pub fn field(&self) -> &'static str {
        match self {
            Self::StateChange { .. } => "state",
            Self::ContextEdit { field, .. } => field.as_str(),
            Self::ParentMatter { .. } => "parent_matter",
            Self::Related { field, .. } => field.as_str(),
        }
    }

    /// The matter that a task would move to.
    #[must_use]
    pub fn new_parent(&self) -> Option<&RecordPath> {
        match self {
            Self::ParentMatter { to } => Some(to),
            Self::StateChange { .. } | Self::ContextEdit { .. } | Self::Related { .. } => None,
        }
    }

    /// Every field that any change may write, of tasks or matters.
    #[must_use]
    pub fn writable_fields() -> Vec<&'static str> {
        let context = ContextField::ALL.map(ContextField::as_str);
        [["state", "parent_matter"].as_slice(), &context, &RelatedField::ALL.map(RelatedField::as_str)].concat()
    }

    /// Whether a record of this kind has such a field.
    #[must_use]
    pub fn is_applicable_to(&self, kind: RecordKind) -> bool {
        match self {
            Self::StateChange { .. } | Self::Related { .. } => matches!(kind, RecordKind::Task | RecordKind::Matter),
            Self::ContextEdit { .. } => kind == RecordKind::Matter,
            Self::ParentMatter { .. } => kind == RecordKind::Task,
        }
    }

    /// Whether it is one that [`Mutation::read`] could have given; for one that comes from a file.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        Self::from_proposal(&self.to_proposal()).as_ref() == Ok(self)
    }

    /// Reads a signal's `mutation_proposal`: `{class, set: {field: value}}`, and for `related`
    /// `{class, add: {field: member}}` or `{class, remove: {field: member}}`.
    ///
    /// # Errors
    /// [`MutationError`] for anything outside that form; what else the mapping holds is ignored.
    pub fn from_proposal(proposal: &Value) -> Result<Self, MutationError> {
        let class = proposal.get("class").and_then(Value::as_str);
        let class = MutationClass::ALL.into_iter().find(|c| Some(c.as_str()) == class).ok_or(MutationError::Class)?;
        match class {
            MutationClass::StateChange => {
                let value = read_single_field(proposal, "set", class, &["state"])?.1;
                RecordState::parse(value).map(|to| Self::StateChange { to }).ok_or(MutationError::Value("state"))
            }
            MutationClass::ContextEdit => {
                let (name, value) =
                    read_single_field(proposal, "set", class, &ContextField::ALL.map(ContextField::as_str))?;
                let field = ContextField::ALL.into_iter().find(|f| f.as_str() == name);
                let field = field.ok_or(MutationError::Field(class.as_str()))?;
                Ok(Self::ContextEdit { field, to: check_text(value, MAX_TEXT_CHARS, field.as_str())? })
            }
            MutationClass::ParentMatter => {
                let value = read_single_field(proposal, "set", class, &["parent_matter"])?.1;
                let to = parse_link(RecordKind::Matter, value).map_err(|_| MutationError::Value("parent_matter"))?;
                Ok(Self::ParentMatter { to })
            }
            MutationClass::Related => {
                let present = proposal.get("add").is_some_and(|v| !v.is_null());
                if present == proposal.get("remove").is_some_and(|v| !v.is_null()) {
                    return Err(MutationError::Field(class.as_str()));
                }
                let key = if present { "add" } else { "remove" };
                let (name, value) =
                    read_single_field(proposal, key, class, &RelatedField::ALL.map(RelatedField::as_str))?;
                let field = RelatedField::ALL.into_iter().find(|f| f.as_str() == name);
                let field = field.ok_or(MutationError::Field(class.as_str()))?;
                let member = check_text(value, MAX_MEMBER_CHARS, field.as_str())?;
                if !is_record_name(&member) {
                    return Err(MutationError::Member(field.as_str()));
                }
                Ok(Self::Related { field, member, present })
            }
        }
    }

    /// The same change of the same field with another value, as a person writes it.
    ///
    /// # Errors
    /// [`MutationError::Value`] where that is none that may be written.
    pub fn with_value(&self, text: &str) -> Result<Self, MutationError> {
        let part = match self {
            Self::StateChange { .. } | Self::ContextEdit { .. } | Self::ParentMatter { .. } => "set",
            Self::Related { present: true, .. } => "add",
            Self::Related { present: false, .. } => "remove",
        };
        Self::from_proposal(&json!({"class": self.class().as_str(), part: {self.field(): text}}))
    }

    /// Whether the other one changes the same field in the same way, to whatever value.
    #[must_use]
    pub fn is_same_kind_as(&self, other: &Self) -> bool {
        let enters = |mutation: &Self| match mutation {
            Self::Related { present, .. } => *present,
            Self::StateChange { .. } | Self::ContextEdit { .. } | Self::ParentMatter { .. } => true,
        };
        self.class() == other.class() && self.field() == other.field() && enters(self) == enters(other)
    }

    /// The `mutation_proposal` that reads back as this.
    #[must_use]
    pub fn to_proposal(&self) -> Value {
        let class = self.class().as_str();
        match self {
            Self::StateChange { to } => json!({"class": class, "set": {"state": to.as_str()}}),
            Self::ContextEdit { field, to } => json!({"class": class, "set": {field.as_str(): to}}),
            Self::ParentMatter { to } => json!({"class": class, "set": {"parent_matter": format_link(to)}}),
            Self::Related { field, member, present: true } => json!({"class": class, "add": {field.as_str(): member}}),
            Self::Related { field, member, present: false } => {
                json!({"class": class, "remove": {field.as_str(): member}})
            }
        }
    }
}

/// The new link in the way the old one was written: with brackets, folder and ending, or without.
#[must_use]
pub fn format_link_like(old: Option<&str>, to: &RecordPath) -> String {
    let Some(old) = old.map(str::trim).filter(|old| !old.is_empty()) else {
        return format_link(to);
    };
    let inner = old.strip_prefix("[[").and_then(|t| t.strip_suffix("]]"));
    let name = inner.unwrap_or(old).split(['|', '#']).next().unwrap_or_default().trim();
    let folder = if name.contains('/') { format!("{}/", to.kind().folder()) } else { String::new() };
    let ending = if name.ends_with(".md") { ".md" } else { "" };
    let written = format!("{folder}{}{ending}", to.slug());
    if inner.is_some() { format!("[[{written}]]") } else { written }
}

/// How a link to a record is written where there was none before.
#[must_use]
pub fn format_link(to: &RecordPath) -> String {
    format!("[[{}]]", to.as_str().strip_suffix(".md").unwrap_or(to.as_str()))
}

/// The one field that a part of the proposal names, and its text.
fn read_single_field<'a>(
    proposal: &'a Value,
    part: &str,
    class: MutationClass,
    allowed: &[&str],
) -> Result<(&'a str, &'a str), MutationError> {
    let fields = proposal.get(part).and_then(Value::as_object).ok_or(MutationError::Field(class.as_str()))?;
    let mut named = fields.iter();
    match (named.next(), named.next()) {
        (Some((name, value)), None) if allowed.contains(&name.as_str()) => {
            let text = value.as_str().ok_or(MutationError::Field(class.as_str()))?;
            match text.chars().find(|c| plain_text::LINE_SEPARATORS.contains(c)) {
                Some(c) => Err(MutationError::LineSeparator { field: name.clone(), code: c.into() }),
                None => Ok((name.as_str(), text)),
            }
        }
        _ => Err(MutationError::Field(class.as_str())),
    }
}

/// A text that may stand in a field: one line, nothing hidden in it, not empty, not too long.
fn check_text(text: &str, limit: usize, field: &'static str) -> Result<String, MutationError> {
    let line = text.trim();
    let fine = !line.is_empty() && line.chars().count() <= limit && plain_text::to_one_line(line) == line;
    if fine { Ok(line.to_owned()) } else { Err(MutationError::Value(field)) }
}

/// Whether a member names something, and the same once its brackets, title and ending are gone: by that name an undo
/// finds it again.
fn is_record_name(member: &str) -> bool {
    let name = frontmatter::strip_link_markup(member);
    // A link to a heading of no record.
    let shown = if member.starts_with("[[") { name.split(['#', '^']).next().unwrap_or_default() } else { name };
    frontmatter::strip_link_markup(name) == name
        && shown.chars().any(|c| !c.is_whitespace() && !plain_text::is_invisible(c))
}

#[cfg(test)]
mod tests;

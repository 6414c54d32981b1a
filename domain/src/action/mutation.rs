//! Mutations: the closed list of changes that Steward can make.
//!
//! A signal may propose one ([`Mutation::from_proposal`]). A proposal outside the closed form is invalid, no matter who
//! wrote it. A mutation names one field of an allow-list and a value of the right type. It must not name the record:
//! that is the target. Only [`mod@crate::steward::decide`], [`mod@crate::signals::route`] and [`crate::action::undo`]
//! make plans from mutations.

use crate::record::entity::RecordState;
use crate::record::frontmatter;
use crate::record::moves::NoteFinder;
use crate::record::path::{RecordKind, RecordPath, parse_link};
use crate::record::plain_text;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The longest text that a `context_edit` may write, in characters.
pub const MAX_TEXT_CHARS: usize = 500;
/// The longest member of a `related_*` field, in characters.
pub const MAX_MEMBER_CHARS: usize = 120;

/// The classes of change. Nothing else can be written.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum MutationClass {
    StateChange,
    ContextEdit,
    ParentMatter,
    Related,
}

impl MutationClass {
    /// Every class, in the order of the contract.
    pub const ALL: [Self; 4] = [Self::StateChange, Self::ContextEdit, Self::ParentMatter, Self::Related];

    /// The spelling in records, schemas and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The fields that describe a matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
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
        self.into()
    }
}

/// The fields that hold a set of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
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
        self.into()
    }
}

/// One change of one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "class", rename_all = "snake_case")]
pub enum Mutation {
    /// Sets the `state` of a task or matter.
    StateChange { to: RecordState },
    /// Sets a descriptive text of a matter.
    ContextEdit { field: ContextField, to: String },
    /// Moves a task to another matter.
    ParentMatter { to: RecordPath },
    /// Adds one member to a set of links, or removes it.
    Related { field: RelatedField, member: String, present: bool },
}

/// Why a proposal is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MutationError {
    #[error("`class` is not `state_change`, `context_edit`, `parent_matter` or `related`")]
    Class,
    #[error("it must name exactly one field that `{0}` may change")]
    Field(&'static str),
    #[error("the value of `{0}` is not valid{choices}", choices = if *.0 == "state" { ": use open, done or archived" } else { "" })]
    Value(&'static str),
    #[error("the value of `{field}` holds U+{code:04X}, which some YAML parsers read as a line break: remove it")]
    LineSeparator { field: String, code: u32 },
    #[error("the member of `{0}` has no name, or another name when it is read again: write a plain name or `[[name]]`")]
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

    /// Whether [`Mutation::from_proposal`] could have made it. This checks a mutation that comes from a file.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        Self::from_proposal(&self.to_proposal()).as_ref() == Ok(self)
    }

    /// Reads a signal's `mutation_proposal`.
    ///
    /// The form is `{class, set: {field: value}}`, and for `related` `{class, add: {field: member}}` or
    /// `{class, remove: {field: member}}`. Other keys of the mapping are ignored.
    ///
    /// # Errors
    /// [`MutationError`] for anything outside that form.
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
                let field: ContextField = name.parse().map_err(|_| MutationError::Field(class.as_str()))?;
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
                let field: RelatedField = name.parse().map_err(|_| MutationError::Field(class.as_str()))?;
                let member = check_text(value, MAX_MEMBER_CHARS, field.as_str())?;
                if !is_record_name(&member) {
                    return Err(MutationError::Member(field.as_str()));
                }
                Ok(Self::Related { field, member, present })
            }
        }
    }

    /// The same change of the same field with another value, as a person types it.
    ///
    /// # Errors
    /// [`MutationError`] if the value is not valid for the field.
    pub fn with_value(&self, text: &str) -> Result<Self, MutationError> {
        let part = match self {
            Self::StateChange { .. } | Self::ContextEdit { .. } | Self::ParentMatter { .. } => "set",
            Self::Related { present: true, .. } => "add",
            Self::Related { present: false, .. } => "remove",
        };
        Self::from_proposal(&json!({"class": self.class().as_str(), part: {self.field(): text}}))
    }

    /// Whether the other one changes the same field in the same way. The values may differ.
    #[must_use]
    pub fn is_same_kind_as(&self, other: &Self) -> bool {
        let adds = |mutation: &Self| match mutation {
            Self::Related { present, .. } => *present,
            Self::StateChange { .. } | Self::ContextEdit { .. } | Self::ParentMatter { .. } => true,
        };
        self.class() == other.class() && self.field() == other.field() && adds(self) == adds(other)
    }

    /// Finds the matter that the mutation names. A name that fits no single note stays the path that it spells.
    #[must_use]
    pub fn resolve_links(mut self, notes: NoteFinder<'_>) -> Self {
        if let Self::ParentMatter { to } = &mut self
            && let Some(found) = notes.find_spelled(RecordKind::Matter, to)
        {
            *to = found;
        }
        self
    }

    /// The `mutation_proposal` that reads back as this.
    #[must_use]
    pub fn to_proposal(&self) -> Value {
        let class = self.class().as_str();
        match self {
            Self::StateChange { to } => json!({"class": class, "set": {"state": to.as_str()}}),
            Self::ContextEdit { field, to } => json!({"class": class, "set": {field.as_str(): to}}),
            Self::ParentMatter { to } => json!({"class": class, "set": {"parent_matter": to}}),
            Self::Related { field, member, present: true } => json!({"class": class, "add": {field.as_str(): member}}),
            Self::Related { field, member, present: false } => {
                json!({"class": class, "remove": {field.as_str(): member}})
            }
        }
    }
}

/// Formats a new link like the old one: with or without brackets, folder and extension.
#[must_use]
pub fn format_link_like(old: Option<&str>, to: &RecordPath) -> String {
    let Some(old) = old.map(str::trim).filter(|old| !old.is_empty()) else {
        return format_link(to);
    };
    let inner = old.strip_prefix("[[").and_then(|t| t.strip_suffix("]]"));
    let name = inner.unwrap_or(old).split(['|', '#']).next().unwrap_or_default().trim();
    let folder = if name.contains('/') { format!("{}/", to.split_folder().0) } else { String::new() };
    let ending = if name.ends_with(".md") { ".md" } else { "" };
    let written = format!("{folder}{}{ending}", to.slug());
    keep_if_read_back(if inner.is_some() { format!("[[{written}]]") } else { written }, to)
}

/// Formats a link to a record for a field that had none before.
#[must_use]
pub fn format_link(to: &RecordPath) -> String {
    keep_if_read_back(format!("[[{}]]", to.as_str().strip_suffix(".md").unwrap_or(to.as_str())), to)
}

/// The link, if it names the record when it is read again. A name may hold `#` or `|`, which end a link; the plain path
/// names such a record.
fn keep_if_read_back(link: String, to: &RecordPath) -> String {
    if parse_link(RecordKind::Matter, &link).as_ref() == Ok(to) { link } else { to.to_string() }
}

/// The name and the text of the one field in a part of the proposal.
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

/// Checks a text for a field: one line without hidden characters, not empty, not too long.
fn check_text(text: &str, limit: usize, field: &'static str) -> Result<String, MutationError> {
    let line = text.trim();
    let is_valid = !line.is_empty() && line.chars().count() <= limit && plain_text::to_one_line(line) == line;
    if is_valid { Ok(line.to_owned()) } else { Err(MutationError::Value(field)) }
}

/// Whether a member has a name that stays the same without its brackets, title and extension.
///
/// An undo finds the member by that name.
fn is_record_name(member: &str) -> bool {
    let name = frontmatter::strip_link_markup(member);
    // A link of which only a heading is left names no record.
    let shown = if member.starts_with("[[") { name.split(['#', '^']).next().unwrap_or_default() } else { name };
    frontmatter::strip_link_markup(name) == name
        && shown.chars().any(|c| !c.is_whitespace() && !plain_text::is_invisible(c))
}

#[cfg(test)]
mod tests;

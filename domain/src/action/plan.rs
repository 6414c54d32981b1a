//! A plan: the exact change of one record, the content that it is based on, and its disposition.
//!
//! Only [`crate::steward::decide::decide`], [`mod@crate::signals::route`] and a human's resolution
//! ([`crate::action::undo`]) may make a [`Plan`]. Its fields are private to this crate, so that no other crate can make
//! one. A plan must not hold free text that could name a file or a field: both come from closed types. The vault's
//! `apply_plan` is the only place that applies a plan. [`Plan::prepare`] gives it the bytes to write.

use crate::action::audit::{AuditDraft, FieldPatch};
use crate::action::mutation::{Mutation, RelatedField, format_link_like};
use crate::record::frontmatter::{self, EditedDocument, FieldEdit, FrontmatterError, RecordFields, SetHistoryStep};
use crate::record::path::RecordPath;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt;

/// The most bytes of a field's lines that an audit record keeps for an undo: 16 KiB. This is a quarter of what the
/// frontmatter of the record itself may have.
pub const MAX_UNDO_BYTES: usize = 16 * 1024;

/// The SHA-256 hash of a whole file, in hex.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentHash(String);

impl ContentHash {
    /// The hash of these bytes.
    #[must_use]
    pub fn hash_bytes(bytes: &[u8]) -> Self {
        Self(encode_hex(&Sha256::digest(bytes)))
    }

    /// 64 hex digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The predecessor that the first record of a chain names: 64 zeros.
    #[must_use]
    pub fn genesis() -> Self {
        Self("0".repeat(64))
    }
}

/// The id of one action: 16 hex digits. It is the same however often the action is tried.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ActionId(String);

impl ActionId {
    /// Derives an id from the parts that make the action unique.
    #[must_use]
    pub fn derive(parts: &[&str]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        Self(encode_hex(&hasher.finalize()[..8]))
    }

    /// The 16 hex digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The text is not the id of an action.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an action id is 16 hex digits")]
pub struct ActionIdError;

impl TryFrom<String> for ActionId {
    type Error = ActionIdError;

    fn try_from(text: String) -> Result<Self, ActionIdError> {
        let hex_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if text.len() == 16 && text.bytes().all(hex_digit) { Ok(Self(text)) } else { Err(ActionIdError) }
    }
}

impl From<ActionId> for String {
    fn from(id: ActionId) -> Self {
        id.0
    }
}

impl fmt::Display for ActionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a decision ends, ordered from least to most.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Disposition {
    /// The decision changes nothing. It is only recorded.
    Recorded,
    /// The decision would change the record. It only records what it would change.
    Shadow,
    /// The change waits for a human's confirmation.
    Pending,
    /// The record is changed.
    Live,
}

impl Disposition {
    /// The name used in records and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What a change is based on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PlanBasis {
    /// The whole content that was judged, for a steward's own change.
    Content(ContentHash),
    /// Only the values of the fields, for a human's resolution. It is merged field by field.
    Fields,
}

/// The exact edit of the fields. Applying it needs no further decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PlannedChange {
    /// Nothing is changed. The decision is only recorded.
    Nothing,
    /// Sets one field. It must have the value `expect` now; `None` means absent.
    Set { field: String, expect: Option<Value>, value: Value },
    /// Adds one member to a set, or removes it.
    Member { field: String, member: String, present: bool },
    /// Reverts an earlier change field by field. For a set it also holds the known history of the set.
    Restore { number: u64, patches: Vec<FieldPatch>, life: Vec<SetHistoryStep> },
}

impl PlannedChange {
    /// The edit that a mutation makes to a field with the value `now`. `None` means absent.
    pub(crate) fn from_mutation(mutation: &Mutation, now: Option<&Value>) -> Self {
        let now = now.filter(|v| !v.is_null());
        let value = match mutation {
            Mutation::StateChange { to } => to.as_str().to_owned(),
            Mutation::ContextEdit { to, .. } => to.clone(),
            Mutation::ParentMatter { to } => format_link_like(now.and_then(Value::as_str), to),
            Mutation::Related { field, member, present } => {
                return Self::Member { field: field.as_str().to_owned(), member: member.clone(), present: *present };
            }
        };
        Self::Set { field: mutation.field().to_owned(), expect: now.cloned(), value: Value::from(value) }
    }
}

/// A change that may be applied, and the audit record for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub(crate) draft: AuditDraft,
    pub(crate) basis: PlanBasis,
    pub(crate) change: PlannedChange,
}

/// The bytes to write, and what an undo of them needs.
#[derive(Clone, Debug, PartialEq)]
pub struct PreparedChange {
    pub before: ContentHash,
    pub after: Vec<u8>,
    pub patch: Vec<FieldPatch>,
}

/// Why a plan cannot be applied to the current record. Nothing has been changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PreparePlanError {
    #[error("the record was changed meanwhile")]
    ChangedMeanwhile,
    #[error("edited by a human since: {}", .0.join(", "))]
    Conflict(Vec<String>),
    #[error("the lines of `{field}` have {bytes} bytes, too many to keep for an undo: shorten its comment or text")]
    TooLong { field: String, bytes: usize },
    #[error(transparent)]
    Frontmatter(#[from] FrontmatterError),
}

impl Plan {
    /// The id of the action. It is the same for every try.
    #[must_use]
    pub fn id(&self) -> &ActionId {
        &self.draft.id
    }

    /// Moves the moment after which the audit record is named on by one millisecond, because another record has the
    /// name. A resolution is named after the resolved action, so its moment stays.
    pub fn take_next_moment(&mut self) {
        self.draft.timestamp += TimeDelta::milliseconds(1);
    }

    /// The record that the plan is about.
    #[must_use]
    pub fn target(&self) -> &RecordPath {
        &self.draft.target
    }

    /// The draft of the audit record.
    #[must_use]
    pub fn draft(&self) -> &AuditDraft {
        &self.draft
    }

    /// The disposition. The gates may lower it when the plan is applied. Nothing raises it.
    #[must_use]
    pub fn disposition(&self) -> Disposition {
        self.draft.disposition
    }

    /// When the plan was decided.
    #[must_use]
    pub fn decided_at(&self) -> DateTime<Utc> {
        self.draft.timestamp
    }

    /// Whether applying the plan would write the target's file.
    #[must_use]
    pub fn has_record_change(&self) -> bool {
        self.draft.disposition == Disposition::Live && self.change != PlannedChange::Nothing
    }

    /// Whether the plan is based on this content of the record. A human's resolution fits any content.
    #[must_use]
    pub fn is_based_on(&self, current: &ContentHash) -> bool {
        !matches!(&self.basis, PlanBasis::Content(judged) if judged != current)
    }

    /// Computes the bytes to write over the current record.
    ///
    /// # Errors
    /// [`PreparePlanError::ChangedMeanwhile`] if the content is not the one that a steward's change was judged on.
    /// [`PreparePlanError::Conflict`] if a human edited a field since. [`PreparePlanError::TooLong`] if the lines of a
    /// field are too long to keep for an undo. [`PreparePlanError::Frontmatter`] if the record cannot be read or
    /// edited.
    pub fn prepare(&self, current: &[u8]) -> Result<PreparedChange, PreparePlanError> {
        let before = ContentHash::hash_bytes(current);
        if !self.is_based_on(&before) {
            return Err(PreparePlanError::ChangedMeanwhile);
        }
        let document = frontmatter::read_document(current)?;
        let (after, patch) = match &self.change {
            PlannedChange::Nothing => (current.to_vec(), Vec::new()),
            PlannedChange::Set { field, expect, value } => {
                let now = document.fields().get(field);
                if now == Some(value) {
                    (current.to_vec(), Vec::new())
                } else if is_same_value(now, expect.as_ref()) {
                    let edit = FieldEdit { field: field.clone(), value: Some(value.clone()) };
                    prepare_edit(document.fields(), frontmatter::edit_fields_with_undo(current, &[edit])?)?
                } else {
                    return Err(PreparePlanError::Conflict(vec![field.clone()]));
                }
            }
            PlannedChange::Member { field, member, present } => {
                prepare_edit(document.fields(), frontmatter::edit_member(current, field, member, *present)?)?
            }
            PlannedChange::Restore { number, patches, life } => {
                restore_fields(current, document.fields(), patches, *number, life)?
            }
        };
        Ok(PreparedChange { before, after, patch })
    }
}

/// The new bytes, and what an undo of them needs.
fn prepare_edit(before: &RecordFields, edited: EditedDocument) -> Result<(Vec<u8>, Vec<FieldPatch>), PreparePlanError> {
    let after = frontmatter::read_document(&edited.bytes)?;
    let mut patch = Vec::with_capacity(edited.undo.len());
    for undo in edited.undo {
        let bytes = undo.lines_before.len() + undo.lines_after.len();
        if bytes > MAX_UNDO_BYTES {
            return Err(PreparePlanError::TooLong { field: undo.field, bytes });
        }
        patch.push(FieldPatch {
            field: undo.field.clone(),
            prior: read_value(before, &undo.field),
            value: read_value(after.fields(), &undo.field),
            undo: Some(undo),
        });
    }
    Ok((edited.bytes, patch))
}

/// Merges an undo into the record, field by field.
///
/// A field that still has our value gets its old value back. A field that has its old value already stays. A field
/// that a human edited since is a conflict. In a set only our own member is reverted. Its lines become what the
/// remaining changes would have left.
fn restore_fields(
    current: &[u8],
    now: &RecordFields,
    patches: &[FieldPatch],
    number: u64,
    life: &[SetHistoryStep],
) -> Result<(Vec<u8>, Vec<FieldPatch>), PreparePlanError> {
    let conflicts: Vec<String> = patches.iter().filter(|p| is_edited_since(now, p)).map(|p| p.field.clone()).collect();
    if !conflicts.is_empty() {
        return Err(PreparePlanError::Conflict(conflicts));
    }
    let mut after = current.to_vec();
    for patch in patches.iter().rev() {
        let Some(undo) = &patch.undo else { continue };
        if is_set_field(&patch.field) {
            after = match frontmatter::undo_set_step(&after, &patch.field, life, number) {
                Some(bytes) => bytes,
                None => frontmatter::undo_member(&after, undo)?,
            };
        } else if is_same_value(now.get(&patch.field), patch.value.as_ref()) {
            after = frontmatter::undo_fields(&after, std::slice::from_ref(undo))?;
        }
    }
    let restored = frontmatter::read_document(&after)?;
    let reverse_patch = |p: &FieldPatch| FieldPatch {
        field: p.field.clone(),
        prior: read_value(now, &p.field),
        value: read_value(restored.fields(), &p.field),
        undo: None,
    };
    let patch = patches.iter().map(reverse_patch).filter(|p| p.prior != p.value).collect();
    Ok((after, patch))
}

fn is_edited_since(now: &RecordFields, patch: &FieldPatch) -> bool {
    let now = now.get(&patch.field);
    if is_set_field(&patch.field) {
        return frontmatter::list_members(now).is_none();
    }
    !is_same_value(now, patch.value.as_ref()) && !is_same_value(now, patch.prior.as_ref())
}

pub(crate) fn is_set_field(field: &str) -> bool {
    RelatedField::ALL.iter().any(|f| f.as_str() == field)
}

fn read_value(fields: &RecordFields, field: &str) -> Option<Value> {
    fields.get(field).filter(|v| !v.is_null()).cloned()
}

/// Whether two values mean the same to a reader. An empty field counts as a missing one.
fn is_same_value(a: Option<&Value>, b: Option<&Value>) -> bool {
    a.filter(|v| !v.is_null()) == b.filter(|v| !v.is_null())
}

fn encode_hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}

//! The exact change: which fields of which record, from which content, and how it lands.
//!
//! A [`Plan`] is made only by [`crate::steward::decide::decide`], by [`mod@crate::signals::route`] and by the answers of a
//! human ([`crate::action::undo`]); its fields are private so that nothing else can. It holds no free text
//! that could name a file or a field: both come from closed types. The vault's `apply` is the
//! only place that takes one, and [`Plan::prepare`] is how it learns the bytes to write.

use crate::action::audit::{AuditDraft, FieldPatch};
use crate::action::mutation::{Mutation, RelatedField, format_link_like};
use crate::record::frontmatter::{self, EditedDocument, FieldEdit, FrontmatterError, RecordFields, SetHistoryStep};
use crate::record::path::RecordPath;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt;

/// Most bytes of a field's lines that a record keeps for the way back: 16 KiB, a quarter of what the
/// frontmatter of the record itself may have.
pub const MAX_UNDO_BYTES: usize = 16 * 1024;

/// SHA-256 of a whole file, in hex.
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

    /// What the first record of a chain names as its predecessor: 64 zeros.
    #[must_use]
    pub fn genesis() -> Self {
        Self("0".repeat(64))
    }
}

/// Names one action for good: 16 hex digits, the same however often the action is tried.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ActionId(String);

impl ActionId {
    /// Derives an id from what makes the action unique.
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

/// A text is not the id of an action.
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

/// How a decision lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// Nothing would change; the decision is filed.
    Recorded,
    /// It would change the record, but only says so.
    Shadow,
    /// It waits for a human's word.
    Pending,
    /// It changes the record.
    Live,
}

impl Disposition {
    /// The word used in records and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Shadow => "shadow",
            Self::Pending => "pending",
            Self::Live => "live",
        }
    }
}

/// What a change starts from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PlanBasis {
    /// The whole content that was judged: a steward's own change.
    Content(ContentHash),
    /// The values of the fields alone: a human's answer, merged field by field.
    Fields,
}

/// What is done to the fields, exact enough to be carried out without thinking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PlannedChange {
    /// The decision is filed and nothing else.
    Nothing,
    /// Sets one field that must have this value now; `None` means absent.
    Set { field: String, expect: Option<Value>, value: Value },
    /// Lets one member into a set, or takes it out.
    Member { field: String, member: String, present: bool },
    /// Puts back what an earlier change did, field by field; of a set, also all that is known of its life.
    Restore { number: u64, patches: Vec<FieldPatch>, life: Vec<SetHistoryStep> },
}

impl PlannedChange {
    /// What a mutation does to a field that has this value now; `None` means absent.
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

/// A change that may be carried out, and the record that will remember it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub(crate) draft: AuditDraft,
    pub(crate) basis: PlanBasis,
    pub(crate) change: PlannedChange,
}

/// The bytes to write and what undoing them takes.
#[derive(Clone, Debug, PartialEq)]
pub struct PreparedChange {
    pub before: ContentHash,
    pub after: Vec<u8>,
    pub patch: Vec<FieldPatch>,
}

/// Why a plan does not fit the record as it is now. Nothing has been changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PreparePlanError {
    #[error("the record was changed meanwhile")]
    ChangedMeanwhile,
    #[error("edited by a human since: {}", .0.join(", "))]
    Conflict(Vec<String>),
    #[error("the lines of `{field}` have {bytes} bytes, too many to remember for an undo: shorten its comment or text")]
    TooLong { field: String, bytes: usize },
    #[error(transparent)]
    Frontmatter(#[from] FrontmatterError),
}

impl Plan {
    /// Names the action; the same for every try.
    #[must_use]
    pub fn id(&self) -> &ActionId {
        &self.draft.id
    }

    /// The record it is about.
    #[must_use]
    pub fn target(&self) -> &RecordPath {
        &self.draft.target
    }

    /// What the audit record will say.
    #[must_use]
    pub fn draft(&self) -> &AuditDraft {
        &self.draft
    }

    /// How it lands; what holds at landing may lower it, nothing raises it.
    #[must_use]
    pub fn disposition(&self) -> Disposition {
        self.draft.landing
    }

    /// When it was decided.
    #[must_use]
    pub fn decided_at(&self) -> DateTime<Utc> {
        self.draft.timestamp
    }

    /// Whether it would write the target's file.
    #[must_use]
    pub fn has_record_change(&self) -> bool {
        self.draft.landing == Disposition::Live && self.change != PlannedChange::Nothing
    }

    /// Whether the record with this content is the one that was judged. A human's answer rests on no content.
    #[must_use]
    pub fn is_based_on(&self, current: &ContentHash) -> bool {
        !matches!(&self.basis, PlanBasis::Content(judged) if judged != current)
    }

    /// Works out the bytes to write over the record as it is now.
    ///
    /// # Errors
    /// [`PreparePlanError::ChangedMeanwhile`] when a steward's change meets other content than was
    /// judged; [`PreparePlanError::Conflict`] when a human's answer meets fields edited since.
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

/// The new bytes, and what undoing them takes.
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

/// A three-way merge by field: what stands as we left it goes back, what is back already is left
/// alone, what a human edited since is a conflict. Of a set only our own member goes back, in the lines
/// that the changes which stay would have left.
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
                Some(unwound) => unwound,
                None => frontmatter::undo_member(&after, undo)?,
            };
        } else if is_same_value(now.get(&patch.field), patch.value.as_ref()) {
            after = frontmatter::undo_fields(&after, std::slice::from_ref(undo))?;
        }
    }
    let then = frontmatter::read_document(&after)?;
    let turned = |p: &FieldPatch| FieldPatch {
        field: p.field.clone(),
        prior: read_value(now, &p.field),
        value: read_value(then.fields(), &p.field),
        undo: None,
    };
    let patch = patches.iter().map(turned).filter(|p| p.prior != p.value).collect();
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

/// Whether two values mean the same to a reader: an empty field says no more than a missing one.
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

//! A plan: the exact change of one record, the content that it is based on, and its disposition.
//!
//! Only this crate makes a [`Plan`], because its fields are private to it: a steward's decision, the router, a person's
//! resolution, and the records that change no note. A plan must not hold free text that could name a file or a field:
//! both come from closed types. The vault's `write_plan_once` is the only place that applies a plan. [`Plan::prepare`]
//! gives it the bytes to write.

mod ids;
mod renamed;

use crate::action::audit::{AuditDraft, FieldPatch};
use crate::action::mutation::{Mutation, RelatedField, format_link_like};
use crate::record::frontmatter::{self, EditedDocument, FieldEdit, FrontmatterError, RecordFields, SetHistoryStep};
use crate::record::mapping::VaultMapping;
use crate::record::moves::{LinkReader, NoteMove};
use crate::record::path::RecordPath;
use crate::record::schema::{NoteAccess, NoteSchema};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use ids::{ActionId, ActionIdError, ContentHash, ContentHasher};

/// The most bytes of a field's lines that an audit record keeps for an undo: 16 KiB. This is a quarter of what the
/// frontmatter of the record itself may have.
pub const MAX_UNDO_BYTES: usize = 16 * 1024;

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
    /// Changes no note: a person accepted this mapping.
    AcceptMapping(Box<VaultMapping>),
    /// Changes no note: these notes were moved.
    RecordMoves(Vec<NoteMove>),
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
    #[error("`{field}` has no property in the mapping, or is a list there, so it cannot be changed")]
    NotWritable { field: String },
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

    /// The mapping that its record accepts.
    #[must_use]
    pub fn accepted_mapping(&self) -> Option<&VaultMapping> {
        match &self.change {
            PlannedChange::AcceptMapping(mapping) => Some(mapping),
            PlannedChange::Nothing
            | PlannedChange::Set { .. }
            | PlannedChange::Member { .. }
            | PlannedChange::Restore { .. }
            | PlannedChange::RecordMoves(_) => None,
        }
    }

    /// The moves of notes that its record holds.
    #[must_use]
    pub fn recorded_moves(&self) -> &[NoteMove] {
        if let PlannedChange::RecordMoves(moves) = &self.change { moves } else { &[] }
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
    pub fn prepare(&self, current: &[u8], notes: NoteAccess<'_>) -> Result<PreparedChange, PreparePlanError> {
        let before = ContentHash::hash_bytes(current);
        if !self.is_based_on(&before) {
            return Err(PreparePlanError::ChangedMeanwhile);
        }
        let document = frontmatter::read_document(current)?;
        let (after, patch) = match &self.change {
            PlannedChange::Nothing | PlannedChange::AcceptMapping(_) | PlannedChange::RecordMoves(_) => {
                (current.to_vec(), Vec::new())
            }
            PlannedChange::Set { field, expect, value } => {
                let property = self.find_property(field, document.fields(), notes.schema)?;
                let written = document.fields().get(&property).filter(|v| !v.is_null());
                let now =
                    written.and_then(|v| notes.schema.read_value(self.draft.target_kind, self.target(), field, v));
                if now.as_ref() == Some(value) {
                    (current.to_vec(), Vec::new())
                } else if is_same_value(
                    now.as_ref(),
                    renamed::rename_value(field, expect.as_ref(), now.as_ref(), self.read_links(notes)).as_ref(),
                ) {
                    let words = self.choose_words(field, value, written, notes)?;
                    let edit = FieldEdit { field: property, value: Some(words) };
                    let edited = frontmatter::edit_fields_with_undo(current, &[edit])?;
                    prepare_edit(field, document.fields(), edited, notes.schema)?
                } else {
                    return Err(PreparePlanError::Conflict(vec![field.clone()]));
                }
            }
            PlannedChange::Member { field, member, present } => {
                let property = self.find_property(field, document.fields(), notes.schema)?;
                let members = document.fields().get(&property);
                let member = self.read_links(notes).rename_member(member, members).unwrap_or_else(|| member.clone());
                let edited = frontmatter::edit_member(current, &property, &member, *present)?;
                prepare_edit(field, document.fields(), edited, notes.schema)?
            }
            PlannedChange::Restore { number, patches, life } => {
                let (patches, life) = renamed::rename_links(patches, life, document.fields(), self.read_links(notes));
                restore_fields(current, document.fields(), &patches, *number, &life)?
            }
        };
        Ok(PreparedChange { before, after, patch })
    }

    /// The links of the target, with those that were written when the action was decided.
    fn read_links<'a>(&'a self, notes: NoteAccess<'a>) -> LinkReader<'a> {
        let decided_at = self.draft.resolution.as_ref().map_or(self.draft.timestamp, |resolved| resolved.decided_at);
        notes.links(&self.draft.target, decided_at)
    }

    /// The property of the target that has the role of a field.
    fn find_property(
        &self,
        field: &str,
        fields: &RecordFields,
        schema: &NoteSchema,
    ) -> Result<String, PreparePlanError> {
        schema
            .property_in(self.draft.target_kind, field, fields)
            .ok_or_else(|| PreparePlanError::NotWritable { field: field.to_owned() })
    }

    /// The words to write for a value. In a mapped vault a link is the shortest one that names the matter.
    fn choose_words(
        &self,
        field: &str,
        value: &Value,
        written: Option<&Value>,
        notes: NoteAccess<'_>,
    ) -> Result<Value, PreparePlanError> {
        let new_parent = self.draft.proposal.as_ref().and_then(|proposal| proposal.mutation.new_parent());
        let words = match new_parent.filter(|_| notes.schema.is_mapped()) {
            Some(_) if written.is_some_and(Value::is_array) => None,
            Some(to) => Some(Value::from(notes.names.shortest_link(to, self.target()))),
            None => notes.schema.write_value(self.draft.target_kind, field, value, written),
        };
        words.ok_or_else(|| PreparePlanError::NotWritable { field: field.to_owned() })
    }
}

/// The new bytes, and what an undo of them needs.
fn prepare_edit(
    field: &str,
    before: &RecordFields,
    edited: EditedDocument,
    schema: &NoteSchema,
) -> Result<(Vec<u8>, Vec<FieldPatch>), PreparePlanError> {
    let after = frontmatter::read_document(&edited.bytes)?;
    let mut patch = Vec::with_capacity(edited.undo.len());
    for undo in edited.undo {
        let bytes = undo.lines_before.len() + undo.lines_after.len();
        if bytes > MAX_UNDO_BYTES {
            return Err(PreparePlanError::TooLong { field: undo.field, bytes });
        }
        patch.push(FieldPatch {
            field: field.to_owned(),
            property: schema.is_mapped().then(|| undo.field.clone()),
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
            after = match frontmatter::undo_set_step(&after, patch.key(), life, number) {
                Some(bytes) => bytes,
                None => frontmatter::undo_member(&after, undo)?,
            };
        } else if is_same_value(now.get(patch.key()), patch.value.as_ref()) {
            after = frontmatter::undo_fields(&after, std::slice::from_ref(undo))?;
        }
    }
    let restored = frontmatter::read_document(&after)?;
    let reverse_patch = |p: &FieldPatch| FieldPatch {
        field: p.field.clone(),
        property: p.property.clone(),
        prior: read_value(now, p.key()),
        value: read_value(restored.fields(), p.key()),
        undo: None,
    };
    let patch = patches.iter().map(reverse_patch).filter(|p| p.prior != p.value).collect();
    Ok((after, patch))
}

fn is_edited_since(now: &RecordFields, patch: &FieldPatch) -> bool {
    let now = now.get(patch.key());
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

//! Audit records: one per decision and per resolution, with the undo recipe of its change.
//!
//! An [`AuditDraft`] holds what is known when a change is planned. An [`AuditRecord`] adds what is known only when it
//! is applied: the written patch, and the hash of the previous record in the chain. A record must never be rewritten.
//! A resolution of an action (undo, confirm, dismiss) is a record of its own.

mod audit_record;
mod cited_signal;
mod kind;
mod patch;
mod proposal;

use crate::action::mutation::{Mutation, MutationClass};
use crate::action::plan::{ActionId, ContentHash, Disposition};
use crate::gates::mode::Mode;
use crate::gates::result::GateResult;
use crate::record::entity::RecordState;
use crate::record::frontmatter::FrontmatterError;
use crate::record::path::{PathError, RecordKind, RecordPath};
use crate::record::schema::NoteSchema;
use crate::steward::clerk::{ClerkMark, Judgement};
use crate::time;
use crate::trust::mark::TrustMark;
use crate::wiki::run::{REJECTED_SUFFIX, WikiMark};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

pub use audit_record::{AuditRecord, MISSING_FILES};
pub use cited_signal::CitedSignal;
pub use kind::{ActionKind, MAX_WIKI_RECORD_BYTES, is_audit_file_name, max_record_bytes};
pub use patch::{FieldPatch, UndoRecipe};

/// How long a change can be undone, in days (S3-54).
pub const UNDO_WINDOW_DAYS: i64 = 7;
/// The longest slug of a task that stands in a record's file name as it is, in characters.
const MAX_NAME_CHARS: usize = 80;

/// The workflow run that acted. Empty if none did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRef {
    pub id: String,
    pub run_id: String,
}

/// Who resolved an action: it decides whether trust learns from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResolverKind {
    /// A person, by a click, a command or a program of theirs.
    #[default]
    Human,
    /// A model. A text may have talked it into the resolution, so trust learns nothing from it.
    Agent,
}

impl ResolverKind {
    #[must_use]
    pub fn is_human(&self) -> bool {
        *self == Self::Human
    }
}

/// The action that a record resolves or reports on, and who resolved it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditResolution {
    /// The resolved action.
    pub action_id: ActionId,
    /// When that action was decided. The record's own `timestamp` is the time of the resolution.
    #[serde(rename = "at", with = "millis")]
    pub decided_at: DateTime<Utc>,
    /// The person's name, as they gave it. Untrusted.
    pub by: String,
    /// The person's reason. Untrusted.
    pub reason: Option<String>,
    /// The person chose another value than the proposed one. This record holds the chosen value, the resolved one the
    /// proposed value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
    /// The id of the batch if several actions were resolved with one click. A batch is one row in a list and counts as
    /// one case of feedback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_id: Option<ActionId>,
    /// The person says that a proposal is right, and that they have made the change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub done: bool,
    /// The newest reopening before this answer, if an earlier answer was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopened: Option<Reopening>,
    /// Records without it were resolved by a person.
    #[serde(default, skip_serializing_if = "ResolverKind::is_human")]
    pub resolved_by: ResolverKind,
}

/// The record by which a person took an answer back. Later answers to the same action are named after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reopening {
    pub id: ActionId,
    #[serde(with = "millis")]
    pub at: DateTime<Utc>,
}

impl AuditResolution {
    /// An answer to this action by `by`.
    #[must_use]
    pub fn new(action: &AuditDraft, by: &str, reason: Option<String>) -> Self {
        Self {
            action_id: action.id.clone(),
            decided_at: action.timestamp,
            by: by.to_owned(),
            reason,
            edited: false,
            batch_id: None,
            done: false,
            reopened: None,
            resolved_by: ResolverKind::Human,
        }
    }
}

/// The exact change that was proposed, so that it can be applied later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MutationProposal {
    pub mutation: Mutation,
    /// The value of its field at the decision, or `None` if the field was absent. It is not kept for a set.
    pub replaces: Option<Value>,
    /// For a move to another matter: the matter that the task leaves, as its link named it at the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<RecordPath>,
}

/// The contents of an audit record that are known when a change is planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditDraft {
    #[serde(rename = "type")]
    pub kind: ActionKind,
    pub id: ActionId,
    #[serde(with = "millis")]
    pub timestamp: DateTime<Utc>,
    pub target: RecordPath,
    pub target_kind: RecordKind,
    /// The path of the target in the name of the record's file, if the target has moved since. A resolution is named
    /// after the path that the resolved action had.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub named_after: Option<RecordPath>,
    pub class: Option<MutationClass>,
    pub decision: Judgement,
    pub confidence: f64,
    pub mode: Mode,
    pub disposition: Disposition,
    pub gates: Vec<GateResult>,
    /// The text of `state` at the decision, or `None` if the field is absent.
    pub prior_state: Option<String>,
    pub proposed_state: Option<RecordState>,
    /// `None` if nothing would change, and in resolutions without a change of their own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub proposal: Option<MutationProposal>,
    /// `false` if a ceiling of `ask` or a matter's policy leaves the change to the human.
    pub confirmable: bool,
    pub pending_confirmation: bool,
    pub evidence: Vec<CitedSignal>,
    pub source_contributions: BTreeMap<String, f64>,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub reasoning: String,
    pub clerk: Option<ClerkMark>,
    pub workflow: WorkflowRef,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub resolution: Option<AuditResolution>,
    /// A change of trust in a source or a class. `None` in records of anything else.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub trust: Option<TrustMark>,
    /// The run of a wiki. `None` in records of anything else.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub wiki: Option<WikiMark>,
}

/// A position in the chain: the number and the predecessor's hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainLink {
    /// Counted from 1.
    pub seq: u64,
    /// The SHA-256 of the previous record's file, or 64 zeros for the first record.
    pub prev: ContentHash,
}

/// How far a chain has come: the number of records so far, and the hash of the last one's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainHead {
    pub seq: u64,
    /// The SHA-256 of the last record's file, or 64 zeros without a record.
    pub sha256: ContentHash,
}

impl ChainHead {
    /// The head of a chain without records.
    #[must_use]
    pub fn genesis() -> Self {
        Self { seq: 0, sha256: ContentHash::genesis() }
    }

    /// The number and predecessor of the next record.
    #[must_use]
    pub fn next_link(&self) -> ChainLink {
        ChainLink { seq: self.seq + 1, prev: self.sha256.clone() }
    }
}

impl Default for ChainHead {
    fn default() -> Self {
        Self::genesis()
    }
}

/// Why a file is not an audit record.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AuditError {
    #[error(transparent)]
    Frontmatter(#[from] FrontmatterError),
    #[error("not an audit record: {0}")]
    Form(String),
}

impl AuditDraft {
    /// Whether a model undid or dismissed an action with this record, so that it teaches nothing until a person agrees.
    #[must_use]
    pub fn is_resolved_by_agent(&self) -> bool {
        matches!(self.kind, ActionKind::Reversed | ActionKind::Dismissed)
            && self.resolution.as_ref().is_some_and(|resolution| !resolution.resolved_by.is_human())
    }

    /// A record in shadow that changes no note and proposes nothing.
    #[must_use]
    pub fn new_recorded(
        kind: ActionKind,
        id: ActionId,
        target: RecordPath,
        target_kind: RecordKind,
        workflow: WorkflowRef,
        timestamp: DateTime<Utc>,
    ) -> Self {
        Self {
            kind,
            id,
            timestamp,
            target,
            target_kind,
            named_after: None,
            class: None,
            decision: Judgement::NeedsInput,
            confidence: 1.0,
            mode: Mode::Shadow,
            disposition: Disposition::Recorded,
            gates: Vec::new(),
            prior_state: None,
            proposed_state: None,
            proposal: None,
            confirmable: false,
            pending_confirmation: false,
            evidence: Vec::new(),
            source_contributions: BTreeMap::new(),
            reasoning: String::new(),
            clerk: None,
            workflow,
            resolution: None,
            trust: None,
            wiki: None,
        }
    }

    /// A record about this action by `by`. It proposes nothing, and its id is the same for every try.
    #[must_use]
    pub fn derive_follow_up(
        &self,
        kind: ActionKind,
        by: &str,
        reason: Option<String>,
        workflow: WorkflowRef,
        timestamp: DateTime<Utc>,
    ) -> Self {
        let id = ActionId::derive(&[kind.as_str(), self.id.as_str()]);
        Self {
            class: self.class,
            decision: self.decision,
            confidence: self.confidence,
            mode: self.mode,
            prior_state: self.prior_state.clone(),
            resolution: Some(AuditResolution::new(self, by, reason)),
            trust: self.trust.clone(),
            named_after: self.named_after.clone(),
            ..Self::new_recorded(kind, id, self.target.clone(), self.target_kind, workflow, timestamp)
        }
    }

    /// Whether it asks a human to do something and proposes nothing that could be confirmed.
    #[must_use]
    pub fn is_question(&self) -> bool {
        self.kind == ActionKind::Action
            && self.decision == Judgement::NeedsInput
            && self.disposition == Disposition::Recorded
    }

    /// Whether Steward may make this change of the target.
    ///
    /// A record is a file that anyone with access to the vault can write. So the kind that it states is compared with
    /// the target's place, and files of Steward's own are no target at all. `schema` is the one of the record.
    #[must_use]
    pub fn allows_mutation(&self, mutation: &Mutation, schema: &NoteSchema) -> bool {
        schema.allows_place(self.target_kind, &self.target)
            && Some(mutation.class()) == self.class
            && schema.can_write(self.target_kind, mutation)
    }

    /// The path of the record: `event/<kind>-<ts>-<safe-slug>.md`, or `event/<kind>-<run>-<wiki>.md` for a wiki. A run that
    /// was not committed has the name of its own record, with `-rejected` at its end.
    ///
    /// A resolution is named after the action that it resolves, or after the reopening before it. So two resolutions of
    /// one kind have the same file name, and only one can be created.
    ///
    /// # Errors
    /// [`PathError`] if the name is invalid. It cannot happen for a checked target.
    pub fn record_path(&self) -> Result<RecordPath, PathError> {
        if let Some(mark) = &self.wiki {
            let (kind, suffix) = match self.kind {
                ActionKind::WikiRejected => (ActionKind::Wiki, REJECTED_SUFFIX),
                kind => (kind, ""),
            };
            let name = format!("{}-{}-{}{suffix}", kind.as_str(), mark.run, mark.wiki);
            return RecordPath::new(RecordKind::Event, &name);
        }
        let named_after = self.resolution.as_ref().map_or(self.timestamp, |answer| {
            answer.reopened.as_ref().map_or(answer.decided_at, |reopening| reopening.at)
        });
        let at = time::format_compact(named_after);
        let name = short_name(self.named_after.as_ref().unwrap_or(&self.target), self.target_kind);
        RecordPath::new(RecordKind::Event, &format!("{}-{at}-{name}", self.kind.as_str()))
    }

    /// The path of a resolution of this action, or of its outcome in the tracker.
    ///
    /// # Errors
    /// The same as [`AuditDraft::record_path`].
    pub fn follow_up_path(&self, kind: ActionKind) -> Result<RecordPath, PathError> {
        self.answer_path(kind, None)
    }

    /// The path of a resolution of this action after an earlier one was taken back.
    ///
    /// # Errors
    /// The same as [`AuditDraft::record_path`].
    pub fn answer_path(&self, kind: ActionKind, reopened: Option<&Reopening>) -> Result<RecordPath, PathError> {
        let resolution = AuditResolution { reopened: reopened.cloned(), ..AuditResolution::new(self, "", None) };
        Self { kind, resolution: Some(resolution), ..self.clone() }.record_path()
    }
}

/// A target's name as part of a file name: the slug of `task/<slug>.md`, and `<part>-<hash8>` for other notes.
///
/// A matter may have the name of one of its tasks and be judged at the same moment, so it always has a hash.
pub(crate) fn short_name(target: &RecordPath, kind: RecordKind) -> String {
    if kind != RecordKind::Matter {
        let name = target.plain_name(kind);
        if name.len() <= MAX_NAME_CHARS && !name.ends_with('.') {
            return name;
        }
    }
    target.hashed_name()
}

/// Instants in records: `2026-11-21T09:30:15.123Z`.
pub(crate) mod millis {
    use chrono::{DateTime, Utc};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(at: &DateTime<Utc>, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&crate::time::format_millis(*at))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<DateTime<Utc>, D::Error> {
        let text = String::deserialize(d)?;
        crate::time::parse(&text).ok_or_else(|| D::Error::custom("not an instant"))
    }
}

#[cfg(test)]
mod tests;

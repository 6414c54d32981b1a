//! Audit records: one per decision and per resolution, with the undo recipe of its change.
//!
//! An [`AuditDraft`] holds what is known when a change is planned. An [`AuditRecord`] adds what is known only when it
//! is applied: the written patch, and the hash of the previous record in the chain. A record must never be rewritten.
//! A resolution of an action (undo, confirm, dismiss) is a record of its own.

mod cited_signal;
mod proposal;
use crate::action::mutation::{Mutation, MutationClass};
use crate::action::plan::{ActionId, ContentHash, Disposition};
use crate::gates::mode::Mode;
use crate::gates::result::GateResult;
use crate::record::entity::RecordState;
use crate::record::frontmatter::{self, FieldUndo, FrontmatterError};
use crate::record::path::{PathError, RecordKind, RecordPath};
use crate::record::plain_text;
use crate::record::unlinked;
use crate::steward::clerk::{ClerkMark, Judgement};
use crate::time;
use crate::tracker::{PlaneAction, PlaneRevert};
use crate::trust::mark::TrustMark;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

mod kind;
pub use cited_signal::CitedSignal;
pub use kind::{ActionKind, is_audit_file_name};

/// How long a change can be undone, in days (S3-54).
pub const UNDO_WINDOW_DAYS: i64 = 7;
/// The longest slug of a task that stands in a record's file name as it is, in characters.
const MAX_NAME_CHARS: usize = 80;

/// The workflow run that acted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRef {
    pub id: String,
    pub run_id: String,
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
}

/// One changed field, before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldPatch {
    pub field: String,
    /// The value before, or `None` if the field was absent.
    pub prior: Option<Value>,
    /// The value after, or `None` if the field was removed.
    pub value: Option<Value>,
    /// The lines of both and their position. `None` in the record of an undo.
    pub undo: Option<FieldUndo>,
}

/// The data that undoes a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UndoRecipe {
    pub vault_patch: Vec<FieldPatch>,
    /// `None` if the change owes nothing to the tracker.
    pub plane_revert: Option<PlaneRevert>,
    #[serde(with = "millis")]
    pub expires_at: DateTime<Utc>,
}

/// A position in the chain: the number and the predecessor's hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainLink {
    /// Counted from 1.
    pub seq: u64,
    /// The SHA-256 of the previous record's file, or 64 zeros for the first record.
    pub prev: ContentHash,
}

/// One record of the audit chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditRecord {
    #[serde(flatten)]
    pub draft: AuditDraft,
    /// The position in the chain, counted from 1.
    pub seq: u64,
    /// The affected fields' values before the change.
    pub prior_frontmatter: Map<String, Value>,
    /// The tracker's part was not done, or not completely. `plane_action` says why.
    pub partially_applied: bool,
    /// `None` if the change does not concern the tracker.
    pub plane_action: Option<PlaneAction>,
    /// `None` if nothing was changed.
    pub undo_recipe: Option<UndoRecipe>,
    /// The hash of the target's content after the change (see [`crate::record::content_hash`]). `None` if nothing was
    /// changed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content_sha256: Option<ContentHash>,
    /// The SHA-256 of the previous record's file, or 64 zeros for the first record.
    pub prev_sha256: ContentHash,
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
    /// the target's folder, and files of Steward's own are no target at all.
    #[must_use]
    pub fn allows_mutation(&self, mutation: &Mutation) -> bool {
        self.target.scanned_kind() == Some(self.target_kind)
            && Some(mutation.class()) == self.class
            && mutation.is_applicable_to(self.target_kind)
    }

    /// The path of the record: `event/<kind>-<ts>-<safe-slug>.md`.
    ///
    /// A resolution is named after the action that it resolves. So two resolutions of one kind have
    /// the same file name, and only one can be created.
    ///
    /// # Errors
    /// [`PathError`] if the name is invalid. It cannot happen for a checked target.
    pub fn record_path(&self) -> Result<RecordPath, PathError> {
        let named_after = self.resolution.as_ref().map_or(self.timestamp, |a| a.decided_at);
        let at = time::format_compact(named_after);
        let name = short_name(&self.target, self.target_kind);
        RecordPath::new(RecordKind::Event, &format!("{}-{at}-{name}", self.kind.as_str()))
    }

    /// The path of a resolution of this action, or of its outcome in the tracker.
    ///
    /// # Errors
    /// The same as [`AuditDraft::record_path`].
    pub fn follow_up_path(&self, kind: ActionKind) -> Result<RecordPath, PathError> {
        let resolution = AuditResolution {
            action_id: self.id.clone(),
            decided_at: self.timestamp,
            by: String::new(),
            reason: None,
            edited: false,
            batch_id: None,
        };
        Self { kind, resolution: Some(resolution), ..self.clone() }.record_path()
    }
}

impl AuditRecord {
    /// Completes a draft with the written patch and the link of the chain.
    ///
    /// Instants are cut to the millisecond and the reasoning becomes one line, as in the file. So a record that is read
    /// back equals the one that was written.
    #[must_use]
    pub fn from_draft(mut draft: AuditDraft, patch: Vec<FieldPatch>, link: ChainLink) -> Self {
        draft.timestamp = time::truncate_to_millis(draft.timestamp);
        if let Some(resolution) = &mut draft.resolution {
            resolution.decided_at = time::truncate_to_millis(resolution.decided_at);
        }
        draft.reasoning = plain_text::to_one_line(&draft.reasoning);
        let mut prior = Map::new();
        for p in &patch {
            prior.insert(p.field.clone(), p.prior.clone().unwrap_or(Value::Null));
        }
        if let Some(written) = prior.get("state") {
            draft.prior_state = written.as_str().map(str::to_owned);
        } else {
            prior.insert("state".into(), draft.prior_state.clone().map_or(Value::Null, Value::from));
        }
        if let Some(proposal) = &draft.proposal
            && let Some(replaced) = &proposal.replaces
        {
            prior.entry(proposal.mutation.field()).or_insert_with(|| replaced.clone());
        }
        let undoable = matches!(draft.kind, ActionKind::Action | ActionKind::Confirmed) && !patch.is_empty();
        let expires_at = compute_undo_deadline(&draft);
        Self {
            seq: link.seq,
            prior_frontmatter: prior,
            partially_applied: false,
            plane_action: None,
            undo_recipe: undoable.then_some(UndoRecipe { vault_patch: patch, plane_revert: None, expires_at }),
            content_sha256: None,
            prev_sha256: link.prev,
            draft,
        }
    }

    /// When the undo window ends. An edited `expires_at` in the file has no effect.
    #[must_use]
    pub fn undo_deadline(&self) -> DateTime<Utc> {
        compute_undo_deadline(&self.draft)
    }

    /// Its `expires_at`, if somebody edited it so that it differs from the end of the undo window.
    #[must_use]
    pub fn edited_expiry(&self) -> Option<DateTime<Utc>> {
        self.undo_recipe.as_ref().map(|recipe| recipe.expires_at).filter(|expiry| *expiry != self.undo_deadline())
    }

    /// The same record with the hash of its target's content after the change.
    #[must_use]
    pub fn with_content(self, content: Option<ContentHash>) -> Self {
        Self { content_sha256: content, ..self }
    }

    /// The same record with its tracker action.
    #[must_use]
    pub fn with_tracker(mut self, plane_action: Option<PlaneAction>) -> Self {
        self.partially_applied = plane_action.as_ref().and_then(PlaneAction::missing_reason).is_some();
        if let (Some(recipe), Some(PlaneAction::Owed { issue, .. })) = (&mut self.undo_recipe, &plane_action) {
            let external_id = self.draft.id.clone();
            recipe.plane_revert = Some(PlaneRevert { issue: issue.clone(), external_id });
        }
        self.plane_action = plane_action;
        self
    }

    /// Renders the record's file: frontmatter, one line of evidence, the reasoning.
    ///
    /// # Errors
    /// [`AuditError::Form`] if a value cannot be written. It cannot happen for a record of [`AuditRecord::from_draft`].
    pub fn render(&self) -> Result<String, AuditError> {
        let value = serde_json::to_value(self).map_err(|e| AuditError::Form(e.to_string()))?;
        let Value::Object(mut fields) = value else {
            return Err(AuditError::Form("not a mapping".into()));
        };
        let reasoning =
            fields.shift_remove("reasoning").and_then(|r| r.as_str().map(str::to_owned)).unwrap_or_default();
        let body = format!("{}\n\n{}\n", self.evidence_line(), plain_text::escape_markdown(&reasoning));
        Ok(frontmatter::render_document(&fields, &body))
    }

    /// Reads a record back.
    ///
    /// # Errors
    /// [`AuditError`] if the file is not an audit record.
    pub fn parse(bytes: &[u8]) -> Result<Self, AuditError> {
        let document = frontmatter::read_document_fast(bytes)?;
        let body = document.body().trim_end();
        let reasoning = body.split_once("\n\n").map(|(_, r)| plain_text::unescape_markdown(r)).unwrap_or_default();
        let mut fields = Value::Object(document.into_fields());
        unlinked::relink_value(&mut fields);
        let mut record: Self = serde_json::from_value(fields).map_err(|e| AuditError::Form(e.to_string()))?;
        record.draft.reasoning = reasoning;
        Ok(record)
    }

    /// Who resolved the action and why, or the first signal on which the decision rests.
    fn evidence_line(&self) -> String {
        if let Some(resolution) = &self.draft.resolution {
            if self.draft.kind.is_tracker_outcome() {
                let outcome = self.plane_action.as_ref().map(ToString::to_string).unwrap_or_default();
                return format!(
                    "The tracker: {} (action {})",
                    plain_text::escape_one_line(&outcome),
                    resolution.action_id
                );
            }
            let label = if resolution.edited { "Changed and confirmed" } else { self.draft.kind.outcome_label() };
            let reason = resolution.reason.as_deref().unwrap_or("no reason given");
            return format!(
                "{label} by {}: {} (action {})",
                plain_text::escape_one_line(&resolution.by),
                plain_text::escape_one_line(reason),
                resolution.action_id
            );
        }
        if let Some(mark) = &self.draft.trust {
            return plain_text::escape_one_line(&mark.to_string());
        }
        match self.draft.evidence.as_slice() {
            [] => "No signal was cited as evidence.".into(),
            [first, rest @ ..] => {
                let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
                let (source, note) =
                    (plain_text::escape_one_line(&first.source), plain_text::escape_one_line(&first.note));
                format!("Evidence: `{}` {source} said \"{note}\"{more}", first.reference)
            }
        }
    }
}

fn compute_undo_deadline(draft: &AuditDraft) -> DateTime<Utc> {
    draft.timestamp + TimeDelta::days(UNDO_WINDOW_DAYS)
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

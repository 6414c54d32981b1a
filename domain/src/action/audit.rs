//! What is remembered: one record per decision and per change, with the way back.
//!
//! A draft is what a plan knows; an [`AuditRecord`] adds what only the act itself can know: the
//! patch that was really written and the hash of the record before it in the chain. Records are
//! never rewritten; an answer to one (undo, confirm, dismiss) is a record of its own.

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

/// How long an undo recipe is honoured, in days (S3-54).
pub const UNDO_WINDOW_DAYS: i64 = 7;
/// Longest part of a target's name in a record's file name, in characters.
const MAX_NAME_CHARS: usize = 80;
/// Where a longer name is cut; what follows is a hash, so that two long names stay two.
const CUT_NAME_CHARS: usize = 71;

/// The workflow run that acted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRef {
    pub id: String,
    pub run_id: String,
}

/// Which action a record answers, or tells the outcome of, and who said so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditResolution {
    /// The action that is answered.
    pub of: ActionId,
    /// When that action was decided.
    #[serde(with = "stamped")]
    pub at: DateTime<Utc>,
    /// Who said so, as they named themselves. Untrusted.
    pub by: String,
    /// Why, in their words. Untrusted.
    pub reason: Option<String>,
    /// They let something else happen than was proposed: this record has what they chose, the one that it answers what
    /// was proposed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
    /// Names what was answered with one click; all answers that have it are one row in a list and one lesson.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<ActionId>,
}

/// The exact change that was proposed, so that it can be carried out later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MutationProposal {
    pub mutation: Mutation,
    /// The value of its field when that was decided; `None` where it was absent. Of a set nothing is kept.
    pub replaces: Option<Value>,
}

/// What a plan knows of the record it will leave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditDraft {
    #[serde(rename = "type")]
    pub kind: ActionKind,
    pub id: ActionId,
    #[serde(with = "stamped")]
    pub timestamp: DateTime<Utc>,
    pub target: RecordPath,
    pub class: Option<MutationClass>,
    pub decision: Judgement,
    pub confidence: f64,
    pub mode: Mode,
    pub landing: Disposition,
    pub gates: Vec<GateResult>,
    /// The text of `state` when the decision was made; `None` where the field is absent.
    pub prior_state: Option<String>,
    pub proposed_state: Option<RecordState>,
    /// `None` where nothing would change, in answers that change nothing new, and in records of before
    /// there were other classes than `state_change`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub proposal: Option<MutationProposal>,
    /// `false` where a ceiling of `ask` leaves the change to the human.
    pub confirmable: bool,
    pub pending_confirmation: bool,
    pub evidence: Vec<CitedSignal>,
    pub source_contributions: BTreeMap<String, f64>,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub reasoning: String,
    pub clerk: Option<ClerkMark>,
    pub workflow: WorkflowRef,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub answers: Option<AuditResolution>,
    /// What changed in how far a source or a class is trusted; `None` in records of anything else.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub trust: Option<TrustMark>,
}

/// One field as it was and as it became.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldPatch {
    pub field: String,
    /// The value before; `None` where the field was absent.
    pub prior: Option<Value>,
    /// The value after; `None` where the field was removed.
    pub value: Option<Value>,
    /// The lines of both and their place; `None` in the record of an undo itself.
    pub undo: Option<FieldUndo>,
}

/// How to put a change back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UndoRecipe {
    pub vault_patch: Vec<FieldPatch>,
    /// `None` where the change owes nothing to the tracker.
    pub plane_revert: Option<PlaneRevert>,
    #[serde(with = "stamped")]
    pub expires_at: DateTime<Utc>,
}

/// A place in the chain: the number and the predecessor's hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainLink {
    /// Counted from 1.
    pub seq: u64,
    /// SHA-256 of the file of the record before; 64 zeros for the first.
    pub prev: ContentHash,
}

/// One record of the audit chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditRecord {
    #[serde(flatten)]
    pub draft: AuditDraft,
    /// `task` or `matter`.
    pub target_kind: RecordKind,
    /// Place in the chain, counted from 1.
    pub seq: u64,
    /// The values of the fields concerned, before.
    pub prior_frontmatter: Map<String, Value>,
    /// The tracker's part was not done, or not whole; `plane_action` says why.
    pub partially_applied: bool,
    /// `None` where the tracker has no part in it.
    pub plane_action: Option<PlaneAction>,
    /// `None` where nothing was changed.
    pub undo_recipe: Option<UndoRecipe>,
    /// What the target says after the change ([`crate::record::content_hash`]); `None` where nothing was changed, and in older records.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content_sha256: Option<ContentHash>,
    /// SHA-256 of the record before this one in the chain; 64 zeros for the first.
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
    /// Whether it asks something of a human and proposes nothing that could be confirmed.
    #[must_use]
    pub fn is_question(&self) -> bool {
        self.kind == ActionKind::Action
            && self.decision == Judgement::NeedsInput
            && self.landing == Disposition::Recorded
    }

    /// Where the record is filed: `event/<kind>-<ts>-<safe-slug>.md`.
    ///
    /// An answer is named after the action it answers, so that two answers of one kind meet in
    /// one file name and only one can be created.
    ///
    /// # Errors
    /// [`PathError`] if the name would not be a record's; cannot happen for a checked target.
    pub fn record_path(&self) -> Result<RecordPath, PathError> {
        let named_after = self.answers.as_ref().map_or(self.timestamp, |a| a.at);
        let at = time::format_compact(named_after);
        let name = short_name(&self.target);
        RecordPath::new(RecordKind::Event, &format!("{}-{at}-{name}", self.kind.as_str()))
    }

    /// Where an answer to this action, or its outcome in the tracker, is filed.
    ///
    /// # Errors
    /// As [`AuditDraft::file`].
    pub fn follow_up_path(&self, kind: ActionKind) -> Result<RecordPath, PathError> {
        let answer = AuditResolution {
            of: self.id.clone(),
            at: self.timestamp,
            by: String::new(),
            reason: None,
            edited: false,
            together: None,
        };
        Self { kind, answers: Some(answer), ..self.clone() }.record_path()
    }
}

impl AuditRecord {
    /// Closes a draft with what the act itself brought.
    ///
    /// Instants are cut to the millisecond and the reasoning is brought onto one line, because that
    /// is what the file keeps: a record read back equals the one that was written.
    #[must_use]
    pub fn from_draft(mut draft: AuditDraft, patch: Vec<FieldPatch>, link: ChainLink) -> Self {
        draft.timestamp = time::truncate_to_millis(draft.timestamp);
        if let Some(answer) = &mut draft.answers {
            answer.at = time::truncate_to_millis(answer.at);
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
            target_kind: draft.target.kind(),
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

    /// When the change can no longer be undone; what `expires_at` says in the file changes nothing.
    #[must_use]
    pub fn undo_deadline(&self) -> DateTime<Utc> {
        compute_undo_deadline(&self.draft)
    }

    /// What its `expires_at` says where that is not when the undo window ends: somebody edited it.
    #[must_use]
    pub fn edited_expiry(&self) -> Option<DateTime<Utc>> {
        self.undo_recipe.as_ref().map(|recipe| recipe.expires_at).filter(|says| *says != self.undo_deadline())
    }

    /// The same record with what its target says after the change.
    #[must_use]
    pub fn with_content(self, content: Option<ContentHash>) -> Self {
        Self { content_sha256: content, ..self }
    }

    /// The same record with what it says of the tracker.
    #[must_use]
    pub fn with_tracker(mut self, says: Option<PlaneAction>) -> Self {
        self.partially_applied = says.as_ref().and_then(PlaneAction::missing_reason).is_some();
        if let (Some(recipe), Some(PlaneAction::Owed { issue, .. })) = (&mut self.undo_recipe, &says) {
            let external_id = self.draft.id.clone();
            recipe.plane_revert = Some(PlaneRevert { issue: issue.clone(), external_id });
        }
        self.plane_action = says;
        self
    }

    /// The record's file: frontmatter, one line of evidence, the reasoning.
    ///
    /// # Errors
    /// [`AuditError::Form`] when a value cannot be written; cannot happen for a record from `close`.
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
    /// [`AuditError`] when the file is not one.
    pub fn parse(bytes: &[u8]) -> Result<Self, AuditError> {
        let document = frontmatter::read_document_fast(bytes)?;
        let body = document.body().trim_end();
        let reasoning = body.split_once("\n\n").map(|(_, r)| plain_text::unescape_markdown(r)).unwrap_or_default();
        let fields = Value::Object(document.into_fields());
        let mut record: Self = serde_json::from_value(fields).map_err(|e| AuditError::Form(e.to_string()))?;
        record.draft.reasoning = reasoning;
        Ok(record)
    }

    /// Who answered and why, or the first signal the decision rests on.
    fn evidence_line(&self) -> String {
        if let Some(answer) = &self.draft.answers {
            if self.draft.kind.is_tracker_outcome() {
                let said = self.plane_action.as_ref().map(ToString::to_string).unwrap_or_default();
                return format!("The tracker: {} (action {})", plain_text::escape_one_line(&said), answer.of);
            }
            let did = if answer.edited { "Changed and confirmed" } else { self.draft.kind.outcome_label() };
            let reason = answer.reason.as_deref().unwrap_or("no reason given");
            return format!(
                "{did} by {}: {} (action {})",
                plain_text::escape_one_line(&answer.by),
                plain_text::escape_one_line(reason),
                answer.of
            );
        }
        if let Some(mark) = &self.draft.trust {
            return plain_text::escape_one_line(&mark.to_string());
        }
        match self.draft.evidence.as_slice() {
            [] => "No signal was named as evidence.".into(),
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

/// A target's name as part of a file name. A matter may be named like one of its tasks and be judged
/// in the same moment, so its name has a hash behind it.
pub(crate) fn short_name(target: &RecordPath) -> String {
    let (slug, is_matter) = (target.slug(), target.kind() == RecordKind::Matter);
    if slug.len() <= MAX_NAME_CHARS && !is_matter {
        return slug.trim_end_matches('.').to_owned();
    }
    let cut: String = slug.chars().take(CUT_NAME_CHARS).collect();
    let hash = ContentHash::hash_bytes(if is_matter { target.as_str() } else { slug }.as_bytes());
    format!("{}-{}", cut.trim_end_matches('.'), &hash.as_str()[..8])
}

/// Instants in records: `2026-11-21T09:30:15.123Z`.
pub(crate) mod stamped {
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

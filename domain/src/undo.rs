//! A human's answer to an action: undo, confirm, dismiss.
//!
//! Each makes a [`Plan`] from the record of the action, so that an answer goes through the same
//! apply, journal and audit as everything else. Undo inherits the mode of what it takes back; a
//! confirmation is a live change and needs a live mode.

use crate::audit::{ActionKind, Answer, AuditDraft, AuditRecord, FieldPatch, WorkflowRef};
use crate::decide::state_change;
use crate::mode::{Mode, Policy};
use crate::path::RecordKind;
use crate::plan::{ActionId, Basis, Change, Landing, Plan};
use crate::record::State;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// Longest name of a person that a record keeps, in characters.
const MAX_BY_CHARS: usize = 200;
/// Longest reason that a record keeps, in characters; as long as a clerk's reasoning may be.
const MAX_REASON_CHARS: usize = 2_000;

/// What a human asks of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    Undo,
    Confirm,
    Dismiss,
}

impl AnswerKind {
    /// The word on the command line and in workflow ids.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Undo => "undo",
            Self::Confirm => "confirm",
            Self::Dismiss => "dismiss",
        }
    }

    /// The kind of record it leaves.
    #[must_use]
    pub fn record(self) -> ActionKind {
        match self {
            Self::Undo => ActionKind::Reversed,
            Self::Confirm => ActionKind::Confirmed,
            Self::Dismiss => ActionKind::Dismissed,
        }
    }
}

/// Why an answer is not taken; [`Refusal::status`] is its HTTP status (section 6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "refused", rename_all = "snake_case")]
pub enum Refusal {
    #[error("no action has the id {id}: list them with `steward audit list`")]
    Unknown { id: String },
    #[error("{count} actions begin with {id}: give more digits")]
    Ambiguous { id: String, count: usize },
    #[error("an action is named by 4 to 16 hex digits of its id, not by `{id}`: list them with `steward audit list`")]
    Malformed { id: String },
    #[error("{id} changed nothing ({landing}), so there is nothing to undo")]
    NothingToUndo { id: String, landing: String },
    #[error("{id} is not waiting for an answer ({landing})")]
    NotPending { id: String, landing: String },
    #[error("{id} may only be carried out by hand: its ceiling is `ask`")]
    HumanOnly { id: String },
    #[error("{id} was already {how} by {by}")]
    AlreadyAnswered { id: String, how: String, by: String },
    #[error("edited by a human since: {}; nothing was changed", fields.join(", "))]
    Conflict { fields: Vec<String> },
    #[error("the mode is shadow now, so nothing may change: set STEWARD_LIVE_MODE, or `steward resume` after a stop")]
    ShadowNow,
    #[error("{id} can no longer be undone: its window ended {ended}")]
    Expired { id: String, ended: String },
    #[error("{reason}")]
    Record { reason: String },
}

impl Refusal {
    /// The HTTP status of this refusal.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::Unknown { .. } => 404,
            Self::Ambiguous { .. }
            | Self::Malformed { .. }
            | Self::NothingToUndo { .. }
            | Self::NotPending { .. }
            | Self::HumanOnly { .. } => 400,
            Self::AlreadyAnswered { .. } | Self::Conflict { .. } | Self::ShadowNow => 409,
            Self::Expired { .. } => 410,
            Self::Record { .. } => 422,
        }
    }
}

/// A human's answer, ready to be planned.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub kind: AnswerKind,
    pub record: &'a AuditRecord,
    pub by: &'a str,
    pub reason: Option<&'a str>,
    pub policy: &'a Policy,
    pub workflow: WorkflowRef,
    pub now: DateTime<Utc>,
}

/// Plans an answer to a recorded action that nobody has answered yet.
///
/// # Errors
/// [`Refusal`], by the rules of section 6.
pub fn answer(request: &Request<'_>) -> Result<Plan, Refusal> {
    match request.kind {
        AnswerKind::Undo => undo(request),
        AnswerKind::Confirm => confirm(request),
        AnswerKind::Dismiss => {
            pending(request)?;
            Ok(Plan { draft: draft(request, Landing::Recorded), basis: Basis::Fields, change: Change::Nothing })
        }
    }
}

/// Puts every field back that still stands as we left it.
fn undo(request: &Request<'_>) -> Result<Plan, Refusal> {
    let record = &request.record.draft;
    let Some(recipe) = &request.record.undo_recipe else {
        return Err(Refusal::NothingToUndo { id: record.id.to_string(), landing: record.landing.word().into() });
    };
    if request.now >= recipe.expires_at {
        let ended = crate::time::stamp(recipe.expires_at);
        return Err(Refusal::Expired { id: record.id.to_string(), ended });
    }
    check_recipe(request.record, &recipe.vault_patch)?;
    let change = Change::Restore(recipe.vault_patch.clone());
    Ok(Plan { draft: draft(request, Landing::Live), basis: Basis::Fields, change })
}

/// A record is a file that anyone with the vault can write: its recipe may only put back what a
/// steward may change, the state of a task.
fn check_recipe(record: &AuditRecord, patches: &[FieldPatch]) -> Result<(), Refusal> {
    let ours = |p: &FieldPatch| p.field == "state" && p.undo.as_ref().is_some_and(|u| u.field == p.field);
    if record.draft.target.kind() == RecordKind::Task && patches.iter().all(ours) {
        return Ok(());
    }
    let reason = format!(
        "{}: its recipe is not one that Steward writes, so it is not followed: run `steward audit verify`",
        record.draft.id
    );
    Err(Refusal::Record { reason })
}

fn confirm(request: &Request<'_>) -> Result<Plan, Refusal> {
    pending(request)?;
    let record = &request.record.draft;
    if !record.confirmable {
        return Err(Refusal::HumanOnly { id: record.id.to_string() });
    }
    if request.policy.mode == Mode::Shadow {
        return Err(Refusal::ShadowNow);
    }
    let prior = record.prior_state.clone();
    let change = record.proposed_state.map_or(Change::Nothing, |to| state_change(prior, to));
    Ok(Plan { draft: draft(request, Landing::Live), basis: Basis::Fields, change })
}

fn pending(request: &Request<'_>) -> Result<(), Refusal> {
    let record = &request.record.draft;
    if record.pending_confirmation {
        return Ok(());
    }
    Err(Refusal::NotPending { id: record.id.to_string(), landing: record.landing.word().into() })
}

fn draft(request: &Request<'_>, landing: Landing) -> AuditDraft {
    let answered = &request.record.draft;
    AuditDraft {
        kind: request.kind.record(),
        id: ActionId::derive(&[request.kind.word(), answered.id.as_str()]),
        timestamp: request.now,
        proposed_state: goes_to(request),
        landing,
        gates: Vec::new(),
        pending_confirmation: false,
        mode: if request.kind == AnswerKind::Confirm { request.policy.mode } else { answered.mode },
        clerk: None,
        workflow: request.workflow.clone(),
        answers: Some(Answer {
            of: answered.id.clone(),
            at: answered.timestamp,
            by: request.by.chars().take(MAX_BY_CHARS).collect(),
            reason: request.reason.map(|r| r.chars().take(MAX_REASON_CHARS).collect()),
        }),
        ..answered.clone()
    }
}

/// An undo proposes the state from before; where the field was absent that is `open`.
fn goes_to(request: &Request<'_>) -> Option<State> {
    let answered = &request.record.draft;
    match request.kind {
        AnswerKind::Undo => State::parse(answered.prior_state.as_deref().unwrap_or("open")),
        AnswerKind::Confirm | AnswerKind::Dismiss => answered.proposed_state,
    }
}

#[cfg(test)]
mod tests;

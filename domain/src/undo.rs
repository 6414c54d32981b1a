//! A human's answer to an action: undo, confirm, dismiss.
//!
//! Each makes a [`Plan`] from the record of the action, so that an answer goes through the same
//! apply, journal and audit as everything else. Undo inherits the mode of what it takes back; a
//! confirmation is a live change and needs a live mode.

use crate::audit::{ActionKind, Answer, AuditDraft, AuditRecord, WorkflowRef};
use crate::decide::state_change;
use crate::mode::{Mode, Policy};
use crate::plan::{ActionId, Basis, Change, Landing, Plan};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

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
            Self::NothingToUndo { .. } | Self::NotPending { .. } | Self::HumanOnly { .. } => 400,
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
    let change = Change::Restore(recipe.vault_patch.clone());
    Ok(Plan { draft: draft(request, Landing::Live), basis: Basis::Fields, change })
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
        landing,
        gates: Vec::new(),
        pending_confirmation: false,
        mode: if request.kind == AnswerKind::Confirm { request.policy.mode } else { answered.mode },
        clerk: None,
        workflow: request.workflow.clone(),
        answers: Some(Answer {
            of: answered.id.clone(),
            at: answered.timestamp,
            by: request.by.to_owned(),
            reason: request.reason.map(str::to_owned),
        }),
        ..answered.clone()
    }
}

#[cfg(test)]
mod tests;

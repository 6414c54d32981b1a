//! A proposal that is nearly right: what may be changed of it before it is confirmed.
//!
//! Only its value, never its target, class or field: a form sends a text, and the proposal's own record says what that is
//! a value of. Whether it may be is decided where it is confirmed.

use super::PageError;
use crate::api::problem::ProblemDetails;
use crate::http::app::SharedAppState;
use crate::views::action::{self, Action};
use axum::http::StatusCode;
use steward_domain::action::audit::AuditRecord;
use steward_domain::action::mutation::Mutation;

/// The states that a record may be in, as they are written.
const STATES: [&str; 3] = ["open", "done", "archived"];

/// What a form asks for.
pub(crate) struct ProposalEditForm {
    pub(crate) label: String,
    pub(crate) value: String,
    /// One of these; any text where there is none.
    pub(crate) choices: Vec<String>,
}

/// What may be edited of a proposal that waits; nothing where only a human's own hand may do it.
pub(crate) fn offer_edit(action: &Action) -> Option<ProposalEditForm> {
    let change = action.change.as_ref().filter(|_| action.waits && action.confirmable)?;
    let choices = if change.field == "state" { STATES.map(str::to_owned).to_vec() } else { Vec::new() };
    let value = change.after.clone().or_else(|| change.before.clone()).unwrap_or_default();
    Some(ProposalEditForm { label: format!("{} becomes", change.field), value, choices })
}

/// The proposal of an action with another value.
pub(crate) async fn build_edited_mutation(app: &SharedAppState, id: &str, value: &str) -> Result<Mutation, PageError> {
    let path = action::find_record_path(&app.index, id).await?;
    let root = app.root.clone();
    let read = tokio::task::spawn_blocking(move || {
        let snapshot = root.read_file(&path).map_err(|e| e.to_string())?;
        AuditRecord::parse(&snapshot.bytes).map_err(|e| format!("{path}: {e}"))
    });
    let unreadable = |reason: String| PageError::from(ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, reason));
    let draft = read.await.map_err(|e| unreadable(e.to_string()))?.map_err(unreadable)?.draft;
    let of_the_state = draft.proposed_state.map(|to| Mutation::StateChange { to });
    let proposed = draft.proposal.map(|proposal| proposal.mutation).or(of_the_state);
    let wrong = |detail: String| PageError::from(ProblemDetails::new(StatusCode::BAD_REQUEST, detail));
    let proposed = proposed.ok_or_else(|| wrong("it proposes no change, so there is nothing to edit".into()))?;
    let edited = proposed.with_value(value.trim());
    edited.map_err(|e| wrong(format!("that cannot be written into `{}`: {e}", proposed.field())))
}

//! Editing a proposal before it is confirmed.
//!
//! Only the value can be edited, never the target, the class or the field. The form sends a text, and the proposal's
//! own record says which field it belongs to. The confirmation decides whether the edited change is allowed.

use super::PageError;
use crate::api::problem::ProblemDetails;
use crate::http::app::SharedAppState;
use crate::views::action::{Action, STATES};
use axum::http::StatusCode;
use steward_domain::action::audit::AuditRecord;
use steward_domain::action::mutation::Mutation;

/// The form that edits a proposal.
pub(crate) struct ProposalEditForm {
    pub(crate) label: String,
    pub(crate) value: String,
    /// The allowed values; empty means any text.
    pub(crate) choices: Vec<String>,
    /// Whether the value stands in the address of the page, as an assistant put it there.
    pub(crate) is_suggested: bool,
}

/// Offers to edit a pending proposal; `None` where a human must make the change by hand. `suggested` is a value that an assistant would rather see.
pub(crate) fn offer_edit(action: &Action, suggested: Option<&str>) -> Option<ProposalEditForm> {
    let change = action.change.as_ref().filter(|_| action.waits && action.confirmable)?;
    let choices = if change.field == "state" { STATES.map(str::to_owned).to_vec() } else { Vec::new() };
    let suggested = suggested.map(str::trim).filter(|value| action.can_take_value(value)).map(str::to_owned);
    let (is_suggested, proposed) = (suggested.is_some(), change.after.clone().or_else(|| change.before.clone()));
    let value = suggested.or(proposed).unwrap_or_default();
    Some(ProposalEditForm { label: format!("{} becomes", change.field), value, choices, is_suggested })
}

/// Reads the proposal of an action and gives it another value.
pub(crate) async fn build_edited_mutation(app: &SharedAppState, id: &str, value: &str) -> Result<Mutation, PageError> {
    let path = app.views.find_record_path(id).await?;
    let root = app.views.root().clone();
    let read = tokio::task::spawn_blocking(move || {
        let snapshot = root.read_file(&path).map_err(|e| e.to_string())?;
        AuditRecord::parse(&snapshot.bytes).map_err(|e| format!("{path}: {e}"))
    });
    let unreadable = |reason: String| PageError::from(ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, reason));
    let draft = read.await.map_err(|e| unreadable(e.to_string()))?.map_err(unreadable)?.draft;
    let state_change = draft.proposed_state.map(|to| Mutation::StateChange { to });
    let proposed = draft.proposal.map(|proposal| proposal.mutation).or(state_change);
    let invalid = |detail: String| PageError::from(ProblemDetails::new(StatusCode::BAD_REQUEST, detail));
    let proposed = proposed.ok_or_else(|| invalid("the action proposes no change, so nothing can be edited".into()))?;
    let edited = proposed.with_value(value.trim());
    edited.map_err(|e| invalid(format!("invalid value for `{}`: {e}", proposed.field())))
}

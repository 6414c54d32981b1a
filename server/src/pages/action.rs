//! The page "Why": one action with everything that decided it.
//!
//! It reads only. All values come from the audit record, as they were when the action was decided. No gate is evaluated
//! again.

use super::PageError;
use super::PageFrame;
use super::card::{self, ActionCard, read_cards};
use super::done::DoneNotice;
use super::edit::{self, ProposalEditForm};
use super::render_page;
use crate::access::AuthenticatedCaller;
use crate::api::problem::ProblemDetails;
use crate::http::app::{NO_SUCH_PAGE, SharedAppState};
use crate::views::action::ActionDetail;
use crate::views::{quote, why};
use askama::Template;
use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use chrono::Utc;
use serde::Deserialize;
use serde_json::Value;

pub(super) type ActionIdPath = Result<Path<String>, PathRejection>;

#[derive(Deserialize)]
pub(crate) struct ActionPageQuery {
    /// The id of the record that the last form wrote; empty if none was sent.
    #[serde(default)]
    done: String,
    /// A value that an assistant suggests instead of the proposed one.
    set: Option<String>,
}

#[derive(Template)]
#[template(path = "action.html")]
struct ActionPage {
    page: PageFrame,
    done: Option<DoneNotice>,
    card: ActionCard,
    detail: ActionDetail,
    would_change: Vec<String>,
    /// Each source with its weight, 0.00 to 1.00.
    weighed: Vec<(String, String)>,
    /// Each changed field with its value before.
    prior: Vec<(String, String)>,
    /// The URL of the workflow run in the Temporal UI.
    run: Option<String>,
    followed: Vec<ActionCard>,
    edit: Option<ProposalEditForm>,
}

pub(crate) async fn show_action(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
    id: ActionIdPath,
    Query(query): Query<ActionPageQuery>,
) -> Result<Response, PageError> {
    let detail = app.views.read_detail(&require_action_id(id)?).await?;
    let card = read_card(&app, &detail).await?;
    let followers = match detail.action.id.clone().try_into() {
        Ok(id) => app.views.actions().list_resolutions(&id).await?,
        Err(_) => Vec::new(),
    };
    let ui = app.read_settings().temporal_ui;
    let run = detail.workflow.as_ref().zip(ui.as_ref());
    let action_page = ActionPage {
        done: DoneNotice::read(&app, &query.done, Utc::now()).await?,
        would_change: why::explain_closed_gates(&detail.action),
        weighed: detail
            .source_contributions
            .iter()
            .map(|(name, share)| (name.clone(), format!("{share:.2}")))
            .collect(),
        prior: detail
            .prior_frontmatter
            .iter()
            .map(|(field, value)| (field.clone(), format_field_value(Some(value))))
            .collect(),
        run: run.map(|(workflow, ui)| crate::views::build_run_url(ui, &workflow.id, &workflow.run_id)),
        followed: read_cards(&app.views, followers).await?,
        edit: edit::offer_edit(&detail.action, query.set.as_deref()),
        page: PageFrame::load(&app, &caller, "", &uri).await?,
        card,
        detail,
    };
    Ok(render_page(&action_page))
}

pub(super) fn require_action_id(id: ActionIdPath) -> Result<String, PageError> {
    let not_found = |_| PageError::from(ProblemDetails::new(StatusCode::NOT_FOUND, NO_SUCH_PAGE));
    id.map(|Path(id)| id).map_err(not_found)
}

pub(super) async fn read_card(app: &SharedAppState, detail: &ActionDetail) -> Result<ActionCard, PageError> {
    let action = quote::complete_quotes(app.views.root(), vec![detail.action.clone()]).await?;
    let cards = card::build_cards(&app.views, action, Utc::now()).await?;
    let not_found = || ProblemDetails::new(StatusCode::NOT_FOUND, NO_SUCH_PAGE);
    cards.into_iter().next().ok_or_else(|| not_found().into())
}

pub(super) fn format_field_value(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "not set".into(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

//! Several pending proposals of one source and one class: shown on one page, then resolved with one click.
//!
//! The form names each proposal that was shown, so a proposal that arrives meanwhile is not resolved. Each one is
//! accepted or refused by itself, and the result page lists every outcome.

use super::PageError;
use super::PageFrame;
use super::card::{ActionCard, read_cards};
use super::form::DashboardForm;
use super::render_page;
use super::render_refusal;
use crate::access::AuthenticatedCaller;
use crate::api::problem::ProblemDetails;
use crate::http::app::SharedAppState;
use askama::Template;
use axum::Extension;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Form, Query, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use chrono::Utc;
use serde::Deserialize;
use steward_domain::action::mutation::MutationClass;
use steward_domain::action::undo::ResolutionKind;
use steward_vault::index::{ActionCluster, ActionRow};
use steward_workflows::ResolveBatchInput;
use steward_workflows::activities::ResolveOutput;

/// Most proposals on one page, and in one form: as many as a person can review.
pub(super) const CARDS: usize = 100;

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
pub(crate) struct BatchQuery {
    /// The key of the source, as in its instinct record.
    pub(super) source: String,
    class: String,
    /// The id of an earlier batch, instead of a source and a class.
    pub(super) batch_id: String,
}

impl BatchQuery {
    pub(super) fn is_for_cluster(&self, cluster: &ActionCluster) -> bool {
        cluster.source == self.source && cluster.class.map_or("", MutationClass::as_str) == self.class
    }
}

pub(super) fn format_class(class: Option<MutationClass>) -> String {
    class.map_or("", MutationClass::as_str).replace('_', " ")
}

#[derive(Template)]
#[template(path = "batch.html")]
struct BatchPage {
    page: PageFrame,
    about: String,
    count: u64,
    confirmable: usize,
    cards: Vec<ActionCard>,
}

pub(crate) async fn show_batch(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
    Query(query): Query<BatchQuery>,
) -> Result<Response, PageError> {
    let clusters = app.views.actions().list_pending_clusters(1, Utc::now()).await?;
    let found = clusters.into_iter().find(|cluster| query.is_for_cluster(cluster));
    let page = PageFrame::load(&app, &caller, "today", &uri).await?;
    let Some(found) = found else {
        let about = format!("{} ({})", query.source, query.class.replace('_', " "));
        return Ok(render_page(&BatchPage { page, about, count: 0, confirmable: 0, cards: Vec::new() }));
    };
    let mut rows: Vec<ActionRow> = Vec::new();
    for id in found.ids.iter().take(CARDS) {
        rows.extend(app.views.actions().action_by_id(id).await?);
    }
    let cards = read_cards(&app.views, rows).await?;
    Ok(render_page(&BatchPage {
        page,
        about: format!("{} ({})", found.name, format_class(found.class)),
        count: found.count,
        confirmable: cards.iter().filter(|card| card.action.confirmable).count(),
        cards,
    }))
}

/// Selects the actions that a form resolves. A change that a ceiling of `ask` leaves to a human (`by_hand`) can be
/// dismissed but not confirmed.
fn select_action_ids(fields: Vec<(String, String)>, kind: &str) -> Vec<String> {
    let is_selected = |name: &str| name == "id" || (name == "by_hand" && kind != "confirm");
    fields.into_iter().filter(|(name, _)| is_selected(name)).map(|(_, id)| id).collect()
}

/// The outcome of one resolution of a batch.
struct BatchResultRow {
    id: String,
    /// What was done, or the reason of the refusal.
    outcome: String,
    refused: bool,
}

#[derive(Template)]
#[template(path = "answered.html")]
struct BatchResultPage {
    page: PageFrame,
    title: String,
    rows: Vec<BatchResultRow>,
}

pub(crate) async fn resolve_batch(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, PageError> {
    let body = body.map_err(|e| PageError::from(ProblemDetails::new(e.status(), e.body_text())))?;
    let invalid = |detail: &str| PageError::from(ProblemDetails::new(StatusCode::BAD_REQUEST, detail));
    let fields: Vec<(String, String)> = serde_urlencoded::from_bytes(&body).map_err(|_| invalid("invalid form"))?;
    let form: DashboardForm = serde_urlencoded::from_bytes(&body).map_err(|_| invalid("invalid form"))?;
    let form = DashboardForm::verify_form(Ok(Form(form)), &caller)?;
    let actions = select_action_ids(fields, &form.kind);
    if actions.is_empty() || actions.len() > CARDS {
        return Err(invalid("a batch must name 1 to 100 actions"));
    }
    let kind = match form.kind.as_str() {
        "confirm" => ResolutionKind::Confirm,
        "dismiss" => ResolutionKind::Dismiss,
        "undo" => ResolutionKind::Undo,
        _ => return Err(invalid("`kind` must be confirm, dismiss or undo")),
    };
    let result = app
        .resolution_client()
        .request_batch_resolution(ResolveBatchInput::new(kind, actions, caller.name.clone(), form.trimmed_reason()))
        .await;
    let batch = match result {
        Ok(batch) => batch,
        Err(e) => return Ok(render_refusal(&ProblemDetails::from(e), Some("/".to_owned()))),
    };
    let verb = crate::temporal::resolve::describe_resolution(kind);
    let refused = batch.count_refused();
    let title = match refused {
        0 => format!("{} {verb}", batch.resolutions.len()),
        _ => format!("{} {verb}, {refused} refused", batch.resolutions.len() - refused),
    };
    let rows = batch.resolutions.into_iter().map(|resolution| match resolution.resolution {
        ResolveOutput::Done { target, .. } => {
            BatchResultRow { id: resolution.action, outcome: format!("{verb}: {target}"), refused: false }
        }
        ResolveOutput::Refused { message, .. } => {
            BatchResultRow { id: resolution.action, outcome: message, refused: true }
        }
    });
    let page = PageFrame::load(&app, &caller, "today", &uri).await?;
    Ok(render_page(&BatchResultPage { page: page.with_path("/"), title, rows: rows.collect() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_is_left_to_a_human_is_dismissed_with_the_others_and_never_confirmed() {
        let pair = |name: &str, id: &str| (name.to_owned(), id.to_owned());
        let form = || vec![pair("id", "a"), pair("by_hand", "b"), pair("kind", "c"), pair("id", "d")];
        assert_eq!(select_action_ids(form(), "confirm"), ["a", "d"]);
        assert_eq!(select_action_ids(form(), "dismiss"), ["a", "b", "d"]);
    }
}

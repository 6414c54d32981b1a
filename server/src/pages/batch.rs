//! Several that wait, of one source and one class: seen together, then answered together.
//!
//! What is answered is what was seen: the form names each of them, so one that came meanwhile is not among them. Each is
//! taken or refused by itself, and told.

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
use serde::Deserialize;
use steward_domain::action::mutation::MutationClass;
use steward_domain::action::undo::ResolutionKind;
use steward_vault::index::{ActionCluster, ActionRow};
use steward_workflows::ResolveBatchInput;
use steward_workflows::activities::ResolveOutput;

/// How many are answered at once: what a person can look over.
pub(super) const CARDS: usize = 100;

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
pub(crate) struct BatchQuery {
    /// The name by which trust goes.
    pub(super) source: String,
    class: String,
    /// Instead of both, what was answered with one click.
    pub(super) together: String,
}

impl BatchQuery {
    pub(super) fn is_for_cluster(&self, one: &ActionCluster) -> bool {
        one.source == self.source && one.class.map_or("", MutationClass::as_str) == self.class
    }
}

pub(super) fn format_class(class: Option<MutationClass>) -> String {
    class.map_or("", MutationClass::as_str).replace('_', " ")
}

#[derive(Template)]
#[template(path = "together.html")]
struct BatchPage {
    page: PageFrame,
    what: String,
    count: u64,
    confirmable: usize,
    cards: Vec<ActionCard>,
}

pub(crate) async fn show_batch(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
    Query(asked): Query<BatchQuery>,
) -> Result<Response, PageError> {
    let found = app.index.list_pending_clusters(1).await?.into_iter().find(|one| asked.is_for_cluster(one));
    let page = PageFrame::load(&app, &caller, "today", &uri).await?;
    let Some(found) = found else {
        let what = format!("{} ({})", asked.source, asked.class.replace('_', " "));
        return Ok(render_page(&BatchPage { page, what, count: 0, confirmable: 0, cards: Vec::new() }));
    };
    let mut rows: Vec<ActionRow> = Vec::new();
    for id in found.ids.iter().take(CARDS) {
        rows.extend(app.index.action_by_id(id).await?);
    }
    let cards = read_cards(&app.root, &app.index, rows).await?;
    Ok(render_page(&BatchPage {
        page,
        what: format!("{} ({})", found.name, format_class(found.class)),
        count: found.count,
        confirmable: cards.iter().filter(|card| card.action.confirmable).count(),
        cards,
    }))
}

/// Which ones an answer is for: what a ceiling of `ask` leaves to a human's own hand is not confirmed.
fn select_action_ids(pairs: Vec<(String, String)>, kind: &str) -> Vec<String> {
    let is_one = |name: &str| name == "id" || (name == "by_hand" && kind != "confirm");
    pairs.into_iter().filter(|(name, _)| is_one(name)).map(|(_, id)| id).collect()
}

/// What came of each.
struct BatchResultRow {
    id: String,
    /// In words; of a refusal why.
    says: String,
    refused: bool,
}

#[derive(Template)]
#[template(path = "answered.html")]
struct BatchResultPage {
    page: PageFrame,
    title: String,
    came: Vec<BatchResultRow>,
}

pub(crate) async fn resolve_batch(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, PageError> {
    let body = body.map_err(|e| PageError::from(ProblemDetails::new(e.status(), e.body_text())))?;
    let wrong = |detail: &str| PageError::from(ProblemDetails::new(StatusCode::BAD_REQUEST, detail));
    let pairs: Vec<(String, String)> = serde_urlencoded::from_bytes(&body).map_err(|_| wrong("not a form of ours"))?;
    let said: DashboardForm = serde_urlencoded::from_bytes(&body).map_err(|_| wrong("not a form of ours"))?;
    let said = DashboardForm::verify_form(Ok(Form(said)), &caller)?;
    let actions = select_action_ids(pairs, &said.kind);
    if actions.is_empty() || actions.len() > CARDS {
        return Err(wrong("say which ones: 1 to 100 of them"));
    }
    let kind = match said.kind.as_str() {
        "confirm" => ResolutionKind::Confirm,
        "dismiss" => ResolutionKind::Dismiss,
        "undo" => ResolutionKind::Undo,
        _ => return Err(wrong("the answers to several are confirm, dismiss and undo")),
    };
    let asked = app
        .resolution_client()
        .request_batch_resolution(ResolveBatchInput::new(kind, actions, caller.name.clone(), said.trimmed_reason()))
        .await;
    let all = match asked {
        Ok(all) => all,
        Err(e) => return Ok(render_refusal(&ProblemDetails::from(e), Some("/".to_owned()))),
    };
    let did = crate::temporal::resolve::describe_resolution(kind);
    let refused = all.count_refused();
    let title = match refused {
        0 => format!("{} {did}", all.answers.len()),
        _ => format!("{} {did}, {refused} refused", all.answers.len() - refused),
    };
    let came = all.answers.into_iter().map(|one| match one.answered {
        ResolveOutput::Done { target, .. } => {
            BatchResultRow { id: one.action, says: format!("{did}: {target}"), refused: false }
        }
        ResolveOutput::Refused { message, .. } => BatchResultRow { id: one.action, says: message, refused: true },
    });
    let page = PageFrame::load(&app, &caller, "today", &uri).await?;
    Ok(render_page(&BatchResultPage { page: page.with_path("/"), title, came: came.collect() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_to_a_human_is_dismissed_with_the_others_and_never_confirmed() {
        let pair = |name: &str, id: &str| (name.to_owned(), id.to_owned());
        let form = || vec![pair("id", "a"), pair("by_hand", "b"), pair("kind", "c"), pair("id", "d")];
        assert_eq!(select_action_ids(form(), "confirm"), ["a", "d"]);
        assert_eq!(select_action_ids(form(), "dismiss"), ["a", "b", "d"]);
    }
}

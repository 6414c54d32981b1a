//! A question to a wiki, and the page of its answer, which can be kept.
//!
//! The process that holds the vault answers and keeps the answer. The page shows its text as plain text.

use super::{WikiPath, no_such_page, read_blocking};
use crate::access::AuthenticatedCaller;
use crate::api::problem::ProblemDetails;
use crate::http::app::SharedAppState;
use crate::pages::form::DashboardForm;
use crate::pages::moment::Moment;
use crate::pages::{PageError, PageFrame, render_page, render_refusal};
use askama::Template;
use axum::Extension;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use chrono::Utc;
use std::time::Duration;
use steward_domain::wiki::query::{FiledKind, MAX_QUESTION, WikiAnswer, number_marks};
use steward_vault::wiki::answers::read_answers;
use steward_workflows::{FileAnswerInput, IngestOutput, QueryInput, QueryOutput};

/// How long a browser waits for an answer: 15 min, as three calls of a model may take.
const PATIENCE: Duration = Duration::from_secs(900);

#[derive(Template)]
#[template(path = "wiki_answer.html")]
struct AnswerPage {
    page: PageFrame,
    answer: WikiAnswer,
    at: Moment,
    /// The answer with its marks as numbers.
    text: String,
    unknown: String,
}

/// Asks a wiki, and shows the answer.
pub(crate) async fn ask_wiki(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    wiki: WikiPath<String>,
    form: Result<Form<DashboardForm>, FormRejection>,
) -> Result<Response, PageError> {
    let form = DashboardForm::verify_form(form, &caller)?;
    let Path(wiki) = wiki.map_err(|_| no_such_page())?;
    let back = Some(format!("/wikis/{wiki}"));
    let question = form.value.trim().to_owned();
    if question.is_empty() || question.chars().count() > MAX_QUESTION {
        let message = format!("a question has 1 to {MAX_QUESTION} characters");
        return Ok(refuse(StatusCode::BAD_REQUEST.as_u16(), message, back));
    }
    let input = QueryInput { wiki: wiki.clone(), question, by: caller.name, at: Utc::now() };
    Ok(match app.resolution_client().request_answer(input, PATIENCE).await {
        Ok(QueryOutput::Answered { answer }) => {
            Redirect::to(&format!("/wikis/{wiki}/answers/{answer}")).into_response()
        }
        Ok(QueryOutput::Refused { status, message }) => refuse(status, message, back),
        Err(e) => render_refusal(&ProblemDetails::from(e), back),
    })
}

pub(crate) async fn show_answer(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    uri: Uri,
    names: WikiPath<(String, String)>,
) -> Result<Response, PageError> {
    let Path((wiki, id)) = names.map_err(|_| no_such_page())?;
    let kept = read_blocking(&app, move |root| read_answers(&root, &wiki)).await?;
    let answer = kept.into_iter().find(|answer| answer.id == id).ok_or_else(no_such_page)?;
    Ok(render_page(&AnswerPage {
        page: PageFrame::load(&app, &caller, "wikis", &uri).await?,
        at: Moment(answer.at),
        text: number_marks(&answer.text, &answer.citations),
        unknown: answer.unknown.join(", "),
        answer,
    }))
}

/// Keeps an answer as a page.
pub(crate) async fn save_answer(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    names: WikiPath<(String, String)>,
    form: Result<Form<DashboardForm>, FormRejection>,
) -> Result<Response, PageError> {
    let form = DashboardForm::verify_form(form, &caller)?;
    let Path((wiki, answer)) = names.map_err(|_| no_such_page())?;
    let Ok(kind) = form.kind.parse::<FiledKind>() else {
        return Err(ProblemDetails::new(StatusCode::BAD_REQUEST, "`kind` must be qa, insight or archive").into());
    };
    let back = Some(form.return_url().to_owned());
    let input = FileAnswerInput { wiki: wiki.clone(), answer, kind, by: caller.name, at: Utc::now() };
    Ok(match app.resolution_client().request_filing(input, PATIENCE).await {
        Ok(IngestOutput::Committed { run, .. } | IngestOutput::Pending { run }) => {
            Redirect::to(&format!("/wikis/{wiki}/runs/{}", run.short())).into_response()
        }
        Ok(IngestOutput::Nothing { reason }) => refuse(StatusCode::CONFLICT.as_u16(), reason, back),
        Ok(IngestOutput::Refused { status, message, .. }) => refuse(status, message, back),
        Err(e) => render_refusal(&ProblemDetails::from(e), back),
    })
}

fn refuse(status: u16, message: String, back: Option<String>) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::CONFLICT);
    render_refusal(&ProblemDetails::new(status, message), back)
}

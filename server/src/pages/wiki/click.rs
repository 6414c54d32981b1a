//! The form on the page of a run: approve, reject, take back.
//!
//! Only a person in a session approves, and only what their page showed: the form sends the hash of it.

use super::no_such_page;
use crate::access::{AuthenticatedCaller, CallerProof};
use crate::api::problem::ProblemDetails;
use crate::http::app::SharedAppState;
use crate::pages::form::DashboardForm;
use crate::pages::wiki::{WikiPath, read_blocking};
use crate::pages::{PageError, render_refusal};
use crate::views::wiki::find_wiki_run;
use axum::Extension;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use chrono::Utc;
use steward_domain::action::plan::ContentHash;
use steward_domain::wiki::run::RunId;
use steward_workflows::{WikiRequest, WikiRunInput, WikiRunOutput};

pub(crate) async fn resolve_run(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    names: WikiPath<(String, String)>,
    form: Result<Form<DashboardForm>, FormRejection>,
) -> Result<Response, PageError> {
    let form = DashboardForm::verify_form(form, &caller)?;
    let Path((wiki, name)) = names.map_err(|_| no_such_page())?;
    let found = read_blocking(&app, move |root| find_wiki_run(&root, &name)).await?;
    let run = found.filter(|view| view.row.wiki == wiki).and_then(|view| view.row.run.parse::<RunId>().ok());
    let run = run.ok_or_else(no_such_page)?;
    let refuse = |status, detail: &str| PageError::from(ProblemDetails::new(status, detail));
    let request = match form.kind.as_str() {
        "approve" => {
            if !matches!(caller.proof, CallerProof::Session { .. }) {
                return Err(refuse(StatusCode::FORBIDDEN, "only a person who is logged in approves a run"));
            }
            let staged = ContentHash::parse(&form.value);
            let staged =
                staged.ok_or_else(|| refuse(StatusCode::BAD_REQUEST, "`value` must be the hash of the run"))?;
            WikiRequest::Approve { run, staged, override_reason: None, in_terminal: false }
        }
        "reject" => WikiRequest::Reject { run, reason: form.trimmed_reason() },
        "revert" => WikiRequest::Revert { run, keep_edited: false, reason: form.trimmed_reason() },
        "revert_others" => WikiRequest::Revert { run, keep_edited: true, reason: form.trimmed_reason() },
        _ => return Err(refuse(StatusCode::BAD_REQUEST, "`kind` must be approve, reject, revert or revert_others")),
    };
    let input = WikiRunInput { wiki, by: caller.name, at: Utc::now(), request };
    let back = Some(form.return_url().to_owned());
    Ok(match app.resolution_client().request_wiki_run(input).await {
        Ok(WikiRunOutput::Done { .. }) => Redirect::to(form.return_url()).into_response(),
        Ok(WikiRunOutput::Refused { status, message }) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::CONFLICT);
            render_refusal(&ProblemDetails::new(status, message), back)
        }
        Err(e) => render_refusal(&ProblemDetails::from(e), back),
    })
}

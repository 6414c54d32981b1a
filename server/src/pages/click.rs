//! What a click asks for: an answer to an action, the brake.
//!
//! An answer is asked of Temporal and waited for; then the page that was left comes again and says what was done, or a
//! page with the status of the refusal says why not. The brake is written here, without asking anybody.

use super::PageError;
use super::edit;
use super::form::DashboardForm;
use super::render_refusal;
use crate::access::AuthenticatedCaller;
use crate::api::problem::ProblemDetails;
use crate::http::app::SharedAppState;
use axum::Extension;
use axum::extract::rejection::{FormRejection, PathRejection};
use axum::extract::{Form, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use chrono::Utc;
use steward_domain::action::undo::ResolutionKind;
use steward_domain::time::format_millis;
use steward_vault::files::root::VaultRoot;
use steward_vault::gates::stop::{self, FleetStop, StopFileError};
use steward_workflows::activities::{ResolveInput, ResolveOutput};

type DashboardFormResult = Result<Form<DashboardForm>, FormRejection>;

pub(crate) async fn resolve_action(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    id: Result<Path<String>, PathRejection>,
    form: DashboardFormResult,
) -> Result<Response, PageError> {
    let said = DashboardForm::verify_form(form, &caller)?;
    let Path(action) = id.map_err(|e| PageError::from(ProblemDetails::new(e.status(), e.body_text())))?;
    let (kind, edited) = match said.kind.as_str() {
        "undo" => (ResolutionKind::Undo, None),
        "confirm" => (ResolutionKind::Confirm, None),
        "edit" => (ResolutionKind::Confirm, Some(edit::build_edited_mutation(&app, &action, &said.value).await?)),
        "dismiss" => (ResolutionKind::Dismiss, None),
        _ => {
            return Err(ProblemDetails::new(
                StatusCode::BAD_REQUEST,
                "the answers are undo, confirm, edit and dismiss",
            )
            .into());
        }
    };
    let asked = app
        .resolution_client()
        .request_resolution(ResolveInput {
            kind,
            action,
            by: caller.name,
            reason: said.trimmed_reason(),
            edited,
            together: None,
        })
        .await;
    let back = Some(said.return_url().to_owned());
    Ok(match asked {
        Ok(ResolveOutput::Done { action_id, .. }) => {
            Redirect::to(&said.return_url_with_result(action_id.as_str())).into_response()
        }
        Ok(ResolveOutput::Refused { status, refusal: why, message }) => {
            render_refusal(&ProblemDetails::from_refusal(&why, status, message), back)
        }
        Err(e) => render_refusal(&ProblemDetails::from(e), back),
    })
}

pub(crate) async fn stop_fleet(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    form: DashboardFormResult,
) -> Result<Response, PageError> {
    let said = DashboardForm::verify_form(form, &caller)?;
    let stop = FleetStop { at: format_millis(Utc::now()), by: caller.name, reason: said.trimmed_reason() };
    tracing::warn!("stopped by {}", stop.by.escape_debug());
    apply_stop_change(&app, &said, move |root| stop::stop_fleet(root, &stop)).await
}

pub(crate) async fn resume_fleet(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    form: DashboardFormResult,
) -> Result<Response, PageError> {
    let said = DashboardForm::verify_form(form, &caller)?;
    let by = FleetStop { at: format_millis(Utc::now()), by: caller.name, reason: said.trimmed_reason() };
    tracing::warn!("resumed by {}", by.by.escape_debug());
    apply_stop_change(&app, &said, move |root| stop::resume_fleet(root, &by).map(drop)).await
}

async fn apply_stop_change(
    app: &SharedAppState,
    said: &DashboardForm,
    act: impl FnOnce(&VaultRoot) -> Result<(), StopFileError> + Send + 'static,
) -> Result<Response, PageError> {
    let root = app.root.clone();
    let acted = tokio::task::spawn_blocking(move || act(&root).map_err(|e| e.to_string())).await;
    let failed = match acted {
        Ok(Ok(())) => return Ok(Redirect::to(said.return_url()).into_response()),
        Ok(Err(e)) => e,
        Err(e) => e.to_string(),
    };
    tracing::error!("the brake failed: {failed}");
    Err(ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, failed).into())
}

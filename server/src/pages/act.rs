//! What a click asks for: an answer to an action, the brake.
//!
//! An answer is asked of Temporal and waited for; then the page that was left comes again and says what was done, or a
//! page with the status of the refusal says why not. The brake is written here, without asking anybody.

use super::form::Said;
use super::{Oops, edit, refusal};
use crate::access::Caller;
use crate::api::problem::Problem;
use crate::app::Shared;
use axum::Extension;
use axum::extract::rejection::{FormRejection, PathRejection};
use axum::extract::{Form, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use chrono::Utc;
use steward_domain::time::format_millis;
use steward_domain::undo::ResolutionKind;
use steward_vault::brake::{self, FleetStop, StopFileError};
use steward_vault::root::VaultRoot;
use steward_workflows::activities::{ResolveInput, ResolveOutput};

type Filled = Result<Form<Said>, FormRejection>;

pub(crate) async fn answer(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    id: Result<Path<String>, PathRejection>,
    form: Filled,
) -> Result<Response, Oops> {
    let said = Said::checked(form, &caller)?;
    let Path(action) = id.map_err(|e| Oops::from(Problem::new(e.status(), e.body_text())))?;
    let (kind, edited) = match said.kind.as_str() {
        "undo" => (ResolutionKind::Undo, None),
        "confirm" => (ResolutionKind::Confirm, None),
        "edit" => (ResolutionKind::Confirm, Some(edit::chosen(&app, &action, &said.value).await?)),
        "dismiss" => (ResolutionKind::Dismiss, None),
        _ => {
            return Err(Problem::new(StatusCode::BAD_REQUEST, "the answers are undo, confirm, edit and dismiss").into());
        }
    };
    let asked = app
        .answers
        .ask(ResolveInput { kind, action, by: caller.name, reason: said.reason(), edited, together: None })
        .await;
    let back = Some(said.back().to_owned());
    Ok(match asked {
        Ok(ResolveOutput::Done { action_id, .. }) => Redirect::to(&said.back_with(action_id.as_str())).into_response(),
        Ok(ResolveOutput::Refused { status, refusal: why, message }) => {
            refusal(&Problem::refused(&why, status, message), back)
        }
        Err(e) => refusal(&Problem::from(e), back),
    })
}

pub(crate) async fn stop(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    form: Filled,
) -> Result<Response, Oops> {
    let said = Said::checked(form, &caller)?;
    let stop = FleetStop { at: format_millis(Utc::now()), by: caller.name, reason: said.reason() };
    tracing::warn!("stopped by {}", stop.by.escape_debug());
    brake(&app, &said, move |root| brake::stop_fleet(root, &stop)).await
}

pub(crate) async fn resume(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    form: Filled,
) -> Result<Response, Oops> {
    let said = Said::checked(form, &caller)?;
    let by = FleetStop { at: format_millis(Utc::now()), by: caller.name, reason: said.reason() };
    tracing::warn!("resumed by {}", by.by.escape_debug());
    brake(&app, &said, move |root| brake::resume_fleet(root, &by).map(drop)).await
}

async fn brake(
    app: &Shared,
    said: &Said,
    act: impl FnOnce(&VaultRoot) -> Result<(), StopFileError> + Send + 'static,
) -> Result<Response, Oops> {
    let root = app.root.clone();
    let acted = tokio::task::spawn_blocking(move || act(&root).map_err(|e| e.to_string())).await;
    let failed = match acted {
        Ok(Ok(())) => return Ok(Redirect::to(said.back()).into_response()),
        Ok(Err(e)) => e,
        Err(e) => e.to_string(),
    };
    tracing::error!("the brake failed: {failed}");
    Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, failed).into())
}

//! The forms that change something: resolving one action, stopping and resuming the vault.
//!
//! A resolution is requested from Temporal, and the handler waits for it. Then the browser returns to its page, which
//! shows the result, or it gets a page with the status and the reason of the refusal. Stop and resume write the stop
//! file here and ask no other process.

use super::PageError;
use super::edit;
use super::form::DashboardForm;
use super::render_refusal;
use crate::access::{AuthenticatedCaller, CallerProof};
use crate::api::problem::ProblemDetails;
use crate::http::app::{SharedAppState, check_may_resolve};
use crate::temporal::service_pause::find_service_pause;
use crate::temporal::trigger::{self, TriggerOutcome};
use axum::Extension;
use axum::extract::rejection::{FormRejection, PathRejection};
use axum::extract::{Form, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use chrono::Utc;
use steward_domain::action::audit::ResolverKind;
use steward_domain::action::mutation::Mutation;
use steward_domain::action::undo::{ResolutionKind, ResolutionRefusal};
use steward_domain::record::entity::RecordState;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::time::format_millis;
use steward_vault::files::identity::VaultIdentity;
use steward_vault::files::root::VaultRoot;
use steward_vault::gates::stop::{self, StopFileError, VaultStop};
use steward_workflows::activities::{ResolveInput, ResolveOutput};
use steward_workflows::schedule_id;

type DashboardFormResult = Result<Form<DashboardForm>, FormRejection>;

pub(crate) async fn resolve_action(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    id: Result<Path<String>, PathRejection>,
    form: DashboardFormResult,
) -> Result<Response, PageError> {
    let form = DashboardForm::verify_form(form, &caller)?;
    let Path(action) = id.map_err(|e| PageError::from(ProblemDetails::new(e.status(), e.body_text())))?;
    let set_state = |to| (ResolutionKind::Confirm, Some(Mutation::StateChange { to }));
    let (kind, edited) = match form.kind.as_str() {
        "undo" => (ResolutionKind::Undo, None),
        "confirm" => (ResolutionKind::Confirm, None),
        "edit" => (ResolutionKind::Confirm, Some(edit::build_edited_mutation(&app, &action, &form.value).await?)),
        "dismiss" => (ResolutionKind::Dismiss, None),
        "set_done" => set_state(RecordState::Done),
        "set_archived" => set_state(RecordState::Archived),
        "right" => (ResolutionKind::Right, None),
        "right_done" => (ResolutionKind::RightDone, None),
        "wrong" => (ResolutionKind::Wrong, None),
        "reopen" => (ResolutionKind::Reopen, None),
        _ => {
            let detail = "`kind` must be undo, confirm, edit, dismiss, set_done, set_archived, right, right_done, wrong or \
                          reopen";
            return Err(ProblemDetails::new(StatusCode::BAD_REQUEST, detail).into());
        }
    };
    if kind.needs_person() && !matches!(caller.proof, CallerProof::Session { .. }) {
        return Err(ProblemDetails::new(StatusCode::FORBIDDEN, ResolutionRefusal::PersonOnly.to_string()).into());
    }
    let action = match kind {
        ResolutionKind::Undo => {
            let row = app.views.find_action_row(&action).await.map_err(ProblemDetails::from)?;
            check_may_resolve(caller.scope, kind, row.kind)?;
            row.id.to_string()
        }
        _ => action,
    };
    let result = app
        .resolution_client()
        .request_resolution(ResolveInput {
            kind,
            action,
            by: caller.name,
            reason: form.trimmed_reason(),
            edited,
            batch_id: None,
            resolved_by: ResolverKind::Human,
        })
        .await;
    let back = Some(form.return_url().to_owned());
    Ok(match result {
        Ok(ResolveOutput::Done { action_id, .. }) => {
            Redirect::to(&form.return_url_with_result(action_id.as_str())).into_response()
        }
        Ok(ResolveOutput::Refused { status, refusal, message }) => {
            render_refusal(&ProblemDetails::from_refusal(&refusal, status, message), back)
        }
        Err(e) => render_refusal(&ProblemDetails::from(e), back),
    })
}

/// Starts a check of one matter now, as its schedule would.
pub(crate) async fn check_matter(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    form: DashboardFormResult,
) -> Result<Response, PageError> {
    let form = DashboardForm::verify_form(form, &caller)?;
    let back = Some(form.return_url().to_owned());
    let refuse = |status, detail: &str| render_refusal(&ProblemDetails::new(status, detail), back.clone());
    let matter = RecordPath::parse(&form.value).ok();
    let kind = match &matter {
        Some(matter) => app.views.read().find_note_kind(matter).await?,
        None => None,
    };
    let Some(matter) = matter.filter(|_| kind == Some(RecordKind::Matter)) else {
        return Ok(refuse(StatusCode::NOT_FOUND, "there is no such matter"));
    };
    if stop::is_stopped(app.views.root()) {
        return Ok(refuse(StatusCode::CONFLICT, "Steward is stopped. Resume it, then check again."));
    }
    if let Some(pause) = find_service_pause(app.views.root(), &app.views.holder()) {
        return Ok(refuse(StatusCode::SERVICE_UNAVAILABLE, &pause.reason));
    }
    let ours = VaultIdentity::read(app.views.root()).ok().flatten().map(|identity| identity.id);
    Ok(
        match trigger::trigger_schedule(app.temporal.client(), app.temporal.names(), &schedule_id(&matter), ours).await
        {
            Ok(TriggerOutcome::Triggered) => Redirect::to(form.return_url()).into_response(),
            Ok(TriggerOutcome::Paused) => {
                refuse(StatusCode::CONFLICT, "its schedule is paused in Temporal: unpause it there")
            }
            Ok(TriggerOutcome::Missing | TriggerOutcome::OfAnother) => {
                refuse(StatusCode::CONFLICT, "it has no schedule yet: a worker makes one when it runs")
            }
            Err(e) => refuse(StatusCode::SERVICE_UNAVAILABLE, &e.to_string()),
        },
    )
}

pub(crate) async fn stop_vault(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    form: DashboardFormResult,
) -> Result<Response, PageError> {
    let form = DashboardForm::verify_form(form, &caller)?;
    let stop = VaultStop { at: format_millis(Utc::now()), by: caller.name, reason: form.trimmed_reason() };
    tracing::warn!("stopped by {}", stop.by.escape_debug());
    apply_stop_change(&app, &form, move |root| stop::stop_vault(root, &stop)).await
}

pub(crate) async fn resume_vault(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    form: DashboardFormResult,
) -> Result<Response, PageError> {
    let form = DashboardForm::verify_form(form, &caller)?;
    let event = VaultStop { at: format_millis(Utc::now()), by: caller.name, reason: form.trimmed_reason() };
    tracing::warn!("resumed by {}", event.by.escape_debug());
    apply_stop_change(&app, &form, move |root| stop::resume_vault(root, &event).map(drop)).await
}

async fn apply_stop_change(
    app: &SharedAppState,
    form: &DashboardForm,
    change: impl FnOnce(&VaultRoot) -> Result<(), StopFileError> + Send + 'static,
) -> Result<Response, PageError> {
    let root = app.views.root().clone();
    let changed = tokio::task::spawn_blocking(move || change(&root).map_err(|e| e.to_string())).await;
    let error = match changed {
        Ok(Ok(())) => return Ok(Redirect::to(form.return_url()).into_response()),
        Ok(Err(e)) => e,
        Err(e) => e.to_string(),
    };
    tracing::error!("failed to change the stop file: {error}");
    Err(ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, error).into())
}

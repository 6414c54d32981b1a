//! The form by which a person says where a note is that is gone from its place.
//!
//! What they say is kept in the index, and the process that holds the vault records it. The handler waits for that, so
//! that the page which follows shows the note with its history.

use super::PageError;
use super::build_record_url;
use super::form::DashboardForm;
use super::render_refusal;
use crate::access::AuthenticatedCaller;
use crate::api::problem::ProblemDetails;
use crate::http::app::SharedAppState;
use crate::views::parse_typed_path;
use axum::Extension;
use axum::extract::Form;
use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use steward_domain::record::path::RecordPath;
use steward_vault::action::writer::VaultWriter;
use steward_vault::index::LostNote;

/// A note that is gone, as its page shows it.
pub(crate) struct LostNotePanel {
    /// The notes that could be it.
    pub(crate) candidates: Vec<String>,
}

impl From<LostNote> for LostNotePanel {
    fn from(note: LostNote) -> Self {
        Self { candidates: note.candidates }
    }
}

pub(crate) async fn say_moved(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    form: Result<Form<DashboardForm>, FormRejection>,
) -> Result<Response, PageError> {
    let form = DashboardForm::verify_form(form, &caller)?;
    let back = Some(form.return_url().to_owned());
    let refuse = |status, detail: &str| render_refusal(&ProblemDetails::new(status, detail), back.clone());
    let Ok(old) = RecordPath::parse(&form.note) else {
        return Ok(refuse(StatusCode::BAD_REQUEST, "the form names no note: reload the page"));
    };
    let new = match form.kind.as_str() {
        "deleted" => None,
        "moved" => match parse_typed_path(&form.value) {
            Ok(new) => Some(new),
            Err(_) => {
                return Ok(refuse(
                    StatusCode::BAD_REQUEST,
                    "give the note's path in the vault, such as Folder/Name.md",
                ));
            }
        },
        _ => return Ok(refuse(StatusCode::BAD_REQUEST, "`kind` must be moved or deleted")),
    };
    if !VaultWriter::is_locked(app.views.root()) {
        return Ok(refuse(StatusCode::CONFLICT, "no process serves this vault: start `steward up`, then say it again"));
    }
    if let Err(refusal) = app.keep_move_statement(&old, new.as_ref(), &caller.name).await? {
        return Ok(refuse(StatusCode::CONFLICT, &refusal.to_string()));
    }
    let Some(new) = new else { return Ok(Redirect::to("/").into_response()) };
    if !app.wait_for_said_move(&old).await? {
        let detail = "it is kept, and the process that holds the vault will record it with its next scan";
        return Ok(refuse(StatusCode::ACCEPTED, detail));
    }
    Ok(Redirect::to(&build_record_url(&new)).into_response())
}

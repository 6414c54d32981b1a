//! `GET /healthz` and `GET /readyz`, for whoever starts and watches the process.
//!
//! They are answered to anybody by any name, so they tell nothing about the vault: one word, or what is missing.

use super::problem::Problem;
use crate::app::Shared;
use axum::extract::State;
use axum::http::StatusCode;
use std::time::Duration;

/// How long the index and the server may take to answer: 3 s.
const PATIENCE: Duration = Duration::from_secs(3);

/// The process answers.
#[utoipa::path(get, path = "/healthz", tag = "health", security(()),
    responses((status = 200, description = "It runs", body = String, content_type = "text/plain")))]
pub(crate) async fn healthz() -> &'static str {
    "ok"
}

/// It can do its work: the index can be read and the Temporal server answers.
#[utoipa::path(get, path = "/readyz", tag = "health", security(()),
    responses((status = 200, description = "Ready", body = String, content_type = "text/plain"),
        (status = 503, description = "Not yet; `detail` says what is missing", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn readyz(State(app): State<Shared>) -> Result<&'static str, Problem> {
    let away = |what: &str| Problem::new(StatusCode::SERVICE_UNAVAILABLE, what.to_owned());
    let read = tokio::time::timeout(PATIENCE, app.index.last_sync_at()).await;
    match read {
        Ok(Ok(Some(_))) => {}
        Ok(Ok(None)) => return Err(away("the vault has not been read yet")),
        Ok(Err(_)) | Err(_) => return Err(away("the index cannot be read")),
    }
    if app.answers.is_there(PATIENCE).await { Ok("ready") } else { Err(away("the Temporal server does not answer")) }
}

//! The router of a process that is still starting.
//!
//! The port answers before there is anything to show: that the process lives, and the assets of the page that says so.
//! It must hold no state of the vault.

use super::app::{add_security_headers, respond_with_problem};
use crate::api::problem::ProblemDetails;
use crate::pages;
use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::get;

/// When to try again while the process starts, in seconds.
const START_RETRY_AFTER: u32 = 2;

/// Builds the router that responds until [`super::app::build_router`] has built the real one: `/healthz` says that the
/// process lives, everything else gets a 503.
///
/// The port responds before there is anything to show. So a command that meets a starting server takes its other way at
/// once, and does not wait on a socket that nobody reads.
pub(crate) fn build_starting_router() -> Router {
    Router::new()
        .route("/healthz", get(async || "ok"))
        .route("/assets/{name}", get(pages::serve_asset))
        .fallback(respond_starting)
        .layer(map_response(add_security_headers))
}

async fn respond_starting(method: Method, uri: Uri) -> Response {
    let detail = "Steward is starting and reads the vault first.";
    let problem = ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, detail);
    respond_with_problem(&method, &uri, ProblemDetails { retry_after: Some(START_RETRY_AFTER), ..problem })
}

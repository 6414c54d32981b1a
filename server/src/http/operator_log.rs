//! Records operator events in `.steward/operator.jsonl`, before they are carried out.
//!
//! Resolutions of actions are in the audit chain, and stops are in a log of their own. A request that gives somebody
//! access, or pauses or resumes a stream, is refused if it cannot be recorded. A logout is carried out all the same.

use crate::access::admission::RequestOrigin;
use crate::http::app::AppState;
use chrono::Utc;
use std::io;
use steward_domain::time::format_millis;
use steward_vault::files::operator_log::{self, OperatorEvent, OperatorEventKind, OperatorLogError};

/// Records one event; `on` names its target.
///
/// # Errors
/// [`OperatorLogError`] when it could not be recorded. Then the request must be refused.
pub(crate) async fn record_operator_event(
    app: &AppState,
    by: &str,
    origin: &RequestOrigin,
    act: OperatorEventKind,
    on: String,
) -> Result<(), OperatorLogError> {
    let event = OperatorEvent { at: format_millis(Utc::now()), by: by.to_owned(), act, on, from: Some(origin.from) };
    let root = app.views.root().clone();
    let written = tokio::task::spawn_blocking(move || operator_log::append_event(&root, &event)).await;
    written
        .unwrap_or_else(|e| Err(io::Error::other(e).into()))
        .inspect_err(|e| tracing::error!("failed to record an operator event: {e}"))
}

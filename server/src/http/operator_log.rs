//! Writing down who did what to the house itself: into `.steward/operator.jsonl`, before it is done.
//!
//! Answers to actions are in the audit chain and turns of the brake in its log. What gives anybody more, or takes
//! anything in or keeps it out, is refused where it cannot be written down; who goes is not kept from going.

use crate::access::admission::RequestOrigin;
use crate::http::app::AppState;
use chrono::Utc;
use std::io;
use steward_domain::time::format_millis;
use steward_vault::files::operator_log::{self, OperatorEvent, OperatorEventKind, OperatorLogError};

/// Writes it down; `on` says what it was done to.
///
/// # Errors
/// [`OperatorLogError`] when that failed, and it must not be done.
pub(crate) async fn record_operator_event(
    app: &AppState,
    by: &str,
    met: &RequestOrigin,
    act: OperatorEventKind,
    on: String,
) -> Result<(), OperatorLogError> {
    let act = OperatorEvent { at: format_millis(Utc::now()), by: by.to_owned(), act, on, from: Some(met.from) };
    let root = app.root.clone();
    let written = tokio::task::spawn_blocking(move || operator_log::append_event(&root, &act)).await;
    written
        .unwrap_or_else(|e| Err(io::Error::other(e).into()))
        .inspect_err(|e| tracing::error!("failed to write down what was done: {e}"))
}

//! Runs the work of requests, of calls of tools and of others, on a blocking thread when there is room.
//!
//! All take room alike, so that nobody reads more by resources than by tools.

use super::admission::CallCost;
use super::caller::McpCaller;
use super::error::ToolError;
use super::vault::McpVault;
use rmcp::model::ErrorData;
use std::sync::Arc;
use std::time::Instant;

/// Does work of a caller, when there is room.
///
/// # Errors
/// There is no room now, or the work broke down.
pub(super) async fn run_work<T: Send + 'static>(
    vault: &McpVault,
    caller: &McpCaller,
    cost: CallCost,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ToolError> {
    let permit = vault.limits.admit(&caller.name, cost, Instant::now())?;
    let run = move || {
        // The room is free when the work has ended, also if nobody waits for it any more.
        let _permit = permit;
        work()
    };
    tokio::task::spawn_blocking(run).await.map_err(ToolError::internal)
}

/// Does the work of a request that is no call of a tool, when there is room.
///
/// # Errors
/// Those of the work, and that there is no room now.
pub(crate) async fn run_request<T: Send + 'static>(
    vault: &Arc<McpVault>,
    caller: &McpCaller,
    cost: CallCost,
    work: impl FnOnce(&McpVault, &McpCaller) -> Result<T, ErrorData> + Send + 'static,
) -> Result<T, ErrorData> {
    let (own_vault, own_caller) = (Arc::clone(vault), caller.clone());
    let work = move || work(&own_vault, &own_caller);
    run_work(vault, caller, cost, work).await.map_err(ToolError::into_protocol_error)?
}

//! Runs requests that read files and are no calls of tools, such as those for resources.
//!
//! They take room as calls do, and run on a blocking thread, so that nobody reads more by them than by tools.

use super::admission::CallCost;
use super::caller::McpCaller;
use super::error::ToolError;
use super::vault::McpVault;
use rmcp::model::ErrorData;
use std::sync::Arc;
use std::time::Instant;

/// Does the work of a request, when there is room.
///
/// # Errors
/// Those of the work, and that there is no room now.
pub(crate) async fn run_request<T: Send + 'static>(
    vault: &Arc<McpVault>,
    caller: &McpCaller,
    cost: CallCost,
    work: impl FnOnce(&McpVault, &McpCaller) -> Result<T, ErrorData> + Send + 'static,
) -> Result<T, ErrorData> {
    let permit = vault.limits.admit(&caller.name, cost, Instant::now()).map_err(ToolError::into_protocol_error)?;
    let (vault, caller) = (Arc::clone(vault), caller.clone());
    let run = move || {
        // The room is free when the work has ended, also if nobody waits for it any more.
        let _permit = permit;
        work(&vault, &caller)
    };
    tokio::task::spawn_blocking(run).await.unwrap_or_else(|e| Err(ToolError::internal(e).into_protocol_error()))
}

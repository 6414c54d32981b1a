//! Speaks with one client over standard input and output.
//!
//! Nothing else may write to standard output while it runs. It ends with the input, and gives calls under way a moment.

use super::caller::McpCaller;
use super::handler::{CallerSource, McpHandler};
use super::updates::ChangeSource;
use super::vault::McpVault;
use rmcp::ServiceExt;
use rmcp::transport::io::stdio_pipes;
use std::sync::Arc;

/// Serves one client until it closes the input.
///
/// # Errors
/// The client does not begin as the protocol says, or the pipe breaks.
pub async fn serve_stdio(vault: McpVault, caller: McpCaller) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let handler = McpHandler::new(Arc::new(vault), CallerSource::Fixed(caller), ChangeSource::Files, "stdio");
    let service = handler.serve(stdio_pipes()).await?;
    service.waiting().await?;
    Ok(())
}

//! Runs a call of a tool.
//!
//! Every call passes the same way: the log is opened, the call gets its room, the tool runs on a blocking thread, the answer is given its
//! form, and the line is appended before the answer leaves.

use super::call_log::{LoggedCall, LoggedRequest, hash_arguments};
use super::error::{ToolError, ToolErrorCode};
use super::requests::run_work;
use super::secrets::{remove_tokens, remove_tokens_from_value};
use super::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolVisibility};
use super::vault::McpVault;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject, ProgressNotificationParam};
use rmcp::service::RequestContext;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a client that asked for it learns that its call goes on: twice a second, and four times are allowed.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// Runs a call, and logs it.
pub(super) async fn run_call(
    tool: &ToolDefinition,
    call: ToolCall,
    context: &RequestContext<RoleServer>,
    transport: &'static str,
) -> CallToolResult {
    let (vault, caller) = (Arc::clone(&call.vault), call.caller.clone());
    let request = LoggedRequest::begin(&caller, context, transport);
    let mut log = match vault.log.open(request.ts) {
        Ok(log) => log,
        Err(e) => return ToolError::without_log(&e).into_result(),
    };
    let workspace = call.named_workspace().map(str::to_owned).or_else(|| caller.workspace.clone());
    let args_hash = hash_arguments(&vault.fences, &call.arguments);
    // A cancelled call is logged, and what it began ends by itself.
    let outcome = tokio::select! {
        outcome = run_tool(tool, call) => Some(outcome),
        () = context.ct.cancelled() => None,
        never = report_progress(context) => match never {},
    };
    let (result, word) = match outcome {
        Some(Ok(answer)) => (render(&vault, tool, answer), "ok".to_owned()),
        Some(Err(error)) => {
            let word = match error.code {
                ToolErrorCode::Internal => format!("error:{}", error.code),
                code => format!("refused:{code}"),
            };
            (error.into_result(), word)
        }
        None => (CallToolResult::error(Vec::new()), "cancelled".to_owned()),
    };
    let line = LoggedCall {
        workspace: workspace.as_deref(),
        tool: tool.name,
        args_hash,
        result: word,
        bytes: count_bytes(&result),
    };
    match log.append(&request.end(line)) {
        Ok(()) => result,
        Err(e) => ToolError::without_log(&e).into_result(),
    }
}

/// Reports to a client that asked for it how long its call has run, in seconds. It goes on until the call ends.
async fn report_progress(context: &RequestContext<RoleServer>) -> Infallible {
    let Some(token) = context.meta.get_progress_token() else { return std::future::pending().await };
    let began = Instant::now();
    loop {
        tokio::time::sleep(PROGRESS_INTERVAL).await;
        let progress = ProgressNotificationParam::new(token.clone(), began.elapsed().as_secs_f64());
        // A client that is gone needs no report.
        let _ = context.peer.notify_progress(progress.with_message("seconds")).await;
    }
}

/// Runs a tool that the caller may use, when there is room.
async fn run_tool(tool: &ToolDefinition, call: ToolCall) -> Result<ToolAnswer, ToolError> {
    if tool.check_visibility(&call.caller) != ToolVisibility::Listed {
        let what = format!("your rights do not allow `{}`", tool.name);
        let fix =
            "Whoever runs Steward can grant more: `--allow` of `steward mcp serve`, or a token with another scope";
        return Err(ToolError::new(ToolErrorCode::ScopeTooSmall, what, fix));
    }
    let (run, vault, caller) = (tool.run, Arc::clone(&call.vault), call.caller.clone());
    run_work(&vault, &caller, tool.kind.cost, move || run(&call)).await?
}

/// Gives an answer its form. The text of structured results is the same JSON, in one fence.
pub(super) fn render(vault: &McpVault, tool: &ToolDefinition, answer: ToolAnswer) -> CallToolResult {
    match answer {
        ToolAnswer::Text(blocks) => render_text(vault, &blocks),
        ToolAnswer::TextWithMeta { blocks, meta } => {
            let mut result = render_text(vault, &blocks);
            result.meta = Some(MetaObject(meta));
            result
        }
        ToolAnswer::TextWithImages { blocks, images } => {
            let mut result = render_text(vault, &blocks);
            let pictures = images.into_iter().map(|it| ContentBlock::image(STANDARD.encode(it.bytes), it.media_type));
            result.content.extend(pictures);
            result
        }
        ToolAnswer::Value(mut value) => {
            remove_tokens_from_value(&vault.secrets, &mut value);
            let text = vault.fences.wrap(tool.name, &value.to_string());
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = Some(value);
            result
        }
    }
}

fn render_text(vault: &McpVault, blocks: &[String]) -> CallToolResult {
    let clean = blocks.iter().map(|block| remove_tokens(&vault.secrets, block).into_owned());
    CallToolResult::success(clean.map(ContentBlock::text).collect())
}

/// The size of an answer as it is sent, without the frame of the protocol.
fn count_bytes(result: &CallToolResult) -> u64 {
    serde_json::to_vec(result).map_or(0, |text| text.len() as u64)
}

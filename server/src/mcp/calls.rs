//! Runs a call of a tool.
//!
//! Every call passes the same way: the log is opened, the call gets its room, the tool runs on a blocking thread, the answer is given its
//! form, and the line is appended before the answer leaves. An answer whose line could not be appended says so.

use super::call_log::{LOG_INCOMPLETE, LoggedCall, LoggedRequest, NOTICE_KEY, RUN_ID, hash_arguments};
use super::call_span::open_span;
use super::error::{ToolError, ToolErrorCode};
use super::requests::run_work;
use super::secrets::{remove_tokens, remove_tokens_from_value};
use super::tool::{ToolAnswer, ToolCall, ToolDefinition, ToolVisibility};
use super::vault::McpVault;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, ErrorData, MetaObject, ProgressNotificationParam};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::Instrument;

/// How often a client that asked for it learns that its call goes on: twice a second, and four times are allowed.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);
/// What an answer says whose line could not be appended.
const NO_LINE: &str = "this call has no line in the log";

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
        Err(e) => return ToolError::without_log(&e).into_result(&vault.fences),
    };
    let workspace = find_workspace(&call).map(str::to_owned);
    let named_run = find_named_run(&call).map(str::to_owned);
    let args_hash = hash_arguments(&vault.fences, &call.arguments);
    let span = open_span(tool.name, workspace.as_deref(), &caller.name, context.meta.get_traceparent());
    // A cancelled call is logged, and what it began ends by itself.
    let outcome = tokio::select! {
        outcome = run_tool(tool, call).instrument(span) => Some(outcome),
        () = context.ct.cancelled() => None,
        never = report_progress(context) => match never {},
    };
    let (mut result, word) = match outcome {
        Some(Ok(answer)) => (render(&vault, tool, answer), "ok".to_owned()),
        Some(Err(error)) => {
            let word = match error.code {
                ToolErrorCode::Internal => format!("error:{}", error.code),
                code => format!("refused:{code}"),
            };
            (error.without_tokens(&vault.secrets).into_result(&vault.fences), word)
        }
        None => (CallToolResult::error(Vec::new()), "cancelled".to_owned()),
    };
    let line = LoggedCall {
        workspace: workspace.as_deref(),
        tool: tool.name,
        run_id: find_answered_run(&result).or(named_run.as_deref()),
        args_hash,
        result: word,
        bytes: count_bytes(&result),
    };
    if let Err(e) = log.append_or_owe(&request.end(line)) {
        report_missing_line(&e);
        add_notice(&mut result);
    }
    result
}

/// Logs the call of a tool that is not there for its caller. Returns the error that they get.
pub(super) fn refuse_unknown(
    name: &str,
    call: &ToolCall,
    mut error: ErrorData,
    context: &RequestContext<RoleServer>,
    transport: &'static str,
) -> ErrorData {
    let request = LoggedRequest::begin(&call.caller, context, transport);
    let mut log = match call.vault.log.open(request.ts) {
        Ok(log) => log,
        Err(e) => return ToolError::without_log(&e).into_protocol_error(),
    };
    let line = LoggedCall {
        workspace: find_workspace(call),
        tool: name,
        run_id: find_named_run(call),
        args_hash: hash_arguments(&call.vault.fences, &call.arguments),
        result: "refused:unknown_tool".to_owned(),
        bytes: error.message.len() as u64,
    };
    if let Err(e) = log.append_or_owe(&request.end(line)) {
        report_missing_line(&e);
        error.data = Some(json!({NOTICE_KEY: describe_notice()}));
    }
    error
}

/// The workspace that a call names, or the only one of its caller.
fn find_workspace(call: &ToolCall) -> Option<&str> {
    call.named_workspace().or(call.caller.workspace.as_deref())
}

fn find_named_run(call: &ToolCall) -> Option<&str> {
    call.arguments.get(RUN_ID).and_then(Value::as_str)
}

/// The whole id of the run that an answer is about.
fn find_answered_run(result: &CallToolResult) -> Option<&str> {
    result.structured_content.as_ref()?.get(RUN_ID)?.as_str()
}

pub(super) fn report_missing_line(e: &io::Error) {
    tracing::error!("a call was answered, and its line could not be appended to the log of calls: {e}");
}

/// The notice for programs that a call has no line.
pub(super) fn describe_notice() -> Value {
    json!({"code": LOG_INCOMPLETE, "what": NO_LINE})
}

/// Says in an answer that its call has no line. The text of a structured result is a copy, to which nothing is added.
fn add_notice(result: &mut CallToolResult) {
    result.meta.get_or_insert_default().0.insert(NOTICE_KEY.to_owned(), describe_notice());
    if result.structured_content.is_none() {
        result.content.push(ContentBlock::text(format!("notice {LOG_INCOMPLETE}: {NO_LINE}")));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::WikiRight;
    use crate::mcp::call_log::read_call_log;
    use crate::mcp::caller::McpCaller;
    use crate::mcp::command::{CommandAnswer, call_tool};
    use crate::mcp::error::ERROR_KEY;
    use crate::mcp::fence::FenceKey;
    use crate::mcp::vault::ConnectHolder;
    use chrono::DateTime;
    use futures_util::FutureExt;
    use steward_vault::files::root::VaultRoot;

    #[tokio::test]
    async fn each_call_is_a_line_also_that_of_an_unknown_tool() {
        let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = VaultRoot::open(folder.path()).unwrap();
        let call = async |tool: &str, arguments: Vec<String>| {
            let connect: ConnectHolder = Arc::new(|| async { Err("nobody".to_owned()) }.boxed());
            let vault = McpVault::open(root.clone(), state.path(), connect).unwrap();
            let caller = McpCaller::new("ann".to_owned(), None, &[], WikiRight::Read, false);
            match call_tool(vault, caller, tool, &arguments).await.unwrap() {
                CommandAnswer::Refused(text) => text,
                other => panic!("{other:?}"),
            }
        };
        let unknown = call(&format!("no\u{202e}{}", "x".repeat(100)), Vec::new()).await;
        assert!(unknown.contains("there is no such tool"), "{unknown}");
        let read = call("read", vec!["run_id=3f9a1c22".to_owned(), "path=wiki/x.md".to_owned()]).await;
        assert!(read.contains("workspace_required"), "{read}");
        let lines = read_call_log(&root, DateTime::UNIX_EPOCH).unwrap();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!((&lines[0]["result"], lines[0].get("run_id")), (&json!("refused:unknown_tool"), None));
        let name = lines[0]["tool"].as_str().unwrap();
        assert!(name.starts_with("no\\u{202e}xx") && name.chars().count() == 64, "{name}");
        assert_eq!((&lines[1]["tool"], &lines[1]["run_id"]), (&json!("read"), &json!("3f9a1c22")));
    }

    #[test]
    fn an_answer_without_its_line_says_so_and_keeps_what_it_is() {
        let mut text = CallToolResult::success(vec![ContentBlock::text("x")]);
        add_notice(&mut text);
        assert_eq!(text.meta.as_ref().unwrap().0[NOTICE_KEY]["code"], "log_incomplete");
        let last = &text.content[1].as_text().unwrap().text;
        assert_eq!(last, "notice log_incomplete: this call has no line in the log");
        let mut value = CallToolResult::success(vec![ContentBlock::text("{}")]);
        value.structured_content = Some(json!({"run_id": "3f9a1c22"}));
        add_notice(&mut value);
        assert_eq!((value.content.len(), find_answered_run(&value)), (1, Some("3f9a1c22")));
        assert!(value.meta.unwrap().0.contains_key(NOTICE_KEY));
        let mut refused = ToolError::new(ToolErrorCode::NotFound, "x", "y").into_result(&FenceKey::new("k"));
        add_notice(&mut refused);
        let meta = refused.meta.unwrap();
        assert!(meta.0.contains_key(NOTICE_KEY) && meta.0.contains_key(ERROR_KEY));
    }
}

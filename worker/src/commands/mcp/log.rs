//! `steward mcp log`: shows which tools assistants called, and how each call ended.
//!
//! The log holds no arguments and no content. It is read from the vault's own folder, whether or not a process serves the vault.

use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::cli::table::create_wide_table;
use crate::config::StewardConfig;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use steward_server::mcp::read_call_log;
use steward_vault::files::root::VaultRoot;

/// Without `--since`, the calls of so many hours are shown.
const SHOWN_HOURS: i64 = 24;

pub(super) fn run(
    config: &StewardConfig,
    tool: Option<&str>,
    since: Option<DateTime<Utc>>,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let root = VaultRoot::open(config.vault_folder()?)?;
    let since = since.unwrap_or_else(|| Utc::now() - TimeDelta::hours(SHOWN_HOURS));
    let mut calls = read_call_log(&root, since)?;
    calls.retain(|call| tool.is_none_or(|tool| call.get("tool").and_then(Value::as_str) == Some(tool)));
    out.print_value(&calls, || render_calls(&calls))?;
    Ok(CommandExit::Ok)
}

fn render_calls(calls: &[Value]) -> String {
    if calls.is_empty() {
        return "No calls.".to_owned();
    }
    let mut table = create_wide_table(
        &["time", "tool", "wiki", "result", "ms", "caller", "client"],
        &["caller", "client"],
        &["client"],
    );
    for call in calls {
        let cell = |field: &str| match call.get(field) {
            Some(Value::String(text)) => escape_text(text),
            Some(value) => value.to_string(),
            None => String::new(),
        };
        // A moment to the second suffices in a list.
        let time: String = cell("ts").chars().take("2026-11-24T09:15:00".len()).collect();
        let cells = ["tool", "workspace", "result", "latency_ms", "caller", "client"].map(cell);
        table.add_row([format!("{time}Z")].into_iter().chain(cells));
    }
    table.to_string()
}

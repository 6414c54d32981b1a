//! `steward mcp call`: calls one tool, as an assistant would, for shells and scripts.
//!
//! A refused call is an error with the words of the tool. With `--json` the result is its structured value, or an object with its texts.

use crate::cli::output::{CommandError, CommandExit, CommandOutput};
use crate::cli::table::create_table;
use anyhow::anyhow;
use serde_json::{Value, json};
use steward_server::mcp::{CommandAnswer, CommandTool, McpCaller, McpVault, call_tool, list_command_tools};

pub(super) async fn run(
    vault: McpVault,
    caller: McpCaller,
    tool: Option<&str>,
    arguments: &[String],
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let Some(tool) = tool else {
        return list_tools(&caller, out);
    };
    let _telemetry = crate::telemetry::init_quiet_telemetry()?;
    match call_tool(vault, caller, tool, arguments).await.map_err(|e| anyhow!("`{tool}` could not be called: {e}"))? {
        CommandAnswer::Value(value) => {
            out.print_value(&value, || serde_json::to_string_pretty(&value).unwrap_or_default())?;
        }
        CommandAnswer::Text(blocks) => out.print_value(&json!({ "text": blocks }), || blocks.join("\n\n"))?,
        // An error is one line.
        CommandAnswer::Refused(reason) => return Err(CommandError::Refused(reason.replace('\n', " ")).into()),
    }
    Ok(CommandExit::Ok)
}

fn list_tools(caller: &McpCaller, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let tools = list_command_tools(caller);
    let row = |tool: &CommandTool| {
        json!({"name": tool.name, "title": tool.title, "summary": tool.summary, "arguments": tool.arguments,
            "required": tool.required})
    };
    let rows = tools.iter().map(row);
    out.print_value(&rows.collect::<Vec<Value>>(), || {
        let mut table = create_table(&["tool", "what it does", "arguments"], &["what it does", "arguments"]);
        for tool in &tools {
            let (required, optional) = tool.arguments.split_at(tool.required);
            let optional = optional.iter().map(|name| format!("[{name}]"));
            let arguments: Vec<String> = required.iter().cloned().chain(optional).collect();
            table.add_row([tool.name, tool.summary, &arguments.join(" ")]);
        }
        table.to_string()
    })?;
    Ok(CommandExit::Ok)
}

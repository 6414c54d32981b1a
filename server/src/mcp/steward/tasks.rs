//! `steward_tasks`: the tasks of the vault, with the times of their checks.
//!
//! A task that cannot be read is not listed here but among the troubles of `steward_status`.

use super::READ_STEWARD;
use super::facts::{
    check_known, default_limit, open_views, read_limit, read_path, refuse_missing_note, show_path, wait_for,
};
use super::matters::StateArgument;
use crate::mcp::cursor::{ListCursors, ListPart, ListRow};
use crate::mcp::error::ToolError;
use crate::mcp::outside::OutsideWords;
use crate::mcp::schema::{describe_result, describe_vault_arguments};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, answer_value};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use steward_domain::time::format_seconds;
use steward_vault::index::{TaskFilter, TaskRow};

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "steward_tasks",
    title: "Tasks",
    description: "Lists tasks with their state and the times of their checks. `id` is the path of one. \
        Example: steward_tasks(matter=\"matter/house.md\", state=\"open\")",
    kind: READ_STEWARD,
    arguments: describe_vault_arguments::<TasksArguments>,
    result: Some(describe_result::<TasksResult>),
    run: list_tasks,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TasksArguments {
    #[schemars(length(max = 300))]
    id: Option<String>,
    /// Of this matter, by its path.
    #[schemars(length(max = 300))]
    matter: Option<String>,
    state: Option<StateArgument>,
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 200))]
    limit: u64,
    #[schemars(length(max = 600))]
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TasksResult {
    tasks: Vec<TaskLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct TaskLine {
    /// Outside words: its path.
    path: OutsideWords,
    /// Outside words: its name.
    name: OutsideWords,
    /// Outside words: the path of its matter.
    matter: OutsideWords,
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snoozed_until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_check_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_check_after: Option<String>,
    /// Outside words: how the last check ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<OutsideWords>,
}

fn list_tasks(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let arguments: TasksArguments = call.read_arguments()?;
    let limit = read_limit(arguments.limit)?;
    let views = open_views(call)?;
    if let Some(id) = &arguments.id {
        let path = read_path(id)?;
        let row = wait_for(views.read().find_task(&path))?.ok_or_else(|| refuse_missing_note(&path))?;
        return answer_value(&TasksResult { tasks: vec![show_task(row)], cursor: None });
    }
    let filter = TaskFilter {
        matter: arguments.matter.as_deref().map(read_path).transpose()?,
        state: arguments.state.map(Into::into),
    };
    let cursors = ListCursors::new(&call.vault.fences, &call.caller, TOOL.name, &(&arguments.matter, arguments.state));
    let after: Option<String> = cursors.read(arguments.cursor.as_deref())?;
    let page = wait_for(views.read().tasks_page(&filter, after.as_deref(), limit))?;
    if page.rows.is_empty() && after.is_none() {
        check_known(&views, filter.matter.as_ref())?;
    }
    let rows = page.rows.into_iter().map(|row| ListRow { position: row.path.to_string(), row: show_task(row) });
    let ListPart { rows, cursor } = cursors.cut(rows.collect(), page.next);
    answer_value(&TasksResult { tasks: rows, cursor })
}

fn show_task(row: TaskRow) -> TaskLine {
    TaskLine {
        path: show_path(&row.path),
        name: row.name.into(),
        matter: show_path(&row.matter),
        state: row.state.as_str().to_owned(),
        due: row.due.map(format_seconds),
        snoozed_until: row.snoozed_until.map(format_seconds),
        last_check_at: row.last_check_at.map(format_seconds),
        next_check_after: row.next_check_after.map(format_seconds),
        outcome: row.outcome.map(Into::into),
    }
}

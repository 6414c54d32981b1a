//! `steward_actions`: what the stewards decided, and how it was resolved; one in full by its id.
//!
//! A list comes from the index and from one record for each row. A record that cannot be read is listed with the reason when it is asked for.

use super::READ_STEWARD;
use super::facts::{check_known, default_limit, open_views, read_limit, read_moment, read_path, wait_for};
use super::lines::{ActionDetails, ActionLine};
use super::wiki_runs::{find_wiki_run, list_seen_runs, list_waiting, show_line};
use crate::mcp::cursor::{ListCursors, ListPart, ListRow};
use crate::mcp::error::ToolError;
use crate::mcp::schema::{describe_result, describe_vault_arguments};
use crate::mcp::tokens::{MAX_ROW_TOKENS, count_fitting};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, answer_value};
use chrono::Utc;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use steward_vault::index::{ActionFilter, ActionSubset, PageCursor};

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "steward_actions",
    title: "Actions of stewards",
    description: "Lists what the stewards decided and how it was resolved, newest first. `id` shows one with its gates, its evidence and reasons. \
        Example: steward_actions(waiting=true)",
    kind: READ_STEWARD,
    arguments: describe_vault_arguments::<ActionsArguments>,
    result: Some(describe_result::<ActionsResult>),
    run: list_actions,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ActionsArguments {
    /// One action, by its id.
    #[schemars(length(max = 16))]
    id: Option<String>,
    /// From this moment on, such as `2026-11-23T08:00:00Z`.
    #[schemars(length(max = 40))]
    since: Option<String>,
    /// About this note, by its path.
    #[schemars(length(max = 300))]
    target: Option<String>,
    /// Only what waits for a person.
    #[serde(default)]
    waiting: bool,
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 200))]
    limit: u64,
    #[schemars(length(max = 600))]
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ActionsResult {
    actions: Vec<ActionLine>,
    /// With `id`: what the action holds beside its line.
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<ActionDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    /// What is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

fn list_actions(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let arguments: ActionsArguments = call.read_arguments()?;
    let limit = read_limit(arguments.limit)?;
    // A run that was not committed has no record yet.
    let run = arguments.id.as_deref().map(|id| find_wiki_run(call, id)).transpose()?.flatten();
    if let Some(run) = run.as_ref().filter(|run| !run.is_committed()) {
        return answer_value(&ActionsResult {
            actions: vec![ActionLine::of_wiki_run(run)],
            details: None,
            cursor: None,
            notice: None,
        });
    }
    let views = open_views(call)?;
    if let Some(id) = &arguments.id {
        let detail = wait_for(views.read_detail(id))?;
        let actions = vec![show_line(run.as_slice(), &detail.action)];
        return answer_value(&ActionsResult { actions, details: Some((&detail).into()), cursor: None, notice: None });
    }
    let now = Utc::now();
    let filter = ActionFilter {
        since: arguments.since.as_deref().map(|since| read_moment("since", since)).transpose()?,
        target: arguments.target.as_deref().map(read_path).transpose()?,
        only: if arguments.waiting { ActionSubset::Waiting(now) } else { ActionSubset::All },
        ..ActionFilter::default()
    };
    let filters = (&arguments.since, &arguments.target, arguments.waiting);
    let cursors = ListCursors::new(&call.vault.fences, &call.caller, TOOL.name, &filters);
    let before: Option<PageCursor> = cursors.read(arguments.cursor.as_deref())?;
    let page = wait_for(views.actions().actions_page(&filter, before.as_ref(), limit))?;
    if page.rows.is_empty() && before.is_none() {
        check_known(&views, filter.target.as_ref())?;
    }
    let positions: Vec<String> =
        page.rows.iter().map(|row| PageCursor { at: row.at, path: row.path.clone() }.to_string()).collect();
    let actions = wait_for(views.read_actions(page.rows, now))?;
    let runs = list_seen_runs(call)?;
    let lines = actions.iter().map(|action| show_line(&runs, action));
    let rows = lines.zip(positions).map(|(row, position)| ListRow { row, position });
    let ListPart { mut rows, cursor } = cursors.cut(rows.collect(), page.next.map(|next| next.to_string()));
    let mut notice = None;
    if arguments.waiting && cursor.is_none() && filter.target.is_none() {
        // They have no record yet, so the index does not know them.
        rows.extend(list_waiting(&runs, filter.since));
        let fitting = count_fitting(&rows, MAX_ROW_TOKENS).min(limit as usize);
        notice = (fitting < rows.len()).then(|| "cut: `history` lists all runs that wait".to_owned());
        rows.truncate(fitting);
    }
    answer_value(&ActionsResult { actions: rows, details: None, cursor, notice })
}

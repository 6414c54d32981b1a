//! `steward_matters`: the matters of the vault, with what waits and when they were last checked.
//!
//! A matter whose note cannot be read is listed too, with the reason.

use super::READ_STEWARD;
use super::facts::{default_limit, open_views, read_limit, read_path, refuse_missing_note, show_path, wait_for};
use super::status::read_cadence;
use crate::mcp::cursor::{ListCursors, ListPart, ListRow};
use crate::mcp::error::ToolError;
use crate::mcp::outside::OutsideWords;
use crate::mcp::schema::{describe_result, describe_vault_arguments};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, answer_value};
use crate::views::VaultViews;
use chrono::Utc;
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use steward_domain::record::entity::RecordState;
use steward_domain::record::path::RecordPath;
use steward_domain::time::format_seconds;
use steward_vault::index::{MatterCard, MatterFilter};

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "steward_matters",
    title: "Matters",
    description: "Lists matters with their open tasks, what waits, and the last check. `id` is a path. \
        Example: steward_matters(state=\"open\")",
    kind: READ_STEWARD,
    arguments: describe_vault_arguments::<MattersArguments>,
    result: Some(describe_result::<MattersResult>),
    run: list_matters,
};

#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(super) enum StateArgument {
    Open,
    Done,
    Archived,
}

impl From<StateArgument> for RecordState {
    fn from(state: StateArgument) -> Self {
        match state {
            StateArgument::Open => Self::Open,
            StateArgument::Done => Self::Done,
            StateArgument::Archived => Self::Archived,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MattersArguments {
    #[schemars(length(max = 300))]
    id: Option<String>,
    state: Option<StateArgument>,
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 200))]
    limit: u64,
    #[schemars(length(max = 600))]
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct MattersResult {
    matters: Vec<MatterLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct MatterLine {
    /// Outside words: its path.
    path: OutsideWords,
    /// Outside words: its name.
    name: OutsideWords,
    /// Absent if its note cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    /// Outside words: why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<OutsideWords>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_tasks: Option<u64>,
    /// Actions that wait for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_check_at: Option<String>,
    interval_seconds: u64,
}

fn list_matters(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let arguments: MattersArguments = call.read_arguments()?;
    let limit = read_limit(arguments.limit)?;
    let views = open_views(call)?;
    if let Some(id) = &arguments.id {
        let matter = find_matter(call, &views, &read_path(id)?)?;
        return answer_value(&MattersResult { matters: vec![matter], cursor: None });
    }
    let cadence = read_cadence(call, &views);
    let filter = MatterFilter { state: arguments.state.map(Into::into), ..MatterFilter::default() };
    let cursors = ListCursors::new(&call.vault.fences, &call.caller, TOOL.name, &arguments.state);
    let after: Option<String> = cursors.read(arguments.cursor.as_deref())?;
    let page = wait_for(views.read().matters_page(&filter, after.as_deref(), limit, Utc::now()))?;
    let show = |card: MatterCard| {
        let interval = u64::from(cadence.matter_interval_seconds(card.streak));
        ListRow { position: card.path.to_string(), row: show_matter(card, interval) }
    };
    let ListPart { rows, cursor } = cursors.cut(page.rows.into_iter().map(show).collect(), page.next);
    answer_value(&MattersResult { matters: rows, cursor })
}

fn show_matter(card: MatterCard, interval_seconds: u64) -> MatterLine {
    MatterLine {
        path: show_path(&card.path),
        name: card.name.into(),
        state: card.state.map(|state| state.as_str().to_owned()),
        problem: card.problem.map(Into::into),
        open_tasks: Some(card.open_tasks),
        waiting: Some(card.pending),
        last_check_at: card.last_tick_at.map(format_seconds),
        interval_seconds,
    }
}

/// One matter as `MattersService` shows it. Its counts are those of the list.
fn find_matter(call: &ToolCall, views: &VaultViews, path: &RecordPath) -> Result<MatterLine, ToolError> {
    let row = wait_for(views.read().find_subject(path))?.ok_or_else(|| refuse_missing_note(path))?;
    let cadence = read_cadence(call, views);
    let interval = wait_for(views.read().read_matter_interval(path, &cadence))?;
    Ok(MatterLine {
        path: show_path(&row.path),
        name: row.name.into(),
        state: Some(row.state.as_str().to_owned()),
        problem: None,
        open_tasks: None,
        waiting: None,
        last_check_at: row.last_check_at.map(format_seconds),
        interval_seconds: u64::from(interval),
    })
}

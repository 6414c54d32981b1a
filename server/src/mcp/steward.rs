//! The tools with which any client can ask the stewards of a vault what they did, and why.
//!
//! What they show is what the dashboard shows. They resolve one action at a time and can stop everything; nothing here loosens anything, and only a person's click confirms.
//! An undo or a dismissal by a model changes the vault like any other, and trust learns nothing from it.

mod actions;
mod completed;
mod confirm;
mod facts;
mod lines;
mod matters;
mod preview;
mod resolve;
mod signals;
mod status;
mod stop;
mod tasks;
mod today;
mod why;
mod wiki_runs;

use super::admission::CallCost;
use super::caller::ToolNeed;
use super::tool::{ToolDefinition, ToolKind};
use crate::access::Toolset;

/// Shows the vault.
const READ_STEWARD: ToolKind = ToolKind { toolset: Toolset::Steward, ..ToolKind::READ_WIKI };
/// Resolves an action.
const RESOLVE: ToolKind = ToolKind {
    need: ToolNeed::Act,
    cost: CallCost::Resolve,
    read_only: false,
    destructive: true,
    open_world: true,
    ..READ_STEWARD
};
/// Leads a person to a confirmation.
const CONFIRM: ToolKind = ToolKind { cost: CallCost::Light, needs_person: true, ..RESOLVE };
/// Makes things safer, so whoever may write has it.
const STOP: ToolKind = ToolKind { need: ToolNeed::WriteOrAct, read_only: false, for_writers: true, ..READ_STEWARD };

pub(crate) use completed::{list_action_ids, list_matter_names};
pub(crate) use wiki_runs::find_card_address;

/// The tools, in the order of the list.
pub(crate) const STEWARD_TOOLS: &[ToolDefinition] = &[
    status::TOOL,
    today::TOOL,
    matters::TOOL,
    tasks::TOOL,
    signals::TOOL,
    actions::TOOL,
    why::TOOL,
    preview::TOOL,
    resolve::UNDO,
    resolve::DISMISS,
    confirm::TOOL,
    stop::TOOL,
];

#[cfg(test)]
mod tests;

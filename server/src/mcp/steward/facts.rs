//! What all tools of the stewards share: the open views, errors in the words of the other interfaces, and arguments of lists.
//!
//! Paths and ids are read as a person types them, and shown as outside words, because people and senders chose them. Nothing here
//! writes.

use crate::mcp::error::{ToolError, ToolErrorCode, shorten_outside, show_reason};
use crate::mcp::outside::OutsideWords;
use crate::mcp::tool::{ToolCall, check_range};
use crate::views::{FactsError, VaultViews, parse_typed_path};
use chrono::{DateTime, Utc};
use std::future::Future;
use steward_domain::record::path::RecordPath;
use steward_vault::index::IndexError;
use tokio::runtime::Handle;

/// The most rows of a part.
const MAX_LIMIT: u64 = 200;
/// The digits of an action's id.
const ID_DIGITS: usize = 16;

pub(super) fn default_limit() -> u64 {
    50
}

/// Waits for a read. Tools run on threads that may block.
pub(super) fn wait_for<F: Future>(work: F) -> F::Output {
    Handle::current().block_on(work)
}

pub(super) fn open_views(call: &ToolCall) -> Result<VaultViews, ToolError> {
    wait_for(call.vault.open_views())
}

impl From<IndexError> for ToolError {
    fn from(e: IndexError) -> Self {
        Self::internal(e)
    }
}

impl From<FactsError> for ToolError {
    fn from(e: FactsError) -> Self {
        let (code, fix) = match e {
            FactsError::Unknown { .. } => (ToolErrorCode::NotFound, "`steward_actions` lists them"),
            FactsError::Ambiguous { .. } | FactsError::Malformed { .. } => {
                (ToolErrorCode::BadArguments, "`steward_actions` shows whole ids")
            }
            FactsError::Index(_) | FactsError::Record { .. } => return Self::internal(e),
        };
        Self::new(code, show_reason(&e.to_string()), fix)
    }
}

/// The whole id of the one action that a call resolves. A beginning would do for a person; a model mistypes.
///
/// # Errors
/// [`ToolErrorCode::BadArguments`].
pub(super) fn read_whole_id(id: &str) -> Result<String, ToolError> {
    if id.len() == ID_DIGITS && id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)) {
        return Ok(id.to_owned());
    }
    let what = format!("`{}` is no whole id of an action: it has {ID_DIGITS} hex digits", shorten_outside(id));
    Err(ToolError::new(ToolErrorCode::BadArguments, what, "Copy the id from `steward_actions`"))
}

/// The path of a note as a person types it.
///
/// # Errors
/// [`ToolErrorCode::BadArguments`].
pub(super) fn read_path(text: &str) -> Result<RecordPath, ToolError> {
    parse_typed_path(text).map_err(|_| {
        let what = format!("`{}` is no path of a note", shorten_outside(text));
        ToolError::new(ToolErrorCode::BadArguments, what, "Give a path like `task/pay-rent.md`, as the lists show them")
    })
}

/// A moment of a call.
///
/// # Errors
/// [`ToolErrorCode::BadArguments`].
pub(super) fn read_moment(name: &str, text: &str) -> Result<DateTime<Utc>, ToolError> {
    steward_domain::time::parse(text).ok_or_else(|| {
        let what = format!("`{name}` is `{}`, which is no moment", shorten_outside(text));
        ToolError::new(ToolErrorCode::BadArguments, what, "Give it like `2026-11-23T08:00:00Z`")
    })
}

pub(super) fn refuse_missing_note(path: &RecordPath) -> ToolError {
    let what = format!("{} is not in the vault, or cannot be read", shorten_outside(path.as_str()));
    ToolError::new(ToolErrorCode::NotFound, what, "`steward_tasks`, `steward_matters` and `steward_signals` list them")
}

/// Refuses a list of nothing about a note that is not there, so that a misspelt name does not read as "none".
///
/// # Errors
/// [`ToolErrorCode::NotFound`].
pub(super) fn check_known(views: &VaultViews, note: Option<&RecordPath>) -> Result<(), ToolError> {
    let Some(note) = note else { return Ok(()) };
    wait_for(views.read().find_subject(note))?.map(drop).ok_or_else(|| refuse_missing_note(note))
}

pub(super) fn show_path(path: &RecordPath) -> OutsideWords {
    path.as_str().into()
}

/// How many rows a call wants.
pub(super) fn read_limit(limit: u64) -> Result<u32, ToolError> {
    Ok(check_range("limit", limit, 1, MAX_LIMIT)? as u32)
}

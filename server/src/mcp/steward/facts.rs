//! What all tools of the stewards share: the open views, errors in the words of the other interfaces, and lists in parts.
//!
//! A part of a list ends where the result would grow too large for a model. Its cursor names the last row that was shown, so a list that
//! grows meanwhile shows no row twice.

use crate::mcp::error::{ToolError, ToolErrorCode, shorten_outside, show_reason};
use crate::mcp::fence::FenceKey;
use crate::mcp::outside::OutsideWords;
use crate::mcp::tokens::count_fitting;
use crate::mcp::tool::{ToolCall, check_range};
use crate::views::{FactsError, VaultViews, parse_typed_path};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::future::Future;
use std::str::FromStr;
use steward_domain::record::path::RecordPath;
use steward_vault::index::IndexError;
use tokio::runtime::Handle;

/// The most rows of a part.
const MAX_LIMIT: u64 = 200;
/// What the rows of a result may take of a model's context, in tokens. With its frame a result stays under 8,000.
pub(super) const MAX_ROW_TOKENS: usize = 7_500;
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

pub(super) fn show_path(path: &RecordPath) -> OutsideWords {
    path.as_str().into()
}

/// How many rows a call wants.
pub(super) fn read_limit(limit: u64) -> Result<u32, ToolError> {
    Ok(check_range("limit", limit, 1, MAX_LIMIT)? as u32)
}

/// A row, and where the list goes on after it.
pub(super) struct ListRow<R> {
    pub(super) row: R,
    pub(super) position: String,
}

/// The rows of a list that fit into a result.
pub(super) struct ListPart<R> {
    pub(super) rows: Vec<R>,
    /// Where the list goes on; `None` at its end.
    pub(super) cursor: Option<String>,
}

/// The cursors of one call. They fit its filters alone.
pub(super) struct ListCursors<'k> {
    key: &'k FenceKey,
    /// The tool with its filters.
    call: String,
}

impl<'k> ListCursors<'k> {
    pub(super) fn new<F: Serialize>(key: &'k FenceKey, tool: &str, filters: &F) -> Self {
        Self { key, call: serde_json::to_string(&(tool, filters)).unwrap_or_default() }
    }

    fn sign(&self, position: &str) -> String {
        self.key.sign(format!("{}\n{position}", self.call).as_bytes())
    }

    fn write(&self, position: &str) -> String {
        format!("{}.{}", URL_SAFE_NO_PAD.encode(position), self.sign(position))
    }

    /// Where the part begins; `None` for the beginning of the list.
    ///
    /// # Errors
    /// [`ToolErrorCode::BadCursor`].
    pub(super) fn read<P: FromStr>(&self, cursor: Option<&str>) -> Result<Option<P>, ToolError> {
        let Some(cursor) = cursor else { return Ok(None) };
        let read = || {
            let (position, mark) = cursor.split_once('.')?;
            let position = String::from_utf8(URL_SAFE_NO_PAD.decode(position).ok()?).ok()?;
            (self.sign(&position) == mark).then(|| position.parse().ok())?
        };
        read().map(Some).ok_or_else(|| {
            let what = "the cursor belongs to another call";
            ToolError::new(ToolErrorCode::BadCursor, what, "Begin again without a cursor")
        })
    }

    /// As many rows as fit, but one at least. `next` is where the list goes on after all of them.
    pub(super) fn cut<R: Serialize>(&self, rows: Vec<ListRow<R>>, next: Option<String>) -> ListPart<R> {
        let fitting = count_fitting(&rows.iter().map(|row| &row.row).collect::<Vec<_>>(), MAX_ROW_TOKENS);
        let fitting = fitting.max(1);
        let next = match rows.get(fitting) {
            Some(_) => rows.get(fitting - 1).map(|row| row.position.clone()),
            None => next,
        };
        let rows = rows.into_iter().take(fitting).map(|row| row.row).collect();
        ListPart { rows, cursor: next.map(|position| self.write(&position)) }
    }
}

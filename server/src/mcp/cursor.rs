//! Cursors: where the next part of a list begins.
//!
//! A part ends where the result would grow too large for a model. A cursor fits one call. Where rows keep their order it names the last row that
//! was shown, so a list that grows meanwhile shows no row twice. Otherwise it fits one state of the list, and is refused after that
//! changed, so a client never reads a wrong part.

use super::caller::McpCaller;
use super::error::{ToolError, ToolErrorCode};
use super::fence::FenceKey;
use super::tokens::{MAX_ROW_TOKENS, count_fitting};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::{self, Display};
use std::str::FromStr;

/// What a cursor belongs to: the arguments of the call, and the list.
pub(crate) struct ListState(String);

impl ListState {
    pub(crate) fn new<A: Serialize, L: Serialize>(key: &FenceKey, tool: &str, arguments: &A, list: &L) -> Self {
        Self(key.sign(&serde_json::to_vec(&(tool, arguments, list)).unwrap_or_default()))
    }

    /// Where the part begins that a cursor names; the list's beginning without one.
    ///
    /// # Errors
    /// [`ToolErrorCode::BadCursor`].
    pub(crate) fn read(&self, cursor: Option<&str>) -> Result<usize, ToolError> {
        let Some(cursor) = cursor else { return Ok(0) };
        let fitting = cursor.split_once('.').filter(|(_, state)| *state == self.0);
        fitting.and_then(|(offset, _)| offset.parse().ok()).ok_or_else(|| {
            let what = "the cursor belongs to another call, or the list has changed";
            ToolError::new(ToolErrorCode::BadCursor, what, "Begin again without a cursor")
        })
    }

    /// The cursor of the part that begins there, if the list goes on.
    pub(crate) fn next(&self, offset: usize, total: usize) -> Option<String> {
        (offset < total).then(|| format!("{offset}.{}", self.0))
    }
}

/// A position that a cursor holds as JSON.
pub(crate) struct JsonPosition<P>(pub(crate) P);

impl<P: Serialize> Display for JsonPosition<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(&self.0).map_err(|_| fmt::Error)?)
    }
}

impl<P: DeserializeOwned> FromStr for JsonPosition<P> {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text).map(Self)
    }
}

/// A row, and where the list goes on after it.
pub(crate) struct ListRow<R> {
    pub(crate) row: R,
    pub(crate) position: String,
}

/// The rows of a list that fit into a result.
pub(crate) struct ListPart<R> {
    pub(crate) rows: Vec<R>,
    /// Where the list goes on; `None` at its end.
    pub(crate) cursor: Option<String>,
}

/// The cursors of one call. They fit its caller and its filters alone.
pub(crate) struct ListCursors<'k> {
    key: &'k FenceKey,
    /// The tool with its filters.
    call: String,
}

impl<'k> ListCursors<'k> {
    pub(crate) fn new<F: Serialize>(key: &'k FenceKey, caller: &McpCaller, tool: &str, filters: &F) -> Self {
        Self { key, call: serde_json::to_string(&(&caller.name, tool, filters)).unwrap_or_default() }
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
    pub(crate) fn read<P: FromStr>(&self, cursor: Option<&str>) -> Result<Option<P>, ToolError> {
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
    pub(crate) fn cut<R: Serialize>(&self, rows: Vec<ListRow<R>>, next: Option<String>) -> ListPart<R> {
        self.cut_within(rows, next, MAX_ROW_TOKENS)
    }

    /// The same for a result that holds more than these rows, which may take so many tokens.
    pub(crate) fn cut_within<R: Serialize>(
        &self,
        rows: Vec<ListRow<R>>,
        next: Option<String>,
        limit: usize,
    ) -> ListPart<R> {
        let fitting = count_fitting(&rows.iter().map(|row| &row.row).collect::<Vec<_>>(), limit);
        let fitting = fitting.max(1);
        let next = match rows.get(fitting) {
            Some(_) => rows.get(fitting - 1).map(|row| row.position.clone()),
            None => next,
        };
        let rows = rows.into_iter().take(fitting).map(|row| row.row).collect();
        ListPart { rows, cursor: next.map(|position| self.write(&position)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_fits_its_call_and_its_list_alone() {
        let key = FenceKey::new("secret");
        let state = ListState::new(&key, "list", &"wiki/*", &["a", "b", "c"]);
        let cursor = state.next(2, 3).unwrap();
        assert_eq!((state.read(Some(&cursor)), state.read(None)), (Ok(2), Ok(0)));
        assert_eq!(state.next(3, 3), None);
        for other in [
            ListState::new(&key, "list", &"raw/*", &["a", "b", "c"]),
            ListState::new(&key, "list", &"wiki/*", &["a", "b", "d"]),
            ListState::new(&FenceKey::new("other"), "list", &"wiki/*", &["a", "b", "c"]),
        ] {
            assert_eq!(other.read(Some(&cursor)).unwrap_err().code, ToolErrorCode::BadCursor);
        }
        assert!(state.read(Some("2")).is_err() && state.read(Some("x.y")).is_err());
    }
}

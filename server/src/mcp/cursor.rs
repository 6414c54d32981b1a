//! Cursors: where the next part of a list begins.
//!
//! A cursor fits one call and one state of the list. Given with other arguments, or after the list changed, it is refused, so a
//! client never reads a wrong part.

use super::error::{ToolError, ToolErrorCode};
use super::fence::FenceKey;
use serde::Serialize;

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

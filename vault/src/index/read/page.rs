//! Pages of long lists, and the cursors between them.
//!
//! A page is requested by the last row of the page before it, not by an offset. So records that were filed meanwhile
//! neither repeat a row nor hide one, and the hundredth page costs no more than the first.

use crate::index::store::codec::{from_micros, to_micros};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use steward_domain::record::path::RecordPath;

/// The most rows of a page.
pub const MAX_PAGE: u32 = 500;

/// One page of a list, with the cursor of the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListPage<T, C = PageCursor> {
    pub rows: Vec<T>,
    /// Whether there are more rows after these.
    pub more: bool,
    /// The cursor after which the next page begins; `None` if there are no more rows.
    pub next: Option<C>,
}

/// A position in a list whose newest rows come first. As text and in JSON it is `<microseconds since 1970>:<path>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PageCursor {
    /// To the microsecond.
    pub at: DateTime<Utc>,
    /// The record, which orders rows of the same moment.
    pub path: RecordPath,
}

/// A text that is no page cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid page cursor: pass the `next` value of the page before")]
pub struct PageCursorError;

impl FromStr for PageCursor {
    type Err = PageCursorError;

    fn from_str(text: &str) -> Result<Self, PageCursorError> {
        let (at, path) = text.split_once(':').ok_or(PageCursorError)?;
        let at = at.parse().ok().and_then(from_micros).ok_or(PageCursorError)?;
        Ok(Self { at, path: RecordPath::parse(path).map_err(|_| PageCursorError)? })
    }
}

impl TryFrom<String> for PageCursor {
    type Error = PageCursorError;

    fn try_from(text: String) -> Result<Self, PageCursorError> {
        text.parse()
    }
}

impl From<PageCursor> for String {
    fn from(cursor: PageCursor) -> Self {
        cursor.to_string()
    }
}

impl fmt::Display for PageCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", to_micros(self.at), self.path)
    }
}

/// Limits a page to at least one row and at most [`MAX_PAGE`].
pub(crate) fn clamp_limit(limit: u32) -> usize {
    limit.clamp(1, MAX_PAGE) as usize
}

/// How many rows to read: one more than the page has, which shows whether there are more.
pub(crate) fn rows_to_read(limit: u32) -> i64 {
    i64::from(limit.clamp(1, MAX_PAGE)) + 1
}

impl<T, C> ListPage<T, C> {
    /// Makes a page of rows that were read by [`rows_to_read`].
    pub(crate) fn from_rows(mut rows: Vec<T>, limit: u32, cursor: impl Fn(&T) -> C) -> Self {
        let more = rows.len() > clamp_limit(limit);
        rows.truncate(clamp_limit(limit));
        let next = if more { rows.last().map(cursor) } else { None };
        Self { rows, more, next }
    }
}

//! Pages of long lists: where one ends and the next begins.
//!
//! A page is asked for by the last row of the one before it, not by a number of rows: what was filed meanwhile neither
//! repeats a row nor hides one, and the hundredth page costs what the first does.

use crate::index::store::codec::{from_micros, to_micros};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use steward_domain::record::path::RecordPath;

/// Most rows of a page.
pub const MAX_PAGE: u32 = 500;

/// Some rows of a list, and how to ask for those that follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListPage<T, C = PageCursor> {
    pub rows: Vec<T>,
    /// There are more after these.
    pub more: bool,
    /// What the next page begins after; `None` when there are no more.
    pub next: Option<C>,
}

/// A place in a list whose newest rows come first. As text, and in JSON, `<microseconds since 1970>:<path>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PageCursor {
    /// To the microsecond.
    pub at: DateTime<Utc>,
    /// The record, which tells apart what is of one moment.
    pub path: RecordPath,
}

/// A text is no place in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a place in a list is what the page before it gave as `next`")]
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

/// At least one row and at most [`MAX_PAGE`].
pub(crate) fn clamp_limit(limit: u32) -> usize {
    limit.clamp(1, MAX_PAGE) as usize
}

/// How many rows to read: one more than the page has, to know whether there are more.
pub(crate) fn rows_to_read(limit: u32) -> i64 {
    i64::from(limit.clamp(1, MAX_PAGE)) + 1
}

impl<T, C> ListPage<T, C> {
    /// The page of rows of which one more was read than it has.
    pub(crate) fn from_rows(mut rows: Vec<T>, limit: u32, place: impl Fn(&T) -> C) -> Self {
        let more = rows.len() > clamp_limit(limit);
        rows.truncate(clamp_limit(limit));
        let next = if more { rows.last().map(place) } else { None };
        Self { rows, more, next }
    }
}

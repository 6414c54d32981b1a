//! What a change names: a record, or a file of a wiki.
//!
//! Both are checked where they are made. This module must not make a path of a text.

use crate::record::path::RecordPath;
use crate::wiki::path::PagePath;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The file of a change. A record is stored as a text, a file of a wiki by its wiki and its place in there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WriteTarget {
    Record(RecordPath),
    Page(PagePath),
}

impl WriteTarget {
    /// The record, if it is one.
    #[must_use]
    pub fn as_record(&self) -> Option<&RecordPath> {
        if let Self::Record(path) = self { Some(path) } else { None }
    }
}

impl From<RecordPath> for WriteTarget {
    fn from(path: RecordPath) -> Self {
        Self::Record(path)
    }
}

impl From<PagePath> for WriteTarget {
    fn from(path: PagePath) -> Self {
        Self::Page(path)
    }
}

impl fmt::Display for WriteTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(path) => path.fmt(f),
            Self::Page(path) => path.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_reads_back_as_what_it_was() {
        let record = WriteTarget::from(RecordPath::parse("wiki/plot/overview.md").unwrap());
        let page = WriteTarget::from(PagePath::new("wiki/plot", "overview.md").unwrap());
        assert_eq!(record.to_string(), page.to_string());
        for target in [record, page] {
            let text = serde_json::to_string(&target).unwrap();
            assert_eq!(serde_json::from_str::<WriteTarget>(&text).unwrap(), target, "{text}");
        }
        assert!(serde_json::from_str::<WriteTarget>(r#""../x.md""#).is_err());
    }
}

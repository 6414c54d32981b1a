//! What every face shows, read from the vault's read side.
//!
//! A face turns these values into words of its own and adds none: what a page says, a script and the command line
//! say too. Text that came from outside is marked so, and is never anything but text.

pub mod action;

use steward_vault::index::IndexError;
use steward_vault::root::RootError;

/// Why something cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    #[error("no action has the id {id}")]
    Unknown { id: String },
    #[error("{count} actions begin with {id}: give more digits")]
    Ambiguous { id: String, count: usize },
    #[error("an action is named by 4 to 16 hex digits of its id, not by `{id}`")]
    Malformed { id: String },
    #[error(transparent)]
    Index(IndexError),
    #[error("{path}: {reason}")]
    Record { path: String, reason: String },
}

impl From<IndexError> for FactsError {
    fn from(e: IndexError) -> Self {
        match e {
            IndexError::Prefix(id) => Self::Malformed { id },
            e => Self::Index(e),
        }
    }
}

impl From<RootError> for FactsError {
    fn from(e: RootError) -> Self {
        Self::Record { path: String::new(), reason: e.to_string() }
    }
}

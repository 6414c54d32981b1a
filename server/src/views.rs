//! What every face shows, read from the vault's read side.
//!
//! A face turns these values into words of its own and adds none: what a page says, a script and the command line
//! say too. Text that came from outside is marked so, and is never anything but text.

pub mod action;
pub mod drill;
pub(crate) mod operator_events;
pub(crate) mod problems;
pub(crate) mod quote;
pub(crate) mod revision;
pub mod schedules;
pub mod signal;
pub mod streams;
pub mod tracker;
pub mod why;
pub mod withheld;

use steward_vault::files::root::VaultRootError;
use steward_vault::index::IndexError;

/// A run in the Temporal UI, below the address of its namespace.
pub(crate) fn build_run_url(ui: &str, workflow: &str, run: &str) -> String {
    format!("{ui}/workflows/{}/{}/history", encode_path_segment(workflow), encode_path_segment(run))
}

/// A matter's schedule in the Temporal UI, below the address of its namespace.
pub(crate) fn build_schedule_url(ui: &str, schedule: &str) -> String {
    format!("{ui}/schedules/{}", encode_path_segment(schedule))
}

/// As one part of an address, whatever it holds.
fn encode_path_segment(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

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

impl From<VaultRootError> for FactsError {
    fn from(e: VaultRootError) -> Self {
        Self::Record { path: String::new(), reason: e.to_string() }
    }
}

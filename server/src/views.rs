//! The values that every interface shows, read from the vault's read side.
//!
//! The dashboard, the API, gRPC and the commands format these values but add none of their own, so all of them show the
//! same. Foreign text is marked "Untrusted" and is never used as anything but text.

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

/// The URL of a workflow run in the Temporal UI; `ui` is the URL of its namespace.
pub(crate) fn build_run_url(ui: &str, workflow: &str, run: &str) -> String {
    format!("{ui}/workflows/{}/{}/history", encode_path_segment(workflow), encode_path_segment(run))
}

/// The URL of a schedule in the Temporal UI; `ui` is the URL of its namespace.
pub(crate) fn build_schedule_url(ui: &str, schedule: &str) -> String {
    format!("{ui}/schedules/{}", encode_path_segment(schedule))
}

/// Encodes any text as one segment of a URL's path.
fn encode_path_segment(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

/// Why an action cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    #[error("no action has the id {id}")]
    Unknown { id: String },
    #[error("the ids of {count} actions begin with {id}: give more digits")]
    Ambiguous { id: String, count: usize },
    #[error("`{id}` is not an action id: give its first 4 to 16 hex digits")]
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

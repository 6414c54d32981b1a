//! The values that every interface shows, read from the vault's read side.
//!
//! The dashboard, the API, gRPC and the commands format these values but add none of their own, so all of them show the
//! same. Foreign text is marked "Untrusted" and is never used as anything but text.

pub mod action;
pub mod backup;
pub(crate) mod day;
pub mod drill;
pub(crate) mod operator_events;
pub(crate) mod problems;
pub mod quote;
pub mod record_signals;
pub(crate) mod revision;
pub mod schedules;
pub(crate) mod senders;
pub mod signal;
pub mod streams;
pub mod tracker;
pub mod trust;
pub mod why;
pub mod wiki;
pub mod withheld;

use crate::http::holder::VaultHolder;
use chrono::{DateTime, NaiveDate, Utc};
use std::path::Path;
use std::sync::Arc;
use steward_domain::gates::matter_policy::MatterPolicy;
use steward_domain::record::path::{PathError, RecordPath, is_slug};
use steward_domain::record::schema::NoteSchema;
use steward_domain::record::url::encode_path_segment;
use steward_domain::steward::tick::Cadence;
use steward_domain::time;
use steward_vault::action::preview::{self, UndoPreview};
use steward_vault::action::resolve::ResolutionError;
use steward_vault::files::root::{VaultRoot, VaultRootError};
use steward_vault::gates::stop;
use steward_vault::index::{
    ActionsView, CheckCount, Index, IndexError, IndexFileStatus, LostNote, ReadView, SnoozedNote, StreamCount, TickLag,
};

/// What the interfaces may read of a vault: its files, and its index through reading methods alone. Cheap to clone.
///
/// Each file of this folder adds the methods for its values.
#[derive(Clone, Debug)]
pub struct VaultViews {
    root: VaultRoot,
    index: Index,
}

impl VaultViews {
    #[must_use]
    pub fn new(root: VaultRoot, index: Index) -> Self {
        Self { root, index }
    }

    /// The folder of the vault.
    #[must_use]
    pub fn root(&self) -> &VaultRoot {
        &self.root
    }

    /// How the notes of the vault are read.
    #[must_use]
    pub fn note_schema(&self) -> Arc<NoteSchema> {
        Arc::clone(self.index.note_schema())
    }

    /// Previews the undo of an action. Call it on a blocking thread.
    ///
    /// # Errors
    /// [`ResolutionError`] as in [`preview::preview_undo`].
    pub(crate) fn preview_undo(&self, record: &RecordPath, now: DateTime<Utc>) -> Result<UndoPreview, ResolutionError> {
        preview::preview_undo(&self.root, Some(&self.index), record, now)
    }

    /// Previews undos of several actions, in their order. Call it on a blocking thread.
    ///
    /// # Errors
    /// [`ResolutionError::Apply`] if the audit records cannot be listed.
    pub(crate) fn preview_undos(
        &self,
        records: &[RecordPath],
        now: DateTime<Utc>,
    ) -> Result<Vec<Result<UndoPreview, ResolutionError>>, ResolutionError> {
        preview::preview_undos(&self.root, Some(&self.index), records, now)
    }

    /// The folder of the index.
    #[must_use]
    pub fn state_dir(&self) -> &Path {
        self.index.state_dir()
    }

    /// The process that holds the vault now.
    #[must_use]
    pub fn holder(&self) -> VaultHolder {
        VaultHolder::read(&self.root, self.index.state_dir())
    }

    /// Lists and single records.
    #[must_use]
    pub fn read(&self) -> ReadView<'_> {
        self.index.read()
    }

    /// Actions and their resolutions.
    #[must_use]
    pub fn actions(&self) -> ActionsView<'_> {
        self.index.actions()
    }

    /// Measures how far checks are behind. For a matter that was last checked before a stop ended, the lag counts from
    /// there.
    pub async fn measure_tick_lag(&self, cadence: &Cadence, now: DateTime<Utc>) -> Result<TickLag, IndexError> {
        let resumed = stop::list_stop_events(&self.root, 1).pop().filter(|event| !event.stopped);
        let resumed_at = resumed.and_then(|event| time::parse(&event.stop.at));
        self.index.read().measure_tick_lag(cadence, resumed_at, now).await
    }

    /// The policies that limit changes of a task or matter, each with the matter that has it.
    pub(crate) async fn list_matter_policies(
        &self,
        target: &RecordPath,
    ) -> Result<Vec<(RecordPath, MatterPolicy)>, IndexError> {
        self.index.gates().list_matter_policies(target, None).await
    }

    /// The matters whose notes hold a policy.
    pub(crate) async fn list_matters_with_policy(&self) -> Result<Vec<RecordPath>, IndexError> {
        self.index.gates().list_matters_with_policy().await
    }

    /// The notes that are gone and were not found under another path.
    pub(crate) async fn list_lost_notes(&self) -> Result<Vec<LostNote>, IndexError> {
        self.index.list_lost_notes().await
    }

    pub(crate) fn index_file_status(&self) -> IndexFileStatus {
        self.index.file_status()
    }

    pub(crate) async fn last_sync_at(&self) -> Result<Option<DateTime<Utc>>, IndexError> {
        self.index.last_sync_at().await
    }

    pub(crate) async fn list_stream_counts(&self) -> Result<Vec<StreamCount>, IndexError> {
        self.index.signals().list_stream_counts().await
    }

    /// The notes that a person has put off.
    pub(crate) async fn list_snoozes(&self, now: DateTime<Utc>) -> Result<Vec<SnoozedNote>, IndexError> {
        self.index.cursors().list_snoozes(now).await
    }

    /// The checks of a day that ended without an action, by reason.
    pub(crate) async fn list_check_counts(&self, day: NaiveDate) -> Result<Vec<CheckCount>, IndexError> {
        self.index.cursors().list_check_counts(day).await
    }
}

/// The URL of a workflow run in the Temporal UI; `ui` is the URL of its namespace.
pub(crate) fn build_run_url(ui: &str, workflow: &str, run: &str) -> String {
    format!("{ui}/workflows/{}/{}/history", encode_path_segment(workflow), encode_path_segment(run))
}

/// The URL of a schedule in the Temporal UI; `ui` is the URL of its namespace.
pub(crate) fn build_schedule_url(ui: &str, schedule: &str) -> String {
    format!("{ui}/schedules/{}", encode_path_segment(schedule))
}

/// The name of a note as the last argument of a command in a hint. A name that is no slug is quoted for the shell.
#[must_use]
pub fn quote_argument(name: &str) -> String {
    if is_slug(name) { name.to_owned() } else { format!("-- '{}'", name.replace('\'', "'\\''")) }
}

/// Reads the path of a note as a person types it, with or without `.md`.
///
/// # Errors
/// [`PathError`] if no note can have this path.
pub fn parse_typed_path(text: &str) -> Result<RecordPath, PathError> {
    let path = text.strip_prefix("./").unwrap_or(text);
    if path.ends_with(".md") { RecordPath::parse(path) } else { RecordPath::parse(&format!("{path}.md")) }
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

#[cfg(test)]
mod tests {
    use super::quote_argument;

    #[test]
    fn a_name_in_a_hint_is_one_argument_whatever_it_holds() {
        for (name, quoted) in [
            ("roof-repair", "roof-repair"),
            ("Wedding of Ann", "-- 'Wedding of Ann'"),
            ("-x", "-- '-x'"),
            ("$(curl x|sh)", "-- '$(curl x|sh)'"),
            ("Ann's", "-- 'Ann'\\''s'"),
        ] {
            assert_eq!(quote_argument(name), quoted);
        }
    }
}

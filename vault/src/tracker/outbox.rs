//! The progress of each delivery to the tracker.
//!
//! The audit records hold what is owed and the outcome ([`VaultWriter::file_tracker_outcome`]), so both survive the
//! loss of every database. The progress of a delivery is in `.steward/outbox/<action id>.json`. The earlier
//! state is durable there before anything is sent. So an interrupted delivery continues instead of starting again. This
//! module must not send anything.

use crate::action::chain;
use crate::action::ownership::ChangeNeeds;
use crate::action::writer::{ActionReceipt, ApplyError, VaultWriter};
use crate::files::crash;
use crate::files::durable;
use crate::files::root::{OWN_FOLDER, VaultRoot};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::io;
use steward_domain::action::audit::{ActionKind, AuditRecord, WorkflowRef};
use steward_domain::action::plan::ActionId;
use steward_domain::record::path::RecordPath;
use steward_domain::tracker::{self, PlaneAction, TrackerId};

const FOLDER: &str = "outbox";

/// What the vault writer must know about the tracker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrackerSite {
    /// The project of tasks without a `plane_project_id`.
    pub project: Option<TrackerId>,
}

/// The progress of one delivery.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeliveryProgress {
    /// Whether something may have been sent. Until then there is nothing to revert.
    pub begun: bool,
    /// When the comment was last requested without a clear response. It may still appear a while later.
    pub asked_at: Option<DateTime<Utc>>,
    /// The state before our change.
    pub from: Option<TrackerId>,
    /// The state that we set, or were about to set.
    pub to: Option<TrackerId>,
    /// Our comment.
    pub comment: Option<TrackerId>,
    /// The number of failed tries.
    pub tries: u32,
    pub failing_since: Option<DateTime<Utc>>,
    /// The last error, in our words only and never in the tracker's.
    pub last_error: Option<String>,
    /// The earliest time of the next try; `None` for immediately.
    pub next_try: Option<DateTime<Utc>>,
}

/// The state of one record's delivery to the tracker.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeliveryStatus {
    /// The tracker action in the record itself.
    pub says: PlaneAction,
    /// The outcome and its record; `None` while the delivery is owed.
    pub came: Option<(RecordPath, PlaneAction)>,
    /// The record of the first failed try.
    pub failed: Option<RecordPath>,
    pub progress: Option<DeliveryProgress>,
}

impl VaultWriter {
    /// Files the outcome of a delivery. Repeated calls file it once.
    ///
    /// # Errors
    /// [`ApplyError`]; calling again is safe.
    pub fn file_tracker_outcome(
        &self,
        owing: &AuditRecord,
        outcome: &PlaneAction,
        workflow: WorkflowRef,
        now: DateTime<Utc>,
    ) -> Result<ActionReceipt, ApplyError> {
        let mut state = self.lock_state()?;
        let plan = tracker::plan_tracker_outcome(owing, outcome, workflow, now);
        self.write_plan_once(&mut state, &plan, ChangeNeeds::Ownership, Some(outcome.clone()), &self.note_schema())
    }

    /// Writes the progress of a delivery and makes it durable.
    ///
    /// # Errors
    /// Errors of the disk, which name the file.
    pub fn write_delivery_progress(&self, action: &ActionId, progress: &DeliveryProgress) -> Result<(), ApplyError> {
        crash::die_if_armed("before-outbox");
        let write = || {
            let bytes = serde_json::to_vec(progress).map_err(io::Error::other)?;
            let folder = self.root().make_own_folder(Some(FOLDER))?;
            durable::replace_private_file(&folder, &progress_file_name(action), &bytes)?;
            durable::sync_folder(&folder)
        };
        write().map_err(ApplyError::wrap_io(display_path(action)))?;
        crash::die_if_armed("after-outbox");
        Ok(())
    }

    /// Removes the progress of a delivery whose outcome is filed.
    ///
    /// # Errors
    /// Errors of the disk, which name the file.
    pub fn remove_delivery_progress(&self, action: &ActionId) -> Result<(), ApplyError> {
        let remove = || match self.root().find_own_folder(Some(FOLDER))? {
            Some(folder) => durable::remove_file(&folder, progress_file_name(action)),
            None => Ok(()),
        };
        remove().map_err(ApplyError::wrap_io(display_path(action)))
    }
}

/// Reads the progress of a delivery; `None` if none was written.
///
/// # Errors
/// Errors of the disk. If the content is invalid, the error names the fix.
pub fn read_delivery_progress(root: &VaultRoot, action: &ActionId) -> Result<Option<DeliveryProgress>, ApplyError> {
    let read = || {
        let Some(folder) = root.find_own_folder(Some(FOLDER))? else { return Ok(None) };
        match folder.read(progress_file_name(action)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|e| {
                io::Error::other(format!("not readable ({e}): move it away; Steward then reads the issue's state anew"))
            }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    };
    read().map_err(ApplyError::wrap_io(display_path(action)))
}

/// Finds the record of a kind that resolves an action or reports its outcome; `None` if there is none.
///
/// # Errors
/// [`ApplyError::Chain`] if it exists and cannot be read.
pub fn find_follower(
    root: &VaultRoot,
    record: &AuditRecord,
    kind: ActionKind,
) -> Result<Option<(RecordPath, AuditRecord)>, ApplyError> {
    let path = record.draft.follow_up_path(kind).map_err(|e| ApplyError::Form(e.to_string()))?;
    Ok(chain::read_record_if_present(root, &path)?.map(|follower| (path, follower)))
}

/// Reads the state of a record's delivery to the tracker; `None` if it owes nothing there.
///
/// # Errors
/// As [`find_follower`] and [`read_delivery_progress`].
pub fn read_delivery_status(root: &VaultRoot, record: &AuditRecord) -> Result<Option<DeliveryStatus>, ApplyError> {
    let Some(says) = record.plane_action.clone().filter(|_| !record.draft.kind.is_tracker_outcome()) else {
        return Ok(None);
    };
    let came = find_follower(root, record, ActionKind::Tracked)?.and_then(|(path, r)| Some((path, r.plane_action?)));
    let failed = find_follower(root, record, ActionKind::TrackFailed)?.map(|(path, _)| path);
    Ok(Some(DeliveryStatus { says, came, failed, progress: read_delivery_progress(root, &record.draft.id)? }))
}

fn progress_file_name(action: &ActionId) -> String {
    format!("{action}.json")
}

fn display_path(action: &ActionId) -> String {
    format!("{OWN_FOLDER}/{FOLDER}/{}", progress_file_name(action))
}

#[cfg(test)]
mod tests;

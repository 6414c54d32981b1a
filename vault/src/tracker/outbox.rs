//! What is owed to the tracker, and how far each delivery has come.
//!
//! That something is owed stands in the audit records, and so does what came of it ([`VaultWriter::file_tracker_outcome`]);
//! both survive the loss of every database. How far a delivery has come lies in
//! `.steward/outbox/<action id>.json`: what the issue was before is durable there before anything is sent,
//! so that a delivery that was cut short goes on instead of beginning anew. Sending is not done here.

use crate::action::chain::{self, ChainError};
use crate::action::writer::{ActionReceipt, ApplyError, VaultWriter};
use crate::files::crash;
use crate::files::durable;
use crate::files::root::{OWN_FOLDER, VaultRoot, VaultRootError};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::io;
use steward_domain::action::audit::{ActionKind, AuditRecord, WorkflowRef};
use steward_domain::action::plan::ActionId;
use steward_domain::record::path::RecordPath;
use steward_domain::tracker::{self, PlaneAction, TrackerId};

const FOLDER: &str = "outbox";

/// What the keeper must know of the tracker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrackerSite {
    /// For tasks without a `plane_project_id`.
    pub project: Option<TrackerId>,
}

/// How far a delivery has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeliveryProgress {
    /// Something may have been sent; until then there is nothing to take back.
    pub begun: bool,
    /// When the comment was last asked for without a clear answer: it may come to be a while after.
    pub asked_at: Option<DateTime<Utc>>,
    /// The state before ours.
    pub from: Option<TrackerId>,
    /// The state that we set, or were about to.
    pub to: Option<TrackerId>,
    /// Our comment.
    pub comment: Option<TrackerId>,
    /// Tries in vain.
    pub tries: u32,
    pub failing_since: Option<DateTime<Utc>>,
    /// In words of ours alone.
    pub last_error: Option<String>,
    /// Not before; `None` for at once.
    pub next_try: Option<DateTime<Utc>>,
}

/// What is known of the tracker's part of one record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeliveryStatus {
    /// What the record itself says.
    pub says: PlaneAction,
    /// What came of it, and the record of that; `None` while it is owed.
    pub came: Option<(RecordPath, PlaneAction)>,
    /// The record of the first try in vain.
    pub failed: Option<RecordPath>,
    pub progress: Option<DeliveryProgress>,
}

impl VaultWriter {
    /// Files what came of what a record owes to the tracker, once however often it is asked.
    ///
    /// # Errors
    /// [`ApplyError`]; asking again is safe.
    pub fn file_tracker_outcome(
        &self,
        owing: &AuditRecord,
        came: &PlaneAction,
        workflow: WorkflowRef,
        now: DateTime<Utc>,
    ) -> Result<ActionReceipt, ApplyError> {
        let mut state = self.lock_state()?;
        let plan = tracker::plan_tracker_outcome(owing, came, workflow, now);
        self.write_plan_once(&mut state, &plan, Some(came.clone()))
    }

    /// Notes how far a delivery has come, durable.
    ///
    /// # Errors
    /// Those of the disk, naming the file.
    pub fn write_delivery_progress(&self, of: &ActionId, progress: &DeliveryProgress) -> Result<(), ApplyError> {
        crash::die_if_armed("before-outbox");
        let noted = || {
            let bytes = serde_json::to_vec(progress).map_err(io::Error::other)?;
            let folder = self.root().make_own_folder(Some(FOLDER))?;
            durable::replace_private_file(&folder, &progress_file_name(of), &bytes)?;
            durable::sync_folder(&folder)
        };
        noted().map_err(ApplyError::wrap_io(display_path(of)))?;
        crash::die_if_armed("after-outbox");
        Ok(())
    }

    /// Forgets how far a delivery has come, which is recorded by then.
    ///
    /// # Errors
    /// Those of the disk, naming the file.
    pub fn remove_delivery_progress(&self, of: &ActionId) -> Result<(), ApplyError> {
        let folder = self.root().find_own_folder(Some(FOLDER));
        let gone = folder
            .and_then(|folder| folder.map_or(Ok(()), |folder| durable::remove_file(&folder, &progress_file_name(of))));
        gone.map_err(ApplyError::wrap_io(display_path(of)))
    }
}

/// How far a delivery has come; `None` where nothing was noted.
///
/// # Errors
/// Those of the disk, and one that names the mend where the file is no note of ours.
pub fn read_delivery_progress(root: &VaultRoot, of: &ActionId) -> Result<Option<DeliveryProgress>, ApplyError> {
    let read = || {
        let Some(folder) = root.find_own_folder(Some(FOLDER))? else { return Ok(None) };
        match folder.read(progress_file_name(of)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|e| {
                io::Error::other(format!("not readable ({e}): move it away; the tracker is then asked what is there"))
            }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    };
    read().map_err(ApplyError::wrap_io(display_path(of)))
}

/// The record that answers an action or tells what came of it; `None` where there is none.
///
/// # Errors
/// [`ApplyError::Chain`] where it is there and cannot be read.
pub fn find_follower(
    root: &VaultRoot,
    of: &AuditRecord,
    kind: ActionKind,
) -> Result<Option<(RecordPath, AuditRecord)>, ApplyError> {
    let path = of.draft.follow_up_path(kind).map_err(|e| ApplyError::Form(e.to_string()))?;
    match chain::read_audit_record(root, &path) {
        Ok((record, _)) => Ok(Some((path, record))),
        Err(ChainError::Root(VaultRootError::Missing { .. })) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// What is known of the tracker's part of a record; `None` where it has none.
///
/// # Errors
/// As [`find_follower`] and [`progress`].
pub fn read_delivery_status(root: &VaultRoot, record: &AuditRecord) -> Result<Option<DeliveryStatus>, ApplyError> {
    let Some(says) = record.plane_action.clone().filter(|_| !record.draft.kind.is_tracker_outcome()) else {
        return Ok(None);
    };
    let came = find_follower(root, record, ActionKind::Tracked)?.and_then(|(path, r)| Some((path, r.plane_action?)));
    let failed = find_follower(root, record, ActionKind::TrackFailed)?.map(|(path, _)| path);
    Ok(Some(DeliveryStatus { says, came, failed, progress: read_delivery_progress(root, &record.draft.id)? }))
}

fn progress_file_name(of: &ActionId) -> String {
    format!("{of}.json")
}

fn display_path(of: &ActionId) -> String {
    format!("{OWN_FOLDER}/{FOLDER}/{}", progress_file_name(of))
}

#[cfg(test)]
mod tests;

//! What is owed to the tracker, and how far each delivery has come.
//!
//! That something is owed stands in the audit records, and so does what came of it ([`Keeper::track`]);
//! both survive the loss of every database. How far a delivery has come lies in
//! `.steward/outbox/<action id>.json`: what the issue was before is durable there before anything is sent,
//! so that a delivery that was cut short goes on instead of beginning anew. Sending is not done here.

use crate::chain::{self, ChainError};
use crate::crash;
use crate::durable;
use crate::keeper::{ApplyError, Keeper, Receipt};
use crate::root::{OWN_FOLDER, Root, RootError};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::io;
use steward_domain::audit::{ActionKind, AuditRecord, WorkflowRef};
use steward_domain::path::RecordPath;
use steward_domain::plan::ActionId;
use steward_domain::tracker::{self, PlaneAction, TrackerId};

const FOLDER: &str = "outbox";

/// What the keeper must know of the tracker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// For tasks without a `plane_project_id`.
    pub project: Option<TrackerId>,
}

/// How far a delivery has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
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
pub struct Standing {
    /// What the record itself says.
    pub says: PlaneAction,
    /// What came of it, and the record of that; `None` while it is owed.
    pub came: Option<(RecordPath, PlaneAction)>,
    /// The record of the first try in vain.
    pub failed: Option<RecordPath>,
    pub progress: Option<Progress>,
}

impl Keeper {
    /// Files what came of what a record owes to the tracker, once however often it is asked.
    ///
    /// # Errors
    /// [`ApplyError`]; asking again is safe.
    pub fn track(
        &self,
        owing: &AuditRecord,
        came: &PlaneAction,
        workflow: WorkflowRef,
        now: DateTime<Utc>,
    ) -> Result<Receipt, ApplyError> {
        let mut turn = self.turn()?;
        let plan = tracker::plan_tracker_outcome(owing, came, workflow, now);
        self.carry_out(&mut turn, &plan, Some(came.clone()))
    }

    /// Notes how far a delivery has come, durable.
    ///
    /// # Errors
    /// Those of the disk, naming the file.
    pub fn note_delivery(&self, of: &ActionId, progress: &Progress) -> Result<(), ApplyError> {
        crash::point("before-outbox");
        let noted = || {
            let bytes = serde_json::to_vec(progress).map_err(io::Error::other)?;
            let folder = self.root().own_folder(Some(FOLDER))?;
            durable::replace_private(&folder, &file(of), &bytes)?;
            durable::sync(&folder)
        };
        noted().map_err(ApplyError::io(shown(of)))?;
        crash::point("after-outbox");
        Ok(())
    }

    /// Forgets how far a delivery has come, which is recorded by then.
    ///
    /// # Errors
    /// Those of the disk, naming the file.
    pub fn forget_delivery(&self, of: &ActionId) -> Result<(), ApplyError> {
        let folder = self.root().find_own_folder(Some(FOLDER));
        let gone = folder.and_then(|folder| folder.map_or(Ok(()), |folder| durable::remove(&folder, &file(of))));
        gone.map_err(ApplyError::io(shown(of)))
    }
}

/// How far a delivery has come; `None` where nothing was noted.
///
/// # Errors
/// Those of the disk, and one that names the mend where the file is no note of ours.
pub fn progress(root: &Root, of: &ActionId) -> Result<Option<Progress>, ApplyError> {
    let read = || {
        let Some(folder) = root.find_own_folder(Some(FOLDER))? else { return Ok(None) };
        match folder.read(file(of)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|e| {
                io::Error::other(format!("not readable ({e}): move it away; the tracker is then asked what is there"))
            }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    };
    read().map_err(ApplyError::io(shown(of)))
}

/// The record that answers an action or tells what came of it; `None` where there is none.
///
/// # Errors
/// [`ApplyError::Chain`] where it is there and cannot be read.
pub fn follower(
    root: &Root,
    of: &AuditRecord,
    kind: ActionKind,
) -> Result<Option<(RecordPath, AuditRecord)>, ApplyError> {
    let path = of.draft.follow_up_path(kind).map_err(|e| ApplyError::Form(e.to_string()))?;
    match chain::read(root, &path) {
        Ok((record, _)) => Ok(Some((path, record))),
        Err(ChainError::Root(RootError::Missing { .. })) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// What is known of the tracker's part of a record; `None` where it has none.
///
/// # Errors
/// As [`follower`] and [`progress`].
pub fn standing(root: &Root, record: &AuditRecord) -> Result<Option<Standing>, ApplyError> {
    let Some(says) = record.plane_action.clone().filter(|_| !record.draft.kind.is_tracker_outcome()) else {
        return Ok(None);
    };
    let came = follower(root, record, ActionKind::Tracked)?.and_then(|(path, r)| Some((path, r.plane_action?)));
    let failed = follower(root, record, ActionKind::TrackFailed)?.map(|(path, _)| path);
    Ok(Some(Standing { says, came, failed, progress: progress(root, &record.draft.id)? }))
}

fn file(of: &ActionId) -> String {
    format!("{of}.json")
}

fn shown(of: &ActionId) -> String {
    format!("{OWN_FOLDER}/{FOLDER}/{}", file(of))
}

#[cfg(test)]
mod tests;

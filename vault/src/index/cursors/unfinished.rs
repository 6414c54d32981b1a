//! Writes that a full or broken disk prevented, until they succeed.
//!
//! They are kept in memory, because nothing can be written. A scan and the next check of each matter find the same
//! work, only later. `CursorsView::finish_deferred_work` makes the writes in their original order, and then wakes the
//! matters.

use super::lease;
use crate::files::root::VaultRoot;
use crate::gates::stop;
use crate::index::CompletedCheck;
use crate::index::CursorsView;
use crate::index::IndexError;
use crate::index::ScanChanges;
use crate::index::store::rows::to_json;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use steward_domain::record::path::RecordPath;

/// How long a target rests after its change failed: 15 s, so that retries do not wear a disk with too little space.
const REST: TimeDelta = TimeDelta::seconds(15);

/// Marks the matters of targets, which are tasks or matters. ?1: the paths of the targets.
const MARK_MATTERS: &str = "INSERT INTO wakes (matter, at)
    SELECT DISTINCT COALESCE(t.parent, m.path), ?2 FROM json_each(?1) j
    LEFT JOIN tasks t ON t.path = j.value LEFT JOIN matters m ON m.path = j.value
    WHERE COALESCE(t.parent, m.path) IS NOT NULL
    ON CONFLICT (matter) DO UPDATE SET at = MAX(at, excluded.at)";

/// Work that waits for the disk.
#[derive(Debug, Default)]
pub(crate) struct UnfinishedWork(Mutex<DeferredWork>);

#[derive(Debug, Default)]
struct DeferredWork {
    /// Files that were written but not read into the tables yet.
    unread: BTreeSet<RecordPath>,
    checks: Vec<CompletedCheck>,
    /// Ids of checks whose leases could not be released.
    leases: BTreeSet<String>,
    /// Targets whose change failed, and since when.
    targets: BTreeMap<RecordPath, DateTime<Utc>>,
}

impl UnfinishedWork {
    fn lock(&self) -> MutexGuard<'_, DeferredWork> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CursorsView<'_> {
    /// Reads these files as soon as the disk can be written.
    pub fn read_files_later(self, paths: &[RecordPath]) {
        self.index.unfinished.lock().unread.extend(paths.iter().cloned());
    }

    /// Records a check as soon as the disk can be written; see `CursorsView::record_check`.
    pub fn record_check_later(self, done: CompletedCheck) {
        self.index.unfinished.lock().checks.push(done);
    }

    /// Releases the leases of a check as soon as the disk can be written; see `CursorsView::release_leases`.
    pub fn release_leases_later(self, check_id: &str) {
        self.index.unfinished.lock().leases.insert(check_id.to_owned());
    }

    /// Wakes the matter of a task, or a matter, as soon as the disk can be written.
    pub fn wake_later(self, target: &RecordPath, now: DateTime<Utc>) {
        self.index.unfinished.lock().targets.insert(target.clone(), now);
    }

    /// Lets the router and the extraction run again after the next scan.
    pub fn run_routines_again(self) {
        self.publish_changes(ScanChanges::ANYTHING, false);
    }

    /// Reads the files that `CursorsView::read_files_later` noted.
    ///
    /// # Errors
    /// [`IndexError`] if they still cannot be read; they stay noted.
    pub async fn read_deferred_files(self, root: &VaultRoot) -> Result<(), IndexError> {
        let unread: Vec<RecordPath> = self.index.unfinished.lock().unread.iter().cloned().collect();
        if !unread.is_empty() {
            self.index.sync_paths(root, &unread, Utc::now()).await?;
            let mut waiting = self.index.unfinished.lock();
            waiting.unread.retain(|path| !unread.contains(path));
        }
        Ok(())
    }

    /// Makes the deferred writes. Cheap if there are none.
    ///
    /// # Errors
    /// [`IndexError`] if the disk still cannot be written; everything stays deferred.
    pub async fn finish_deferred_work(self, root: &VaultRoot, now: DateTime<Utc>) -> Result<(), IndexError> {
        self.read_deferred_files(root).await?;
        let checks = self.index.unfinished.lock().checks.clone();
        for done in &checks {
            self.record_check(done).await?;
            self.index
                .unfinished
                .lock()
                .checks
                .retain(|other| other.check_id != done.check_id || other.task != done.task);
        }
        let (leases, targets) = {
            let waiting = self.index.unfinished.lock();
            let rested = waiting.targets.iter().filter(|(_, since)| has_rested(**since, now));
            // A check during a stop would clear the mark and do nothing.
            let may_act = !stop::is_stopped(root);
            let targets: Vec<RecordPath> = rested.filter(|_| may_act).map(|(path, _)| path.clone()).collect();
            (waiting.leases.clone(), targets)
        };
        if leases.is_empty() && targets.is_empty() {
            return Ok(());
        }
        self.release_leases_and_wake(&leases, &targets, now).await?;
        {
            let mut waiting = self.index.unfinished.lock();
            waiting.leases.retain(|check_id| !leases.contains(check_id));
            waiting.targets.retain(|path, since| !has_rested(*since, now) || !targets.contains(path));
        }
        if !targets.is_empty() {
            self.notify_wakes();
        }
        Ok(())
    }

    async fn release_leases_and_wake(
        self,
        leases: &BTreeSet<String>,
        targets: &[RecordPath],
        now: DateTime<Utc>,
    ) -> Result<(), IndexError> {
        let mut tx = self.index.begin_write().await?;
        let work = async {
            for check_id in leases {
                sqlx::query("DELETE FROM leases WHERE run = ?1")
                    .bind(lease::parse_run_id(check_id))
                    .execute(&mut *tx)
                    .await?;
            }
            sqlx::query(MARK_MATTERS)
                .bind(to_json(&targets))
                .bind(crate::index::store::codec::to_micros(now))
                .execute(&mut *tx)
                .await?;
            tx.commit().await
        };
        work.await.map_err(|e| self.index.sql_error(e))
    }
}

/// A clock that was set back delays nothing.
fn has_rested(since: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    now < since || now - since >= REST
}

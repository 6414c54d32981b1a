//! Scans: they bring the tables in line with the files.
//!
//! A normal scan lists every folder once and opens only the files that changed. A hint names single files. A content
//! scan trusts no time and reads every file, and a rebuild also parses every file again. All of them work in batches
//! and leave the tables consistent at every moment. The consequences of a change (a matter to wake, schedules to
//! compare) are published as [`ScanChanges`], and the listener acts on them.

use super::codec;
use super::parse::ParsedRecord;
use crate::files::root::{VaultRoot, VaultRootError};
use crate::index::Index;
use crate::index::IndexError;
use crate::index::ScanChanges;
use crate::index::VaultProblem;
use crate::index::cursors::wake;
use crate::index::store::files::{self, FileToRead, ScanContext, ScanDepth, ScannedFile};
use crate::index::store::rows::ScanClock;
use chrono::{DateTime, Utc};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use steward_domain::record::path::{RecordKind, RecordPath};

/// Files per batch: a transaction of about 50 ms whose pages are written once, and a megabyte of rows in memory.
pub(crate) const BATCH_SIZE: usize = 500;
/// Batches that are read while one is written. Reading is parsing, so more would only occupy cores.
const CONCURRENT_READS: usize = 2;
/// The order of the folders. Actions and instincts come before the signals that they concern.
pub(crate) const SCAN_ORDER: [RecordKind; 6] = [
    RecordKind::Matter,
    RecordKind::Task,
    RecordKind::Event,
    RecordKind::Instinct,
    RecordKind::Signal,
    RecordKind::Stream,
];

/// Restores the cursors from the audit records. A record from a clock that ran ahead puts no cursor into the future, so
/// signals that arrive now are fresh.
const RESTORE_CURSORS: &str = "INSERT OR IGNORE INTO task_checks (task, last_check_at, outcome, streak, look_id)
    SELECT target, MIN(MAX(at), ?1 - 1), decision, 0, '' FROM actions
    WHERE kind = 'steward-action' AND judged = 1 GROUP BY target";
/// A signal that an action about its target cites was first seen no later than that action, so it is not judged again.
const DATE_CITED_SIGNALS: &str = "UPDATE first_seen SET at = MIN(first_seen.at, cited.at) FROM (
        SELECT e.ref AS signal, MAX(a.at) AS at FROM action_evidence e JOIN actions a ON a.path = e.action
        JOIN signals s ON s.path = e.ref AND s.target = a.target WHERE a.kind = 'steward-action' GROUP BY e.ref) AS cited
    WHERE first_seen.signal = cited.signal";
/// A signal that no action about its target cites may never have been judged, so it counts as first seen now.
const DATE_UNCITED_SIGNALS: &str = "UPDATE first_seen SET at = ?1 WHERE signal IN (
        SELECT s.path FROM signals s JOIN task_checks c ON c.task = s.target
        WHERE s.applied = 0 AND s.effect <> 'none' AND NOT EXISTS (
            SELECT 1 FROM action_evidence e JOIN actions a ON a.path = e.action
            WHERE e.ref = s.path AND a.target = s.target AND a.kind = 'steward-action'))";

/// The result of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SyncReport {
    /// Files that were opened or whose listing changed.
    pub read: u64,
    /// Files that are new or have different content.
    pub changed: u64,
    /// Files that no longer exist.
    pub removed: u64,
    /// Files among those read that cannot be used, and folders that could not be listed.
    pub problems: Vec<VaultProblem>,
    /// Matters with a new or changed signal that counts. They are ticked at once.
    pub woken: BTreeSet<RecordPath>,
    /// The changes to act on. They are published to the listener (`CursorsView::wait_for_changes`).
    #[serde(skip)]
    pub scan_changes: ScanChanges,
    /// Whether every folder could be listed. Nothing is removed of a folder that could not.
    pub complete: bool,
    /// Whether this was the very first scan: everything in it is new, and `woken` names every matter with signals.
    pub first: bool,
}

/// A running scan.
struct VaultScan<'a> {
    index: &'a Index,
    root: &'a VaultRoot,
    depth: ScanDepth,
    clock: ScanClock,
    report: SyncReport,
    signals: Vec<String>,
}

impl Index {
    /// Lists every folder and reads the files that changed since the last scan.
    ///
    /// # Errors
    /// [`IndexError`] if `state.db` fails. A file or folder that fails is a problem in the report.
    pub async fn sync_all(&self, root: &VaultRoot, now: DateTime<Utc>) -> Result<SyncReport, IndexError> {
        self.scan_vault(root, now, ScanDepth::Stat).await
    }

    /// Reads every file and updates the rows of each whose content differs, even if its time did not change.
    ///
    /// # Errors
    /// As [`Index::sync_all`].
    pub async fn sync_contents(&self, root: &VaultRoot, now: DateTime<Utc>) -> Result<SyncReport, IndexError> {
        self.scan_vault(root, now, ScanDepth::Content).await
    }

    /// Fills the derived tables again from the files. Cursors and first-seen moments stay.
    ///
    /// # Errors
    /// As [`Index::sync_all`].
    pub async fn rebuild(&self, root: &VaultRoot, now: DateTime<Utc>) -> Result<SyncReport, IndexError> {
        self.scan_vault(root, now, ScanDepth::Nothing).await
    }

    /// Reads the single files that a hint names. Rows of missing files are removed.
    ///
    /// # Errors
    /// As [`Index::sync_all`].
    pub async fn sync_paths(
        &self,
        root: &VaultRoot,
        paths: &[RecordPath],
        now: DateTime<Utc>,
    ) -> Result<SyncReport, IndexError> {
        let _guard = self.scan_lock.lock().await;
        self.publish_scan(self.scan_paths(root, paths, now).await)
    }

    /// Lists one folder and reads what has moved in it since the last scan.
    ///
    /// # Errors
    /// As [`Index::sync_all`].
    pub async fn sync_folder(
        &self,
        root: &VaultRoot,
        kind: RecordKind,
        now: DateTime<Utc>,
    ) -> Result<SyncReport, IndexError> {
        let _turn = self.scan_lock.lock().await;
        self.read_note_names().await?;
        let mut scan = VaultScan::new(self, root, ScanDepth::Stat, ScanClock { now, is_first_scan: false });
        let scanned = match scan.scan_folder(kind).await {
            Ok(()) => scan.finish_report(None).await,
            Err(e) => Err(e),
        };
        self.publish_scan(scanned)
    }

    /// Publishes the changes of a scan. A failed scan may have found any change, so it publishes all of them.
    fn publish_scan(&self, scanned: Result<SyncReport, IndexError>) -> Result<SyncReport, IndexError> {
        if scanned.as_ref().map_or(true, |report| !report.woken.is_empty()) {
            self.cursors().notify_wakes();
        }
        match &scanned {
            Ok(report) => {
                self.cursors().publish_changes(report.scan_changes, report.scan_changes != ScanChanges::default())
            }
            // Without a notification, because the failing work would otherwise be retried without a pause.
            Err(_) => self.cursors().publish_changes(ScanChanges::ANYTHING, false),
        }
        scanned
    }

    async fn scan_paths(
        &self,
        root: &VaultRoot,
        paths: &[RecordPath],
        now: DateTime<Utc>,
    ) -> Result<SyncReport, IndexError> {
        let clock = ScanClock { now, is_first_scan: false };
        let mut scan = VaultScan::new(self, root, ScanDepth::Stat, clock);
        self.read_note_names().await?;
        let touches_matters = paths.iter().any(|p| p.scanned_kind() == Some(RecordKind::Matter));
        let before = if touches_matters { Some(self.read_matter_states().await?) } else { None };
        for kind in SCAN_ORDER {
            let named: BTreeSet<&RecordPath> = paths
                .iter()
                .filter(|p| p.scanned_kind() == Some(kind) && files::is_ours(kind, p.file_name()))
                .collect();
            if !named.is_empty() {
                scan.scan_named_files(kind, &named).await?;
            }
        }
        scan.finish_report(before).await
    }

    async fn scan_vault(
        &self,
        root: &VaultRoot,
        now: DateTime<Utc>,
        depth: ScanDepth,
    ) -> Result<SyncReport, IndexError> {
        let _guard = self.scan_lock.lock().await;
        self.publish_scan(self.scan_folders(root, now, depth).await)
    }

    async fn scan_folders(
        &self,
        root: &VaultRoot,
        now: DateTime<Utc>,
        depth: ScanDepth,
    ) -> Result<SyncReport, IndexError> {
        self.scan_progress.reset();
        self.reload_note_names().await?;
        let before = self.read_matter_states().await?;
        let first = !self.is_filled();
        let mut scan = VaultScan::new(self, root, depth, ScanClock { now, is_first_scan: first });
        scan.report.first = first;
        for kind in SCAN_ORDER {
            scan.scan_folder(kind).await?;
        }
        if depth == ScanDepth::Nothing {
            self.drop_strays().await?;
        }
        if scan.report.complete {
            self.mark_filled(now, first).await?;
        }
        scan.finish_report(Some(before)).await
    }

    /// Ends a whole scan. The very first scan restores lost cursors from the audit records.
    async fn mark_filled(&self, now: DateTime<Utc>, first: bool) -> Result<(), IndexError> {
        let mut tx = self.begin_write().await?;
        let work = async {
            if first {
                sqlx::query(RESTORE_CURSORS).bind(codec::to_micros(now)).execute(&mut *tx).await?;
                sqlx::query(DATE_CITED_SIGNALS).execute(&mut *tx).await?;
                sqlx::query(DATE_UNCITED_SIGNALS).bind(codec::to_micros(now)).execute(&mut *tx).await?;
                wake::mark_unjudged(&mut tx, codec::to_micros(now)).await?;
            }
            for sql in [
                "INSERT OR IGNORE INTO meta (key, value) VALUES ('filled_at', ?1)",
                "INSERT OR REPLACE INTO meta (key, value) VALUES ('synced_at', ?1)",
            ] {
                sqlx::query(sql).bind(codec::to_micros(now)).execute(&mut *tx).await?;
            }
            tx.commit().await
        };
        work.await.map_err(|e| self.sql_error(e))?;
        self.filled.store(true, Ordering::Release);
        Ok(())
    }
}

impl<'a> VaultScan<'a> {
    fn new(index: &'a Index, root: &'a VaultRoot, depth: ScanDepth, clock: ScanClock) -> Self {
        let report = SyncReport { complete: true, ..SyncReport::default() };
        Self { index, root, depth, clock, report, signals: Vec::new() }
    }

    /// Scans one folder. A folder that cannot be listed is a problem, and its rows stay.
    async fn scan_folder(&mut self, kind: RecordKind) -> Result<(), IndexError> {
        let root = self.root.clone();
        let entries = match tokio::task::spawn_blocking(move || files::list_folder(&root, kind)).await? {
            Ok(entries) => entries,
            Err(e) => {
                self.report_unlisted_folder(kind, &e);
                return Ok(());
            }
        };
        let mut known = self.index.read_known_files(kind, None).await?;
        let mut wanted = Vec::new();
        for entry in entries {
            let path = format!("{}/{}", kind.folder(), entry.name);
            let known = known.remove(&path);
            if self.depth != ScanDepth::Stat || known.as_ref().is_none_or(|k| !k.is_same_file(&entry)) {
                wanted.push(FileToRead { path, entry, known });
            }
        }
        self.forget_gone_files(kind, known.into_keys().collect()).await?;
        self.read_files(kind, wanted).await
    }

    /// Scans single files of one kind.
    async fn scan_named_files(&mut self, kind: RecordKind, named: &BTreeSet<&RecordPath>) -> Result<(), IndexError> {
        let paths: Vec<String> = named.iter().map(|p| p.to_string()).collect();
        let mut known = self.index.read_known_files(kind, Some(&paths)).await?;
        let (root, records) = (self.root.clone(), named.iter().map(|p| (*p).clone()).collect::<Vec<_>>());
        let entries = tokio::task::spawn_blocking(move || {
            records.into_iter().map(|p| (root.find_entry(&p), p)).collect::<Vec<_>>()
        });
        let (mut wanted, mut gone) = (Vec::new(), Vec::new());
        for (entry, record) in entries.await? {
            let path = record.to_string();
            match entry {
                Ok(Some(entry)) => wanted.push(FileToRead { known: known.remove(&path), path, entry }),
                Ok(None) if known.contains_key(&path) => gone.push(path),
                Ok(None) => {}
                Err(e) => self.report.problems.push(VaultProblem { path, message: e.to_string() }),
            }
        }
        self.forget_gone_files(kind, gone).await?;
        self.read_files(kind, wanted).await
    }

    async fn read_files(&mut self, kind: RecordKind, wanted: Vec<FileToRead>) -> Result<(), IndexError> {
        self.report.read += wanted.len() as u64;
        self.index.scan_progress.add_expected(wanted.len());
        let depth = self.depth;
        let batches = stream::iter(split_into_batches(wanted)).map(|batch| {
            let scan = ScanContext { depth, names: self.index.note_names.read().unwrap_or_default() };
            let (root, count) = (self.root.clone(), batch.len());
            let read =
                move || batch.into_iter().filter_map(|w| files::scan_file(&root, kind, w, &scan)).collect::<Vec<_>>();
            tokio::task::spawn_blocking(move || (count, read()))
        });
        let mut batches = batches.buffered(CONCURRENT_READS);
        while let Some((count, files)) = batches.try_next().await? {
            self.index.scan_progress.add_done(count);
            self.signals.extend(self.index.write_files(kind, &files, self.clock).await?);
            add_files_to_report(&mut self.report, files);
        }
        Ok(())
    }

    async fn forget_gone_files(&mut self, kind: RecordKind, gone: Vec<String>) -> Result<(), IndexError> {
        self.report.removed += gone.len() as u64;
        self.index.forget_files(kind, &gone).await
    }

    fn report_unlisted_folder(&mut self, kind: RecordKind, error: &VaultRootError) {
        self.report.complete = false;
        let path = format!("{}/", kind.folder());
        let message = error.to_string();
        let message = message.strip_prefix(&format!("{path}: ")).unwrap_or(&message);
        self.report.problems.push(VaultProblem {
            path,
            message: format!("{message}: make it a folder that the user who runs Steward may read"),
        });
    }

    async fn finish_report(
        mut self,
        before: Option<BTreeMap<String, Option<String>>>,
    ) -> Result<SyncReport, IndexError> {
        if let Some(before) = before {
            self.report.scan_changes.matters_changed = before != self.index.read_matter_states().await?;
        }
        self.report.scan_changes.signals_arrived = self.index.signals().has_signal_to_route(&self.signals).await?;
        self.report.woken = self.index.cursors().list_matters_of_signals(&self.signals).await?.into_iter().collect();
        Ok(self.report)
    }
}

fn add_files_to_report(report: &mut SyncReport, files: Vec<ScannedFile>) {
    for file in files {
        report.changed += u64::from(file.changed);
        report.scan_changes.events_arrived |=
            file.changed && matches!(&file.parsed, Some(ParsedRecord::Stream(e)) if e.is_untouched());
        report.scan_changes.owing_arrived |=
            file.changed && matches!(&file.parsed, Some(ParsedRecord::Action(a)) if a.has_owed_delivery());
        if let Some(message) = file.now.problem {
            report.problems.push(VaultProblem { path: file.path, message });
        }
    }
}

/// Splits the files into batches that each allocate memory for their own files only. With capacity for all files after
/// them, a hundred batches would take fifty times the memory of the list.
pub(crate) fn split_into_batches(wanted: Vec<FileToRead>) -> Vec<Vec<FileToRead>> {
    let count = wanted.len().div_ceil(BATCH_SIZE);
    let mut wanted = wanted.into_iter();
    (0..count).map(|_| wanted.by_ref().take(BATCH_SIZE).collect()).collect()
}

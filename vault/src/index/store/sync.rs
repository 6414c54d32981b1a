//! Scans: they bring the tables in line with the files.
//!
//! A normal scan lists every folder once and opens only the files that changed. A hint names single files. A content
//! scan trusts no time and reads every file, and a rebuild also parses every file again. All of them work in batches
//! and leave the tables consistent at every moment. The consequences of a change (a matter to wake, schedules to
//! compare) are published as [`ScanChanges`], and the listener acts on them.

use super::parse::ParsedRecord;
use crate::files::root::{VaultRoot, VaultRootError};
use crate::index::Index;
use crate::index::IndexError;
use crate::index::ScanChanges;
use crate::index::VaultProblem;
use crate::index::store::files::{self, FileToRead, ScanContext, ScanDepth, ScannedFile};
use crate::index::store::rows::ScanClock;
use chrono::{DateTime, Utc};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
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
pub(super) struct VaultScan<'a> {
    pub(super) index: &'a Index,
    pub(super) root: &'a VaultRoot,
    pub(super) depth: ScanDepth,
    pub(super) clock: ScanClock,
    pub(super) report: SyncReport,
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
        let mut scan =
            VaultScan::new(self, root, ScanDepth::Stat, ScanClock { now, is_first_scan: false, is_remapped: false });
        let is_mapped_note = kind.is_note() && self.note_schema().is_mapped();
        let work = async { if is_mapped_note { scan.scan_notes().await } else { scan.scan_folder(kind).await } };
        let scanned = match work.await {
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
        let clock = ScanClock { now, is_first_scan: false, is_remapped: false };
        let mut scan = VaultScan::new(self, root, ScanDepth::Stat, clock);
        self.read_note_names().await?;
        let mut paths = paths.to_vec();
        paths.extend(self.list_other_paths(root, &paths).await?);
        let is_mapped = self.note_schema().is_mapped();
        let paths = paths.as_slice();
        let kind_of = |path: &RecordPath| if is_mapped { path.own_kind() } else { path.scanned_kind() };
        let touches_matters = paths.iter().any(|p| kind_of(p).map_or(is_mapped, |kind| kind == RecordKind::Matter));
        let before = if touches_matters { Some(self.read_matter_states().await?) } else { None };
        let notes: BTreeSet<&RecordPath> = paths.iter().filter(|p| is_mapped && p.own_kind().is_none()).collect();
        if !notes.is_empty() {
            scan.scan_named_notes(&notes).await?;
        }
        for kind in SCAN_ORDER {
            let named: BTreeSet<&RecordPath> =
                paths.iter().filter(|p| kind_of(p) == Some(kind) && files::is_ours(kind, p.file_name())).collect();
            if !named.is_empty() {
                scan.scan_named_files(kind, &named).await?;
            }
        }
        if paths.iter().any(|path| path.own_kind() == Some(RecordKind::Event)) {
            scan.follow_new_moves().await?;
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
        let is_same_mapping = self.is_filled_under_mapping().await?;
        let depth = if is_same_mapping { depth } else { ScanDepth::Nothing };
        if !is_same_mapping && !self.note_schema().is_mapped() {
            self.forget_other_notes().await?;
        }
        self.reload_note_names().await?;
        self.load_note_moves().await?;
        let before = self.read_matter_states().await?;
        let first = !self.is_filled();
        let mut scan =
            VaultScan::new(self, root, depth, ScanClock { now, is_first_scan: first, is_remapped: !is_same_mapping });
        scan.report.first = first;
        if self.note_schema().is_mapped() {
            scan.scan_notes().await?;
        }
        for kind in SCAN_ORDER {
            if !(kind.is_note() && self.note_schema().is_mapped()) {
                scan.scan_folder(kind).await?;
            }
        }
        scan.follow_new_moves().await?;
        scan.report.problems.extend(self.scan_wikis(root, depth).await?);
        if depth == ScanDepth::Nothing {
            self.drop_strays().await?;
        }
        if scan.report.complete {
            self.mark_filled(now, first).await?;
            self.keep_mapping_number().await?;
        }
        if !is_same_mapping {
            self.see_signals_of_ended_proposals_again(now).await?;
        }
        self.load_accepted_mappings(root).await?;
        scan.finish_report(Some(before)).await
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
                self.report_unlisted_folder(kind.folder(), &e);
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
    pub(super) async fn scan_named_files(
        &mut self,
        kind: RecordKind,
        named: &BTreeSet<&RecordPath>,
    ) -> Result<(), IndexError> {
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
        let scan = self.create_context();
        let batches = stream::iter(split_into_batches(wanted)).map(|batch| {
            let scan = scan.clone();
            let (root, count) = (self.root.clone(), batch.len());
            let read =
                move || batch.into_iter().filter_map(|w| files::scan_file(&root, kind, w, &scan)).collect::<Vec<_>>();
            tokio::task::spawn_blocking(move || (count, read()))
        });
        let mut batches = batches.buffered(CONCURRENT_READS);
        while let Some((count, files)) = batches.try_next().await? {
            self.index.scan_progress.add_done(count);
            self.write_scanned(kind, files).await?;
        }
        Ok(())
    }

    /// What reading a file depends on.
    pub(super) fn create_context(&self) -> ScanContext {
        let notes = &self.index.notes;
        ScanContext {
            depth: self.depth,
            names: notes.names_or_empty(),
            moves: notes.moves(),
            schema: Arc::clone(&notes.schema),
        }
    }

    /// Writes a batch of files of one kind.
    pub(super) async fn write_scanned(&mut self, kind: RecordKind, files: Vec<ScannedFile>) -> Result<(), IndexError> {
        self.signals.extend(self.index.write_files(kind, &files, self.clock).await?);
        add_files_to_report(&mut self.report, files);
        Ok(())
    }

    pub(super) async fn forget_gone_files(&mut self, kind: RecordKind, gone: Vec<String>) -> Result<(), IndexError> {
        self.report.removed += gone.len() as u64;
        self.index.forget_files(kind, &gone, Some(self.clock.now)).await
    }

    /// Reports a folder of the root, or the root for an empty name.
    pub(super) fn report_unlisted_folder(&mut self, folder: &str, error: &VaultRootError) {
        self.report.complete = false;
        let path = format!("{folder}/");
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
pub(crate) fn split_into_batches<T>(wanted: Vec<T>) -> Vec<Vec<T>> {
    let count = wanted.len().div_ceil(BATCH_SIZE);
    let mut wanted = wanted.into_iter();
    (0..count).map(|_| wanted.by_ref().take(BATCH_SIZE).collect()).collect()
}

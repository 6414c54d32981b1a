//! The index of a vault and the stewards' cursors, in one SQLite file.
//!
//! The file has two kinds of tables. Derived tables repeat what the vault's files say: a scan fills them, and a
//! rebuild fills them again. State tables exist nowhere else: when a task was last checked, how long a matter has
//! been quiet, when a signal was first seen.
//!
//! The queries are methods of borrowed views, one for each folder: [`Index::actions`], [`Index::cursors`], [`Index::gates`],
//! [`Index::read`], [`Index::signals`], [`Index::trust`] and [`Index::wiki`]. [`Index`] itself opens and fills the file.
//! Nothing here writes to the vault: only [`crate::action::writer`] changes a record.

mod actions;
mod cursors;
mod gates;
mod read;
mod signals;
mod store;
mod trust;
mod wiki;

use crate::files::root::VaultRootError;
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use steward_domain::action::plan::ContentHash;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::record::schema::NoteSchema;
use store::schema::{FileCheck, StateDatabase};
use tokio::sync::Mutex;

pub use actions::ActionsView;
pub use actions::action::{ActionLookup, ActionRow};
pub use actions::charts::{ConfidenceBin, DailyActionCount};
pub use actions::clusters::{ActionCluster, MAX_CLUSTER_IDS};
pub use actions::list::{ActionFilter, ActionSubset, ActionsSince};
pub use actions::owed_deliveries::OwedDelivery;
pub use actions::waiting::PROPOSAL_LIFETIME;
pub use cursors::CursorsView;
pub use cursors::news::ScanChanges;
pub use cursors::observe::{CheckDecision, ObservationQuery};
pub use cursors::snoozes::SnoozedNote;
pub use cursors::state::{CheckCount, CompletedCheck};
pub use cursors::timestamps::DueTimestampWrite;
pub use cursors::wake::WakeMark;
pub use gates::GatesView;
pub use gates::matter_policy::SourceCeiling;
pub use read::ReadView;
pub use read::matter_status::{LastTick, MatterInterval, TaskCheckStatus, TickLag};
pub use read::matters::{MatterCard, MatterFilter, RecordLabel};
pub use read::overview::{MatterRow, StateCounts, VaultCounts};
pub use read::page::{ListPage, MAX_PAGE, PageCursor, PageCursorError};
pub use read::revision::{IndexRevision, IndexWatcher, WrittenRecord};
pub use read::search::{SearchFilter, SearchHit};
pub use read::signals::{SignalFilter, SignalRow, TimelineRow};
pub use read::tasks::{TaskFilter, TaskRow};
pub use read::why::{RecordTitle, SubjectRow, WeighedSignal};
pub use signals::SignalsView;
pub use signals::events::{EventSignal, StreamEventRow};
pub use signals::route::{DeferralBasis, RouteDeferral, RouteFacts, RouteFactsQuery};
pub use signals::streams::{StreamCount, StreamIngestion};
pub use store::check::{DifferenceKind, IndexDifference};
pub use store::identities::FoundMoves;
pub(crate) use store::links::NoteCatalog;
pub use store::lost_notes::{LostNote, MoveRefusal};
pub use store::mapped::ExcludedNote;
pub use store::schema::{FILE, IndexFileStatus};
pub use store::sync::SyncReport;
pub use trust::TrustView;
pub use trust::demotions::ComparisonRound;
pub use trust::drills::DrillHistory;
pub use trust::numbers::{ChangedNumber, InstinctNumber};
pub use trust::sources::{InstinctSetting, SourceStatusChange, SourceTrust};
pub use wiki::{IndexedPage, WikiView};

/// The hint in messages about a file that cannot be used.
const REBUILD_HINT: &str = "run `steward index rebuild`: it quarantines the file, reads the vault again and restores \
                            the cursors from the audit records";

/// The index of one vault and the stewards' state. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Index {
    store: StateDatabase,
    /// Allows one scan at a time, so that an older read never overwrites a newer one.
    scan_lock: Arc<Mutex<()>>,
    /// Whether one whole scan has finished since the file was created.
    filled: Arc<AtomicBool>,
    /// Counts the writes of tasks and matters in this process.
    records_revision: Arc<AtomicU64>,
    scan_changes: Arc<cursors::news::ScanChangeBoard>,
    scan_progress: Arc<store::progress::ScanProgress>,
    unfinished: Arc<cursors::unfinished::UnfinishedWork>,
    pub(crate) notes: NoteCatalog,
    /// The wikis as this process scanned them last, by their names.
    scanned_wikis: Arc<std::sync::Mutex<BTreeMap<String, wiki::ScannedWiki>>>,
}

/// A record that cannot be used, with the hint how to fix it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct VaultProblem {
    /// Relative to the root of the vault. It may be no valid record path, because the name itself may be the problem.
    pub path: String,
    pub message: String,
}

/// A failure of `state.db` or of a query on it.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("{path}: {source}: allow Steward to write to the state folder")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path}: damaged ({reason}): {REBUILD_HINT}")]
    Damaged { path: PathBuf, reason: String },
    #[error(
        "{path}: written by a newer Steward (table version {found}, this one supports {known}): start that version, or \
         {REBUILD_HINT}"
    )]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("{path}: {source}")]
    Sql { path: PathBuf, source: sqlx::Error },
    #[error("{path}: contains the unknown value `{found}`: {REBUILD_HINT}")]
    Value { path: PathBuf, found: String },
    #[error("{path}: the vault has not been read yet: wait for the first scan, or run `steward index rebuild`")]
    Unfilled { path: PathBuf },
    #[error("an action is named by 4 to 16 hex digits of its id, not by `{0}`: list them with `steward audit list`")]
    Prefix(String),
    #[error(transparent)]
    Root(#[from] VaultRootError),
    #[error("a scan was interrupted: {0}")]
    CutShort(#[from] tokio::task::JoinError),
}

impl Index {
    /// The state folder, which contains `state.db`.
    #[must_use]
    pub fn state_dir(&self) -> &Path {
        self.store.file.parent().unwrap_or(&self.store.file)
    }

    /// What lies now where this index was opened.
    #[must_use]
    pub fn file_status(&self) -> IndexFileStatus {
        self.store.file_status()
    }

    /// Opens `state.db` in a folder and creates both if they are missing.
    ///
    /// # Errors
    /// [`IndexError`] if the file is damaged, foreign or of a newer version. It names the file and the fix.
    pub async fn open(state_dir: &Path) -> Result<Self, IndexError> {
        Self::open_with(state_dir, FileCheck::Whole).await
    }

    /// As [`Index::open`], beside the process that keeps the index: the file is not read as a whole, which takes longer than a
    /// search. What is damaged shows when it is read.
    ///
    /// # Errors
    /// As [`Index::open`].
    pub async fn open_beside(state_dir: &Path) -> Result<Self, IndexError> {
        Self::open_with(state_dir, FileCheck::Schema).await
    }

    async fn open_with(state_dir: &Path, check: FileCheck) -> Result<Self, IndexError> {
        let store = StateDatabase::open(state_dir, check).await?;
        let index = Self {
            store,
            scan_lock: Arc::default(),
            filled: Arc::default(),
            records_revision: Arc::default(),
            scan_changes: Arc::default(),
            scan_progress: Arc::default(),
            unfinished: Arc::default(),
            notes: NoteCatalog::default(),
            scanned_wikis: Arc::default(),
        };
        let filled = index.read_meta("filled_at").await?.is_some();
        index.filled.store(filled, Ordering::Release);
        Ok(index)
    }

    /// Opens `state.db`, after quarantining a file that cannot be used.
    ///
    /// Returns the new path of the old file. The caller scans the vault next, which restores the cursors from the audit
    /// records.
    ///
    /// # Errors
    /// [`IndexError`] if the state folder cannot be written.
    pub async fn open_or_recreate(state_dir: &Path) -> Result<(Self, Option<PathBuf>), IndexError> {
        match Self::open(state_dir).await {
            Ok(index) => Ok((index, None)),
            Err(IndexError::Damaged { .. } | IndexError::Newer { .. } | IndexError::Value { .. }) => {
                let quarantined = store::schema::quarantine_database(state_dir)?;
                Ok((Self::open(state_dir).await?, quarantined))
            }
            Err(e) => Err(e),
        }
    }

    /// Reads and writes notes by this schema. Without a call, the vault has no mapping. `accepted` are the hashes of all
    /// mappings that people accepted; what was made under one of them can be undone.
    #[must_use]
    pub fn with_schema(mut self, schema: NoteSchema, accepted: impl IntoIterator<Item = ContentHash>) -> Self {
        self.notes = NoteCatalog::new(schema, accepted.into_iter().collect());
        self
    }

    /// How the notes of the vault are read and written.
    #[must_use]
    pub fn note_schema(&self) -> &Arc<NoteSchema> {
        &self.notes.schema
    }

    /// Whether the whole vault has been read once. [`CursorsView::observe_due_tasks`] requires it.
    #[must_use]
    pub fn is_filled(&self) -> bool {
        self.filled.load(Ordering::Acquire)
    }

    /// The revision of tasks and matters.
    ///
    /// It rises whenever this process has written anything about one. Data that was read at one revision stays valid
    /// until the next.
    #[must_use]
    pub fn records_revision(&self) -> u64 {
        self.records_revision.load(Ordering::Acquire)
    }

    /// How many files the current or last scan has read, and how many it expects so far.
    #[must_use]
    pub fn scan_progress(&self) -> (usize, usize) {
        self.scan_progress.done_and_expected()
    }

    /// Must be called after the write, so that no reader takes old rows for new ones.
    fn bump_records_revision(&self, kind: RecordKind) {
        if matches!(kind, RecordKind::Task | RecordKind::Matter) {
            self.records_revision.fetch_add(1, Ordering::Release);
        }
    }

    /// The time at which the last whole scan ended; `None` before the first.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn last_sync_at(&self) -> Result<Option<DateTime<Utc>>, IndexError> {
        Ok(self.read_meta("synced_at").await?.and_then(store::codec::from_micros))
    }

    /// Closes every connection, so that the file is complete without its side files.
    pub async fn close(&self) {
        self.store.reader.close().await;
        self.store.writer.close().await;
    }

    /// Writes a copy of the database into a new file, as of one moment.
    ///
    /// # Errors
    /// The copy cannot be written, also if the file exists.
    pub(crate) async fn write_copy(&self, file: &Path) -> Result<(), sqlx::Error> {
        let query = sqlx::query("VACUUM INTO ?1").bind(file.to_string_lossy().into_owned()).execute(&self.store.reader);
        query.await.map(drop)
    }

    async fn read_meta(&self, key: &str) -> Result<Option<i64>, IndexError> {
        sqlx::query_scalar("SELECT value FROM meta WHERE key = ?1")
            .bind(key)
            .fetch_optional(&self.store.writer)
            .await
            .map_err(|e| self.sql_error(e))
    }

    async fn write_meta(&self, key: &str, value: i64) -> Result<(), IndexError> {
        sqlx::query(store::rows::KEEP_META)
            .bind(key)
            .bind(value)
            .execute(&self.store.writer)
            .await
            .map(drop)
            .map_err(|e| self.sql_error(e))
    }

    fn sql_error(&self, source: sqlx::Error) -> IndexError {
        IndexError::from_sqlx(&self.store.file, source)
    }

    fn parse_path(&self, text: &str) -> Result<RecordPath, IndexError> {
        RecordPath::parse(text).map_err(|_| self.unknown_value_error(text))
    }

    /// Decodes an enum from its stored spelling.
    fn parse_enum<T: serde::de::DeserializeOwned>(&self, text: &str) -> Result<T, IndexError> {
        store::codec::decode_enum(text).ok_or_else(|| self.unknown_value_error(text))
    }

    fn unknown_value_error(&self, text: &str) -> IndexError {
        IndexError::Value { path: self.store.file.clone(), found: text.chars().take(60).collect() }
    }
}

impl IndexError {
    /// SQLite's codes 11 (corrupt) and 26 (not a database) and their extended codes mean that the file is lost.
    fn from_sqlx(file: &Path, source: sqlx::Error) -> Self {
        let damaged = match &source {
            sqlx::Error::Database(e) => matches!(e.code().as_deref(), Some("11" | "26" | "267" | "523" | "779")),
            _ => false,
        };
        let path = file.to_owned();
        if damaged { Self::Damaged { path, reason: source.to_string() } } else { Self::Sql { path, source } }
    }
}

impl fmt::Display for VaultProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

#[cfg(test)]
mod tests;

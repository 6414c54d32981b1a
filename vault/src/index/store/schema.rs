//! Opens `state.db`, creates its tables, and refuses a file that it cannot trust.
//!
//! There is one writer connection, on which every transaction begins with `BEGIN IMMEDIATE`, and a few read-only ones.
//! The tables come from `vault/migrations/`. A damaged, foreign or newer file is never changed: the error names the
//! file and the fix, and [`quarantine_database`] is the fix.

use crate::files::private::tighten_database;
use crate::index::IndexError;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of the file in the state folder.
pub const FILE: &str = "state.db";
/// The tables of this build. A released migration is never changed. A migration that needs files to be read again sets
/// their `files.hash` to null.
static MIGRATIONS: Migrator = sqlx::migrate!();
/// How long one process waits for another one's write: 5 s. A batch of a scan takes about 50 ms.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Rows that a connection reads ahead: enough that a pass over a million rows does not switch threads for each row.
const ROW_BUFFER: usize = 1_024;
/// Read-only connections: enough for a handful of screens. Each costs a thread.
const READER_COUNT: u32 = 3;

/// The writer's page cache: 16 MB, which SQLite expects as negative kibibytes. The first scan of many records inserts
/// their names and ids all over the tables.
const WRITER_CACHE: &str = "-16384";

/// The connections to one `state.db`.
#[derive(Clone, Debug)]
pub(crate) struct StateDatabase {
    pub(crate) file: PathBuf,
    pub(crate) writer: SqlitePool,
    pub(crate) reader: SqlitePool,
    /// Device and inode of the file that was opened.
    identity: Option<(u64, u64)>,
}

/// What of a file is checked before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileCheck {
    /// Each page of it, and its tables.
    Whole,
    /// Its tables alone.
    Schema,
}

/// What lies where an index was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexFileStatus {
    /// The file that was opened.
    InPlace,
    /// No file that can be seen.
    Missing,
    /// Another file: what is read of the one that was opened is outdated.
    Replaced,
}

impl StateDatabase {
    pub(crate) async fn open(state_dir: &Path, check: FileCheck) -> Result<Self, IndexError> {
        let file = state_dir.join(FILE);
        let folder = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(state_dir);
        folder.map_err(|source| IndexError::Io { path: state_dir.to_owned(), source })?;
        let options = SqliteConnectOptions::new()
            .filename(&file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(BUSY_TIMEOUT)
            .disable_statement_logging();
        let writer_options = options.clone().pragma("cache_size", WRITER_CACHE);
        let writer = pool_options(1).connect_with(writer_options).await.map_err(|e| IndexError::from_sqlx(&file, e))?;
        if check == FileCheck::Whole {
            check_pages(&file, &writer).await?;
        }
        prepare_database(&file, &writer).await?;
        tighten_database(&file);
        let reader = pool_options(READER_COUNT).connect_lazy_with(options.read_only(true).row_buffer_size(ROW_BUFFER));
        // An open connection keeps the side files in place. On a full disk no new writer could create them.
        drop(reader.acquire().await);
        Ok(Self { identity: read_file_identity(&file), file, writer, reader })
    }

    pub(crate) fn file_status(&self) -> IndexFileStatus {
        match read_file_identity(&self.file) {
            None => IndexFileStatus::Missing,
            same if same == self.identity => IndexFileStatus::InPlace,
            Some(_) => IndexFileStatus::Replaced,
        }
    }
}

/// Quarantines a file that cannot be used, with its side files. Returns its new path; `None` if there was no file.
pub(crate) fn quarantine_database(state_dir: &Path) -> Result<Option<PathBuf>, IndexError> {
    let file = state_dir.join(FILE);
    let failed = |source| IndexError::Io { path: file.clone(), source };
    if !file.try_exists().map_err(failed)? {
        return Ok(None);
    }
    let quarantined = (1..)
        .map(|n| state_dir.join(format!("{FILE}.damaged-{n}")))
        .find(|p| !p.exists())
        .unwrap_or_else(|| state_dir.join(format!("{FILE}.damaged")));
    std::fs::rename(&file, &quarantined).map_err(failed)?;
    for side in ["-wal", "-shm"] {
        let side_file = |path: &Path| PathBuf::from(format!("{}{side}", path.display()));
        match std::fs::rename(side_file(&file), side_file(&quarantined)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(Some(quarantined))
}

fn read_file_identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

fn pool_options(size: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(size)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .acquire_timeout(Duration::from_secs(30))
        .after_release(|connection, _| Box::pin(is_reusable(connection)))
}

/// Whether a connection may be used again. Otherwise it is closed, and the next caller gets a new one.
///
/// If the disk is full or fails, SQLite ends the transaction by itself. sqlx then fails to roll it back, treats it as
/// open and never begins another on that connection.
async fn is_reusable(connection: &mut SqliteConnection) -> sqlx::Result<bool> {
    // Returns after the rollback of a dropped transaction.
    connection.ping().await?;
    Ok(!connection.is_in_transaction())
}

async fn check_pages(file: &Path, writer: &SqlitePool) -> Result<(), IndexError> {
    let check = sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(writer);
    let found: String = check.await.map_err(|e| IndexError::from_sqlx(file, e))?;
    if found == "ok" { Ok(()) } else { Err(IndexError::Damaged { path: file.to_owned(), reason: found }) }
}

async fn prepare_database(file: &Path, writer: &SqlitePool) -> Result<(), IndexError> {
    let sql = |e| IndexError::from_sqlx(file, e);
    let mut tx = writer.begin_with("BEGIN IMMEDIATE").await.map_err(sql)?;
    let tables: Vec<String> =
        sqlx::query_scalar("SELECT name FROM sqlite_schema").fetch_all(&mut *tx).await.map_err(sql)?;
    if !tables.is_empty() && !tables.iter().any(|name| name == "_sqlx_migrations") {
        return Err(IndexError::Damaged {
            path: file.to_owned(),
            reason: "it contains tables of another program, or of a Steward older than 0.1".into(),
        });
    }
    // The migration runs within the transaction, so that two processes that start at once create the tables only once.
    // The public form is `run`, but its type would keep every future around it from being `Send`.
    MIGRATIONS.run_direct(None, &mut *tx, false).await.map_err(|e| match e {
        MigrateError::VersionMissing(found) => {
            let known = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or_default();
            IndexError::Newer { path: file.to_owned(), found, known }
        }
        MigrateError::Execute(e) | MigrateError::ExecuteMigration(e, _) => sql(e),
        other => IndexError::Damaged { path: file.to_owned(), reason: other.to_string() },
    })?;
    tx.commit().await.map_err(sql)
}

//! Opens `state.db`, creates its tables, and refuses a file it cannot trust.
//!
//! One writer connection, on which every transaction begins with `BEGIN IMMEDIATE`, and a few that
//! only read. The tables come from `vault/migrations/`. A file that is damaged, foreign or newer is never
//! touched: the error names it and the fix, and [`quarantine_database`] is the fix.

use crate::files::private::tighten_database;
use crate::index::IndexError;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file, inside the state folder.
pub const FILE: &str = "state.db";
/// The tables of this build. A migration is never changed once it was released; one that needs files to be read again
/// sets their `files.hash` to null.
static MIGRATIONS: Migrator = sqlx::migrate!();
/// How long one process waits for another one's write, 5 s: a batch of a scan takes a tenth of that.
const BUSY: Duration = Duration::from_secs(5);
/// Rows that a reader may be ahead of whoever takes them: enough that a pass over a million does not change
/// threads for each.
const AHEAD: usize = 1_024;
/// Connections that read: enough for a handful of screens, and each costs a thread.
const READERS: u32 = 3;

/// Pages that the writer keeps at hand, 16 MB (in SQLite's way of saying kibibytes): where many records are read for
/// the first time, their names and ids go everywhere into the tables.
const WRITER_CACHE: &str = "-16384";

/// The connections to one `state.db`.
#[derive(Clone, Debug)]
pub(crate) struct StateDatabase {
    pub(crate) file: PathBuf,
    pub(crate) writer: SqlitePool,
    pub(crate) reader: SqlitePool,
}

impl StateDatabase {
    pub(crate) async fn open(state_dir: &Path) -> Result<Self, IndexError> {
        let file = state_dir.join(FILE);
        let folder = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(state_dir);
        folder.map_err(|source| IndexError::Io { path: state_dir.to_owned(), source })?;
        let options = SqliteConnectOptions::new()
            .filename(&file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(BUSY)
            .disable_statement_logging();
        let writing = options.clone().pragma("cache_size", WRITER_CACHE);
        let writer = pool_options(1).connect_with(writing).await.map_err(|e| IndexError::from_sqlx(&file, e))?;
        prepare_database(&file, &writer).await?;
        tighten_database(&file);
        let reader = pool_options(READERS).connect_lazy_with(options.read_only(true).row_buffer_size(AHEAD));
        // A connection that stays keeps the side files in place: with a full disk no new writer could make them.
        drop(reader.acquire().await);
        Ok(Self { file, writer, reader })
    }
}

/// Moves a file that cannot be used out of the way, with its side files; returns where it lies now.
pub(crate) fn quarantine_database(state_dir: &Path) -> Result<Option<PathBuf>, IndexError> {
    let file = state_dir.join(FILE);
    let failed = |source| IndexError::Io { path: file.clone(), source };
    if !file.try_exists().map_err(failed)? {
        return Ok(None);
    }
    let aside = (1..)
        .map(|n| state_dir.join(format!("{FILE}.damaged-{n}")))
        .find(|p| !p.exists())
        .unwrap_or_else(|| state_dir.join(format!("{FILE}.damaged")));
    std::fs::rename(&file, &aside).map_err(failed)?;
    for side in ["-wal", "-shm"] {
        let beside = |path: &Path| PathBuf::from(format!("{}{side}", path.display()));
        match std::fs::rename(beside(&file), beside(&aside)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(Some(aside))
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

/// Whether a connection may be used again; one that may not is closed and the next caller gets a new one.
///
/// Where the disk is full or fails, SQLite ends the transaction by itself. sqlx then fails to roll it back, takes it
/// for open and never begins another on that connection.
async fn is_reusable(connection: &mut SqliteConnection) -> sqlx::Result<bool> {
    // Returns after the rollback of a transaction that was dropped.
    connection.ping().await?;
    Ok(!connection.is_in_transaction())
}

async fn prepare_database(file: &Path, writer: &SqlitePool) -> Result<(), IndexError> {
    let sql = |e| IndexError::from_sqlx(file, e);
    let found: String = sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(writer).await.map_err(sql)?;
    if found != "ok" {
        return Err(IndexError::Damaged { path: file.to_owned(), reason: found });
    }
    let mut tx = writer.begin_with("BEGIN IMMEDIATE").await.map_err(sql)?;
    let tables: Vec<String> =
        sqlx::query_scalar("SELECT name FROM sqlite_schema").fetch_all(&mut *tx).await.map_err(sql)?;
    if !tables.is_empty() && !tables.iter().any(|name| name == "_sqlx_migrations") {
        return Err(IndexError::Damaged {
            path: file.to_owned(),
            reason: "it holds tables of something else, or of a Steward older than 0.1".into(),
        });
    }
    // Within the transaction, so that two processes that start at once make the tables once. `run` is the public form
    // of this; its type keeps every future around it from being `Send`.
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

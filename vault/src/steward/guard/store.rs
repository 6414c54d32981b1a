//! The ledger's SQLite file: its schema, and how it is opened and created.
//!
//! Opening never creates a file; `entry` decides whether one is expected. No code of this process may open the file in
//! any other way, not even for a backup: closing any descriptor of it would drop the locks that SQLite holds.

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Connection, Sqlite, SqliteConnection, Transaction};

use super::error::LedgerError;
use crate::files::private::tighten_database;

/// How long to wait for another process's transaction: 5 s. It is less than the clock's tolerance, so that a caller
/// whose `now` became old during the wait is still trusted.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
/// "STLG": distinguishes our ledgers from other databases.
const APPLICATION: i64 = 0x5354_4c47;
/// The version of the tables below.
pub(super) const SCHEMA: i64 = 2;

/// Instants are microseconds of Unix time.
const TABLES: &str = "
CREATE TABLE ledger (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    id TEXT NOT NULL,
    newest_us INTEGER,
    doubted_since_us INTEGER,
    back_off_set_us INTEGER,
    back_off_until_us INTEGER,
    probe_call TEXT,
    probe_since_us INTEGER
) STRICT;
CREATE TABLE call (
    call_id TEXT PRIMARY KEY,
    task TEXT,
    matter TEXT,
    reserved_us INTEGER NOT NULL,
    reservation TEXT NOT NULL,
    outcome TEXT,
    prompt_tokens INTEGER,
    completion_tokens INTEGER
) STRICT;
CREATE INDEX call_by_time ON call (reserved_us);
CREATE INDEX call_by_task ON call (task, reserved_us) WHERE task IS NOT NULL;
CREATE INDEX call_by_matter ON call (matter, reserved_us) WHERE matter IS NOT NULL;
-- The accounts under which each call counts, beside its task and matter.
CREATE TABLE account (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    reserved_us INTEGER NOT NULL,
    call_id TEXT NOT NULL,
    PRIMARY KEY (kind, name, reserved_us, call_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX account_by_time ON account (reserved_us);
PRAGMA application_id = 0x53544c47;
PRAGMA user_version = 2;
";

/// An open ledger file. There is one connection, so callers run one at a time.
#[derive(Debug)]
pub(super) struct LedgerStore {
    connection: SqliteConnection,
}

/// The kind of a file at the ledger's path.
#[derive(Debug)]
pub(super) enum LedgerFileKind {
    Ledger(LedgerStore, String),
    /// A database with nothing in it, as a crash at the first start leaves it.
    Empty,
    /// A database of something else.
    Foreign,
}

impl LedgerStore {
    /// Opens the file and checks every page of it.
    pub(super) async fn open(path: &Path) -> Result<LedgerFileKind, LedgerError> {
        let options = connect_options(path).create_if_missing(false);
        let mut store =
            Self { connection: SqliteConnection::connect_with(&options).await.map_err(LedgerError::wrap_sql(path))? };
        let found = match store.inspect_file().await {
            Ok(LedgerInspection::Ledger(id)) => return Ok(LedgerFileKind::Ledger(store, id)),
            Ok(LedgerInspection::Empty) => Ok(LedgerFileKind::Empty),
            Ok(LedgerInspection::Foreign) => Ok(LedgerFileKind::Foreign),
            Ok(LedgerInspection::Newer(found)) => {
                Err(LedgerError::Newer { path: path.to_owned(), found, known: SCHEMA })
            }
            Ok(LedgerInspection::Damaged(why)) => Err(LedgerError::Damaged { path: path.to_owned(), why }),
            Err(error) => Err(LedgerError::wrap_sql(path)(error)),
        };
        store.close().await;
        found
    }

    /// Creates a ledger, also in an existing empty file; returns it with its new id.
    pub(super) async fn create(path: &Path) -> Result<(Self, String), LedgerError> {
        let options = connect_options(path).create_if_missing(true).journal_mode(SqliteJournalMode::Wal);
        let created = async {
            let mut connection = SqliteConnection::connect_with(&options).await?;
            let mut tx = connection.begin_with("BEGIN IMMEDIATE").await?;
            sqlx::raw_sql(TABLES).execute(&mut *tx).await?;
            let insert = "INSERT INTO ledger (only_row, id) VALUES (1, lower(hex(randomblob(16)))) RETURNING id";
            let id: String = sqlx::query_scalar(insert).fetch_one(&mut *tx).await?;
            tx.commit().await?;
            Ok((Self { connection }, id))
        };
        let created = created.await.map_err(LedgerError::wrap_sql(path));
        tighten_database(path);
        created
    }

    /// Begins a transaction that no other process's transaction can overlap, so what it reads stays true.
    pub(super) async fn begin_writing(&mut self) -> Result<Transaction<'_, Sqlite>, sqlx::Error> {
        self.connection.begin_with("BEGIN IMMEDIATE").await
    }

    /// Begins a transaction that only reads.
    pub(super) async fn begin_reading(&mut self) -> Result<Transaction<'_, Sqlite>, sqlx::Error> {
        self.connection.begin().await
    }

    #[cfg(test)]
    pub(super) fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }

    /// Waits until the file is closed. A failure to close loses nothing that was committed.
    pub(super) async fn close(self) {
        let _ = self.connection.close().await;
    }

    async fn inspect_file(&mut self) -> Result<LedgerInspection, sqlx::Error> {
        let connection = &mut self.connection;
        let report: String = sqlx::query_scalar("PRAGMA integrity_check(1)").fetch_one(&mut *connection).await?;
        if report != "ok" {
            return Ok(LedgerInspection::Damaged(report));
        }
        let application: i64 = sqlx::query_scalar("PRAGMA application_id").fetch_one(&mut *connection).await?;
        let version: i64 = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut *connection).await?;
        if application != APPLICATION {
            let tables: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema").fetch_one(connection).await?;
            let is_blank = application == 0 && version == 0 && tables == 0;
            return Ok(if is_blank { LedgerInspection::Empty } else { LedgerInspection::Foreign });
        }
        if version > SCHEMA {
            return Ok(LedgerInspection::Newer(version));
        }
        if version < SCHEMA {
            return Ok(LedgerInspection::Damaged(format!("its tables have version {version}, not {SCHEMA}")));
        }
        let id = sqlx::query_scalar("SELECT id FROM ledger WHERE only_row = 1").fetch_one(&mut self.connection).await?;
        Ok(LedgerInspection::Ledger(id))
    }
}

enum LedgerInspection {
    Ledger(String),
    Empty,
    Foreign,
    Newer(i64),
    Damaged(String),
}

/// `FULL`: a reservation must survive a power cut, or its call would be forgotten.
fn connect_options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new().filename(path).synchronous(SqliteSynchronous::Full).busy_timeout(LOCK_PATIENCE)
}

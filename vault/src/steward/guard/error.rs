//! The errors of the ledger. Each names the file and the fix.
//!
//! For a reservation, every one of them is a refusal: without a ledger there is no call. Every message reads after
//! "failed to".

use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use steward_domain::steward::guard::{GuardCap, GuardRefusal};
use steward_domain::time::format_millis;

/// Why the ledger could not be used.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error("use the cap {name} of 0: set it to 1 or more, or stop the steward to allow no calls")]
    ZeroCap { name: &'static str },
    #[error("use {percent} as the cap {name}: set it to a whole number from 1 to 100, in percent")]
    NoPercent { name: &'static str, percent: u32 },
    #[error("use {path} as the {role}: name a file inside a folder")]
    NotAFile { role: &'static str, path: PathBuf },
    #[error("reach {path}: {source}; fix the folder or its permissions and try again")]
    Files { path: PathBuf, source: io::Error },
    #[error(
        "read the ledger's marker {path}: {why}; restore it, or accept the loss of the ledger (`steward doctor --accept-ledger-loss`)"
    )]
    Marker { path: PathBuf, why: String },
    #[error(
        "trust the ledger {path}: {why}; calls are refused until {} unless its loss is accepted (`steward doctor --accept-ledger-loss`)",
        format_millis(*clears_at)
    )]
    Lost { path: PathBuf, why: String, clears_at: DateTime<Utc> },
    #[error(
        "read the ledger {path}: it is damaged ({why}); accept its loss (`steward doctor --accept-ledger-loss`) to begin a new one"
    )]
    Damaged { path: PathBuf, why: String },
    #[error("read the ledger {path}: it has schema {found} and this version knows {known}; run a newer version")]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("write the ledger {path}: the file or its folder is read-only or closed; let this user write to both")]
    ReadOnly { path: PathBuf },
    #[error("write the ledger {path}: the disk is full; free some space")]
    Full { path: PathBuf },
    #[error("lock the ledger {path}: another process held it too long; try again")]
    Busy { path: PathBuf },
    #[error("use the ledger {path}: its files or its marker changed meanwhile; try again")]
    Changed { path: PathBuf },
    #[error("use the ledger {path}: {source}; check the disk and the permissions of its folder")]
    Sql { path: PathBuf, source: sqlx::Error },
}

impl LedgerError {
    pub(super) fn wrap_io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path: path.to_owned() },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path: path.to_owned() },
            _ => Self::Files { path: path.to_owned(), source },
        }
    }

    /// Classifies an error of SQLite by its primary result code.
    pub(super) fn wrap_sql(path: &Path) -> impl Fn(sqlx::Error) -> Self {
        move |source| {
            let path = path.to_owned();
            match primary_result_code(&source) {
                Some(5 | 6) => Self::Busy { path },
                Some(3 | 8 | 14) => Self::ReadOnly { path },
                Some(13) => Self::Full { path },
                Some(1 | 11 | 26) => Self::Damaged { path, why: source.to_string() },
                Some(_) => Self::Sql { path, source },
                None if is_content_error(&source) => Self::Damaged { path, why: source.to_string() },
                None => Self::Sql { path, source },
            }
        }
    }

    /// Whether an operator may accept the error as a loss and begin a new ledger.
    pub(super) fn is_loss(&self) -> bool {
        match self {
            Self::Marker { .. } | Self::Lost { .. } | Self::Damaged { .. } => true,
            Self::ZeroCap { .. }
            | Self::NoPercent { .. }
            | Self::NotAFile { .. }
            | Self::Files { .. }
            | Self::Newer { .. }
            | Self::ReadOnly { .. }
            | Self::Full { .. }
            | Self::Busy { .. }
            | Self::Changed { .. }
            | Self::Sql { .. } => false,
        }
    }

    pub(super) fn into_refusal(self) -> GuardRefusal {
        let reason = format!("failed to {self}");
        match self {
            Self::Lost { clears_at, .. } => {
                GuardRefusal { cap: GuardCap::LedgerLost, clears_at: Some(clears_at), reason }
            }
            Self::ZeroCap { .. }
            | Self::NoPercent { .. }
            | Self::NotAFile { .. }
            | Self::Files { .. }
            | Self::Marker { .. }
            | Self::Damaged { .. }
            | Self::Newer { .. }
            | Self::ReadOnly { .. }
            | Self::Full { .. }
            | Self::Busy { .. }
            | Self::Changed { .. }
            | Self::Sql { .. } => GuardRefusal { cap: GuardCap::LedgerUnreadable, clears_at: None, reason },
        }
    }
}

fn primary_result_code(error: &sqlx::Error) -> Option<i32> {
    let extended: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(extended & 0xff)
}

/// Whether a row is missing or holds an invalid value, so that the file is no valid ledger.
fn is_content_error(error: &sqlx::Error) -> bool {
    matches!(
        error,
        sqlx::Error::RowNotFound
            | sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::ColumnNotFound(_)
            | sqlx::Error::Decode(_)
    )
}

//! The arguments of `steward backup`.
//!
//! They are declared here, explained in `docs/operations.md`, and run by `crate::commands::backup`.

use clap::Subcommand;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum BackupCommand {
    /// Make a backup now, beside a running process or without one
    #[command(after_help = "Examples:\n  steward backup create\n  steward backup create --to /srv/backup/home\n\n\
        Exits with 4 when a file could not be read, and is therefore missing or doubtful in the backup.")]
    Create {
        /// The folder that holds the backups of this vault, instead of STEWARD_BACKUP_DIR
        #[arg(long, value_name = "FOLDER")]
        to: Option<PathBuf>,
    },
    /// Check every file of a backup, its index and its audit records
    #[command(
        after_help = "Examples:\n  steward backup verify\n  steward backup verify /srv/backup/home/2026-11-25T22-30-00.000Z\n\n\
        Exits with 4 when something is wrong."
    )]
    Verify {
        /// The folder of the backup, instead of the newest one in STEWARD_BACKUP_DIR
        backup: Option<PathBuf>,
    },
    /// Put a backup into the empty folders of STEWARD_VAULT and STEWARD_STATE_DIR
    #[command(
        after_help = "Example:\n  steward backup restore /srv/backup/home/2026-11-25T22-30-00.000Z --vault /srv/steward/home\n\n\
        The backup is checked first. Nothing is written into a folder that is not empty."
    )]
    Restore {
        /// The folder of the backup, instead of the newest one in STEWARD_BACKUP_DIR
        backup: Option<PathBuf>,
    },
}

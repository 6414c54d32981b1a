//! Makes a backup of the vault regularly, if a folder for backups is set.
//!
//! The first one is made at the start, unless the newest one is recent. A failure is logged, recorded in the note of this
//! process, and tried again a minute later. Then nothing is linked to the backup before, because that one may be damaged.

use super::OpenedVault;
use crate::config::{BackupSettings, StewardConfig};
use crate::temporal::note;
use chrono::{TimeDelta, Utc};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use steward_vault::action::writer::VaultWriter;
use steward_vault::backup::{Backup, BackupError, BackupSource, create_backup, find_newest_backup, verify_backup};
use steward_vault::index::Index;

/// How often a backup is read to the end: once a day, and after the start.
const CHECK_EVERY: Duration = Duration::from_secs(86_400);
/// The pause after a failure: 60 s.
const RETRY: Duration = Duration::from_secs(60);

/// Starts the loop; `None` if no folder is set.
///
/// # Errors
/// No vault is set.
pub(super) fn spawn_backups(
    parts: &OpenedVault,
    config: &StewardConfig,
) -> anyhow::Result<Option<tokio::task::JoinHandle<()>>> {
    let Some(settings) = config.backup.clone() else { return Ok(None) };
    let (writer, index) = (Arc::clone(&parts.writer), Arc::clone(&parts.index));
    let backups = BackupLoop { settings, writer, index, state_dir: config.state_dir()? };
    Ok(Some(tokio::spawn(backups.run())))
}

struct BackupLoop {
    settings: BackupSettings,
    writer: Arc<VaultWriter>,
    index: Arc<Index>,
    state_dir: PathBuf,
}

impl BackupLoop {
    async fn run(self) {
        let this = Arc::new(self);
        let every = Duration::from_secs(this.settings.every_seconds.into());
        let (mut pause, mut checked, mut copies_all) = (this.find_first_pause(), None::<tokio::time::Instant>, false);
        loop {
            tokio::time::sleep(pause).await;
            let begun = tokio::time::Instant::now();
            let (making, is_check_due) = (Arc::clone(&this), checked.is_none_or(|at| at.elapsed() >= CHECK_EVERY));
            let made = tokio::task::spawn_blocking(move || making.make_and_check(copies_all, is_check_due)).await;
            let fault = match made {
                Ok(Ok(())) => None,
                Ok(Err(e)) => Some(e.to_string()),
                Err(e) => Some(e.to_string()),
            };
            // Damage of a backup goes on into the next ones, which link to it.
            copies_all = fault.is_some();
            if is_check_due && fault.is_none() {
                checked = Some(tokio::time::Instant::now());
            }
            if let Some(fault) = &fault {
                tracing::error!("the backup failed: {fault}");
            }
            note::record_backup_fault(this.writer.root(), &this.state_dir, fault.as_deref());
            pause = if fault.is_some() { RETRY.min(every) } else { every.saturating_sub(begun.elapsed()) };
        }
    }

    /// Until the newest backup is old enough. One from the future counts as none: a clock was set back.
    fn find_first_pause(&self) -> Duration {
        let newest = find_newest_backup(&self.settings.folder).ok().flatten();
        let age = newest.map(|(_, at)| Utc::now() - at).filter(|age| *age >= TimeDelta::zero());
        let age = age.and_then(|age| age.to_std().ok());
        age.map_or(Duration::ZERO, |age| Duration::from_secs(self.settings.every_seconds.into()).saturating_sub(age))
    }

    /// Makes a backup, and reads it to the end once a day.
    fn make_and_check(&self, copies_all: bool, is_check_due: bool) -> Result<(), BackupError> {
        let (root, state_dir) = (self.writer.root(), self.state_dir.as_path());
        let source = BackupSource { root, state_dir, index: &self.index, writer: Some(&self.writer), copies_all };
        let Backup { folder, info } = create_backup(&source, &self.settings.folder, env!("CARGO_PKG_VERSION"))?;
        tracing::info!(files = info.files, folder = %folder.display(), "made a backup");
        for path in &info.doubtful {
            tracing::warn!(
                path = path.as_str(),
                "could not be read, or changed while it was: it is missing or doubtful in the backup"
            );
        }
        if is_check_due {
            let faults = verify_backup(&folder)?.faults;
            if !faults.is_empty() {
                return Err(BackupError::Damaged { folder, faults });
            }
        }
        Ok(())
    }
}

//! The settings of backups: their folder, and how often one is made.
//!
//! Without a folder the process makes none.

use super::canonicalize_folder;
use anyhow::{Context, bail};
use serde::Serialize;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use steward_domain::time::parse_width;

/// The default pause between two backups: 15 min.
const EVERY: u32 = 900;
/// The pauses that are allowed: 10 s to a day.
const ALLOWED: RangeInclusive<u32> = 10..=86_400;

/// Where and how often backups are made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct BackupSettings {
    /// The folder that holds them.
    pub(crate) folder: PathBuf,
    /// Seconds between two backups, 10 to 86,400.
    pub(crate) every_seconds: u32,
}

/// Reads both settings; `None` without a folder.
///
/// # Errors
/// The pause is not one, or it is set without a folder.
pub(super) fn read_settings(folder: Option<PathBuf>, every: Option<&str>) -> anyhow::Result<Option<BackupSettings>> {
    let every_seconds = match every {
        None => EVERY,
        Some(text) => parse_width(text).filter(|seconds| ALLOWED.contains(seconds)).with_context(|| {
            format!("STEWARD_BACKUP_EVERY is `{}`: write a time from 10s to 1day, as in 15min", text.escape_debug())
        })?,
    };
    match folder.filter(|folder| !folder.as_os_str().is_empty()) {
        None if every.is_some() => {
            bail!("STEWARD_BACKUP_EVERY is set and STEWARD_BACKUP_DIR is not: set the folder for backups too")
        }
        None => Ok(None),
        Some(folder) => {
            let folder = canonicalize_folder(&folder, "STEWARD_BACKUP_DIR")?;
            Ok(Some(BackupSettings { folder, every_seconds }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_alone_means_every_15_minutes_and_a_pause_alone_is_refused() {
        let read = |folder: &str, every: Option<&str>| read_settings(Some(folder.into()), every);
        assert_eq!(read("/b", None).unwrap().map(|settings| settings.every_seconds), Some(900));
        assert_eq!(read("/b", Some("1h")).unwrap().map(|settings| settings.every_seconds), Some(3_600));
        assert_eq!(read("", None).unwrap(), None);
        for every in ["", "15", "5s", "2day", "soon", "-1min"] {
            assert!(read("/b", Some(every)).unwrap_err().to_string().contains("15min"), "{every}");
        }
        assert!(read("", Some("1h")).unwrap_err().to_string().contains("STEWARD_BACKUP_DIR is not"));
    }
}

//! The drain file: no new run begins, so that a new build can be deployed while no run is under way.
//!
//! `steward drain` creates `.steward/DRAIN`, `steward drain --end` removes it. While it stands, the schedules are paused
//! with a note of Steward's, no matter is woken, and no resolution is taken. It is no stop: what is under way goes on and
//! may change records. A drain that cannot be read is in force, with unknown details.

use crate::files::durable;
use crate::files::root::{OWN_FOLDER, VaultRoot};
use cap_std::fs::{OpenOptions, OpenOptionsExt};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

const FILE: &str = "DRAIN";
/// How long a drain may stand before it counts as forgotten: 10 min.
const FORGOTTEN_AFTER: TimeDelta = TimeDelta::minutes(10);

/// Who drains the vault, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VaultDrain {
    /// `None` if the file cannot be read.
    pub at: Option<DateTime<Utc>>,
    pub by: String,
}

impl VaultDrain {
    /// Whether it stands for so long that somebody probably forgot to end it.
    #[must_use]
    pub fn is_forgotten(&self, now: DateTime<Utc>) -> bool {
        self.at.is_none_or(|at| now - at > FORGOTTEN_AFTER)
    }
}

/// The drain cannot be begun or ended.
#[derive(Debug, thiserror::Error)]
#[error("{OWN_FOLDER}/{FILE}: {0}: the drain was not changed; remove the file by hand to end it")]
pub struct DrainFileError(#[from] io::Error);

/// The drain in force; `None` if there is none.
#[must_use]
pub fn read_drain(root: &VaultRoot) -> Option<VaultDrain> {
    let unknown = VaultDrain { at: None, by: "unknown".into() };
    match root.dir().read_to_string(format!("{OWN_FOLDER}/{FILE}")) {
        Ok(text) => Some(serde_json::from_str(&text).unwrap_or(unknown)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(_) => Some(unknown),
    }
}

/// Whether a drain is in force.
#[must_use]
pub fn is_draining(root: &VaultRoot) -> bool {
    read_drain(root).is_some()
}

/// Begins a drain; returns the one in force. A drain that stands already is kept.
///
/// # Errors
/// [`DrainFileError`] if the file cannot be created.
pub fn begin_drain(root: &VaultRoot, drain: &VaultDrain) -> Result<VaultDrain, DrainFileError> {
    let dir = root.make_own_folder(None)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    match dir.open_with(FILE, &options) {
        Ok(mut file) => {
            file.write_all(serde_json::to_string(drain).map_err(io::Error::from)?.as_bytes())?;
            file.sync_all()?;
            durable::sync_folder(&dir)?;
            Ok(drain.clone())
        }
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(read_drain(root).unwrap_or_else(|| drain.clone())),
        Err(e) => Err(e.into()),
    }
}

/// Ends the drain; `false` if there was none.
///
/// # Errors
/// [`DrainFileError`] if the file cannot be removed.
pub fn end_drain(root: &VaultRoot) -> Result<bool, DrainFileError> {
    match root.dir().remove_file(format!("{OWN_FOLDER}/{FILE}")) {
        Ok(()) => {
            durable::sync_folder(&root.dir().open_dir(OWN_FOLDER)?)?;
            Ok(true)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_stands_until_it_is_ended_and_the_first_one_counts() {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        assert!(!is_draining(&root));
        let now = Utc::now();
        let first = VaultDrain { at: Some(now), by: "ann".into() };
        assert_eq!(begin_drain(&root, &first).unwrap(), first);
        assert_eq!(begin_drain(&root, &VaultDrain { at: Some(now), by: "bob".into() }).unwrap(), first);
        assert!(!first.is_forgotten(now + TimeDelta::minutes(10)));
        assert!(first.is_forgotten(now + TimeDelta::minutes(11)));
        assert!(end_drain(&root).unwrap());
        assert!(!end_drain(&root).unwrap());
        assert_eq!(read_drain(&root), None);
    }

    #[test]
    fn an_unreadable_drain_is_in_force() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join(OWN_FOLDER)).unwrap();
        std::fs::write(dir.path().join(OWN_FOLDER).join(FILE), "no json").unwrap();
        let drain = read_drain(&VaultRoot::open(dir.path()).unwrap()).unwrap();
        assert!(drain.at.is_none() && drain.is_forgotten(Utc::now()));
    }
}

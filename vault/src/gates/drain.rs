//! The drain file: no new run begins, so that a new build can be deployed while no run is under way.
//!
//! `steward drain` creates `.steward/DRAIN`, `steward drain --end` removes it. While it is in force, the schedules are
//! paused with a note of Steward's, no matter is woken, and no resolution is taken. It is no stop: what is under way goes
//! on and may change records. Once no run is under way, the drain stands until a person ends it. Before that it lapses by
//! itself, because the command that waits for the runs may have died.

use crate::files::durable;
use crate::files::root::{OWN_FOLDER, VaultRoot};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use std::io;

const FILE: &str = "DRAIN";
/// How long a drain may stand before it counts as forgotten: 10 min.
const FORGOTTEN_AFTER: TimeDelta = TimeDelta::minutes(10);
/// How long a drain is in force after its command has renewed it last: 6 min, a little more than a run may take.
const LAPSES_AFTER: TimeDelta = TimeDelta::minutes(6);

/// Who drains the vault, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VaultDrain {
    /// `None` if the file cannot be read.
    pub at: Option<DateTime<Utc>>,
    pub by: String,
    /// When the command that waits for the runs was last alive; `None` before the first renewal.
    #[serde(default)]
    renewed_at: Option<DateTime<Utc>>,
    /// Whether no run was under way any more.
    #[serde(default)]
    complete: bool,
}

impl VaultDrain {
    /// A drain that begins now.
    #[must_use]
    pub fn new(by: &str, now: DateTime<Utc>) -> Self {
        Self { at: Some(now), by: by.to_owned(), renewed_at: None, complete: false }
    }

    /// Whether both are one drain, at any time of its life.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        (self.at, &self.by) == (other.at, &other.by)
    }

    fn is_in_force(&self, now: DateTime<Utc>) -> bool {
        self.complete || self.renewed_at.or(self.at).is_none_or(|alive| now - alive < LAPSES_AFTER)
    }

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
    let unknown = VaultDrain { at: None, by: "unknown".into(), renewed_at: None, complete: false };
    let drain = match root.dir().read_to_string(format!("{OWN_FOLDER}/{FILE}")) {
        Ok(text) => serde_json::from_str(&text).unwrap_or(unknown),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
        Err(_) => unknown,
    };
    drain.is_in_force(Utc::now()).then_some(drain)
}

/// Whether a drain is in force.
#[must_use]
pub fn is_draining(root: &VaultRoot) -> bool {
    read_drain(root).is_some()
}

/// Begins a drain; returns the one in force. A drain that stands already is kept.
///
/// # Errors
/// [`DrainFileError`] if the file cannot be written; then there is no drain.
pub fn begin_drain(root: &VaultRoot, drain: &VaultDrain) -> Result<VaultDrain, DrainFileError> {
    if let Some(standing) = read_drain(root) {
        return Ok(standing);
    }
    write_drain(root, drain)?;
    Ok(drain.clone())
}

/// Notes that the command of this drain is alive.
///
/// # Errors
/// [`DrainFileError`] if the file cannot be written; then the drain lapses by itself.
pub fn renew_drain(root: &VaultRoot, drain: &VaultDrain, now: DateTime<Utc>) -> Result<(), DrainFileError> {
    write_drain(root, &VaultDrain { renewed_at: Some(now), ..drain.clone() })
}

/// Notes that no run is under way any more: the drain now stands until it is ended.
///
/// # Errors
/// [`DrainFileError`] if the file cannot be written; then the drain lapses by itself.
pub fn complete_drain(root: &VaultRoot, drain: &VaultDrain) -> Result<(), DrainFileError> {
    write_drain(root, &VaultDrain { complete: true, ..drain.clone() })
}

/// Writes the file whole or not at all.
fn write_drain(root: &VaultRoot, drain: &VaultDrain) -> Result<(), DrainFileError> {
    let dir = root.make_own_folder(None)?;
    let text = serde_json::to_string(drain).map_err(io::Error::from)?;
    Ok(durable::replace_file(&dir, FILE, text.as_bytes())?)
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
        let first = VaultDrain::new("ann", now);
        assert_eq!(begin_drain(&root, &first).unwrap(), first);
        assert_eq!(begin_drain(&root, &VaultDrain { by: "bob".into(), ..first.clone() }).unwrap(), first);
        assert!(!first.is_forgotten(now + TimeDelta::minutes(10)));
        assert!(first.is_forgotten(now + TimeDelta::minutes(11)));
        assert!(end_drain(&root).unwrap());
        assert!(!end_drain(&root).unwrap());
        assert_eq!(read_drain(&root), None);
    }

    #[test]
    fn a_drain_whose_command_died_lapses_and_a_complete_one_stands() {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        let old = VaultDrain::new("ann", Utc::now() - TimeDelta::minutes(7));
        write_drain(&root, &old).unwrap();
        assert_eq!(read_drain(&root), None);
        renew_drain(&root, &old, Utc::now()).unwrap();
        assert!(read_drain(&root).is_some_and(|drain| drain.is_same(&old)));
        write_drain(&root, &old).unwrap();
        let new = VaultDrain::new("bob", Utc::now());
        assert_eq!(begin_drain(&root, &new).unwrap(), new, "a lapsed drain is replaced");
        complete_drain(&root, &old).unwrap();
        assert_eq!(read_drain(&root).unwrap().by, "ann");
    }

    #[test]
    fn a_drain_that_cannot_be_written_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        std::fs::create_dir_all(dir.path().join(OWN_FOLDER).join(FILE)).unwrap();
        let drain = VaultDrain::new("ann", Utc::now());
        assert!(write_drain(&root, &drain).is_err());
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

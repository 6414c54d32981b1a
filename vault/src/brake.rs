//! The brake: one file that every process of the vault looks at before it acts.
//!
//! `steward stop` creates `.steward/STOP`, `steward resume` removes it. Looking is one `stat`, so
//! it is done at every reservation and every landing and a stop is obeyed at once. Whatever cannot
//! be looked at counts as stopped.

use crate::durable;
use crate::root::{OWN_FOLDER, Root};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

const FILE: &str = "STOP";

/// Who stopped the fleet, when and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    pub at: String,
    pub by: String,
    pub reason: Option<String>,
}

/// The brake cannot be set or released.
#[derive(Debug, thiserror::Error)]
#[error("{OWN_FOLDER}/{FILE}: {0}: create (or remove) that file in the vault by hand")]
pub struct BrakeError(#[from] io::Error);

/// Whether the fleet is stopped; in doubt it is.
#[must_use]
pub fn is_stopped(root: &Root) -> bool {
    match root.dir().symlink_metadata(format!("{OWN_FOLDER}/{FILE}")) {
        Ok(_) => true,
        Err(e) => e.kind() != io::ErrorKind::NotFound,
    }
}

/// What is known of the stop in force; `None` when running.
#[must_use]
pub fn read(root: &Root) -> Option<Stop> {
    if !is_stopped(root) {
        return None;
    }
    let text = root.dir().read_to_string(format!("{OWN_FOLDER}/{FILE}")).unwrap_or_default();
    let unknown = Stop { at: "unknown".into(), by: "unknown".into(), reason: None };
    Some(serde_json::from_str(&text).unwrap_or(unknown))
}

/// Stops the fleet. Stopping twice keeps the first stop.
///
/// # Errors
/// [`BrakeError`] when the file cannot be created; the message says how to do it by hand.
pub fn stop(root: &Root, stop: &Stop) -> Result<(), BrakeError> {
    root.dir().create_dir_all(OWN_FOLDER)?;
    let mut options = cap_std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    match root.dir().open_with(format!("{OWN_FOLDER}/{FILE}"), &options) {
        Ok(mut file) => {
            let text = serde_json::to_string(stop).unwrap_or_default();
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            Ok(sync(root)?)
        }
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Lets the fleet run again; `false` when it was not stopped.
///
/// # Errors
/// [`BrakeError`] when the file cannot be removed.
pub fn resume(root: &Root) -> Result<bool, BrakeError> {
    match root.dir().remove_file(format!("{OWN_FOLDER}/{FILE}")) {
        Ok(()) => {
            sync(root)?;
            Ok(true)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// A stop must still be there after a power cut.
fn sync(root: &Root) -> io::Result<()> {
    durable::sync(&root.dir().open_dir(OWN_FOLDER)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_holds_until_it_is_released() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        assert!(!is_stopped(&root));
        let first = Stop { at: "now".into(), by: "ann".into(), reason: Some("odd".into()) };
        stop(&root, &first).unwrap();
        stop(&root, &Stop { by: "bob".into(), ..first.clone() }).unwrap();
        assert_eq!(read(&root), Some(first));
        assert!(resume(&root).unwrap());
        assert!(!resume(&root).unwrap());
        assert_eq!(read(&root), None);
    }

    #[test]
    fn a_brake_that_cannot_be_read_counts_as_pulled() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(OWN_FOLDER), "a file where a folder should be").unwrap();
        assert!(is_stopped(&Root::open(dir.path()).unwrap()));
    }
}

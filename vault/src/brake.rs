//! The brake: one file that every process of the vault looks at before it acts.
//!
//! `steward stop` creates `.steward/STOP`, `steward resume` removes it. Looking is one `stat`, so
//! it is done at every reservation and every landing and a stop is obeyed at once. Whatever cannot
//! be looked at counts as stopped. Who stopped and who released it is written down in `.steward/brake.jsonl`,
//! a line each, and not in the audit chain: the process that writes that one may be what hangs.

use crate::durable;
use crate::lines;
use crate::root::{OWN_FOLDER, Root};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

const FILE: &str = "STOP";
const TURNS: &str = "brake.jsonl";
/// Longest name and reason that are kept, in characters.
const MOST_BY: usize = 200;
const MOST_REASON: usize = 500;

/// Who stopped the fleet, when and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    pub at: String,
    pub by: String,
    pub reason: Option<String>,
}

impl Stop {
    fn short(&self) -> Self {
        let cut = |text: &str, most| text.chars().take(most).collect::<String>();
        let reason = self.reason.as_ref().map(|reason| cut(reason, MOST_REASON));
        Self { at: self.at.clone(), by: cut(&self.by, MOST_BY), reason }
    }
}

/// One stop or release, as it is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    pub stopped: bool,
    #[serde(flatten)]
    pub stop: Stop,
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
    let stop = &stop.short();
    root.dir().create_dir_all(OWN_FOLDER)?;
    let mut options = cap_std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    match root.dir().open_with(format!("{OWN_FOLDER}/{FILE}"), &options) {
        Ok(mut file) => {
            let text = serde_json::to_string(stop).unwrap_or_default();
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            sync(root)?;
            write_down(root, true, stop);
            Ok(())
        }
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Lets the fleet run again, and notes who did; `false` when it was not stopped.
///
/// # Errors
/// [`BrakeError`] when the file cannot be removed.
pub fn resume(root: &Root, by: &Stop) -> Result<bool, BrakeError> {
    let by = &by.short();
    match root.dir().remove_file(format!("{OWN_FOLDER}/{FILE}")) {
        Ok(()) => {
            sync(root)?;
            write_down(root, false, by);
            Ok(true)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// The last stops and releases, the newest first; nothing where none can be read.
#[must_use]
pub fn turns(root: &Root, most: usize) -> Vec<Turn> {
    lines::newest(root, TURNS, most)
}

/// The brake is set or released by now, and must not seem not to be for want of a line.
fn write_down(root: &Root, stopped: bool, stop: &Stop) {
    // Who reads the log misses a line; who looks at the brake does not.
    drop(lines::append(root, TURNS, &Turn { stopped, stop: stop.clone() }));
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
        let bob = Stop { at: "later".into(), by: "bob".into(), reason: None };
        assert!(resume(&root, &bob).unwrap());
        assert!(!resume(&root, &bob).unwrap());
        assert_eq!(read(&root), None);
        let told: Vec<(bool, String)> = turns(&root, 9).into_iter().map(|turn| (turn.stopped, turn.stop.by)).collect();
        assert_eq!(told, [(false, "bob".into()), (true, "ann".into())], "what changed nothing is no turn");
        assert_eq!(turns(&root, 1).len(), 1);
    }

    #[test]
    fn a_brake_that_cannot_be_read_counts_as_pulled() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(OWN_FOLDER), "a file where a folder should be").unwrap();
        assert!(is_stopped(&Root::open(dir.path()).unwrap()));
    }
}

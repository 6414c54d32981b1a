//! The brake: one file that every process of the vault looks at before it acts.
//!
//! `steward stop` creates `.steward/STOP`, `steward resume` removes it. Looking is one `stat`, so
//! it is done at every reservation and every landing and a stop is obeyed at once. Whatever cannot
//! be looked at counts as stopped. Who stopped and who released it is written down in `.steward/brake.jsonl`,
//! a line each, and not in the audit chain: the process that writes that one may be what hangs. A spare file is set aside
//! while there is space and renamed into place where the disk is full.

use crate::disk;
use crate::durable;
use crate::lines;
use crate::root::{OWN_FOLDER, Root};
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use rustix::fs::{Mode, OFlags, openat};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};

const FILE: &str = "STOP";
/// Spaces that a stop is written over in place, which needs no space.
const SPARE: &str = "STOP.spare";
/// Room for any name and a usual reason: 4 KiB, one block of most disks.
const SPARE_BYTES: usize = 4096;
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
#[error(
    "{OWN_FOLDER}/{FILE}: {0}: it is not {what}; create (or remove) that file in the vault by hand, or end the processes of the vault",
    what = .1
)]
pub struct BrakeError(#[source] io::Error, &'static str);

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
/// On a full disk the stop holds as well; who stopped, when and why may then be unknown.
///
/// # Errors
/// [`BrakeError`] when the file cannot be created; the message says how to do it by hand.
pub fn stop(root: &Root, stop: &Stop) -> Result<(), BrakeError> {
    let stop = &stop.short();
    let failed = |source| BrakeError(source, "stopped");
    let dir = root.own_folder(None).map_err(failed)?;
    match write_stop(&dir, stop) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(e) if disk::is_full(&e) => match use_spare(&dir, stop) {
            Ok(()) => {}
            // The file without its words is a stop as well.
            Err(_) if is_stopped(root) => {}
            Err(_) => return Err(failed(e)),
        },
        Err(e) => return Err(failed(e)),
    }
    write_down(root, true, stop);
    Ok(())
}

fn write_stop(dir: &Dir, stop: &Stop) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = dir.open_with(FILE, &options)?;
    file.write_all(serde_json::to_string(stop)?.as_bytes())?;
    file.sync_all()?;
    // A stop must still be there after a power cut.
    durable::sync(dir)
}

/// Takes the file that was set aside; a reason that does not fit into it is left out.
fn use_spare(dir: &Dir, stop: &Stop) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut file = File::from(openat(dir, SPARE, flags, Mode::empty())?);
    let mut text = serde_json::to_string(stop)?;
    if text.len() > SPARE_BYTES {
        text = serde_json::to_string(&Stop { reason: None, ..stop.clone() })?;
    }
    text.push_str(&" ".repeat(SPARE_BYTES.saturating_sub(text.len())));
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    dir.rename(SPARE, dir, FILE)?;
    durable::sync(dir)?;
    written
}

/// Sets space aside for a stop on a full disk. Where there is none left for that, the next call tries again.
pub fn set_spare_aside(root: &Root) {
    let made = || -> io::Result<()> {
        let dir = root.own_folder(None)?;
        let there = dir.symlink_metadata(SPARE).is_ok_and(|spare| spare.is_file() && spare.len() >= SPARE_BYTES as u64);
        if there { Ok(()) } else { durable::replace(&dir, SPARE, &[b' '; SPARE_BYTES]) }
    };
    if let Err(e) = made() {
        tracing::warn!(error = %e, "failed to set space aside for a stop on a full disk");
    }
}

/// Lets the fleet run again, and notes who did; `false` when it was not stopped.
///
/// # Errors
/// [`BrakeError`] when the file cannot be removed.
pub fn resume(root: &Root, by: &Stop) -> Result<bool, BrakeError> {
    let by = &by.short();
    let failed = |source| BrakeError(source, "released");
    match take_away(root) {
        Ok(()) => {
            sync(root).map_err(failed)?;
            write_down(root, false, by);
            set_spare_aside(root);
            Ok(true)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(failed(e)),
    }
}

/// A stop that took the space set aside becomes that again, as the disk may still be full.
fn take_away(root: &Root) -> io::Result<()> {
    let (stop, spare) = (format!("{OWN_FOLDER}/{FILE}"), format!("{OWN_FOLDER}/{SPARE}"));
    let found = root.dir().symlink_metadata(&stop)?;
    if found.is_file() && found.len() == SPARE_BYTES as u64 && root.dir().symlink_metadata(&spare).is_err() {
        root.dir().rename(&stop, root.dir(), &spare)
    } else {
        root.dir().remove_file(&stop)
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

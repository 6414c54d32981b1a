//! The brake: one file that every process of the vault looks at before it acts.
//!
//! `steward stop` creates `.steward/STOP`, `steward resume` removes it. Looking is one `stat`, so
//! it is done at every reservation and every landing and a stop is obeyed at once. Whatever cannot
//! be looked at counts as stopped. Who stopped and who released it is written down in `.steward/brake.jsonl`,
//! a line each, and not in the audit chain: the process that writes that one may be what hangs. A spare file is set aside
//! while there is space and renamed into place where the disk is full.

use crate::files::disk;
use crate::files::durable;
use crate::files::json_lines;
use crate::files::root::{OWN_FOLDER, VaultRoot};
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
pub struct FleetStop {
    pub at: String,
    pub by: String,
    pub reason: Option<String>,
}

impl FleetStop {
    fn shorten_texts(&self) -> Self {
        let cut = |text: &str, most| text.chars().take(most).collect::<String>();
        let reason = self.reason.as_ref().map(|reason| cut(reason, MOST_REASON));
        Self { at: self.at.clone(), by: cut(&self.by, MOST_BY), reason }
    }
}

/// One stop or release, as it is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopEvent {
    pub stopped: bool,
    #[serde(flatten)]
    pub stop: FleetStop,
}

/// The brake cannot be set or released.
#[derive(Debug, thiserror::Error)]
#[error(
    "{OWN_FOLDER}/{FILE}: {0}: it is not {what}; create (or remove) that file in the vault by hand, or end the processes of the vault",
    what = .1
)]
pub struct StopFileError(#[source] io::Error, &'static str);

/// Whether the fleet is stopped; in doubt it is.
#[must_use]
pub fn is_stopped(root: &VaultRoot) -> bool {
    match root.dir().symlink_metadata(format!("{OWN_FOLDER}/{FILE}")) {
        Ok(_) => true,
        Err(e) => e.kind() != io::ErrorKind::NotFound,
    }
}

/// What is known of the stop in force; `None` when running.
#[must_use]
pub fn read_stop(root: &VaultRoot) -> Option<FleetStop> {
    if !is_stopped(root) {
        return None;
    }
    let text = root.dir().read_to_string(format!("{OWN_FOLDER}/{FILE}")).unwrap_or_default();
    let unknown = FleetStop { at: "unknown".into(), by: "unknown".into(), reason: None };
    Some(serde_json::from_str(&text).unwrap_or(unknown))
}

/// Stops the fleet. Stopping twice keeps the first stop.
///
/// On a full disk the stop holds as well; who stopped, when and why may then be unknown.
///
/// # Errors
/// [`StopFileError`] when the file cannot be created; the message says how to do it by hand.
pub fn stop_fleet(root: &VaultRoot, stop: &FleetStop) -> Result<(), StopFileError> {
    let stop = &stop.shorten_texts();
    let failed = |source| StopFileError(source, "stopped");
    let dir = root.make_own_folder(None).map_err(failed)?;
    match create_stop_file(&dir, stop) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(e) if disk::is_full(&e) => match use_spare_file(&dir, stop) {
            Ok(()) => {}
            // The file without its words is a stop as well.
            Err(_) if is_stopped(root) => {}
            Err(_) => return Err(failed(e)),
        },
        Err(e) => return Err(failed(e)),
    }
    append_stop_event(root, true, stop);
    Ok(())
}

fn create_stop_file(dir: &Dir, stop: &FleetStop) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = dir.open_with(FILE, &options)?;
    file.write_all(serde_json::to_string(stop)?.as_bytes())?;
    file.sync_all()?;
    // A stop must still be there after a power cut.
    durable::sync_folder(dir)
}

/// Takes the file that was set aside; a reason that does not fit into it is left out.
fn use_spare_file(dir: &Dir, stop: &FleetStop) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut file = File::from(openat(dir, SPARE, flags, Mode::empty())?);
    let mut text = serde_json::to_string(stop)?;
    if text.len() > SPARE_BYTES {
        text = serde_json::to_string(&FleetStop { reason: None, ..stop.clone() })?;
    }
    text.push_str(&" ".repeat(SPARE_BYTES.saturating_sub(text.len())));
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    dir.rename(SPARE, dir, FILE)?;
    durable::sync_folder(dir)?;
    written
}

/// Sets space aside for a stop on a full disk. Where there is none left for that, the next call tries again.
pub fn reserve_spare_file(root: &VaultRoot) {
    let made = || -> io::Result<()> {
        let dir = root.make_own_folder(None)?;
        let there = dir.symlink_metadata(SPARE).is_ok_and(|spare| spare.is_file() && spare.len() >= SPARE_BYTES as u64);
        if there { Ok(()) } else { durable::replace_file(&dir, SPARE, &[b' '; SPARE_BYTES]) }
    };
    if let Err(e) = made() {
        tracing::warn!(error = %e, "failed to set space aside for a stop on a full disk");
    }
}

/// Lets the fleet run again, and notes who did; `false` when it was not stopped.
///
/// # Errors
/// [`StopFileError`] when the file cannot be removed.
pub fn resume_fleet(root: &VaultRoot, by: &FleetStop) -> Result<bool, StopFileError> {
    let by = &by.shorten_texts();
    let failed = |source| StopFileError(source, "released");
    match remove_stop_file(root) {
        Ok(()) => {
            sync_own_folder(root).map_err(failed)?;
            append_stop_event(root, false, by);
            reserve_spare_file(root);
            Ok(true)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(failed(e)),
    }
}

/// A stop that took the space set aside becomes that again, as the disk may still be full.
fn remove_stop_file(root: &VaultRoot) -> io::Result<()> {
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
pub fn list_stop_events(root: &VaultRoot, most: usize) -> Vec<StopEvent> {
    json_lines::read_newest_lines(root, TURNS, most)
}

/// The brake is set or released by now, and must not seem not to be for want of a line.
fn append_stop_event(root: &VaultRoot, stopped: bool, stop: &FleetStop) {
    // Who reads the log misses a line; who looks at the brake does not.
    drop(json_lines::append_line(root, TURNS, &StopEvent { stopped, stop: stop.clone() }));
}

/// A stop must still be there after a power cut.
fn sync_own_folder(root: &VaultRoot) -> io::Result<()> {
    durable::sync_folder(&root.dir().open_dir(OWN_FOLDER)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_holds_until_it_is_released() {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        assert!(!is_stopped(&root));
        let first = FleetStop { at: "now".into(), by: "ann".into(), reason: Some("odd".into()) };
        stop_fleet(&root, &first).unwrap();
        stop_fleet(&root, &FleetStop { by: "bob".into(), ..first.clone() }).unwrap();
        assert_eq!(read_stop(&root), Some(first));
        let bob = FleetStop { at: "later".into(), by: "bob".into(), reason: None };
        assert!(resume_fleet(&root, &bob).unwrap());
        assert!(!resume_fleet(&root, &bob).unwrap());
        assert_eq!(read_stop(&root), None);
        let told: Vec<(bool, String)> =
            list_stop_events(&root, 9).into_iter().map(|turn| (turn.stopped, turn.stop.by)).collect();
        assert_eq!(told, [(false, "bob".into()), (true, "ann".into())], "what changed nothing is no turn");
        assert_eq!(list_stop_events(&root, 1).len(), 1);
    }

    #[test]
    fn a_brake_that_cannot_be_read_counts_as_pulled() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(OWN_FOLDER), "a file where a folder should be").unwrap();
        assert!(is_stopped(&VaultRoot::open(dir.path()).unwrap()));
    }
}

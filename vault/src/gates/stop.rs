//! The stop file, which every process of the vault checks before it acts.
//!
//! `steward stop` creates `.steward/STOP`, `steward resume` removes it. A check is one `stat`, so it is made at every
//! reservation and before every change, and a stop takes effect at once. If the file cannot be checked, the vault
//! counts as stopped. Each stop and each release is a line in `.steward/stops.jsonl`. It is not in the audit chain,
//! because the process that writes the chain may hang. A spare file is reserved while there is space, and renamed into
//! place if the disk is full.

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
/// The spare file, filled with blanks. A stop is written over them, which needs no new space on the disk.
const SPARE: &str = "STOP.spare";
/// The size of the spare file: 4 KiB, one block of most disks. Any name and a usual reason fit.
const SPARE_BYTES: usize = 4096;
const LOG: &str = "stops.jsonl";
/// The longest name that is kept, in characters.
const MAX_NAME_CHARS: usize = 200;
/// The longest reason that is kept, in characters.
const MAX_REASON_CHARS: usize = 500;

/// Who stopped the vault, when and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VaultStop {
    pub at: String,
    pub by: String,
    pub reason: Option<String>,
}

impl VaultStop {
    fn shorten_texts(&self) -> Self {
        let cut = |text: &str, limit| text.chars().take(limit).collect::<String>();
        let reason = self.reason.as_ref().map(|reason| cut(reason, MAX_REASON_CHARS));
        Self { at: self.at.clone(), by: cut(&self.by, MAX_NAME_CHARS), reason }
    }
}

/// One stop or release, as it is logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopEvent {
    pub stopped: bool,
    #[serde(flatten)]
    pub stop: VaultStop,
}

/// The vault cannot be stopped or resumed.
#[derive(Debug, thiserror::Error)]
#[error(
    "{OWN_FOLDER}/{FILE}: {0}: the vault was not {what}; create the file by hand to stop it, remove the file to resume \
     it, or end the processes of the vault",
    what = .1
)]
pub struct StopFileError(#[source] io::Error, &'static str);

/// Whether the vault is stopped. If the file cannot be checked, it counts as stopped. A missing folder of Steward's
/// counts as a stop until it is back.
#[must_use]
pub fn is_stopped(root: &VaultRoot) -> bool {
    has_stop_file(root) || root.find_missing_folder().is_some()
}

fn has_stop_file(root: &VaultRoot) -> bool {
    match root.dir().symlink_metadata(format!("{OWN_FOLDER}/{FILE}")) {
        Ok(_) => true,
        Err(e) => e.kind() != io::ErrorKind::NotFound,
    }
}

/// The stop in force; `None` if the vault is running. Unreadable details are `unknown`.
#[must_use]
pub fn read_stop(root: &VaultRoot) -> Option<VaultStop> {
    if !has_stop_file(root) {
        let missing = root.find_missing_folder()?;
        let reason = Some(format!("`{missing}` is missing: put it back, and everything goes on"));
        return Some(VaultStop { at: "unknown".into(), by: "Steward".into(), reason });
    }
    let text = root.dir().read_to_string(format!("{OWN_FOLDER}/{FILE}")).unwrap_or_default();
    let unknown = VaultStop { at: "unknown".into(), by: "unknown".into(), reason: None };
    Some(serde_json::from_str(&text).unwrap_or(unknown))
}

/// Stops the vault. Stopping twice keeps the first stop.
///
/// This works on a full disk too. The person, the time and the reason may then be unknown.
///
/// # Errors
/// [`StopFileError`] if the file cannot be created. The message says how to do it by hand.
pub fn stop_vault(root: &VaultRoot, stop: &VaultStop) -> Result<(), StopFileError> {
    let stop = &stop.shorten_texts();
    let failed = |source| StopFileError(source, "stopped");
    let dir = root.make_own_folder(None).map_err(failed)?;
    match create_stop_file(&dir, stop) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(e) if disk::is_full(&e) => match use_spare_file(&dir, stop) {
            Ok(()) => {}
            // A stop file without its details stops the vault as well.
            Err(_) if has_stop_file(root) => {}
            Err(_) => return Err(failed(e)),
        },
        Err(e) => return Err(failed(e)),
    }
    append_stop_event(root, true, stop);
    Ok(())
}

fn create_stop_file(dir: &Dir, stop: &VaultStop) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = dir.open_with(FILE, &options)?;
    file.write_all(serde_json::to_string(stop)?.as_bytes())?;
    file.sync_all()?;
    // A stop must still be there after a power cut.
    durable::sync_folder(dir)
}

/// Writes the stop into the spare file and renames it. A reason that does not fit is left out.
fn use_spare_file(dir: &Dir, stop: &VaultStop) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut file = File::from(openat(dir, SPARE, flags, Mode::empty())?);
    let mut text = serde_json::to_string(stop)?;
    if text.len() > SPARE_BYTES {
        text = serde_json::to_string(&VaultStop { reason: None, ..stop.clone() })?;
    }
    text.push_str(&" ".repeat(SPARE_BYTES.saturating_sub(text.len())));
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    dir.rename(SPARE, dir, FILE)?;
    durable::sync_folder(dir)?;
    written
}

/// Reserves the space for a stop on a full disk. If no space is left, the next call tries again.
pub fn reserve_spare_file(root: &VaultRoot) {
    let reserve = || -> io::Result<()> {
        let dir = root.make_own_folder(None)?;
        let spare = dir.symlink_metadata(SPARE);
        let exists = spare.is_ok_and(|spare| spare.is_file() && spare.len() >= SPARE_BYTES as u64);
        if exists { Ok(()) } else { durable::replace_file(&dir, SPARE, &[b' '; SPARE_BYTES]) }
    };
    if let Err(e) = reserve() {
        tracing::warn!(error = %e, "failed to reserve space for a stop on a full disk");
    }
}

/// Resumes the vault and logs who did; `false` if it was not stopped.
///
/// # Errors
/// [`StopFileError`] if the file cannot be removed.
pub fn resume_vault(root: &VaultRoot, by: &VaultStop) -> Result<bool, StopFileError> {
    let by = &by.shorten_texts();
    let failed = |source| StopFileError(source, "resumed");
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

/// Removes the stop file. If it was the spare file, it becomes that again, because the disk may still be full.
fn remove_stop_file(root: &VaultRoot) -> io::Result<()> {
    let (stop, spare) = (format!("{OWN_FOLDER}/{FILE}"), format!("{OWN_FOLDER}/{SPARE}"));
    let found = root.dir().symlink_metadata(&stop)?;
    if found.is_file() && found.len() == SPARE_BYTES as u64 && root.dir().symlink_metadata(&spare).is_err() {
        root.dir().rename(&stop, root.dir(), &spare)
    } else {
        root.dir().remove_file(&stop)
    }
}

/// The last stops and releases, newest first, at most `limit`; empty if none can be read.
#[must_use]
pub fn list_stop_events(root: &VaultRoot, limit: usize) -> Vec<StopEvent> {
    json_lines::read_newest_lines(root, LOG, limit)
}

/// Logs a stop or a release.
///
/// An error is ignored: the stop file is already in place or removed, and the call must not report otherwise. Only the
/// log then misses a line.
fn append_stop_event(root: &VaultRoot, stopped: bool, stop: &VaultStop) {
    drop(json_lines::append_line(root, LOG, &StopEvent { stopped, stop: stop.clone() }));
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
        let first = VaultStop { at: "now".into(), by: "ann".into(), reason: Some("odd".into()) };
        stop_vault(&root, &first).unwrap();
        stop_vault(&root, &VaultStop { by: "bob".into(), ..first.clone() }).unwrap();
        assert_eq!(read_stop(&root), Some(first));
        let bob = VaultStop { at: "later".into(), by: "bob".into(), reason: None };
        assert!(resume_vault(&root, &bob).unwrap());
        assert!(!resume_vault(&root, &bob).unwrap());
        assert_eq!(read_stop(&root), None);
        let logged: Vec<(bool, String)> =
            list_stop_events(&root, 9).into_iter().map(|event| (event.stopped, event.stop.by)).collect();
        assert_eq!(logged, [(false, "bob".into()), (true, "ann".into())], "calls that change nothing are not logged");
        assert_eq!(list_stop_events(&root, 1).len(), 1);
    }

    #[test]
    fn a_stop_that_cannot_be_made_says_how_to_make_it_by_hand() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(OWN_FOLDER), "a file where a folder should be").unwrap();
        let stop = VaultStop { at: "now".into(), by: "ann".into(), reason: None };
        let error = stop_vault(&VaultRoot::open(dir.path()).unwrap(), &stop).unwrap_err().to_string();
        assert!(error.contains("the vault was not stopped") && error.contains("by hand"), "{error}");
    }

    #[test]
    fn the_spare_file_becomes_the_stop_and_then_the_spare_file_again() {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        reserve_spare_file(&root);
        let own = dir.path().join(OWN_FOLDER);
        assert_eq!(std::fs::metadata(own.join(SPARE)).unwrap().len(), SPARE_BYTES as u64);
        let stop = VaultStop { at: "now".into(), by: "ann".into(), reason: Some("x".repeat(SPARE_BYTES)) };
        use_spare_file(&root.make_own_folder(None).unwrap(), &stop).unwrap();
        assert!(!own.join(SPARE).exists() && is_stopped(&root));
        let found = read_stop(&root).unwrap();
        assert_eq!((found.by.as_str(), found.reason), ("ann", None), "a reason that does not fit is left out");
        assert!(resume_vault(&root, &stop).unwrap());
        assert!(own.join(SPARE).exists() && !is_stopped(&root));
    }

    #[test]
    fn a_stop_file_that_cannot_be_checked_counts_as_a_stop() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(OWN_FOLDER), "a file where a folder should be").unwrap();
        assert!(is_stopped(&VaultRoot::open(dir.path()).unwrap()));
    }
}

//! Compare-and-swap of a whole file, durable, without ever losing what a human wrote.
//!
//! The new content is written beside the journal and made durable; then it and the record's file
//! change places in one atomic step (`renameat2` with `RENAME_EXCHANGE`). What was displaced is
//! still there to be compared: if it is not the content that was judged, a human was faster, and
//! the files change places back. An editor that still has the old file open writes into the
//! displaced one, so that is kept and looked at once more before it goes ([`settle`]).

use crate::crash;
use crate::root::{OWN_FOLDER, Root};
use cap_std::fs::{Dir, OpenOptions, PermissionsExt};
use rustix::fs::{RenameFlags, renameat_with};
use std::io::{self, Write};
use steward_domain::path::RecordPath;
use steward_domain::plan::ContentHash;

const STAGED: &str = "staged";
const CONFLICTS: &str = "conflict";

/// How a swap ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Swapped {
    /// The new content is in place.
    Done,
    /// The record held other content than expected; it still does.
    ChangedMeanwhile,
}

/// What is known of a staged file, from its content alone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Staged {
    /// There is none: nothing was swapped.
    Absent,
    /// It holds the new content: nothing was swapped.
    Waiting,
    /// It holds the old content: the swap happened.
    Displaced,
    /// It holds something else: the swap displaced what a human wrote.
    DisplacedHuman,
}

/// The names of one swap: the action's id, the record, the content before and after.
#[derive(Clone, Debug)]
pub(crate) struct Swap<'a> {
    pub(crate) id: &'a str,
    pub(crate) target: &'a RecordPath,
    pub(crate) before: &'a ContentHash,
    pub(crate) after: &'a ContentHash,
}

/// Opens the folder of staged files, creating it.
pub(crate) fn staged_dir(root: &Root) -> io::Result<Dir> {
    root.dir().create_dir_all(format!("{OWN_FOLDER}/{STAGED}"))?;
    root.dir().open_dir(format!("{OWN_FOLDER}/{STAGED}"))
}

/// Writes a file whole and durable under a name that only ever shows complete content.
pub(crate) fn write_durable(dir: &Dir, name: &str, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    let temporary = format!("{name}.tmp");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    let written = (|| {
        let mut file = dir.open_with(&temporary, &options)?;
        file.write_all(bytes)?;
        if let Some(mode) = mode {
            file.set_permissions(cap_std::fs::Permissions::from_mode(mode))?;
        }
        file.sync_all()?;
        dir.rename(&temporary, dir, name)
    })();
    if written.is_err() {
        let _ = dir.remove_file(&temporary);
    }
    written?;
    sync_dir(dir)
}

/// Makes the names in a folder durable.
pub(crate) fn sync_dir(dir: &Dir) -> io::Result<()> {
    rustix::fs::fsync(dir.open(".")?).map_err(io::Error::from)
}

/// Stages new content with the permissions of the file it will replace.
pub(crate) fn stage(root: &Root, swap: &Swap<'_>, bytes: &[u8]) -> io::Result<()> {
    let mode = root.dir().symlink_metadata(swap.target.as_str())?.permissions().mode() & 0o7777;
    write_durable(&staged_dir(root)?, swap.id, bytes, Some(mode))
}

/// Puts the staged content in place if the record still holds what was expected.
pub(crate) fn exchange(root: &Root, swap: &Swap<'_>) -> io::Result<Swapped> {
    let now = root.dir().read(swap.target.as_str())?;
    if &ContentHash::of(&now) != swap.before {
        return Ok(Swapped::ChangedMeanwhile);
    }
    swap_names(root, swap)?;
    crash::point("after-swap");
    if displaced(root, swap)? == Staged::Displaced {
        return Ok(Swapped::Done);
    }
    give_back(root, swap)
}

/// Reads what the staged file says about how far a swap came.
pub(crate) fn displaced(root: &Root, swap: &Swap<'_>) -> io::Result<Staged> {
    let bytes = match staged_dir(root)?.read(swap.id) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Staged::Absent),
        Err(e) => return Err(e),
    };
    let hash = ContentHash::of(&bytes);
    Ok(if &hash == swap.after {
        Staged::Waiting
    } else if &hash == swap.before {
        Staged::Displaced
    } else {
        Staged::DisplacedHuman
    })
}

/// Puts a human's displaced content back where it belongs.
///
/// When the record was edited again on top of ours, both versions are a human's: the newer stays
/// and the displaced one is kept under `conflict/`, and our change stands.
pub(crate) fn give_back(root: &Root, swap: &Swap<'_>) -> io::Result<Swapped> {
    let now = root.dir().read(swap.target.as_str())?;
    if &ContentHash::of(&now) != swap.after {
        keep_conflict(root, swap)?;
        return Ok(Swapped::Done);
    }
    swap_names(root, swap)?;
    if displaced(root, swap)? == Staged::Waiting {
        return Ok(Swapped::ChangedMeanwhile);
    }
    keep_conflict(root, swap)?;
    Ok(Swapped::ChangedMeanwhile)
}

/// Removes what a finished swap left, unless an editor wrote into it meanwhile.
///
/// Returns whether a late edit was found and given back.
pub(crate) fn settle(root: &Root, swap: &Swap<'_>) -> io::Result<bool> {
    let late = displaced(root, swap)? == Staged::DisplacedHuman;
    if late {
        give_back(root, swap)?;
    }
    discard(root, swap.id)?;
    Ok(late)
}

/// Forgets a staged file.
pub(crate) fn discard(root: &Root, id: &str) -> io::Result<()> {
    match staged_dir(root)?.remove_file(id) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn keep_conflict(root: &Root, swap: &Swap<'_>) -> io::Result<()> {
    root.dir().create_dir_all(CONFLICTS)?;
    let conflicts = root.dir().open_dir(CONFLICTS)?;
    let bytes = staged_dir(root)?.read(swap.id)?;
    let digest = ContentHash::of(&bytes);
    let name = format!("{}-{}.md", swap.target.slug(), &digest.as_str()[..12]);
    write_durable(&conflicts, &name, &bytes, None)
}

fn swap_names(root: &Root, swap: &Swap<'_>) -> io::Result<()> {
    let folder = root.dir().open_dir(swap.target.kind().folder())?;
    let staged = staged_dir(root)?;
    renameat_with(&staged, swap.id, &folder, swap.target.file_name(), RenameFlags::EXCHANGE).map_err(explain)?;
    sync_dir(&folder)?;
    sync_dir(&staged)
}

/// A file system without an atomic swap cannot keep a human's edit safe: say so instead of guessing.
fn explain(e: rustix::io::Errno) -> io::Error {
    match e {
        rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP => io::Error::new(
            io::ErrorKind::Unsupported,
            "the file system of the vault cannot swap two files atomically, so live changes are refused: \
             keep the vault on a local disk (ext4, xfs, btrfs, tmpfs, overlay)",
        ),
        other => other.into(),
    }
}

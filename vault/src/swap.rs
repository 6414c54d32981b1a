//! Compare-and-swap of a whole file, durable, without ever losing what a human wrote.
//!
//! The new content is staged in our own folder; then it and the record's file change places in one
//! atomic step (`renameat2` with `RENAME_EXCHANGE`). What was displaced is still there to be
//! compared: if it is not the content that was judged, a human was faster, and the files change
//! places back. An editor that still has the old file open writes into the displaced one, so that
//! is kept and looked at again ([`look`]) until nobody can be expected to write into it. Content of
//! a human that finds its place taken is moved to `conflict/`, the file itself and no copy of it.

mod copies;

use crate::crash;
use crate::durable;
use crate::root::{OWN_FOLDER, Root, RootError};
use cap_std::fs::Dir;
use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;
use std::io;
use std::time::Duration;
use steward_domain::path::RecordPath;
use steward_domain::plan::ContentHash;

use copies::{Theirs, text};
pub(crate) use copies::{copies_of, forget, replaced_words};

const STAGED: &str = "staged";
const CONFLICTS: &str = "conflict";
/// How long nobody must have written into a file for a save to count as finished: 10 ms, ten times
/// what an editor takes between truncating and writing; after so many tries it is taken as it is.
const STILL: Duration = Duration::from_millis(10);
const STILL_TRIES: u32 = 10;

/// The names of one swap: the staged file, the record, the content before and after, the words that
/// are only in the one before.
#[derive(Clone, Debug)]
pub(crate) struct Swap<'a> {
    pub(crate) name: &'a str,
    pub(crate) target: &'a RecordPath,
    pub(crate) before: &'a ContentHash,
    pub(crate) after: &'a ContentHash,
    pub(crate) replaced: &'a [String],
}

/// How a swap ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Swapped {
    /// The new content is in place.
    Done,
    /// The record held other content than expected, and nothing moved.
    ChangedMeanwhile,
    /// A human was faster by less than a swap; their content is back in place.
    TakenBack,
}

/// What is known of a staged file, from its content alone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Staged {
    /// There is none.
    Absent,
    /// It holds the new content: nothing was swapped, or it was swapped back.
    New,
    /// It holds the old content: the swap happened.
    Old,
    /// It holds something else: what a human wrote.
    Human,
}

/// What a later look at a staged file found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Nobody wrote into it.
    Quiet,
    /// A human's late edit was given its place back; ours is staged now.
    GivenBack,
    /// A human's late edit found its place taken and was moved there.
    Kept(String),
    /// There is no staged file any more.
    Gone,
}

/// Opens the folder of staged files, creating it.
pub(crate) fn staged_dir(root: &Root) -> io::Result<Dir> {
    root.own_folder(Some(STAGED))
}

/// Stages new content as the target's next file; the folder is not synced.
pub(crate) fn stage(root: &Root, swap: &Swap<'_>, bytes: &[u8]) -> io::Result<()> {
    let model = root.dir().symlink_metadata(swap.target.as_str())?;
    durable::create_like(&staged_dir(root)?, swap.name, bytes, &model)
}

/// Puts the staged content in place if the record still holds what was expected.
pub(crate) fn exchange(root: &Root, swap: &Swap<'_>) -> io::Result<Swapped> {
    if content(root, swap.target)?.as_ref() != Some(swap.before) {
        return Ok(Swapped::ChangedMeanwhile);
    }
    crash::point("before-swap");
    if !change_places(root, swap)? {
        return Ok(Swapped::ChangedMeanwhile);
    }
    crash::point("after-swap");
    // First the look, then the slow sync: a human's file is out of its place no longer than it must.
    let ended = match staged(root, swap)? {
        Staged::Old => Swapped::Done,
        Staged::New | Staged::Human | Staged::Absent if give_back(root, swap)? => Swapped::TakenBack,
        // Edited on top of ours: the change stands, and what it displaced is kept at the next look.
        Staged::New | Staged::Human | Staged::Absent => Swapped::Done,
    };
    sync(root, swap)?;
    Ok(ended)
}

/// Reads what the staged file says about how far a swap came.
pub(crate) fn staged(root: &Root, swap: &Swap<'_>) -> io::Result<Staged> {
    let dir = staged_dir(root)?;
    let missing = |e: &io::Error| e.kind() == io::ErrorKind::NotFound;
    match dir.symlink_metadata(swap.name) {
        Ok(meta) if !meta.is_file() => return Ok(Staged::Human),
        Ok(_) => {}
        Err(e) if missing(&e) => return Ok(Staged::Absent),
        Err(e) => return Err(e),
    }
    let hash = ContentHash::hash_bytes(&dir.read(swap.name)?);
    Ok(match hash {
        hash if &hash == swap.after => Staged::New,
        hash if &hash == swap.before => Staged::Old,
        _ => Staged::Human,
    })
}

/// Lets what was displaced and our content change places again.
///
/// Returns `false`, and moves nothing, where the record was edited or removed on top of ours.
pub(crate) fn give_back(root: &Root, swap: &Swap<'_>) -> io::Result<bool> {
    if content(root, swap.target)?.as_ref() != Some(swap.after) {
        return Ok(false);
    }
    let dir = staged_dir(root)?;
    let mut theirs = Theirs::open(&dir, swap.name);
    if !change_places(root, swap)? {
        return Ok(false);
    }
    crash::point("after-giving-back");
    theirs.read();
    if let Err(e) = theirs.keep(&dir, swap.name) {
        tracing::warn!(record = %swap.target, error = %e, "failed to keep a copy of an edit that was given back");
    }
    match staged(root, swap)? {
        Staged::New | Staged::Absent => {}
        // Edited between our look and the step back: two humans, and both versions are kept.
        Staged::Old | Staged::Human => {
            keep_conflict(root, swap, swap.name)?;
        }
    }
    sync(root, swap)?;
    Ok(true)
}

/// Looks whether an editor that had the displaced file open wrote into it.
pub(crate) fn look(root: &Root, swap: &Swap<'_>) -> io::Result<Look> {
    match staged(root, swap)? {
        Staged::Absent => Ok(Look::Gone),
        Staged::New | Staged::Old => Ok(Look::Quiet),
        Staged::Human => {
            wait_until_still(root, swap)?;
            if give_back(root, swap)? {
                return Ok(Look::GivenBack);
            }
            keep_conflict(root, swap, swap.name).map(Look::Kept)
        }
    }
}

/// Gives an editor that is half way through a save the time to finish it.
fn wait_until_still(root: &Root, swap: &Swap<'_>) -> io::Result<()> {
    let dir = staged_dir(root)?;
    for _ in 0..STILL_TRIES {
        let written = dir.symlink_metadata(swap.name)?.modified()?.into_std();
        if written.elapsed().is_ok_and(|ago| ago >= STILL) {
            break;
        }
        std::thread::sleep(STILL / 2);
    }
    Ok(())
}

/// Forgets a staged file.
pub(crate) fn discard(root: &Root, name: &str) -> io::Result<()> {
    durable::remove(&staged_dir(root)?, name)
}

/// Removes the staged files that no intent knows: a crash left them before anything moved.
pub(crate) fn sweep(root: &Root, known: impl Fn(&str) -> bool) -> io::Result<()> {
    let dir = staged_dir(root)?;
    for entry in dir.entries()? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !known(&name) {
            durable::remove(&dir, &name)?;
        }
    }
    Ok(())
}

/// Moves a human's content to `conflict/`; the file itself, so that a late write still reaches it.
fn keep_conflict(root: &Root, swap: &Swap<'_>, staged: &str) -> io::Result<String> {
    let (from, conflicts) = (staged_dir(root)?, root.make_folder(CONFLICTS)?);
    let hash =
        text(&from, staged).map_or("file".into(), |bytes| ContentHash::hash_bytes(&bytes).as_str()[..12].to_owned());
    for number in 1_u32.. {
        let again = if number == 1 { String::new() } else { format!("-{number}") };
        let name = format!("{}-{hash}{again}.md", swap.target.slug().replace('/', "-"));
        crash::point("before-keeping-conflict");
        match renameat_with(&from, staged, &conflicts, &name, RenameFlags::NOREPLACE) {
            Ok(()) => {
                durable::sync(&conflicts)?;
                let kept = format!("{CONFLICTS}/{name}");
                tracing::warn!(record = %swap.target, kept, "two people edited at once, both versions are kept");
                return Ok(kept);
            }
            Err(Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The hash of the record's content; `None` where there is no file that could be a record.
fn content(root: &Root, path: &RecordPath) -> io::Result<Option<ContentHash>> {
    match root.read(path) {
        Ok(snapshot) => Ok(Some(snapshot.hash)),
        Err(RootError::Io { source, .. } | RootError::Open { source, .. }) => Err(source),
        Err(RootError::Missing { .. } | RootError::Link { .. }) => Ok(None),
        Err(RootError::NotAFile { .. } | RootError::TooLarge { .. }) => Ok(None),
    }
}

/// Lets the staged file and the record's file change places; `false` where one is missing.
fn change_places(root: &Root, swap: &Swap<'_>) -> io::Result<bool> {
    let (folder, name) = swap.target.split_folder();
    let folder = match root.dir().open_dir(folder) {
        Ok(folder) => folder,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(e),
    };
    let staged = staged_dir(root)?;
    match renameat_with(&staged, swap.name, &folder, name, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(e) => Err(explain(e)),
    }
}

fn sync(root: &Root, swap: &Swap<'_>) -> io::Result<()> {
    if let Some(folder) = root.folder(swap.target.split_folder().0).map_err(io::Error::other)? {
        durable::sync(&folder)?;
    }
    durable::sync(&staged_dir(root)?)
}

/// A file system without an atomic swap cannot keep a human's edit safe: say so instead of guessing.
fn explain(e: Errno) -> io::Error {
    match e {
        Errno::INVAL | Errno::NOSYS | Errno::NOTSUP => io::Error::new(
            io::ErrorKind::Unsupported,
            "the file system of the vault cannot swap two files atomically, so live changes are refused: \
             keep the vault on a local disk (ext4, xfs, btrfs, tmpfs, overlay)",
        ),
        Errno::XDEV => io::Error::new(
            io::ErrorKind::CrossesDevices,
            format!(
                "lies on another file system than {OWN_FOLDER}/, so live changes are refused: \
                 keep the whole vault on one file system"
            ),
        ),
        other => other.into(),
    }
}

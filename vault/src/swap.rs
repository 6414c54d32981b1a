//! Compare-and-swap of a whole file, durable, without ever losing what a human wrote.
//!
//! The new content is staged in our own folder; then it and the record's file change places in one
//! atomic step (`renameat2` with `RENAME_EXCHANGE`). What was displaced is still there to be
//! compared: if it is not the content that was judged, a human was faster, and the files change
//! places back. An editor that still has the old file open writes into the displaced one, so that
//! is kept and looked at again ([`look`]) until nobody can be expected to write into it. Content of
//! a human that finds its place taken is moved to `conflict/`, the file itself and no copy of it.
//!
//! While a human's content is out of its place, however shortly, a second human may read the file
//! without it and save that later. So a copy of what was given back is kept for a while too, and
//! goes to `conflict/` if words of it are missing in the end ([`forget`]).

use crate::crash;
use crate::durable;
use crate::root::{OWN_FOLDER, Root, RootError};
use cap_std::fs::Dir;
use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;
use std::collections::HashSet;
use std::io;
use steward_domain::path::RecordPath;
use steward_domain::plan::ContentHash;

const STAGED: &str = "staged";
const CONFLICTS: &str = "conflict";

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
    let hash = ContentHash::of(&dir.read(swap.name)?);
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
    let theirs = text(&staged_dir(root)?, swap.name);
    if !change_places(root, swap)? {
        return Ok(false);
    }
    crash::point("after-giving-back");
    if let Some(Err(e)) = theirs.map(|bytes| durable::replace(&staged_dir(root)?, &copy_of(swap.name), &bytes)) {
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
        Staged::Human if give_back(root, swap)? => Ok(Look::GivenBack),
        Staged::Human => keep_conflict(root, swap, swap.name).map(Look::Kept),
    }
}

/// Forgets a swap that nobody can write into any more.
///
/// Returns where a copy of a human's edit was kept, if words of it are missing in the record: a
/// second human saved over it what they had read before it was given back.
pub(crate) fn forget(root: &Root, swap: &Swap<'_>) -> io::Result<Option<String>> {
    let dir = staged_dir(root)?;
    let copy = copy_of(swap.name);
    let kept = match dir.read(&copy) {
        Ok(theirs) if is_overwritten(root, swap, &theirs)? => Some(keep_conflict(root, swap, &copy)?),
        Ok(_) => None,
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(e),
    };
    durable::remove(&dir, &copy)?;
    durable::remove(&dir, swap.name)?;
    Ok(kept)
}

/// Whether words that a human added are not in the record.
fn is_overwritten(root: &Root, swap: &Swap<'_>, theirs: &[u8]) -> io::Result<bool> {
    let now = root.read(swap.target).map_or_else(|_| Vec::new(), |snapshot| snapshot.bytes);
    if now == theirs {
        return Ok(false);
    }
    let ours = staged_dir(root)?.read(swap.name).unwrap_or_default();
    let replaced = swap.replaced.iter().map(String::as_bytes);
    let known: HashSet<&[u8]> = words(&now).chain(words(&ours)).chain(replaced).collect();
    Ok(words(theirs).any(|word| !known.contains(word)))
}

/// The words of the content before that are not in the one after.
pub(crate) fn replaced_words(before: &[u8], after: &[u8]) -> Vec<String> {
    let left: HashSet<&[u8]> = words(after).collect();
    let gone = words(before).filter(|word| !left.contains(word));
    gone.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

fn words(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// What a staged file says; a link, a folder or a pipe says nothing.
fn text(dir: &Dir, name: &str) -> Option<Vec<u8>> {
    let is_file = dir.symlink_metadata(name).is_ok_and(|meta| meta.is_file());
    is_file.then(|| dir.read(name).ok()).flatten()
}

/// The name of the copy of what was given back.
pub(crate) fn copy_of(name: &str) -> String {
    format!("{name}.human")
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
    let hash = text(&from, staged).map_or("file".into(), |bytes| ContentHash::of(&bytes).as_str()[..12].to_owned());
    for number in 1_u32.. {
        let again = if number == 1 { String::new() } else { format!("-{number}") };
        let name = format!("{}-{hash}{again}.md", swap.target.slug());
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
    let folder = match root.dir().open_dir(swap.target.kind().folder()) {
        Ok(folder) => folder,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(e),
    };
    let staged = staged_dir(root)?;
    match renameat_with(&staged, swap.name, &folder, swap.target.file_name(), RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(e) => Err(explain(e)),
    }
}

fn sync(root: &Root, swap: &Swap<'_>) -> io::Result<()> {
    if let Some(folder) = root.folder(swap.target.kind().folder()).map_err(io::Error::other)? {
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

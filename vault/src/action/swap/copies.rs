//! Copies of a person's content that was put back, in case another person overwrites it.
//!
//! While a person's content is out of its place, even briefly, a second person may read the file without it and save
//! that version later. So content that goes back is copied on the way. [`forget_swap`] compares the copy with the
//! record when no more edits are expected. The comparison is by words: a needless copy under `conflict/` is a nuisance,
//! a missing one is a loss.

use super::FileSwap;
use super::keep_conflict;
use super::open_staged_folder;
use crate::files::durable;
use crate::files::root::VaultRoot;
use cap_std::fs::{Dir, File};
use std::collections::HashSet;
use std::io::{self, Read, Seek, SeekFrom};

/// Forgets a swap when no more writes into its files are expected.
///
/// Returns whether a copy of a person's edit was kept, because words of it are missing in the record. Then a second
/// person has saved over it what they had read before the edit was put back.
pub(crate) fn forget_swap(root: &VaultRoot, swap: &FileSwap<'_>) -> io::Result<bool> {
    let dir = open_staged_folder(root)?;
    let mut kept = false;
    for copy in copy_names(swap.name) {
        if let Some(theirs) = read_staged_file(&dir, &copy)
            && is_overwritten(root, swap, &theirs)?
        {
            keep_conflict(root, swap.target, &dir, &copy)?;
            kept = true;
        }
        durable::remove_file(&dir, &copy)?;
    }
    durable::remove_file(&dir, swap.name)?;
    Ok(kept)
}

/// Whether words that a person added are missing in the record.
fn is_overwritten(root: &VaultRoot, swap: &FileSwap<'_>, theirs: &[u8]) -> io::Result<bool> {
    let now = root.read_target(swap.target).map_or_else(|_| Vec::new(), |snapshot| snapshot.bytes);
    if now == theirs {
        return Ok(false);
    }
    let ours = open_staged_folder(root)?.read(swap.name).unwrap_or_default();
    let replaced = swap.replaced.iter().map(String::as_bytes);
    let known: HashSet<&[u8]> = split_words(&now).chain(split_words(&ours)).chain(replaced).collect();
    Ok(split_words(theirs).any(|word| !known.contains(word)))
}

/// The words that are in `before` and not in `after`.
pub(crate) fn replaced_words(before: &[u8], after: &[u8]) -> Vec<String> {
    let left: HashSet<&[u8]> = split_words(after).collect();
    let gone = split_words(before).filter(|word| !left.contains(word));
    gone.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

fn split_words(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// Reads a staged file; `None` for a link, a folder or a pipe.
pub(super) fn read_staged_file(dir: &Dir, name: &str) -> Option<Vec<u8>> {
    let is_file = dir.symlink_metadata(name).is_ok_and(|meta| meta.is_file());
    is_file.then(|| dir.read(name).ok()).flatten()
}

/// A person's displaced content while it goes back to its place.
///
/// It is read before and after the swap: an editor may finish a save in between, and a second person may save over it
/// right afterwards.
pub(super) struct DisplacedEdit {
    file: Option<File>,
    seen: Vec<Vec<u8>>,
}

impl DisplacedEdit {
    /// Opens and reads a staged file. A link, a folder or a pipe is not opened.
    pub(super) fn open(dir: &Dir, name: &str) -> Self {
        let is_file = dir.symlink_metadata(name).is_ok_and(|meta| meta.is_file());
        let file = is_file.then(|| dir.open(name).ok()).flatten();
        let mut theirs = Self { file, seen: Vec::new() };
        theirs.read_current_content();
        theirs
    }

    /// Reads the open file's current content, wherever the file was moved.
    pub(super) fn read_current_content(&mut self) {
        let Some(file) = &mut self.file else { return };
        let mut bytes = Vec::new();
        let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut bytes));
        if read.is_ok() && self.seen.last() != Some(&bytes) {
            self.seen.push(bytes);
        }
    }

    /// Writes the copies of what was read.
    pub(super) fn save_copies(&self, dir: &Dir, name: &str) -> io::Result<()> {
        copy_names(name).iter().zip(&self.seen).try_for_each(|(copy, bytes)| durable::replace_file(dir, copy, bytes))
    }
}

/// The names of the two copies: as read before and after the swap back.
pub(crate) fn copy_names(name: &str) -> [String; 2] {
    [format!("{name}.human"), format!("{name}.human-2")]
}

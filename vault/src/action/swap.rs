//! Durable compare-and-swap of a whole file, which never loses what a person wrote.
//!
//! The new content is staged in our own folder. Then it and the record's file change places in one atomic step
//! (`renameat2` with `RENAME_EXCHANGE`). The displaced file is then compared: if it does not hold the judged content, a
//! person was faster, and the files change places back. An editor that still has the old file open writes into the
//! displaced one. So that file is kept and checked again ([`check_late_edit`]) until no more writes are expected. If a
//! person's content cannot go back because its place is taken, the file itself, and no copy, moves to `conflict/`.

mod copies;

use crate::files::crash;
use crate::files::durable;
use crate::files::root::{OWN_FOLDER, VaultRoot};
use crate::files::target::target_name;
use cap_std::fs::Dir;
use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;
use std::io;
use std::time::Duration;
use steward_domain::action::plan::ContentHash;
use steward_domain::action::target::WriteTarget;
use steward_domain::record::path::RecordKind;

use copies::{DisplacedEdit, read_staged_file};
pub(crate) use copies::{copy_names, forget_swap, replaced_words};

pub(crate) const STAGED: &str = "staged";
const CONFLICTS: &str = "conflict";
/// A save counts as finished when nobody has written into the file for 10 ms, ten times as long as an editor takes
/// between truncating and writing.
const STILL: Duration = Duration::from_millis(10);
/// The longest part of a page's name in the name of its copy, in characters: it leaves room for two hashes within 255 bytes.
const MAX_STEM_CHARS: usize = 50;
const MAX_ENDING_BYTES: usize = 16;
/// After this number of tries the file is taken as it is.
const STILL_TRIES: u32 = 10;

/// One swap: the name of the staged file, the file that changes, the hashes of its content before and after, and the words
/// that only the content before has.
#[derive(Clone, Debug)]
pub(crate) struct FileSwap<'a> {
    pub(crate) name: &'a str,
    pub(crate) target: &'a WriteTarget,
    pub(crate) before: &'a ContentHash,
    pub(crate) after: &'a ContentHash,
    pub(crate) replaced: &'a [String],
}

/// How a swap ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SwapOutcome {
    /// The new content is in place.
    Done,
    /// The record held other content than expected, and nothing moved.
    ChangedMeanwhile,
    /// A person edited the record during the swap; their content is back in place.
    TakenBack,
}

/// The state of a staged file, from its content alone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StagedContent {
    /// It does not exist.
    Absent,
    /// It holds the new content: nothing was swapped, or it was swapped back.
    New,
    /// It holds the old content: the swap happened.
    Old,
    /// It holds other content: what a person wrote.
    Human,
}

/// The result of a later check of a staged file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LateEditCheck {
    /// Nobody wrote into it.
    Quiet,
    /// A person's late edit went back to its place; our content is staged now.
    GivenBack,
    /// A person's late edit could not go back because its place was taken. It was moved to this path.
    Kept(String),
    /// The staged file no longer exists.
    Gone,
}

/// Opens the folder of staged files, creating it.
pub(crate) fn open_staged_folder(root: &VaultRoot) -> io::Result<Dir> {
    root.make_own_folder(Some(STAGED))
}

/// Stages new content with the target's owner and permissions. The folder is not synced.
pub(crate) fn stage_content(root: &VaultRoot, swap: &FileSwap<'_>, bytes: &[u8]) -> io::Result<()> {
    let model = root.find_target(swap.target)?.ok_or(io::ErrorKind::NotFound)?;
    durable::create_file_like(&open_staged_folder(root)?, swap.name, bytes, &model)
}

/// Puts the staged content in place if the record still holds the expected content. The folders are not synced.
pub(crate) fn swap_in(root: &VaultRoot, swap: &FileSwap<'_>) -> io::Result<SwapOutcome> {
    if root.hash_target(swap.target)?.as_ref() != Some(swap.before) {
        return Ok(SwapOutcome::ChangedMeanwhile);
    }
    crash::die_if_armed("before-swap");
    if !exchange_files(root, swap)? {
        return Ok(SwapOutcome::ChangedMeanwhile);
    }
    crash::die_if_armed("after-swap");
    // Compare before the slow sync, so that a person's file is out of its place as briefly as possible.
    Ok(match inspect_staged(root, swap)? {
        StagedContent::Old => SwapOutcome::Done,
        StagedContent::New | StagedContent::Human | StagedContent::Absent if swap_back(root, swap)? => {
            SwapOutcome::TakenBack
        }
        // A person edited our content. The change is kept, and the next check keeps the displaced file too.
        StagedContent::New | StagedContent::Human | StagedContent::Absent => SwapOutcome::Done,
    })
}

/// Reads from the staged file how far a swap has come.
pub(crate) fn inspect_staged(root: &VaultRoot, swap: &FileSwap<'_>) -> io::Result<StagedContent> {
    let dir = open_staged_folder(root)?;
    let missing = |e: &io::Error| e.kind() == io::ErrorKind::NotFound;
    match dir.symlink_metadata(swap.name) {
        Ok(meta) if !meta.is_file() => return Ok(StagedContent::Human),
        Ok(_) => {}
        Err(e) if missing(&e) => return Ok(StagedContent::Absent),
        Err(e) => return Err(e),
    }
    let hash = ContentHash::hash_bytes(&dir.read(swap.name)?);
    Ok(match hash {
        hash if &hash == swap.after => StagedContent::New,
        hash if &hash == swap.before => StagedContent::Old,
        _ => StagedContent::Human,
    })
}

/// Swaps the displaced file and our content back.
///
/// Returns `false`, and moves nothing, if the record was edited or removed after our swap.
pub(crate) fn swap_back(root: &VaultRoot, swap: &FileSwap<'_>) -> io::Result<bool> {
    if root.hash_target(swap.target)?.as_ref() != Some(swap.after) {
        return Ok(false);
    }
    let dir = open_staged_folder(root)?;
    let mut theirs = DisplacedEdit::open(&dir, swap.name);
    if !exchange_files(root, swap)? {
        return Ok(false);
    }
    crash::die_if_armed("after-giving-back");
    theirs.read_current_content();
    if let Err(e) = theirs.save_copies(&dir, swap.name) {
        tracing::warn!(file = %swap.target, error = %e, "failed to keep a copy of a person's edit that was put back");
    }
    match inspect_staged(root, swap)? {
        StagedContent::New | StagedContent::Absent => {}
        // Our content was edited between the comparison and the swap back: two people, and both versions are kept.
        StagedContent::Old | StagedContent::Human => {
            keep_conflict(root, swap.target, &open_staged_folder(root)?, swap.name)?;
        }
    }
    sync_folders(root, swap.target)?;
    Ok(true)
}

/// Checks whether an editor that had the displaced file open wrote into it.
pub(crate) fn check_late_edit(root: &VaultRoot, swap: &FileSwap<'_>) -> io::Result<LateEditCheck> {
    match inspect_staged(root, swap)? {
        StagedContent::Absent => Ok(LateEditCheck::Gone),
        StagedContent::New | StagedContent::Old => Ok(LateEditCheck::Quiet),
        StagedContent::Human => {
            wait_until_still(&open_staged_folder(root)?, swap.name)?;
            if swap_back(root, swap)? {
                return Ok(LateEditCheck::GivenBack);
            }
            keep_conflict(root, swap.target, &open_staged_folder(root)?, swap.name).map(LateEditCheck::Kept)
        }
    }
}

/// Waits until an editor has finished its save of a file.
pub(super) fn wait_until_still(dir: &Dir, name: &str) -> io::Result<()> {
    for _ in 0..STILL_TRIES {
        let written = dir.symlink_metadata(name)?.modified()?.into_std();
        if written.elapsed().is_ok_and(|ago| ago >= STILL) {
            break;
        }
        std::thread::sleep(STILL / 2);
    }
    Ok(())
}

/// Removes a staged file.
pub(crate) fn discard_file(root: &VaultRoot, name: &str) -> io::Result<()> {
    durable::remove_file(&open_staged_folder(root)?, name)
}

/// Removes the staged files that no intent names. A crash left them before any file moved.
pub(crate) fn remove_unknown_files(root: &VaultRoot, known: impl Fn(&str) -> bool) -> io::Result<()> {
    let dir = open_staged_folder(root)?;
    for entry in dir.entries()? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !known(&name) {
            durable::remove_file(&dir, &name)?;
        }
    }
    Ok(())
}

/// Moves a person's content to `conflict/`. The file itself moves, so that a late write still reaches it.
pub(super) fn keep_conflict(root: &VaultRoot, target: &WriteTarget, from: &Dir, file: &str) -> io::Result<String> {
    let conflicts = root.make_folder(CONFLICTS)?;
    let hash = read_staged_file(from, file)
        .map_or("file".into(), |bytes| ContentHash::hash_bytes(&bytes).as_str()[..12].to_owned());
    let (stem, ending) = conflict_name(target);
    for number in 1_u32.. {
        let again = if number == 1 { String::new() } else { format!("-{number}") };
        let name = format!("{stem}-{hash}{again}{ending}");
        crash::die_if_armed("before-keeping-conflict");
        match renameat_with(from, file, &conflicts, &name, RenameFlags::NOREPLACE) {
            Ok(()) => {
                durable::sync_folder(&conflicts)?;
                let kept = format!("{CONFLICTS}/{name}");
                tracing::warn!(file = %target, kept, "two people edited at once; both versions are kept");
                return Ok(kept);
            }
            Err(Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The name of a file in `conflict/`, and its ending.
fn conflict_name(target: &WriteTarget) -> (String, &str) {
    match target {
        WriteTarget::Record(path) => {
            let kind = path.own_kind().or(path.folder_kind()).unwrap_or(RecordKind::Task);
            (path.plain_name(kind), ".md")
        }
        WriteTarget::Page(path) => {
            let (stem, ending) = target_name(target)
                .rsplit_once('.')
                .map_or((target_name(target), ""), |(stem, _)| (stem, &target_name(target)[stem.len()..]));
            let hash = ContentHash::hash_bytes(path.to_string().as_bytes());
            // What follows the last dot of a long name may be no ending.
            let ending = if ending.len() <= MAX_ENDING_BYTES { ending } else { "" };
            (format!("{}-{}", stem.chars().take(MAX_STEM_CHARS).collect::<String>(), &hash.as_str()[..8]), ending)
        }
    }
}

/// Exchanges the staged file and the record's file; `false` if one of them is missing.
fn exchange_files(root: &VaultRoot, swap: &FileSwap<'_>) -> io::Result<bool> {
    let Some(folder) = root.open_target_folder(swap.target)? else { return Ok(false) };
    let staged = open_staged_folder(root)?;
    match renameat_with(&staged, swap.name, &folder, target_name(swap.target), RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(e) => Err(explain_exchange_error(e)),
    }
}

/// Makes the names in the target's folder and in the folder of staged files durable.
pub(super) fn sync_folders(root: &VaultRoot, target: &WriteTarget) -> io::Result<()> {
    if let Some(folder) = root.open_target_folder(target)? {
        durable::sync_folder(&folder)?;
    }
    durable::sync_folder(&open_staged_folder(root)?)
}

/// Without an atomic swap a person's edit would not be safe, so the change is refused and the cause is named.
pub(super) fn explain_exchange_error(e: Errno) -> io::Error {
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

//! One file of an action, put in place and taken back: swapped, created or removed.
//!
//! A swap is that of [`crate::action::swap`]. A new file gets its name only if the name is free. A removed file moves to
//! the `.trash/` of its wiki and stays there. The file that was displaced is compared afterwards: if a person was faster,
//! everything goes back. A person's content that cannot go back is kept beside it.

use crate::action::journal::{ContentChange, FileChange};
use crate::action::swap::{
    self, FileSwap, LateEditCheck, StagedContent, SwapOutcome, copy_names, explain_exchange_error, keep_conflict,
    open_staged_folder, wait_until_still,
};
use crate::files::crash;
use crate::files::durable;
use crate::files::root::VaultRoot;
use crate::files::target::target_name;
use cap_std::fs::Dir;
use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;
use std::io;
use steward_domain::action::plan::ContentHash;
use steward_domain::action::target::WriteTarget;
use steward_domain::wiki::path::PagePath;

/// The exchange of one file: the name of its staged content, and how the file changes.
#[derive(Clone, Debug)]
pub(crate) struct FileExchange<'a> {
    pub(crate) name: String,
    pub(crate) change: &'a FileChange,
    /// Whether its action was taken back.
    pub(crate) reverted: bool,
}

/// How far an exchange has come, from the files alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExchangeState {
    /// Nothing has moved, or it was taken back.
    Waiting,
    /// It is in place.
    InPlace,
    /// It is in place, and what it displaced holds a person's edit.
    OverEdit,
}

/// A file that is removed.
struct Removal<'a> {
    path: &'a PagePath,
    before: &'a ContentHash,
    run: &'a str,
}

/// A file that is new.
struct Creation<'a> {
    path: &'a PagePath,
    after: &'a ContentHash,
}

/// The three ways in which a file changes.
enum Exchange<'a> {
    Swap(FileSwap<'a>),
    Create(Creation<'a>),
    Remove(Removal<'a>),
}

impl FileExchange<'_> {
    pub(crate) fn target(&self) -> &WriteTarget {
        &self.change.target
    }

    fn read_kind(&self) -> io::Result<Exchange<'_>> {
        let (target, name) = (&self.change.target, self.name.as_str());
        Ok(match (&self.change.content, target) {
            (ContentChange::Swap { before, after, replaced }, _) => {
                Exchange::Swap(FileSwap { name, target, before, after, replaced })
            }
            (ContentChange::Create { after }, WriteTarget::Page(path)) => Exchange::Create(Creation { path, after }),
            (ContentChange::Remove { before, run }, WriteTarget::Page(path)) => {
                Exchange::Remove(Removal { path, before, run })
            }
            // The journal reads no such change.
            (ContentChange::Create { .. } | ContentChange::Remove { .. }, WriteTarget::Record(_)) => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "a record is only exchanged"));
            }
        })
    }

    /// The names that the exchange has in the folder of staged files.
    pub(crate) fn staged_names(&self) -> [String; 3] {
        let [first, second] = copy_names(&self.name);
        [self.name.clone(), first, second]
    }

    /// Makes the folders that the exchange needs, so that it needs no more space later.
    pub(crate) fn make_folders(&self, root: &VaultRoot) -> io::Result<()> {
        match self.read_kind()? {
            Exchange::Swap(_) => Ok(()),
            Exchange::Create(creation) => root.make_folders(creation.path.split_folders().0).map(drop),
            Exchange::Remove(removal) => root.make_folders(removal.path.trash_folders(removal.run)).map(drop),
        }
    }

    /// Removes the folders of the trash again, if nothing is in them. They do not matter, so an error does not either.
    pub(crate) fn remove_empty_trash(&self, root: &VaultRoot) {
        let Ok(Exchange::Remove(removal)) = self.read_kind() else { return };
        let parts: Vec<&str> = removal.path.trash_folders(removal.run).collect();
        let wiki = removal.path.wiki().split('/').count();
        for end in (wiki + 1..=parts.len()).rev() {
            let Ok(Some(parent)) = root.open_folders(parts[..end - 1].iter().copied()) else { return };
            if parent.remove_dir(parts[end - 1]).is_err() {
                return;
            }
        }
    }

    /// Stages the new content. The folder is not synced.
    pub(crate) fn stage(&self, root: &VaultRoot, bytes: &[u8]) -> io::Result<()> {
        match self.read_kind()? {
            Exchange::Swap(swap) => swap::stage_content(root, &swap, bytes),
            Exchange::Create(_) => durable::create_file(&open_staged_folder(root)?, &self.name, bytes),
            Exchange::Remove(_) => Ok(()),
        }
    }

    /// Puts the change in place if the file still is as expected. The folders are not synced.
    pub(crate) fn put_in_place(&self, root: &VaultRoot) -> io::Result<SwapOutcome> {
        match self.read_kind()? {
            Exchange::Swap(swap) => swap::swap_in(root, &swap),
            Exchange::Create(_) => {
                crash::die_if_armed("before-swap");
                let is_new = self.move_to_target(root)?;
                crash::die_if_armed("after-swap");
                Ok(if is_new { SwapOutcome::Done } else { SwapOutcome::ChangedMeanwhile })
            }
            Exchange::Remove(removal) => remove_file(root, self.target(), &removal),
        }
    }

    /// How far the exchange has come.
    pub(crate) fn inspect(&self, root: &VaultRoot) -> io::Result<ExchangeState> {
        Ok(match self.read_kind()? {
            Exchange::Swap(swap) => match swap::inspect_staged(root, &swap)? {
                StagedContent::Absent | StagedContent::New => ExchangeState::Waiting,
                StagedContent::Old => ExchangeState::InPlace,
                // Our content was in place for a moment, and somebody wrote into it when it was staged again.
                StagedContent::Human if root.hash_target(swap.target)?.as_ref() == Some(swap.before) => {
                    ExchangeState::Waiting
                }
                StagedContent::Human => ExchangeState::OverEdit,
            },
            Exchange::Create(_) => match open_staged_folder(root)?.symlink_metadata(&self.name) {
                Ok(_) => ExchangeState::Waiting,
                Err(e) if e.kind() == io::ErrorKind::NotFound => ExchangeState::InPlace,
                Err(e) => return Err(e),
            },
            Exchange::Remove(removal) => match hash_removed(root, &removal)? {
                None => ExchangeState::Waiting,
                Some(hash) if &hash == removal.before => ExchangeState::InPlace,
                Some(_) => ExchangeState::OverEdit,
            },
        })
    }

    /// Whether the file still is as the change expects it, and the new content is staged.
    pub(crate) fn is_expected(&self, root: &VaultRoot) -> io::Result<bool> {
        match &self.change.content {
            ContentChange::Swap { before, .. } | ContentChange::Remove { before, .. } => {
                Ok(root.hash_target(self.target())?.as_ref() == Some(before))
            }
            ContentChange::Create { after } => {
                let is_staged = hash_file(&open_staged_folder(root)?, &self.name)?.as_ref() == Some(after);
                Ok(is_staged && root.find_target(self.target())?.is_none())
            }
        }
    }

    /// Whether nobody has touched the file since the change was put in place.
    pub(crate) fn can_be_taken_back(&self, root: &VaultRoot) -> io::Result<bool> {
        if root.is_blocked(self.target()) {
            return Ok(false);
        }
        let is_gone = || root.find_target(self.target()).map(|found| found.is_none());
        match &self.change.content {
            ContentChange::Swap { after, .. } => Ok(root.hash_target(self.target())?.as_ref() == Some(after)),
            ContentChange::Create { after } => {
                Ok(root.hash_target(self.target())?.as_ref() == Some(after) || is_gone()?)
            }
            ContentChange::Remove { .. } => is_gone(),
        }
    }

    /// Takes back what was put in place. Returns `false`, and moves nothing, if a person has changed the file since.
    pub(crate) fn take_back(&self, root: &VaultRoot) -> io::Result<bool> {
        if !self.can_be_taken_back(root)? {
            return Ok(false);
        }
        match self.read_kind()? {
            Exchange::Swap(swap) => swap::swap_back(root, &swap),
            Exchange::Create(creation) => self.take_back_new_file(root, creation.after),
            Exchange::Remove(removal) => restore_removed(root, self.target(), &removal),
        }
    }

    /// Moves the staged content to the target's name; `false` if the name is taken or its folder is gone.
    fn move_to_target(&self, root: &VaultRoot) -> io::Result<bool> {
        let Some(folder) = root.open_target_folder(self.target())? else { return Ok(false) };
        move_file(&open_staged_folder(root)?, &self.name, &folder, target_name(self.target()))
    }

    fn take_back_new_file(&self, root: &VaultRoot, after: &ContentHash) -> io::Result<bool> {
        let Some(folder) = root.open_target_folder(self.target())? else { return Ok(true) };
        let staged = open_staged_folder(root)?;
        match renameat_with(&folder, target_name(self.target()), &staged, &self.name, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            // A person has removed it.
            Err(Errno::NOENT) => return Ok(true),
            Err(e) => return Err(explain_exchange_error(e)),
        }
        crash::die_if_armed("after-giving-back");
        if hash_file(&staged, &self.name)?.as_ref() != Some(after) {
            // A person edited it between the comparison and the move.
            if !self.move_to_target(root)? {
                keep_conflict(root, self.target(), &staged, &self.name)?;
            }
            return Ok(false);
        }
        self.sync(root)?;
        Ok(true)
    }

    /// Checks whether an editor that had the displaced file open wrote into it.
    pub(crate) fn check_late_edit(&self, root: &VaultRoot) -> io::Result<LateEditCheck> {
        match self.read_kind()? {
            Exchange::Swap(swap) => swap::check_late_edit(root, &swap),
            // The new file was in place for a moment, and was taken back.
            Exchange::Create(creation) => {
                let staged = open_staged_folder(root)?;
                match hash_file(&staged, &self.name)? {
                    None => Ok(LateEditCheck::Gone),
                    Some(hash) if &hash == creation.after => Ok(LateEditCheck::Quiet),
                    Some(_) => {
                        wait_until_still(&staged, &self.name)?;
                        if self.move_to_target(root)? {
                            self.sync(root)?;
                            return Ok(LateEditCheck::GivenBack);
                        }
                        keep_conflict(root, self.target(), &staged, &self.name).map(LateEditCheck::Kept)
                    }
                }
            }
            // What is in the trash then belongs to a later attempt.
            Exchange::Remove(_) if self.reverted => Ok(LateEditCheck::Gone),
            Exchange::Remove(removal) => match (hash_removed(root, &removal)?, find_trash(root, &removal)?) {
                (Some(hash), Some(trash)) if &hash != removal.before => {
                    let name = target_name(self.target());
                    wait_until_still(&trash, name)?;
                    if !root.is_blocked(self.target()) && restore_removed(root, self.target(), &removal)? {
                        return Ok(LateEditCheck::GivenBack);
                    }
                    keep_conflict(root, self.target(), &trash, name).map(LateEditCheck::Kept)
                }
                (_, _) => Ok(LateEditCheck::Quiet),
            },
        }
    }

    /// Forgets the exchange when no more writes into its files are expected. Returns whether a person's edit was kept.
    pub(crate) fn forget(&self, root: &VaultRoot) -> io::Result<bool> {
        match self.read_kind()? {
            Exchange::Swap(swap) => swap::forget_swap(root, &swap),
            Exchange::Create(_) => swap::discard_file(root, &self.name).map(|()| false),
            Exchange::Remove(_) => {
                self.remove_empty_trash(root);
                Ok(false)
            }
        }
    }

    /// Whether the file is removed.
    pub(crate) fn is_removal(&self) -> bool {
        matches!(self.change.content, ContentChange::Remove { .. })
    }

    /// Makes the names that an exchange changed durable, apart from those of the staged files.
    pub(crate) fn sync(&self, root: &VaultRoot) -> io::Result<()> {
        if let Exchange::Remove(removal) = self.read_kind()? {
            find_trash(root, &removal)?.map_or(Ok(()), |trash| durable::sync_folder(&trash))?;
        }
        root.open_target_folder(self.target())?.map_or(Ok(()), |folder| durable::sync_folder(&folder))
    }
}

/// Moves a file to the trash. If a person was faster, it goes back.
fn remove_file(root: &VaultRoot, target: &WriteTarget, removal: &Removal<'_>) -> io::Result<SwapOutcome> {
    if root.hash_target(target)?.as_ref() != Some(removal.before) {
        return Ok(SwapOutcome::ChangedMeanwhile);
    }
    crash::die_if_armed("before-swap");
    let name = target_name(target);
    let (Some(folder), Some(trash)) = (root.open_target_folder(target)?, find_trash(root, removal)?) else {
        return Ok(SwapOutcome::ChangedMeanwhile);
    };
    match renameat_with(&folder, name, &trash, name, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        Err(Errno::NOENT) => return Ok(SwapOutcome::ChangedMeanwhile),
        Err(e) => return Err(explain_exchange_error(e)),
    }
    crash::die_if_armed("after-swap");
    if hash_file(&trash, name)?.as_ref() == Some(removal.before) {
        return Ok(SwapOutcome::Done);
    }
    // If a person has made a new file there, the removed one stays in the trash.
    Ok(if restore_removed(root, target, removal)? { SwapOutcome::TakenBack } else { SwapOutcome::Done })
}

/// Moves a removed file back; `false` if its name is taken or it is no longer in the trash.
fn restore_removed(root: &VaultRoot, target: &WriteTarget, removal: &Removal<'_>) -> io::Result<bool> {
    let (trash, name) = (find_trash(root, removal)?, target_name(target));
    let Some(trash) = trash.filter(|trash| trash.symlink_metadata(name).is_ok()) else { return Ok(false) };
    let folder = root.make_folders(removal.path.split_folders().0)?;
    let restored = move_file(&trash, name, &folder, name)?;
    crash::die_if_armed("after-giving-back");
    durable::sync_folder(&folder)?;
    durable::sync_folder(&trash)?;
    Ok(restored)
}

/// The folder of the removed file in the trash; `None` if there is none.
fn find_trash(root: &VaultRoot, removal: &Removal<'_>) -> io::Result<Option<Dir>> {
    root.open_folders(removal.path.trash_folders(removal.run))
}

/// The hash of a removed file in the trash; `None` if it is not there.
fn hash_removed(root: &VaultRoot, removal: &Removal<'_>) -> io::Result<Option<ContentHash>> {
    let Some(trash) = find_trash(root, removal)? else { return Ok(None) };
    hash_file(&trash, removal.path.split_folders().1)
}

/// Moves a file to a name that must be free; `false` if it is taken.
fn move_file(from: &Dir, old: &str, to: &Dir, new: &str) -> io::Result<bool> {
    match renameat_with(from, old, to, new, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(e) => Err(explain_exchange_error(e)),
    }
}

/// The hash of a file; `None` if there is none. What is not a file counts as changed.
fn hash_file(dir: &Dir, name: &str) -> io::Result<Option<ContentHash>> {
    match dir.symlink_metadata(name) {
        Ok(meta) if meta.is_file() => Ok(Some(ContentHash::hash_bytes(&dir.read(name)?))),
        Ok(_) => Ok(Some(ContentHash::genesis())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

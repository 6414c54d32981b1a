//! The files of one action: all are put in place, or none is.
//!
//! They are exchanged one by one. If a person was faster at one of them, those before it are taken back in reverse. That is
//! impossible if a person has edited one of these too: then the action goes on without the files that people changed
//! first, and its record names them. After a crash the same is decided from the files alone.

use crate::action::exchange::{ExchangeState, FileExchange};
use crate::action::journal::{self, ChangeIntent, IntentKind};
use crate::action::swap::{self, SwapOutcome};
use crate::files::crash;
use crate::files::durable;
use crate::files::root::VaultRoot;
use std::io;
use steward_domain::action::audit::MISSING_FILES;
use steward_domain::action::plan::ContentHash;
use steward_domain::record::frontmatter::{self, FieldEdit};
use steward_domain::wiki::details::WikiDetails;

/// What putting the files of an action in place came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TransactionOutcome {
    /// All are in place, except those with these numbers.
    InPlace { missing: Vec<usize> },
    /// A person had changed the file with this number before, and nothing moved.
    ChangedMeanwhile { at: usize },
    /// A person was faster at the file with this number, and what was in place for a moment was taken back.
    TakenBack { at: usize },
}

/// Puts the files of an intent in place, or takes back what was.
pub(crate) fn put_in_place(root: &VaultRoot, intent: &ChangeIntent) -> io::Result<TransactionOutcome> {
    let files = intent.exchanges();
    for (number, file) in files.iter().enumerate() {
        if number > 0 {
            crash::die_if_armed("between-exchanges");
        }
        let ended = file.put_in_place(root)?;
        if ended == SwapOutcome::Done {
            continue;
        }
        if !take_back(root, &files[..number])? {
            let missing = go_on(root, &files)?;
            return sync(root, &files).map(|()| TransactionOutcome::InPlace { missing });
        }
        if number == 0 && ended == SwapOutcome::ChangedMeanwhile {
            return Ok(TransactionOutcome::ChangedMeanwhile { at: number });
        }
        sync(root, &files[..=number])?;
        return Ok(TransactionOutcome::TakenBack { at: number });
    }
    sync(root, &files)?;
    Ok(TransactionOutcome::InPlace { missing: Vec::new() })
}

/// Finishes the exchanges that a crash or a full disk interrupted, or takes them back. `may_finish` says whether the
/// record can still be filed; without it everything is taken back if possible.
pub(crate) fn recover(root: &VaultRoot, intent: &ChangeIntent, may_finish: bool) -> io::Result<TransactionOutcome> {
    let files = intent.exchanges();
    let states = files.iter().map(|file| file.inspect(root)).collect::<io::Result<Vec<_>>>()?;
    if states.iter().all(|state| *state == ExchangeState::Waiting) {
        // The crash may have come right after all was taken back. A folder that cannot be opened holds nothing of ours.
        files.iter().for_each(|file| drop(file.sync(root)));
        durable::sync_folder(&swap::open_staged_folder(root)?)?;
        return Ok(TransactionOutcome::ChangedMeanwhile { at: 0 });
    }
    let mut can_finish = may_finish && !states.contains(&ExchangeState::OverEdit);
    for (file, state) in files.iter().zip(&states) {
        can_finish &= *state != ExchangeState::Waiting || file.is_expected(root)?;
    }
    if can_finish && go_on(root, &files)?.is_empty() {
        sync(root, &files)?;
        return Ok(TransactionOutcome::InPlace { missing: Vec::new() });
    }
    let mut moved = Vec::new();
    for file in &files {
        if file.inspect(root)? != ExchangeState::Waiting {
            moved.push(file.clone());
        }
    }
    if take_back(root, &moved)? {
        return sync(root, &files).map(|()| TransactionOutcome::TakenBack { at: 0 });
    }
    let missing = go_on(root, &files)?;
    sync(root, &files)?;
    Ok(TransactionOutcome::InPlace { missing })
}

/// Takes the changes of these files back in reverse; `false` if a person has edited one of them since.
fn take_back(root: &VaultRoot, files: &[FileExchange<'_>]) -> io::Result<bool> {
    // Asked first, so that files do not go back and forth in vain.
    for file in files {
        if !file.can_be_taken_back(root)? {
            return Ok(false);
        }
    }
    for file in files.iter().rev() {
        if !file.take_back(root)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Puts every file in place that is not yet. Returns the numbers of those that people have changed.
fn go_on(root: &VaultRoot, files: &[FileExchange<'_>]) -> io::Result<Vec<usize>> {
    let mut missing = Vec::new();
    for (number, file) in files.iter().enumerate() {
        if file.inspect(root)? == ExchangeState::Waiting && file.put_in_place(root)? != SwapOutcome::Done {
            missing.push(number);
        }
    }
    Ok(missing)
}

/// Makes the new names durable, each folder once.
fn sync(root: &VaultRoot, files: &[FileExchange<'_>]) -> io::Result<()> {
    let mut folders: Vec<String> = Vec::new();
    for file in files {
        let shown = file.target().to_string();
        let folder = shown.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        if file.is_removal() || !folders.contains(&folder) {
            file.sync(root)?;
            folders.push(folder);
        }
    }
    if files.is_empty() { Ok(()) } else { durable::sync_folder(&swap::open_staged_folder(root)?) }
}

/// Writes into the staged record which files of its action are not in place, and into the intent the record's new hash.
pub(crate) fn record_missing_files(root: &VaultRoot, intent: &mut ChangeIntent, missing: &[usize]) -> io::Result<()> {
    let names: Vec<String> = missing
        .iter()
        .filter_map(|number| intent.exchanges().get(*number).map(|file| file.target().to_string()))
        .collect();
    let name = intent.key.record_name();
    let IntentKind::Action { filing, .. } = &mut intent.work else { return Ok(()) };
    let staged = swap::open_staged_folder(root)?;
    let written = staged.read(&name)?;
    // The details below may be longer than any record that people write.
    let (head, details) = written.split_at(WikiDetails::strip(&written).len());
    let value = (!names.is_empty()).then(|| names.into());
    let edit = FieldEdit { field: MISSING_FILES.to_owned(), value };
    let mut bytes = frontmatter::edit_fields(head, &[edit.unlink()]).map_err(io::Error::other)?;
    bytes.extend_from_slice(details);
    if bytes != written {
        durable::replace_file(&staged, &name, &bytes)?;
        durable::sync_folder(&staged)?;
    }
    let sha256 = ContentHash::hash_bytes(&bytes);
    if filing.sha256 != sha256 {
        filing.sha256 = sha256;
        journal::write_intent(root, intent)?;
    }
    Ok(())
}

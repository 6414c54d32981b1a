//! The chain of audit records: every record names the hash of the record before it.
//!
//! The head holds the number of records and the hash of the last one. It is kept in `.steward/chain.json`, outside the
//! records, so that a truncated chain is detected. The head is written after a record was filed. Until then the open
//! intent of that record replaces it, so a crash in between loses nothing. [`verify_chain`] reads every record and
//! reports each fault by name.

mod verify;
mod watch;

use crate::action::journal::{self, AttemptKey, ChangeIntent, RecordFiling};
use crate::action::swap;
use crate::files::crash;
use crate::files::durable;
use crate::files::root::{OWN_FOLDER, VaultRoot, VaultRootError};
use rustix::fs::{RenameFlags, renameat_with};
use std::io;
use steward_domain::action::audit::{AuditError, AuditRecord, ChainHead, is_audit_file_name};
use steward_domain::action::plan::ContentHash;
use steward_domain::record::frontmatter;
use steward_domain::record::path::{RecordKind, RecordPath};

pub(crate) use verify::{ChainEntry, ChainWalk, describe_edited_expiry, describe_misnamed_record};
pub use verify::{ChainVerification, verify_chain, verify_chain_beyond};
pub use watch::ChainWatch;

const HEAD: &str = "chain.json";

/// The chain cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    #[error("{OWN_FOLDER}/{HEAD}: {0}")]
    Io(#[from] io::Error),
    #[error(
        "{OWN_FOLDER}/{HEAD}: not readable ({0}): remove it and run `steward audit verify`; the head is then taken from the records"
    )]
    Head(String),
    #[error(transparent)]
    Root(#[from] VaultRootError),
    #[error("{path}: {source}")]
    Record { path: RecordPath, source: AuditError },
}

/// The head after this record was filed. A record that is already counted changes nothing.
pub(crate) fn advance_head(head: ChainHead, filing: &RecordFiling) -> ChainHead {
    if filing.seq == head.seq + 1 { ChainHead { seq: filing.seq, sha256: filing.sha256.clone() } } else { head }
}

/// Reads the head, and counts a record that was filed just before a crash.
///
/// # Errors
/// [`ChainError`] if the head, the intents or the records cannot be read.
pub fn read_head(root: &VaultRoot) -> Result<ChainHead, ChainError> {
    // The intents come first: an intent that is removed meanwhile has been counted in the head.
    let intents = journal::list_open_intents(root)?;
    let head = match read_written_head(root)? {
        Some(head) => head,
        None => rebuild_head(root)?,
    };
    // The record of an attempt that was taken back may have been filed by a later one, with another content.
    let mut head = head;
    for intent in intents.iter().filter(|intent| !intent.reverted) {
        if let Some(filing) = intent.filing().filter(|_| is_filed(root, intent).unwrap_or(false)) {
            head = advance_head(head, filing);
        }
    }
    Ok(head)
}

/// Whether the record of an intent is filed: it has left the folder of staged files, and is there under its name. A file that
/// a sync program put there is not the record.
pub(crate) fn is_filed(root: &VaultRoot, intent: &ChangeIntent) -> io::Result<bool> {
    let Some(filing) = intent.filing().filter(|filing| root.exists(&filing.record)) else { return Ok(false) };
    if !has_staged_record(root, &intent.key)? {
        return Ok(true);
    }
    Ok(root.hash_target(&filing.record.clone().into())?.as_ref() == Some(&filing.sha256))
}

/// Whether the record of an attempt is staged.
pub(crate) fn has_staged_record(root: &VaultRoot, key: &AttemptKey) -> io::Result<bool> {
    match root.find_own_folder(Some(swap::STAGED))? {
        Some(staged) => staged.try_exists(key.record_name()),
        None => Ok(false),
    }
}

/// The head as it was last written; `None` if it was lost or there is no record yet.
fn read_written_head(root: &VaultRoot) -> Result<Option<ChainHead>, ChainError> {
    let Some(own) = root.find_own_folder(None)? else {
        return Ok(None);
    };
    match own.read(HEAD) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|e| ChainError::Head(e.to_string())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Whether the file of the head exists.
pub(crate) fn has_written_head(root: &VaultRoot) -> Result<bool, ChainError> {
    Ok(read_written_head(root)?.is_some())
}

/// Writes the head. It is not synced: the intents replace it until [`sync_head`].
pub(crate) fn write_head(root: &VaultRoot, head: &ChainHead) -> io::Result<()> {
    let bytes = serde_json::to_vec(head).map_err(io::Error::other)?;
    durable::replace_private_file(&root.make_own_folder(None)?, HEAD, &bytes)?;
    crash::die_if_armed("after-chain-head");
    Ok(())
}

/// Makes the head durable, so that the intents behind it are no longer needed.
pub(crate) fn sync_head(root: &VaultRoot) -> io::Result<()> {
    durable::sync_folder(&root.make_own_folder(None)?)
}

/// Reads one record and its file's hash.
pub(crate) fn read_audit_record(root: &VaultRoot, path: &RecordPath) -> Result<(AuditRecord, ContentHash), ChainError> {
    let snapshot = root.read_file(path)?;
    let record =
        AuditRecord::parse(&snapshot.bytes).map_err(|source| ChainError::Record { path: path.clone(), source })?;
    Ok((record, snapshot.hash))
}

/// Reads one record; `None` if it does not exist.
pub(crate) fn read_record_if_present(root: &VaultRoot, path: &RecordPath) -> Result<Option<AuditRecord>, ChainError> {
    match read_audit_record(root, path) {
        Ok((record, _)) => Ok(Some(record)),
        Err(ChainError::Root(VaultRootError::Missing { .. })) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Writes a record into the staging folder, so that filing it is only a rename.
pub(crate) fn stage_record(root: &VaultRoot, name: &str, text: &str) -> io::Result<()> {
    root.make_folder(RecordKind::Event.folder())?;
    durable::create_file(&swap::open_staged_folder(root)?, name, text.as_bytes())
}

/// Files a staged record under its name and makes it durable. Fails if the name is taken.
pub(crate) fn publish_staged_record(root: &VaultRoot, key: &AttemptKey, filing: &RecordFiling) -> io::Result<()> {
    let events = root.make_folder(RecordKind::Event.folder())?;
    let from = swap::open_staged_folder(root)?;
    renameat_with(&from, key.record_name(), &events, filing.record.file_name(), RenameFlags::NOREPLACE)?;
    durable::sync_folder(&events)?;
    crash::die_if_armed("after-filing");
    Ok(())
}

/// Whether a record is a link of the chain: no other one has its place, and the next one, or the head, names its hash.
///
/// Anyone who can write to the vault can put a file there that looks like a record.
pub(crate) fn is_linked(root: &VaultRoot, seq: u64, sha256: &ContentHash) -> Result<bool, ChainError> {
    let (mut same, mut next) = (0, Vec::new());
    for (_, path) in list_record_files(root)? {
        let Some(path) = path else { continue };
        let Ok(snapshot) = root.read_file(&path) else { continue };
        // Reading the frontmatter of every record would take long, so their text is looked at first.
        let start =
            String::from_utf8_lossy(&snapshot.bytes[..snapshot.bytes.len().min(frontmatter::MAX_FRONTMATTER_BYTES)]);
        let found = start.lines().find_map(|line| line.strip_prefix("seq: ")?.trim().parse::<u64>().ok());
        match found {
            Some(found) if found == seq => same += 1,
            Some(found) if found == seq + 1 => {
                next.push(AuditRecord::parse(&snapshot.bytes).ok().map(|it| it.prev_sha256))
            }
            Some(_) | None => {}
        }
    }
    let is_next = match next.as_slice() {
        [prev] => prev.as_ref() == Some(sha256),
        [] => read_head(root)? == ChainHead { seq, sha256: sha256.clone() },
        _ => false,
    };
    Ok(same == 1 && is_next)
}

/// Rebuilds the head from the records alone: the record with the highest number.
fn rebuild_head(root: &VaultRoot) -> Result<ChainHead, ChainError> {
    let mut last = ChainHead::genesis();
    for (_, path) in list_record_files(root)? {
        if let Some(path) = path
            && let Ok((record, sha256)) = read_audit_record(root, &path)
            && record.seq > last.seq
        {
            last = ChainHead { seq: record.seq, sha256 };
        }
    }
    Ok(last)
}

/// Every file of `event/` that is named like an audit record, with its path if the name is valid.
fn list_record_files(root: &VaultRoot) -> Result<Vec<(String, Option<RecordPath>)>, VaultRootError> {
    let entries = root.list_files(RecordKind::Event)?;
    let ours = entries.into_iter().map(|e| e.name).filter(|name| is_audit_file_name(name));
    Ok(ours.map(|name| (name.clone(), RecordPath::parse(&format!("event/{name}")).ok())).collect())
}

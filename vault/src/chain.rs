//! The chain of audit records: every record names the hash of the one before it.
//!
//! The head (how many records there are, and the hash of the last) is kept in
//! `.steward/chain.json`, outside the records, so that a truncated chain is found. A record is
//! announced there before it is filed; a crash in between is made good by looking whether the
//! announced file exists. [`verify`] reads every record and reports what is wrong by name.

use crate::crash;
use crate::root::{OWN_FOLDER, Root, RootError};
use crate::swap;
use rustix::fs::{RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};
use std::io;
use steward_domain::audit::{AuditError, AuditRecord, Link};
use steward_domain::path::{RecordKind, RecordPath};
use steward_domain::plan::ContentHash;

const HEAD: &str = "chain.json";
/// Audit records are the files of `event/` whose names begin so.
pub const RECORD_PREFIX: &str = "steward-action";

/// Where the chain stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Records so far.
    pub seq: u64,
    /// SHA-256 of the last one's file.
    pub sha256: ContentHash,
    /// A record that is about to be filed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced: Option<RecordPath>,
}

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
    Root(#[from] RootError),
    #[error("{path}: {source}")]
    Record { path: RecordPath, source: AuditError },
}

impl Head {
    fn genesis() -> Self {
        Self { seq: 0, sha256: ContentHash::genesis(), announced: None }
    }

    /// The place of the next record.
    #[must_use]
    pub fn next(&self) -> Link {
        Link { seq: self.seq + 1, prev: self.sha256.clone() }
    }
}

/// Reads the head, making good for a crash while a record was filed.
pub(crate) fn head(root: &Root) -> Result<Head, ChainError> {
    let head = match root.dir().read(format!("{OWN_FOLDER}/{HEAD}")) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| ChainError::Head(e.to_string()))?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => last_record(root)?,
        Err(e) => return Err(e.into()),
    };
    let Some(path) = &head.announced else {
        return Ok(head);
    };
    if !root.exists(path) {
        return Ok(Head { announced: None, ..head });
    }
    let (record, sha256) = read(root, path)?;
    let follows = record.prev_sha256 == head.sha256;
    Ok(if follows { Head { seq: record.seq, sha256, announced: None } } else { Head { announced: None, ..head } })
}

/// Reads one record and its file's hash.
pub(crate) fn read(root: &Root, path: &RecordPath) -> Result<(AuditRecord, ContentHash), ChainError> {
    let snapshot = root.read(path)?;
    let record =
        AuditRecord::parse(&snapshot.bytes).map_err(|source| ChainError::Record { path: path.clone(), source })?;
    Ok((record, snapshot.hash))
}

/// Writes a record beside the journal, so that filing it later needs no space.
pub(crate) fn stage(root: &Root, name: &str, text: &str) -> io::Result<()> {
    swap::write_durable(&swap::staged_dir(root)?, name, text.as_bytes(), None)
}

/// Says which record comes next, before it is filed.
pub(crate) fn announce(root: &Root, head: &Head, path: &RecordPath) -> io::Result<()> {
    write_head(root, &Head { announced: Some(path.clone()), ..head.clone() })
}

/// Files a staged record under its name, if nobody else has taken that, and moves the head.
pub(crate) fn file(root: &Root, staged: &str, path: &RecordPath) -> Result<(), ChainError> {
    root.dir().create_dir_all(RecordKind::Event.folder())?;
    let events = root.dir().open_dir(RecordKind::Event.folder())?;
    let from = swap::staged_dir(root)?;
    renameat_with(&from, staged, &events, path.file_name(), RenameFlags::NOREPLACE).map_err(io::Error::from)?;
    swap::sync_dir(&events)?;
    swap::sync_dir(&from)?;
    crash::point("after-filing-record");
    let head = head(root)?;
    write_head(root, &head)?;
    crash::point("after-chain-head");
    Ok(())
}

fn write_head(root: &Root, head: &Head) -> io::Result<()> {
    root.dir().create_dir_all(OWN_FOLDER)?;
    let own = root.dir().open_dir(OWN_FOLDER)?;
    let bytes = serde_json::to_vec(head).map_err(io::Error::other)?;
    swap::write_durable(&own, HEAD, &bytes, None)
}

/// The head as the records alone tell it: the one with the highest number.
fn last_record(root: &Root) -> Result<Head, ChainError> {
    let mut last = Head::genesis();
    for path in paths(root)? {
        if let Ok((record, sha256)) = read(root, &path)
            && record.seq > last.seq
        {
            last = Head { seq: record.seq, sha256, announced: None };
        }
    }
    Ok(last)
}

fn paths(root: &Root) -> Result<Vec<RecordPath>, RootError> {
    let entries = root.list(RecordKind::Event)?;
    let names = entries.into_iter().filter(|e| e.name.starts_with(RECORD_PREFIX));
    Ok(names.filter_map(|e| RecordPath::parse(&format!("event/{}", e.name)).ok()).collect())
}

/// What a walk along the whole chain found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Records that were read.
    pub records: u64,
    /// What is wrong, each naming a record.
    pub faults: Vec<String>,
    /// The head was lost, so records missing at the end cannot be told.
    pub head_unknown: bool,
}

/// Reads every record and reports what was changed, is missing, out of order or cut off.
///
/// # Errors
/// [`ChainError`] when the folder cannot be listed or the head cannot be read.
pub fn verify(root: &Root) -> Result<Verification, ChainError> {
    let head_unknown = root.dir().symlink_metadata(format!("{OWN_FOLDER}/{HEAD}")).is_err();
    let head = head(root)?;
    let mut found = Verification { head_unknown, ..Verification::default() };
    let mut chain: Vec<(u64, RecordPath, ContentHash, ContentHash)> = Vec::new();
    for path in paths(root)? {
        found.records += 1;
        match read(root, &path) {
            Ok((record, sha256)) => chain.push((record.seq, path, record.prev_sha256, sha256)),
            Err(e) => found.faults.push(format!("unreadable: {e}")),
        }
    }
    chain.sort();
    let (mut seq, mut sha256, mut before) = (0, ContentHash::genesis(), "the beginning".to_owned());
    for (number, path, prev, own) in chain {
        if number == seq {
            found.faults.push(format!("{path}: number {number} is taken by {before} too"));
            continue;
        }
        if number > seq + 1 {
            let gap = number - seq - 1;
            found.faults.push(format!("{gap} record(s) missing between {before} and {path}"));
        } else if prev != sha256 {
            found.faults.push(format!("{before} was changed after {path} was written, or {path} was put in its place"));
        }
        (seq, sha256, before) = (number, own, path.to_string());
    }
    if seq < head.seq {
        found.faults.push(format!("{} record(s) missing at the end, after {before}", head.seq - seq));
    } else if seq > head.seq {
        found.faults.push(format!("{before}: was not written by Steward, the chain ends at number {}", head.seq));
    } else if sha256 != head.sha256 {
        found.faults.push(format!("{before}: the last record was changed"));
    }
    Ok(found)
}

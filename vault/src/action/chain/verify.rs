//! Verifies the whole audit chain and names each fault.
//!
//! It only reads and needs no lock: the vault writer may file records meanwhile. It reports what the records' files
//! show. It cannot say who changed them.

use super::ChainError;
use super::has_written_head;
use super::list_record_files;
use super::read_audit_record;
use super::read_head;
use crate::files::root::VaultRoot;
use chrono::{DateTime, Utc};
use serde::Serialize;
use steward_domain::action::audit::ChainHead;
use steward_domain::action::plan::ContentHash;
use steward_domain::record::path::RecordPath;
use steward_domain::time::format_millis;

/// The result of a verification of the whole chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChainVerification {
    /// The number of records that were read.
    pub records: u64,
    /// The faults; each one names a record.
    pub faults: Vec<String>,
    /// The head was lost, so records missing at the end cannot be detected.
    pub head_unknown: bool,
}

/// The position of one record in the chain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChainEntry {
    pub(crate) seq: u64,
    pub(crate) path: RecordPath,
    pub(crate) prev: ContentHash,
    pub(crate) sha256: ContentHash,
}

/// Reads every record and reports those that were changed, removed, reordered, renamed or truncated.
///
/// # Errors
/// [`ChainError`] if the folder cannot be listed or the head cannot be read.
pub fn verify_chain(root: &VaultRoot) -> Result<ChainVerification, ChainError> {
    verify_chain_beyond(root, None)
}

/// As [`verify_chain`]. The chain must also hold the last record that somebody else has `seen`, who does not forget it when
/// the whole vault is set back.
///
/// # Errors
/// As [`verify_chain`].
pub fn verify_chain_beyond(root: &VaultRoot, seen: Option<&ChainHead>) -> Result<ChainVerification, ChainError> {
    let mut walk = ChainWalk { seen: seen.cloned(), ..ChainWalk::begin(root)? };
    let mut entries = read_chain_entries(root, &mut walk.found)?;
    entries.sort();
    entries.into_iter().for_each(|entry| walk.visit_entry(entry));
    walk.finish(root)
}

fn read_chain_entries(root: &VaultRoot, found: &mut ChainVerification) -> Result<Vec<ChainEntry>, ChainError> {
    let mut entries = Vec::new();
    for (name, path) in list_record_files(root)? {
        found.records += 1;
        let Some(path) = path else {
            found.faults.push(format!("event/{}: not the name of a record; move the file away", name.escape_default()));
            continue;
        };
        match read_audit_record(root, &path) {
            Ok((record, sha256)) => {
                if record.draft.record_path().as_ref() != Ok(&path) {
                    found.faults.push(describe_misnamed_record(&path));
                }
                found.faults.extend(
                    record.edited_expiry().map(|edited| describe_edited_expiry(&path, edited, record.undo_deadline())),
                );
                entries.push(ChainEntry { seq: record.seq, path, prev: record.prev_sha256, sha256 });
            }
            Err(e) => found.faults.push(format!("unreadable: {e}")),
        }
    }
    Ok(entries)
}

pub(crate) fn describe_edited_expiry(path: &RecordPath, edited: DateTime<Utc>, deadline: DateTime<Utc>) -> String {
    let (edited, deadline) = (format_millis(edited), format_millis(deadline));
    format!("{path}: `expires_at` was edited to {edited}; the edit is ignored and the undo window ends at {deadline}")
}

pub(crate) fn describe_misnamed_record(path: &RecordPath) -> String {
    format!("{path}: not the name under which this record was filed")
}

/// A walk from the first record to the last.
///
/// If several records have the same number, it takes the one that the next number's record names. So the walk is always
/// one number behind.
pub(crate) struct ChainWalk {
    pub(crate) found: ChainVerification,
    /// The head before the walk. It does not count records that are filed during the walk.
    earlier: ChainHead,
    /// The last record that somebody else has seen.
    seen: Option<ChainHead>,
    seq: u64,
    sha256: ContentHash,
    before: String,
    /// The entries of one number; `next` holds those of the next number so far.
    group: Vec<ChainEntry>,
    next: Vec<ChainEntry>,
}

impl ChainWalk {
    /// Begins a walk before the first record.
    pub(crate) fn begin(root: &VaultRoot) -> Result<Self, ChainError> {
        let head_unknown = !has_written_head(root)?;
        Ok(Self {
            found: ChainVerification { head_unknown, ..ChainVerification::default() },
            earlier: read_head(root)?,
            seen: None,
            seq: 0,
            sha256: ContentHash::genesis(),
            before: "the beginning".to_owned(),
            group: Vec::new(),
            next: Vec::new(),
        })
    }

    /// The number of the last record, from the head before the walk.
    pub(crate) fn expected_last_number(&self) -> u64 {
        self.earlier.seq
    }

    /// Visits an entry. Entries must come in the order of their numbers.
    pub(crate) fn visit_entry(&mut self, entry: ChainEntry) {
        if self.next.first().is_some_and(|next| next.seq != entry.seq) {
            self.check_waiting_group(None);
            self.group = std::mem::take(&mut self.next);
        }
        self.next.push(entry);
    }

    /// Returns the result. The chain must end at the head, as it was before the walk or as it is now.
    pub(crate) fn finish(mut self, root: &VaultRoot) -> Result<ChainVerification, ChainError> {
        let later = read_head(root)?;
        self.check_waiting_group(None);
        self.group = std::mem::take(&mut self.next);
        self.check_waiting_group(Some(&later));
        let Self { mut found, earlier, seen, seq, before, .. } = self;
        if let Some(missing) = seen.and_then(|seen| seen.seq.checked_sub(seq)).filter(|missing| *missing > 0) {
            found.faults.push(format!("{missing} record(s) missing after {before}, which the fleet has seen"));
        }
        if seq < earlier.seq {
            found.faults.push(format!("{} record(s) missing at the end, after {before}", earlier.seq - seq));
        } else if seq > later.seq {
            let fault = format!("{before}: was not written by Steward, the chain ends at number {}", later.seq);
            found.faults.push(fault);
        }
        Ok(found)
    }

    /// Checks the number that is waiting, and moves on from it.
    fn check_waiting_group(&mut self, later: Option<&ChainHead>) {
        let group = std::mem::take(&mut self.group);
        let is_head = |hash: &ContentHash| hash == &self.earlier.sha256 || later.is_some_and(|l| hash == &l.sha256);
        let named = |entry: &&ChainEntry| self.next.iter().any(|n| n.prev == entry.sha256) || is_head(&entry.sha256);
        let Some(entry) = group.iter().find(named).or(group.first()) else { return };
        let (path, faults) = (&entry.path, &mut self.found.faults);
        for other in group.iter().filter(|p| p.path != entry.path) {
            faults.push(format!("{}: number {} is taken by {path} too", other.path, entry.seq));
        }
        if entry.seq == 0 {
            faults.push(format!("{path}: was not written by Steward, no record has the number 0"));
            return;
        }
        let before = &self.before;
        if entry.seq > self.seq + 1 {
            let gap = entry.seq - self.seq - 1;
            faults.push(format!("{gap} record(s) missing between {before} and {path}"));
        } else if entry.prev != self.sha256 {
            faults.push(format!("{before} was changed after {path} was written, or {path} was put in its place"));
        }
        if entry.seq == self.earlier.seq && entry.sha256 != self.earlier.sha256 {
            faults.push(format!("{path}: was changed after it was written"));
        }
        if self.seen.as_ref().is_some_and(|seen| seen.seq == entry.seq && seen.sha256 != entry.sha256) {
            faults.push(format!("{path}: is not the record with number {} that the fleet has seen", entry.seq));
        }
        (self.seq, self.sha256, self.before) = (entry.seq, entry.sha256.clone(), path.to_string());
    }
}

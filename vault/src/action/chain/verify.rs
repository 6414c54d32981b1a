//! A walk along the whole chain that names what is wrong with it.
//!
//! It reads and never writes, and needs no lock: a keeper may file records while it walks. It says
//! what a record's file tells and nothing about who changed it.

use super::ChainError;
use super::ChainHead;
use super::has_written_head;
use super::list_record_files;
use super::read_audit_record;
use super::read_head;
use crate::files::root::VaultRoot;
use chrono::{DateTime, Utc};
use serde::Serialize;
use steward_domain::action::plan::ContentHash;
use steward_domain::record::path::RecordPath;
use steward_domain::time::format_millis;

/// What a walk along the whole chain found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChainVerification {
    /// Records that were read.
    pub records: u64,
    /// What is wrong, each naming a record.
    pub faults: Vec<String>,
    /// The head was lost, so records missing at the end cannot be told.
    pub head_unknown: bool,
}

/// One record's place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChainEntry {
    pub(crate) seq: u64,
    pub(crate) path: RecordPath,
    pub(crate) prev: ContentHash,
    pub(crate) sha256: ContentHash,
}

/// Reads every record and reports what was changed, is missing, out of order, renamed or cut off.
///
/// # Errors
/// [`ChainError`] when the folder cannot be listed or the head cannot be read.
pub fn verify_chain(root: &VaultRoot) -> Result<ChainVerification, ChainError> {
    let mut walk = ChainWalk::begin(root)?;
    let mut places = read_chain_entries(root, &mut walk.found)?;
    places.sort();
    places.into_iter().for_each(|place| walk.visit_entry(place));
    walk.finish(root)
}

fn read_chain_entries(root: &VaultRoot, found: &mut ChainVerification) -> Result<Vec<ChainEntry>, ChainError> {
    let mut places = Vec::new();
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
                    record.edited_expiry().map(|says| describe_edited_expiry(&path, says, record.undo_deadline())),
                );
                places.push(ChainEntry { seq: record.seq, path, prev: record.prev_sha256, sha256 });
            }
            Err(e) => found.faults.push(format!("unreadable: {e}")),
        }
    }
    Ok(places)
}

pub(crate) fn describe_edited_expiry(path: &RecordPath, says: DateTime<Utc>, ends: DateTime<Utc>) -> String {
    let (says, ends) = (format_millis(says), format_millis(ends));
    format!("{path}: `expires_at` was edited to {says} and counts for nothing: the undo window ends at {ends}")
}

pub(crate) fn describe_misnamed_record(path: &RecordPath) -> String {
    format!("{path}: not the name under which this record was filed")
}

/// A walk from the first record to the last. Of several with one number it takes the one that the next
/// number names, so it is always one number behind.
pub(crate) struct ChainWalk {
    pub(crate) found: ChainVerification,
    /// Records that are filed during the walk are counted in the later head, not in this one.
    earlier: ChainHead,
    seq: u64,
    sha256: ContentHash,
    before: String,
    /// The places of one number, and those of the next so far.
    group: Vec<ChainEntry>,
    next: Vec<ChainEntry>,
}

impl ChainWalk {
    /// At the beginning.
    pub(crate) fn begin(root: &VaultRoot) -> Result<Self, ChainError> {
        let head_unknown = !has_written_head(root)?;
        Ok(Self {
            found: ChainVerification { head_unknown, ..ChainVerification::default() },
            earlier: read_head(root)?,
            seq: 0,
            sha256: ContentHash::genesis(),
            before: "the beginning".to_owned(),
            group: Vec::new(),
            next: Vec::new(),
        })
    }

    /// The number of the last record, as the head had it before the walk.
    pub(crate) fn expected_last_number(&self) -> u64 {
        self.earlier.seq
    }

    /// Goes on to a place; they come in the order of their numbers.
    pub(crate) fn visit_entry(&mut self, place: ChainEntry) {
        if self.next.first().is_some_and(|next| next.seq != place.seq) {
            self.check_waiting_group(None);
            self.group = std::mem::take(&mut self.next);
        }
        self.next.push(place);
    }

    /// Says what was found; the chain must end at the head, as it was before the walk or is now.
    pub(crate) fn finish(mut self, root: &VaultRoot) -> Result<ChainVerification, ChainError> {
        let later = read_head(root)?;
        self.check_waiting_group(None);
        self.group = std::mem::take(&mut self.next);
        self.check_waiting_group(Some(&later));
        let Self { mut found, earlier, seq, before, .. } = self;
        if seq < earlier.seq {
            found.faults.push(format!("{} record(s) missing at the end, after {before}", earlier.seq - seq));
        } else if seq > later.seq {
            let fault = format!("{before}: was not written by Steward, the chain ends at number {}", later.seq);
            found.faults.push(fault);
        }
        Ok(found)
    }

    /// Leaves the number that is waiting behind.
    fn check_waiting_group(&mut self, later: Option<&ChainHead>) {
        let group = std::mem::take(&mut self.group);
        let is_head = |hash: &ContentHash| hash == &self.earlier.sha256 || later.is_some_and(|l| hash == &l.sha256);
        let named = |place: &&ChainEntry| self.next.iter().any(|n| n.prev == place.sha256) || is_head(&place.sha256);
        let Some(place) = group.iter().find(named).or(group.first()) else { return };
        let (path, faults) = (&place.path, &mut self.found.faults);
        for other in group.iter().filter(|p| p.path != place.path) {
            faults.push(format!("{}: number {} is taken by {path} too", other.path, place.seq));
        }
        if place.seq == 0 {
            faults.push(format!("{path}: was not written by Steward, no record has the number 0"));
            return;
        }
        let before = &self.before;
        if place.seq > self.seq + 1 {
            let gap = place.seq - self.seq - 1;
            faults.push(format!("{gap} record(s) missing between {before} and {path}"));
        } else if place.prev != self.sha256 {
            faults.push(format!("{before} was changed after {path} was written, or {path} was put in its place"));
        }
        if place.seq == self.earlier.seq && place.sha256 != self.earlier.sha256 {
            faults.push(format!("{path}: was changed after it was written"));
        }
        (self.seq, self.sha256, self.before) = (place.seq, place.sha256.clone(), path.to_string());
    }
}

//! A walk along the whole chain that names what is wrong with it.
//!
//! It reads and never writes, and needs no lock: a keeper may file records while it walks. It says
//! what a record's file tells and nothing about who changed it.

use super::{ChainError, Head, has_written_head, head, names, read};
use crate::root::Root;
use serde::Serialize;
use steward_domain::path::RecordPath;
use steward_domain::plan::ContentHash;

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

/// One record's place.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    seq: u64,
    path: RecordPath,
    prev: ContentHash,
    sha256: ContentHash,
}

/// Reads every record and reports what was changed, is missing, out of order, renamed or cut off.
///
/// # Errors
/// [`ChainError`] when the folder cannot be listed or the head cannot be read.
pub fn verify(root: &Root) -> Result<Verification, ChainError> {
    let head_unknown = !has_written_head(root)?;
    // Records that are filed during the walk are counted in the later head, not in the earlier.
    let earlier = head(root)?;
    let mut found = Verification { head_unknown, ..Verification::default() };
    let mut places = places(root, &mut found)?;
    let later = head(root)?;
    places.sort();
    walk(&places, &earlier, &later, &mut found.faults);
    Ok(found)
}

fn places(root: &Root, found: &mut Verification) -> Result<Vec<Place>, ChainError> {
    let mut places = Vec::new();
    for (name, path) in names(root)? {
        found.records += 1;
        let Some(path) = path else {
            found.faults.push(format!("event/{}: not the name of a record; move the file away", name.escape_default()));
            continue;
        };
        match read(root, &path) {
            Ok((record, sha256)) => {
                if record.draft.file().as_ref() != Ok(&path) {
                    found.faults.push(format!("{path}: not the name under which this record was filed"));
                }
                places.push(Place { seq: record.seq, path, prev: record.prev_sha256, sha256 });
            }
            Err(e) => found.faults.push(format!("unreadable: {e}")),
        }
    }
    Ok(places)
}

fn walk(places: &[Place], earlier: &Head, later: &Head, faults: &mut Vec<String>) {
    let named =
        |hash: &ContentHash| places.iter().any(|p| &p.prev == hash) || hash == &earlier.sha256 || hash == &later.sha256;
    let (mut seq, mut sha256, mut before) = (0, ContentHash::genesis(), "the beginning".to_owned());
    for group in places.chunk_by(|a, b| a.seq == b.seq) {
        let Some(place) = group.iter().find(|p| named(&p.sha256)).or(group.first()) else { continue };
        let path = &place.path;
        for other in group.iter().filter(|p| p.path != place.path) {
            faults.push(format!("{}: number {} is taken by {path} too", other.path, place.seq));
        }
        if place.seq == 0 {
            faults.push(format!("{path}: was not written by Steward, no record has the number 0"));
            continue;
        }
        if place.seq > seq + 1 {
            let gap = place.seq - seq - 1;
            faults.push(format!("{gap} record(s) missing between {before} and {path}"));
        } else if place.prev != sha256 {
            faults.push(format!("{before} was changed after {path} was written, or {path} was put in its place"));
        }
        (seq, sha256, before) = (place.seq, place.sha256.clone(), path.to_string());
        if seq == earlier.seq && sha256 != earlier.sha256 {
            faults.push(format!("{before}: was changed after it was written"));
        }
    }
    if seq < earlier.seq {
        faults.push(format!("{} record(s) missing at the end, after {before}", earlier.seq - seq));
    } else if seq > later.seq {
        faults.push(format!("{before}: was not written by Steward, the chain ends at number {}", later.seq));
    }
}

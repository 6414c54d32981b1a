//! What is under way: one small file per change, written before anything moves.
//!
//! An intent names the action's record and, for a change of a file, the content before and after; one
//! that stamps a file with the time of its last look has no record.
//! Together with the staged files it says after a crash what happened and what did not; the state
//! database is not needed for that and may be gone. An intent is removed when its change has
//! settled. At most one is neither done nor taken back, and it is the newest.

use crate::durable;
use crate::root::{OWN_FOLDER, Root};
use crate::swap::Swap;
use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};
use std::io;
use steward_domain::path::RecordPath;
use steward_domain::plan::{ActionId, ContentHash};

const FOLDER: &str = "journal";
const ENDING: &str = ".json";

/// Names one attempt at an action; attempts sort in the order in which they were made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Key(String);

impl Key {
    /// A new attempt never takes an old one's name: what was staged then may still be a human's.
    pub(crate) fn new(number: u64, id: &ActionId) -> Self {
        Self(format!("{number:012}-{id}"))
    }

    /// As [`Key::new`], for what has no action.
    pub(crate) fn stamp(number: u64) -> Self {
        Self(format!("{number:012}-stamp"))
    }

    /// The staged content of the target.
    pub(crate) fn content(&self) -> &str {
        &self.0
    }

    /// The staged audit record.
    pub(crate) fn record(&self) -> String {
        format!("{}.record", self.0)
    }

    fn number(&self) -> u64 {
        self.0.split('-').next().and_then(|n| n.parse().ok()).unwrap_or(0)
    }
}

/// A change that has begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub(crate) struct Intent {
    pub(crate) key: Key,
    pub(crate) work: Work,
}

/// What an intent is for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Work {
    /// A record is filed; without a change nothing else is done.
    Action { filing: Filing, change: Option<ContentChange> },
    /// A file changes and nothing is filed: bookkeeping, no decision.
    Stamp(ContentChange),
}

/// The record to be filed, its place in the chain and the hash of its file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Filing {
    pub(crate) record: RecordPath,
    pub(crate) seq: u64,
    pub(crate) sha256: ContentHash,
}

/// An intent as it lies on the disk, in the form in which the first of them were written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    key: Key,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    record: Option<RecordPath>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<ContentHash>,
    change: Option<ContentChange>,
}

/// A part of an intent is missing, so what was under way cannot be told.
#[derive(Debug, thiserror::Error)]
#[error("names half a record")]
struct Half;

impl TryFrom<Stored> for Intent {
    type Error = Half;

    fn try_from(stored: Stored) -> Result<Self, Half> {
        let Stored { key, record, seq, sha256, change } = stored;
        let work = match (record, seq, sha256, change) {
            (Some(record), Some(seq), Some(sha256), change) => {
                Work::Action { filing: Filing { record, seq, sha256 }, change }
            }
            (None, None, None, Some(change)) => Work::Stamp(change),
            (_, _, _, _) => return Err(Half),
        };
        Ok(Self { key, work })
    }
}

impl From<Intent> for Stored {
    fn from(Intent { key, work }: Intent) -> Self {
        match work {
            Work::Action { filing: Filing { record, seq, sha256 }, change } => {
                Self { key, record: Some(record), seq: Some(seq), sha256: Some(sha256), change }
            }
            Work::Stamp(change) => Self { key, record: None, seq: None, sha256: None, change: Some(change) },
        }
    }
}

/// The content of a file before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ContentChange {
    pub(crate) target: RecordPath,
    pub(crate) before: ContentHash,
    pub(crate) after: ContentHash,
    /// Words that the change itself takes out; who misses them misses nothing of a human's.
    pub(crate) replaced: Vec<String>,
}

impl Intent {
    /// The record that belongs to it.
    pub(crate) fn filing(&self) -> Option<&Filing> {
        match &self.work {
            Work::Action { filing, .. } => Some(filing),
            Work::Stamp(_) => None,
        }
    }

    pub(crate) fn swap(&self) -> Option<Swap<'_>> {
        let change = match &self.work {
            Work::Action { change, .. } => change.as_ref()?,
            Work::Stamp(change) => change,
        };
        Some(Swap {
            name: self.key.content(),
            target: &change.target,
            before: &change.before,
            after: &change.after,
            replaced: &change.replaced,
        })
    }

    /// What an error is about: the file that changes, or else the record.
    pub(crate) fn subject(&self) -> &RecordPath {
        match &self.work {
            Work::Action { filing, change: None } => &filing.record,
            Work::Action { change: Some(change), .. } | Work::Stamp(change) => &change.target,
        }
    }

    /// Where it lies, for messages.
    pub(crate) fn shown(&self) -> String {
        format!("{OWN_FOLDER}/{FOLDER}/{}", self.file())
    }

    fn file(&self) -> String {
        format!("{}{ENDING}", self.key.content())
    }
}

fn folder(root: &Root) -> io::Result<Dir> {
    root.own_folder(Some(FOLDER))
}

/// Writes an intent, durable.
pub(crate) fn write(root: &Root, intent: &Intent) -> io::Result<()> {
    let bytes = serde_json::to_vec(intent).map_err(io::Error::other)?;
    let folder = folder(root)?;
    durable::replace_private(&folder, &intent.file(), &bytes)?;
    durable::sync(&folder)
}

/// Forgets an intent. Not synced: one that comes back after a power cut has settled all the same.
pub(crate) fn remove(root: &Root, intent: &Intent) -> io::Result<()> {
    durable::remove(&folder(root)?, &intent.file())
}

/// Every intent that has not settled, the oldest first.
pub(crate) fn open_intents(root: &Root) -> io::Result<Vec<Intent>> {
    let Some(folder) = root.find_own_folder(Some(FOLDER))? else {
        return Ok(Vec::new());
    };
    let mut intents = Vec::new();
    for name in names(&folder)?.iter().filter(|name| name.ends_with(ENDING)) {
        match read(&folder, name) {
            Ok(intent) => intents.push(intent),
            // A reader beside the writer: it has settled meanwhile.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => {
                let mend = format!("{OWN_FOLDER}/{FOLDER}/{name}: {e}: move it away and run `steward audit verify`");
                return Err(io::Error::new(e.kind(), mend));
            }
        }
    }
    intents.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(intents)
}

/// The number for the next attempt, above every one in use.
pub(crate) fn next_number(intents: &[Intent]) -> u64 {
    intents.iter().map(|i| i.key.number() + 1).max().unwrap_or(1)
}

/// Removes what a crash left of an intent that was never finished writing.
pub(crate) fn sweep(root: &Root) -> io::Result<()> {
    let folder = folder(root)?;
    names(&folder)?.iter().filter(|name| !name.ends_with(ENDING)).try_for_each(|name| durable::remove(&folder, name))
}

fn read(folder: &Dir, name: &str) -> io::Result<Intent> {
    serde_json::from_slice(&folder.read(name)?).map_err(io::Error::from)
}

fn names(folder: &Dir) -> io::Result<Vec<String>> {
    let names: io::Result<Vec<String>> =
        folder.entries()?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect();
    names.map(|mut names| {
        names.sort();
        names
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTION: &str = r#"{"key":"000000000007-0123456789abcdef","record":"event/steward-action-a.md","seq":3,"sha256":"aa","change":{"target":"task/pay.md","before":"bb","after":"cc","replaced":["open"]}}"#;
    const FILED_ONLY: &str = r#"{"key":"000000000007-0123456789abcdef","record":"event/steward-action-a.md","seq":3,"sha256":"aa","change":null}"#;
    const STAMP: &str =
        r#"{"key":"000000000008-stamp","change":{"target":"task/pay.md","before":"bb","after":"cc","replaced":[]}}"#;

    #[test]
    fn intents_of_every_version_are_read_and_written_as_they_were() {
        for (text, subject, filed, swaps) in [
            (ACTION, "task/pay.md", true, true),
            (FILED_ONLY, "event/steward-action-a.md", true, false),
            (STAMP, "task/pay.md", false, true),
        ] {
            let intent: Intent = serde_json::from_str(text).unwrap();
            assert_eq!((intent.subject().as_str(), intent.filing().is_some()), (subject, filed));
            assert_eq!(intent.swap().is_some(), swaps);
            assert_eq!(serde_json::to_string(&intent).unwrap(), text);
        }
    }

    #[test]
    fn an_intent_that_lost_a_part_is_no_stamp() {
        for (text, part) in [
            (ACTION, r#""record":"event/steward-action-a.md","#),
            (ACTION, r#""seq":3,"#),
            (ACTION, r#""sha256":"aa","#),
            (STAMP, r#","change":{"target":"task/pay.md","before":"bb","after":"cc","replaced":[]}"#),
        ] {
            assert!(text.contains(part));
            assert!(serde_json::from_str::<Intent>(&text.replace(part, "")).is_err(), "without {part}");
        }
        let misspelt = ACTION.replace("\"record\"", "\"recrod\"");
        assert!(serde_json::from_str::<Intent>(&misspelt).is_err());
    }
}

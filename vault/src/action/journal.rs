//! What is under way: one small file per change, written before anything moves.
//!
//! An intent names the action's record and, for a change of a file, the content before and after; one
//! that stamps a file with the time of its last look has no record.
//! Together with the staged files it says after a crash what happened and what did not; the state
//! database is not needed for that and may be gone. An intent is removed when its change has
//! settled. At most one is neither done nor taken back, and it is the newest.

use crate::action::swap::FileSwap;
use crate::files::durable;
use crate::files::root::{OWN_FOLDER, VaultRoot};
use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};
use std::io;
use steward_domain::action::plan::{ActionId, ContentHash};
use steward_domain::record::path::RecordPath;

const FOLDER: &str = "journal";
const ENDING: &str = ".json";

/// Names one attempt at an action; attempts sort in the order in which they were made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct AttemptKey(String);

impl AttemptKey {
    /// A new attempt never takes an old one's name: what was staged then may still be a human's.
    pub(crate) fn new(number: u64, id: &ActionId) -> Self {
        Self(format!("{number:012}-{id}"))
    }

    /// As [`AttemptKey::new`], for what has no action.
    pub(crate) fn new_unrecorded(number: u64) -> Self {
        Self(format!("{number:012}-stamp"))
    }

    /// The staged content of the target.
    pub(crate) fn content_name(&self) -> &str {
        &self.0
    }

    /// The staged audit record.
    pub(crate) fn record_name(&self) -> String {
        format!("{}.record", self.0)
    }

    fn attempt_number(&self) -> u64 {
        self.0.split('-').next().and_then(|n| n.parse().ok()).unwrap_or(0)
    }
}

/// A change that has begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub(crate) struct ChangeIntent {
    pub(crate) key: AttemptKey,
    pub(crate) work: IntentKind,
}

/// What an intent is for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum IntentKind {
    /// A record is filed; without a change nothing else is done.
    Action { filing: RecordFiling, change: Option<ContentChange> },
    /// A file changes and nothing is filed: bookkeeping, no decision.
    Stamp(ContentChange),
}

/// The record to be filed, its place in the chain and the hash of its file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RecordFiling {
    pub(crate) record: RecordPath,
    pub(crate) seq: u64,
    pub(crate) sha256: ContentHash,
}

/// An intent as it lies on the disk, in the form in which the first of them were written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    key: AttemptKey,
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
struct IncompleteIntentError;

impl TryFrom<Stored> for ChangeIntent {
    type Error = IncompleteIntentError;

    fn try_from(stored: Stored) -> Result<Self, IncompleteIntentError> {
        let Stored { key, record, seq, sha256, change } = stored;
        let work = match (record, seq, sha256, change) {
            (Some(record), Some(seq), Some(sha256), change) => {
                IntentKind::Action { filing: RecordFiling { record, seq, sha256 }, change }
            }
            (None, None, None, Some(change)) => IntentKind::Stamp(change),
            (_, _, _, _) => return Err(IncompleteIntentError),
        };
        Ok(Self { key, work })
    }
}

impl From<ChangeIntent> for Stored {
    fn from(ChangeIntent { key, work }: ChangeIntent) -> Self {
        match work {
            IntentKind::Action { filing: RecordFiling { record, seq, sha256 }, change } => {
                Self { key, record: Some(record), seq: Some(seq), sha256: Some(sha256), change }
            }
            IntentKind::Stamp(change) => Self { key, record: None, seq: None, sha256: None, change: Some(change) },
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

impl ChangeIntent {
    /// The record that belongs to it.
    pub(crate) fn filing(&self) -> Option<&RecordFiling> {
        match &self.work {
            IntentKind::Action { filing, .. } => Some(filing),
            IntentKind::Stamp(_) => None,
        }
    }

    pub(crate) fn to_swap(&self) -> Option<FileSwap<'_>> {
        let change = match &self.work {
            IntentKind::Action { change, .. } => change.as_ref()?,
            IntentKind::Stamp(change) => change,
        };
        Some(FileSwap {
            name: self.key.content_name(),
            target: &change.target,
            before: &change.before,
            after: &change.after,
            replaced: &change.replaced,
        })
    }

    /// What an error is about: the file that changes, or else the record.
    pub(crate) fn subject(&self) -> &RecordPath {
        match &self.work {
            IntentKind::Action { filing, change: None } => &filing.record,
            IntentKind::Action { change: Some(change), .. } | IntentKind::Stamp(change) => &change.target,
        }
    }

    /// Where it lies, for messages.
    pub(crate) fn display_path(&self) -> String {
        format!("{OWN_FOLDER}/{FOLDER}/{}", self.file_name())
    }

    fn file_name(&self) -> String {
        format!("{}{ENDING}", self.key.content_name())
    }
}

fn open_folder(root: &VaultRoot) -> io::Result<Dir> {
    root.make_own_folder(Some(FOLDER))
}

/// Writes an intent, durable.
pub(crate) fn write_intent(root: &VaultRoot, intent: &ChangeIntent) -> io::Result<()> {
    let bytes = serde_json::to_vec(intent).map_err(io::Error::other)?;
    let folder = open_folder(root)?;
    durable::replace_private_file(&folder, &intent.file_name(), &bytes)?;
    durable::sync_folder(&folder)
}

/// Forgets an intent. Not synced: one that comes back after a power cut has settled all the same.
pub(crate) fn remove_intent(root: &VaultRoot, intent: &ChangeIntent) -> io::Result<()> {
    durable::remove_file(&open_folder(root)?, &intent.file_name())
}

/// Every intent that has not settled, the oldest first.
pub(crate) fn list_open_intents(root: &VaultRoot) -> io::Result<Vec<ChangeIntent>> {
    let Some(folder) = root.find_own_folder(Some(FOLDER))? else {
        return Ok(Vec::new());
    };
    let mut intents = Vec::new();
    for name in list_file_names(&folder)?.iter().filter(|name| name.ends_with(ENDING)) {
        match read_intent(&folder, name) {
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
pub(crate) fn next_attempt_number(intents: &[ChangeIntent]) -> u64 {
    intents.iter().map(|i| i.key.attempt_number() + 1).max().unwrap_or(1)
}

/// Removes what a crash left of an intent that was never finished writing.
pub(crate) fn remove_unfinished_files(root: &VaultRoot) -> io::Result<()> {
    let folder = open_folder(root)?;
    list_file_names(&folder)?
        .iter()
        .filter(|name| !name.ends_with(ENDING))
        .try_for_each(|name| durable::remove_file(&folder, name))
}

fn read_intent(folder: &Dir, name: &str) -> io::Result<ChangeIntent> {
    serde_json::from_slice(&folder.read(name)?).map_err(io::Error::from)
}

fn list_file_names(folder: &Dir) -> io::Result<Vec<String>> {
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
            let intent: ChangeIntent = serde_json::from_str(text).unwrap();
            assert_eq!((intent.subject().as_str(), intent.filing().is_some()), (subject, filed));
            assert_eq!(intent.to_swap().is_some(), swaps);
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
            assert!(serde_json::from_str::<ChangeIntent>(&text.replace(part, "")).is_err(), "without {part}");
        }
        let misspelt = ACTION.replace("\"record\"", "\"recrod\"");
        assert!(serde_json::from_str::<ChangeIntent>(&misspelt).is_err());
    }
}

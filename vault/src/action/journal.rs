//! The journal: one small intent file per change, written before any file moves.
//!
//! An intent names the action's audit record and, if a file changes, the hashes of its content before and after. The
//! intent of bookkeeping, such as a timestamp write-back, has no record. After a crash the intents and the staged files show what happened.
//! The state database is not needed for that and may be lost. An intent is removed when its change has settled. At most
//! one intent is neither done nor reverted, and it is the newest.

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

/// The key of one attempt at an action. Keys sort in the order of the attempts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct AttemptKey(String);

impl AttemptKey {
    /// A new attempt never reuses an old key: the file that was staged then may hold a person's edit.
    pub(crate) fn new(number: u64, id: &ActionId) -> Self {
        Self(format!("{number:012}-{id}"))
    }

    /// The key of a change without an action: timestamps, or the status of a signal or an event.
    pub(crate) fn new_unrecorded(number: u64) -> Self {
        Self(format!("{number:012}-unrecorded"))
    }

    /// The name of the target's staged content.
    pub(crate) fn content_name(&self) -> &str {
        &self.0
    }

    /// The name of the staged audit record.
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

/// The kind of change that an intent stands for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum IntentKind {
    /// An audit record is filed; without a `change` no file changes.
    Action { filing: RecordFiling, change: Option<ContentChange> },
    /// A file changes and no audit record is filed: this is bookkeeping and not a decision.
    Unrecorded(ContentChange),
}

/// The audit record to be filed, its number in the chain and the hash of its file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RecordFiling {
    pub(crate) record: RecordPath,
    pub(crate) seq: u64,
    pub(crate) sha256: ContentHash,
}

/// The form of an intent on the disk.
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

/// A part of an intent is missing, so the change that it stands for is unknown.
#[derive(Debug, thiserror::Error)]
#[error("some of the fields of its audit record are missing")]
struct IncompleteIntentError;

impl TryFrom<Stored> for ChangeIntent {
    type Error = IncompleteIntentError;

    fn try_from(stored: Stored) -> Result<Self, IncompleteIntentError> {
        let Stored { key, record, seq, sha256, change } = stored;
        let work = match (record, seq, sha256, change) {
            (Some(record), Some(seq), Some(sha256), change) => {
                IntentKind::Action { filing: RecordFiling { record, seq, sha256 }, change }
            }
            (None, None, None, Some(change)) => IntentKind::Unrecorded(change),
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
            IntentKind::Unrecorded(change) => Self { key, record: None, seq: None, sha256: None, change: Some(change) },
        }
    }
}

/// The content of a file before and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ContentChange {
    pub(crate) target: RecordPath,
    pub(crate) before: ContentHash,
    pub(crate) after: ContentHash,
    /// Words that the change itself removes. If only these are missing later, no person's edit is lost.
    pub(crate) replaced: Vec<String>,
}

impl ChangeIntent {
    /// The audit record that belongs to the intent.
    pub(crate) fn filing(&self) -> Option<&RecordFiling> {
        match &self.work {
            IntentKind::Action { filing, .. } => Some(filing),
            IntentKind::Unrecorded(_) => None,
        }
    }

    pub(crate) fn to_swap(&self) -> Option<FileSwap<'_>> {
        let change = match &self.work {
            IntentKind::Action { change, .. } => change.as_ref()?,
            IntentKind::Unrecorded(change) => change,
        };
        Some(FileSwap {
            name: self.key.content_name(),
            target: &change.target,
            before: &change.before,
            after: &change.after,
            replaced: &change.replaced,
        })
    }

    /// The path that an error names: the file that changes, or else the audit record.
    pub(crate) fn subject(&self) -> &RecordPath {
        match &self.work {
            IntentKind::Action { filing, change: None } => &filing.record,
            IntentKind::Action { change: Some(change), .. } | IntentKind::Unrecorded(change) => &change.target,
        }
    }

    /// The path of the intent's file, for messages.
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

/// Writes an intent and makes it durable.
pub(crate) fn write_intent(root: &VaultRoot, intent: &ChangeIntent) -> io::Result<()> {
    let bytes = serde_json::to_vec(intent).map_err(io::Error::other)?;
    let folder = open_folder(root)?;
    durable::replace_private_file(&folder, &intent.file_name(), &bytes)?;
    durable::sync_folder(&folder)
}

/// Removes an intent. The folder is not synced: an intent that comes back after a power cut has settled nevertheless.
pub(crate) fn remove_intent(root: &VaultRoot, intent: &ChangeIntent) -> io::Result<()> {
    durable::remove_file(&open_folder(root)?, intent.file_name())
}

/// Every intent that has not settled, oldest first.
pub(crate) fn list_open_intents(root: &VaultRoot) -> io::Result<Vec<ChangeIntent>> {
    let Some(folder) = root.find_own_folder(Some(FOLDER))? else {
        return Ok(Vec::new());
    };
    let mut intents = Vec::new();
    for name in list_file_names(&folder)?.iter().filter(|name| name.ends_with(ENDING)) {
        match read_intent(&folder, name) {
            Ok(intent) => intents.push(intent),
            // This process only reads, and the vault writer has settled the change meanwhile.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => {
                let message = format!("{OWN_FOLDER}/{FOLDER}/{name}: {e}: move it away and run `steward audit verify`");
                return Err(io::Error::new(e.kind(), message));
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

/// Removes temporary files of intents that a crash interrupted.
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
    const UNRECORDED: &str = r#"{"key":"000000000008-unrecorded","change":{"target":"task/pay.md","before":"bb","after":"cc","replaced":[]}}"#;

    #[test]
    fn intents_of_every_version_are_read_and_written_as_they_were() {
        for (text, subject, filed, swaps) in [
            (ACTION, "task/pay.md", true, true),
            (FILED_ONLY, "event/steward-action-a.md", true, false),
            (UNRECORDED, "task/pay.md", false, true),
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
            (UNRECORDED, r#","change":{"target":"task/pay.md","before":"bb","after":"cc","replaced":[]}"#),
        ] {
            assert!(text.contains(part));
            assert!(serde_json::from_str::<ChangeIntent>(&text.replace(part, "")).is_err(), "without {part}");
        }
        let misspelt = ACTION.replace("\"record\"", "\"recrod\"");
        assert!(serde_json::from_str::<ChangeIntent>(&misspelt).is_err());
    }
}

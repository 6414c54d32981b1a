//! The journal: one small intent file per action, written before any file moves.
//!
//! An intent names the action's audit record, and for each file that changes the hashes of its content before and after.
//! The intent of bookkeeping, such as a timestamp write-back, has no record. After a crash the intents and the staged files show what happened.
//! The state database is not needed for that and may be lost. An intent is removed when its changes have settled. One that
//! was taken back keeps its file under another name until then. At most one intent is neither done nor taken back, and it
//! is the newest.

use crate::action::exchange::FileExchange;
use crate::files::durable;
use crate::files::root::{OWN_FOLDER, VaultRoot};
use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};
use std::io;
use steward_domain::action::plan::{ActionId, ContentHash};
use steward_domain::action::target::WriteTarget;
use steward_domain::record::path::{RecordPath, is_slug};

const FOLDER: &str = "journal";
const ENDING: &str = ".json";
/// The ending of an intent that was taken back. Renaming its file needs no space on the disk.
const REVERTED: &str = ".reverted.json";

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

    /// The name of the staged content of one file, counted from 0.
    pub(crate) fn content_name(&self, number: usize) -> String {
        format!("{}.{number}", self.0)
    }

    /// The name of the staged audit record.
    pub(crate) fn record_name(&self) -> String {
        format!("{}.record", self.0)
    }

    fn attempt_number(&self) -> u64 {
        self.0.split('-').next().and_then(|n| n.parse().ok()).unwrap_or(0)
    }
}

/// An action that has begun.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChangeIntent {
    pub(crate) key: AttemptKey,
    pub(crate) work: IntentKind,
    /// Whether every file was taken back.
    pub(crate) reverted: bool,
}

/// The kind of work that an intent stands for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum IntentKind {
    /// An audit record is filed. The files are exchanged in this order; there may be none.
    Action { filing: RecordFiling, changes: Vec<FileChange> },
    /// A file changes and no audit record is filed: this is bookkeeping and not a decision.
    Unrecorded(FileChange),
}

/// The audit record to be filed, its number in the chain and the hash of its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordFiling {
    pub(crate) record: RecordPath,
    pub(crate) seq: u64,
    pub(crate) sha256: ContentHash,
}

/// One file of an intent, and how it changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileChange {
    pub(crate) target: WriteTarget,
    pub(crate) content: ContentChange,
}

/// How the content of a file changes. Only files of a wiki are created or removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ContentChange {
    Swap {
        before: ContentHash,
        after: ContentHash,
        /// Words that the change itself removes. If only these are missing later, no person's edit is lost.
        replaced: Vec<String>,
    },
    Create {
        after: ContentHash,
    },
    Remove {
        before: ContentHash,
        /// The run that removes the file: it moves to that run's folder in the wiki's `.trash/`.
        run: String,
    },
}

impl FileChange {
    fn is_possible(&self) -> bool {
        let is_page = self.target.as_record().is_none();
        match &self.content {
            ContentChange::Swap { .. } => true,
            ContentChange::Create { .. } => is_page,
            ContentChange::Remove { run, .. } => is_page && is_slug(run),
        }
    }
}

/// The form of an intent on the disk.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredIntent {
    key: AttemptKey,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    filing: Option<RecordFiling>,
    changes: Vec<FileChange>,
}

/// A part of an intent is missing, so the change that it stands for is unknown.
#[derive(Debug, thiserror::Error)]
#[error("its audit record or its changes are incomplete")]
struct IncompleteIntentError;

impl TryFrom<StoredIntent> for ChangeIntent {
    type Error = IncompleteIntentError;

    fn try_from(stored: StoredIntent) -> Result<Self, IncompleteIntentError> {
        let StoredIntent { key, filing, mut changes } = stored;
        if !changes.iter().all(FileChange::is_possible) {
            return Err(IncompleteIntentError);
        }
        let work = match (filing, changes.len()) {
            (Some(filing), _) => IntentKind::Action { filing, changes },
            (None, 1) => IntentKind::Unrecorded(changes.remove(0)),
            (None, _) => return Err(IncompleteIntentError),
        };
        Ok(Self { key, work, reverted: false })
    }
}

impl From<ChangeIntent> for StoredIntent {
    fn from(ChangeIntent { key, work, .. }: ChangeIntent) -> Self {
        match work {
            IntentKind::Action { filing, changes } => Self { key, filing: Some(filing), changes },
            IntentKind::Unrecorded(change) => Self { key, filing: None, changes: vec![change] },
        }
    }
}

impl ChangeIntent {
    /// The audit record that belongs to the intent.
    pub(crate) fn filing(&self) -> Option<&RecordFiling> {
        match &self.work {
            IntentKind::Action { filing, .. } => Some(filing),
            IntentKind::Unrecorded(_) => None,
        }
    }

    fn changes(&self) -> &[FileChange] {
        match &self.work {
            IntentKind::Action { changes, .. } => changes,
            IntentKind::Unrecorded(change) => std::slice::from_ref(change),
        }
    }

    /// The exchanges of the files, in their order.
    pub(crate) fn exchanges(&self) -> Vec<FileExchange<'_>> {
        let exchange =
            |(number, change)| FileExchange { name: self.key.content_name(number), change, reverted: self.reverted };
        self.changes().iter().enumerate().map(exchange).collect()
    }

    /// The path that an error names: the first file that changes, or else the audit record.
    pub(crate) fn subject(&self) -> WriteTarget {
        self.find_target(0)
    }

    /// The file with a number. Without one, the audit record.
    pub(crate) fn find_target(&self, number: usize) -> WriteTarget {
        match &self.work {
            IntentKind::Action { filing, changes } => {
                changes.get(number).map_or_else(|| filing.record.clone().into(), |change| change.target.clone())
            }
            IntentKind::Unrecorded(change) => change.target.clone(),
        }
    }

    /// The path of the intent's file, for messages.
    pub(crate) fn display_path(&self) -> String {
        format!("{OWN_FOLDER}/{FOLDER}/{}", self.file_name())
    }

    fn file_name(&self) -> String {
        format!("{}{}", self.key.0, if self.reverted { REVERTED } else { ENDING })
    }
}

fn open_folder(root: &VaultRoot) -> io::Result<Dir> {
    root.make_own_folder(Some(FOLDER))
}

/// Writes an intent and makes it durable.
pub(crate) fn write_intent(root: &VaultRoot, intent: &ChangeIntent) -> io::Result<()> {
    let bytes = serde_json::to_vec(&StoredIntent::from(intent.clone())).map_err(io::Error::other)?;
    let folder = open_folder(root)?;
    durable::replace_private_file(&folder, &intent.file_name(), &bytes)?;
    durable::sync_folder(&folder)
}

/// Remembers durably that every file of an intent was taken back.
pub(crate) fn mark_reverted(root: &VaultRoot, intent: &mut ChangeIntent) -> io::Result<()> {
    if intent.reverted {
        return Ok(());
    }
    let folder = open_folder(root)?;
    let old_name = intent.file_name();
    intent.reverted = true;
    match folder.rename(old_name, &folder, intent.file_name()) {
        // An earlier try got this far.
        Err(e) if e.kind() == io::ErrorKind::NotFound && folder.try_exists(intent.file_name())? => {}
        renamed => renamed.inspect_err(|_| intent.reverted = false)?,
    }
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
    let stored: StoredIntent = serde_json::from_slice(&folder.read(name)?)?;
    let intent = ChangeIntent::try_from(stored).map_err(io::Error::other)?;
    Ok(ChangeIntent { reverted: name.ends_with(REVERTED), ..intent })
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

    const KEY: &str = r#""key":"000000000007-0123456789abcdef""#;
    const FILING: &str = r#""filing":{"record":"event/steward-action-a.md","seq":3,"sha256":"aa"}"#;
    const SWAP: &str =
        r#"{"target":"task/pay.md","content":{"swap":{"before":"bb","after":"cc","replaced":["open"]}}}"#;
    const NEW: &str = r#"{"target":{"wiki":"wiki/plot","file":"entities/a.md"},"content":{"create":{"after":"cc"}}}"#;
    const REMOVED: &str =
        r#"{"target":{"wiki":"wiki/plot","file":"entities/a.md"},"content":{"remove":{"before":"bb","run":"r-1"}}}"#;

    fn read(text: &str) -> Option<ChangeIntent> {
        ChangeIntent::try_from(serde_json::from_str::<StoredIntent>(text).ok()?).ok()
    }

    #[test]
    fn an_intent_reads_back_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        for (text, subject) in [
            (format!("{{{KEY},{FILING},\"changes\":[{SWAP}]}}"), "task/pay.md"),
            (format!("{{{KEY},{FILING},\"changes\":[{NEW},{REMOVED}]}}"), "wiki/plot/entities/a.md"),
            (format!("{{{KEY},{FILING},\"changes\":[]}}"), "event/steward-action-a.md"),
            (format!("{{{KEY},\"changes\":[{SWAP}]}}"), "task/pay.md"),
        ] {
            let mut intent = read(&text).unwrap();
            assert_eq!(intent.subject().to_string(), subject);
            write_intent(&root, &intent).unwrap();
            let file = dir.path().join(intent.display_path());
            assert_eq!(std::fs::read_to_string(file).unwrap(), text);
            assert_eq!(list_open_intents(&root).unwrap(), [intent.clone()]);
            let mut stale = intent.clone();
            mark_reverted(&root, &mut intent).unwrap();
            mark_reverted(&root, &mut stale).unwrap();
            assert_eq!(stale, intent, "a try that failed after the rename is repeated");
            assert_eq!(list_open_intents(&root).unwrap(), [ChangeIntent { reverted: true, ..intent.clone() }]);
            remove_intent(&root, &intent).unwrap();
            assert_eq!(list_open_intents(&root).unwrap(), []);
        }
    }

    #[test]
    fn an_intent_that_lost_a_part_is_not_read() {
        for text in [
            format!("{{{KEY},\"changes\":[]}}"),
            format!("{{{KEY},\"changes\":[{SWAP},{SWAP}]}}"),
            format!("{{{KEY},{},\"changes\":[{SWAP}]}}", FILING.replace(r#""seq":3,"#, "")),
            format!("{{{KEY},{},\"changes\":[{SWAP}]}}", FILING.replace("filing", "filling")),
            format!("{{{KEY},\"changes\":[{}]}}", SWAP.replace(r#""after":"cc","#, "")),
            format!("{{{KEY},\"changes\":[{}]}}", SWAP.replace(r#""before":"bb","#, "")),
            format!("{{{KEY},\"changes\":[{}]}}", REMOVED.replace("r-1", "../r-1")),
            format!(
                "{{{KEY},\"changes\":[{}]}}",
                NEW.replace(r#"{"wiki":"wiki/plot","file":"entities/a.md"}"#, r#""task/a.md""#)
            ),
        ] {
            assert_eq!(read(&text), None, "{text}");
        }
    }
}

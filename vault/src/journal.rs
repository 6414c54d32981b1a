//! What is under way: one small file per change, written before anything moves.
//!
//! An intent names the action, its target and the content before and after. Together with the
//! staged files it says after a crash what happened and what did not; the state database is not
//! needed for that and may be gone. An intent is removed when its change has settled.

use crate::root::{OWN_FOLDER, Root};
use crate::swap::{self, Swap};
use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};
use std::io;
use steward_domain::path::RecordPath;
use steward_domain::plan::{ActionId, ContentHash};

const FOLDER: &str = "journal";

/// A change that has begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Intent {
    pub(crate) id: ActionId,
    pub(crate) target: RecordPath,
    pub(crate) record: RecordPath,
    pub(crate) before: ContentHash,
    pub(crate) after: ContentHash,
}

impl Intent {
    pub(crate) fn swap(&self) -> Swap<'_> {
        Swap { id: self.id.as_str(), target: &self.target, before: &self.before, after: &self.after }
    }

    fn file(&self) -> String {
        format!("{}.json", self.id)
    }
}

fn folder(root: &Root) -> io::Result<Dir> {
    root.dir().create_dir_all(format!("{OWN_FOLDER}/{FOLDER}"))?;
    root.dir().open_dir(format!("{OWN_FOLDER}/{FOLDER}"))
}

/// Writes an intent, durable.
pub(crate) fn write(root: &Root, intent: &Intent) -> io::Result<()> {
    let bytes = serde_json::to_vec(intent).map_err(io::Error::other)?;
    swap::write_durable(&folder(root)?, &intent.file(), &bytes, None)
}

/// Forgets an intent.
pub(crate) fn remove(root: &Root, intent: &Intent) -> io::Result<()> {
    let folder = folder(root)?;
    match folder.remove_file(intent.file()) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        Ok(()) | Err(_) => swap::sync_dir(&folder),
    }
}

/// Every intent that has not settled, in the order of their names.
pub(crate) fn open_intents(root: &Root) -> io::Result<Vec<Intent>> {
    let folder = folder(root)?;
    let mut names = Vec::new();
    for entry in folder.entries()? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".json") {
            names.push(name);
        }
    }
    names.sort();
    names
        .iter()
        .map(|name| {
            let unreadable = |e: String| {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("{OWN_FOLDER}/{FOLDER}/{name}: {e}; move it away and run `steward audit verify`"),
                )
            };
            let bytes = folder.read(name)?;
            serde_json::from_slice(&bytes).map_err(|e| unreadable(e.to_string()))
        })
        .collect()
}

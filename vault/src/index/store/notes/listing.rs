//! What a listing alone says about notes: which are twins, and which lie in folders of knowledge.
//!
//! Such notes are left out whatever they say, so they need not be read. It opens no note.

use crate::files::root::{FolderEntry, VaultRoot};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use steward_domain::record::link::fold_name;
use steward_domain::record::path::RecordPath;

/// A folder with this file, and all below it, holds compiled knowledge and no affairs.
pub(super) const KNOWLEDGE_FILE: &str = "KNOWLEDGE.md";

/// What a listing alone says about a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ListedClass {
    /// It must be read.
    Note,
    /// It lies in a folder of knowledge.
    Knowledge,
    Twin(String),
}

/// What the listing alone says about each note.
pub(super) fn classify_listing(entries: &[FolderEntry]) -> Vec<ListedClass> {
    let is_knowledge_file = |entry: &&FolderEntry| file_name(&entry.name) == KNOWLEDGE_FILE;
    let knowledge: BTreeSet<&str> =
        entries.iter().filter(is_knowledge_file).map(|e| e.name.strip_suffix(KNOWLEDGE_FILE).unwrap_or("")).collect();
    let lies_in_knowledge =
        |path: &str| knowledge.contains("") || path.match_indices('/').any(|(at, _)| knowledge.contains(&path[..=at]));
    let mut spelled: HashMap<String, &str> = HashMap::with_capacity(entries.len());
    let mut twins: HashMap<&str, &str> = HashMap::new();
    for entry in entries {
        if let Some(first) = spelled.insert(fold_name(&entry.name), &entry.name) {
            twins.insert(&entry.name, first);
            twins.entry(first).or_insert(&entry.name);
        }
    }
    let classify = |entry: &FolderEntry| {
        if lies_in_knowledge(&entry.name) {
            ListedClass::Knowledge
        } else {
            twins.get(entry.name.as_str()).map_or(ListedClass::Note, |twin| ListedClass::Twin((*twin).to_owned()))
        }
    };
    entries.iter().map(classify).collect()
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a folder above the note holds knowledge.
pub(super) fn lies_in_knowledge(root: &VaultRoot, note: &RecordPath) -> bool {
    let folders = Path::new(note.as_str()).ancestors().skip(1);
    let mut files = folders.filter_map(|folder| RecordPath::parse(folder.join(KNOWLEDGE_FILE).to_str()?).ok());
    files.any(|file| root.exists(&file))
}

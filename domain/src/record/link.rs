//! Links from one note to another, as Obsidian reads them.
//!
//! A link is first a full path from the root, then the end of a path. A link that begins with a dot is relative to its
//! note. Names are compared in NFC and without case; `.md`, a heading and a title do not count, and neither do aliases.
//! A link that fits no note or several notes names none of them. [`NoteNames`] holds the names of all notes that a link
//! may name. It opens no file.

use crate::record::path::{RecordKind, RecordPath, parse_link, strip_link};
use std::collections::{BTreeMap, BTreeSet};
use unicode_normalization::UnicodeNormalization as _;

/// The most notes that the message about an ambiguous link names.
const SHOWN_NOTES: usize = 5;

/// The paths of the notes that links may name, by the folded name of each file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoteNames {
    notes: BTreeMap<String, BTreeSet<RecordPath>>,
    scope: LinkScope,
}

/// Which notes a link may name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkScope {
    /// Only notes in the folder of the kind, as in a vault without a mapping: a task and its matter may share a name.
    #[default]
    KindFolder,
    /// Every note of the vault.
    Vault,
}

/// Reads the links of one note.
#[derive(Clone, Copy, Debug)]
pub struct LinkReader<'a> {
    pub names: &'a NoteNames,
    pub note: &'a RecordPath,
}

impl LinkReader<'_> {
    /// The matter that a link names, or the path that it spells.
    #[must_use]
    pub fn read_matter(&self, link: &str) -> Option<RecordPath> {
        self.names.resolve_or_spell(RecordKind::Matter, link, self.note)
    }
}

/// Why a link names no note.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    #[error("no note is called `{0}`")]
    Missing(String),
    #[error("`{link}` names several notes: {}{}", .notes.join(", "), if *.more { " and others" } else { "" })]
    Ambiguous { link: String, notes: Vec<String>, more: bool },
}

impl NoteNames {
    #[must_use]
    pub fn new(scope: LinkScope) -> Self {
        Self { notes: BTreeMap::new(), scope }
    }

    #[must_use]
    pub fn contains(&self, note: &RecordPath) -> bool {
        self.notes.get(&fold_name(note.slug())).is_some_and(|same| same.contains(note))
    }

    pub fn insert(&mut self, note: RecordPath) {
        self.notes.entry(fold_name(note.slug())).or_default().insert(note);
    }

    pub fn remove(&mut self, note: &RecordPath) {
        let name = fold_name(note.slug());
        if let Some(same) = self.notes.get_mut(&name) {
            same.remove(note);
            if same.is_empty() {
                self.notes.remove(&name);
            }
        }
    }

    /// Finds the note that a link in `from` names.
    ///
    /// # Errors
    /// [`LinkError`] if it names no note or several.
    pub fn resolve(&self, kind: RecordKind, link: &str, from: &RecordPath) -> Result<RecordPath, LinkError> {
        let name = strip_link(link);
        let missing = || LinkError::Missing(shorten(name));
        let (wanted, is_relative) = match join_relative(name, from) {
            Some(Some(joined)) => (fold_name(&joined), true),
            Some(None) => return Err(missing()),
            None => (fold_name(name.strip_prefix('/').unwrap_or(name)), false),
        };
        let last = wanted.rsplit('/').next().unwrap_or_default();
        let in_scope = |note: &&RecordPath| match self.scope {
            LinkScope::KindFolder => note.folder_kind() == Some(kind),
            LinkScope::Vault => true,
        };
        let same_name: Vec<(String, &RecordPath)> =
            self.notes.get(last).into_iter().flatten().filter(in_scope).map(|note| (fold_path(note), note)).collect();
        let mut found: Vec<&RecordPath> =
            same_name.iter().filter(|(path, _)| *path == wanted).map(|(_, note)| *note).collect();
        if found.is_empty() && !is_relative {
            let is_end = |path: &str| path.strip_suffix(&wanted).is_some_and(|before| before.ends_with('/'));
            found = same_name.iter().filter(|(path, _)| is_end(path)).map(|(_, note)| *note).collect();
        }
        // Without a mapping, a folder may hold two names that differ in case alone: the one that is spelled counts.
        let spelled = parse_link(kind, link).ok().filter(|_| self.scope == LinkScope::KindFolder);
        match found.as_slice() {
            [] => Err(missing()),
            [one] => Ok((*one).clone()),
            many if spelled.as_ref().is_some_and(|spelled| many.contains(&spelled)) => Ok(spelled.ok_or_else(missing)?),
            many => Err(LinkError::Ambiguous {
                link: shorten(name),
                notes: many.iter().take(SHOWN_NOTES).map(ToString::to_string).collect(),
                more: many.len() > SHOWN_NOTES,
            }),
        }
    }

    /// The note that a link names or, if it names none, the path that it spells. That path has no note, so whatever
    /// belongs to it is left to a person. `None` if the link spells no path either.
    #[must_use]
    pub fn resolve_or_spell(&self, kind: RecordKind, link: &str, from: &RecordPath) -> Option<RecordPath> {
        self.resolve(kind, link, from).ok().or_else(|| parse_link(kind, link).ok())
    }
}

/// The key of the name by which a link finds a note: the last part of the link, folded.
#[must_use]
pub fn link_key(link: &str) -> String {
    let folded = fold_name(strip_link(link));
    folded.rsplit('/').next().unwrap_or_default().to_owned()
}

/// A name for comparison: NFC, without case.
#[must_use]
pub fn fold_name(name: &str) -> String {
    if name.is_ascii() {
        name.to_ascii_lowercase()
    } else {
        name.nfc().collect::<String>().to_lowercase().nfc().collect()
    }
}

fn fold_path(note: &RecordPath) -> String {
    fold_name(note.as_str().strip_suffix(".md").unwrap_or(note.as_str()))
}

/// The path from the root that a relative link spells. `Some(None)` if it leaves the vault, `None` if the link is not
/// relative.
fn join_relative(name: &str, from: &RecordPath) -> Option<Option<String>> {
    if !(name.starts_with("./") || name.starts_with("../")) {
        return None;
    }
    let folder = from.split_folder().0;
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in name.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                if parts.pop().is_none() {
                    return Some(None);
                }
            }
            part => parts.push(part),
        }
    }
    Some(Some(parts.join("/")))
}

/// A link in a message: short, and on one line.
fn shorten(link: &str) -> String {
    link.chars().take(100).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests;

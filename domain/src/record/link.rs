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
    pub const fn new(scope: LinkScope) -> Self {
        Self { notes: BTreeMap::new(), scope }
    }

    /// Which notes a link may name.
    #[must_use]
    pub fn scope(&self) -> LinkScope {
        self.scope
    }

    /// The number of notes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.notes.values().map(BTreeSet::len).sum()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    #[must_use]
    pub fn contains(&self, note: &RecordPath) -> bool {
        self.notes.get(&fold_name(note.slug())).is_some_and(|same| same.contains(note))
    }

    /// The number of notes that have this name, in whatever folder and case.
    #[must_use]
    pub fn count_named(&self, name: &str) -> usize {
        self.notes.get(&fold_name(name)).map_or(0, BTreeSet::len)
    }

    /// Whether another note differs from this one only in case or normal form.
    #[must_use]
    pub fn has_twin(&self, note: &RecordPath) -> bool {
        let path = fold_path(note);
        let same = self.notes.get(&fold_name(note.slug())).into_iter().flatten();
        same.filter(|other| *other != note).any(|other| fold_path(other) == path)
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
            many => Err(report_ambiguous(name, many)),
        }
    }

    /// Finds the note that a path names which was spelled from a link. With a mapping a bare name was spelled into the
    /// folder of its kind, so the name alone is tried too.
    #[must_use]
    pub fn find_spelled(&self, kind: RecordKind, spelled: &RecordPath) -> Option<RecordPath> {
        let found = self.resolve(kind, spelled.as_str(), spelled).ok();
        let is_bare = self.scope == LinkScope::Vault && spelled.folder_kind() == Some(kind);
        found.or_else(|| self.resolve(kind, spelled.slug(), spelled).ok().filter(|_| is_bare))
    }

    /// Finds the note that describes the folder of a note: the nearest folder upward that has a note of its name, inside
    /// it or beside it.
    ///
    /// # Errors
    /// [`LinkError`] if no folder upward has such a note, or if the nearest one has two.
    pub fn find_folder_note(&self, note: &RecordPath) -> Result<RecordPath, LinkError> {
        let mut folder = note.split_folder().0;
        while !folder.is_empty() {
            let (above, name) = folder.rsplit_once('/').unwrap_or(("", folder));
            let beside = fold_name(folder);
            let inside = format!("{beside}/{}", fold_name(name));
            let same_name = self.notes.get(&fold_name(name)).into_iter().flatten().filter(|found| *found != note);
            let found: Vec<&RecordPath> =
                same_name.filter(|found| [&beside, &inside].contains(&&fold_path(found))).collect();
            match found.as_slice() {
                [] => folder = above,
                [one] => return Ok((*one).clone()),
                many => return Err(report_ambiguous(folder, many)),
            }
        }
        Err(LinkError::Missing(shorten(note.split_folder().0)))
    }

    /// The shortest link that names a note: its name, or as many of the folders before it as are needed.
    ///
    /// Falls back to the plain path, because a name may hold `#` or `|`, which end a link.
    #[must_use]
    pub fn shortest_link(&self, note: &RecordPath, from: &RecordPath) -> String {
        let path = note.as_str().strip_suffix(".md").unwrap_or(note.as_str());
        let mut starts: Vec<usize> = path.match_indices('/').map(|(at, _)| at + 1).rev().collect();
        starts.push(0);
        let names_note = |link: &str| self.resolve(RecordKind::Matter, link, from).as_ref() == Ok(note);
        let shortest = starts.into_iter().map(|at| format!("[[{}]]", &path[at..])).find(|link| names_note(link));
        shortest.unwrap_or_else(|| note.to_string())
    }

    /// The note that a link names or, if it names none, the path that it spells. That path has no note, so whatever
    /// belongs to it is left to a person. `None` if the link spells no path either.
    #[must_use]
    pub fn resolve_or_spell(&self, kind: RecordKind, link: &str, from: &RecordPath) -> Option<RecordPath> {
        self.resolve(kind, link, from).ok().or_else(|| parse_link(kind, link).ok())
    }
}

fn report_ambiguous(link: &str, notes: &[&RecordPath]) -> LinkError {
    LinkError::Ambiguous {
        link: shorten(link),
        notes: notes.iter().take(SHOWN_NOTES).map(ToString::to_string).collect(),
        more: notes.len() > SHOWN_NOTES,
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

/// A link with its relative path made a path from the root. Other links, and one that leaves the vault, stay as they are.
#[must_use]
pub(crate) fn make_link_absolute(link: &str, from: &RecordPath) -> String {
    match join_relative(strip_link(link), from) {
        Some(Some(path)) => format!("{path}.md"),
        Some(None) | None => link.to_owned(),
    }
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

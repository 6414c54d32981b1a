//! The links of one note, as they were written at one time.
//!
//! When a person renames a note, Obsidian rewrites the links to it. So a link in an older record and a link in the note
//! may differ and name the same note. They are compared by the note that they name.

use super::{MoveHistory, PathTime};
use crate::record::link::{LinkScope, NoteNames, fold_name, link_key};
use crate::record::path::{RecordKind, RecordPath, strip_link};
use serde_json::Value;

/// Reads the links of one note.
#[derive(Clone, Copy, Debug)]
pub struct LinkReader<'a> {
    pub names: &'a NoteNames,
    pub moves: &'a MoveHistory,
    pub note: &'a RecordPath,
    /// When the older links were written.
    pub time: PathTime,
}

impl LinkReader<'_> {
    /// The matter that a link names now, or the path that it spells.
    #[must_use]
    pub fn read_matter(&self, link: &str) -> Option<RecordPath> {
        self.names.resolve_or_spell(RecordKind::Matter, link, self.note)
    }

    /// The path now of the matter that an older link named, or the path that it spells.
    #[must_use]
    pub fn read_former_matter(&self, link: &str) -> Option<RecordPath> {
        let moved = self.moves.resolve_moved(RecordKind::Matter, link, self.note, self.time);
        moved.or_else(|| self.read_matter(link))
    }

    /// An older link as it reads now, if the note that it named has moved since. `now` are the texts of the field: one
    /// that names the note is taken as it stands. Otherwise the link gets the shortest name of the note.
    #[must_use]
    pub fn rename_link(&self, link: &str, now: &[&str]) -> Option<String> {
        if self.moves.is_empty() {
            return None;
        }
        let kind = self.kind_of(link);
        let note = self.moves.resolve_moved(kind, link, self.note, self.time)?;
        // The same text counts, unless it names another note by now.
        let names_other = self.names.resolve(kind, link, self.note).is_ok_and(|named| named != note);
        if now.contains(&link) && !names_other {
            return None;
        }
        let names_it = |text: &&&str| self.names.resolve(kind, text, self.note).as_ref() == Ok(&note);
        if let Some(text) = now.iter().find(names_it) {
            return Some((*text).to_owned());
        }
        let shortest = self.names.shortest_link(&note, self.note);
        let inner = link.trim().strip_prefix("[[").and_then(|text| text.strip_suffix("]]"));
        match inner {
            Some(inner) => {
                let title = inner.find(['|', '#']).map_or("", |at| &inner[at..]);
                Some(format!("[[{}{title}]]", strip_link(&shortest)))
            }
            // A plain word is no link, so no editor changes it.
            None if !link.contains('/') && !link.ends_with(".md") => None,
            None if link.trim().ends_with(".md") => Some(note.to_string()),
            None => Some(strip_link(note.as_str()).to_owned()),
        }
    }

    /// A member of a list as it reads now, if the note that it named has moved since.
    #[must_use]
    pub fn rename_member(&self, member: &str, list: Option<&Value>) -> Option<String> {
        let mut now = Vec::new();
        list.into_iter().for_each(|list| collect_texts(list, &mut now));
        self.rename_link(member, &now)
    }

    /// What a link in a text names, the same before and after its note was renamed: the folded name of the note's first
    /// file. Folder, heading and title do not count.
    #[must_use]
    pub fn stable_name(&self, link: &str) -> String {
        link_key(self.find_origin(link).as_ref().map_or(link, RecordPath::as_str))
    }

    /// As [`LinkReader::stable_name`], with as many folders as the link spells.
    #[must_use]
    pub fn stable_path(&self, link: &str) -> String {
        let spelled = strip_link(link).trim_start_matches('/');
        let depth = spelled.matches('/').count() + 1;
        let Some(origin) = self.find_origin(link) else { return fold_name(spelled) };
        let parts: Vec<&str> = strip_link(origin.as_str()).rsplit('/').take(depth).collect();
        fold_name(&parts.into_iter().rev().collect::<Vec<_>>().join("/"))
    }

    /// The first path of the note that a link names now, if that note has moved.
    fn find_origin(&self, link: &str) -> Option<RecordPath> {
        if self.moves.is_empty() {
            return None;
        }
        let note = self.names.resolve(self.kind_of(link), link, self.note).ok()?;
        self.moves.list_former_paths(&note).pop()
    }

    /// The kind in whose folder a link without a mapping names a note.
    fn kind_of(&self, link: &str) -> RecordKind {
        let folder = strip_link(link).split_once('/').and_then(|(folder, _)| folder.parse().ok());
        match self.names.scope() {
            LinkScope::KindFolder => folder.unwrap_or(RecordKind::Matter),
            LinkScope::Vault => RecordKind::Matter,
        }
    }
}

/// Every text in a value. To YAML, `[[Acme]]` without quotes is a list in a list.
pub(crate) fn collect_texts<'v>(value: &'v Value, into: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => into.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
    }
}

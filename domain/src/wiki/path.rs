//! Paths of the files of a wiki that Steward may write.
//!
//! A [`PagePath`] is the only way to name one. It is checked once, here: text from a source or a model can never become a
//! file of another wiki, a hidden file, or one of the files that only people write.

use super::run::RunId;
use super::{
    ACCEPTED_FILES, GRAPH_FILE, IDEAS_FILE, INDEX_FILE, LOG_FILE, OVERVIEW_FILE, PROVENANCE_FILE, SOURCES_FILE,
};
use super::{MAX_GENERATED_BYTES, MAX_PAGE_BYTES, MAX_SOURCE_BYTES, SOURCES_FOLDER};
use crate::record::path::find_name_fault;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Files at the root of a wiki that code renders or appends to.
const GENERATED_FILES: [&str; 7] =
    [OVERVIEW_FILE, INDEX_FILE, LOG_FILE, PROVENANCE_FILE, SOURCES_FILE, IDEAS_FILE, GRAPH_FILE];
/// The folder of the texts of sources that are not text themselves.
const TEXT_FOLDER: &str = "_text";
/// The folder of what was removed or displaced.
const TRASH_FOLDER: &str = ".trash";

/// What a file of a wiki is for. The order is the one in which a commit exchanges files: the log comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WikiFileKind {
    /// What a person wrote where code owns the file. It is created once in the trash.
    Displaced,
    /// A source. It is created once and never changed.
    Source,
    /// The text of a source. It is created once and never changed.
    SourceText,
    Page,
    Overview,
    Generated,
    Index,
    Log,
}

/// A checked path of a file of a wiki, relative to the root of the vault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "StoredPath", into = "StoredPath")]
pub struct PagePath {
    /// The folder of the wiki, relative to the root of the vault.
    wiki: String,
    /// Relative to the wiki.
    file: String,
}

/// The form of a path in a file. A record's path is a text, so the two are never mistaken for each other.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredPath {
    wiki: String,
    file: String,
}

/// Why a file is none that Steward may write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` {fault}", .file.escape_debug())]
pub struct PagePathError {
    pub file: String,
    pub fault: &'static str,
}

impl PagePath {
    /// Checks the path of a file in the wiki in this folder of the vault.
    ///
    /// # Errors
    /// [`PagePathError`] if a part of it is invalid, or if it is none of the files that Steward writes.
    pub fn new(wiki: &str, file: &str) -> Result<Self, PagePathError> {
        let refuse = |text: &str, fault| Err(PagePathError { file: text.to_owned(), fault });
        if let Some(fault) = wiki.split('/').find_map(find_part_fault) {
            return refuse(wiki, fault);
        }
        if let Some((run, inner)) = file.strip_prefix(".trash/").and_then(|rest| rest.split_once('/')) {
            return match run.parse::<RunId>() {
                Ok(run) => Ok(Self::new(wiki, inner)?.in_trash(&run)),
                Err(_) => refuse(file, "is in the trash of no run"),
            };
        }
        if let Some(fault) = file.split('/').find_map(find_part_fault) {
            return refuse(file, fault);
        }
        let folders = file.rsplit_once('/').map_or("", |(folders, _)| folders);
        if folders.split('/').any(|part| part.to_lowercase().ends_with(".md")) {
            return refuse(file, "lies in a folder that is named like a page");
        }
        if find_kind(file).is_none() {
            return refuse(file, "is no page and none of the files that Steward writes in a wiki");
        }
        Ok(Self { wiki: wiki.to_owned(), file: file.to_owned() })
    }

    /// Where a run keeps the content of a file that it displaces.
    #[must_use]
    pub fn in_trash(&self, run: &RunId) -> Self {
        Self { wiki: self.wiki.clone(), file: format!("{TRASH_FOLDER}/{run}/{}", self.file) }
    }

    /// The folder of the wiki, relative to the root of the vault.
    #[must_use]
    pub fn wiki(&self) -> &str {
        &self.wiki
    }

    /// The file, relative to the wiki.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// What the file is for.
    #[must_use]
    pub fn kind(&self) -> WikiFileKind {
        find_kind(&self.file).unwrap_or(WikiFileKind::Page)
    }

    /// The most bytes that the file may have.
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        match self.kind() {
            WikiFileKind::Source | WikiFileKind::SourceText => MAX_SOURCE_BYTES,
            WikiFileKind::Page => MAX_PAGE_BYTES,
            WikiFileKind::Displaced
            | WikiFileKind::Overview
            | WikiFileKind::Generated
            | WikiFileKind::Index
            | WikiFileKind::Log => MAX_GENERATED_BYTES,
        }
    }

    /// The folders above the file from the root of the vault on, and the file's name.
    pub fn split_folders(&self) -> (impl Iterator<Item = &str>, &str) {
        let (folder, name) = self.file.rsplit_once('/').unwrap_or(("", &self.file));
        (self.wiki.split('/').chain(folder.split('/').filter(|part| !part.is_empty())), name)
    }

    /// The folders, from the root of the vault on, to which a run moves the file when it removes it.
    pub fn trash_folders<'a>(&'a self, run: &'a str) -> impl Iterator<Item = &'a str> {
        let folder = self.file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let inner = folder.split('/').filter(|part| !part.is_empty());
        self.wiki.split('/').chain([TRASH_FOLDER, run]).chain(inner)
    }
}

/// Why a part of a path is refused.
fn find_part_fault(part: &str) -> Option<&'static str> {
    // A command would take such a name for an option.
    if part.starts_with('-') { Some("begins with a hyphen") } else { find_name_fault(part) }
}

/// What a file is for, by its path; `None` if Steward never writes it.
pub(super) fn find_kind(file: &str) -> Option<WikiFileKind> {
    // A folder with a manifest is a wiki of its own, and its sources are too.
    let is_of_people = |name: &str| ACCEPTED_FILES.iter().any(|file| file.eq_ignore_ascii_case(name));
    let is_page_name =
        |name: &str| name.strip_suffix(".md").is_some_and(|slug| !slug.starts_with('_')) && !is_of_people(name);
    let is_page_folder = |folder: &&str| !folder.starts_with('_') && *folder != SOURCES_FOLDER;
    match file.split('/').collect::<Vec<_>>().as_slice() {
        [TRASH_FOLDER, _, ..] => Some(WikiFileKind::Displaced),
        [OVERVIEW_FILE] => Some(WikiFileKind::Overview),
        [INDEX_FILE] => Some(WikiFileKind::Index),
        [LOG_FILE] => Some(WikiFileKind::Log),
        [name] => GENERATED_FILES.contains(name).then_some(WikiFileKind::Generated),
        [SOURCES_FOLDER, ..] => Some(WikiFileKind::Source),
        [TEXT_FOLDER, name] => name.strip_suffix(".txt").filter(|id| !id.is_empty()).map(|_| WikiFileKind::SourceText),
        [folders @ .., name] if folders.iter().all(is_page_folder) && is_page_name(name) => Some(WikiFileKind::Page),
        _ => None,
    }
}

impl fmt::Display for PagePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.wiki, self.file)
    }
}

impl TryFrom<StoredPath> for PagePath {
    type Error = PagePathError;

    fn try_from(stored: StoredPath) -> Result<Self, PagePathError> {
        Self::new(&stored.wiki, &stored.file)
    }
}

impl From<PagePath> for StoredPath {
    fn from(path: PagePath) -> Self {
        Self { wiki: path.wiki, file: path.file }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_steward_writes_have_a_path() {
        for (file, kind) in [
            ("entities/plot-12.md", WikiFileKind::Page),
            ("entries/deep/Plot 12.md", WikiFileKind::Page),
            ("overview.md", WikiFileKind::Overview),
            ("_index.md", WikiFileKind::Index),
            ("_log.md", WikiFileKind::Log),
            ("_sources.json", WikiFileKind::Generated),
            (".trash/r-20261122T091504Z-3f9a1c22/_index.md", WikiFileKind::Displaced),
            ("_graph.md", WikiFileKind::Generated),
            ("sources/2026-11-20 letter.pdf", WikiFileKind::Source),
            ("_text/2026-11-20-letter.txt", WikiFileKind::SourceText),
        ] {
            assert_eq!(PagePath::new("wiki/plot", file).unwrap().kind(), kind, "{file}");
        }
        for file in [
            "KNOWLEDGE.md",
            "AGENTS.md",
            "SKILL.md",
            "identity.md",
            "notes.md",
            "_other.md",
            "_text/.txt",
            "_text/a/b.txt",
            "entities/_plot.md",
            "entities/plot.txt",
            ".trash/r-1/_index.md",
            ".trash/r-20261122T091504Z-3f9a1c22/../a.md",
            ".trash/r-20261122T091504Z-3f9a1c22/KNOWLEDGE.md",
            "entities/../KNOWLEDGE.md",
            "/etc/a.md",
            "",
            "sources/.hidden",
            "sources/../a.md",
            "sources/a\nb.md",
            "entities/-rf.md",
            "_private/a.md",
            "entities/knowledge.md",
            "sub/AGENTS.md",
            "sub/sources/a.md",
            "entities/a.md/b.md",
            "entities/a\u{0}.md",
        ] {
            assert!(PagePath::new("wiki/plot", file).is_err(), "{file:?}");
        }
        for wiki in ["", "..", "wiki/../other", ".steward", "wiki/-x", "/wiki"] {
            assert!(PagePath::new(wiki, "overview.md").is_err(), "{wiki:?}");
        }
    }

    #[test]
    fn the_log_is_the_last_file_of_a_commit_and_the_index_the_one_before() {
        let mut files = ["_log.md", "_index.md", "_graph.md", "overview.md", "entities/a.md", "sources/a.md"];
        files.sort_by_key(|file| PagePath::new("wiki/plot", file).unwrap().kind());
        assert_eq!(files, ["sources/a.md", "entities/a.md", "overview.md", "_graph.md", "_index.md", "_log.md"]);
    }

    #[test]
    fn a_path_reads_back_and_names_its_folders() {
        let path = PagePath::new("Notes/plot", "entities/plot-12.md").unwrap();
        let text = serde_json::to_string(&path).unwrap();
        assert_eq!(text, r#"{"wiki":"Notes/plot","file":"entities/plot-12.md"}"#);
        assert_eq!(serde_json::from_str::<PagePath>(&text).unwrap(), path);
        assert!(serde_json::from_str::<PagePath>(&text.replace("entities", "..")).is_err());
        let (folders, name) = path.split_folders();
        assert_eq!((folders.collect::<Vec<_>>(), name), (vec!["Notes", "plot", "entities"], "plot-12.md"));
        assert_eq!(path.trash_folders("r-1").collect::<Vec<_>>(), ["Notes", "plot", ".trash", "r-1", "entities"]);
    }
}

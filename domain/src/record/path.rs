//! Paths of Markdown files inside a vault, such as `task/renew-passport.md` or `Projects/Wedding of Ann.md`.
//!
//! A [`RecordPath`] is the only way to name a file of the vault. It is checked once, here. So text from a mail or a
//! model can never become `../../etc/passwd` or a hidden file. A path does not tell whether the file exists. It tells
//! the kind of Steward's own files by their folder. Whether a note is a matter or a task is not in its path.

use crate::action::plan::ContentHash;
use serde::{Deserialize, Serialize};
use std::fmt;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// The longest part of a path, in bytes: the longest file name on Linux.
pub const MAX_PART_BYTES: usize = 255;
/// The longest path, in bytes: `PATH_MAX` on Linux, with the byte at the end.
pub const MAX_PATH_BYTES: usize = 4095;
/// The longest slug, in bytes. It leaves room for prefixes within the 255 bytes of a file name.
pub const MAX_SLUG_BYTES: usize = 128;

/// The kind of a record.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RecordKind {
    Matter,
    Task,
    Signal,
    Event,
    Instinct,
    Stream,
}

impl RecordKind {
    /// Every kind, in the order in which folders are read.
    pub const ALL: [Self; 6] = [Self::Matter, Self::Task, Self::Signal, Self::Event, Self::Instinct, Self::Stream];

    /// The folder's name. Matters and tasks have a folder of their own only in a vault without a mapping.
    #[must_use]
    pub fn folder(self) -> &'static str {
        self.into()
    }

    /// Whether people own such records: matters and tasks.
    #[must_use]
    pub fn is_note(self) -> bool {
        matches!(self, Self::Matter | Self::Task)
    }

    /// Whether Steward writes such records itself and may update their status.
    #[must_use]
    pub fn has_status(self) -> bool {
        match self {
            Self::Signal | Self::Stream | Self::Instinct => true,
            Self::Matter | Self::Task | Self::Event => false,
        }
    }
}

/// A checked path of a Markdown file, relative to the root of the vault.
///
/// Steward's own files lie in `signal/`, `event/`, `instinct/` and `stream/<source>/`, without further folders. Every
/// other path is that of a note, in any folder or in none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RecordPath {
    text: String,
}

/// Why a text is not the path of a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("`{0}` is not in {1}/")]
    Folder(String, &'static str),
    #[error("`{0}` is not in a folder of its source: expected stream/<source>/<id>.md")]
    Source(String),
    #[error("`{0}` lies in a folder of its own inside `{1}/`: move the file up")]
    Nested(String, &'static str),
    #[error("`{0}` does not end in `.md`")]
    Extension(String),
    #[error("`{path}` has a name that cannot be used, because `{part}` {fault}: rename it")]
    Name { path: String, part: String, fault: &'static str },
}

impl RecordPath {
    /// Checks a path such as `task/renew-passport.md`.
    ///
    /// # Errors
    /// [`PathError`] if a part of the path, the extension or the source is invalid.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let fault = |part: &str, fault| PathError::Name { path: show_path(text), part: show_path(part), fault };
        if text.len() > MAX_PATH_BYTES {
            return Err(fault(text.rsplit('/').next().unwrap_or(text), "makes a path of more than 4,095 bytes"));
        }
        if !text.ends_with(".md") {
            return Err(PathError::Extension(show_path(text)));
        }
        if let Some((part, why)) = text.split('/').find_map(|part| Some((part, find_name_fault(part)?))) {
            return Err(fault(part, why));
        }
        let path = Self { text: text.to_owned() };
        let depth = text.matches('/').count();
        match path.own_kind() {
            Some(RecordKind::Stream) if depth != 2 => Err(PathError::Source(show_path(text))),
            Some(RecordKind::Stream) if !text.split('/').nth(1).is_some_and(is_slug) => {
                Err(fault(text.split('/').nth(1).unwrap_or_default(), "is not the name of a stream"))
            }
            Some(kind) if kind != RecordKind::Stream && depth != 1 => {
                Err(PathError::Nested(show_path(text), kind.folder()))
            }
            // Audit records are written by Steward alone. A copy that a sync tool made is none.
            Some(RecordKind::Event) if !is_slug(path.slug()) => {
                Err(fault(path.file_name(), "is not the name of an audit record"))
            }
            _ => Ok(path),
        }
    }

    /// The path of a record of this kind in the kind's folder.
    ///
    /// # Errors
    /// [`PathError::Name`] if the slug is not usable as a file name, [`PathError::Source`] if the slug of a stream event
    /// has no source.
    pub fn new(kind: RecordKind, slug: &str) -> Result<Self, PathError> {
        Self::parse(&format!("{}/{slug}.md", kind.folder()))
    }

    /// The kind of one of Steward's own files; `None` for a note.
    #[must_use]
    pub fn own_kind(&self) -> Option<RecordKind> {
        self.folder_kind().filter(|kind| !kind.is_note())
    }

    /// The kind whose folder the file lies in, as in a vault without a mapping.
    #[must_use]
    pub fn folder_kind(&self) -> Option<RecordKind> {
        self.text.split_once('/').and_then(|(folder, _)| folder.parse().ok())
    }

    /// The kind as which a vault without a mapping reads the file: that of its folder, but nothing below it.
    #[must_use]
    pub fn scanned_kind(&self) -> Option<RecordKind> {
        self.folder_kind().filter(|kind| !kind.is_note() || self.split_folder().0 == kind.folder())
    }

    /// The file's name without its folder and `.md`. That of a stream event is `<source>/<id>`.
    #[must_use]
    pub fn slug(&self) -> &str {
        self.file_name().strip_suffix(".md").unwrap_or(self.file_name())
    }

    /// The file's name with `.md`, without its folder. That of a stream event is `<source>/<id>.md`.
    #[must_use]
    pub fn file_name(&self) -> &str {
        match self.own_kind() {
            Some(_) => self.text.split_once('/').map_or("", |(_, file)| file),
            None => self.split_folder().1,
        }
    }

    /// The folder that holds the file, and the file's name in it.
    #[must_use]
    pub fn split_folder(&self) -> (&str, &str) {
        self.text.rsplit_once('/').unwrap_or(("", &self.text))
    }

    /// The whole path, relative to the root of the vault.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The name of the note in ids and file names that must be plain: letters, digits, `-`, `_` and `.`.
    ///
    /// A slug in the folder of its kind (`matter/roof.md`) stands for itself. Any other note has
    /// `<part>-<hash8>`: its name in `a-z0-9-` of at most 60 characters, which may be empty, and the first 8 digits of
    /// the SHA-256 of its path in NFC.
    #[must_use]
    pub fn plain_name(&self, kind: RecordKind) -> String {
        let in_own_folder = self.text.split_once('/').filter(|(folder, _)| *folder == kind.folder());
        let slug = in_own_folder.and_then(|(_, file)| file.strip_suffix(".md"));
        slug.filter(|slug| is_slug(slug)).map_or_else(|| self.hashed_name(), str::to_owned)
    }

    /// `<part>-<hash8>`, as in [`RecordPath::plain_name`], whatever the folder.
    #[must_use]
    pub fn hashed_name(&self) -> String {
        let mut part = String::new();
        for c in self.slug().nfkd().flat_map(char::to_lowercase) {
            if c.is_ascii_alphanumeric() {
                part.push(c);
            } else if !is_combining_mark(c) && !part.ends_with('-') {
                part.push('-');
            }
        }
        let part: String = part.trim_matches('-').chars().take(MAX_PLAIN_CHARS).collect();
        let hash = ContentHash::hash_bytes(self.text.nfc().collect::<String>().as_bytes());
        format!("{}-{}", part.trim_end_matches('-'), &hash.as_str()[..8])
    }
}

/// The longest part of a note's name in an id, in characters.
const MAX_PLAIN_CHARS: usize = 60;

/// Why a part of a path is refused; `None` if it may be used.
pub(crate) fn find_name_fault(part: &str) -> Option<&'static str> {
    match part {
        "" => Some("is empty"),
        "." | ".." => Some("leads out of its folder"),
        _ if part.starts_with('.') => Some("begins with a dot"),
        _ if part.chars().any(char::is_control) => Some("holds a control character"),
        // Such a name was no text, and this is what became of its bytes.
        _ if part.contains(char::REPLACEMENT_CHARACTER) => Some("is not UTF-8"),
        _ if part.ends_with(char::is_whitespace) || part.strip_suffix(".md").is_some_and(ends_in_blank) => {
            Some("ends in a blank")
        }
        _ if part.len() > MAX_PART_BYTES => Some("has more than 255 bytes"),
        _ => None,
    }
}

fn ends_in_blank(name: &str) -> bool {
    name.ends_with(char::is_whitespace)
}

/// A path in a message: short, and on one line.
pub(crate) fn show_path(text: &str) -> String {
    text.chars().take(200).flat_map(char::escape_debug).collect()
}

/// Whether a text may be the name of a stream, a source's file or a plain matter.
///
/// Such names become schedule ids and folders on every system, so only ASCII is allowed.
#[must_use]
pub fn is_slug(text: &str) -> bool {
    let starts_well = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    starts_well
        && text.len() <= MAX_SLUG_BYTES
        && !text.contains("..")
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// The name in a link as people write it, without brackets, title, heading and `.md`.
///
/// Accepts `[[task/x]]`, `[[task/x|Title]]`, `task/x`, `task/x.md` and `x`. A plain path that ends in `.md` may hold `#`
/// and `|`, because a file may be called so.
#[must_use]
pub fn strip_link(text: &str) -> &str {
    let inner = text.trim();
    if let Some(path) = inner.strip_suffix(".md").filter(|path| !path.starts_with("[[")) {
        return path;
    }
    let inner = inner.strip_prefix("[[").and_then(|t| t.strip_suffix("]]")).unwrap_or(inner);
    let inner = inner.split(['|', '#']).next().unwrap_or_default().trim();
    inner.strip_suffix(".md").unwrap_or(inner)
}

/// Reads a link as the path that it spells. A bare name without `.md` lies in the folder of the kind.
///
/// It finds no note: [`crate::record::link::NoteNames::resolve`] does that.
///
/// # Errors
/// [`PathError`] if the link does not spell the path of a record of that kind.
pub fn parse_link(kind: RecordKind, text: &str) -> Result<RecordPath, PathError> {
    let name = strip_link(text);
    if !name.contains('/') && !text.trim().ends_with(".md") {
        return RecordPath::new(kind, name);
    }
    let path = RecordPath::parse(&format!("{}.md", name.strip_prefix('/').unwrap_or(name)))?;
    match path.folder_kind() {
        Some(folder) if folder != kind => Err(PathError::Folder(show_path(text.trim()), kind.folder())),
        _ => Ok(path),
    }
}

impl fmt::Display for RecordPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for RecordPath {
    type Error = PathError;

    fn try_from(text: String) -> Result<Self, PathError> {
        Self::parse(&text)
    }
}

impl From<RecordPath> for String {
    fn from(path: RecordPath) -> Self {
        path.text
    }
}

#[cfg(test)]
mod tests;

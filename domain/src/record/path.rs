//! Paths of records inside a vault, such as `task/renew-passport.md`.
//!
//! A [`RecordPath`] is the only way to name a file of the vault. It is checked once, here. So text from a mail or a
//! model can never become `../../etc/passwd`, a hidden file or an option of a command. A path does not tell whether
//! the file exists.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest slug, in bytes. It leaves room for prefixes within the 255 bytes of a file name.
pub const MAX_SLUG_BYTES: usize = 128;

/// The kind of a record, which is also its folder.
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

    /// The folder's name, relative to the root of the vault.
    #[must_use]
    pub fn folder(self) -> &'static str {
        self.into()
    }

    /// Whether Steward writes such records itself and may update their status.
    #[must_use]
    pub fn is_ours(self) -> bool {
        match self {
            Self::Signal | Self::Stream | Self::Instinct => true,
            Self::Matter | Self::Task | Self::Event => false,
        }
    }
}

/// A checked path `<folder>/<slug>.md`, relative to the root of the vault.
///
/// That of a stream event is `stream/<source>/<id>.md`, with the slug `<source>/<id>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RecordPath {
    text: String,
}

/// Why a text is not the path of a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("`{0}` is not in a folder of the vault: expected matter/, task/, signal/, event/, instinct/ or stream/")]
    Folder(String),
    #[error("`{0}` is not in a folder of its source: expected stream/<source>/<id>.md")]
    Source(String),
    #[error("`{0}` does not end in `.md`")]
    Extension(String),
    #[error(
        "`{0}` has a name that cannot be used: rename the file to 1 to 128 letters a-z, digits, `-`, `_` or `.`, \
         starting with a letter or digit and without `..`"
    )]
    Slug(String),
}

impl RecordPath {
    /// Checks a path such as `task/renew-passport.md`.
    ///
    /// # Errors
    /// [`PathError`] if the folder, the extension, the source or the slug is invalid.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let shown = || text.chars().take(200).flat_map(char::escape_default).collect();
        let (folder, file) = text.split_once('/').ok_or_else(|| PathError::Folder(shown()))?;
        let kind: RecordKind = folder.parse().map_err(|_| PathError::Folder(shown()))?;
        let mut slug = file.strip_suffix(".md").ok_or_else(|| PathError::Extension(shown()))?;
        if kind == RecordKind::Stream {
            let (source, id) = slug.split_once('/').ok_or_else(|| PathError::Source(shown()))?;
            if !is_slug(source) {
                return Err(PathError::Slug(shown()));
            }
            slug = id;
        }
        if !is_slug(slug) {
            return Err(PathError::Slug(shown()));
        }
        Ok(Self { text: text.to_owned() })
    }

    /// The path of a record of this kind.
    ///
    /// # Errors
    /// [`PathError::Slug`] if the slug is not usable as a file name, [`PathError::Source`] if
    /// the slug of a stream event has no source.
    pub fn new(kind: RecordKind, slug: &str) -> Result<Self, PathError> {
        Self::parse(&format!("{}/{slug}.md", kind.folder()))
    }

    /// The kind of the record.
    #[must_use]
    pub fn kind(&self) -> RecordKind {
        let folder = self.text.split('/').next().unwrap_or_default();
        folder.parse().unwrap_or(RecordKind::Event)
    }

    /// The file's name without its folder and `.md`.
    #[must_use]
    pub fn slug(&self) -> &str {
        let file = self.text.split_once('/').map_or("", |(_, f)| f);
        file.strip_suffix(".md").unwrap_or(file)
    }

    /// The file's name with `.md`, without its folder.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.text.split_once('/').map_or("", |(_, f)| f)
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
}

/// Whether a text may be the name of a record's file.
///
/// Slugs become schedule ids and file names on every system, so only ASCII is allowed.
#[must_use]
pub fn is_slug(text: &str) -> bool {
    let starts_well = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    starts_well
        && text.len() <= MAX_SLUG_BYTES
        && !text.contains("..")
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// Parses a link to a record as people write it.
///
/// Accepts `[[task/x]]`, `[[task/x|Title]]`, `task/x`, `task/x.md` and the bare slug `x`.
///
/// # Errors
/// [`PathError`] if the link does not name a record of that kind.
pub fn parse_link(kind: RecordKind, text: &str) -> Result<RecordPath, PathError> {
    let inner = text.trim();
    let inner = inner.strip_prefix("[[").and_then(|t| t.strip_suffix("]]")).unwrap_or(inner);
    let inner = inner.split(['|', '#']).next().unwrap_or_default().trim();
    let inner = inner.strip_suffix(".md").unwrap_or(inner);
    let slug = inner.strip_prefix(kind.folder()).and_then(|t| t.strip_prefix('/')).unwrap_or(inner);
    RecordPath::new(kind, slug)
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
mod tests {
    use super::*;

    #[test]
    fn a_path_that_leaves_the_vault_is_refused() {
        for bad in [
            "../task/x.md",
            "task/../x.md",
            "task/..md",
            "task/.hidden.md",
            "task/a/b.md",
            "/task/x.md",
            "task/x",
            "task/-rf.md",
            "task/a b.md",
            "task/a\n.md",
            "task/.md",
            "note/x.md",
            "stream/x.md",
            "stream/../x.md",
            "stream/mail/../x.md",
            "stream/a/b/c.md",
            "stream/.mail/x.md",
            "stream//x.md",
            "task\\x.md",
            "task/ü.md",
            "",
        ] {
            assert!(RecordPath::parse(bad).is_err(), "{bad:?} was accepted");
        }
        assert!(RecordPath::parse(&format!("task/{}.md", "a".repeat(129))).is_err());
    }

    #[test]
    fn a_record_is_named_by_folder_and_slug() {
        let path = RecordPath::parse("task/renew-passport_2.0.md").unwrap();
        assert_eq!(path.kind(), RecordKind::Task);
        assert_eq!(path.slug(), "renew-passport_2.0");
        assert_eq!(path.file_name(), "renew-passport_2.0.md");
        let event = RecordPath::parse("stream/mail/a-1.md").unwrap();
        assert_eq!((event.kind(), event.slug()), (RecordKind::Stream, "mail/a-1"));
        assert_eq!((event.split_folder(), path.split_folder().0), (("stream/mail", "a-1.md"), "task"));
        assert_eq!(RecordPath::new(RecordKind::Stream, "mail/a-1"), Ok(event));
    }

    #[test]
    fn links_are_read_the_way_people_write_them() {
        for text in
            ["[[matter/farm]]", "[[matter/farm|The farm]]", "matter/farm", "matter/farm.md", " farm ", "[[farm#Top]]"]
        {
            assert_eq!(parse_link(RecordKind::Matter, text).unwrap().as_str(), "matter/farm.md", "{text}");
        }
        assert!(parse_link(RecordKind::Matter, "[[task/farm]]").is_err());
    }

    #[test]
    fn a_path_in_a_payload_is_checked_too() {
        assert!(serde_json::from_str::<RecordPath>("\"task/../../x.md\"").is_err());
    }
}

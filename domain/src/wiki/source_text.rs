//! The text of a source: what quotes are searched in, and what a page is made of.
//!
//! Markdown and plain text in UTF-8 are read as they are, so offsets count in the file itself. The text of any other source is
//! read once, when the source is added, and kept beside it in a file whose hash the registry holds. Offsets count in that file.
//! Its first line names the reader, the reader's version and the hash of the source's bytes.

use super::names::name_source;
use super::quote::QuoteFinder;
use super::registry::{WikiSource, hash_content};
use super::standard::Doctype;
use crate::record::frontmatter;
use serde_json::Value;

/// What a source is, by the ending of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum SourceFormat {
    Markdown,
    PlainText,
    Html,
    Pdf,
}

/// A text that was read from a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    /// Whether the text is Markdown.
    pub is_markdown: bool,
    /// The file in which offsets count, as it is.
    file: String,
    /// Where the text begins in it.
    start: usize,
}

/// What a reader took from a source whose bytes are not its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedText {
    /// The reader and its version, as in `rustium-pdf 0.1.1`.
    pub reader: String,
    pub text: String,
    /// What the document calls itself.
    pub title: Option<String>,
}

/// Why a source has no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceTextError {
    #[error(
        "unsupported_type: only Markdown (.md, .markdown), plain text (.txt, .text), HTML (.html, .htm) and PDF (.pdf) are \
         read"
    )]
    Unsupported,
    #[error("not_text: it is not UTF-8, and not UTF-16 with a byte order mark: save it as UTF-8")]
    NotText,
    #[error("not_text: it holds nothing but blanks")]
    Empty,
    #[error("too_large: its text has more than {MAX_TEXT} characters: divide it")]
    TooLong,
    #[error("its text could not be read when it was added: add a copy that can be read, such as one with a text layer")]
    Unread,
    #[error("source_mutated: the file with its text is not as it was written: restore it")]
    TextMutated,
}

/// The most characters of a text of which pages are made.
pub const MAX_TEXT: usize = 400_000;

impl SourceFormat {
    /// Whether a reader in a process of its own takes the text out of the bytes.
    #[must_use]
    pub fn needs_reader(self) -> bool {
        matches!(self, Self::Html | Self::Pdf)
    }

    /// Whether the text that is read is Markdown.
    fn is_markdown(self) -> bool {
        matches!(self, Self::Markdown | Self::Html)
    }
}

impl SourceText {
    /// The text of which pages are made.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.file[self.start..]
    }

    /// Finds quotes in the text. The line that says how it was read is no part of it.
    #[must_use]
    pub fn finder(&self) -> QuoteFinder<'_> {
        QuoteFinder::with_base(self.as_str(), self.start)
    }

    /// A text that stands for itself.
    #[must_use]
    pub fn from_text(text: &str, is_markdown: bool) -> Self {
        Self { is_markdown, file: text.to_owned(), start: 0 }
    }
}

/// The format of a file by its name; `None` for a file whose text is not read.
#[must_use]
pub fn find_format(path: &str) -> Option<SourceFormat> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (_, ending) = name.rsplit_once('.')?;
    match ending.to_ascii_lowercase().as_str() {
        "md" | "markdown" => Some(SourceFormat::Markdown),
        "txt" | "text" => Some(SourceFormat::PlainText),
        "html" | "htm" | "xhtml" => Some(SourceFormat::Html),
        "pdf" => Some(SourceFormat::Pdf),
        _ => None,
    }
}

/// Decodes a text file that is not UTF-8; `None` if its bytes are its text.
///
/// # Errors
/// [`SourceTextError`], also for a format that needs a reader.
pub fn decode_text(path: &str, bytes: &[u8]) -> Result<Option<DecodedText>, SourceTextError> {
    let format = find_format(path).ok_or(SourceTextError::Unsupported)?;
    if format.needs_reader() {
        return Err(SourceTextError::Unread);
    }
    let (text, reader) = match bytes {
        [0xff, 0xfe, rest @ ..] => (decode_utf16(rest, u16::from_le_bytes)?, "utf-16le"),
        [0xfe, 0xff, rest @ ..] => (decode_utf16(rest, u16::from_be_bytes)?, "utf-16be"),
        _ => return check_text(std::str::from_utf8(bytes).map_err(|_| SourceTextError::NotText)?).map(|()| None),
    };
    check_text(&text)?;
    Ok(Some(DecodedText { reader: format!("{reader} {}", env!("CARGO_PKG_VERSION")), text, title: None }))
}

/// Checks a text of which pages are to be made.
///
/// # Errors
/// [`SourceTextError`].
pub fn check_text(text: &str) -> Result<(), SourceTextError> {
    match () {
        () if text.contains('\0') => Err(SourceTextError::NotText),
        () if text.trim_start_matches('\u{feff}').trim().is_empty() => Err(SourceTextError::Empty),
        () if text.len() > MAX_TEXT && text.chars().count() > MAX_TEXT => Err(SourceTextError::TooLong),
        () => Ok(()),
    }
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, SourceTextError> {
    let units = bytes.chunks(2).map(|pair| match pair {
        [a, b] => Ok(unit([*a, *b])),
        _ => Err(SourceTextError::NotText),
    });
    let units = units.collect::<Result<Vec<u16>, _>>()?;
    String::from_utf16(&units).map_err(|_| SourceTextError::NotText)
}

/// The file with the text of a source. Its first line says how the text was read, and of which bytes.
#[must_use]
pub fn render_text_file(decoded: &DecodedText, content_hash: &str) -> String {
    format!("{} {content_hash}\n{}", decoded.reader, decoded.text)
}

/// Takes the text of a registered source from `bytes`: those of its text file if it has one, and otherwise its own.
///
/// # Errors
/// [`SourceTextError`].
pub fn read_source_text(source: &WikiSource, bytes: Vec<u8>) -> Result<SourceText, SourceTextError> {
    let format = find_format(&source.path).ok_or(SourceTextError::Unsupported)?;
    let start = match &source.text_file {
        None if decode_text(&source.path, &bytes)?.is_some() => return Err(SourceTextError::Unread),
        None => 0,
        Some(kept) if hash_content(&bytes) != kept.hash => return Err(SourceTextError::TextMutated),
        Some(_) => bytes.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1),
    };
    let file = String::from_utf8(bytes).map_err(|_| SourceTextError::NotText)?;
    check_text(&file[start..])?;
    Ok(SourceText { is_markdown: format.is_markdown(), file, start })
}

/// What a source says of itself, or what follows from its name and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceDescription {
    /// `None` if its name holds no letter or digit.
    pub id: Option<String>,
    pub title: String,
    /// As the file states it, in RFC 3339.
    pub captured_at: Option<String>,
}

/// Describes a source by its path, its bytes and what a reader took from them.
#[must_use]
pub fn describe_source(path: &str, bytes: &[u8], decoded: Option<&DecodedText>) -> SourceDescription {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let own = frontmatter::read_document(bytes).ok();
    let fields = own.as_ref().map(frontmatter::Document::fields);
    let is_source = fields.is_some_and(|fields| Doctype::read(fields) == Some(Doctype::Source));
    let text = |name: &str| fields.and_then(|fields| fields.get(name)).and_then(Value::as_str).map(str::to_owned);
    let stated = |name: &str| text(name).filter(|_| is_source);
    let is_id = |id: &String| {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        (2..=96).contains(&id.len()) && id.chars().all(is_plain) && !id.starts_with('-')
    };
    let is_title = |title: &String| !title.trim().is_empty();
    let is_time = |at: &String| chrono::DateTime::parse_from_rfc3339(at).is_ok();
    let is_markdown = find_format(path) == Some(SourceFormat::Markdown);
    let body = own.as_ref().map(|own| own.body().to_owned());
    let whole = || std::str::from_utf8(bytes).ok().map(str::to_owned);
    let heading = || find_heading(&body.or_else(whole).filter(|_| is_markdown)?);
    SourceDescription {
        id: stated("id").filter(is_id).or_else(|| name_source(path)),
        title: text("title")
            .or_else(|| decoded?.title.clone())
            .filter(is_title)
            .or_else(heading)
            .unwrap_or_else(|| strip_date(stem).to_owned()),
        captured_at: stated("captured_at").filter(is_time),
    }
}

/// A name without the day at its beginning.
fn strip_date(stem: &str) -> &str {
    let is_day = |day: &str| chrono::NaiveDate::parse_from_str(day, "%Y-%m-%d").is_ok();
    let rest = stem.split_at_checked(10).filter(|(day, _)| is_day(day)).map(|(_, rest)| rest);
    rest.map(|rest| rest.trim_start_matches(['-', '_', ' '])).filter(|rest| !rest.is_empty()).unwrap_or(stem)
}

/// The first heading of the first level.
fn find_heading(text: &str) -> Option<String> {
    use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};
    let mut events = Parser::new(text)
        .skip_while(|event| !matches!(event, Event::Start(Tag::Heading { level, .. }) if *level == HeadingLevel::H1));
    events.next()?;
    let inner = events.take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    let words = inner.filter_map(|event| match event {
        Event::Text(text) | Event::Code(text) => Some(text.into_string()),
        Event::SoftBreak | Event::HardBreak => Some(" ".to_owned()),
        _ => None,
    });
    Some(words.collect::<String>().trim().to_owned()).filter(|title| !title.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wiki::registry::KeptText;

    #[test]
    fn text_is_taken_as_it_is_or_decoded() {
        let read = |path: &str, bytes: &[u8]| {
            decode_text(path, bytes)
                .map(|read| read.map(|read| (read.text, read.reader.split(' ').next().unwrap().to_owned())))
        };
        assert_eq!(read("sources/a.md", "Käse\r\n".as_bytes()), Ok(None));
        assert_eq!(read("a.TXT", b"\xff\xfeA\0\xe9\0"), Ok(Some(("Aé".to_owned(), "utf-16le".to_owned()))));
        assert_eq!(read("a.txt", b"\xfe\xff\0A"), Ok(Some(("A".to_owned(), "utf-16be".to_owned()))));
        for (path, bytes, expected) in [
            ("a.docx", &b"PK"[..], SourceTextError::Unsupported),
            ("a", b"text", SourceTextError::Unsupported),
            ("a.pdf", b"%PDF", SourceTextError::Unread),
            ("a.txt", b"K\xe4se", SourceTextError::NotText),
            ("a.txt", b"a\0b", SourceTextError::NotText),
            ("a.txt", b"\xff\xfeA", SourceTextError::NotText),
            ("a.txt", b" \n\t", SourceTextError::Empty),
        ] {
            assert_eq!(read(path, bytes), Err(expected), "{path} {bytes:?}");
        }
    }

    #[test]
    fn a_kept_text_is_read_back_and_another_one_is_refused() {
        let decoded = DecodedText { reader: "rustium-pdf 1".to_owned(), text: "The lease.\n".to_owned(), title: None };
        let kept = render_text_file(&decoded, "sha256:55a2");
        assert_eq!(kept, "rustium-pdf 1 sha256:55a2\nThe lease.\n");
        let source = |path: &str, text_file: Option<KeptText>| WikiSource {
            id: "lease".to_owned(),
            path: path.to_owned(),
            title: "Lease".to_owned(),
            captured_at: None,
            content_hash: "sha256:55a2".to_owned(),
            text_file,
            superseded_by: None,
        };
        let pinned = KeptText { path: "_text/lease.txt".to_owned(), hash: hash_content(kept.as_bytes()) };
        let pdf = source("sources/lease.pdf", Some(pinned));
        let read = read_source_text(&pdf, kept.clone().into_bytes()).unwrap();
        assert_eq!((read.as_str(), read.file.as_str(), read.is_markdown), ("The lease.\n", kept.as_str(), false));
        let edited = kept.replace("lease", "sale").into_bytes();
        assert_eq!(read_source_text(&pdf, edited), Err(SourceTextError::TextMutated));
        for path in ["sources/lease.pdf", "sources/lease.txt"] {
            let unread = read_source_text(&source(path, None), b"\xff\xfeA\0".to_vec());
            assert_eq!(unread, Err(SourceTextError::Unread), "{path}");
        }
        let plain = read_source_text(&source("sources/lease.md", None), b"# Lease".to_vec()).unwrap();
        assert_eq!((plain.as_str(), plain.is_markdown), ("# Lease", true));
    }

    #[test]
    fn a_source_describes_itself_or_is_named_after_its_file() {
        let describe = |path: &str, text: &str| {
            let found = describe_source(path, text.as_bytes(), None);
            (found.id.unwrap_or_default(), found.title, found.captured_at.unwrap_or_default())
        };
        let stated = "---\nschema: knowledge.source/v1\nid: letter\ntitle: A letter\ncaptured_at: \"2026-11-20T10:00:00Z\"\n---\n# Other\n";
        let expect = |id: &str, title: &str, at: &str| (id.to_owned(), title.to_owned(), at.to_owned());
        assert_eq!(describe("sources/x.md", stated), expect("letter", "A letter", "2026-11-20T10:00:00Z"));
        let hostile = "---\nschema: knowledge.source/v1\nid: \"<img src=x> [[evil]]\"\ntitle: \"\"\ncaptured_at: soon\n---\nText.\n";
        assert_eq!(describe("sources/plain.md", hostile), expect("plain", "plain", ""));
        let clipped = "---\ntitle: Clipped\nid: mine\n---\nText.\n";
        assert_eq!(describe("a/2026-11-20 Letter.md", clipped), expect("2026-11-20-letter", "Clipped", ""));
        assert_eq!(describe("a.md", "Intro\n\n# The *lease*\n\n# Two\n"), expect("", "The lease", ""));
        assert_eq!(describe("notes.txt", "# not a heading\n"), expect("notes", "notes", ""));
        assert_eq!(describe("2026-11-20-A letter.txt", "x"), expect("2026-11-20-a-letter", "A letter", ""));
        assert_eq!(describe("2026-11-20.txt", "x"), expect("2026-11-20", "2026-11-20", ""));
    }
}

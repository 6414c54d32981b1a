//! The text of a source: what quotes are searched in, and what a page is made of.
//!
//! Markdown and plain text in UTF-8 are read as they are, so offsets count in the file itself. Text in UTF-16 is decoded,
//! and the decoded text is kept beside the source, because offsets count in it.

use super::names::name_source;
use super::standard::Doctype;
use crate::record::frontmatter;
use serde_json::Value;

/// What a source is, by the ending of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceFormat {
    Markdown,
    PlainText,
}

/// A text that was read from a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    pub format: SourceFormat,
    pub text: String,
    /// How the bytes were read, if they are not the text themselves.
    pub reader: Option<&'static str>,
}

/// Why a source has no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceTextError {
    #[error("unsupported_type: only Markdown (.md, .markdown) and plain text (.txt, .text) are read so far")]
    Unsupported,
    #[error("not_text: it is not UTF-8, and not UTF-16 with a byte order mark: save it as UTF-8")]
    NotText,
    #[error("not_text: it holds nothing but blanks")]
    Empty,
    #[error("too_large: its text has more than {MAX_TEXT} characters: divide it")]
    TooLong,
}

/// The most characters of a text of which pages are made.
pub const MAX_TEXT: usize = 400_000;

/// The format of a file by its name; `None` for a file whose text is not read.
#[must_use]
pub fn find_format(path: &str) -> Option<SourceFormat> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (_, ending) = name.rsplit_once('.')?;
    match ending.to_ascii_lowercase().as_str() {
        "md" | "markdown" => Some(SourceFormat::Markdown),
        "txt" | "text" => Some(SourceFormat::PlainText),
        _ => None,
    }
}

/// Reads the text of a source.
///
/// # Errors
/// [`SourceTextError`].
pub fn read_source_text(path: &str, bytes: &[u8]) -> Result<SourceText, SourceTextError> {
    let format = find_format(path).ok_or(SourceTextError::Unsupported)?;
    let (text, reader) = match bytes {
        [0xff, 0xfe, rest @ ..] => (decode_utf16(rest, u16::from_le_bytes)?, Some("utf-16le")),
        [0xfe, 0xff, rest @ ..] => (decode_utf16(rest, u16::from_be_bytes)?, Some("utf-16be")),
        _ => (std::str::from_utf8(bytes).map_err(|_| SourceTextError::NotText)?.to_owned(), None),
    };
    match () {
        () if text.contains('\0') => Err(SourceTextError::NotText),
        () if text.trim_start_matches('\u{feff}').trim().is_empty() => Err(SourceTextError::Empty),
        () if text.len() > MAX_TEXT && text.chars().count() > MAX_TEXT => Err(SourceTextError::TooLong),
        () => Ok(SourceText { format, text, reader }),
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

/// The file with the text of a source that was decoded. Its first line says how, and of which bytes.
#[must_use]
pub fn render_text_file(reader: &str, content_hash: &str, text: &str) -> String {
    format!("{reader} {} {content_hash}\n{text}", env!("CARGO_PKG_VERSION"))
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

/// Describes a source by its path and its bytes.
#[must_use]
pub fn describe_source(path: &str, bytes: &[u8]) -> SourceDescription {
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
        title: text("title").filter(is_title).or_else(heading).unwrap_or_else(|| strip_date(stem).to_owned()),
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

    #[test]
    fn text_is_read_as_it_is_or_decoded() {
        let read = |path: &str, bytes: &[u8]| read_source_text(path, bytes).map(|read| (read.text, read.reader));
        assert_eq!(read("sources/a.md", "Käse\r\n".as_bytes()), Ok(("Käse\r\n".to_owned(), None)));
        assert_eq!(read("a.TXT", b"\xff\xfeA\0\xe9\0"), Ok(("Aé".to_owned(), Some("utf-16le"))));
        assert_eq!(read("a.txt", b"\xfe\xff\0A"), Ok(("A".to_owned(), Some("utf-16be"))));
        for (path, bytes, expected) in [
            ("a.pdf", &b"%PDF"[..], SourceTextError::Unsupported),
            ("a", b"text", SourceTextError::Unsupported),
            ("a.txt", b"K\xe4se", SourceTextError::NotText),
            ("a.txt", b"a\0b", SourceTextError::NotText),
            ("a.txt", b"\xff\xfeA", SourceTextError::NotText),
            ("a.txt", b" \n\t", SourceTextError::Empty),
        ] {
            assert_eq!(read(path, bytes), Err(expected), "{path} {bytes:?}");
        }
    }

    #[test]
    fn a_source_describes_itself_or_is_named_after_its_file() {
        let describe = |path: &str, text: &str| {
            let found = describe_source(path, text.as_bytes());
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

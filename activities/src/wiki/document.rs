//! Takes the text out of an HTML or PDF document.
//!
//! A hostile document can make any reader loop, crash or take all memory, so this runs in a process of its own, which
//! [`super::reader`] starts and ends. It must not open a file or the network.

use dom_smoothie::{Config, ParsePolicy, Readability, TextMode};
use encoding_rs::Encoding;
use rustium_pdf::Document;
use rustium_pdf::page::Glyph;
use serde::{Deserialize, Serialize};
use steward_domain::wiki::source_text::{DecodedText, SourceFormat};
use unicode_normalization::UnicodeNormalization;

/// The readers and their versions, as the text of a source names them.
pub(super) const HTML_READER: &str = "dom_smoothie 0.19.0";
pub(super) const PDF_READER: &str = "rustium-pdf 0.1.1";
/// How many bytes of a page may declare its encoding, as in the HTML standard.
const DECLARATION: usize = 1_024;
/// From which step down on a glyph begins another line, and from which another paragraph, in sizes of its font.
const LINE_GAP: f32 = 0.55;
const PARAGRAPH_GAP: f32 = 1.75;
/// From which difference of sizes on two lines are no paragraph: a heading.
const OTHER_SIZE: f32 = 0.15;
/// The most elements of an HTML page.
const MAX_ELEMENTS: usize = 100_000;

/// What the process prints as JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentReading {
    Text { text: String, title: Option<String> },
    Unreadable(String),
}

/// Reads a document. The words of an error are ours.
#[must_use]
pub fn read_document(format: SourceFormat, bytes: &[u8]) -> DocumentReading {
    let read = match format {
        SourceFormat::Html => read_html(bytes),
        SourceFormat::Pdf => read_pdf(bytes),
        SourceFormat::Markdown | SourceFormat::PlainText => Err("it needs no reader".to_owned()),
    };
    match read {
        Ok((text, title)) => DocumentReading::Text { text, title },
        Err(reason) => DocumentReading::Unreadable(reason),
    }
}

impl DocumentReading {
    /// The text with the name of the reader.
    pub(super) fn into_decoded(self, format: SourceFormat) -> Result<DecodedText, String> {
        let reader = if format == SourceFormat::Pdf { PDF_READER } else { HTML_READER };
        match self {
            Self::Text { text, title } => Ok(DecodedText { reader: reader.to_owned(), text, title }),
            Self::Unreadable(reason) => Err(format!("text_unreadable: {reason}")),
        }
    }
}

/// The readable part of a page as Markdown, and the title that it gives itself.
fn read_html(bytes: &[u8]) -> Result<(String, Option<String>), String> {
    let html = decode_html(bytes).ok_or("not_text: its encoding is not declared, and it is not UTF-8")?;
    let config = Config { text_mode: TextMode::Markdown, max_elements_to_parse: MAX_ELEMENTS, ..Config::default() };
    let failed = |e: dom_smoothie::ReadabilityError| format!("no readable part was found: {e}");
    let mut page = Readability::new(html.as_str(), None, Some(config)).map_err(failed)?;
    // A short page has no part that stands out; then it is taken as it is.
    let article = page.parse().or_else(|_| page.parse_with_policy(ParsePolicy::Raw)).map_err(failed)?;
    let title = article.title.trim().to_owned();
    Ok((tidy_lines(&article.text_content), Some(title).filter(|title| !title.is_empty())))
}

/// The text of a page whose encoding is declared or certain.
fn decode_html(bytes: &[u8]) -> Option<String> {
    if let Some((encoding, length)) = Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling_and_without_replacement(&bytes[length..]).map(Into::into);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Some(text.to_owned());
    }
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(DECLARATION)]).to_lowercase();
    let declared = start.split("charset=").nth(1)?.trim_start_matches(['"', '\'']);
    let label: String = declared.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_:.".contains(*c)).collect();
    let encoding = Encoding::for_label(label.as_bytes())?;
    encoding.decode_without_bom_handling_and_without_replacement(bytes).map(Into::into)
}

/// The text of a PDF, with a form feed between its pages.
fn read_pdf(bytes: &[u8]) -> Result<(String, Option<String>), String> {
    let failed = |_| "the PDF is damaged or encrypted".to_owned();
    let document = Document::from_bytes(bytes.to_vec(), None).map_err(failed)?;
    let read = |number| document.page(number).map(|page| tidy_lines(&read_glyphs(&page.glyphs)));
    let pages: Vec<String> = (0..document.page_count()).map(read).collect::<Result<_, _>>().map_err(failed)?;
    if pages.iter().all(|page| page.trim().is_empty()) {
        return Err("the PDF holds no text, as one that was scanned: give it a text layer first".to_owned());
    }
    Ok((pages.join("\u{c}"), None))
}

/// The text of a page, in lines and paragraphs as they are placed.
fn read_glyphs(glyphs: &[Glyph]) -> String {
    let (mut text, mut last) = (String::new(), None::<&Glyph>);
    for glyph in glyphs.iter().filter(|glyph| !glyph.text.is_empty()) {
        if let Some(last) = last {
            let size = last.font_size.max(glyph.font_size).max(f32::EPSILON);
            let (along, across) = (glyph.origin.x - last.origin.x, (glyph.origin.y - last.origin.y).abs());
            let is_other_size = (last.font_size - glyph.font_size).abs() > size * OTHER_SIZE;
            match across > size * LINE_GAP || along < -size {
                true if across > size * PARAGRAPH_GAP || is_other_size => text.push_str("\n\n"),
                true => text.push('\n'),
                false => {}
            }
        }
        // A ligature is one sign of the font, and several letters for a reader.
        let letters =
            |c: char| if ('\u{fb00}'..='\u{fb06}').contains(&c) { c.nfkc().collect() } else { String::from(c) };
        text.extend(glyph.text.chars().map(letters));
        last = Some(glyph);
    }
    text
}

/// A text without blanks at the ends of lines, with at most one empty line in a row, and without what a reader cannot see.
fn tidy_lines(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    let mut is_empty_before = true;
    for line in text.lines() {
        let line: String = line.chars().filter(|c| !c.is_control() || *c == '\t').collect();
        let line = line.trim_end();
        if !(line.is_empty() && is_empty_before) {
            tidy.push_str(line);
            tidy.push('\n');
        }
        is_empty_before = line.is_empty();
    }
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(format: SourceFormat, bytes: &[u8]) -> Result<DecodedText, String> {
        read_document(format, bytes).into_decoded(format)
    }

    const PAGE: &str = "<!doctype html><html><head><title>The lease</title><style>p{}</style></head><body><nav><a href=/>Home</a></nav>\
        <article><h1>The lease</h1><p>The lease of <b>Plot 12</b> ends on 31 March 2027.</p><h2>Water</h2>\
        <p>A stopcock is a valve.</p><script>alert(1)</script></article></body></html>";

    #[test]
    fn a_page_becomes_markdown_without_scripts() {
        let decoded = read(SourceFormat::Html, PAGE.as_bytes()).unwrap();
        assert_eq!(decoded.title.as_deref(), Some("The lease"));
        for part in ["ends on 31 March 2027.", "## Water", "A stopcock is a valve."] {
            assert!(decoded.text.contains(part), "{}", decoded.text);
        }
        assert!(!decoded.text.contains("alert") && !decoded.text.contains('<'), "{}", decoded.text);
    }

    #[test]
    fn an_encoding_is_declared_or_certain() {
        let declared = b"<html><head><meta charset=\"windows-1252\"></head><body><p>K\xe4se vom Hof.</p></body></html>";
        assert!(read(SourceFormat::Html, declared).unwrap().text.contains("Käse vom Hof."));
        let undeclared = b"<html><body><p>K\xe4se vom Hof.</p></body></html>";
        assert!(read(SourceFormat::Html, undeclared).unwrap_err().contains("not_text"));
        let utf16: Vec<u8> =
            [0xff, 0xfe].into_iter().chain("<p>Käse vom Hof.</p>".encode_utf16().flat_map(u16::to_le_bytes)).collect();
        assert!(read(SourceFormat::Html, &utf16).unwrap().text.contains("Käse vom Hof."));
    }

    #[test]
    fn the_pages_of_a_pdf_are_divided_by_form_feeds() {
        let pdf = steward_tests::pdf::render_pdf(&[&["The lease ends.", "It was long."], &["Page two."]]);
        let decoded = read(SourceFormat::Pdf, &pdf).unwrap();
        let pages: Vec<&str> = decoded.text.split('\u{c}').map(str::trim).collect();
        let [first, second] = pages.as_slice() else { panic!("{pages:?}") };
        assert!(first.contains("The lease ends.") && first.contains("It was long."), "{pages:?}");
        assert_eq!(*second, "Page two.");
    }

    #[test]
    fn a_pdf_without_text_is_named() {
        let empty = steward_tests::pdf::render_pdf(&[&[]]);
        assert!(read(SourceFormat::Pdf, &empty).unwrap_err().contains("holds no text"));
        let damaged = read(SourceFormat::Pdf, b"%PDF-1.4 nothing else").unwrap_err();
        assert!(damaged.starts_with("text_unreadable: the PDF"), "{damaged}");
    }

    #[test]
    fn the_readers_are_named_with_the_versions_that_are_built_in() {
        let lock = include_str!("../../../Cargo.lock");
        for reader in [HTML_READER, PDF_READER] {
            let (name, version) = reader.split_once(' ').unwrap();
            assert!(lock.contains(&format!("name = \"{name}\"\nversion = \"{version}\"\n")), "{reader}");
        }
    }
}

//! Quotes: the verbatim words of a source on which a statement rests.
//!
//! A writer gives a quote. Code finds it in the source, where any run of blanks counts as one, and takes the source's own
//! words from there. The label of the quote follows from these words and the source's id, so anybody who has the source can
//! compute it again. The footnote of a page holds the label, the id and the words.

use crate::record::plain_text::{escape_markdown, is_unseen, unescape_markdown};
use memchr::memmem;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The fewest and the most characters of a quote.
pub const MIN_QUOTE: usize = 8;
pub const MAX_QUOTE: usize = 400;
/// Between the id of the source and the words, in a footnote.
const SEPARATOR: &str = " — ";

/// A text of a source in which quotes are found.
#[derive(Clone, Debug)]
pub struct QuoteFinder<'t> {
    text: &'t str,
    /// Where the text begins in its file, in bytes. Places count from the start of the file.
    base: usize,
    /// The text with one space for each run of blanks.
    collapsed: String,
    /// The runs that are not a single space, in their order.
    runs: Vec<BlankRun>,
}

/// A run of blanks in a text.
#[derive(Clone, Copy, Debug)]
struct BlankRun {
    /// Where its space stands in the collapsed text.
    at: usize,
    /// How many bytes it and the runs before it lost.
    lost: usize,
}

/// The part of a source that a quote names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SourceSlice {
    /// In bytes, from the start of the text.
    pub offset: usize,
    /// In bytes.
    pub length: usize,
}

/// Why a quote cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuoteError {
    #[error("a quote has {MIN_QUOTE} to {MAX_QUOTE} characters, and this one {0}")]
    Length(usize),
    #[error("not in the source")]
    Absent,
    #[error("its words in the source hold a character that cannot be seen: quote a part without it")]
    Unseen,
}

impl<'t> QuoteFinder<'t> {
    /// Whether words stand in the text, where any run of blanks counts as one.
    #[must_use]
    pub fn holds(&self, words: &str) -> bool {
        self.collapsed.contains(collapse_blanks(words).trim())
    }

    /// The words around a slice, and the slice between them.
    #[must_use]
    pub fn split_around(&self, slice: SourceSlice) -> Option<(&'t str, &'t str, &'t str)> {
        let (before, rest) = self.text.split_at_checked(slice.offset.checked_sub(self.base)?)?;
        let (inner, after) = rest.split_at_checked(slice.length)?;
        Some((before, inner, after))
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// Reads a text once.
    #[must_use]
    pub fn new(text: &'t str) -> Self {
        Self::with_base(text, 0)
    }

    /// Reads a text that begins so many bytes after the start of its file.
    #[must_use]
    pub fn with_base(text: &'t str, base: usize) -> Self {
        let mut finder = Self { text, base, collapsed: String::with_capacity(text.len()), runs: Vec::new() };
        let (mut blank, mut lost) = (None, 0);
        for (at, c) in text.char_indices().chain([(text.len(), '.')]) {
            match (c.is_whitespace(), blank) {
                (true, None) => blank = Some(at),
                (false, Some(begin)) => {
                    let length = at - begin;
                    if length > 1 {
                        lost += length - 1;
                        finder.runs.push(BlankRun { at: finder.collapsed.len(), lost });
                    }
                    finder.collapsed.push(' ');
                    blank = None;
                }
                (true, Some(_)) | (false, None) => {}
            }
            if !c.is_whitespace() && at < text.len() {
                finder.collapsed.push(c);
            }
        }
        finder
    }

    /// Finds the first place of a quote.
    ///
    /// # Errors
    /// [`QuoteError`].
    pub fn find_quote(&self, quote: &str) -> Result<SourceSlice, QuoteError> {
        let words = collapse_blanks(quote);
        let count = words.chars().count();
        if !(MIN_QUOTE..=MAX_QUOTE).contains(&count) {
            return Err(QuoteError::Length(count));
        }
        let begin = memmem::find(self.collapsed.as_bytes(), words.as_bytes()).ok_or(QuoteError::Absent)?;
        let (first, last) = (self.map_back(begin), self.map_back(begin + words.len()));
        if words.chars().any(is_unseen) {
            return Err(QuoteError::Unseen);
        }
        Ok(SourceSlice { offset: self.base + first, length: last - first })
    }

    /// The source's own words at a slice.
    #[must_use]
    pub fn read_slice(&self, slice: SourceSlice) -> Option<&'t str> {
        let begin = slice.offset.checked_sub(self.base)?;
        self.text.get(begin..begin + slice.length)
    }

    /// The place in the text for one in the collapsed text.
    fn map_back(&self, at: usize) -> usize {
        let before = self.runs.partition_point(|run| run.at < at);
        at + before.checked_sub(1).map_or(0, |last| self.runs[last].lost)
    }
}

/// The text with one space for each run of blanks, and none at its ends.
#[must_use]
pub fn collapse_blanks(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A footnote that names the words of a source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Anchor {
    pub label: String,
    /// The id of the source.
    pub source: String,
    /// The words, with one space for each run of blanks.
    pub quote: String,
}

impl Anchor {
    /// The anchor of these words of a source.
    #[must_use]
    pub fn new(source: &str, slice: &str) -> Self {
        let quote = collapse_blanks(slice);
        Self { label: compute_label(source, &quote), source: source.to_owned(), quote }
    }

    /// The line of the footnote, without a line break.
    #[must_use]
    pub fn render(&self) -> String {
        let words = escape_markdown(&self.quote).replace('"', "\\\"");
        format!("[^{}]: {}{SEPARATOR}\"{words}\"", self.label, self.source)
    }

    /// Reads the text of a footnote, which follows its label. `None` if it does not have the form of a quote.
    #[must_use]
    pub fn parse(label: &str, text: &str) -> Option<Self> {
        let (source, words) = text.trim().split_once(SEPARATOR)?;
        let words = words.trim().strip_prefix('"')?.strip_suffix('"')?;
        // A quotation mark behind an odd number of backslashes belongs to the words.
        let backslashes = words.len() - words.trim_end_matches('\\').len();
        if backslashes % 2 == 1 {
            return None;
        }
        let source = source.trim();
        let is_id = !source.is_empty() && !source.contains(char::is_whitespace);
        is_id.then(|| Self {
            label: label.to_owned(),
            source: source.to_owned(),
            quote: collapse_blanks(&unescape_markdown(words)),
        })
    }

    /// Whether the label follows from the id and the words, so that nobody edited them.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.label == compute_label(&self.source, &self.quote)
    }
}

/// `c` and the first 8 hex digits of sha256(source id, NUL, words with single spaces).
fn compute_label(source: &str, quote: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(source.as_bytes());
    hash.update([0]);
    hash.update(quote.as_bytes());
    let digits: String = hash.finalize().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("c{digits}")
}

/// Whether a label of a footnote is one that code gave to a quote.
#[must_use]
pub fn is_quote_label(label: &str) -> bool {
    let digits = label.strip_prefix('c').unwrap_or_default();
    digits.len() == 8 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_label_is_what_a_hash_tool_gives() {
        // printf '2024-03-02-lease\0The lease of plot 12 ends on 31 March 2027.' | sha256sum
        let anchor = Anchor::new("2024-03-02-lease", "The lease of plot 12\n  ends on 31 March 2027.");
        assert_eq!(anchor.label, "c6107d23f");
        let line = "[^c6107d23f]: 2024-03-02-lease — \"The lease of plot 12 ends on 31 March 2027.\"";
        assert_eq!(anchor.render(), line);
        assert!(is_quote_label("c6107d23f") && !is_quote_label("c6107d23") && !is_quote_label("1"));
    }

    #[test]
    fn a_quote_is_found_over_line_breaks_and_its_bytes_are_the_sources_own() {
        let text = "A.\r\n\r\nThe  lease of\u{a0}\u{a0}plot 12\n\tends on 31 March 2027.\n";
        let finder = QuoteFinder::new(text);
        let slice = finder.find_quote(" lease of plot 12 ends on 31 March ").unwrap();
        assert_eq!(finder.read_slice(slice), Some("lease of\u{a0}\u{a0}plot 12\n\tends on 31 March"));
        assert_eq!(finder.find_quote("lease of plot 13"), Err(QuoteError::Absent));
        assert_eq!(finder.find_quote("lease"), Err(QuoteError::Length(5)));
        let hidden = QuoteFinder::new("the lease\u{202e} of plot 12");
        assert_eq!(hidden.find_quote("the lease\u{202e} of plot"), Err(QuoteError::Unseen));
    }

    #[test]
    fn an_edited_quote_is_noticed() {
        let anchor = Anchor::new("lease", "The lease ends \"soon\" [1].");
        let (label, text) = anchor.render().split_once("]: ").map(|(a, b)| (a[2..].to_owned(), b.to_owned())).unwrap();
        assert_eq!(Anchor::parse(&label, &text), Some(anchor));
        assert!(!Anchor::parse(&label, &text.replace("soon", "late")).unwrap().is_intact());
        for text in ["lease", "lease — soon", "a lease — \"soon enough\"", "lease — \"soon\\\""] {
            assert_eq!(Anchor::parse("1", text), None, "{text}");
        }
    }

    /// What a reader of Markdown sees in the footnote of an anchor.
    fn read_footnote(anchor: &Anchor) -> String {
        use pulldown_cmark::{Event, Options, Parser, Tag};
        let text = format!("A.[^{}]\n\n{}\n", anchor.label, anchor.render());
        let options = Options::ENABLE_FOOTNOTES | Options::ENABLE_TABLES | Options::ENABLE_WIKILINKS;
        let events = Parser::new_ext(&text, options);
        let below = events.skip_while(|event| !matches!(event, Event::Start(Tag::FootnoteDefinition(_))));
        below
            .map(|event| match event {
                Event::Text(text) => text.into_string(),
                Event::Start(Tag::FootnoteDefinition(_) | Tag::Paragraph) | Event::End(_) => String::new(),
                other => format!("{other:?}"),
            })
            .collect()
    }

    proptest! {
        #[test]
        fn every_part_of_a_text_is_found_at_its_first_place(
            text in "[ab .\n\t\u{a0}é\"\\\\\\[*|#%=~-]{12,60}",
            begin in 0usize..40,
            length in 8usize..30,
        ) {
            let chars: Vec<char> = text.chars().collect();
            let part: String = chars.iter().skip(begin).take(length).collect();
            let words = collapse_blanks(&part);
            prop_assume!(words.chars().count() >= MIN_QUOTE);
            let finder = QuoteFinder::new(&text);
            let slice = finder.find_quote(&part).unwrap();
            let found = finder.read_slice(slice).unwrap();
            prop_assert_eq!(collapse_blanks(found), words.clone());
            let is_earlier = |(at, c): (usize, char)| {
                at < slice.offset && !c.is_whitespace() && collapse_blanks(&text[at..]).starts_with(&words)
            };
            prop_assert!(!text.char_indices().any(is_earlier), "{:?}", slice);
            let anchor = Anchor::new("a-source", found);
            let line = anchor.render();
            let read = Anchor::parse(&anchor.label, line.split_once("]: ").unwrap().1).unwrap();
            prop_assert!(read.is_intact());
            prop_assert_eq!(read_footnote(&anchor), format!("a-source — \"{words}\""));
        }
    }
}

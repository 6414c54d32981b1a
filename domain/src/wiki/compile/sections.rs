//! Splits the text of a source into sections, and these into sentences with their places in the source.
//!
//! Code, tables and HTML hold no sentences. A sentence ends at a full stop, a question mark or an exclamation mark; a few
//! abbreviations and ordinals do not end one.

use crate::wiki::body::PAGE_MARKDOWN;
use crate::wiki::source_text::SourceText;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::ops::Range;

/// Words before a full stop that end no sentence.
const ABBREVIATIONS: [&str; 22] = [
    "dr", "mr", "mrs", "ms", "prof", "st", "no", "nr", "vs", "approx", "ca", "bzw", "usw", "inc", "ltd", "co", "fig",
    "cf", "art", "abs", "str", "tel",
];

/// The months before which a number with a full stop is a date.
const MONTHS: [&str; 16] = [
    "januar",
    "january",
    "februar",
    "february",
    "märz",
    "march",
    "april",
    "mai",
    "may",
    "juni",
    "juli",
    "august",
    "september",
    "oktober",
    "november",
    "dezember",
];

/// Stands where a reader sees something that the text lacks, such as HTML or a picture. A sentence with it is left out.
const GAP: &str = "\0";

/// A sentence of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sentence {
    /// As a reader sees it, on one line.
    pub(super) text: String,
    /// The source's own words, with its markup.
    pub(super) slice: String,
}

/// A heading and what stands below it, up to the next heading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    /// Empty for what stands above the first heading.
    pub(super) heading: String,
    pub(super) sentences: Vec<Sentence>,
}

/// Splits a source. Sections without a heading and a sentence are left out.
pub(super) fn split_sections(source: &SourceText) -> Vec<Section> {
    let text = source.as_str();
    let mut sections = if source.is_markdown { split_markdown(text) } else { vec![split_plain(text)] };
    sections.retain(|section| !section.heading.is_empty() || !section.sentences.is_empty());
    sections
}

fn split_plain(text: &str) -> Section {
    let mut section = Section::default();
    let mut offset = 0;
    let mut paragraph = SeenText::default();
    for line in text.split_inclusive('\n') {
        let words = line.trim();
        if words.is_empty() {
            section.sentences.extend(std::mem::take(&mut paragraph).split_sentences(text));
        } else {
            let begin = offset + line.len() - line.trim_start().len();
            paragraph.push_break();
            paragraph.push(words, begin..begin + words.len());
        }
        offset += line.len();
    }
    section.sentences.extend(paragraph.split_sentences(text));
    section
}

fn split_markdown(text: &str) -> Vec<Section> {
    let options = PAGE_MARKDOWN.union(Options::ENABLE_YAML_STYLE_METADATA_BLOCKS);
    let mut sections = vec![Section::default()];
    let (mut seen, mut skipped, mut is_heading) = (SeenText::default(), 0usize, false);
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(tag) if is_skipped(&tag) => {
                if skipped == 0 {
                    seen.push_marked(GAP, range);
                }
                skipped += 1;
            }
            Event::End(tag) if is_skipped_end(tag) => skipped = skipped.saturating_sub(1),
            _ if skipped > 0 => {}
            Event::Start(Tag::Heading { .. }) => {
                flush(&mut sections, &mut seen, text);
                is_heading = true;
            }
            Event::End(TagEnd::Heading(_)) => {
                let heading = std::mem::take(&mut seen).text.replace(GAP, " ").trim().to_owned();
                sections.push(Section { heading, sentences: Vec::new() });
                is_heading = false;
            }
            Event::Text(words) => seen.push(&words, range),
            // The marks around code belong to its words in the source.
            Event::Code(words) => seen.push_marked(&words, range),
            Event::SoftBreak | Event::HardBreak => seen.push_break(),
            Event::InlineHtml(_) | Event::Html(_) => seen.push_marked(GAP, range),
            Event::Rule => flush(&mut sections, &mut seen, text),
            Event::Start(Tag::Paragraph | Tag::Item | Tag::List(_))
            | Event::End(TagEnd::Paragraph | TagEnd::Item | TagEnd::List(_))
                if !is_heading =>
            {
                flush(&mut sections, &mut seen, text);
            }
            _ => {}
        }
    }
    flush(&mut sections, &mut seen, text);
    sections
}

fn flush(sections: &mut [Section], seen: &mut SeenText, text: &str) {
    if let Some(last) = sections.last_mut() {
        last.sentences.extend(std::mem::take(seen).split_sentences(text));
    }
}

fn is_skipped(tag: &Tag<'_>) -> bool {
    matches!(
        tag,
        Tag::CodeBlock(_)
            | Tag::HtmlBlock
            | Tag::Table(_)
            | Tag::FootnoteDefinition(_)
            | Tag::MetadataBlock(_)
            | Tag::Image { .. }
    )
}

fn is_skipped_end(tag: TagEnd) -> bool {
    matches!(
        tag,
        TagEnd::CodeBlock
            | TagEnd::HtmlBlock
            | TagEnd::Table
            | TagEnd::FootnoteDefinition
            | TagEnd::MetadataBlock(_)
            | TagEnd::Image
    )
}

/// The text of a paragraph as a reader sees it, and where its pieces stand in the source.
#[derive(Default)]
struct SeenText {
    text: String,
    pieces: Vec<TextPiece>,
}

/// A piece of a text.
struct TextPiece {
    seen: Range<usize>,
    source: Range<usize>,
    /// Whether the source has the same bytes.
    is_same: bool,
}

impl SeenText {
    fn push(&mut self, words: &str, source: Range<usize>) {
        let begin = self.text.len();
        self.text.push_str(words);
        let is_same = words.len() == source.len();
        self.pieces.push(TextPiece { seen: begin..self.text.len(), source, is_same });
    }

    fn push_marked(&mut self, words: &str, source: Range<usize>) {
        let begin = self.text.len();
        self.text.push_str(words);
        self.pieces.push(TextPiece { seen: begin..self.text.len(), source, is_same: false });
    }

    fn push_break(&mut self) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
    }

    fn split_sentences(self, source: &str) -> Vec<Sentence> {
        let mut sentences = Vec::new();
        let mut begin = 0;
        for end in find_ends(&self.text) {
            let words = &self.text[begin..end];
            let first = begin + words.len() - words.trim_start().len();
            let last = begin + words.trim_end().len();
            begin = end;
            if first >= last || self.text[first..last].contains(GAP) {
                continue;
            }
            let slice = self.map_back(first..last).and_then(|range| source.get(widen(source, range)));
            let text = self.text[first..last].split_whitespace().collect::<Vec<_>>().join(" ");
            sentences.extend(slice.map(|slice| Sentence { text, slice: slice.to_owned() }));
        }
        sentences
    }

    /// The place in the source of a part of the text.
    fn map_back(&self, part: Range<usize>) -> Option<Range<usize>> {
        let first = self.pieces.get(self.pieces.partition_point(|piece| piece.seen.end <= part.start))?;
        let last = self.pieces.partition_point(|piece| piece.seen.start < part.end).checked_sub(1)?;
        let last = self.pieces.get(last)?;
        let begin = match first.is_same {
            true => first.source.start + part.start.saturating_sub(first.seen.start),
            false => first.source.start,
        };
        let end = match last.is_same {
            true => last.source.end - last.seen.end.saturating_sub(part.end),
            false => last.source.end,
        };
        (begin < end).then_some(begin..end)
    }
}

/// The range with the marks of emphasis, code and links at its ends.
fn widen(source: &str, range: Range<usize>) -> Range<usize> {
    let is_mark = |c: char| matches!(c, '*' | '_' | '~' | '`' | '[' | ']');
    let begin = source[..range.start].trim_end_matches(|c| is_mark(c) && c != ']').len();
    let rest = source[range.end..].trim_start_matches(|c| is_mark(c) && c != '[');
    let mut end = source.len() - rest.len();
    let is_link = source[..end].ends_with(']') && end > range.end && rest.starts_with('(');
    let closing = if is_link { rest.find([')', '\n']).filter(|at| rest[*at..].starts_with(')')) } else { None };
    end += closing.map_or(0, |closing| closing + 1);
    begin..end
}

/// Where the sentences of a text end.
fn find_ends(text: &str) -> Vec<usize> {
    let mut ends: Vec<usize> = text
        .char_indices()
        .filter(|(_, c)| matches!(c, '.' | '?' | '!' | '。' | '？' | '！'))
        .filter_map(|(at, c)| {
            let end = at + c.len_utf8();
            // Closing quotes and brackets belong to the sentence.
            let closed = text[end..].find(|c| !matches!(c, '"' | '\'' | ')' | ']' | '”' | '’' | '»')).map(|n| end + n);
            let end = closed.unwrap_or(text.len());
            let mut next = text[end..].chars();
            let is_apart = !c.is_ascii() || next.next().is_none_or(char::is_whitespace);
            let goes_on = text[end..].trim_start().starts_with(char::is_lowercase);
            let is_short = || is_abbreviation(&text[..at]) || is_date(&text[..at], &text[end..]);
            (is_apart && !goes_on && !(c == '.' && is_short())).then_some(end)
        })
        .collect();
    if ends.last() != Some(&text.len()) {
        ends.push(text.len());
    }
    ends.dedup();
    ends
}

/// Whether the word before a full stop is an abbreviation or an initial.
fn is_abbreviation(before: &str) -> bool {
    let word = read_last_word(before);
    let is_initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    is_initial || ABBREVIATIONS.contains(&word.to_lowercase().as_str())
}

/// Whether a full stop stands in a date, as in `31. March`.
fn is_date(before: &str, after: &str) -> bool {
    let day = read_last_word(before);
    let next = after.split_whitespace().next().unwrap_or_default().to_lowercase();
    let is_day = matches!(day.len(), 1 | 2) && day.bytes().all(|b| b.is_ascii_digit());
    is_day && MONTHS.contains(&next.trim_matches(|c: char| !c.is_alphabetic()))
}

fn read_last_word(text: &str) -> &str {
    text.rsplit(|c: char| c.is_whitespace() || matches!(c, '(' | '.')).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(is_markdown: bool, text: &str) -> Vec<(String, Vec<String>)> {
        let sections = split_sections(&SourceText::from_text(text, is_markdown));
        let texts = |sentences: Vec<Sentence>| sentences.into_iter().map(|one| one.text).collect();
        sections.into_iter().map(|section| (section.heading, texts(section.sentences))).collect()
    }

    fn check(found: Vec<(String, Vec<String>)>, expected: &[(&str, &[&str])]) {
        let expected: Vec<(String, Vec<String>)> = expected
            .iter()
            .map(|(heading, all)| ((*heading).to_owned(), all.iter().map(|one| (*one).to_owned()).collect()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn markdown_becomes_sections_of_sentences() {
        let text = "---\ntitle: x\n---\nDr. A. Bell wrote on 31. March 2027. The **lease** ends\nsoon! Is it?\n\n# The [lease](a.md)\n\n- First item\n- \"Second.\" It is\n  `code`. \n\n```\nNo sentence.\n```\n\n## Empty\n";
        check(
            split(true, text),
            &[
                ("", &["Dr. A. Bell wrote on 31. March 2027.", "The lease ends soon!", "Is it?"]),
                ("The lease", &["First item", "\"Second.\"", "It is code."]),
                ("Empty", &[]),
            ],
        );
        let sections = split_sections(&SourceText::from_text(text, true));
        assert_eq!(sections[0].sentences[1].slice, "The **lease** ends\nsoon!");
        assert_eq!(sections[1].sentences[2].slice, "It is\n  `code`.");
    }

    #[test]
    fn a_sentence_that_would_read_otherwise_is_left_out() {
        let text = "It holds 10<sup>6</sup> litres. Pay 10<br>20 pieces. Whole.\n\n- Fee 10\n  ***\n  0 paid\n\nSee ![10](a.png)20. End.\n";
        check(split(true, text), &[("", &["Whole.", "Fee 10", "0 paid", "End."])]);
    }

    #[test]
    fn plain_text_is_one_section() {
        let text = "  One sentence\nover two lines. Two.\r\n\r\n# Not a heading";
        check(split(false, text), &[("", &["One sentence over two lines.", "Two.", "# Not a heading"])]);
    }

    proptest! {
        #[test]
        fn every_slice_stands_in_the_source(text in "([a-c.?! *_`&;\\[\\]()>#-]|\n|é|。|&amp;|\\\\\\*){0,80}") {
            for is_markdown in [true, false] {
                for section in split_sections(&SourceText::from_text(&text, is_markdown)) {
                    for sentence in section.sentences {
                        prop_assert!(text.contains(&sentence.slice), "{:?}", sentence);
                    }
                }
            }
        }
    }
}

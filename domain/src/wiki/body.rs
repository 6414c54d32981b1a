//! What the Markdown of a page holds: links, disputed blocks, callouts and the first sentence.
//!
//! Code, comments and escaped text hold none of them. A line counts from 1 at the first line of the body.

use super::compile::EXTRACT_LINE;
use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};
use std::ops::Range;

/// The opening line of a block that shows two sides, as in `::: disputed`.
const CONTAINER: &str = ":::";
const DISPUTED: &str = "disputed";
/// How the callout of a contradiction begins. Some editors leave the second character out.
const CALLOUTS: [&str; 2] = ["⚠️ Contradiction", "⚠ Contradiction"];

/// The extensions of Markdown with which a page is read.
pub(super) const PAGE_MARKDOWN: Options =
    Options::ENABLE_WIKILINKS.union(Options::ENABLE_FOOTNOTES).union(Options::ENABLE_TABLES);

/// A link to another page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageLink {
    pub target: LinkTarget,
    /// In the body, from 1.
    pub line: usize,
}

/// What a link names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkTarget {
    /// `[[slug]]` or `[[Title]]`, without its shown text, and perhaps with a heading after `#`.
    Name(String),
    /// The relative path of a file, without its heading.
    Path(String),
}

impl PageLink {
    /// The name of a page that it names, without a heading.
    #[must_use]
    pub fn page_name(&self) -> Option<&str> {
        match &self.target {
            LinkTarget::Name(name) => Some(name.split('#').next().unwrap_or(name).trim()),
            LinkTarget::Path(_) => None,
        }
    }
}

/// A `::: disputed` block, by its first and its last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisputedBlock {
    pub first: usize,
    pub last: usize,
}

/// The contents of a body, as far as code looks at them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BodyFacts {
    pub links: Vec<PageLink>,
    /// The first sentence of the first paragraph, as plain text.
    pub first_sentence: Option<String>,
    pub disputed: Vec<DisputedBlock>,
    /// The lines of callouts that say that there is a contradiction.
    pub callouts: Vec<usize>,
}

/// Reads a body.
pub(super) fn read_body(text: &str) -> BodyFacts {
    let mut reader = BodyReader { lines: LineStarts::new(text), ..BodyReader::default() };
    for (event, range) in Parser::new_ext(text, PAGE_MARKDOWN).into_offset_iter() {
        reader.read_event(event, &range);
    }
    reader.find_containers(text);
    reader.facts
}

#[derive(Default)]
struct BodyReader {
    lines: LineStarts,
    facts: BodyFacts,
    /// Where code and HTML stand.
    opaque: Vec<Range<usize>>,
    /// The text of the open paragraph or heading.
    text: String,
    /// How many quotes, lists, tables and footnotes are open.
    depth: usize,
    is_quoted: bool,
}

impl BodyReader {
    fn read_event(&mut self, event: Event<'_>, range: &Range<usize>) {
        match event {
            Event::Start(tag) => self.open_tag(&tag, range),
            Event::End(tag) => self.close_tag(tag, range),
            Event::Text(text) | Event::Code(text) => self.text.push_str(&text),
            Event::SoftBreak | Event::HardBreak => self.text.push(' '),
            Event::Html(_) | Event::InlineHtml(_) => self.opaque.push(range.clone()),
            _ => {}
        }
    }

    fn open_tag(&mut self, tag: &Tag<'_>, range: &Range<usize>) {
        match tag {
            Tag::Paragraph | Tag::Heading { .. } => self.text.clear(),
            Tag::CodeBlock(_) => self.opaque.push(range.clone()),
            Tag::BlockQuote(_) => (self.depth, self.is_quoted) = (self.depth + 1, true),
            Tag::List(_) | Tag::Table(_) | Tag::FootnoteDefinition(_) => self.depth += 1,
            Tag::Link { link_type, dest_url, .. } | Tag::Image { link_type, dest_url, .. } => {
                // Only a page that is embedded as `![[page]]` is a link; any other image is a picture.
                let is_picture = matches!(tag, Tag::Image { .. }) && !matches!(link_type, LinkType::WikiLink { .. });
                if let Some(target) = read_target(*link_type, dest_url).filter(|_| !is_picture) {
                    let line = self.lines.find_line(range.start);
                    self.facts.links.push(PageLink { target, line });
                }
            }
            _ => {}
        }
    }

    fn close_tag(&mut self, tag: TagEnd, range: &Range<usize>) {
        match tag {
            TagEnd::Paragraph if self.is_quoted && is_callout(&self.text) => {
                self.facts.callouts.push(self.lines.find_line(range.start));
            }
            TagEnd::Paragraph if self.depth == 0 && self.facts.first_sentence.is_none() => {
                let text = self.text.trim().trim_end_matches(CONTAINER).trim_end();
                if !text.is_empty() && !text.starts_with(CONTAINER) && text != EXTRACT_LINE {
                    self.facts.first_sentence = Some(find_first_sentence(text).to_owned());
                }
            }
            TagEnd::BlockQuote(_) => (self.depth, self.is_quoted) = (self.depth.saturating_sub(1), false),
            TagEnd::List(_) | TagEnd::Table | TagEnd::FootnoteDefinition => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }

    /// Markdown does not know these blocks, so their lines are read here.
    fn find_containers(&mut self, text: &str) {
        let (mut offset, mut number, mut open) = (0, 0, None);
        for line in text.split_inclusive('\n') {
            number += 1;
            let marker = line.trim().strip_prefix(CONTAINER).map(|rest| rest.trim_start_matches(':').trim());
            match marker.filter(|_| !self.is_opaque(offset)) {
                Some(DISPUTED) if open.is_none() => open = Some(number),
                Some("") => {
                    let block = open.take().map(|first| DisputedBlock { first, last: number });
                    self.facts.disputed.extend(block);
                }
                Some(_) | None => {}
            }
            offset += line.len();
        }
        self.facts.disputed.extend(open.map(|first| DisputedBlock { first, last: number }));
    }

    /// Whether code or HTML stands at an offset. The ranges are in the order of the text.
    fn is_opaque(&self, offset: usize) -> bool {
        let before = self.opaque.partition_point(|range| range.start <= offset);
        before.checked_sub(1).is_some_and(|last| self.opaque[last].contains(&offset))
    }
}

fn is_callout(text: &str) -> bool {
    CALLOUTS.iter().any(|callout| text.trim_start().starts_with(callout))
}

/// Where each line of a text begins.
#[derive(Default)]
pub(super) struct LineStarts(Vec<usize>);

impl LineStarts {
    pub(super) fn new(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    /// The line of an offset, from 1.
    pub(super) fn find_line(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset).max(1)
    }
}

/// What a link leads to, if that is a file or a page of the wiki.
pub(super) fn read_target(kind: LinkType, dest: &str) -> Option<LinkTarget> {
    if matches!(kind, LinkType::WikiLink { .. }) {
        // In a table the bar before the shown text is escaped.
        let name = dest.trim().trim_end_matches('\\').trim_end();
        let is_heading = name.starts_with(['#', '^']);
        let is_other_file = name.rsplit_once('.').is_some_and(|(_, ending)| is_file_ending(ending));
        return (!name.is_empty() && !is_heading && !is_other_file).then(|| LinkTarget::Name(name.to_owned()));
    }
    let path = dest.split('#').next().unwrap_or_default().trim();
    let is_outside = dest.contains("://") || dest.starts_with("mailto:") || dest.starts_with('/');
    let is_file = !is_outside && !path.is_empty() && !matches!(kind, LinkType::Email | LinkType::Autolink);
    is_file.then(|| LinkTarget::Path(decode_percent(path)))
}

/// Whether a name ends like a file that is not a page, such as a picture. A title may hold a dot, too.
fn is_file_ending(ending: &str) -> bool {
    let endings = ["png", "jpg", "jpeg", "gif", "svg", "webp", "pdf", "mp3", "mp4", "csv", "txt", "canvas", "base"];
    endings.contains(&ending.to_ascii_lowercase().as_str())
}

/// Decodes `%20` and the like. What is no valid escape stays as it is.
fn decode_percent(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

/// The text up to the first full stop, question or exclamation mark that a blank or the end follows. A Chinese or Japanese one needs
/// no blank.
fn find_first_sentence(text: &str) -> &str {
    let ends = text.char_indices().filter(|(_, c)| matches!(c, '.' | '?' | '!' | '。' | '？' | '！'));
    let mut ends = ends.map(|(at, c)| (at + c.len_utf8(), c.is_ascii()));
    let is_end = |end: usize, is_ascii: bool| !is_ascii || text[end..].chars().next().is_none_or(char::is_whitespace);
    ends.find(|(end, is_ascii)| is_end(*end, *is_ascii)).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        read_body(text)
            .links
            .into_iter()
            .map(|link| match link.target {
                LinkTarget::Name(name) => name,
                LinkTarget::Path(path) => format!("({path})"),
            })
            .collect()
    }

    #[test]
    fn links_are_those_that_a_reader_sees() {
        let text = "# A\n\nSee [[plot-12]] and [[plot-12|Plot 12]], [[water#Supply]], [[C#]], ![[pump]] ![[pump.png]] ![p](pump.md).\n\n`[[code]]` \\[[escaped]]\n\n```\n[[fenced]]\n```\n\
            <!-- [[comment]] -->\n\n- [lease](../entities/the%20lease.md#end) [web](https://a.example/b.md) [mail](mailto:a@b.example)\n\
            - [raw](../sources/letter.pdf)\n";
        let expected = [
            "plot-12",
            "plot-12",
            "water#Supply",
            "C#",
            "pump",
            "(../entities/the lease.md)",
            "(../sources/letter.pdf)",
        ];
        assert_eq!(names(text), expected);
        let lines: Vec<usize> = read_body(text).links.iter().map(|link| link.line).collect();
        assert_eq!(lines, [3, 3, 3, 3, 3, 12, 13]);
        assert_eq!(names("| a | b |\n|---|---|\n| [[water\\|Water]] | x |\n"), ["water"]);
    }

    #[test]
    fn the_first_sentence_is_that_of_the_first_paragraph() {
        for (text, expected) in [
            ("# Plot 12\n\nThe *lease* ends in 3.5 years. It was long.\n", Some("The lease ends in 3.5 years.")),
            ("> a quote.\n\n- an item.\n\nA paragraph\nof two lines\n", Some("A paragraph of two lines")),
            (
                "::: disputed\n> ⚠️ Contradiction: a vs b\n\nThe lease ends[^c1]\n:::\n\n[^c1]: lease\n",
                Some("The lease ends"),
            ),
            ("# Only a heading\n", None),
            ("第一句。第二句。\n", Some("第一句。")),
        ] {
            assert_eq!(read_body(text).first_sentence.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_dispute_is_found_outside_of_code() {
        let text = "::: disputed\n> ⚠️ Contradiction: a vs b (letter)\n\nA.[^c1]\n:::\n\n```\n::: disputed\n```\n\n[^c1]: letter — \"A.\"\n";
        let facts = read_body(text);
        assert_eq!((facts.disputed, facts.callouts), (vec![DisputedBlock { first: 1, last: 5 }], vec![2]));
        assert_eq!(read_body("> ⚠ Contradiction: a\n").callouts, [1]);
    }

    #[test]
    fn thousands_of_lines_with_html_are_read_in_one_pass() {
        // Work that grows with the square of the lines would take minutes.
        assert_eq!(read_body(&"a<b>c\n".repeat(40_000)).links, []);
    }
}

//! Splits the body of a page into blocks, and each block into statements at its marks.
//!
//! The text of a statement is that of the Markdown file, without the marks of quotes and lists at the beginnings of its
//! lines. So a change of a link or of emphasis is a change of the statement.

use crate::wiki::body::{LineStarts, PAGE_MARKDOWN};
use crate::wiki::quote::collapse_blanks;
use pulldown_cmark::{CowStr, Event, Parser, Tag, TagEnd};
use std::collections::BTreeMap;
use std::ops::Range;

/// The line that opens or closes a container, such as `::: disputed`. Markdown takes it for text.
const CONTAINER: &str = ":::";

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    Paragraph,
    Item,
    /// A row of a table, without the headings.
    Row,
    Heading,
    /// Code, HTML, or a rule.
    Other,
}

/// A block of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageBlock {
    pub kind: BlockKind,
    /// In the body, from 1.
    pub line: usize,
    pub is_quoted: bool,
    pub(super) statements: Vec<Statement>,
}

/// A text up to its marks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) text: String,
    /// Empty for what stands behind the last mark.
    pub(super) labels: Vec<String>,
    pub(super) line: usize,
}

/// A footnote.
pub(super) struct FootnoteText {
    pub(super) text: String,
    pub(super) line: usize,
}

/// The blocks and footnotes of a body.
#[derive(Default)]
pub(super) struct BodyBlocks {
    pub(super) blocks: Vec<PageBlock>,
    /// By label; the first of several with one label.
    pub(super) footnotes: BTreeMap<String, FootnoteText>,
}

impl PageBlock {
    /// The whole text, as it is compared.
    #[must_use]
    pub fn text(&self) -> String {
        let parts: Vec<&str> = self.statements.iter().map(|statement| statement.text.as_str()).collect();
        collapse_blanks(&parts.join(" "))
    }

    /// The labels of its marks.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.statements.iter().flat_map(|statement| &statement.labels).map(String::as_str)
    }

    /// Whether a block of this kind that a run adds must end in a mark: not a heading, a callout or a line of links.
    #[must_use]
    pub fn needs_anchor(&self) -> bool {
        let text = self.text();
        let is_text = text.chars().any(char::is_alphanumeric);
        // What stands beside the links would be a statement.
        let beside_links = text.strip_prefix("See also:").map(|links| {
            let rests = links.split("[[").skip(1).map(|link| link.split_once("]]").map_or(link, |(_, rest)| rest));
            links.split("[[").take(1).chain(rests).any(|rest| rest.chars().any(char::is_alphanumeric))
        });
        let is_callout = self.is_quoted && text.starts_with('⚠');
        match self.kind {
            BlockKind::Paragraph | BlockKind::Item | BlockKind::Row => {
                is_text && !is_callout && beside_links != Some(false)
            }
            BlockKind::Heading | BlockKind::Other => false,
        }
    }

    /// Whether nothing but punctuation follows the last mark.
    #[must_use]
    pub fn ends_in_mark(&self) -> bool {
        let last = self.statements.last();
        let is_empty = |statement: &Statement| !statement.text.chars().any(char::is_alphanumeric);
        let has_mark = self.statements.iter().any(|statement| !statement.labels.is_empty());
        has_mark && last.is_none_or(|last| !last.labels.is_empty() || is_empty(last))
    }
}

pub(super) fn read_blocks(body: &str) -> BodyBlocks {
    let mut reader = BlockReader { body, lines: LineStarts::new(body), ..BlockReader::default() };
    for (event, range) in Parser::new_ext(body, PAGE_MARKDOWN).into_offset_iter() {
        reader.read_event(event, range);
    }
    reader.read
}

#[derive(Default)]
struct BlockReader<'b> {
    body: &'b str,
    lines: LineStarts,
    read: BodyBlocks,
    open: Option<OpenBlock>,
    /// How many quotes are open.
    quotes: usize,
    /// The headings of the open table, its row, and the cell that is being read.
    headings: Vec<String>,
    is_heading_row: bool,
    cell: usize,
    /// The open footnote.
    footnote: Option<String>,
}

/// A block whose end has not come.
struct OpenBlock {
    kind: BlockKind,
    line: usize,
    statements: Vec<Statement>,
    text: StatementText,
}

/// The text since the last mark.
#[derive(Default)]
struct StatementText {
    text: String,
    line: Option<usize>,
    /// Where the text of the present line begins in `text`.
    line_start: usize,
    /// Where the next piece of the file begins, if it follows directly.
    next: Option<usize>,
    /// Where the last inline element ended.
    end: usize,
}

impl BlockReader<'_> {
    fn read_event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.open_tag(tag, range),
            Event::End(tag) => self.close_tag(tag, range),
            Event::FootnoteReference(label) => self.mark(&label, &range),
            Event::SoftBreak | Event::HardBreak => self.break_line(&range),
            Event::Rule => self.add_other(&range),
            Event::Html(_) => {}
            _ => self.add_inline(&range),
        }
    }

    fn open_tag(&mut self, tag: Tag<'_>, range: Range<usize>) {
        match tag {
            _ if self.footnote.is_some() => {}
            // The text of a tight item stands in no paragraph, that of a loose one does.
            Tag::Paragraph if self.open.as_ref().is_some_and(|open| open.is_untouched_item()) => {}
            Tag::Paragraph => self.begin(BlockKind::Paragraph, &range),
            Tag::Item => self.begin(BlockKind::Item, &range),
            Tag::Heading { .. } => self.begin(BlockKind::Heading, &range),
            Tag::CodeBlock(_) | Tag::HtmlBlock => self.add_other(&range),
            Tag::BlockQuote(_) => {
                self.finish();
                self.quotes += 1;
            }
            Tag::List(_) => self.finish(),
            Tag::Table(_) => {
                self.finish();
                self.headings.clear();
            }
            Tag::TableHead => self.is_heading_row = true,
            Tag::TableRow => self.begin(BlockKind::Row, &range),
            Tag::TableCell => self.begin_cell(&range),
            Tag::FootnoteDefinition(label) => {
                self.finish();
                self.add_footnote(&label, &range);
                self.footnote = Some(label.into_string());
            }
            _ => self.add_inline(&(range.start..range.start)),
        }
    }

    fn close_tag(&mut self, tag: TagEnd, range: Range<usize>) {
        match tag {
            TagEnd::FootnoteDefinition => self.footnote = None,
            _ if self.footnote.is_some() => {}
            TagEnd::Paragraph | TagEnd::Item | TagEnd::Heading(_) | TagEnd::TableRow => self.finish(),
            TagEnd::BlockQuote(_) => {
                self.finish();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::List(_) => self.finish(),
            TagEnd::TableHead => self.is_heading_row = false,
            TagEnd::TableCell => self.end_cell(),
            TagEnd::CodeBlock | TagEnd::HtmlBlock | TagEnd::Table => {}
            // The closing marks of emphasis and links belong to the text.
            _ => self.add_inline(&range),
        }
    }

    fn begin(&mut self, kind: BlockKind, range: &Range<usize>) {
        self.finish();
        let line = self.lines.find_line(range.start);
        self.open = Some(OpenBlock { kind, line, statements: Vec::new(), text: StatementText::default() });
        self.cell = 0;
    }

    fn add_other(&mut self, range: &Range<usize>) {
        self.begin(BlockKind::Other, range);
        self.finish();
    }

    fn begin_cell(&mut self, range: &Range<usize>) {
        if self.is_heading_row {
            self.headings.push(collapse_blanks(self.body.get(range.clone()).unwrap_or_default()));
            return;
        }
        let heading = self.headings.get(self.cell).filter(|heading| !heading.is_empty());
        let label = heading.map(|heading| format!(" {heading}: ")).unwrap_or_else(|| " ".to_owned());
        if let Some(open) = &mut self.open {
            open.text.text.push_str(&label);
            open.text.next = None;
        }
        self.cell += 1;
    }

    fn end_cell(&mut self) {
        if let Some(open) = self.open.as_mut().filter(|_| !self.is_heading_row) {
            open.text.take_rest(self.body);
            open.text.text.push_str(" |");
            open.text.next = None;
        }
    }

    fn add_inline(&mut self, range: &Range<usize>) {
        if self.footnote.is_some() {
            return;
        }
        let line = self.lines.find_line(range.start);
        let Some(open) = &mut self.open else { return };
        let text = &mut open.text;
        text.next.get_or_insert(range.start);
        text.line.get_or_insert(line);
        text.end = text.end.max(range.end);
    }

    fn break_line(&mut self, range: &Range<usize>) {
        let Some(open) = &mut self.open else { return };
        open.text.take_to(self.body, range.start);
        open.text.drop_container_line();
        open.text.text.push(' ');
        open.text.line_start = open.text.text.len();
        open.text.next = None;
    }

    fn mark(&mut self, label: &CowStr<'_>, range: &Range<usize>) {
        if self.footnote.is_some() {
            return;
        }
        let line = self.lines.find_line(range.start);
        let Some(open) = &mut self.open else { return };
        let mut text = std::mem::take(&mut open.text);
        text.take_to(self.body, range.start);
        text.drop_container_line();
        let words = collapse_blanks(&text.text);
        let is_empty = !words.chars().any(char::is_alphanumeric);
        match open.statements.last_mut().filter(|last| is_empty && !last.labels.is_empty()) {
            // Several marks in a row belong to one statement.
            Some(last) => last.labels.push(label.to_string()),
            None => open.statements.push(Statement {
                text: words,
                labels: vec![label.to_string()],
                line: text.line.unwrap_or(line),
            }),
        }
        open.text.next = Some(range.end);
        open.text.end = range.end;
    }

    fn finish(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        open.text.take_rest(self.body);
        open.text.drop_container_line();
        let words = collapse_blanks(&open.text.text);
        if !words.is_empty() {
            let line = open.text.line.unwrap_or(open.line);
            open.statements.push(Statement { text: words, labels: Vec::new(), line });
        }
        if !open.statements.is_empty() || open.kind == BlockKind::Other {
            let OpenBlock { kind, line, statements, .. } = open;
            self.read.blocks.push(PageBlock { kind, line, is_quoted: self.quotes > 0, statements });
        }
    }

    fn add_footnote(&mut self, label: &str, range: &Range<usize>) {
        let whole = self.body.get(range.clone()).unwrap_or_default();
        let text = whole.split_once("]:").map_or("", |(_, text)| text).trim().to_owned();
        let line = self.lines.find_line(range.start);
        self.read.footnotes.entry(label.to_owned()).or_insert(FootnoteText { text, line });
    }
}

impl OpenBlock {
    /// Whether it is an item of a list that has no text yet.
    fn is_untouched_item(&self) -> bool {
        self.kind == BlockKind::Item && self.statements.is_empty() && self.text.line.is_none()
    }
}

impl StatementText {
    /// Adds what stands in the file up to a place.
    fn take_to(&mut self, body: &str, to: usize) {
        let piece = self.next.and_then(|next| body.get(next..to));
        self.text.push_str(piece.unwrap_or_default());
        self.next = None;
    }

    /// Adds what stands in the file up to the end of the last inline element.
    fn take_rest(&mut self, body: &str) {
        self.take_to(body, self.end);
    }

    fn drop_container_line(&mut self) {
        if self.text[self.line_start..].trim().starts_with(CONTAINER) {
            self.text.truncate(self.line_start);
        }
    }
}

//! What a wiki record holds below its reasoning: every file that the action changed, and what a rollback needs.
//!
//! Each file has the hashes of its content before and after. A page has a unified diff with the whole page as context, so
//! both sides can be rebuilt and are compared with the hashes. A list that only grows, such as the log, has the entry that
//! was added. Files that code renders from the others have only their hashes.

use super::merge::{DiffLine, list_diff_lines};
use crate::action::plan::ContentHash;
use serde::{Deserialize, Serialize};

/// The heading above the details.
const HEADING: &str = "\n## Files\n";
/// The heading above the claims.
const CLAIMS: &str = "\n## Claims\n";
/// The info text of a block with one JSON object on each line.
const LIST: &str = "jsonl";
const DIFF: &str = "diff";
const TEXT: &str = "text";

/// The files that a wiki action changed, in the order in which they were exchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WikiDetails {
    pub files: Vec<FileRecord>,
    pub claims: Vec<ClaimRecord>,
}

/// A claim that an action made or removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimRecord {
    /// As in `plot-12#c6107d23f`.
    pub claim: String,
    pub change: ClaimChange,
    /// The hash of the statement.
    pub statement_sha256: ContentHash,
    /// The words on which it rests; empty for a claim that was removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anchors: Vec<AnchorRecord>,
}

/// What happened to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ClaimChange {
    Asserted,
    Removed,
}

/// The place of a quote in a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnchorRecord {
    pub label: String,
    pub source: String,
    /// In bytes, from the start of the source's text.
    pub offset: usize,
    pub length: usize,
    /// The hash of the words as they stand there.
    pub quote_sha256: ContentHash,
}

/// One file of a wiki action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRecord {
    /// Relative to the wiki.
    pub file: String,
    /// `None` for a file that is new.
    pub before: Option<ContentHash>,
    /// `None` for a file that was removed.
    pub after: Option<ContentHash>,
    pub content: RecordedContent,
}

/// What a record holds of the content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedContent {
    /// Nothing: the file is a source, or code renders it anew.
    Hashes,
    /// Both sides, which differ; an empty text stands for a file that does not exist.
    Page { before: String, after: String },
    /// The entry that was appended, with its last line break.
    Entry(String),
    /// The whole text, which a person accepted. The file is not changed.
    Accepted(String),
}

/// Why the details of a record cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WikiDetailsError {
    #[error("the list of its files cannot be read: {0}")]
    List(String),
    #[error("{file}: what the record holds of it does not match its hash")]
    Hash { file: String },
}

/// A line of the list of files.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileLine {
    file: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<ContentHash>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<ContentHash>,
    /// Which block below belongs to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    block: Option<BlockKind>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BlockKind {
    Diff,
    Entry,
    Accepted,
}

impl FileRecord {
    /// A file that a person accepted as it is.
    #[must_use]
    pub fn of_accepted(file: &str, text: &str) -> Self {
        let hash = ContentHash::hash_bytes(text.as_bytes());
        let content = RecordedContent::Accepted(text.to_owned());
        Self { file: file.to_owned(), before: Some(hash.clone()), after: Some(hash), content }
    }

    /// A page, or another file whose both sides are kept.
    #[must_use]
    pub fn of_page(file: &str, before: Option<&str>, after: Option<&str>) -> Self {
        let hash = |text: &str| ContentHash::hash_bytes(text.as_bytes());
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let content = RecordedContent::Page { before: text(before), after: text(after) };
        Self { file: file.to_owned(), before: before.map(hash), after: after.map(hash), content }
    }

    /// Whether what is kept of the file fits its hashes.
    fn fits(&self) -> bool {
        let is = |hash: &Option<ContentHash>, text: &str| match hash {
            Some(hash) => hash == &ContentHash::hash_bytes(text.as_bytes()),
            None => text.is_empty(),
        };
        match &self.content {
            RecordedContent::Page { before, after } => is(&self.before, before) && is(&self.after, after),
            RecordedContent::Accepted(text) => is(&self.before, text) && is(&self.after, text),
            RecordedContent::Hashes | RecordedContent::Entry(_) => true,
        }
    }
}

impl WikiDetails {
    /// Renders the details as Markdown. The texts stand in fenced blocks, where nothing of them is a link or a heading.
    #[must_use]
    pub fn render(&self) -> String {
        let mut list = String::new();
        let mut blocks = String::new();
        for file in &self.files {
            let (kind, info, text) = match &file.content {
                RecordedContent::Hashes => (None, "", String::new()),
                RecordedContent::Page { before, after } => (Some(BlockKind::Diff), DIFF, render_diff(before, after)),
                RecordedContent::Entry(text) => (Some(BlockKind::Entry), TEXT, text.clone()),
                RecordedContent::Accepted(text) => (Some(BlockKind::Accepted), DIFF, render_diff("", text)),
            };
            let line = FileLine {
                file: file.file.clone(),
                before: file.before.clone(),
                after: file.after.clone(),
                block: kind,
            };
            list.push_str(&to_line(&line));
            if kind.is_some() {
                blocks.push_str(&format!("\n{}", fence(info, &text)));
            }
        }
        let claims: String = self.claims.iter().map(to_line).collect();
        let claims = if claims.is_empty() { claims } else { format!("{CLAIMS}\n{}", fence(LIST, &claims)) };
        format!("{HEADING}\n{}{blocks}{claims}", fence(LIST, &list))
    }

    /// The bytes of a record without its details.
    #[must_use]
    pub fn strip(record: &[u8]) -> &[u8] {
        let at = record.windows(HEADING.len()).position(|window| window == HEADING.as_bytes());
        at.map_or(record, |at| &record[..=at])
    }

    /// Reads the details from a record or from its body.
    ///
    /// # Errors
    /// [`WikiDetailsError`] if they were edited.
    pub fn parse(body: &str) -> Result<Self, WikiDetailsError> {
        let invalid = |reason: &str| WikiDetailsError::List(reason.to_owned());
        let (_, below) = body.split_once(HEADING).ok_or_else(|| invalid("it has none"))?;
        let mut blocks = read_blocks(below).into_iter();
        let list = blocks.next().filter(|block| block.info == LIST).ok_or_else(|| invalid("it is not there"))?;
        let mut files = Vec::new();
        for line in list.text.lines() {
            let line: FileLine = serde_json::from_str(line).map_err(|e| invalid(&e.to_string()))?;
            let mut next = |info: &str| {
                let block = blocks.next().filter(|block| block.info == info);
                block.map(|block| block.text).ok_or_else(|| invalid(&format!("the block of {} is missing", line.file)))
            };
            let content = match line.block {
                None => RecordedContent::Hashes,
                Some(BlockKind::Diff) => {
                    let (before, after) = read_diff(next(DIFF)?).ok_or_else(|| invalid("a diff cannot be read"))?;
                    RecordedContent::Page { before, after }
                }
                Some(BlockKind::Entry) => RecordedContent::Entry(next(TEXT)?.to_owned()),
                Some(BlockKind::Accepted) => {
                    let (_, text) = read_diff(next(DIFF)?).ok_or_else(|| invalid("an accepted file cannot be read"))?;
                    RecordedContent::Accepted(text)
                }
            };
            let file = FileRecord { file: line.file, before: line.before, after: line.after, content };
            if !file.fits() {
                return Err(WikiDetailsError::Hash { file: file.file });
            }
            files.push(file);
        }
        let claims = blocks.next().filter(|block| block.info == LIST).map_or("", |block| block.text);
        let claims = claims.lines().map(serde_json::from_str).collect::<Result<Vec<ClaimRecord>, _>>();
        Ok(Self { files, claims: claims.map_err(|e| invalid(&format!("its claims: {e}")))? })
    }
}

fn to_line(value: &impl Serialize) -> String {
    format!("{}\n", serde_json::to_string(value).unwrap_or_default())
}

/// A fenced block of Markdown.
struct FencedBlock<'a> {
    info: &'a str,
    text: &'a str,
}

/// A fenced block. The fence is longer than every run of its character in the text.
fn fence(info: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{info}\n{text}{fence}\n")
}

fn read_blocks(text: &str) -> Vec<FencedBlock<'_>> {
    let (mut blocks, mut rest) = (Vec::new(), text);
    while let Some(at) = find_line_start(rest, "```") {
        let opened = &rest[at..];
        let marks = opened.len() - opened.trim_start_matches('`').len();
        let Some((info, inner)) = opened[marks..].split_once('\n') else { break };
        let Some(end) = find_line_start(inner, &opened[..marks]) else { break };
        blocks.push(FencedBlock { info, text: &inner[..end] });
        rest = &inner[end + marks..];
    }
    blocks
}

/// Where a line begins with a text.
fn find_line_start(text: &str, start: &str) -> Option<usize> {
    if text.starts_with(start) {
        return Some(0);
    }
    text.find(&format!("\n{start}")).map(|at| at + 1)
}

/// A line without a line break at its end is followed by this one.
const NO_NEWLINE: &str = "\\ No newline at end of file\n";

/// A unified diff with the whole text as context.
fn render_diff(before: &str, after: &str) -> String {
    let (mut text, mut old, mut new) = (String::new(), 0, 0);
    for line in list_diff_lines(before, after) {
        let (mark, line) = match line {
            DiffLine::Both(line) => (' ', line),
            DiffLine::Before(line) => ('-', line),
            DiffLine::After(line) => ('+', line),
        };
        old += usize::from(mark != '+');
        new += usize::from(mark != '-');
        text.push(mark);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push('\n');
            text.push_str(NO_NEWLINE);
        }
    }
    format!("@@ -{},{old} +{},{new} @@\n{text}", old.min(1), new.min(1))
}

/// Both sides of a diff that has the whole text as context.
fn read_diff(text: &str) -> Option<(String, String)> {
    let (mut before, mut after) = (String::new(), String::new());
    let mut lines = text.split_inclusive('\n');
    lines.next().filter(|header| header.starts_with("@@ "))?;
    let mut lines = lines.peekable();
    while let Some(line) = lines.next() {
        let (mark, mut line) = (line.get(..1)?, line.get(1..)?);
        if lines.next_if_eq(&NO_NEWLINE).is_some() {
            line = line.strip_suffix('\n')?;
        }
        if mark != "+" {
            before.push_str(line);
        }
        if mark != "-" {
            after.push_str(line);
        }
        if !matches!(mark, " " | "+" | "-") {
            return None;
        }
    }
    Some((before, after))
}

#[cfg(test)]
mod tests;

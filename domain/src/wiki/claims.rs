//! Claims: the statements of a page, each with the quotes on which it rests.
//!
//! A statement is the text of its block from the previous mark, or from the block's beginning, to its own mark. In a table
//! it is the row with its column headings. Blanks do not count, so a person may reflow and move it. Code, comments and what
//! stands in a footnote hold no statement.

mod blocks;

use super::body::DisputedBlock;
use super::quote::{Anchor, is_quote_label};
use crate::action::plan::ContentHash;
use serde::Serialize;
use std::collections::BTreeMap;

pub use blocks::{BlockKind, PageBlock};

/// The longest statement that a run may write, in characters.
pub const MAX_STATEMENT: usize = 280;

/// A statement of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// Its first label, and `~2`, `~3` for further statements on the same anchor. It is unique on the page.
    pub id: String,
    /// The labels of its marks, in their order.
    pub labels: Vec<String>,
    /// The statement as it stands in Markdown, with one space for each run of blanks.
    pub statement: String,
    /// In the body, from 1.
    pub line: usize,
    /// Whether it stands in a `::: disputed` block.
    pub is_disputed: bool,
}

/// A mark without a footnote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DanglingMark {
    pub label: String,
    /// The line of its block in the body, from 1.
    pub line: usize,
}

/// What the body of a page claims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageClaims {
    /// In the order of the page.
    pub claims: Vec<Claim>,
    /// The footnotes in the form of a quote, by label.
    pub anchors: BTreeMap<String, Anchor>,
    /// The lines of footnotes, from 1, by label; also of those in another form.
    pub footnotes: BTreeMap<String, usize>,
    /// The blocks of the page, in their order.
    pub blocks: Vec<PageBlock>,
}

impl Claim {
    /// The hash of the statement.
    #[must_use]
    pub fn hash_statement(&self) -> ContentHash {
        ContentHash::hash_bytes(self.statement.as_bytes())
    }

    /// The name of the claim in its wiki, as in `plot-12#c6107d23f`.
    #[must_use]
    pub fn name(&self, slug: &str) -> String {
        format!("{slug}#{}", self.id)
    }
}

/// Whether a text has the form of a claim's id on its page, as in `c6107d23f` and `c6107d23f~2`.
#[must_use]
pub fn is_claim_id(text: &str) -> bool {
    match text.split_once('~') {
        Some((label, count)) => is_quote_label(label) && count.parse::<usize>().is_ok(),
        None => is_quote_label(text),
    }
}

/// Reads the claims of the body of a page, which has these disputed blocks.
#[must_use]
pub fn read_claims(body: &str, disputed: &[DisputedBlock]) -> PageClaims {
    let is_disputed = |line: usize| disputed.iter().any(|block| (block.first..=block.last).contains(&line));
    let read = blocks::read_blocks(body);
    let mut claims: Vec<Claim> = Vec::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for block in &read.blocks {
        for statement in block.statements.iter().filter(|statement| !statement.labels.is_empty()) {
            let Some(first) = statement.labels.first() else { continue };
            let count = counts.entry(first.clone()).or_default();
            *count += 1;
            let id = if *count == 1 { first.clone() } else { format!("{first}~{count}") };
            claims.push(Claim {
                id,
                labels: statement.labels.clone(),
                statement: statement.text.clone(),
                line: statement.line,
                is_disputed: is_disputed(statement.line),
            });
        }
    }
    let anchors = read.footnotes.iter().filter_map(|(label, note)| Anchor::parse(label, &note.text));
    PageClaims {
        anchors: anchors.map(|anchor| (anchor.label.clone(), anchor)).collect(),
        footnotes: read.footnotes.iter().map(|(label, note)| (label.clone(), note.line)).collect(),
        claims,
        blocks: read.blocks,
    }
}

impl PageClaims {
    /// The blocks that must end in a mark and do not: paragraphs, list items and table rows.
    pub fn list_unanchored(&self) -> impl Iterator<Item = &PageBlock> {
        self.blocks.iter().filter(|block| block.needs_anchor() && !block.ends_in_mark())
    }

    /// The marks of quotes that have no footnote, with the lines of their blocks, from 1. For a reader of Markdown they are
    /// plain text.
    #[must_use]
    pub fn list_dangling_marks(&self) -> Vec<DanglingMark> {
        let marks = |block: &PageBlock| -> Vec<DanglingMark> {
            // What stands between two backticks is code.
            let text: String = block.text().split('`').step_by(2).collect();
            let labels = text.split("[^").skip(1).filter_map(|rest| Some(rest.split_once(']')?.0));
            let dangling = labels.filter(|label| is_quote_label(label) && !self.footnotes.contains_key(*label));
            dangling.map(|label| DanglingMark { label: label.to_owned(), line: block.line }).collect()
        };
        self.blocks.iter().flat_map(marks).collect()
    }

    /// How often each statement stands on the page, by its text.
    #[must_use]
    pub fn count_statements(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for claim in &self.claims {
            *counts.entry(claim.statement.as_str()).or_default() += 1;
        }
        counts
    }
}

/// The first labels of the statements that stood on pages before and stand on none of them any more. Blanks do not count.
#[must_use]
pub fn find_dropped_claims(before: &[PageClaims], after: &[PageClaims]) -> Vec<String> {
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    for page in after {
        for (statement, count) in page.count_statements() {
            *left.entry(statement).or_default() += count;
        }
    }
    let mut dropped = Vec::new();
    for claim in before.iter().flat_map(|page| &page.claims) {
        match left.get_mut(claim.statement.as_str()) {
            Some(count) if *count > 0 => *count -= 1,
            Some(_) | None => dropped.push(claim.id.clone()),
        }
    }
    dropped
}

#[cfg(test)]
mod tests;

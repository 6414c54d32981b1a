//! What stood on a page stays, to the byte: every line, in its order. And what a run adds must not change how it reads.
//!
//! A run may set lines between those that stood there, and add marks of its own to them. It must not shadow a footnote, write on
//! below one, or hide or divide text by signs that some readers understand.

use super::{JudgedPage, RunFault, RunFinding, report};
use crate::wiki::body::PAGE_MARKDOWN;
use crate::wiki::claims::{BlockKind, PageBlock};
use crate::wiki::page::WikiPage;
use crate::wiki::quote::is_quote_label;
use pulldown_cmark::Parser;
use std::collections::{BTreeMap, BTreeSet};

/// The longest heading, in characters.
const MAX_HEADING: usize = 200;
/// Signs that hide text or make it a formula.
pub(in crate::wiki) const HIDING: [&str; 2] = ["%%", "$$"];
/// How the callout of a dispute begins.
const CALLOUT: &str = "> ⚠️ Contradiction: ";
const DISPUTE: [&str; 2] = ["::: disputed", ":::"];

pub(super) fn check_kept(page: &JudgedPage<'_>, after: &WikiPage, findings: &mut Vec<RunFinding>) {
    let before = page.before.map_or("", |before| before.document.body());
    let known: BTreeSet<&str> = page.claims_before.footnotes.keys().map(String::as_str).collect();
    let lines: Vec<&str> = after.document.body().split('\n').collect();
    let mut is_old = vec![false; lines.len()];
    let mut next = 0;
    for line in before.split('\n').filter(|line| !line.trim().is_empty()) {
        match lines[next..].iter().position(|new| strip_new_marks(new, &known) == line) {
            Some(at) => {
                is_old[next + at] = true;
                next += at + 1;
            }
            None => {
                let is_known = |found: &RunFinding| found.fault == RunFault::BlockChanged && found.file == page.file;
                if !findings.iter().any(is_known) {
                    let shown: String = line.chars().take(80).collect();
                    report(findings, page.file, RunFault::BlockChanged, format!("this line stood there: {shown}"));
                }
                // What follows cannot be told apart from what the run adds.
                return;
            }
        }
    }
    check_footnotes(page, &lines, &is_old, findings);
    check_headings(page, &lines, findings);
    check_definitions(page, after, findings);
    for (at, line) in lines.iter().enumerate().filter(|(at, line)| !is_old[*at] && !line.trim().is_empty()) {
        if let Some((fault, problem)) = find_line_fault(line, lines.get(at + 1).copied(), at + 1, after) {
            let shown: String = line.trim().chars().take(60).collect();
            report(findings, page.file, fault, format!("{problem}: {shown}"));
        }
    }
}

/// A line without the marks of quotes that did not stand on the page.
fn strip_new_marks(line: &str, known: &BTreeSet<&str>) -> String {
    let (mut text, mut rest) = (String::with_capacity(line.len()), line);
    while let Some((above, behind)) = rest.split_once("[^") {
        text.push_str(above);
        match behind.split_once(']') {
            Some((label, below)) if is_quote_label(label) && !known.contains(label) => rest = below,
            _ => {
                text.push_str("[^");
                rest = behind;
            }
        }
    }
    text + rest
}

/// The label of a footnote that begins on a line, also in a quote or in a list of any kind.
fn read_label(line: &str) -> Option<&str> {
    let is_sign = |c: char| matches!(c, '>' | '-' | '*' | '+' | '.' | ')') || c.is_whitespace() || c.is_ascii_digit();
    let label = line.trim_start_matches(is_sign).strip_prefix("[^")?.split_once("]:")?.0;
    (!label.contains(['[', ']'])).then_some(label)
}

/// Footnotes that are no plain quote, that give a label twice, or that go on with words of their own.
fn check_footnotes(page: &JudgedPage<'_>, lines: &[&str], is_old: &[bool], findings: &mut Vec<RunFinding>) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut refuse = |problem: String| report(findings, page.file, RunFault::FootnoteForm, problem);
    let mut is_in_note = false;
    let mut follows_note = false;
    for (line, is_old) in lines.iter().zip(is_old) {
        let label = read_label(line);
        if let Some(label) = label {
            let count = counts.entry(label).or_default();
            *count += 1;
            let is_plain = page
                .claims_after
                .anchors
                .get(label)
                .is_some_and(|anchor| anchor.render() == line.trim_end_matches('\r'));
            if !is_old && (*count > 1 || !is_plain || page.claims_before.footnotes.contains_key(label)) {
                refuse(format!("the footnote `{label}` is not one plain quote"));
            }
        } else if !is_old && !line.trim().is_empty() && (follows_note || is_in_note && line.starts_with([' ', '\t'])) {
            refuse("text goes on below a footnote".to_owned());
        }
        follows_note = label.is_some();
        is_in_note = label.is_some() || is_in_note && (line.trim().is_empty() || line.starts_with([' ', '\t']));
    }
}

/// Headings that a run adds: a few words on a line that begins with `#`.
fn check_headings(page: &JudgedPage<'_>, lines: &[&str], findings: &mut Vec<RunFinding>) {
    let known: BTreeSet<String> = page.claims_before.blocks.iter().map(PageBlock::text).collect();
    let headings = page.claims_after.blocks.iter().filter(|block| block.kind == BlockKind::Heading);
    for heading in headings.filter(|heading| !known.contains(&heading.text())) {
        let (text, line) = (heading.text(), lines.get(heading.line - 1).copied().unwrap_or_default());
        let shown: String = text.chars().take(60).collect();
        if text.chars().count() > MAX_HEADING {
            report(findings, page.file, RunFault::StatementTooLong, format!("a heading is a few words: {shown}"));
        } else if !line.starts_with('#') {
            report(findings, page.file, RunFault::ClaimUnanchored, format!("a heading begins with `#`: {shown}"));
        }
    }
}

/// Definitions of links that a run adds. No reader shows them, but a search and a model find their words.
fn check_definitions(page: &JudgedPage<'_>, after: &WikiPage, findings: &mut Vec<RunFinding>) {
    let before = page.before.map(|before| list_definitions(before.document.body())).unwrap_or_default();
    for label in list_definitions(after.document.body()).difference(&before) {
        let shown: String = label.chars().take(60).collect();
        report(findings, page.file, RunFault::HiddenText, format!("it would define a link that nobody sees: {shown}"));
    }
}

fn list_definitions(body: &str) -> BTreeSet<String> {
    let parser = Parser::new_ext(body, PAGE_MARKDOWN);
    parser.reference_definitions().iter().map(|(label, link)| format!("{label}: {}", link.dest)).collect()
}

/// What is wrong with a line that a run adds.
fn find_line_fault(
    line: &str,
    next: Option<&str>,
    number: usize,
    after: &WikiPage,
) -> Option<(RunFault, &'static str)> {
    let text = line.trim();
    let is_in_dispute = || after.body.disputed.iter().any(|block| (block.first..=block.last).contains(&number));
    let is_rule = text.contains("--") && text.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '));
    match () {
        () if HIDING.iter().any(|sign| text.contains(sign)) => Some((RunFault::HiddenText, "it would hide text")),
        () if text.starts_with(":::") && !DISPUTE.contains(&line.trim_end()) => {
            Some((RunFault::HiddenText, "it would begin a container"))
        }
        () if text.starts_with('>') && text.contains('⚠') && !(line.starts_with(CALLOUT) && is_in_dispute()) => {
            Some((RunFault::ClaimUnanchored, "only a dispute has such a callout"))
        }
        () if text.starts_with('>') && text.contains('⚠') && next.is_some_and(|next| !next.trim().is_empty()) => {
            Some((RunFault::ClaimUnanchored, "a callout is one line"))
        }
        () if is_rule && text.contains('|') && !next.is_some_and(|next| next.contains('|')) => {
            Some((RunFault::ClaimUnanchored, "a table has rows"))
        }
        () => None,
    }
}

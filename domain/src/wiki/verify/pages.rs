//! The rules for one page of a run.
//!
//! What the page holds is compared with what it held before, so only what the run adds or changes is judged. It must not open
//! a file: the texts of sources are given.

use super::kept;
use super::{JudgedPage, MAX_ADDED_BYTES, RunFault, RunFinding, VerifyInput, report};
use crate::action::plan::ContentHash;
use crate::record::plain_text::unescape_markdown;
use crate::wiki::body::PAGE_MARKDOWN;
use crate::wiki::claims::{BlockKind, Claim, MAX_STATEMENT, PageBlock, PageClaims, read_claims};
use crate::wiki::compile::EXTRACT_LINE;
use crate::wiki::details::{AnchorRecord, ClaimChange, ClaimRecord};
use crate::wiki::finding::Severity;
use crate::wiki::names::name_folder;
use crate::wiki::overview::OVERVIEW;
use crate::wiki::page::{ARCHIVE_KIND, LINT_KIND, WikiPage, read_page};
use crate::wiki::plan::RunFile;
use crate::wiki::query::QUESTION_HEADING;
use crate::wiki::quote::{Anchor, QuoteError};
use crate::wiki::run::WikiRunType;
use pulldown_cmark::{Event, LinkType, Parser, Tag, TagEnd, TextMergeStream};
use std::collections::BTreeMap;

/// What a link may begin with, if it leads out of the wiki.
const SAFE_SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];

/// Reads a page of a run as it is and as the run wants it.
pub(super) fn read_judged<'a>(
    file: &'a RunFile,
    before: Option<&'a WikiPage>,
    findings: &mut Vec<RunFinding>,
) -> JudgedPage<'a> {
    let name = file.path.file();
    let reading = file.after.as_deref().map(|bytes| read_page(name, bytes));
    let mut after = None;
    // A file that cannot be read as a page is a person's, whatever it holds.
    if before.is_none() && file.before.is_some() {
        report(
            findings,
            name,
            RunFault::EntryInvalid,
            "it would replace a file that is not a readable page".to_owned(),
        );
    }
    if let Some(reading) = reading {
        // What was wrong before is no fault of the run.
        let known: Vec<String> = before.map_or_else(Vec::new, |page| list_problems(name, page.document.as_bytes()));
        let faults = reading.findings.iter().filter(|finding| finding.severity == Severity::Error);
        for finding in faults.filter(|finding| !known.contains(&finding.problem)) {
            report(findings, name, RunFault::EntryInvalid, finding.problem.clone());
        }
        if reading.page.is_none() && reading.findings.is_empty() {
            report(findings, name, RunFault::EntryInvalid, "it is not a page".to_owned());
        }
        after = reading.page;
    }
    let claims = |page: Option<&WikiPage>| {
        page.map_or_else(PageClaims::default, |page| read_claims(page.document.body(), &page.body.disputed))
    };
    let (claims_before, claims_after) = (claims(before), claims(after.as_ref()));
    JudgedPage { file: name, before, after, claims_before, claims_after }
}

fn list_problems(file: &str, bytes: &[u8]) -> Vec<String> {
    read_page(file, bytes).findings.into_iter().map(|finding| finding.problem).collect()
}

pub(super) fn check_page(page: &JudgedPage<'_>, input: &VerifyInput<'_>, findings: &mut Vec<RunFinding>) {
    let lost = list_lost_blocks(page);
    if let Some(first) = lost.first().filter(|_| !input.may_remove(page)) {
        let shown: String = first.chars().take(80).collect();
        report(findings, page.file, RunFault::BlockChanged, format!("{} blocks are gone: {shown}", lost.len()));
    }
    let Some(after) = &page.after else { return };
    let mut refuse = |fault, problem: String| report(findings, page.file, fault, problem);
    if page.before.is_none() {
        let folder = page.file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let expected = name_folder(&after.kind);
        if folder != expected || !input.manifest.knows_kind(&after.kind) {
            refuse(RunFault::WrongPath, format!("a new page of the kind `{}` does not belong there", after.kind));
        }
    }
    let added =
        after.document.as_bytes().len().saturating_sub(page.before.map_or(0, |it| it.document.as_bytes().len()));
    if added > MAX_ADDED_BYTES {
        refuse(RunFault::OverQuota, format!("it adds {added} bytes, more than {MAX_ADDED_BYTES}"));
    }
    for anchor in list_new_anchors(page) {
        if let Err((fault, problem)) = check_anchor(anchor, input) {
            refuse(fault, problem);
        }
    }
    for (label, _) in page.claims_after.footnotes.iter().filter(|(label, _)| !is_known_footnote(page, label)) {
        if !page.claims_after.anchors.contains_key(label) {
            refuse(RunFault::FootnoteForm, format!("the footnote `{label}` does not quote a source"));
        }
    }
    for claim in list_new_claims(page) {
        if let Some(label) = claim.labels.iter().find(|label| !page.claims_after.anchors.contains_key(*label)) {
            refuse(RunFault::FootnoteForm, format!("{}: its mark `{label}` quotes no source", claim.id));
        }
        let length = claim.statement.chars().count();
        if length > MAX_STATEMENT {
            refuse(RunFault::StatementTooLong, format!("{}: {length} characters, more than {MAX_STATEMENT}", claim.id));
        }
    }
    // Pages that report on others need no footnote.
    let is_exempt = match after.kind.as_str() {
        OVERVIEW => true,
        LINT_KIND => input.run_type == WikiRunType::Lint,
        ARCHIVE_KIND => input.run_type == WikiRunType::Archive,
        _ => false,
    };
    if !is_exempt {
        let question = find_question(page, after, input.run_type);
        for text in list_new_unanchored(page).into_iter().filter(|text| question.as_ref() != Some(text)) {
            let shown: String = text.chars().take(80).collect();
            refuse(RunFault::ClaimUnanchored, format!("it has no source: {shown}"));
        }
        if page.claims_after.claims.is_empty() && page.before.is_none() {
            refuse(RunFault::NoFootnote, "it quotes no source".to_owned());
        }
    }
    if page.before.is_some_and(|before| before.kind == ARCHIVE_KIND) {
        report(findings, page.file, RunFault::BlockChanged, "an archive is never changed".to_owned());
    }
    check_markup(page, after, findings);
    if after.kind != OVERVIEW {
        kept::check_kept(page, after, findings);
    }
    check_code(page, after, input, findings);
}

/// The question of a new page that holds an answer: the one paragraph below its first heading of that name. It is a person's.
fn find_question(page: &JudgedPage<'_>, after: &WikiPage, run_type: WikiRunType) -> Option<String> {
    let is_answer = run_type == WikiRunType::Archive && page.before.is_none();
    if !is_answer || !["qa", "insight", ARCHIVE_KIND].contains(&after.kind.as_str()) {
        return None;
    }
    let is_heading = |block: &PageBlock| block.kind == BlockKind::Heading && block.text() == QUESTION_HEADING;
    let mut below = page.claims_after.blocks.iter().skip_while(|block| !is_heading(block)).skip(1);
    below.next().filter(|block| block.kind == BlockKind::Paragraph).map(PageBlock::text)
}

fn is_known_footnote(page: &JudgedPage<'_>, label: &str) -> bool {
    page.claims_before.footnotes.contains_key(label)
}

/// The anchors that the run adds or changes.
fn list_new_anchors<'p>(page: &'p JudgedPage<'_>) -> impl Iterator<Item = &'p Anchor> {
    let known = &page.claims_before.anchors;
    page.claims_after.anchors.values().filter(|anchor| known.get(&anchor.label) != Some(*anchor))
}

fn check_anchor(anchor: &Anchor, input: &VerifyInput<'_>) -> Result<(), (RunFault, String)> {
    let shown: String = anchor.quote.chars().take(80).collect();
    if !anchor.is_intact() {
        return Err((RunFault::QuoteEdited, format!("the label `{}` does not fit its quote: {shown}", anchor.label)));
    }
    let Some(text) = input.texts.get(&anchor.source) else {
        return Err((RunFault::SourceMissing, format!("the source `{}` is not one of the run", anchor.source)));
    };
    match text.find_quote(&anchor.quote) {
        Ok(_) => Ok(()),
        Err(QuoteError::Absent) => {
            Err((RunFault::FabricatedQuote, format!("not in the source `{}`: {shown}", anchor.source)))
        }
        Err(e @ (QuoteError::Length(_) | QuoteError::Unseen)) => {
            Err((RunFault::FabricatedQuote, format!("{e}: {shown}")))
        }
    }
}

/// The claims whose statement did not stand on the page, or rests on something new.
fn list_new_claims<'p>(page: &'p JudgedPage<'_>) -> Vec<&'p Claim> {
    let mut known: BTreeMap<(&str, &[String]), usize> = BTreeMap::new();
    for claim in &page.claims_before.claims {
        *known.entry((&claim.statement, &claim.labels)).or_default() += 1;
    }
    let mut new = Vec::new();
    for claim in &page.claims_after.claims {
        match known.get_mut(&(claim.statement.as_str(), claim.labels.as_slice())) {
            Some(count) if *count > 0 => *count -= 1,
            Some(_) | None => new.push(claim),
        }
    }
    new
}

/// The texts of the blocks that stood on the page and do not any more.
fn list_lost_blocks(page: &JudgedPage<'_>) -> Vec<String> {
    let mut left: BTreeMap<String, usize> = BTreeMap::new();
    for block in &page.claims_after.blocks {
        *left.entry(block.text()).or_default() += 1;
    }
    let mut lost = Vec::new();
    for block in &page.claims_before.blocks {
        match left.get_mut(&block.text()) {
            Some(count) if *count > 0 => *count -= 1,
            Some(_) | None => lost.push(block.text()),
        }
    }
    lost
}

/// The texts of the blocks that the run adds and that do not end in a mark.
fn list_new_unanchored(page: &JudgedPage<'_>) -> Vec<String> {
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for block in &page.claims_before.blocks {
        *known.entry(block.text()).or_default() += 1;
    }
    let mut left = Vec::new();
    for block in page.claims_after.list_unanchored() {
        let text = block.text();
        match known.get_mut(&text) {
            Some(count) if *count > 0 => *count -= 1,
            _ if text == EXTRACT_LINE && block.kind == BlockKind::Paragraph => {}
            _ => left.push(text),
        }
    }
    left
}

/// Code, addresses and version numbers that the run adds and that do not stand in its source as they are. What a person asked may
/// hold them.
fn check_code(page: &JudgedPage<'_>, after: &WikiPage, input: &VerifyInput<'_>, findings: &mut Vec<RunFinding>) {
    let before = page.before.map_or_else(Vec::new, |page| list_code(page.document.body()));
    let question = unescape_markdown(&find_question(page, after, input.run_type).unwrap_or_default());
    let is_new = |code: &&String| !before.contains(code) && !question.contains(code.as_str());
    let stands = |code: &str| input.texts.values().any(|text| text.holds(code));
    for code in list_code(after.document.body()).iter().filter(is_new).filter(|code| !stands(code)) {
        report(findings, page.file, RunFault::CodeNotInSource, code.chars().take(80).collect());
    }
    if input.texts.len() < 2 {
        return;
    }
    // Of several sources it must be one that the block cites.
    for block in page.claims_after.blocks.iter().filter(|block| block.labels().next().is_some()) {
        let cited = block.labels().filter_map(|label| page.claims_after.anchors.get(label));
        let texts: Vec<_> = cited.filter_map(|anchor| input.texts.get(&anchor.source)).collect();
        let is_elsewhere = |code: &&String| is_new(code) && stands(code) && !texts.iter().any(|text| text.holds(code));
        for code in list_code(&block.text()).iter().filter(is_elsewhere) {
            let shown: String = code.chars().take(80).collect();
            report(findings, page.file, RunFault::CodeNotInSource, format!("not in a source that it cites: {shown}"));
        }
    }
}

/// The code of a body, and what must be exact in its text: addresses and version numbers.
pub(in crate::wiki) fn list_code(body: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut is_note, mut is_block) = (false, false);
    for event in TextMergeStream::new(Parser::new_ext(body, PAGE_MARKDOWN)) {
        match event {
            Event::Start(Tag::FootnoteDefinition(_)) => is_note = true,
            Event::End(TagEnd::FootnoteDefinition) => is_note = false,
            _ if is_note => {}
            Event::Start(Tag::CodeBlock(_)) => is_block = true,
            Event::End(TagEnd::CodeBlock) => is_block = false,
            Event::Text(text) if is_block => found.extend(text.lines().map(|line| line.trim().to_owned())),
            Event::Code(text) => found.push(text.into_string()),
            Event::Start(Tag::Link { link_type, dest_url, .. }) if !matches!(link_type, LinkType::WikiLink { .. }) => {
                found.push(dest_url.into_string());
            }
            Event::Text(text) => {
                let is_end = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | '"' | '<' | '>' | '“' | '”');
                let is_part = |c: char| is_end(c) || matches!(c, ',' | ';' | ':' | '=' | '/' | '\'' | '[' | ']');
                let trim = |word: &str| word.trim_matches(['.', ',', ';', ':', '!', '?', '\'']).to_owned();
                found.extend(text.split(is_end).filter(|word| is_address(word)).map(trim));
                found.extend(text.split(is_part).map(trim).filter(|word| is_version(word)));
            }
            _ => {}
        }
    }
    found.retain(|code| !code.trim().is_empty());
    found
}

fn is_address(word: &str) -> bool {
    let lower = word.to_lowercase();
    lower.contains("://") || lower.contains("www.")
}

/// Whether a word is a version number, such as `v1.2` or `1.2.3`. A date such as `31.03.2027` is none.
fn is_version(word: &str) -> bool {
    let number = word.strip_prefix(['v', 'V']).unwrap_or(word);
    let parts: Vec<&str> = number.split('.').collect();
    let is_number = parts.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    let is_date = parts.len() == 3 && parts[0].len() <= 2 && parts[1].len() <= 2 && [2, 4].contains(&parts[2].len());
    is_number && (parts.len() > 2 && !is_date || parts.len() > 1 && number != word)
}

/// Raw HTML and links that the run adds and that could do something in a reader's browser.
fn check_markup(page: &JudgedPage<'_>, after: &WikiPage, findings: &mut Vec<RunFinding>) {
    let before = page.before.map_or_else(Vec::new, |page| list_markup(page.document.body()));
    // The marks of the sections that code renders.
    let is_mark =
        |text: &str| after.kind == OVERVIEW && matches!(text.trim(), "<!-- steward -->" | "<!-- /steward -->");
    for (fault, text) in list_markup(after.document.body()) {
        if !before.iter().any(|(_, known)| *known == text) && !is_mark(&text) {
            let shown: String = text.trim().chars().take(80).collect();
            report(findings, page.file, fault, shown);
        }
    }
}

fn list_markup(body: &str) -> Vec<(RunFault, String)> {
    let found = Parser::new_ext(body, PAGE_MARKDOWN).filter_map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Some((RunFault::RawHtml, text.into_string())),
        // A picture calls its server when the page is opened.
        Event::Start(Tag::Image { dest_url, .. }) => Some((RunFault::UnsafeLink, format!("a picture: {dest_url}"))),
        Event::Start(Tag::Link { dest_url, .. }) if !is_safe_link(&dest_url) => {
            Some((RunFault::UnsafeLink, dest_url.into_string()))
        }
        _ => None,
    });
    found.collect()
}

/// Whether a link leads to a page, or to a place that a browser only opens.
fn is_safe_link(link: &str) -> bool {
    let lower = link.trim().to_ascii_lowercase();
    let scheme = lower.split(['/', '?', '#']).next().is_some_and(|first| first.contains(':'));
    !scheme || SAFE_SCHEMES.iter().any(|safe| lower.starts_with(safe))
}

/// The claims that the run makes on a page, and those that it removes from it.
pub(super) fn list_claims(page: &JudgedPage<'_>, input: &VerifyInput<'_>) -> Vec<ClaimRecord> {
    let slug = |of: Option<&WikiPage>| of.map_or_else(String::new, |page| page.slug.clone());
    let made = list_new_claims(page).into_iter().map(|claim| ClaimRecord {
        claim: claim.name(&slug(page.after.as_ref())),
        change: ClaimChange::Asserted,
        statement_sha256: claim.hash_statement(),
        anchors: claim.labels.iter().filter_map(|label| locate(page.claims_after.anchors.get(label)?, input)).collect(),
    });
    let mut left = page.claims_after.count_statements();
    let removed = page.claims_before.claims.iter().filter(|claim| match left.get_mut(claim.statement.as_str()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        Some(_) | None => true,
    });
    let removed = removed.map(|claim| ClaimRecord {
        claim: claim.name(&slug(page.before)),
        change: ClaimChange::Removed,
        statement_sha256: claim.hash_statement(),
        anchors: Vec::new(),
    });
    made.chain(removed).collect()
}

/// Where the words of an anchor stand, if its source is at hand.
fn locate(anchor: &Anchor, input: &VerifyInput<'_>) -> Option<AnchorRecord> {
    let text = input.texts.get(&anchor.source)?;
    let slice = text.find_quote(&anchor.quote).ok()?;
    Some(AnchorRecord {
        label: anchor.label.clone(),
        source: anchor.source.clone(),
        offset: slice.offset,
        length: slice.length,
        quote_sha256: ContentHash::hash_bytes(text.read_slice(slice)?.as_bytes()),
    })
}

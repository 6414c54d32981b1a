//! Settles a dispute: of the sides in a `::: disputed` block one stays, and the block and its callout go.
//!
//! Only a person decides that. What stands in the block without a claim is theirs and stays. Nothing else on the page changes.

use super::claims::{Claim, PageClaims, read_claims};
use super::details::{ClaimChange, ClaimRecord};
use super::merge::{SplitBody, list_sources};
use super::page::{DisputedBlock, MAX_SUMMARY, WikiPage, read_page, shorten};
use crate::record::frontmatter::{self, FieldEdit, FrontmatterError};
use crate::record::plain_text::unescape_markdown;
use crate::time::format_seconds;
use chrono::{DateTime, Utc};
use serde_json::Value;

/// How a side begins that a run wrote.
const DATED: &str = "**Updated ";
/// How the callout begins that a run wrote.
const CALLOUT: &str = "> ⚠️ Contradiction: ";

/// A page whose dispute is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledPage {
    pub text: String,
    /// The claims that are gone.
    pub removed: Vec<ClaimRecord>,
}

/// Why a dispute cannot be settled.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SettleError {
    #[error("{page} has no claim `{claim}`; it has {}", .known.join(", "))]
    NoClaim { page: String, claim: String, known: Vec<String> },
    #[error("the claim `{0}` does not stand in a dispute")]
    NotDisputed(String),
    #[error("the claim `{keep}` does not stand in this dispute; its sides are {}", .sides.join(", "))]
    NotInBlock { keep: String, sides: Vec<String> },
    #[error("several sides of the dispute stand in one paragraph: edit the page by hand")]
    OneParagraph,
    #[error("the block of the dispute is not closed: add a line `:::` below its last side")]
    NotClosed,
    #[error("its frontmatter cannot be edited: {0}")]
    Frontmatter(#[from] FrontmatterError),
}

/// Settles the dispute in which a claim stands: the claim `keep` stays, and the others of the block go.
///
/// # Errors
/// [`SettleError`].
pub fn settle_dispute(page: &WikiPage, claim: &str, keep: &str, at: DateTime<Utc>) -> Result<SettledPage, SettleError> {
    let body = page.document.body();
    let claims = read_claims(body, &page.body.disputed);
    let named = find_claim(page, &claims, claim)?;
    let holds = |block: &DisputedBlock, claim: &Claim| (block.first..=block.last).contains(&claim.line);
    let block = page.body.disputed.iter().find(|block| holds(block, named));
    let block = block.ok_or_else(|| SettleError::NotDisputed(claim.to_owned()))?;
    let sides: Vec<&Claim> = claims.claims.iter().filter(|claim| holds(block, claim)).collect();
    let exact = sides.iter().find(|side| side.id == keep);
    let kept = exact.or_else(|| sides.iter().find(|side| is_named(side, keep))).ok_or_else(|| {
        SettleError::NotInBlock { keep: keep.to_owned(), sides: sides.iter().map(|side| side.id.clone()).collect() }
    })?;
    let split = SplitBody::new(body);
    let text = keep_side(split.text, block, kept, &sides)?;
    let (gap, _) = split.split_below();
    let is_gone = |label: &str| sides.iter().any(|side| side.id != kept.id && side.labels.iter().any(|it| it == label));
    let notes = split.render_notes(|label| !is_gone(label) || text.contains(&format!("[^{label}]")));
    let settled = format!("{text}{gap}{notes}");
    let gone = sides.iter().filter(|side| side.id != kept.id);
    let removed = gone.map(|side| ClaimRecord {
        claim: side.name(&page.slug),
        change: ClaimChange::Removed,
        statement_sha256: side.hash_statement(),
        anchors: Vec::new(),
    });
    let summary = is_summarized(page, &sides, kept).then(|| shorten(&read_plain(&kept.statement), MAX_SUMMARY));
    Ok(SettledPage { text: edit_fields(page, &settled, summary, at)?, removed: removed.collect() })
}

/// The page without the disputes of which a rollback left one side that a run wrote: that side stays with its quotes and its date.
///
/// `before` is the page before the run that goes back, and `now` the one before the rollback. Only a block in the form in which runs
/// write it is unwrapped: closed, with one line of a callout. Nothing else on the page changes but `contradicts` and the date.
pub(super) fn unwrap_single_sides(file: &str, pages: RolledBackPage<'_>, left: Vec<u8>, at: DateTime<Utc>) -> Vec<u8> {
    if left == pages.before.as_bytes() {
        return left;
    }
    let read = |bytes: &[u8]| read_page(file, bytes).page;
    let disputes = |page: Option<WikiPage>| page.map_or_else(Vec::new, |page| list_disputes(&page));
    let (before, now) = (disputes(read(pages.before.as_bytes())), disputes(read(pages.now)));
    let holds = |sides: &[Claim], side: &Claim| sides.iter().any(|known| known.statement == side.statement);
    let has_lost_one = |side: &Claim| {
        now.iter().any(|sides| sides.len() > 1 && holds(sides, side))
            && !before.iter().any(|sides| sides.len() == 1 && holds(sides, side))
    };
    let mut text = left;
    loop {
        let Some(page) = read(&text) else { return text };
        let single = list_blocks(&page).into_iter().find(|(_, sides)| match sides.as_slice() {
            [side] => side.statement.starts_with(DATED) && has_lost_one(side),
            _ => false,
        });
        let unwrapped = single.and_then(|(block, _)| unwrap_block(&page, &block, at));
        match unwrapped {
            Some(unwrapped) => text = unwrapped.into_bytes(),
            None => return text,
        }
    }
}

/// A page before the run that goes back, and before the rollback.
#[derive(Clone, Copy)]
pub(super) struct RolledBackPage<'a> {
    pub(super) before: &'a str,
    pub(super) now: &'a [u8],
}

/// The page without the first two lines and the last line of a block, and the blank line below its callout; `None` if the block has
/// another form than runs give it.
fn unwrap_block(page: &WikiPage, block: &DisputedBlock, at: DateTime<Utc>) -> Option<String> {
    let body = page.document.body();
    let lines: Vec<&str> = body.split_inclusive('\n').collect();
    let inside = lines.get(block.first..block.last.checked_sub(1)?)?;
    let [callout, blank, rest @ ..] = inside else { return None };
    let is_callout = callout.starts_with(CALLOUT) && blank.trim().is_empty();
    let is_closed = lines.get(block.last - 1)?.trim() == ":::" && lines.get(block.first - 1)?.trim() == "::: disputed";
    if !is_callout || !is_closed || rest.iter().any(|line| line.trim_start().starts_with('>')) {
        return None;
    }
    let unwrapped = [&lines[..block.first - 1], rest, &lines[block.last..]].concat().concat();
    let bare = page.document.as_str().len() - body.len();
    let whole = format!("{}{unwrapped}", &page.document.as_str()[..bare]);
    let is_settled = read_page(&page.file, whole.as_bytes()).page.is_some_and(|page| page.body.disputed.is_empty());
    let mut edits = vec![FieldEdit { field: "updated_at".to_owned(), value: Some(format_seconds(at).into()) }];
    if is_settled && page.document.fields().contains_key("contradicts") {
        edits.push(FieldEdit { field: "contradicts".to_owned(), value: None });
    }
    let edited = frontmatter::edit_fields(whole.as_bytes(), &edits).ok()?;
    String::from_utf8(edited).ok()
}

/// The disputes of a page, each with its sides.
fn list_blocks(page: &WikiPage) -> Vec<(DisputedBlock, Vec<Claim>)> {
    let claims = read_claims(page.document.body(), &page.body.disputed).claims;
    let sides = |block: &DisputedBlock| {
        let lines = block.first..=block.last;
        claims.iter().filter(|claim| lines.contains(&claim.line)).cloned().collect()
    };
    page.body.disputed.iter().map(|block| (*block, sides(block))).collect()
}

/// The sides of each dispute of a page.
fn list_disputes(page: &WikiPage) -> Vec<Vec<Claim>> {
    list_blocks(page).into_iter().map(|(_, sides)| sides).collect()
}

fn is_named(claim: &Claim, name: &str) -> bool {
    claim.id == name || claim.labels.iter().any(|label| label == name)
}

fn find_claim<'c>(page: &WikiPage, claims: &'c PageClaims, name: &str) -> Result<&'c Claim, SettleError> {
    let exact = claims.claims.iter().find(|claim| claim.id == name);
    let named = exact.or_else(|| claims.claims.iter().find(|claim| is_named(claim, name)));
    named.ok_or_else(|| SettleError::NoClaim {
        page: page.file.clone(),
        claim: name.to_owned(),
        known: claims.claims.iter().map(|claim| claim.id.clone()).collect(),
    })
}

/// The text without the lines of the container, the line of its callout, and the paragraphs of the sides that go. Everything else in
/// the block stays as it is.
fn keep_side(text: &str, block: &DisputedBlock, kept: &Claim, sides: &[&Claim]) -> Result<String, SettleError> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let last = block.last.min(lines.len());
    // An open block would reach to the end of the page.
    if last <= block.first || lines[last - 1].trim() != ":::" {
        return Err(SettleError::NotClosed);
    }
    let end = last - 1;
    let is_blank = |at: &usize| lines[*at].trim().is_empty();
    let mut stays: Vec<&str> = Vec::new();
    let mut at = block.first;
    while at < end {
        let paragraph = at..(at..end).find(is_blank).unwrap_or(end);
        let below = (paragraph.end..end).find(|line| !is_blank(line)).unwrap_or(end);
        let inside: Vec<&&Claim> = sides.iter().filter(|side| paragraph.contains(&(side.line - 1))).collect();
        let is_kept = inside.iter().any(|side| side.id == kept.id);
        if is_kept && inside.len() > 1 {
            return Err(SettleError::OneParagraph);
        }
        let is_callout = lines.get(at).is_some_and(|line| line.trim_start().starts_with("> ⚠"));
        match inside.is_empty() {
            true if is_callout && paragraph.len() == 1 => {}
            true if is_callout => stays.extend(&lines[at + 1..below]),
            _ if is_kept || inside.is_empty() => stays.extend(&lines[at..below]),
            _ => {}
        }
        at = below;
    }
    while stays.last().is_some_and(|line| line.trim().is_empty()) {
        stays.pop();
    }
    Ok([&lines[..block.first - 1], &stays, &lines[last..]].concat().concat())
}

/// Whether the index shows a side that goes.
fn is_summarized(page: &WikiPage, sides: &[&Claim], kept: &Claim) -> bool {
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
    let summary = letters(page.summary.trim_end_matches('…'));
    let holds = |claim: &Claim| letters(&read_plain(&claim.statement)).starts_with(&summary);
    page.has_own_summary() && !summary.is_empty() && !holds(kept) && sides.iter().any(|side| holds(side))
}

/// A statement without the head that dates it.
fn read_plain(statement: &str) -> String {
    unescape_markdown(strip_date(statement))
}

/// A statement in Markdown without the words that date a side of a dispute.
pub(super) fn strip_date(statement: &str) -> &str {
    let bare = statement.strip_prefix(DATED).and_then(|rest| rest.split_once(":** "));
    bare.map_or(statement, |(_, rest)| rest)
}

/// The whole page with this body: a new date, without sources that nothing cites any more, and without contradictions if no
/// dispute is left.
fn edit_fields(page: &WikiPage, body: &str, summary: Option<String>, at: DateTime<Utc>) -> Result<String, SettleError> {
    let bare = page.document.as_str().len() - page.document.body().len();
    let whole = format!("{}{body}", &page.document.as_str()[..bare]);
    let is_settled = read_page(&page.file, whole.as_bytes()).page.is_some_and(|page| page.body.disputed.is_empty());
    let cited = list_sources(body);
    let fields = page.document.fields();
    let mut edits = vec![FieldEdit { field: "updated_at".to_owned(), value: Some(format_seconds(at).into()) }];
    if let Some(Value::Array(sources)) = fields.get("sources") {
        let is_cited = |source: &&Value| source.as_str().is_some_and(|source| cited.contains(&source));
        let mut left: Vec<Value> = sources.iter().filter(is_cited).cloned().collect();
        // A person who wrote the dispute may have left it out.
        let new = cited.iter().filter(|id| sources.iter().all(|known| known.as_str() != Some(**id)));
        left.extend(new.map(|id| Value::from(*id)));
        if left != *sources && !left.is_empty() {
            edits.push(FieldEdit { field: "sources".to_owned(), value: Some(Value::Array(left)) });
        }
    }
    if let Some(summary) = summary {
        let mut metadata = fields.get("metadata").cloned().unwrap_or_default();
        metadata["steward"]["summary"] = summary.into();
        edits.push(FieldEdit { field: "metadata".to_owned(), value: Some(metadata) });
    }
    if is_settled && fields.contains_key("contradicts") {
        edits.push(FieldEdit { field: "contradicts".to_owned(), value: None });
    }
    let edited = frontmatter::edit_fields(whole.as_bytes(), &edits)?;
    Ok(String::from_utf8_lossy(&edited).into_owned())
}

#[cfg(test)]
mod tests;

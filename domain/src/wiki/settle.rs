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
    // An open block ends with the text, whose last line is a person's.
    let is_closed = last > block.first && lines[last - 1].trim() == ":::";
    let end = if is_closed { last - 1 } else { last };
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
    while is_closed && stays.last().is_some_and(|line| line.trim().is_empty()) {
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
mod tests {
    use super::*;
    use crate::wiki::quote::Anchor;

    fn anchors() -> [Anchor; 3] {
        [
            Anchor::new("lease", "The lease of plot 12 ends on 31 March 2027."),
            Anchor::new("letter", "The council extends the lease of plot 12 to 31 March 2029."),
            Anchor::new("lease", "Plot 12 lies by the river."),
        ]
    }

    fn page(block: &str) -> WikiPage {
        let [old, new, other] = anchors();
        let head = "---\nschema: knowledge.entry/v1\nslug: plot-12\nkind: entity\ntitle: Plot 12\nsources: [lease, letter]\n\
            confidence: 0.5\nupdated_at: \"2026-11-22T09:15:04Z\"\ncontradicts: [summary-letter]\nmine: 1 # kept\n---\n";
        let notes = format!("{}\n{}\n{}\n", old.render(), new.render(), other.render());
        let text = format!("{head}# Plot 12\n\n{block}\n\nIt lies by the river.[^{}]\n\n{notes}", other.label);
        read_page("entities/plot-12.md", text.as_bytes()).page.unwrap()
    }

    fn block() -> String {
        let [old, new, _] = anchors();
        format!(
            "::: disputed\n> ⚠️ Contradiction: 2027 vs 2029 (letter)\n\nThe lease ends\nin 2027.[^{}]\n\nI must ask.\n\n**Updated 2026-11-22 \
             per letter:** it ends in 2029.[^{}]\n:::",
            old.label, new.label
        )
    }

    fn settle(page: &WikiPage, claim: &str, keep: &str) -> Result<SettledPage, SettleError> {
        settle_dispute(page, claim, keep, "2026-11-23T10:00:00Z".parse().unwrap())
    }

    #[test]
    fn one_side_stays_and_everything_else_keeps_its_bytes() {
        let ([old, new, other], page) = (anchors(), page(&block()));
        let settled = settle(&page, &old.label, &new.label).unwrap();
        let expected = page
            .document
            .as_str()
            .replace(
                &block(),
                &format!("I must ask.\n\n**Updated 2026-11-22 per letter:** it ends in 2029.[^{}]", new.label),
            )
            .replace(&format!("{}\n", old.render()), "")
            .replace("contradicts: [summary-letter]\n", "")
            .replace("2026-11-22T09:15:04Z", "2026-11-23T10:00:00Z");
        assert_eq!(settled.text, expected);
        assert_eq!(settled.removed[0].claim, format!("plot-12#{}", old.label));
        // The other way round, the letter is cited nowhere any more.
        let settled = settle(&page, &new.label, &old.label).unwrap();
        let read = read_page("entities/plot-12.md", settled.text.as_bytes()).page.unwrap();
        assert_eq!((read.sources.as_slice(), read.body.disputed.len()), (&["lease".to_owned()][..], 0));
        assert!(settled.text.contains(&other.render()) && !settled.text.contains("2029"), "{}", settled.text);
    }

    #[test]
    fn the_index_does_not_show_the_side_that_is_gone() {
        let [old, new, _] = anchors();
        let summed = |summary: &str| {
            let text = page(&block()).document.as_str().replace(
                "mine: 1 # kept\n",
                &format!("metadata: {{steward: {{summary: \"{summary}\", aliases: [twelve]}}}}\n"),
            );
            read_page("entities/plot-12.md", text.as_bytes()).page.unwrap()
        };
        let summary = |page: &WikiPage, keep: &str| {
            let settled = settle(page, &old.label, keep).unwrap();
            let read = read_page("entities/plot-12.md", settled.text.as_bytes()).page.unwrap();
            assert_eq!(read.aliases, ["twelve"]);
            read.summary
        };
        let page = summed("The lease ends in 2027.");
        assert_eq!(summary(&page, &new.label), "it ends in 2029.");
        assert_eq!(summary(&page, &old.label), "The lease ends in 2027.");
        assert_eq!(summary(&summed("Plot 12 and its lease."), &new.label), "Plot 12 and its lease.");
    }

    fn unwrap(before: &str, now: &str, left: &str) -> String {
        let pages = RolledBackPage { before, now: now.as_bytes() };
        let at = "2026-11-23T10:00:00Z".parse().unwrap();
        String::from_utf8(unwrap_single_sides("entities/plot-12.md", pages, left.as_bytes().to_vec(), at)).unwrap()
    }

    #[test]
    fn a_dispute_of_which_a_rollback_leaves_one_side_is_unwrapped_and_nothing_else_changes() {
        let ([old, new, _], page) = (anchors(), page(&block()));
        let now = page.document.as_str();
        let left = now.replace(&format!("The lease ends\nin 2027.[^{}]\n\n", old.label), "");
        let expected = left
            .replace("::: disputed\n> ⚠️ Contradiction: 2027 vs 2029 (letter)\n\n", "")
            .replace(&format!("[^{}]\n:::\n", new.label), &format!("[^{}]\n", new.label))
            .replace("contradicts: [summary-letter]\n", "")
            .replace("2026-11-22T09:15:04Z", "2026-11-23T10:00:00Z");
        assert_eq!(unwrap("", now, &left), expected);
    }

    #[test]
    fn a_block_of_a_person_stays_whatever_goes_back() {
        let ([old, new, _], page) = (anchors(), page(&block()));
        let now = page.document.as_str();
        let left = now.replace(&format!("The lease ends\nin 2027.[^{}]\n\n", old.label), "");
        // It had one side before the run, two sides never, or is what stood there before the run.
        for (before, now) in [(left.as_str(), now), ("", left.as_str())] {
            assert_eq!(unwrap(before, now, &left), left);
        }
        for (form, other) in [
            ("\n:::\n", "\n"),
            ("(letter)\n", "(letter)\n> My note: ask Bob.\n"),
            ("> ⚠️ Contradiction: 2027 vs 2029 (letter)\n\n", ""),
            ("**Updated 2026-11-22 per letter:** it", "It"),
        ] {
            let (now, left) = (now.replace(form, other), left.replace(form, other));
            assert_eq!(unwrap("", &now, &left), left, "{other}");
        }
        assert!(left.contains(&new.label));
    }

    #[test]
    fn a_person_keeps_their_lines_in_and_around_a_settled_dispute() {
        let [old, new, other] = anchors();
        let own = format!(
            "::: disputed\n> ⚠️ Contradiction: 2027 vs 2029\n> My note: ask Bob.\n\nThe lease ends in 2027.[^{}]\n\n```\na\n\n\nb\n```\n\nIt ends in \
             2029.[^{}]\n:::",
            old.label, new.label
        );
        let page = self::page(&own);
        let text =
            page.document.as_str().replace(&other.render(), &format!("{}\n[^todo]: call the council", other.render()));
        let page = read_page("entities/plot-12.md", text.as_bytes()).page.unwrap();
        let settled = settle(&page, &old.label, &new.label).unwrap().text;
        let stays = format!("> My note: ask Bob.\n\n```\na\n\n\nb\n```\n\nIt ends in 2029.[^{}]\n\nIt lies", new.label);
        assert!(settled.contains(&stays) && settled.contains("[^todo]: call the council"), "{settled}");
        // A block that nobody closed ends with the text.
        let open = self::page(&own.replace("\n:::", ""));
        let settled = settle(&open, &old.label, &new.label).unwrap().text;
        assert!(settled.contains(&format!("It lies by the river.[^{}]", other.label)), "{settled}");
    }

    #[test]
    fn the_exact_name_of_a_claim_comes_before_the_labels_of_others() {
        let [old, new, other] = anchors();
        let body = format!(
            "::: disputed\n> ⚠️ Contradiction: a vs b\n\nOpen.[^{}][^{}]\n\nShut.[^{}]\n:::\n\nNot disputed.[^{}]",
            other.label, old.label, new.label, old.label
        );
        assert_eq!(settle(&page(&body), &old.label, &old.label), Err(SettleError::NotDisputed(old.label)));
    }

    #[test]
    fn what_is_no_dispute_or_cannot_be_divided_is_refused() {
        let ([old, new, other], page) = (anchors(), page(&block()));
        assert_eq!(settle(&page, &other.label, &other.label), Err(SettleError::NotDisputed(other.label.clone())));
        assert!(
            matches!(settle(&page, &old.label, &other.label), Err(SettleError::NotInBlock { sides, .. }) if sides.len() == 2)
        );
        assert!(
            matches!(settle(&page, "c00000000", &old.label), Err(SettleError::NoClaim { known, .. }) if known.len() == 3)
        );
        let joined = self::page(&format!(
            "::: disputed\n> ⚠️ Contradiction: a vs b\n\nThe lease ends in 2027.[^{}] It ends in 2029.[^{}]\n:::",
            old.label, new.label
        ));
        assert_eq!(settle(&joined, &old.label, &new.label), Err(SettleError::OneParagraph));
    }
}

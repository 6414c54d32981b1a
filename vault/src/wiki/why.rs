//! Says why a wiki holds what it holds: its claims with their sources, checked at this moment, and the runs behind them.
//!
//! Pages and sources are read from their files, and runs from their audit records. Nothing is changed here.

mod past;
mod replaced;

use crate::files::root::{VaultRoot, VaultRootError};
use crate::index::{Index, IndexError};
use crate::wiki::folder::{WikiContents, WikiFolder};
use crate::wiki::quotes::{CheckedAnchor, SourceTexts};
use crate::wiki::runs::{list_runs, read_run};
use chrono::{DateTime, Utc};
use replaced::list_replacements;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::action::plan::ContentHash;
use steward_domain::record::path::RecordPath;
use steward_domain::wiki::claims::{self, Claim, read_claims};
use steward_domain::wiki::details::ClaimChange;
use steward_domain::wiki::finding::FindingCode;
use steward_domain::wiki::page::WikiPage;
use steward_domain::wiki::quote::{Anchor, is_quote_label};
use steward_domain::wiki::run::RunId;
use steward_domain::wiki::search::{PageFilter, search_pages, split_words};

pub use replaced::Replacement;

/// The most pages that words find.
const MAX_FOUND: usize = 5;

/// How a question was understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum MatchType {
    Claim,
    Page,
    Tag,
    /// A source: the claims that quote it.
    Source,
    Words,
    /// Nothing fits.
    None,
}

/// What stands behind a claim.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplainedClaim {
    /// As in `plot-12#c6107d23f`.
    pub claim: String,
    /// The file of the page, and the line in it.
    pub file: String,
    pub line: usize,
    pub statement: String,
    pub is_disputed: bool,
    pub anchors: Vec<CheckedAnchor>,
    /// The runs that made it, oldest first. Empty for what a person wrote.
    pub history: Vec<ClaimEvent>,
}

/// What a run did to a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClaimEvent {
    pub at: DateTime<Utc>,
    pub run: RunId,
    pub change: ClaimChange,
    /// The run that took this one back, and when.
    pub reverted_by: Option<RunId>,
    pub reverted_at: Option<DateTime<Utc>>,
    /// The statement is another one by now.
    pub is_reworded: bool,
}

/// A question about a wiki.
#[derive(Clone, Copy, Debug)]
pub struct WhyQuestion<'a> {
    /// What names a claim, a page, a tag, a source or words, in this order.
    pub what: &'a str,
    /// Claims alone that a run made from this moment on.
    pub since: Option<DateTime<Utc>>,
    /// As runs had left the pages at this moment.
    pub until: Option<DateTime<Utc>>,
    /// Whether the answer also lists what stood there before.
    pub include_history: bool,
}

/// The answer to a question about a wiki.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhyReport {
    pub match_type: MatchType,
    pub claims: Vec<ExplainedClaim>,
    /// What stood there before, oldest first, if the question asks for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<Replacement>,
}

/// The pages among which a question is answered.
pub struct WhyPages {
    contents: WikiContents,
    /// The files of the best pages for the words of the question, best first.
    best: Vec<String>,
}

impl WhyPages {
    /// Reads all pages.
    fn read_all(folder: &WikiFolder, what: &str) -> Self {
        let contents = folder.read();
        let hits = search_pages(&contents.pages, what, &PageFilter::default(), MAX_FOUND);
        Self { contents, best: hits.into_iter().map(|hit| hit.file).collect() }
    }

    /// Reads the pages of a wiki of the vault that the question may mean, after the index was brought up to date; `None` if it
    /// does not know the wiki.
    ///
    /// # Errors
    /// [`IndexError`]: the caller reads all pages.
    pub async fn find(
        index: &Index,
        root: &VaultRoot,
        wiki: &str,
        folder: &WikiFolder,
        what: &str,
    ) -> Result<Option<Self>, IndexError> {
        index.sync_wiki(root, wiki).await?;
        let name = what.trim();
        let Some(mut files) = index.wiki().find_named(wiki, name).await? else { return Ok(None) };
        if let Some((slug, _)) = name.split_once('#') {
            files.extend(index.wiki().find_named(wiki, slug).await?.unwrap_or_default());
        }
        let hits = index.wiki().search(wiki, what, &PageFilter::default(), MAX_FOUND).await?.unwrap_or_default();
        let best: Vec<String> = hits.into_iter().map(|hit| hit.file).collect();
        files.extend(best.iter().cloned());
        files.sort();
        files.dedup();
        Ok(Some(Self { contents: folder.read_some(&files), best }))
    }
}

/// Answers a question. `indexed` are the pages as an index found them; without them, and about an earlier moment, all pages are read.
/// `records` are the vault and the wiki's name there: without them nothing is known of earlier moments.
///
/// # Errors
/// The folder of the records cannot be listed.
pub fn explain_question(
    folder: &WikiFolder,
    indexed: Option<WhyPages>,
    records: Option<(&VaultRoot, &str)>,
    question: &WhyQuestion<'_>,
) -> Result<WhyReport, VaultRootError> {
    let WhyQuestion { what, since, until, include_history } = *question;
    let pages = match (records, until) {
        (Some((root, wiki)), Some(until)) => WhyPages::read_past(folder, root, wiki, what, until)?,
        _ => indexed.unwrap_or_else(|| WhyPages::read_all(folder, what)),
    };
    let (match_type, found) = find_claims(&pages.contents, &pages.best, what);
    let history = records.map(|(root, wiki)| read_history(root, wiki)).unwrap_or_default();
    let claims = explain_claims(folder, &pages.contents, &history, found);
    let mut report = WhyReport { match_type, claims, replaced: Vec::new() };
    report.restrict(since, until);
    if let (true, Some((root, _))) = (include_history, records) {
        report.replaced = list_replacements(root, &history, &report.claims, &pages.contents.sources, question);
    }
    Ok(report)
}

/// Explains all claims of one page of a wiki of the vault.
#[must_use]
pub fn explain_page(
    folder: &WikiFolder,
    contents: &WikiContents,
    page: &WikiPage,
    root: &VaultRoot,
    wiki: &str,
) -> Vec<ExplainedClaim> {
    explain_claims(folder, contents, &read_history(root, wiki), list_claims(page))
}

fn explain_claims(
    folder: &WikiFolder,
    contents: &WikiContents,
    history: &[RecordedClaim],
    found: Vec<FoundClaim<'_>>,
) -> Vec<ExplainedClaim> {
    let ids = found.iter().flat_map(|found| &found.anchors).map(|anchor| anchor.source.clone()).collect();
    let texts = SourceTexts::read(folder, contents, ids);
    let checker = texts.index();
    let claims = found.into_iter().map(|found| {
        let FoundClaim { page, claim, anchors, unread } = found;
        let statement = claim.hash_statement();
        let name = claim.name(&page.slug);
        let is_here = |known: &str| known.split('#').next() == Some(page.slug.as_str());
        // The same sentence may rest on another source.
        let has_label = |known: &str| {
            let label = known.split_once('#').map_or("", |(_, id)| id.split('~').next().unwrap_or(id));
            claim.labels.iter().any(|own| own == label)
        };
        let is_own = |known: &&RecordedClaim| {
            known.statement_sha256 == statement && is_here(&known.claim) && has_label(&known.claim)
        };
        let mut events: Vec<ClaimEvent> = history.iter().filter(is_own).map(|known| known.event.clone()).collect();
        if events.is_empty() {
            let reworded = history.iter().filter(|known| known.claim == name);
            events.extend(reworded.map(|known| ClaimEvent { is_reworded: true, ..known.event.clone() }));
        }
        let checked = anchors.iter().map(|anchor| checker.check(anchor)).chain(unread.iter().map(|it| it.check()));
        ExplainedClaim {
            file: page.file.clone(),
            line: page.line_in_file(claim.line),
            anchors: checked.collect(),
            history: events,
            claim: name,
            statement: claim.statement,
            is_disputed: claim.is_disputed,
        }
    });
    claims.collect()
}

/// A claim that a question names.
struct FoundClaim<'c> {
    page: &'c WikiPage,
    claim: Claim,
    anchors: Vec<Anchor>,
    /// The labels of footnotes that quote nothing any more.
    unread: Vec<UnreadLabel>,
}

/// The label of a quote whose footnote cannot be read as one.
struct UnreadLabel(String);

impl UnreadLabel {
    fn check(&self) -> CheckedAnchor {
        CheckedAnchor {
            anchor: Anchor { label: self.0.clone(), source: String::new(), quote: String::new() },
            verified_against_source: false,
            offset: None,
            fault: Some(format!("{}: the footnote does not quote a source any more", FindingCode::QuoteEdited)),
            superseded_by: None,
        }
    }
}

fn list_claims(page: &WikiPage) -> Vec<FoundClaim<'_>> {
    let read = read_claims(page.document.body(), &page.body.disputed);
    let found = read.claims.into_iter().map(|claim| {
        let anchors = claim.labels.iter().filter_map(|label| read.anchors.get(label).cloned()).collect();
        let is_unread = |label: &&String| is_quote_label(label) && !read.anchors.contains_key(*label);
        let unread = claim.labels.iter().filter(is_unread).map(|label| UnreadLabel(label.clone())).collect();
        FoundClaim { page, claim, anchors, unread }
    });
    found.collect()
}

fn find_claims<'c>(contents: &'c WikiContents, best: &[String], what: &str) -> (MatchType, Vec<FoundClaim<'c>>) {
    let all_of =
        |pages: Vec<&'c WikiPage>| -> Vec<FoundClaim<'c>> { pages.into_iter().flat_map(list_claims).collect() };
    let what = what.trim();
    if let Some((slug, id)) = what.split_once('#') {
        let pages = contents.pages.iter().filter(|page| page.slug == slug).collect();
        let found: Vec<_> = all_of(pages).into_iter().filter(|found| found.claim.id == id).collect();
        let is_named = claims::is_claim_id(id) || contents.pages.iter().any(|page| page.slug == slug);
        if !found.is_empty() || is_named {
            return (if found.is_empty() { MatchType::None } else { MatchType::Claim }, found);
        }
    }
    // A label as it stands in the page, without the page.
    if claims::is_claim_id(what) {
        let mut found = all_of(contents.pages.iter().collect());
        found.retain(|found| found.claim.id == what || found.claim.labels.iter().any(|label| label == what));
        return (if found.is_empty() { MatchType::None } else { MatchType::Claim }, found);
    }
    let is_called = |page: &&WikiPage| {
        page.slug == what
            || page.file == what
            || page.title.to_lowercase() == what.to_lowercase()
            || page.aliases.iter().any(|alias| alias.to_lowercase() == what.to_lowercase())
    };
    let pages: Vec<&WikiPage> = contents.pages.iter().filter(is_called).collect();
    if !pages.is_empty() {
        return (MatchType::Page, all_of(pages));
    }
    let tagged: Vec<&WikiPage> = contents.pages.iter().filter(|page| page.tags.iter().any(|tag| tag == what)).collect();
    if !tagged.is_empty() {
        return (MatchType::Tag, all_of(tagged));
    }
    if contents.sources.contains_key(what) {
        let mut found = all_of(contents.pages.iter().collect());
        found.retain(|found| found.anchors.iter().any(|anchor| anchor.source == what));
        return (MatchType::Source, found);
    }
    let place = |page: &WikiPage| best.iter().position(|file| *file == page.file);
    let mut best: Vec<&WikiPage> = contents.pages.iter().filter(|page| place(page).is_some()).collect();
    best.sort_by_key(|page| place(page));
    let found = keep_matching(all_of(best), what);
    (if found.is_empty() { MatchType::None } else { MatchType::Words }, found)
}

/// The claims whose statements hold all of the words, or else the most of them.
fn keep_matching<'c>(mut found: Vec<FoundClaim<'c>>, what: &str) -> Vec<FoundClaim<'c>> {
    let words: BTreeSet<String> = split_words(what).collect();
    let count = |found: &FoundClaim<'_>| {
        let held: BTreeSet<String> = split_words(&found.claim.statement).collect();
        words.intersection(&held).count()
    };
    let most = found.iter().map(count).max().unwrap_or_default();
    found.retain(|found| most > 0 && count(found) == most);
    found
}

/// What a run did to a claim, as its record says.
struct RecordedClaim {
    /// As in `plot-12#c6107d23f`.
    claim: String,
    statement_sha256: ContentHash,
    event: ClaimEvent,
    record: RecordPath,
}

/// What runs did to claims, the oldest run first.
fn read_history(root: &VaultRoot, wiki: &str) -> Vec<RecordedClaim> {
    let runs = list_runs(root, Some(wiki)).unwrap_or_default();
    let times: BTreeMap<RunId, DateTime<Utc>> = runs.iter().map(|run| (run.run.clone(), run.at)).collect();
    let events = runs.into_iter().flat_map(|run| {
        let claims = read_run(root, &run.record).map(|details| details.claims).unwrap_or_default();
        let reverted_at = run.reverted_by.as_ref().and_then(|by| times.get(by)).copied();
        claims.into_iter().map(move |claim| {
            let (change, reverted_by) = (claim.change, run.reverted_by.clone());
            let (at, record) = (run.at, run.record.clone());
            let event = ClaimEvent { at, run: run.run.clone(), change, reverted_by, reverted_at, is_reworded: false };
            RecordedClaim { claim: claim.claim, statement_sha256: claim.statement_sha256, event, record }
        })
    });
    events.collect()
}

//! Compares the quotes of pages with their sources, as both are at this moment.
//!
//! Each source is read once. One whose bytes are not those that were registered proves nothing. Nothing is changed here.

use crate::wiki::folder::{WikiContents, WikiFolder};
use crate::wiki::threads::map_in_threads;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::wiki::claims::{DanglingMark, PageClaims, read_claims};
use steward_domain::wiki::finding::{FindingCode, Severity, WikiFinding};
use steward_domain::wiki::lint::SourceImpact;
use steward_domain::wiki::page::WikiPage;
use steward_domain::wiki::query::FiledKind;
use steward_domain::wiki::quote::{Anchor, QuoteFinder, is_quote_label};
use steward_domain::wiki::registry::{WikiSource, hash_content};
use steward_domain::wiki::source_text::{SourceText, SourceTextError, read_source_text};

/// Why a source that nobody added has no text.
const NOT_REGISTERED: &str = "it is not registered";

/// The texts of sources, or why each cannot be compared.
#[derive(Debug)]
pub struct SourceTexts {
    texts: BTreeMap<String, Result<SourceText, QuoteFault>>,
    /// By which source each one is replaced.
    replaced: BTreeMap<String, String>,
}

/// Finds quotes in the texts of sources.
pub struct QuoteChecker<'t> {
    finders: BTreeMap<&'t str, Result<QuoteFinder<'t>, &'t QuoteFault>>,
    replaced: &'t BTreeMap<String, String>,
}

/// What a lint finds out about quotes.
pub struct QuoteLint {
    pub findings: Vec<WikiFinding>,
    /// What rests on sources that are changed or gone, by their ids.
    pub impacts: BTreeMap<String, SourceImpact>,
}

/// Why a quote does not stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuoteFault {
    pub code: FindingCode,
    pub problem: String,
}

/// A quote that was compared with its source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckedAnchor {
    #[serde(flatten)]
    pub anchor: Anchor,
    pub verified_against_source: bool,
    /// In bytes, from the start of the source's text, if the quote is there.
    pub offset: Option<usize>,
    /// Why it is not verified.
    pub fault: Option<String>,
    /// The id of the source that replaces its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
}

impl SourceTexts {
    /// Reads the texts of these sources.
    #[must_use]
    pub fn read(folder: &WikiFolder, contents: &WikiContents, ids: BTreeSet<String>) -> Self {
        let missing = || QuoteFault { code: FindingCode::SourceMissing, problem: NOT_REGISTERED.to_owned() };
        let read = |id: &String| contents.sources.get(id).ok_or_else(missing).and_then(|it| read_text(folder, it));
        let replaced = |id: &String| Some((id.clone(), contents.sources.get(id)?.superseded_by.clone()?));
        let replaced = ids.iter().filter_map(replaced).collect();
        let texts = ids.into_iter().map(|id| (id.clone(), read(&id)));
        Self { texts: texts.collect(), replaced }
    }

    #[must_use]
    pub fn index(&self) -> QuoteChecker<'_> {
        let finders = self.texts.iter().map(|(id, text)| (id.as_str(), text.as_ref().map(SourceText::finder)));
        QuoteChecker { finders: finders.collect(), replaced: &self.replaced }
    }
}

impl QuoteChecker<'_> {
    /// Where a quote stands in its source, in bytes.
    ///
    /// # Errors
    /// [`QuoteFault`].
    pub fn find(&self, anchor: &Anchor) -> Result<usize, QuoteFault> {
        let fault = |code, problem: &str| QuoteFault { code, problem: problem.to_owned() };
        match self.finders.get(anchor.source.as_str()) {
            None => Err(fault(FindingCode::SourceMissing, NOT_REGISTERED)),
            Some(Err(known)) => Err((*known).clone()),
            Some(Ok(_)) if is_quote_label(&anchor.label) && !anchor.is_intact() => {
                Err(fault(FindingCode::QuoteEdited, "the label of the footnote does not fit its words"))
            }
            Some(Ok(finder)) => match finder.find_quote(&anchor.quote) {
                Ok(slice) => Ok(slice.offset),
                Err(e) => Err(fault(FindingCode::SourceDrifted, &e.to_string())),
            },
        }
    }

    /// Compares an anchor with its source.
    #[must_use]
    pub fn check(&self, anchor: &Anchor) -> CheckedAnchor {
        let found = self.find(anchor);
        CheckedAnchor {
            anchor: anchor.clone(),
            verified_against_source: found.is_ok(),
            offset: found.as_ref().ok().copied(),
            fault: found.err().map(|fault| format!("{}: {}", fault.code, fault.problem)),
            superseded_by: self.replaced.get(&anchor.source).cloned(),
        }
    }
}

/// The text of a source whose bytes are those that were registered.
///
/// # Errors
/// [`QuoteFault`].
pub fn read_text(folder: &WikiFolder, source: &WikiSource) -> Result<SourceText, QuoteFault> {
    let fault = |code, problem: String| QuoteFault { code, problem };
    let read = |path: &str, bytes| match bytes {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err(fault(FindingCode::SourceMissing, format!("{path} is not there: put the file back"))),
        Err(e) => Err(fault(FindingCode::SourceInvalid, format!("{path}: {e}"))),
    };
    let bytes: Vec<u8> = read(&source.path, folder.read_source(&source.path))?;
    if source.content_hash.starts_with("sha256:") && hash_content(&bytes) != source.content_hash {
        let fix = "restore its bytes, or add the changed document as a new source";
        let problem = format!("{} has other bytes than those that were registered: {fix}", source.path);
        return Err(fault(FindingCode::SourceMutated, problem));
    }
    let bytes = match &source.text_file {
        Some(kept) => read(&kept.path, folder.read_kept_text(kept))?,
        None => bytes,
    };
    let path = source.text_file.as_ref().map_or(&source.path, |kept| &kept.path);
    read_source_text(source, bytes).map_err(|e| match e {
        SourceTextError::TextMutated => fault(FindingCode::SourceMutated, format!("{path}: {e}")),
        e => fault(FindingCode::SourceInvalid, format!("{path}: {e}")),
    })
}

/// The text of a source as it is now, whatever was registered; `None` if it is not the file itself, or cannot be read.
#[must_use]
pub fn read_changed_text(folder: &WikiFolder, source: &WikiSource) -> Option<SourceText> {
    let bytes = folder.read_source(&source.path).ok().flatten().filter(|_| source.text_file.is_none())?;
    read_source_text(source, bytes).ok()
}

/// What is compared of a page. Its statements and blocks are not kept: those of all pages together are large.
struct PageQuotes<'p> {
    page: &'p WikiPage,
    anchors: BTreeMap<String, Anchor>,
    footnotes: BTreeMap<String, usize>,
    dangling: Vec<DanglingMark>,
    /// How many claims rest on each source.
    claims: BTreeMap<String, u64>,
}

impl<'p> PageQuotes<'p> {
    fn read(page: &'p WikiPage) -> Self {
        let claims = read_claims(page.document.body(), &page.body.disputed);
        let dangling = claims.list_dangling_marks();
        let PageClaims { anchors, footnotes, claims, .. } = claims;
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for claim in claims {
            let sources = claim.labels.iter().filter_map(|label| anchors.get(label)).map(|anchor| &anchor.source);
            for source in sources.collect::<BTreeSet<_>>() {
                *counts.entry(source.clone()).or_default() += 1;
            }
        }
        Self { page, anchors, footnotes, dangling, claims: counts }
    }

    /// The quotes of this source that do not stand in its changed text.
    fn list_gone<'a>(&'a self, source: &'a str, text: &'a QuoteFinder<'_>) -> impl Iterator<Item = &'a Anchor> {
        let cited = self.anchors.values().filter(move |anchor| anchor.source == source);
        cited.filter(|anchor| anchor.is_intact() && text.find_quote(&anchor.quote).is_err())
    }

    fn list_findings(&self, checker: &QuoteChecker<'_>, changed: &BTreeMap<&str, QuoteFinder<'_>>) -> Vec<WikiFinding> {
        let mut found = Vec::new();
        let mut report = |code, line: usize, problem: &str, fix: &str| {
            let finding = WikiFinding::new(code, Severity::Error, &self.page.file, problem, fix);
            found.push(finding.with_line(Some(self.page.line_in_file(line))));
        };
        for anchor in self.anchors.values().filter(|anchor| is_quote_label(&anchor.label)) {
            let line = self.footnotes.get(&anchor.label).copied().unwrap_or(1);
            match checker.find(anchor) {
                Err(QuoteFault { code: code @ FindingCode::QuoteEdited, problem }) => {
                    report(code, line, &problem, "restore the words of the source, or remove the statement");
                }
                Err(QuoteFault { code: code @ FindingCode::SourceDrifted, problem }) => {
                    let problem = format!("the quote of `{}`: {problem}", anchor.source);
                    report(code, line, &problem, "restore the source, or quote what stands there");
                }
                // The fields of the page have a finding of their own.
                Err(fault) if fault.problem == NOT_REGISTERED && !self.page.sources.contains(&anchor.source) => {
                    let problem = format!("the source `{}` of a quote: {NOT_REGISTERED}", anchor.source);
                    report(fault.code, line, &problem, "add the source, or remove the statement");
                }
                Ok(_) | Err(_) => {}
            }
        }
        for (source, text) in changed {
            for anchor in self.list_gone(source, text) {
                let line = self.footnotes.get(&anchor.label).copied().unwrap_or(1);
                let problem = format!("the quote of `{source}`, which was changed, does not stand in it any more");
                report(
                    FindingCode::SourceDrifted,
                    line,
                    &problem,
                    "restore the source, or ingest it under another name",
                );
            }
        }
        let is_unread = |label: &&String| is_quote_label(label) && !self.anchors.contains_key(*label);
        for (label, line) in self.footnotes.iter().filter(|(label, _)| is_unread(label)) {
            let problem = format!("the footnote `{label}` does not quote a source any more");
            report(FindingCode::QuoteEdited, *line, &problem, "restore the footnote, or remove the statement");
        }
        for mark in &self.dangling {
            let problem = format!("the mark `{}` has no footnote", mark.label);
            report(FindingCode::ClaimUnanchored, mark.line, &problem, "restore the footnote, or remove the mark");
        }
        found
    }
}

/// What is wrong with the quotes of all pages: edited ones, such that do not stand in their source, and marks without a footnote. A
/// source that is changed or gone has a finding of its own, which says what rests on it.
#[must_use]
pub fn lint_quotes(folder: &WikiFolder, contents: &WikiContents) -> QuoteLint {
    let pages = map_in_threads(&contents.pages, PageQuotes::read);
    let cited = pages.iter().flat_map(|page| page.anchors.values());
    let ids = cited.filter(|anchor| is_quote_label(&anchor.label)).map(|anchor| anchor.source.clone()).collect();
    let texts = SourceTexts::read(folder, contents, ids);
    let checker = texts.index();
    let is_lost = |code| matches!(code, FindingCode::SourceMutated | FindingCode::SourceMissing);
    let lost = texts.texts.iter().filter(|(_, text)| text.as_ref().is_err_and(|fault| is_lost(fault.code)));
    let lost: Vec<&WikiSource> = lost.filter_map(|(id, _)| contents.sources.get(id)).collect();
    let now: Vec<(&str, SourceText)> =
        lost.iter().filter_map(|source| Some((source.id.as_str(), read_changed_text(folder, source)?))).collect();
    let changed: BTreeMap<&str, QuoteFinder<'_>> = now.iter().map(|(id, text)| (*id, text.finder())).collect();
    let impacts = lost.iter().map(|source| (source.id.clone(), find_impact(&pages, &source.id, &changed))).collect();
    let found = map_in_threads(&pages, |page| page.list_findings(&checker, &changed));
    QuoteLint { findings: found.into_iter().flatten().collect(), impacts }
}

/// What rests on a source, and which of its quotes do not stand in its changed text.
fn find_impact(pages: &[PageQuotes<'_>], source: &str, changed: &BTreeMap<&str, QuoteFinder<'_>>) -> SourceImpact {
    let resting = || pages.iter().filter(|page| page.claims.contains_key(source));
    let gone = |text: &QuoteFinder<'_>| resting().map(|page| page.list_gone(source, text).count() as u64).sum();
    SourceImpact {
        claims: resting().map(|page| page.claims[source]).sum(),
        pages: resting().map(|page| page.page.file.clone()).collect(),
        archives: resting().filter(|page| page.page.kind == FiledKind::Archive.to_string()).count() as u64,
        gone: changed.get(source).map(gone),
    }
}

//! One page of a wiki: its text, and each claim with the words of its source, compared at this moment.
//!
//! Nothing is kept: the page, its sources and the records of the runs are read each time.

use super::open_wiki;
use serde::Serialize;
use serde_json::Value;
use steward_domain::wiki::page::{WikiPage, may_be_page};
use steward_domain::wiki::run::RunId;
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::state::ReadWikiError;
use steward_vault::wiki::why::{ClaimEvent, ExplainedClaim, explain_page};
use utoipa::ToSchema;

/// A page of a wiki.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WikiPageView {
    pub wiki: String,
    /// Relative to the wiki.
    pub file: String,
    pub slug: String,
    pub kind: String,
    /// Untrusted.
    pub title: String,
    /// From 0 to 1.
    pub confidence: f64,
    pub updated_at: Option<String>,
    pub tags: Vec<String>,
    /// Markdown, without the frontmatter. Untrusted.
    pub text: String,
    pub claims: Vec<WikiClaimView>,
}

/// A claim of a page.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WikiClaimView {
    /// As in `plot-12#c6107d23f`.
    pub claim: String,
    /// The line in the file, from 1.
    pub line: u64,
    /// Untrusted.
    pub statement: String,
    pub is_disputed: bool,
    pub quotes: Vec<WikiQuoteView>,
    /// What runs did to it, oldest first, as in `asserted by r-20261122T091504Z-3f9a1c22`.
    pub history: Vec<WikiClaimEventView>,
}

/// The words of a source on which a claim rests.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WikiQuoteView {
    pub label: String,
    pub source: String,
    /// Untrusted.
    pub quote: String,
    /// Whether the words stand in the source now.
    pub verified_against_source: bool,
    /// Where they stand, in bytes from the start of the source's text.
    pub offset: Option<u64>,
    /// Why they are not verified.
    pub fault: Option<String>,
}

/// What a run did to a claim.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WikiClaimEventView {
    pub at: chrono::DateTime<chrono::Utc>,
    pub run: String,
    /// `asserted` or `removed`.
    pub change: String,
    /// The run that took this one back.
    pub reverted_by: Option<String>,
    /// The statement was reworded since, or a link in it was corrected.
    pub is_reworded: bool,
}

/// Reads a page, named by its slug or its file; `None` if there is none. Call it on a blocking thread.
///
/// # Errors
/// [`ReadWikiError::Unknown`] if there is no such wiki.
pub fn find_wiki_page(root: &VaultRoot, wiki: &str, name: &str) -> Result<Option<WikiPageView>, ReadWikiError> {
    let folder = open_wiki(root, wiki)?;
    let files = folder.read_some(&[]).files;
    let is_named = |file: &&String| {
        let stem = file.rsplit('/').next().and_then(|file| file.strip_suffix(".md"));
        may_be_page(file) && (file.as_str() == name || stem == Some(name))
    };
    // A page whose file has another name than its slug is found among all of them.
    let named: Vec<String> = files.iter().filter(is_named).cloned().collect();
    let mut contents = folder.read_some(&named);
    let has = |page: &WikiPage| page.slug == name || page.file == name;
    if !contents.pages.iter().any(has) {
        contents = folder.read_some(&files.into_iter().filter(|file| may_be_page(file)).collect::<Vec<_>>());
    }
    let Some(page) = contents.pages.iter().find(|page| has(page)).cloned() else { return Ok(None) };
    let claims = explain_page(&folder, &contents, &page, root, wiki);
    Ok(Some(WikiPageView {
        wiki: wiki.to_owned(),
        updated_at: page.document.fields().get("updated_at").and_then(Value::as_str).map(str::to_owned),
        text: page.document.body().trim().to_owned(),
        file: page.file.clone(),
        slug: page.slug.clone(),
        kind: page.kind.clone(),
        title: page.title.clone(),
        confidence: page.confidence,
        tags: page.tags.clone(),
        claims: claims.into_iter().map(show_claim).collect(),
    }))
}

fn show_claim(claim: ExplainedClaim) -> WikiClaimView {
    let event = |event: ClaimEvent| WikiClaimEventView {
        at: event.at,
        run: event.run.to_string(),
        change: event.change.to_string(),
        reverted_by: event.reverted_by.as_ref().map(RunId::to_string),
        is_reworded: event.is_reworded,
    };
    WikiClaimView {
        claim: claim.claim,
        line: claim.line as u64,
        statement: claim.statement,
        is_disputed: claim.is_disputed,
        quotes: claim
            .anchors
            .into_iter()
            .map(|checked| WikiQuoteView {
                label: checked.anchor.label,
                source: checked.anchor.source,
                quote: checked.anchor.quote,
                verified_against_source: checked.verified_against_source,
                offset: checked.offset.map(|offset| offset as u64),
                fault: checked.fault,
            })
            .collect(),
        history: claim.history.into_iter().map(event).collect(),
    }
}

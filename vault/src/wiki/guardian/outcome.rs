//! What comes of a call of an assistant: the page as it is staged, or why nothing was staged.
//!
//! What is repeated of a page or a call is outside text, and escaped where it is shown.

use crate::wiki::request::WikiRunError;
use crate::wiki::staged::StagedRunError;
use steward_domain::wiki::claims::{Claim, PageClaims, find_dropped_claims, read_claims};
use steward_domain::wiki::lint::list_dangling_names;
use steward_domain::wiki::page::WikiPage;
use steward_domain::wiki::quote::Anchor;
use steward_domain::wiki::run::RunId;
use steward_domain::wiki::writer::draft::{PageChange, RunDraft};
use steward_domain::wiki::writer::refusal::DraftRefusal;

/// The last step of a run: its entry in the log.
#[derive(Clone, Copy, Debug)]
pub struct Submission<'a> {
    /// The subject of the entry.
    pub subject: &'a str,
    /// The files that the run changes, as the assistant knows them.
    pub touched: &'a [String],
    /// Related pages that need no change.
    pub keeps: &'a [PageChange],
}

/// A page of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedPage {
    /// Relative to the wiki.
    pub file: String,
    /// The text in the wiki; `None` for a new page.
    pub before: Option<String>,
    /// The text that is staged; `None` for a page that is removed.
    pub after: Option<String>,
    /// The quotes that are new.
    pub quotes: Vec<Anchor>,
    /// The names of links that lead to no page.
    pub dangling: Vec<String>,
    /// The files of pages that link to a page that is removed.
    pub inbound: Vec<String>,
    /// The claims of a page that is removed, unless the run puts them on another page.
    pub lost_claims: Vec<Claim>,
}

/// Why a call of an assistant staged nothing.
#[derive(Debug, thiserror::Error)]
pub enum GuardianError {
    #[error("{0}")]
    Draft(#[from] DraftRefusal),
    #[error("there is no open run {0} of yours")]
    Unknown(String),
    #[error("the run {run} takes no changes: {reason}")]
    Closed { run: RunId, reason: String },
    #[error("{0}")]
    Incomplete(String),
    /// The page is another one than the assistant saw.
    #[error("{file} is not as you saw it")]
    StaleBase { file: String },
    /// It is a symbolic link, or leads through one.
    #[error("`{file}` is a symbolic link, or leads through one")]
    Link { file: String },
    /// Pages changed since, so that the changes of the run do not fit any more.
    #[error("{file} changed since the run staged it: {reason}")]
    Stale { file: String, reason: String },
    #[error(transparent)]
    Staged(#[from] StagedRunError),
    #[error(transparent)]
    Run(WikiRunError),
}

impl GuardianError {
    pub(super) fn refuse(reason: impl Into<String>) -> Self {
        Self::Run(WikiRunError::Refused(reason.into()))
    }
}

impl From<WikiRunError> for GuardianError {
    fn from(error: WikiRunError) -> Self {
        Self::Run(error)
    }
}

/// What does not fit is refused; a failure of the machine stays one.
impl From<GuardianError> for WikiRunError {
    fn from(error: GuardianError) -> Self {
        match error {
            GuardianError::Run(e) => e,
            GuardianError::Staged(e) => e.into(),
            error => Self::Refused(error.to_string()),
        }
    }
}

/// Describes a page of a draft, beside the page as it stands in the wiki.
pub(super) fn describe_page(draft: &RunDraft<'_>, live: &[WikiPage], file: &str) -> StagedPage {
    let before = live.iter().find(|page| page.file == file);
    let after = draft.pages().iter().find(|page| page.file == file);
    let text = |page: &WikiPage| page.document.as_str().to_owned();
    let anchors = |page: &WikiPage| read_page_claims(page).anchors;
    let known = before.map(anchors).unwrap_or_default();
    let new = after.map(anchors).unwrap_or_default().into_iter().filter(|(label, _)| !known.contains_key(label));
    let is_link = |page: &&WikiPage, slug: &str| page.body.links.iter().any(|link| link.page_name() == Some(slug));
    let (inbound, lost_claims) = match (before, after) {
        (Some(removed), None) => {
            let linking = draft.pages().iter().filter(|page| is_link(page, &removed.slug));
            (linking.map(|page| page.file.clone()).collect(), list_lost_claims(draft, removed))
        }
        _ => Default::default(),
    };
    StagedPage {
        file: file.to_owned(),
        before: before.map(text),
        after: after.map(text),
        quotes: new.map(|(_, anchor)| anchor).collect(),
        dangling: after.map_or_else(Vec::new, |page| {
            list_dangling_names(page, draft.pages()).into_iter().map(|(_, name)| name).collect()
        }),
        inbound,
        lost_claims,
    }
}

fn read_page_claims(page: &WikiPage) -> PageClaims {
    read_claims(page.document.body(), &page.body.disputed)
}

/// The claims of a removed page that stand on no page that the run changes.
fn list_lost_claims(draft: &RunDraft<'_>, removed: &WikiPage) -> Vec<Claim> {
    let changed = draft.list_files();
    let is_changed = |page: &&WikiPage| changed.iter().any(|file| file.path.file() == page.file);
    let kept: Vec<PageClaims> = draft.pages().iter().filter(is_changed).map(read_page_claims).collect();
    let claims = read_page_claims(removed);
    let lost = find_dropped_claims(std::slice::from_ref(&claims), &kept);
    claims.claims.into_iter().filter(|claim| lost.contains(&claim.id)).collect()
}

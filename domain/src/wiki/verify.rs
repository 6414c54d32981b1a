//! The rules that every run must pass before it is committed, whoever wrote it.
//!
//! They judge what the run adds or changes. What stood on a page before is the business of the lint. No model can overrule
//! what is found here.

mod fixes;
mod kept;
mod pages;

pub use fixes::verify_fixes;
pub(super) use kept::HIDING;
pub(super) use pages::list_code;

use super::MAX_PAGES;
use super::claims::{PageBlock, PageClaims, find_dropped_claims, read_claims};
use super::details::ClaimRecord;
use super::manifest::EffectiveManifest;
use super::names::{name_page, name_summary};
use super::page::WikiPage;
use super::page_keys::{FileKey, NameKey, find_page, find_pages};
use super::page_text::SEE_ALSO;
use super::plan::RunFile;
use super::quote::QuoteFinder;
use super::run::WikiRunType;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The most pages that a run may touch, and the most that it may make.
pub const MAX_TOUCHED_PAGES: usize = 15;
pub const MAX_NEW_PAGES: usize = 12;
/// The most bytes that a run may add to a page.
pub const MAX_ADDED_BYTES: usize = 64 * 1024;

/// What may happen to a run. The worse one of several counts.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::Display, strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Verdict {
    /// Nothing is wrong.
    Commit,
    /// The writer may correct it.
    Revise,
    Reject,
}

/// What is wrong with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RunFault {
    EntryInvalid,
    WrongPath,
    DuplicateId,
    QuoteEdited,
    SourceMissing,
    FabricatedQuote,
    FootnoteForm,
    StatementTooLong,
    ClaimUnanchored,
    DropsClaims,
    /// A block that stood on the page is gone or changed.
    BlockChanged,
    NoFootnote,
    /// Signs that hide or divide text.
    HiddenText,
    /// A verifier found that the quotes do not carry a statement.
    Unsupported,
    /// A verifier found that a statement contradicts another page, and no dispute marks it.
    UnmarkedContradiction,
    /// A command, an address or a version number that does not stand in the source.
    CodeNotInSource,
    RawHtml,
    UnsafeLink,
    DanglingReference,
    RunIncomplete,
    OverQuota,
}

impl RunFault {
    /// What a run with this fault may come to.
    #[must_use]
    pub fn verdict(self) -> Verdict {
        match self {
            Self::FootnoteForm | Self::StatementTooLong | Self::ClaimUnanchored | Self::NoFootnote => Verdict::Revise,
            Self::EntryInvalid | Self::WrongPath | Self::DuplicateId | Self::QuoteEdited | Self::SourceMissing => {
                Verdict::Reject
            }
            Self::CodeNotInSource | Self::Unsupported | Self::UnmarkedContradiction => Verdict::Revise,
            Self::BlockChanged | Self::HiddenText => Verdict::Reject,
            Self::FabricatedQuote | Self::DropsClaims | Self::RawHtml | Self::UnsafeLink => Verdict::Reject,
            Self::DanglingReference | Self::RunIncomplete | Self::OverQuota => Verdict::Reject,
        }
    }
}

impl RunFault {
    /// What is wrong, in words that hold nothing of a page.
    #[must_use]
    pub fn explain(self) -> &'static str {
        match self {
            Self::EntryInvalid => "the page would not be valid, or would replace a file that cannot be read as a page",
            Self::WrongPath => "a new page does not lie in the folder of its kind",
            Self::DuplicateId => "two pages would have one slug",
            Self::QuoteEdited => "the label of a footnote does not fit its words",
            Self::SourceMissing => "it quotes a source that is not the one of the run",
            Self::FabricatedQuote => "a quote does not stand in its source",
            Self::FootnoteForm => "a footnote quotes no source",
            Self::StatementTooLong => "a statement has more than 280 characters",
            Self::ClaimUnanchored => "a paragraph, list item or table row has no source",
            Self::DropsClaims => "a statement that stood there would be lost",
            Self::BlockChanged => "a paragraph that stood there would be changed or lost",
            Self::NoFootnote => "a page quotes no source",
            Self::HiddenText => "it holds signs that hide or divide text",
            Self::Unsupported => "a statement says more than its quotes, or something else",
            Self::UnmarkedContradiction => "a statement contradicts another page, and no dispute marks it",
            Self::CodeNotInSource => "code, an address or a version number does not stand in the source",
            Self::RawHtml => "it holds raw HTML",
            Self::UnsafeLink => "it holds a link that is none to a page or a web address",
            Self::DanglingReference => "it names a page that there is not",
            Self::RunIncomplete => {
                "no sentence of the document has 8 to 280 characters and can be quoted, so there is no summary"
            }
            Self::OverQuota => "it changes or adds more than one run may",
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFinding {
    /// Relative to the wiki; empty for the run as a whole.
    pub file: String,
    pub fault: RunFault,
    /// At most a line of outside text, escaped where it is shown.
    pub problem: String,
}

/// What is judged.
pub struct VerifyInput<'a> {
    pub manifest: &'a EffectiveManifest,
    /// The pages as they are.
    pub pages: &'a [WikiPage],
    /// The pages that the run changes.
    pub files: &'a [RunFile],
    /// The texts of the sources that the run may quote, by id.
    pub texts: &'a BTreeMap<String, QuoteFinder<'a>>,
    pub run_type: WikiRunType,
    /// The source of an ingest.
    pub source: Option<&'a str>,
    /// The files of pages that the run removes. What stands on them may be lost, so a person must commit such a run.
    pub removed: &'a [String],
}

impl VerifyInput<'_> {
    /// Whether the run removes a page as it said that it would.
    fn may_remove(&self, page: &JudgedPage<'_>) -> bool {
        page.after.is_none() && self.run_type == WikiRunType::Manual && self.removed.iter().any(|it| it == page.file)
    }
}

/// What the rules came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulesVerdict {
    pub verdict: Verdict,
    pub findings: Vec<RunFinding>,
    /// The claims that the run makes and removes.
    pub claims: Vec<ClaimRecord>,
}

/// A page before and after the run, with its claims.
struct JudgedPage<'a> {
    file: &'a str,
    before: Option<&'a WikiPage>,
    after: Option<WikiPage>,
    claims_before: PageClaims,
    claims_after: PageClaims,
}

/// Judges a run.
#[must_use]
pub fn verify_run(input: &VerifyInput<'_>) -> RulesVerdict {
    let mut findings = Vec::new();
    let mut claims = Vec::new();
    let mut judged = Vec::new();
    let before = find_pages(input.pages, input.files.iter().map(|file| file.path.file()));
    for file in input.files {
        let page = pages::read_judged(file, before.get(file.path.file()).copied(), &mut findings);
        pages::check_page(&page, input, &mut findings);
        claims.extend(pages::list_claims(&page, input));
        judged.push(page);
    }
    let after = list_pages_after(input, &judged);
    check_names(&judged, &after, &mut findings);
    check_dropped(input, &judged, &mut findings);
    let made = judged.iter().filter(|page| page.before.is_none()).count();
    check_whole(input, made, &after, &mut findings);
    let verdict = findings.iter().map(|finding| finding.fault.verdict()).max().unwrap_or(Verdict::Commit);
    RulesVerdict { verdict, findings, claims }
}

/// The first fault of one page of a run, or of the run as a whole, as [`verify_run`] finds it.
///
/// The other pages were judged before. They are judged again only if this one loses statements, which may stand on them. `replaced` is the page
/// as it was before the change, and `pages` are all as the run would leave them.
#[must_use]
pub fn find_page_fault(
    input: &VerifyInput<'_>,
    file: &str,
    replaced: Option<&WikiPage>,
    pages: &[WikiPage],
) -> Option<RunFinding> {
    let is_meant = |finding: &RunFinding| finding.file == file || finding.file.is_empty();
    let judge_all = || verify_run(input).findings.into_iter().find(is_meant);
    let Some(changed) = input.files.iter().find(|changed| changed.path.file() == file) else { return judge_all() };
    let mut findings = Vec::new();
    let before = find_page(input.pages, file);
    let page = pages::read_judged(changed, before, &mut findings);
    let known = replaced.map(|page| read_claims(page.document.body(), &page.body.disputed)).unwrap_or_default();
    if !find_dropped_claims(&[known], std::slice::from_ref(&page.claims_after)).is_empty() {
        return judge_all();
    }
    pages::check_page(&page, input, &mut findings);
    let after: Vec<&WikiPage> = pages.iter().collect();
    check_names(std::slice::from_ref(&page), &after, &mut findings);
    let made = input.files.iter().filter(|file| file.before.is_none()).count();
    check_whole(input, made, &after, &mut findings);
    findings.into_iter().find(is_meant)
}

/// The pages as the run leaves them: first those that it does not change. A wiki is large, so none is copied.
fn list_pages_after<'a>(input: &VerifyInput<'a>, judged: &'a [JudgedPage<'a>]) -> Vec<&'a WikiPage> {
    let changed: Vec<FileKey<'_>> = input.files.iter().map(|file| FileKey::new(file.path.file())).collect();
    let kept = input.pages.iter().filter(|page| !changed.iter().any(|key| page.has_file(key)));
    kept.chain(judged.iter().filter_map(|page| page.after.as_ref())).collect()
}

fn report(findings: &mut Vec<RunFinding>, file: &str, fault: RunFault, problem: String) {
    findings.push(RunFinding { file: file.to_owned(), fault, problem });
}

/// Slugs that two pages would have, and references to pages that there are none of.
fn check_names(judged: &[JudgedPage<'_>], after: &[&WikiPage], findings: &mut Vec<RunFinding>) {
    let is_known = |slug: &str| {
        let key = NameKey::new(slug);
        after.iter().any(|page| page.has_slug(&key) && page.slug == slug)
    };
    for page in judged {
        let Some(read) = &page.after else { continue };
        let key = NameKey::new(&read.slug);
        for other in after.iter().filter(|other| other.has_slug(&key) && other.file != page.file) {
            let problem = format!("{} has the slug `{}` too", other.file, read.slug);
            report(findings, page.file, RunFault::DuplicateId, problem);
        }
        let old: BTreeSet<&str> =
            page.before.iter().flat_map(|it| &it.references).map(|(_, slug)| slug.as_str()).collect();
        let new = read.references.iter().map(|(_, slug)| slug.as_str()).filter(|slug| !old.contains(slug));
        for slug in new.filter(|slug| !is_known(slug)) {
            report(findings, page.file, RunFault::DanglingReference, format!("there is no page `{slug}`"));
        }
        check_see_also(page, after, findings);
    }
}

/// See-also lines that the run adds show the titles of pages and nothing else, also in a list and over several lines.
fn check_see_also(page: &JudgedPage<'_>, after: &[&WikiPage], findings: &mut Vec<RunFinding>) {
    let before: BTreeSet<String> = page.claims_before.blocks.iter().map(PageBlock::text).collect();
    let texts = page.claims_after.blocks.iter().map(PageBlock::text);
    for text in texts.filter(|text| text.starts_with(SEE_ALSO) && !before.contains(text)) {
        for shown in list_untitled_links(&text, after) {
            let problem = format!("a see-also link shows a title: {}", shown.chars().take(60).collect::<String>());
            report(findings, page.file, RunFault::ClaimUnanchored, problem);
        }
    }
}

/// What the links of a text show that is not the title of the page to which they lead.
fn list_untitled_links<'t>(text: &'t str, pages: &[&WikiPage]) -> Vec<&'t str> {
    let letters =
        |text: &str| text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
    let links = text.split("[[").skip(1).filter_map(|rest| rest.split_once("]]")).map(|(link, _)| link);
    let is_untitled = |link: &&str| {
        let (slug, shown) = link.split_once('|').unwrap_or((link, link));
        let is_title =
            |known: &WikiPage| known.slug == slug && (letters(&known.title) == letters(shown) || !link.contains('|'));
        // A page whose file is a person's has no title that could be read, so the words are those of its name.
        let is_unread = pages.iter().all(|known| known.slug != slug) && slug.starts_with(&name_page(shown));
        slug.contains('#') || !pages.iter().copied().any(is_title) && !is_unread
    };
    links.filter(is_untitled).map(|link| link.split_once('|').map_or(link, |(_, shown)| shown)).collect()
}

/// Statements that no page of the run has any more.
fn check_dropped(input: &VerifyInput<'_>, judged: &[JudgedPage<'_>], findings: &mut Vec<RunFinding>) {
    let kept = judged.iter().filter(|page| !input.may_remove(page));
    let before: Vec<PageClaims> = kept.map(|page| page.claims_before.clone()).collect();
    let after: Vec<PageClaims> = judged.iter().map(|page| page.claims_after.clone()).collect();
    let dropped = find_dropped_claims(&before, &after);
    if !dropped.is_empty() {
        report(findings, "", RunFault::DropsClaims, format!("it drops {}", dropped.join(", ")));
    }
}

/// Limits of the run, of which so many pages are new, and of the wiki.
fn check_whole(input: &VerifyInput<'_>, made: usize, after: &[&WikiPage], findings: &mut Vec<RunFinding>) {
    let touched = input.files.len();
    let mut refuse = |problem: String| report(findings, "", RunFault::OverQuota, problem);
    if touched > MAX_TOUCHED_PAGES {
        refuse(format!("it touches {touched} pages, more than {MAX_TOUCHED_PAGES}"));
    }
    if made > MAX_NEW_PAGES {
        refuse(format!("it makes {made} pages, more than {MAX_NEW_PAGES}"));
    }
    if after.len() > MAX_PAGES {
        refuse(format!("the wiki would have {} pages, more than {MAX_PAGES}: divide it", after.len()));
    }
    let summary = input.source.filter(|_| input.run_type == WikiRunType::Ingest).map(name_summary);
    if let Some(summary) = summary.filter(|summary| !after.iter().any(|page| page.slug == *summary)) {
        report(findings, "", RunFault::RunIncomplete, format!("it makes no summary `{summary}`"));
    }
}

#[cfg(test)]
mod tests;

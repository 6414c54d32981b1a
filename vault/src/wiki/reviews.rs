//! Reviews of a wiki: which pages are read next, what was found, and the page of a review.
//!
//! Reviews are kept for ever below `.steward/wiki/<name>/`, because they say when a page was read last.

use crate::files::root::VaultRoot;
use crate::wiki::folder::WikiFolder;
use crate::wiki::ingest::judge_run;
use crate::wiki::kept::{change_log, read_log};
use crate::wiki::quotes::SourceTexts;
use crate::wiki::request::WikiRunError;
use crate::wiki::staged::{StagedPlan, StagedRun};
use crate::wiki::state::{ReadWiki, ReadWikiError, read_current};
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::wiki::pairs::list_paired_claims;
use steward_domain::wiki::path::PagePath;
use steward_domain::wiki::plan::RunFile;
use steward_domain::wiki::quote::Anchor;
use steward_domain::wiki::review::{SoundCheck, WikiReview, order_files, render_review};
use steward_domain::wiki::verify::Verdict;

const REVIEWS: &str = "reviews.jsonl";

/// All reviews of a wiki, oldest first.
///
/// # Errors
/// [`ReadWikiError`].
pub fn read_reviews(root: &VaultRoot, wiki: &str) -> Result<Vec<WikiReview>, ReadWikiError> {
    read_log(root, wiki, REVIEWS)
}

/// Keeps a review. One that is kept already stays.
pub(super) fn keep_review(root: &VaultRoot, review: WikiReview) -> Result<(), ReadWikiError> {
    let wiki = review.wiki.clone();
    change_log(root, &wiki, REVIEWS, |reviews: &mut Vec<WikiReview>| {
        if reviews.iter().all(|known| known.id != review.id) {
            reviews.push(review);
        }
    })
}

/// The files of the pages that are read next, at most so many.
pub(super) fn choose_files(
    root: &VaultRoot,
    wiki: &str,
    folder: &WikiFolder,
    most: usize,
) -> Result<Vec<String>, ReadWikiError> {
    let mut reviewed: BTreeMap<String, DateTime<Utc>> = BTreeMap::new();
    for review in read_reviews(root, wiki)? {
        reviewed.extend(review.pages.into_iter().map(|file| (file, review.at)));
    }
    let mut chosen = Vec::new();
    // Only reading a file tells whether it is a page, and of which kind.
    for files in order_files(folder.list_page_files(), &reviewed).chunks(most.max(1)) {
        let pages = folder.read_some(files).pages;
        let read: BTreeSet<&str> =
            pages.iter().filter(|page| !page.is_report()).map(|page| page.file.as_str()).collect();
        chosen.extend(files.iter().filter(|file| read.contains(file.as_str())).cloned());
        if chosen.len() >= most {
            break;
        }
    }
    chosen.truncate(most);
    Ok(chosen)
}

/// Stages the page of a review.
///
/// # Errors
/// [`WikiRunError`].
pub fn stage_review_page(
    root: &VaultRoot,
    wiki: &ReadWiki,
    run: &StagedRun,
    review: &WikiReview,
) -> Result<(), WikiRunError> {
    let folder = &wiki.state.folder;
    let opened = WikiFolder::open(&root.path().join(folder));
    let opened = opened.map_err(|source| ReadWikiError::Io { path: folder.clone(), source })?;
    let read = wiki.state.pages.iter().filter(|page| review.pages.contains(&page.file));
    let cited = list_paired_claims(read).into_iter().filter(|claim| review.names(&claim.claim));
    let texts = SourceTexts::read(&opened, &wiki.contents, cited.flat_map(|claim| claim.sources).collect());
    let checker = texts.index();
    let is_sound = |anchor: &Anchor| checker.check(anchor).fault.is_none();
    let shown: [Option<SoundCheck<'_>>; 2] = [Some(&is_sound), None];
    // What pages hold may be against the rules for what a run writes: then they are named alone.
    for is_sound in shown {
        let page = render_review(review, &wiki.state.pages, is_sound);
        let path = PagePath::new(&run.meta.folder, &page.file)?;
        if read_current(root, &path).map_err(WikiRunError::refuse)?.is_some() {
            return Err(WikiRunError::refuse(format!("{path} is there already and is not a page: rename it")));
        }
        let files = [RunFile { path, before: None, after: Some(page.text.into_bytes()) }];
        run.stage(&files, StagedPlan::default())?;
        if judge_run(root, wiki, &run.meta, &files)?.verdict == Verdict::Commit {
            break;
        }
    }
    Ok(())
}

//! Answers to questions about a wiki: the pages that may hold one, the log of what was asked, and the page of an answer.
//!
//! The log has one line for each question of the last 30 days.

use crate::files::root::VaultRoot;
use crate::index::Index;
use crate::wiki::folder::{WikiContents, WikiFolder};
use crate::wiki::kept::{change_log, read_log};
use crate::wiki::quotes::SourceTexts;
use crate::wiki::request::WikiRunError;
use crate::wiki::search::{find_sources_with, search_indexed};
use crate::wiki::staged::{StagedPlan, StagedRun};
use crate::wiki::state::{ReadWiki, ReadWikiError, find_wiki_folder, read_current};
use chrono::{DateTime, TimeDelta, Utc};
use std::io;
use std::sync::Arc;
use steward_domain::wiki::OVERVIEW_FILE;
use steward_domain::wiki::claims::read_claims;
use steward_domain::wiki::page::{REPORT_KINDS, WikiPage, may_be_page, read_page};
use steward_domain::wiki::path::PagePath;
use steward_domain::wiki::plan::RunFile;
use steward_domain::wiki::query::{
    ANSWER_PAGES, Citation, FiledKind, WikiAnswer, fold_plural, list_content_words, render_filed_page, render_question,
};
use steward_domain::wiki::quote::collapse_blanks;
use steward_domain::wiki::search::{PageFilter, PageHit, search_pages};
use steward_domain::wiki::writer::draft::list_signed_lines;

/// The pages that are searched for: more than are read, because archives are left out.
const MAX_HITS: usize = 3 * ANSWER_PAGES;
const ANSWERS: &str = "answers.jsonl";
/// How long an answer is kept, in days, and how many at most.
const KEEP_DAYS: i64 = 30;
const KEEP_ANSWERS: usize = 2_000;

/// The pages that may hold an answer.
pub struct QueryPages {
    folder: WikiFolder,
    /// The registry, and the names of all files.
    pub contents: WikiContents,
    pub overview: Option<WikiPage>,
    /// Best first.
    pub pages: Vec<WikiPage>,
}

impl QueryPages {
    /// Whether the wiki has no page but the overview.
    #[must_use]
    pub fn is_empty_wiki(&self) -> bool {
        !self.contents.files.iter().any(|file| may_be_page(file) && file != OVERVIEW_FILE)
    }

    /// The ids of the sources that hold all words of a question that say something. Every source is read.
    #[must_use]
    pub fn find_sources(&self, question: &str) -> Vec<String> {
        find_sources_with(&self.folder, &self.contents, &list_content_words(question), fold_plural)
    }

    /// Compares the words of these citations with their sources, as they are now.
    pub fn check_citations(&self, citations: &mut [Citation]) {
        let ids = citations.iter().map(|cited| cited.anchor.source.clone()).collect();
        let texts = SourceTexts::read(&self.folder, &self.contents, ids);
        let checker = texts.index();
        for cited in citations {
            let checked = checker.check(&cited.anchor);
            (cited.fault, cited.superseded_by) = (checked.fault, checked.superseded_by);
        }
    }
}

/// Finds the pages for a question, with the index or without it.
///
/// # Errors
/// [`ReadWikiError`].
pub async fn find_query_pages(
    index: &Index,
    root: &VaultRoot,
    wiki: &str,
    question: &str,
) -> Result<QueryPages, ReadWikiError> {
    let filter = PageFilter::default();
    let indexed = search_indexed(index, root, wiki, question, &filter, MAX_HITS).await;
    let files = indexed.ok().flatten().map(choose_files);
    let (root, wiki, question) = (root.clone(), wiki.to_owned(), question.to_owned());
    let read = move || -> Result<QueryPages, ReadWikiError> {
        let path = find_wiki_folder(&root, &wiki)?;
        let folder = WikiFolder::open(&root.path().join(&path)).map_err(|source| ReadWikiError::Io { path, source })?;
        let files = files.unwrap_or_else(|| {
            choose_files(search_pages(&folder.read().pages, &question, &PageFilter::default(), MAX_HITS))
        });
        let wanted: Vec<String> = std::iter::once(OVERVIEW_FILE.to_owned()).chain(files).collect();
        let mut contents = folder.read_some(&wanted);
        let (overview, pages) = Arc::unwrap_or_clone(std::mem::take(&mut contents.pages))
            .into_iter()
            .partition::<Vec<_>, _>(|page| page.file == OVERVIEW_FILE);
        Ok(QueryPages { folder, contents, overview: overview.into_iter().next(), pages })
    };
    let failed =
        |e: tokio::task::JoinError| ReadWikiError::Io { path: ANSWERS.to_owned(), source: io::Error::other(e) };
    tokio::task::spawn_blocking(read).await.map_err(failed)?
}

/// The best of these pages. A page that reports on others answers nothing itself.
fn choose_files(hits: Vec<PageHit>) -> Vec<String> {
    let answering = hits.into_iter().filter(|hit| !REPORT_KINDS.contains(&hit.kind.as_str()));
    answering.map(|hit| hit.file).take(ANSWER_PAGES).collect()
}

/// All answers that are kept about a wiki, oldest first.
///
/// # Errors
/// [`ReadWikiError`].
pub fn read_answers(root: &VaultRoot, wiki: &str) -> Result<Vec<WikiAnswer>, ReadWikiError> {
    let answers: Vec<WikiAnswer> = read_log(root, wiki, ANSWERS)?;
    Ok(answers.into_iter().filter(|answer| answer.wiki == wiki).collect())
}

/// Keeps an answer, and drops those that are too old. Returns after it is durable. One that is kept already stays.
///
/// # Errors
/// [`ReadWikiError`].
pub fn keep_answer(root: &VaultRoot, answer: &WikiAnswer, now: DateTime<Utc>) -> Result<(), ReadWikiError> {
    change_log(root, &answer.wiki, ANSWERS, |answers: &mut Vec<WikiAnswer>| {
        if answers.iter().all(|known| known.id != answer.id) {
            answers.retain(|known| now - known.at < TimeDelta::days(KEEP_DAYS));
            answers.push(answer.clone());
            answers.drain(..answers.len().saturating_sub(KEEP_ANSWERS));
        }
    })
}

/// Stages the page of an answer. Returns whether every paragraph of the answer ends in a mark.
///
/// # Errors
/// [`WikiRunError`].
pub fn stage_answer_page(
    root: &VaultRoot,
    wiki: &ReadWiki,
    run: &StagedRun,
    answer: &WikiAnswer,
    kind: FiledKind,
) -> Result<bool, WikiRunError> {
    if answer.clerk.is_some()
        && let Some(line) = list_signed_lines(&answer.text).next()
    {
        let shown: String = line.trim().chars().take(60).collect();
        return Err(WikiRunError::refuse(format!("the answer holds a line that only code writes: {shown}")));
    }
    let filed = render_filed_page(answer, kind, &wiki.state.pages, run.meta.began);
    let path = PagePath::new(&run.meta.folder, &filed.file)?;
    if read_current(root, &path).map_err(WikiRunError::refuse)?.is_some() {
        return Err(WikiRunError::refuse(format!("{path} is there already and is not a page: rename it")));
    }
    let page = read_page(&filed.file, filed.text.as_bytes()).page;
    let claims = page.map(|page| read_claims(page.document.body(), &page.body.disputed)).unwrap_or_default();
    let question = collapse_blanks(&render_question(&answer.question));
    let mut others = claims.list_unanchored().filter(|block| block.text() != question);
    let is_anchored = !claims.claims.is_empty() && others.next().is_none();
    let file = RunFile { path, before: None, after: Some(filed.text.into_bytes()) };
    run.stage(&[file], StagedPlan::default())?;
    Ok(is_anchored)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wiki::create::create_wiki;
    use steward_domain::wiki::MANIFEST_FILE;
    use steward_domain::wiki::template::NewFile;

    fn answer(id: &str, at: &str) -> WikiAnswer {
        WikiAnswer {
            id: id.into(),
            wiki: "plot".into(),
            by: "ann".into(),
            at: at.parse().unwrap(),
            question: "Why?".into(),
            text: "Because.".into(),
            writer: "rules".into(),
            pages: Vec::new(),
            sources: Vec::new(),
            citations: Vec::new(),
            unknown: Vec::new(),
            clerk: None,
        }
    }

    #[test]
    fn answers_are_kept_once_and_for_thirty_days() {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        let now = "2026-11-22T09:15:04Z".parse().unwrap();
        for name in ["plot", "other"] {
            let files = [NewFile { name: MANIFEST_FILE, text: String::new() }];
            create_wiki(&root, name, &files).unwrap();
        }
        assert_eq!(read_answers(&root, "plot").unwrap(), []);
        let (old, new) = (answer("00000001", "2026-10-22T09:15:05Z"), answer("00000002", "2026-11-22T09:15:04Z"));
        keep_answer(&root, &old, "2026-10-22T09:15:05Z".parse().unwrap()).unwrap();
        keep_answer(&root, &new, now).unwrap();
        keep_answer(&root, &new, now).unwrap();
        assert_eq!(read_answers(&root, "plot").unwrap(), [new]);
        // Whoever edits the log loses that line alone.
        let log = dir.path().join(".steward/wiki/plot/answers.jsonl");
        let text = std::fs::read_to_string(&log).unwrap();
        std::fs::write(&log, format!("{{broken\n{text}")).unwrap();
        assert_eq!(read_answers(&root, "plot").unwrap().len(), 1);
        assert_eq!(read_answers(&root, "other").unwrap(), []);
        for name in ["..", "../wiki/plot", "/etc", "gone"] {
            assert!(matches!(read_answers(&root, name), Err(ReadWikiError::Unknown { .. })), "{name}");
        }
    }
}

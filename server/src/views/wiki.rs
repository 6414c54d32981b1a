//! The wikis of a vault as every interface shows them: their state, their runs, and single pages with their quotes.
//!
//! All of it is read from files and audit records, so it is the same whether or not a process serves the vault. Texts of pages
//! and sources are untrusted.

mod events;
pub(crate) mod guide;
mod index;
mod page;
mod run;
mod sources;

use super::VaultViews;
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::sync::Arc;
use steward_domain::record::frontmatter;
use steward_domain::wiki::finding::WikiFinding;
use steward_domain::wiki::log::read_log;
use steward_domain::wiki::page::may_be_page;
use steward_domain::wiki::search::{PageFilter, PageHit, search_pages};
use steward_domain::wiki::{LOG_FILE, MANIFEST_FILE, MAX_GENERATED_BYTES, MAX_PAGE_BYTES};
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::create::list_wikis;
use steward_vault::wiki::folder::{WikiFolder, WikiOutline};
use steward_vault::wiki::health::check_wiki;
use steward_vault::wiki::search::search_indexed;
use steward_vault::wiki::staged::StagedRuns;
use steward_vault::wiki::state::{ReadWikiError, find_wiki_folder, read_wiki_outline};
use tokio::sync::Semaphore;
use utoipa::ToSchema;

pub(crate) use events::{ListedEvent, read_stream_event};
#[cfg(test)]
pub(crate) use index::fill_index;
pub(crate) use index::{NoteMapping, WikiIndex};
pub use page::{WikiClaimView, WikiPageView, find_wiki_page};
pub use run::{
    DiffSide, RunDiffLine, WikiRunFile, WikiRunRow, WikiRunView, find_wiki_run, list_wiki_runs, shorten_run,
};
pub(crate) use run::{list_named_runs, list_run_lines};
pub use sources::{WikiSourceRow, WikiSourceState, list_wiki_sources};

/// The most pages that a search shows.
const MAX_HITS: usize = 10;
/// The most findings that are listed.
const MAX_FINDINGS: usize = 100;

/// A wiki in a list.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WikiRow {
    pub wiki: String,
    /// Untrusted.
    pub title: String,
    pub pages: u64,
    /// The files in `sources/`.
    pub sources: u64,
    /// The runs that wait for a person.
    pub waiting: u64,
    /// The newest entry of the log. Untrusted.
    pub newest: Option<String>,
    pub newest_at: Option<DateTime<Utc>>,
}

/// What a check of a wiki without a model found.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WikiHealth {
    pub errors: u64,
    pub warnings: u64,
    pub notes: u64,
    /// The first ones, as `steward wiki lint` prints them. Untrusted.
    pub findings: Vec<String>,
}

/// Lists the wikis, sorted by name. Call it on a blocking thread.
///
/// # Errors
/// [`ReadWikiError`].
pub fn list_wiki_rows(root: &VaultRoot) -> Result<Vec<WikiRow>, ReadWikiError> {
    let failed = |source| ReadWikiError::Io { path: "wiki".to_owned(), source };
    let wikis = list_wikis(root).map_err(failed)?;
    wikis.into_iter().map(|(name, _)| read_wiki_row(root, &name)).collect()
}

/// Reads the state of one wiki. Call it on a blocking thread.
///
/// # Errors
/// [`ReadWikiError::Unknown`] if there is no wiki of this name.
pub fn read_wiki_row(root: &VaultRoot, wiki: &str) -> Result<WikiRow, ReadWikiError> {
    let folder = open_wiki(root, wiki)?;
    let contents = folder.read_some(&[]);
    let text = |file, limit| folder.read_text(file, limit).ok().flatten();
    let manifest = text(MANIFEST_FILE, MAX_PAGE_BYTES);
    let fields = manifest.and_then(|text| frontmatter::read_document(text.as_bytes()).ok());
    let title = fields.as_ref().and_then(|document| document.fields().get("title")?.as_str().map(str::to_owned));
    let newest = text(LOG_FILE, MAX_GENERATED_BYTES).and_then(|log| read_log(&log).entries.pop());
    let staged = StagedRuns::new(root).list().unwrap_or_default();
    Ok(WikiRow {
        title: title.unwrap_or_else(|| wiki.to_owned()),
        pages: contents.files.iter().filter(|file| may_be_page(file)).count() as u64,
        sources: contents.files.range("sources/".to_owned().."sources0".to_owned()).count() as u64,
        waiting: staged.iter().filter(|run| run.meta.wiki == wiki && run.status.waits).count() as u64,
        newest_at: newest.as_ref().map(|entry| entry.at),
        newest: newest.map(|entry| {
            let log_type = entry.log_type.map(|log_type| format!("{log_type}: ")).unwrap_or_default();
            format!("{log_type}{}", entry.subject)
        }),
        wiki: wiki.to_owned(),
    })
}

/// Reads files of wikis on a blocking thread, at most four requests at once: each may read all pages of a wiki.
///
/// # Errors
/// [`ReadWikiError`].
pub(crate) async fn read_wikis<T: Send + 'static>(
    root: &VaultRoot,
    read: impl FnOnce(VaultRoot) -> Result<T, ReadWikiError> + Send + 'static,
) -> Result<T, ReadWikiError> {
    static READERS: Semaphore = Semaphore::const_new(4);
    let failed = |reason: String| ReadWikiError::File { path: "wiki".to_owned(), reason };
    let permit = READERS.acquire().await.map_err(|e| failed(e.to_string()))?;
    let root = root.clone();
    let value = tokio::task::spawn_blocking(move || read(root)).await.map_err(|e| failed(e.to_string()))?;
    drop(permit);
    value
}

/// The files of the pages of a wiki, sorted. Call it on a blocking thread.
///
/// # Errors
/// [`ReadWikiError`].
pub fn list_wiki_pages(root: &VaultRoot, wiki: &str) -> Result<Vec<String>, ReadWikiError> {
    let files = open_wiki(root, wiki)?.read_some(&[]).files;
    Ok(files.into_iter().filter(|file| may_be_page(file)).collect())
}

/// What lists say of the pages of a wiki, by file. Those that did not change are not read again. Call it on a blocking thread.
///
/// # Errors
/// [`ReadWikiError`].
pub(crate) fn read_outline(root: &VaultRoot, wiki: &str) -> Result<Arc<WikiOutline>, ReadWikiError> {
    Ok(read_wiki_outline(root, wiki, &find_wiki_folder(root, wiki)?)?.outline)
}

impl VaultViews {
    /// Finds the best pages of a wiki for a query, with the index or without it.
    pub async fn search_wiki(&self, wiki: &str, query: &str) -> Vec<PageHit> {
        let filter = PageFilter::default();
        if let Ok(Some(hits)) = search_indexed(&self.index, &self.root, wiki, query, &filter, MAX_HITS).await {
            return hits;
        }
        let (root, wiki, query) = (self.root.clone(), wiki.to_owned(), query.to_owned());
        let read = move || match open_wiki(&root, &wiki) {
            Ok(folder) => search_pages(&folder.read().pages, &query, &PageFilter::default(), MAX_HITS),
            Err(_) => Vec::new(),
        };
        tokio::task::spawn_blocking(read).await.unwrap_or_default()
    }
}

/// Checks a wiki without a model. It reads every page and every source. Call it on a blocking thread.
///
/// # Errors
/// [`ReadWikiError`].
pub fn check_wiki_health(root: &VaultRoot, wiki: &str, now: DateTime<Utc>) -> Result<WikiHealth, ReadWikiError> {
    use steward_domain::wiki::finding::Severity;
    let checked = check_wiki(&root.path().join(find_wiki_folder(root, wiki)?), now)?;
    let count = |severity| checked.findings.iter().filter(|finding| finding.severity == severity).count() as u64;
    Ok(WikiHealth {
        errors: count(Severity::Error),
        warnings: count(Severity::Warn),
        notes: count(Severity::Info),
        findings: checked.findings.iter().take(MAX_FINDINGS).map(ToString::to_string).collect(),
    })
}

/// Lists what a check of a wiki without a model finds, sorted by file and line. It reads every page and every source. Call it on a blocking thread.
///
/// # Errors
/// [`ReadWikiError`].
pub(crate) fn list_wiki_findings(
    root: &VaultRoot,
    wiki: &str,
    now: DateTime<Utc>,
) -> Result<Vec<WikiFinding>, ReadWikiError> {
    Ok(check_wiki(&root.path().join(find_wiki_folder(root, wiki)?), now)?.findings)
}

fn open_wiki(root: &VaultRoot, wiki: &str) -> Result<WikiFolder, ReadWikiError> {
    let path = find_wiki_folder(root, wiki)?;
    WikiFolder::open(&root.path().join(&path)).map_err(|source| ReadWikiError::Io { path, source })
}

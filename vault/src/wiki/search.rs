//! Finds pages of a wiki of the vault by their words, with the index.
//!
//! Without the index, [`steward_domain::wiki::search::search_pages`] finds the same on the pages that were read.

use crate::files::root::VaultRoot;
use crate::index::{Index, IndexError, IndexedPage};
use crate::wiki::create::WIKIS_FOLDER;
use crate::wiki::folder::{WikiContents, WikiFolder};
use crate::wiki::quotes::read_text;
use crate::wiki::threads::map_in_threads;
use std::collections::BTreeSet;
use steward_domain::record::frontmatter::{self, Document};
use steward_domain::wiki::MAX_PAGE_BYTES;
use steward_domain::wiki::registry::WikiSource;
use steward_domain::wiki::search::{PageFilter, PageHit, Passage, find_passage, list_query_words, split_words};

/// Finds the best pages for a query, after the index was brought up to date; `None` if it does not know the wiki.
///
/// # Errors
/// [`IndexError`]: the caller reads the files.
pub async fn search_indexed(
    index: &Index,
    root: &VaultRoot,
    wiki: &str,
    query: &str,
    filter: &PageFilter,
    limit: usize,
) -> Result<Option<Vec<PageHit>>, IndexError> {
    index.sync_wiki(root, wiki).await?;
    let Some(found) = index.wiki().search(wiki, query, filter, limit).await? else { return Ok(None) };
    let (path, words) = (root.path().join(WIKIS_FOLDER).join(wiki), list_query_words(query));
    let hits = tokio::task::spawn_blocking(move || {
        let folder = WikiFolder::open(&path).ok();
        let to_hit = |page: &IndexedPage| {
            // A page that cannot be read any more is shown by its summary.
            let document = read_document(folder.as_ref(), &page.file);
            let summary = || Passage { text: page.summary.clone(), line: None };
            let passage = document.as_ref().map(|document| find_passage(document, &page.summary, &words));
            let passage = passage.unwrap_or_else(summary);
            PageHit {
                passage: passage.text,
                line: passage.line,
                bytes: document.map_or(0, |document| document.as_bytes().len()),
                slug: page.slug.clone(),
                title: page.title.clone(),
                kind: page.kind.clone(),
                file: page.file.clone(),
                score: page.score,
            }
        };
        map_in_threads(&found, to_hit)
    });
    Ok(Some(hits.await?))
}

/// A page; `None` if it cannot be read any more.
fn read_document(folder: Option<&WikiFolder>, file: &str) -> Option<Document> {
    let bytes = folder?.read_bytes(file, MAX_PAGE_BYTES).ok()?;
    frontmatter::read_note_fast(&bytes).ok()
}

/// The ids of the sources whose texts hold all words of a query. Every source is read.
#[must_use]
pub fn find_sources(folder: &WikiFolder, query: &str) -> Vec<String> {
    find_sources_with(folder, &folder.read_some(&[]), &list_query_words(query), str::to_owned)
}

/// The ids of the sources whose texts hold all of these words, after each word of a text was folded.
pub(crate) fn find_sources_with(
    folder: &WikiFolder,
    contents: &WikiContents,
    words: &BTreeSet<String>,
    fold: impl Fn(&str) -> String,
) -> Vec<String> {
    let holds = |source: &&WikiSource| {
        let Ok(text) = read_text(folder, source) else { return false };
        let held: BTreeSet<String> = split_words(text.as_str()).map(|word| fold(&word)).collect();
        !words.is_empty() && words.is_subset(&held)
    };
    contents.sources.values().filter(holds).map(|source| source.id.clone()).collect()
}

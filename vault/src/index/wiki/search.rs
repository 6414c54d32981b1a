//! Finds pages of a wiki by their words or their names, in the index.
//!
//! The rank is FTS5's `bm25()` over the words that [`steward_domain::wiki::search`] takes from a page, so that files and index
//! find the same pages in the same order.

use super::WikiView;
use super::sync::WordTable;
use crate::index::IndexError;
use crate::index::store::rows::to_json;
use sqlx::{AssertSqlSafe, FromRow};
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::wiki::search::{PageFilter, choose_words, list_query_words};

/// A page that was found. Its texts are untrusted.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct IndexedPage {
    /// Relative to the wiki.
    pub file: String,
    pub slug: String,
    pub title: String,
    pub kind: String,
    pub summary: String,
    /// Higher is better.
    pub score: f64,
}

/// Pages that are called, tagged or sourced so, or hold the quote.
const BY_NAME: &str = "SELECT file FROM wiki_pages WHERE wiki = ?1 AND slug IS NOT NULL
    AND (slug = ?2 OR file = ?2 OR EXISTS (SELECT 1 FROM json_each(names) WHERE value = ?3)
        OR EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?2)
        OR id IN (SELECT page FROM wiki_claim_provenance WHERE source = ?2)
        OR id IN (SELECT page FROM wiki_claim_provenance WHERE label = ?2)) ORDER BY file";

impl WikiView<'_> {
    /// Finds the best pages for a query; `None` if the index does not know the wiki. Pages of the same rank are ordered by
    /// slug.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn search(
        self,
        wiki: &str,
        query: &str,
        filter: &PageFilter,
        limit: usize,
    ) -> Result<Option<Vec<IndexedPage>>, IndexError> {
        let Some(id) = self.index.find_wiki_id(wiki).await? else { return Ok(None) };
        let (table, reader) = (WordTable::new(id), &self.index.store.reader);
        let failed = |e| self.index.sql_error(e);
        let words: BTreeSet<String> = list_query_words(query);
        let count = sqlx::query_as(AssertSqlSafe(table.count_holders())).bind(to_json(&words)).fetch_all(reader);
        let held: Vec<(String, i64)> = count.await.map_err(failed)?;
        let pages: i64 = sqlx::query_scalar(AssertSqlSafe(table.count())).fetch_one(reader).await.map_err(failed)?;
        let holders: BTreeMap<String, usize> =
            held.into_iter().map(|(word, count)| (word, usize::try_from(count).unwrap_or(0))).collect();
        let used = choose_words(&holders, usize::try_from(pages).unwrap_or(0));
        if used.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let expression = used.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" OR ");
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        if *filter == PageFilter::default() {
            let rank = sqlx::query_as(AssertSqlSafe(table.rank_all())).bind(expression).bind(limit);
            return rank.fetch_all(reader).await.map(Some).map_err(failed);
        }
        let rank = sqlx::query_as(AssertSqlSafe(table.rank()))
            .bind(expression)
            .bind(filter.kind.as_deref())
            .bind(filter.tag.as_deref())
            .bind(filter.path.as_deref())
            .bind(limit);
        rank.fetch_all(reader).await.map(Some).map_err(failed)
    }

    /// The files of the pages that a name may mean: a slug, a file, a title, an alias, a tag, the id of a source, or the label of a quote. `None` if
    /// the index does not know the wiki.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn find_named(self, wiki: &str, name: &str) -> Result<Option<Vec<String>>, IndexError> {
        let Some(id) = self.index.find_wiki_id(wiki).await? else { return Ok(None) };
        let find = sqlx::query_scalar(BY_NAME).bind(id).bind(name).bind(name.to_lowercase());
        find.fetch_all(&self.index.store.reader).await.map(Some).map_err(|e| self.index.sql_error(e))
    }
}

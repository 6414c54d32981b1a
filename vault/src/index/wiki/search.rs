//! Finds pages of a wiki by their words or their names, in the index.
//!
//! The rank is FTS5's `bm25()` over the words that [`steward_domain::wiki::search`] takes from a page, so that files and index
//! find the same pages in the same order.

use super::WikiView;
use super::sync::{FIND_WIKI, WordTable};
use crate::index::IndexError;
use crate::index::store::rows::to_json;
use sqlx::{AssertSqlSafe, FromRow, SqliteConnection};
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

/// Pages that have a quote of this label.
const BY_LABEL: &str = "SELECT file FROM wiki_pages WHERE wiki = ?1 AND slug IS NOT NULL
    AND id IN (SELECT page FROM wiki_claim_provenance WHERE label = ?2) ORDER BY file";

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
        let failed = |e| self.index.sql_error(e);
        // One connection for all of it: what it has read of the table serves the next statement.
        let mut connection = self.index.store.reader.acquire().await.map_err(failed)?;
        let find = sqlx::query_scalar(FIND_WIKI).bind(wiki).fetch_optional(&mut *connection);
        let Some(id) = find.await.map_err(failed)? else { return Ok(None) };
        let table = WordTable::new(id);
        let words: BTreeSet<String> = list_query_words(query);
        let count = sqlx::query_as(AssertSqlSafe(table.count_holders())).bind(to_json(&words));
        let held: Vec<(Option<String>, i64)> = count.fetch_all(&mut *connection).await.map_err(failed)?;
        let (mut holders, mut pages) = (BTreeMap::new(), 0);
        for (word, count) in held {
            let count = usize::try_from(count).unwrap_or(0);
            match word {
                Some(word) => drop(holders.insert(word, count)),
                None => pages = count,
            }
        }
        let used = choose_words(&holders, pages);
        if used.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let expression = used.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" OR ");
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        if *filter == PageFilter::default() {
            return rank_pages(&mut connection, &table, &expression, limit).await.map(Some).map_err(failed);
        }
        let rank = sqlx::query_as(AssertSqlSafe(table.rank()))
            .bind(expression)
            .bind(filter.kind.as_deref())
            .bind(filter.tag.as_deref())
            .bind(filter.path.as_deref())
            .bind(limit);
        rank.fetch_all(&mut *connection).await.map(Some).map_err(failed)
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

    /// The files of the pages that have the quote of a label; `None` if the index does not know the wiki.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_citing(self, wiki: &str, label: &str) -> Result<Option<Vec<String>>, IndexError> {
        let Some(id) = self.index.find_wiki_id(wiki).await? else { return Ok(None) };
        let find = sqlx::query_scalar(BY_LABEL).bind(id).bind(label);
        find.fetch_all(&self.index.store.reader).await.map(Some).map_err(|e| self.index.sql_error(e))
    }
}

/// The best of all pages for an expression.
async fn rank_pages(
    connection: &mut SqliteConnection,
    table: &WordTable,
    expression: &str,
    limit: i64,
) -> sqlx::Result<Vec<IndexedPage>> {
    let rank = |sql: String, limit: i64| sqlx::query_as(AssertSqlSafe(sql)).bind(expression).bind(limit);
    // One more shows whether the last one has the rank of others, of which those with the first slugs are shown.
    let mut found: Vec<IndexedPage> =
        rank(table.rank_some(), limit.saturating_add(1)).fetch_all(&mut *connection).await?;
    let shown = usize::try_from(limit).unwrap_or(usize::MAX);
    match found.as_slice() {
        [.., last, next] if found.len() > shown && last.score == next.score => {
            rank(table.rank_all(), limit).fetch_all(connection).await
        }
        _ => {
            found.truncate(shown);
            Ok(found)
        }
    }
}

//! Whose turn it is: sources take turns wherever there is room for less than there is.
//!
//! A flood of one source must push out nobody else's words: not from the events of a run, not from the
//! tasks of a tick, not from the evidence of a question (whose SQL does the same). Those that were right
//! before come first in each round, because the names of the others cost their senders nothing.

use super::look::CheckCandidate;
use crate::index::Index;
use crate::index::IndexError;
use sqlx::SqliteConnection;
use std::collections::{BTreeMap, BTreeSet};

/// Sources that were right before, by their slugs.
const KNOWN: &str = "SELECT source FROM instincts GROUP BY source HAVING MIN(observations) > 0";

impl Index {
    pub(crate) async fn known_sources(&self, db: &mut SqliteConnection) -> Result<BTreeSet<String>, IndexError> {
        let known: Vec<String> = sqlx::query_scalar(KNOWN).fetch_all(db).await.map_err(|e| self.sql_error(e))?;
        Ok(known.into_iter().collect())
    }

    /// Whether a source was ever right before; by its slug.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn is_known_source(&self, slug: &str) -> Result<bool, IndexError> {
        let least: Option<i64> = sqlx::query_scalar("SELECT MIN(observations) FROM instincts WHERE source = ?1")
            .bind(slug)
            .fetch_one(&self.store.reader)
            .await
            .map_err(|e| self.sql_error(e))?;
        Ok(least.is_some_and(|least| least > 0))
    }
}

/// At most `limit` of these, which come oldest look first: one of each source in turn, tasks without
/// signals like those of one known source. A task of several sources has the first of their turns.
pub(crate) fn choose_round_robin(
    needy: Vec<CheckCandidate>,
    limit: usize,
    known: &BTreeSet<String>,
) -> Vec<CheckCandidate> {
    if needy.len() <= limit {
        return needy;
    }
    let nobody = [String::new()];
    let mut rounds: BTreeMap<(bool, &str), usize> = BTreeMap::new();
    let mut places: Vec<((usize, bool), usize)> = Vec::with_capacity(needy.len());
    for (place, candidate) in needy.iter().enumerate() {
        let sources = if candidate.sources.is_empty() { nobody.as_slice() } else { &candidate.sources };
        let turns = sources.iter().map(|source| {
            let strange = !source.is_empty() && !known.contains(source);
            let turn = rounds.entry((strange, source.as_str())).or_insert(0);
            *turn += 1;
            (*turn, strange)
        });
        // Every source's turn is counted, or one that joins the tasks of others would be first again.
        places.push((turns.collect::<Vec<_>>().into_iter().min().unwrap_or_default(), place));
    }
    places.sort_unstable();
    places.truncate(limit);
    let taken: BTreeSet<usize> = places.into_iter().map(|(_, place)| place).collect();
    needy.into_iter().enumerate().filter(|(place, _)| taken.contains(place)).map(|(_, candidate)| candidate).collect()
}

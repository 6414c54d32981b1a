//! Round-robin over sources, wherever there are more candidates than places.
//!
//! A flood from one source must not displace other sources: not in the events of a run, the tasks of a tick or the
//! evidence of a question (whose SQL does the same). Known sources, which were right before, come first in each
//! round. Unknown sources come later, because a new name costs its sender nothing.

use super::task_check::CheckCandidate;
use crate::index::CursorsView;
use crate::index::IndexError;
use sqlx::SqliteConnection;
use std::collections::{BTreeMap, BTreeSet};

/// The sources that were right before, by their slugs.
const KNOWN_SOURCES: &str = "SELECT source FROM instincts GROUP BY source HAVING MIN(observations) > 0";

impl CursorsView<'_> {
    /// The slugs of the sources that were right before.
    pub(crate) async fn known_sources(self, db: &mut SqliteConnection) -> Result<BTreeSet<String>, IndexError> {
        let known: Vec<String> =
            sqlx::query_scalar(KNOWN_SOURCES).fetch_all(db).await.map_err(|e| self.index.sql_error(e))?;
        Ok(known.into_iter().collect())
    }

    /// Whether the source with this slug was ever right before.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn is_known_source(self, slug: &str) -> Result<bool, IndexError> {
        let least: Option<i64> = sqlx::query_scalar("SELECT MIN(observations) FROM instincts WHERE source = ?1")
            .bind(slug)
            .fetch_one(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        Ok(least.is_some_and(|least| least > 0))
    }
}

/// Chooses at most `limit` candidates, one of each source in turn.
///
/// They arrive sorted by their last check, oldest first. Tasks without signals count as those of one known source. A
/// task of several sources takes the earliest of their turns.
pub(crate) fn choose_round_robin(
    needy: Vec<CheckCandidate>,
    limit: usize,
    known: &BTreeSet<String>,
) -> Vec<CheckCandidate> {
    if needy.len() <= limit {
        return needy;
    }
    let no_source = [String::new()];
    let mut rounds: BTreeMap<(bool, &str), usize> = BTreeMap::new();
    let mut places: Vec<((usize, bool), usize)> = Vec::with_capacity(needy.len());
    for (place, candidate) in needy.iter().enumerate() {
        let sources = if candidate.sources.is_empty() { no_source.as_slice() } else { &candidate.sources };
        let turns = sources.iter().map(|source| {
            let is_unknown = !source.is_empty() && !known.contains(source);
            let turn = rounds.entry((is_unknown, source.as_str())).or_insert(0);
            *turn += 1;
            (*turn, is_unknown)
        });
        // Every source's turn is counted. Otherwise a source that appears in the tasks of others would be first again.
        places.push((turns.collect::<Vec<_>>().into_iter().min().unwrap_or_default(), place));
    }
    places.sort_unstable();
    places.truncate(limit);
    let chosen: BTreeSet<usize> = places.into_iter().map(|(_, place)| place).collect();
    needy.into_iter().enumerate().filter(|(place, _)| chosen.contains(place)).map(|(_, candidate)| candidate).collect()
}

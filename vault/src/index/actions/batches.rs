//! The feedback of actions that were resolved as one batch.
//!
//! A person who resolves many proposals with one click has judged them once. So the click counts once for each class
//! and each source, by the most confident action of the batch. The records of the resolutions name their batch. An
//! action that was later resolved on its own has left its batch. Only actions that were resolved in a batch are kept
//! in memory.

use crate::index::ActionsView;
use crate::index::IndexError;
use crate::index::store::codec::from_micros;
use crate::index::trust::cases::{parse_disposition, parse_proposal_history, resolutions_text};
use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use sqlx::FromRow;
use std::collections::BTreeMap;
use steward_domain::trust::outcome::ProposalFeedback;

/// The id of a batch, its feedback, and a class.
type FeedbackGroup = (String, ProposalFeedback, String);

/// An action by its confidence and its number in the chain.
#[derive(Clone, Copy, Debug, PartialEq)]
struct BoldestAction {
    confidence: f64,
    seq: u64,
}

impl BoldestAction {
    /// The more confident action; of two equal ones the older.
    fn pick_bolder(self, other: Self) -> Self {
        let order = self.confidence.total_cmp(&other.confidence).then(other.seq.cmp(&self.seq));
        if order.is_lt() { other } else { self }
    }
}

/// The action that counts for its batch, for each class and for each source of a class.
#[derive(Debug, Default)]
pub(crate) struct BatchFeedback {
    classes: BTreeMap<FeedbackGroup, BoldestAction>,
    sources: BTreeMap<(FeedbackGroup, String), BoldestAction>,
}

impl BatchFeedback {
    /// Whether another action of the batch counts for the class.
    pub(crate) fn is_class_counted_elsewhere(&self, seq: u64, group: Option<&FeedbackGroup>) -> bool {
        group.and_then(|group| self.classes.get(group)).is_some_and(|bold| bold.seq != seq)
    }

    /// Whether another action of the batch counts for a source.
    pub(crate) fn is_source_counted_elsewhere(&self, source: &str, seq: u64, group: Option<&FeedbackGroup>) -> bool {
        let key = group.map(|group| (group.clone(), source.to_owned()));
        key.and_then(|key| self.sources.get(&key)).is_some_and(|bold| bold.seq != seq)
    }

    fn add_action(&mut self, group: FeedbackGroup, sources: Vec<String>, bold: BoldestAction) {
        let update = |known: &mut BoldestAction| *known = known.pick_bolder(bold);
        for source in sources {
            self.sources.entry((group.clone(), source)).and_modify(update).or_insert(bold);
        }
        self.classes.entry(group).and_modify(update).or_insert(bold);
    }
}

#[derive(FromRow)]
struct BatchedActionColumns {
    seq: i64,
    at: i64,
    class: String,
    disposition: String,
    confidence: f64,
    history: Option<String>,
    sources: String,
}

/// Every action with a resolution from a batch, or whose confirmation was undone in a batch.
const RESOLVED_IN_BATCH: &str = concat!(
    "WITH answered AS (SELECT DISTINCT COALESCE((SELECT c.resolves FROM actions c WHERE c.id = b.resolves
            AND c.kind = 'steward-action-confirmed'), b.resolves) AS id FROM actions b WHERE b.batch_id IS NOT NULL)
    SELECT a.seq, a.at, a.class, a.disposition, a.confidence, ",
    resolutions_text!(),
    " AS history, (SELECT json_group_array(s.source) FROM action_sources s WHERE s.action = a.path AND s.supports = 1)
        AS sources
    FROM answered n JOIN actions a ON a.id = n.id WHERE a.kind = 'steward-action' AND a.class IS NOT NULL"
);

impl ActionsView<'_> {
    /// Reads the feedback of all batches so far.
    pub(crate) async fn read_batch_feedback(self, now: DateTime<Utc>) -> Result<BatchFeedback, IndexError> {
        let mut all = BatchFeedback::default();
        let mut rows = sqlx::query_as::<_, BatchedActionColumns>(RESOLVED_IN_BATCH).fetch(&self.index.store.reader);
        while let Some(row) = rows.try_next().await.map_err(|e| self.index.sql_error(e))? {
            let disposition =
                parse_disposition(&row.disposition).ok_or_else(|| self.index.unknown_value_error(&row.disposition))?;
            let (history, batch) =
                parse_proposal_history(row.history.as_deref(), disposition, from_micros(row.at).unwrap_or_default());
            let Some(batch) = batch else { continue };
            let sources: Vec<String> =
                serde_json::from_str(&row.sources).map_err(|_| self.index.unknown_value_error(&row.sources))?;
            let bold = BoldestAction { confidence: row.confidence, seq: row.seq.cast_unsigned() };
            all.add_action((batch, history.feedback_at(now).0, row.class), sources, bold);
        }
        Ok(all)
    }
}

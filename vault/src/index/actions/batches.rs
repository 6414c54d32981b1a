//! Which of the actions that were answered together teaches the lesson of them all.
//!
//! One click on many proposals is one look at them, so it counts once for each class and for each source: by the
//! action that was the most confident, because an act is as bold as its boldest. Which answers belong together is told
//! by the answers' own records. Who was answered once more alone has left the others. Only what was answered so is held
//! in memory.

use crate::index::Index;
use crate::index::IndexError;
use crate::index::store::codec::from_micros;
use crate::index::trust::cases::{answers, parse_disposition, parse_proposal_history};
use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use sqlx::FromRow;
use std::collections::BTreeMap;
use steward_domain::trust::outcome::ProposalFeedback;

/// What was answered together, the lesson of it, and a class.
type FeedbackGroup = (String, ProposalFeedback, String);

/// An action by its confidence and its place in the chain.
#[derive(Clone, Copy, Debug, PartialEq)]
struct BoldestAction {
    confidence: f64,
    seq: u64,
}

impl BoldestAction {
    /// The more confident; of two alike the older.
    fn pick_bolder(self, other: Self) -> Self {
        let order = self.confidence.total_cmp(&other.confidence).then(other.seq.cmp(&self.seq));
        if order.is_lt() { other } else { self }
    }
}

/// Who speaks for all, of each class and of each of its sources.
#[derive(Debug, Default)]
pub(crate) struct BatchFeedback {
    classes: BTreeMap<FeedbackGroup, BoldestAction>,
    sources: BTreeMap<(FeedbackGroup, String), BoldestAction>,
}

impl BatchFeedback {
    /// Whether another action teaches this one's lesson about its class.
    pub(crate) fn is_class_counted_elsewhere(&self, seq: u64, group: Option<&FeedbackGroup>) -> bool {
        group.and_then(|group| self.classes.get(group)).is_some_and(|bold| bold.seq != seq)
    }

    /// Whether another action teaches this one's lesson about a source.
    pub(crate) fn is_source_counted_elsewhere(&self, source: &str, seq: u64, group: Option<&FeedbackGroup>) -> bool {
        let key = group.map(|group| (group.clone(), source.to_owned()));
        key.and_then(|key| self.sources.get(&key)).is_some_and(|bold| bold.seq != seq)
    }

    fn add_action(&mut self, group: FeedbackGroup, sources: Vec<String>, bold: BoldestAction) {
        let put = |known: &mut BoldestAction| *known = known.pick_bolder(bold);
        for source in sources {
            self.sources.entry((group.clone(), source)).and_modify(put).or_insert(bold);
        }
        self.classes.entry(group).and_modify(put).or_insert(bold);
    }
}

#[derive(FromRow)]
struct BatchedActionColumns {
    seq: i64,
    at: i64,
    class: String,
    landing: String,
    confidence: f64,
    answers: Option<String>,
    sources: String,
}

/// Every action of which an answer, or the undo of its confirmation, was one of several.
const ANSWERED: &str = concat!(
    "WITH answered AS (SELECT DISTINCT COALESCE((SELECT c.answers_of FROM actions c WHERE c.id = b.answers_of
            AND c.kind = 'steward-action-confirmed'), b.answers_of) AS id FROM actions b WHERE b.together IS NOT NULL)
    SELECT a.seq, a.at, a.class, a.landing, a.confidence, ",
    answers!(),
    " AS answers, (SELECT json_group_array(s.source) FROM action_sources s WHERE s.action = a.path AND s.speaks = 1)
        AS sources
    FROM answered n JOIN actions a ON a.id = n.id WHERE a.kind = 'steward-action' AND a.class IS NOT NULL"
);

impl Index {
    /// Reads what was answered together by now.
    pub(crate) async fn read_batch_feedback(&self, now: DateTime<Utc>) -> Result<BatchFeedback, IndexError> {
        let mut all = BatchFeedback::default();
        let mut rows = sqlx::query_as::<_, BatchedActionColumns>(ANSWERED).fetch(&self.store.reader);
        while let Some(row) = rows.try_next().await.map_err(|e| self.sql_error(e))? {
            let landing = parse_disposition(&row.landing).ok_or_else(|| self.unknown_value_error(&row.landing))?;
            let (fate, together) =
                parse_proposal_history(row.answers.as_deref(), landing, from_micros(row.at).unwrap_or_default());
            let Some(together) = together else { continue };
            let sources: Vec<String> =
                serde_json::from_str(&row.sources).map_err(|_| self.unknown_value_error(&row.sources))?;
            let bold = BoldestAction { confidence: row.confidence, seq: row.seq.cast_unsigned() };
            all.add_action((together, fate.feedback_at(now).0, row.class), sources, bold);
        }
        Ok(all)
    }
}

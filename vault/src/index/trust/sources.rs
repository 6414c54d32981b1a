//! What the audit records say of the sources, in the order of the chain.
//!
//! One pass over the tables, row by row, so that a million records need no more memory than a hundred. The rules are
//! [`steward_domain::trust`]'s; nothing is kept here, so nothing can be counted twice. An average starts where a
//! human wrote that it does.

use super::cases::{answers, made_again, parse_disposition, parse_proposal_history, said_again};
use crate::index::Index;
use crate::index::IndexError;
use crate::index::store::codec::from_micros;
use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use sqlx::FromRow;
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::action::audit::ActionKind;
use steward_domain::record::path::RecordPath;
use steward_domain::trust::confidence::{ConfidenceStatus, ConfidenceStep, SourceConfidence};
use steward_domain::trust::outcome::count_observations;

/// Most moves of its standing that a source keeps, the newest.
const MAX_MOVES: usize = 20;

/// What the records say of one source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceTrust {
    /// As the newest record names it.
    pub name: String,
    pub confidence: SourceConfidence,
    /// Lessons that agree, bursts once.
    pub observations: u32,
    pub moves: Vec<SourceStatusChange>,
}

/// One change of a source's standing.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceStatusChange {
    pub at: DateTime<Utc>,
    pub to: ConfidenceStatus,
    /// The confidence by then.
    pub value: f64,
    /// The id of the record that brought it about.
    pub cause: String,
}

/// Rows between two pauses in which others get their turn: rows that lie ready leave none by themselves.
const BREATH: u32 = 1_024;

/// Counts rows to the next pause.
#[derive(Default)]
struct YieldCounter(u32);

impl YieldCounter {
    async fn yield_when_due(&mut self) {
        self.0 += 1;
        if self.0.is_multiple_of(BREATH) {
            tokio::task::yield_now().await;
        }
    }
}

#[derive(FromRow)]
struct ConfidenceStepColumns {
    id: String,
    at: i64,
    kind: String,
    source: String,
    name: String,
    contribution: Option<f64>,
    speaks: bool,
    class: Option<String>,
    together: Option<String>,
}

#[derive(FromRow)]
struct ProposalHistoryColumns {
    source: String,
    seq: i64,
    class: String,
    at: i64,
    landing: String,
    answers: Option<String>,
}

const STEPS: &str = "
    SELECT a.id, a.at, a.kind, s.source, s.name, s.contribution, s.speaks, a.class, a.together
    FROM actions a JOIN action_sources s ON s.action = a.path
    WHERE (a.kind = 'steward-action' AND a.judged = 1) OR a.kind = 'steward-action-reversed'
    ORDER BY a.seq, s.source";

/// Every proposal by each source that spoke for it and did not say the same again, with what humans said of it.
const FATES: &str = concat!(
    "SELECT s.source, a.seq, a.class, a.at, a.landing, ",
    answers!(),
    " AS answers FROM actions a JOIN action_sources s ON s.action = a.path
    WHERE a.kind = 'steward-action' AND a.class IS NOT NULL AND s.speaks = 1 AND NOT (",
    made_again!(),
    " AND ",
    said_again!(),
    ") ORDER BY s.source"
);

/// Where a human has the average of a source start, by the file that [`Index::list_instinct_files`] names for it.
const STARTS: &str = "SELECT source, start FROM (SELECT source, start, MIN(path) FROM instincts GROUP BY source)
    WHERE start IS NOT NULL";

impl Index {
    /// What the records say of every source by now, by the name that trust goes by.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn compute_source_trust(&self, now: DateTime<Utc>) -> Result<BTreeMap<String, SourceTrust>, IndexError> {
        let mut sources: BTreeMap<String, SourceTrust> = BTreeMap::new();
        let starts: Vec<(String, f64)> =
            sqlx::query_as(STARTS).fetch_all(&self.store.reader).await.map_err(|e| self.sql_error(e))?;
        let starts: BTreeMap<String, f64> = starts.into_iter().collect();
        let mut steps = sqlx::query_as::<_, ConfidenceStepColumns>(STEPS).fetch(&self.store.reader);
        let (mut breath, mut undone_together) = (YieldCounter::default(), BTreeSet::new());
        while let Some(row) = steps.try_next().await.map_err(|e| self.sql_error(e))? {
            breath.yield_when_due().await;
            let Some(step) = confidence_step(&row) else { continue };
            // Many undos with one click are one lesson to each source and class.
            if let (ConfidenceStep::Undone, Some(together)) = (step, row.together)
                && !undone_together.insert((together, row.class, row.source.clone()))
            {
                continue;
            }
            let source = sources.entry(row.source).or_insert_with_key(|source| {
                let confidence = starts.get(source).copied().map(SourceConfidence::from_value).unwrap_or_default();
                SourceTrust { confidence, ..SourceTrust::default() }
            });
            let before = source.confidence.standing;
            source.confidence = source.confidence.apply_step(step);
            source.name = row.name;
            let SourceConfidence { value, standing: to, .. } = source.confidence;
            if to != before {
                if source.moves.len() == MAX_MOVES {
                    source.moves.remove(0);
                }
                source.moves.push(SourceStatusChange {
                    at: from_micros(row.at).unwrap_or(now),
                    to,
                    value,
                    cause: row.id,
                });
            }
        }
        drop(steps);
        let together = self.read_batch_feedback(now).await?;
        let mut fates = sqlx::query_as::<_, ProposalHistoryColumns>(FATES).fetch(&self.store.reader);
        let mut agreed: (String, Vec<DateTime<Utc>>) = Default::default();
        let mut count = |(source, moments): (String, Vec<DateTime<Utc>>)| {
            if let Some(known) = sources.get_mut(&source) {
                known.observations = count_observations(moments);
            }
        };
        while let Some(row) = fates.try_next().await.map_err(|e| self.sql_error(e))? {
            breath.yield_when_due().await;
            if row.source != agreed.0 {
                count(std::mem::replace(&mut agreed, (row.source.clone(), Vec::new())));
            }
            let landing = parse_disposition(&row.landing).ok_or_else(|| self.unknown_value_error(&row.landing))?;
            let at = from_micros(row.at).unwrap_or_default();
            let (fate, with) = parse_proposal_history(row.answers.as_deref(), landing, at);
            let (lesson, since) = fate.feedback_at(now);
            let group = with.map(|with| (with, lesson, row.class));
            let elsewhere = together.is_source_counted_elsewhere(&row.source, row.seq.cast_unsigned(), group.as_ref());
            if lesson.is_agreement() == Some(true) && !elsewhere {
                agreed.1.push(since);
            }
        }
        count(agreed);
        Ok(sources)
    }

    /// Where the instinct of each source lies that has one, by the name that trust goes by.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_instinct_files(&self) -> Result<BTreeMap<String, RecordPath>, IndexError> {
        let rows: Vec<(String, String)> = sqlx::query_as("SELECT source, path FROM instincts ORDER BY path DESC")
            .fetch_all(&self.store.reader)
            .await
            .map_err(|e| self.sql_error(e))?;
        rows.into_iter().map(|(source, path)| Ok((source, self.parse_path(&path)?))).collect()
    }
}

fn confidence_step(row: &ConfidenceStepColumns) -> Option<ConfidenceStep> {
    if row.kind == ActionKind::Reversed.as_str() {
        return row.speaks.then_some(ConfidenceStep::Undone);
    }
    row.contribution.map(|contribution| ConfidenceStep::Judged { contribution })
}

//! The trust in each source, computed from the audit records in chain order.
//!
//! One pass reads the tables row by row, so a million records need no more memory than a hundred. The rules are in
//! [`steward_domain::trust`]. Nothing is stored, so nothing can be counted twice. An average begins at the start value
//! that a person wrote, if there is one.

use super::cases::{
    is_by_agent_alone, is_repeated, is_repeated_by_source, parse_disposition, parse_proposal_history, resolutions_text,
};
use crate::index::IndexError;
use crate::index::TrustView;
use crate::index::signals::route::decode_ceiling;
use crate::index::store::codec::from_micros;
use crate::index::store::rows::to_json;
use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use sqlx::FromRow;
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::action::audit::ActionKind;
use steward_domain::gates::mode::Ceiling;
use steward_domain::record::path::RecordPath;
use steward_domain::trust::confidence::{ConfidenceStatus, ConfidenceStep, SourceConfidence};
use steward_domain::trust::mark::TrustSubject;
use steward_domain::trust::outcome::count_observations;

/// The most status changes that are kept for a source, the newest.
const MAX_STATUS_CHANGES: usize = 20;

/// The trust in one source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceTrust {
    /// The source's name in the newest record. Untrusted.
    pub name: String,
    pub confidence: SourceConfidence,
    /// Feedback that agrees; a burst counts once.
    pub observations: u32,
    pub status_changes: Vec<SourceStatusChange>,
}

/// One change of a source's confidence status.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceStatusChange {
    pub at: DateTime<Utc>,
    pub to: ConfidenceStatus,
    /// The confidence after the change.
    pub value: f64,
    /// The id of the record that caused it.
    pub cause: String,
}

/// Rows between two yields to other work. Rows that are already buffered cause no yield by themselves.
const ROWS_PER_YIELD: u32 = 1_024;

/// Counts rows until the next yield.
#[derive(Default)]
struct YieldCounter(u32);

impl YieldCounter {
    async fn yield_when_due(&mut self) {
        self.0 += 1;
        if self.0.is_multiple_of(ROWS_PER_YIELD) {
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
    supports: bool,
    class: Option<String>,
    batch_id: Option<String>,
}

#[derive(FromRow)]
struct ProposalHistoryColumns {
    source: String,
    seq: i64,
    class: String,
    at: i64,
    disposition: String,
    history: Option<String>,
}

const STEPS: &str = concat!(
    "
    SELECT a.id, a.at, a.kind, s.source, s.name, s.contribution, s.supports, a.class, a.batch_id
    FROM actions a JOIN action_sources s ON s.action = a.path
    WHERE (a.kind = 'steward-action' AND a.judged = 1) OR (a.kind = 'steward-action-reversed' AND NOT ",
    is_by_agent_alone!("a"),
    ") ORDER BY a.seq, s.source"
);

/// Every proposal for each source that supported it and did not repeat it, with its history.
const PROPOSAL_HISTORIES: &str = concat!(
    "SELECT s.source, a.seq, a.class, a.at, a.disposition, ",
    resolutions_text!(),
    " AS history FROM actions a JOIN action_sources s ON s.action = a.path
    WHERE a.kind = 'steward-action' AND a.class IS NOT NULL AND s.supports = 1 AND NOT (",
    is_repeated!(),
    " AND ",
    is_repeated_by_source!(),
    ") ORDER BY s.source"
);

/// The start values that people set for sources, from the file that `TrustView::list_instinct_files` returns for each.
const START_VALUES: &str = "SELECT source, start FROM (SELECT source, start, MIN(path) FROM instincts GROUP BY source)
    WHERE start IS NOT NULL";

const LAST_SETTING: &str = "SELECT MAX(at) FROM actions WHERE trust_subject = ?1
    AND kind IN ('steward-ceiling-set', 'steward-action-reversed')";
const INSTINCTS: &str = "SELECT path, source, ceiling, observations FROM instincts
    WHERE ?1 IS NULL OR source = ?1 ORDER BY path";

impl TrustView<'_> {
    /// Computes the trust in every source so far, by the source's key.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn compute_source_trust(self, now: DateTime<Utc>) -> Result<BTreeMap<String, SourceTrust>, IndexError> {
        let mut sources: BTreeMap<String, SourceTrust> = BTreeMap::new();
        let starts: Vec<(String, f64)> = sqlx::query_as(START_VALUES)
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let starts: BTreeMap<String, f64> = starts.into_iter().collect();
        let mut steps = sqlx::query_as::<_, ConfidenceStepColumns>(STEPS).fetch(&self.index.store.reader);
        let (mut yields, mut undone_batches) = (YieldCounter::default(), BTreeSet::new());
        while let Some(row) = steps.try_next().await.map_err(|e| self.index.sql_error(e))? {
            yields.yield_when_due().await;
            let Some(step) = confidence_step(&row) else { continue };
            // The undos of one batch count once for each source and class.
            if let (ConfidenceStep::Undone, Some(batch)) = (step, row.batch_id)
                && !undone_batches.insert((batch, row.class, row.source.clone()))
            {
                continue;
            }
            let source = sources.entry(row.source).or_insert_with_key(|source| {
                let confidence = starts.get(source).copied().map(SourceConfidence::from_value).unwrap_or_default();
                SourceTrust { confidence, ..SourceTrust::default() }
            });
            let before = source.confidence.status;
            source.confidence = source.confidence.apply_step(step);
            source.name = row.name;
            let SourceConfidence { value, status: to, .. } = source.confidence;
            if to != before {
                if source.status_changes.len() == MAX_STATUS_CHANGES {
                    source.status_changes.remove(0);
                }
                source.status_changes.push(SourceStatusChange {
                    at: from_micros(row.at).unwrap_or(now),
                    to,
                    value,
                    cause: row.id,
                });
            }
        }
        drop(steps);
        let batches = self.index.actions().read_batch_feedback(now).await?;
        let mut histories =
            sqlx::query_as::<_, ProposalHistoryColumns>(PROPOSAL_HISTORIES).fetch(&self.index.store.reader);
        let mut agreed: (String, Vec<DateTime<Utc>>) = Default::default();
        let mut count = |(source, moments): (String, Vec<DateTime<Utc>>)| {
            if let Some(known) = sources.get_mut(&source) {
                known.observations = count_observations(moments);
            }
        };
        while let Some(row) = histories.try_next().await.map_err(|e| self.index.sql_error(e))? {
            yields.yield_when_due().await;
            if row.source != agreed.0 {
                count(std::mem::replace(&mut agreed, (row.source.clone(), Vec::new())));
            }
            let disposition =
                parse_disposition(&row.disposition).ok_or_else(|| self.index.unknown_value_error(&row.disposition))?;
            let at = from_micros(row.at).unwrap_or_default();
            let (history, batch) = parse_proposal_history(row.history.as_deref(), disposition, at);
            let (feedback, since) = history.feedback_at(now);
            let group = batch.map(|batch| (batch, feedback, row.class));
            let elsewhere = batches.is_source_counted_elsewhere(&row.source, row.seq.cast_unsigned(), group.as_ref());
            if feedback.is_agreement() == Some(true) && !elsewhere {
                agreed.1.push(since);
            }
        }
        count(agreed);
        Ok(sources)
    }

    /// Lists the instinct's file of each source that has one, by the source's key.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_instinct_files(self) -> Result<BTreeMap<String, RecordPath>, IndexError> {
        let rows: Vec<(String, String)> = sqlx::query_as("SELECT source, path FROM instincts ORDER BY path DESC")
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        rows.into_iter().map(|(source, path)| Ok((source, self.index.parse_path(&path)?))).collect()
    }
}

/// What an instinct says about its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstinctSetting {
    pub path: RecordPath,
    /// The key of its source.
    pub source: String,
    /// The ceiling that a person has set.
    pub ceiling: Option<Ceiling>,
    pub observations: u32,
}

impl TrustView<'_> {
    /// When a person last set a ceiling on a source, or undid that; `None` if nobody did.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn find_last_setting(self, source: &str) -> Result<Option<DateTime<Utc>>, IndexError> {
        let subject = to_json(&TrustSubject::Source(source.to_owned()));
        let at: Option<i64> = sqlx::query_scalar(LAST_SETTING)
            .bind(subject)
            .fetch_one(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        Ok(at.and_then(from_micros))
    }

    /// Lists the instincts of one source, or of all, by path. An instinct that cannot be read has the ceiling `ask`.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_instincts(self, source: Option<&str>) -> Result<Vec<InstinctSetting>, IndexError> {
        let rows: Vec<(String, String, Option<i64>, u32)> = sqlx::query_as(INSTINCTS)
            .bind(source)
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let decode = |(path, source, ceiling, observations): (String, String, Option<i64>, u32)| {
            let ceiling = ceiling.map(|set| decode_ceiling(Some(set), Ceiling::Ask));
            Ok(InstinctSetting { path: self.index.parse_path(&path)?, source, ceiling, observations })
        };
        rows.into_iter().map(decode).collect()
    }
}

fn confidence_step(row: &ConfidenceStepColumns) -> Option<ConfidenceStep> {
    if row.kind == ActionKind::Reversed.as_str() {
        return row.supports.then_some(ConfidenceStep::Undone);
    }
    row.contribution.map(|contribution| ConfidenceStep::Judged { contribution })
}

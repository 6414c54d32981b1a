//! What the audit records say of the sources, in the order of the chain.
//!
//! One pass over the tables, row by row, so that a million records need no more memory than a hundred. The
//! rules are [`steward_domain::trust`]'s; nothing is kept here, so nothing can be counted twice. An average starts where
//! a human wrote that it does.

use super::cases::{answers, fate, landing, made_again, said_again};
use super::codec::instant;
use super::{Index, IndexError};
use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use sqlx::FromRow;
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::audit::ActionKind;
use steward_domain::path::RecordPath;
use steward_domain::trust::confidence::{Confidence, Standing, Step};
use steward_domain::trust::outcome::observations;

/// Most moves of its standing that a source keeps, the newest.
const MAX_MOVES: usize = 20;

/// What the records say of one source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceTrust {
    /// As the newest record names it.
    pub name: String,
    pub confidence: Confidence,
    /// Lessons that agree, bursts once.
    pub observations: u32,
    pub moves: Vec<Move>,
}

/// One change of a source's standing.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    pub at: DateTime<Utc>,
    pub to: Standing,
    /// The confidence by then.
    pub value: f64,
    /// The id of the record that brought it about.
    pub cause: String,
}

/// Rows between two pauses in which others get their turn: rows that lie ready leave none by themselves.
const BREATH: u32 = 1_024;

/// Counts rows to the next pause.
#[derive(Default)]
struct Breath(u32);

impl Breath {
    async fn take(&mut self) {
        self.0 += 1;
        if self.0.is_multiple_of(BREATH) {
            tokio::task::yield_now().await;
        }
    }
}

#[derive(FromRow)]
struct StepRow {
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
struct FateRow {
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

/// Where a human has the average of a source start, by the file that [`Index::instinct_files`] names for it.
const STARTS: &str = "SELECT source, start FROM (SELECT source, start, MIN(path) FROM instincts GROUP BY source)
    WHERE start IS NOT NULL";

impl Index {
    /// What the records say of every source by now, by the name that trust goes by.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn trust(&self, now: DateTime<Utc>) -> Result<BTreeMap<String, SourceTrust>, IndexError> {
        let mut sources: BTreeMap<String, SourceTrust> = BTreeMap::new();
        let starts: Vec<(String, f64)> =
            sqlx::query_as(STARTS).fetch_all(&self.store.reader).await.map_err(|e| self.sql(e))?;
        let starts: BTreeMap<String, f64> = starts.into_iter().collect();
        let mut steps = sqlx::query_as::<_, StepRow>(STEPS).fetch(&self.store.reader);
        let (mut breath, mut undone_together) = (Breath::default(), BTreeSet::new());
        while let Some(row) = steps.try_next().await.map_err(|e| self.sql(e))? {
            breath.take().await;
            let Some(step) = step(&row) else { continue };
            // Many undos with one click are one lesson to each source and class.
            if let (Step::Undone, Some(together)) = (step, row.together)
                && !undone_together.insert((together, row.class, row.source.clone()))
            {
                continue;
            }
            let source = sources.entry(row.source).or_insert_with_key(|source| {
                let confidence = starts.get(source).copied().map(Confidence::starting_at).unwrap_or_default();
                SourceTrust { confidence, ..SourceTrust::default() }
            });
            let before = source.confidence.standing;
            source.confidence = source.confidence.after(step);
            source.name = row.name;
            let Confidence { value, standing: to, .. } = source.confidence;
            if to != before {
                if source.moves.len() == MAX_MOVES {
                    source.moves.remove(0);
                }
                source.moves.push(Move { at: instant(row.at).unwrap_or(now), to, value, cause: row.id });
            }
        }
        drop(steps);
        let together = self.together(now).await?;
        let mut fates = sqlx::query_as::<_, FateRow>(FATES).fetch(&self.store.reader);
        let mut agreed: (String, Vec<DateTime<Utc>>) = Default::default();
        let mut count = |(source, moments): (String, Vec<DateTime<Utc>>)| {
            if let Some(known) = sources.get_mut(&source) {
                known.observations = observations(moments);
            }
        };
        while let Some(row) = fates.try_next().await.map_err(|e| self.sql(e))? {
            breath.take().await;
            if row.source != agreed.0 {
                count(std::mem::replace(&mut agreed, (row.source.clone(), Vec::new())));
            }
            let landing = landing(&row.landing).ok_or_else(|| self.unknown(&row.landing))?;
            let at = instant(row.at).unwrap_or_default();
            let (fate, with) = fate(row.answers.as_deref(), landing, at);
            let (lesson, since) = fate.lesson(now);
            let group = with.map(|with| (with, lesson, row.class));
            let elsewhere = together.is_told_of_by_another(&row.source, row.seq.cast_unsigned(), group.as_ref());
            if lesson.agrees() == Some(true) && !elsewhere {
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
    pub async fn instinct_files(&self) -> Result<BTreeMap<String, RecordPath>, IndexError> {
        let rows: Vec<(String, String)> = sqlx::query_as("SELECT source, path FROM instincts ORDER BY path DESC")
            .fetch_all(&self.store.reader)
            .await
            .map_err(|e| self.sql(e))?;
        rows.into_iter().map(|(source, path)| Ok((source, self.path(&path)?))).collect()
    }
}

fn step(row: &StepRow) -> Option<Step> {
    if row.kind == ActionKind::Reversed.as_str() {
        return row.speaks.then_some(Step::Undone);
    }
    row.contribution.map(|contribution| Step::Judged { contribution })
}

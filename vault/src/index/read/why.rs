//! One task or matter and the signals about it, for explanations (`steward why`).
//!
//! Read-only. The decisions are in the audit records, which [`crate::index::actions::action`] lists.

use crate::index::IndexError;
use crate::index::ReadView;
use crate::index::store::codec::from_micros;
use crate::index::store::rows::{SqlText, to_json};
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::FromRow;
use std::collections::BTreeMap;
use steward_domain::action::mutation::{Mutation, MutationClass};
use steward_domain::record::entity::{RecordState, SignalEffect};
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::signals::signal::SignalStatus;

/// A task or matter with its last and next check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SubjectRow {
    pub path: RecordPath,
    pub name: String,
    pub state: RecordState,
    pub snoozed_until: Option<DateTime<Utc>>,
    pub last_check_at: Option<DateTime<Utc>>,
    pub next_check_after: Option<DateTime<Utc>>,
}

/// A task or matter and its title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordTitle {
    pub path: RecordPath,
    pub kind: RecordKind,
    pub title: String,
}

/// A signal about a record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WeighedSignal {
    pub path: RecordPath,
    pub source: String,
    /// The verbatim quote, at most 50 characters. Untrusted.
    pub note: String,
    pub created: DateTime<Utc>,
    pub effect: SignalEffect,
    /// `None` if the signal proposes nothing that may be written.
    pub class: Option<MutationClass>,
    /// 0 to 1.
    pub target_confidence: f64,
    /// 0 to 1.
    pub effect_confidence: f64,
    pub status: SignalStatus,
    /// The reason in its file, or else the router's last reason.
    pub reason: Option<String>,
    /// What it proposes, if that may be written.
    #[serde(skip)]
    pub mutation: Option<Mutation>,
    /// Whether it asks somebody to act, and nobody has done so.
    #[serde(skip)]
    pub asks: bool,
    /// Whether a person has resolved it, so that it says nothing about its record any more.
    #[serde(skip)]
    pub is_settled: bool,
}

#[derive(FromRow)]
struct SubjectColumns {
    name: String,
    state: String,
    snoozed_until: Option<i64>,
    last_check_at: Option<i64>,
    next_check_after: Option<i64>,
}

#[derive(FromRow)]
struct TargetedSignalColumns {
    target: String,
    #[sqlx(flatten)]
    signal: WeighedSignalColumns,
}

#[derive(FromRow)]
pub(crate) struct WeighedSignalColumns {
    path: String,
    source: String,
    note: String,
    created: i64,
    effect: String,
    class: Option<String>,
    target_confidence: f64,
    effect_confidence: f64,
    status: String,
    reason: Option<String>,
    proposal: Option<String>,
    applied: bool,
    settled: bool,
}

/// The columns of [`WeighedSignalColumns`] from the signal `o`.
macro_rules! weighed_signal_columns {
    () => {
        concat!(
            "o.path, o.source, o.note, o.created, o.effect, o.class, o.target_confidence, o.effect_confidence, o.status,
            COALESCE(o.reason, (SELECT r.reason FROM routes r WHERE r.signal = o.path)) AS reason, o.proposal, o.applied, ",
            $crate::index::signals::doubt::is_signal_settled!(),
            " AS settled"
        )
    };
}
pub(crate) use weighed_signal_columns;

const SUBJECT: &str = "
    SELECT r.name, r.state, r.snoozed_until, c.last_check_at, c.next_check_after
    FROM (SELECT path, name, state, snoozed_until FROM tasks WHERE path = ?1
          UNION ALL SELECT path, name, state, NULL FROM matters WHERE path = ?1) r
    LEFT JOIN task_checks c ON c.task = r.path";

const SIGNALS: SqlText = concat!(
    "SELECT ",
    weighed_signal_columns!(),
    " FROM signals o WHERE o.target = ?1 ORDER BY o.created DESC, o.path LIMIT ?2"
);
/// The newest signals about each record (?1, at most ?2 of each), and those with the paths ?3.
pub(crate) const SIGNALS_OF_EACH: SqlText = concat!(
    "SELECT j.value AS target, ",
    weighed_signal_columns!(),
    " FROM (SELECT DISTINCT value FROM json_each(?1)) j CROSS JOIN signals o ON o.target = j.value AND o.path IN (SELECT path FROM (
            SELECT n.path FROM signals n INDEXED BY signals_by_target WHERE n.target = j.value
            ORDER BY n.created DESC, n.path LIMIT ?2)
        UNION SELECT value FROM json_each(?3))
    ORDER BY j.value, o.created DESC, o.path"
);

/// Tasks and matters with their titles.
const TITLES: &str = "SELECT path, name, 0 AS is_matter FROM tasks
    UNION ALL SELECT path, name, 1 FROM matters WHERE name IS NOT NULL ORDER BY path";

impl ReadView<'_> {
    /// Finds a task or matter; `None` if it is missing or cannot be read.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn find_subject(self, path: &RecordPath) -> Result<Option<SubjectRow>, IndexError> {
        let row: Option<SubjectColumns> = sqlx::query_as(SUBJECT)
            .bind(path.as_str())
            .fetch_optional(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(SubjectRow {
            path: path.clone(),
            name: row.name,
            state: self.index.parse_enum(&row.state)?,
            snoozed_until: row.snoozed_until.and_then(from_micros),
            last_check_at: row.last_check_at.and_then(from_micros),
            next_check_after: row.next_check_after.and_then(from_micros),
        }))
    }

    /// Lists the title of every task and matter, in the order of paths.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_record_titles(self) -> Result<Vec<RecordTitle>, IndexError> {
        let rows: Vec<(String, String, bool)> =
            sqlx::query_as(TITLES).fetch_all(&self.index.store.reader).await.map_err(|e| self.index.sql_error(e))?;
        let decoded = rows.into_iter().filter_map(|(path, title, is_matter)| {
            let kind = if is_matter { RecordKind::Matter } else { RecordKind::Task };
            Some(RecordTitle { path: RecordPath::parse(&path).ok()?, kind, title })
        });
        Ok(decoded.collect())
    }

    /// Lists the newest signals about a task or matter, with any status.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_signals_about(self, path: &RecordPath, limit: u32) -> Result<Vec<WeighedSignal>, IndexError> {
        let rows: Vec<WeighedSignalColumns> = sqlx::query_as(SIGNALS)
            .bind(path.as_str())
            .bind(i64::from(limit))
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        rows.into_iter().map(|row| self.decode_weighed_signal(row)).collect()
    }

    /// Lists the newest signals about each of these records, at most `limit` of each, and the `cited` ones about them.
    /// The newest signal of a record comes first.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_newest_signals(
        self,
        records: &[RecordPath],
        cited: &[&str],
        limit: u32,
    ) -> Result<BTreeMap<RecordPath, Vec<WeighedSignal>>, IndexError> {
        let rows: Vec<TargetedSignalColumns> = sqlx::query_as(SIGNALS_OF_EACH)
            .bind(to_json(&records))
            .bind(limit)
            .bind(to_json(&cited))
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let mut signals: BTreeMap<RecordPath, Vec<WeighedSignal>> = BTreeMap::new();
        for row in rows {
            let target = self.index.parse_path(&row.target)?;
            signals.entry(target).or_default().push(self.decode_weighed_signal(row.signal)?);
        }
        Ok(signals)
    }

    pub(crate) fn decode_weighed_signal(self, row: WeighedSignalColumns) -> Result<WeighedSignal, IndexError> {
        let effect = self.index.parse_enum(&row.effect)?;
        Ok(WeighedSignal {
            path: self.index.parse_path(&row.path)?,
            source: row.source,
            note: row.note,
            created: from_micros(row.created).unwrap_or_default(),
            effect,
            class: row.class.map(|c| self.index.parse_enum(&c)).transpose()?,
            target_confidence: row.target_confidence,
            effect_confidence: row.effect_confidence,
            status: self.index.parse_enum(&row.status)?,
            reason: row.reason,
            mutation: row.proposal.as_deref().and_then(read_mutation),
            asks: effect == SignalEffect::Action && !row.applied,
            is_settled: row.settled,
        })
    }
}

/// The change in a stored proposal. It was checked before it was stored.
fn read_mutation(proposal: &str) -> Option<Mutation> {
    Mutation::from_proposal(&serde_json::from_str(proposal).ok()?).ok()
}

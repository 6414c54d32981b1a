//! One task or matter and the signals about it, for explanations (`steward why`).
//!
//! Read-only. The decisions are in the audit records, which [`crate::index::actions::action`] lists.

use crate::index::IndexError;
use crate::index::ReadView;
use crate::index::store::codec::from_micros;
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::FromRow;
use steward_domain::action::mutation::MutationClass;
use steward_domain::record::entity::{RecordState, SignalEffect};
use steward_domain::record::path::RecordPath;
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
}

const SUBJECT: &str = "
    SELECT r.name, r.state, r.snoozed_until, c.last_check_at, c.next_check_after
    FROM (SELECT path, name, state, snoozed_until FROM tasks WHERE path = ?1
          UNION ALL SELECT path, name, state, NULL FROM matters WHERE path = ?1) r
    LEFT JOIN task_checks c ON c.task = r.path";

const SIGNALS: &str = "
    SELECT path, source, note, created, effect, class, target_confidence, effect_confidence, status,
        COALESCE(reason, (SELECT r.reason FROM routes r WHERE r.signal = signals.path)) AS reason
    FROM signals WHERE target = ?1 ORDER BY created DESC, path LIMIT ?2";

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

    pub(crate) fn decode_weighed_signal(self, row: WeighedSignalColumns) -> Result<WeighedSignal, IndexError> {
        Ok(WeighedSignal {
            path: self.index.parse_path(&row.path)?,
            source: row.source,
            note: row.note,
            created: from_micros(row.created).unwrap_or_default(),
            effect: self.index.parse_enum(&row.effect)?,
            class: row.class.map(|c| self.index.parse_enum(&c)).transpose()?,
            target_confidence: row.target_confidence,
            effect_confidence: row.effect_confidence,
            status: self.index.parse_enum(&row.status)?,
            reason: row.reason,
        })
    }
}

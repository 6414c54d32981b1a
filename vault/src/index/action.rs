//! What was decided and done, as the audit records tell it: for lists, screens and answers.
//!
//! Derived from the records, which stay the truth: an answer reads the record itself.

use super::codec::{instant, micros};
use super::{Index, IndexError};
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::FromRow;
use steward_domain::audit::ActionKind;
use steward_domain::clerk::Judgement;
use steward_domain::mode::Mode;
use steward_domain::mutation::MutationClass;
use steward_domain::path::RecordPath;
use steward_domain::plan::{ActionId, Landing};
use steward_domain::record::State;

/// One audit record, in a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ActionRow {
    pub path: RecordPath,
    pub id: ActionId,
    pub kind: ActionKind,
    pub target: RecordPath,
    pub at: DateTime<Utc>,
    pub decision: Judgement,
    /// 0 to 1.
    pub confidence: f64,
    pub landing: Landing,
    pub mode: Mode,
    pub class: Option<MutationClass>,
    pub proposed_state: Option<State>,
    /// It was filed to wait for a human; see `answered`.
    pub pending: bool,
    /// The action that this one answers.
    pub answers: Option<ActionId>,
    /// How a human has answered this one; the latest answer, where there are several.
    pub answered: Option<ActionKind>,
    /// A confirmation that let something else happen than was proposed.
    pub edited: bool,
    /// What was answered with one click has one and the same: one row for whoever groups by it.
    pub together: Option<ActionId>,
    /// Its place in the chain of records.
    pub seq: u64,
}

/// The actions that the beginning of an id names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    One(RecordPath),
    None,
    /// More than one; a longer beginning tells them apart.
    Many(Vec<RecordPath>),
}

#[derive(FromRow)]
pub(super) struct Row {
    path: String,
    id: String,
    kind: String,
    target: String,
    at: i64,
    decision: String,
    confidence: f64,
    landing: String,
    mode: String,
    pending: bool,
    answers_of: Option<String>,
    class: Option<String>,
    proposed_state: Option<String>,
    seq: i64,
    edited: bool,
    together: Option<String>,
    answered: Option<String>,
}

const LIST: &str = "SELECT a.*, (SELECT b.kind FROM actions b WHERE b.answers_of = a.id ORDER BY b.at DESC LIMIT 1)
        AS answered
    FROM actions a WHERE a.at >= ?1 AND (?2 IS NULL OR a.target = ?2)
    ORDER BY a.at DESC, a.seq DESC LIMIT ?3";
const PENDING: &str = "SELECT a.*, NULL AS answered FROM actions a
    WHERE a.pending = 1 AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.answers_of = a.id)
    ORDER BY a.at DESC, a.seq DESC";

/// `g` follows every hex digit, so the range holds all ids that begin so. Of copied files, which have one id, what lies
/// where it was filed is the action.
const FOUND: &str = "SELECT a.path FROM actions a WHERE a.id >= ?1 AND a.id < ?1 || 'g'
        AND a.path = (SELECT b.path FROM actions b WHERE b.id = a.id ORDER BY b.misnamed, b.seq, b.path LIMIT 1)
    ORDER BY a.at DESC LIMIT 20";

impl Index {
    /// Finds an action by the beginning of its id: 4 to 16 hex digits, in any case. Copies of its record are no others.
    ///
    /// # Errors
    /// [`IndexError::Prefix`] when the text is no such beginning.
    pub async fn find_action(&self, prefix: &str) -> Result<Found, IndexError> {
        let text = prefix.trim().to_ascii_lowercase();
        if !(4..=16).contains(&text.len()) || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(IndexError::Prefix(prefix.chars().take(40).flat_map(char::escape_debug).collect()));
        }
        let paths: Vec<String> =
            sqlx::query_scalar(FOUND).bind(text).fetch_all(&self.store.reader).await.map_err(|e| self.sql(e))?;
        let mut paths = paths.iter().map(|p| self.path(p)).collect::<Result<Vec<_>, _>>()?;
        Ok(match paths.len() {
            0 => Found::None,
            1 => paths.pop().map_or(Found::None, Found::One),
            _ => Found::Many(paths),
        })
    }

    /// Actions and answers, newest first: of one record if asked for, from a moment on, at most `limit`.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn actions(
        &self,
        since: Option<DateTime<Utc>>,
        target: Option<&RecordPath>,
        limit: u32,
    ) -> Result<Vec<ActionRow>, IndexError> {
        let rows: Vec<Row> = sqlx::query_as(LIST)
            .bind(since.map_or(i64::MIN, micros))
            .bind(target.map(RecordPath::as_str))
            .bind(i64::from(limit))
            .fetch_all(&self.store.reader)
            .await
            .map_err(|e| self.sql(e))?;
        rows.into_iter().map(|row| self.action(row)).collect()
    }

    /// Actions that wait for a human's answer, newest first.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn pending(&self) -> Result<Vec<ActionRow>, IndexError> {
        let rows: Vec<Row> = sqlx::query_as(PENDING).fetch_all(&self.store.reader).await.map_err(|e| self.sql(e))?;
        rows.into_iter().map(|row| self.action(row)).collect()
    }

    /// The record that an action is about; `None` when no such action is known.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn target_of(&self, action: &RecordPath) -> Result<Option<RecordPath>, IndexError> {
        let target: Option<String> = sqlx::query_scalar("SELECT target FROM actions WHERE path = ?1")
            .bind(action.as_str())
            .fetch_optional(&self.store.reader)
            .await
            .map_err(|e| self.sql(e))?;
        target.map(|t| self.path(&t)).transpose()
    }

    pub(super) fn action(&self, row: Row) -> Result<ActionRow, IndexError> {
        Ok(ActionRow {
            path: self.path(&row.path)?,
            id: self.word(&row.id)?,
            kind: self.word(&row.kind)?,
            target: self.path(&row.target)?,
            at: instant(row.at).unwrap_or_default(),
            decision: self.word(&row.decision)?,
            confidence: row.confidence,
            landing: self.word(&row.landing)?,
            mode: self.word(&row.mode)?,
            class: row.class.map(|c| self.word(&c)).transpose()?,
            proposed_state: row.proposed_state.map(|s| self.word(&s)).transpose()?,
            pending: row.pending,
            answers: row.answers_of.map(|id| self.word(&id)).transpose()?,
            answered: row.answered.map(|kind| self.word(&kind)).transpose()?,
            edited: row.edited,
            together: row.together.map(|id| self.word(&id)).transpose()?,
            seq: row.seq.cast_unsigned(),
        })
    }
}

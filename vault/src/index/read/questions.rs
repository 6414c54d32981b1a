//! Open questions: decisions of the stewards and the router that only a person can settle.
//!
//! A question is about one task or matter. It ends when a person resolves it, or edits or closes the record. It also
//! ends when a steward changes the record because of a newer signal (in shadow mode: would have changed it). A newer
//! question about the same record replaces it. A quiet check, a proposal and the passing of time end no question.
//!
//! Questions are derived from the audit records, which stay the truth. The edits of people are state of the index: if
//! that is lost, a question stays open.

use super::why::{WeighedSignal, WeighedSignalColumns, weighed_signal_columns};
use crate::index::IndexError;
use crate::index::ReadView;
use crate::index::actions::action::ActionRow;
use crate::index::actions::waiting::is_snoozed;
use crate::index::store::rows::SqlText;
use chrono::{DateTime, Utc};
use sqlx::AssertSqlSafe;
use steward_domain::action::plan::ActionId;
use steward_domain::record::path::RecordPath;

/// A person has edited the record of the question `p` since. Content that Steward itself wrote is no edit of a person.
macro_rules! was_edited_since {
    () => {
        "EXISTS (SELECT 1 FROM edits d WHERE d.path = p.target AND d.after_seq >= p.seq AND NOT EXISTS (
            SELECT 1 FROM actions b INDEXED BY actions_by_target
            WHERE b.target = p.target AND b.content = d.content AND b.seq > p.seq))"
    };
}
pub(crate) use was_edited_since;

/// The action `p`, one with `asks = 1`, is a question that has not ended.
macro_rules! is_open_question {
    () => {
        concat!("NOT EXISTS (SELECT 1 FROM signals n CROSS JOIN first_seen f ON f.signal = n.path
                CROSS JOIN action_evidence e ON e.ref = n.path CROSS JOIN actions b ON b.path = e.action
                WHERE n.target = p.target AND f.at > p.at AND b.target = p.target AND b.seq > p.seq
                    AND b.kind = 'steward-action' AND b.judged = 1
                    AND (b.disposition = 'live' OR b.disposition = 'shadow' AND b.closed = 'mode')
                    AND (b.class = 'state_change' OR EXISTS (SELECT 1 FROM action_evidence asked
                        JOIN action_evidence cited ON cited.ref = asked.ref
                        WHERE asked.action = p.path AND cited.action = b.path))
                    AND NOT EXISTS (SELECT 1 FROM action_evidence own WHERE own.ref = n.path AND own.action = p.path))
        AND NOT ", $crate::index::read::questions::was_edited_since!(), "
        AND (EXISTS (SELECT 1 FROM tasks t WHERE t.path = p.target AND t.state = 'open')
            OR EXISTS (SELECT 1 FROM matters m WHERE m.path = p.target AND m.state = 'open'))")
    };
}
pub(crate) use is_open_question;

/// The open questions that nobody has put off, newest first; at most one for each record.
pub(crate) fn asking_sql(now: DateTime<Utc>) -> String {
    format!(
        concat!(
            "SELECT p.path FROM actions p INDEXED BY actions_that_ask WHERE p.asks = 1 AND ",
            is_open_question!(),
            " AND NOT {} ORDER BY p.seq DESC LIMIT ?1"
        ),
        is_snoozed("p.target", now)
    )
}

const ASKING_ABOUT: SqlText = concat!(
    "SELECT p.path FROM actions p INDEXED BY actions_that_ask_by_target WHERE p.target = ?1 AND p.asks = 1 AND ",
    is_open_question!(),
    " LIMIT 1"
);

/// Notes the new content of a record with a question. `CONTENTS` stores the content of every task and matter
/// afterwards.
pub(crate) const EDITS: SqlText = "INSERT INTO edits (path, content, before, after_seq)
    SELECT c.path, j.value->>'content', c.content, COALESCE((SELECT MAX(seq) FROM actions), 0)
    FROM json_each(?1) j CROSS JOIN contents c ON c.path = j.value->>'path'
    WHERE c.content <> j.value->>'content' AND EXISTS (
        SELECT 1 FROM actions p INDEXED BY actions_that_ask_by_target WHERE p.target = c.path AND p.asks = 1)
    ON CONFLICT (path, content) DO UPDATE SET before = excluded.before, after_seq = excluded.after_seq";
pub(crate) const CONTENTS: SqlText = "INSERT OR REPLACE INTO contents (path, content)
    SELECT value->>'path', value->>'content' FROM json_each(?1)";

/// The signals that a question withholds, by the router's state or by the reason that it wrote into the signal. A
/// question also takes over the signals of older questions that it replaced and that nobody resolved.
pub(crate) const WITHHELD: SqlText = concat!(
    "WITH questions AS MATERIALIZED (SELECT q.id FROM actions p CROSS JOIN actions q INDEXED BY questions_by_target
        ON q.target = p.target AND q.seq <= p.seq AND q.decision = 'needs_input' AND q.kind = 'steward-action'
            AND q.disposition = 'recorded'
        WHERE p.id = ?1 AND (q.id = p.id OR NOT EXISTS (SELECT 1 FROM actions b WHERE b.resolves = q.id)))
    SELECT ",
    weighed_signal_columns!(),
    " FROM signals o WHERE o.path IN (SELECT r.signal FROM questions CROSS JOIN routes r ON r.question = questions.id
        UNION SELECT s.path FROM questions CROSS JOIN signals s INDEXED BY signals_skipped
            ON s.status = 'skipped' AND s.reason = 'withheld: ' || questions.id)
    ORDER BY o.created DESC, o.path LIMIT ?2"
);

impl ReadView<'_> {
    /// Lists the open questions that nobody has put off, newest first. `limit` is 1 to 100.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_open_questions(self, limit: u32, now: DateTime<Utc>) -> Result<Vec<ActionRow>, IndexError> {
        let paths: Vec<String> = sqlx::query_scalar(AssertSqlSafe(asking_sql(now)))
            .bind(limit.clamp(1, 100))
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let mut rows = Vec::with_capacity(paths.len());
        for path in paths {
            let path: RecordPath = self.index.parse_path(&path)?;
            rows.extend(self.index.actions().action_by_path(&path).await?);
        }
        Ok(rows)
    }

    /// Finds the open question about a task or matter; `None` if there is none.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn find_open_question(self, target: &RecordPath) -> Result<Option<ActionRow>, IndexError> {
        let path: Option<String> = sqlx::query_scalar(ASKING_ABOUT)
            .bind(target.as_str())
            .fetch_optional(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        match path {
            Some(path) => self.index.actions().action_by_path(&self.index.parse_path(&path)?).await,
            None => Ok(None),
        }
    }

    /// Lists the signals that this question withholds, newest first, at most `limit`.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_signals_withheld_by(
        self,
        question: &ActionId,
        limit: u32,
    ) -> Result<Vec<WeighedSignal>, IndexError> {
        let rows: Vec<WeighedSignalColumns> = sqlx::query_as(WITHHELD)
            .bind(question.as_str())
            .bind(limit)
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        rows.into_iter().map(|row| self.decode_weighed_signal(row)).collect()
    }
}

//! A cache of clerks' answers, so that the same question is paid for once.
//!
//! An answer is text under the hash of its exact question, which is about an event or a task. The caller must
//! validate the answer against the question again. Age and number bound the table. Losing it costs calls and nothing
//! else.

use crate::index::CursorsView;
use crate::index::IndexError;
use crate::index::store::codec::to_micros;
use chrono::{DateTime, TimeDelta, Utc};

/// How long an answer is kept: 30 days.
const MAX_AGE: TimeDelta = TimeDelta::days(30);
/// The most answers that are kept, newest first: about 1 KB each.
pub(crate) const MAX_ANSWERS: i64 = 10_000;

/// One write in 64 also removes old answers, because counting the rows takes longer than writing one. The write's
/// microsecond decides.
const WRITES_PER_SWEEP: u32 = 64;

impl CursorsView<'_> {
    /// Finds the answer to a question that was given later than a moment.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn find_cached_answer(self, key: &str, later_than: DateTime<Utc>) -> Result<Option<String>, IndexError> {
        sqlx::query_scalar("SELECT answer FROM answers WHERE key = ?1 AND at > ?2")
            .bind(key)
            .bind(to_micros(later_than))
            .fetch_optional(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))
    }

    /// Removes the answer to a question.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn forget_answer(self, key: &str) -> Result<(), IndexError> {
        let deleted =
            sqlx::query("DELETE FROM answers WHERE key = ?1").bind(key).execute(&self.index.store.writer).await;
        deleted.map(drop).map_err(|e| self.index.sql_error(e))
    }

    /// Stores an answer. One call in 64 also removes answers that are older than 30 days or beyond the newest 10,000.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn cache_answer(self, key: &str, answer: &str, now: DateTime<Utc>) -> Result<(), IndexError> {
        let mut tx = self.index.begin_write().await?;
        let work = async {
            sqlx::query("INSERT OR REPLACE INTO answers (key, answer, at) VALUES (?1, ?2, ?3)")
                .bind(key)
                .bind(answer)
                .bind(to_micros(now))
                .execute(&mut *tx)
                .await?;
            if now.timestamp_subsec_micros().is_multiple_of(WRITES_PER_SWEEP) {
                sqlx::query(
                    "DELETE FROM answers WHERE at <= ?1
                        OR at <= (SELECT at FROM answers ORDER BY at DESC LIMIT 1 OFFSET ?2)",
                )
                .bind(to_micros(now - MAX_AGE))
                .bind(MAX_ANSWERS)
                .execute(&mut *tx)
                .await?;
            }
            tx.commit().await
        };
        work.await.map_err(|e| self.index.sql_error(e))
    }
}

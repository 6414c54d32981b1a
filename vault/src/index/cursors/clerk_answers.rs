//! What clerks answered, so that the same question is paid for once.
//!
//! An answer is kept as text under the hash of its exact question, about events as about tasks; whoever takes
//! it from here holds it against the question again. Time and number bound the table, and losing it costs
//! calls and nothing else.

use crate::index::Index;
use crate::index::IndexError;
use crate::index::store::codec::to_micros;
use chrono::{DateTime, TimeDelta, Utc};

/// How long an answer is kept.
const KEPT: TimeDelta = TimeDelta::days(30);
/// Most answers that are kept, the newest: about 1 KB each.
pub(crate) const MAX_ANSWERS: i64 = 10_000;

/// One writing in so many sweeps, told by its moment: counting the rows takes longer than writing one.
const SWEPT_ONE_IN: u32 = 64;

impl Index {
    /// What was answered to a question later than that.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn find_cached_answer(&self, key: &str, later_than: DateTime<Utc>) -> Result<Option<String>, IndexError> {
        sqlx::query_scalar("SELECT answer FROM answers WHERE key = ?1 AND at > ?2")
            .bind(key)
            .bind(to_micros(later_than))
            .fetch_optional(&self.store.writer)
            .await
            .map_err(|e| self.sql_error(e))
    }

    /// Forgets what was answered to a question.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn forget_answer(&self, key: &str) -> Result<(), IndexError> {
        let forgotten = sqlx::query("DELETE FROM answers WHERE key = ?1").bind(key).execute(&self.store.writer).await;
        forgotten.map(drop).map_err(|e| self.sql_error(e))
    }

    /// Keeps what was answered, and now and then forgets what is older than 30 days or beyond the newest 10,000.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn cache_answer(&self, key: &str, answer: &str, now: DateTime<Utc>) -> Result<(), IndexError> {
        let mut tx = self.begin_write().await?;
        let work = async {
            sqlx::query("INSERT OR REPLACE INTO answers (key, answer, at) VALUES (?1, ?2, ?3)")
                .bind(key)
                .bind(answer)
                .bind(to_micros(now))
                .execute(&mut *tx)
                .await?;
            if now.timestamp_subsec_micros().is_multiple_of(SWEPT_ONE_IN) {
                sqlx::query(
                    "DELETE FROM answers WHERE at <= ?1
                        OR at <= (SELECT at FROM answers ORDER BY at DESC LIMIT 1 OFFSET ?2)",
                )
                .bind(to_micros(now - KEPT))
                .bind(MAX_ANSWERS)
                .execute(&mut *tx)
                .await?;
            }
            tx.commit().await
        };
        work.await.map_err(|e| self.sql_error(e))
    }
}

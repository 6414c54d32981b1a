//! What the extraction of raw events asks the index: which records there are, and what was answered.
//!
//! An answer is kept as the clerk's words under the hash of its exact question; whoever takes it from
//! here holds it against the question again. Losing the table costs calls and nothing else.

use super::codec::micros;
use super::{Index, IndexError};
use chrono::{DateTime, TimeDelta, Utc};
use steward_domain::extract::candidates::Known;

/// How long an answer is kept: 30 days, far longer than an event waits.
const KEPT_DAYS: i64 = 30;

impl Index {
    /// Every open task and matter with its name, in the order of paths.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn open_records(&self) -> Result<Vec<Known>, IndexError> {
        let rows: Vec<(String, String, Option<String>)> = sqlx::query_as(
            "SELECT path, name, NULL FROM matters WHERE state = 'open' UNION ALL
             SELECT t.path, t.name, m.name FROM tasks t LEFT JOIN matters m ON m.path = t.parent
             WHERE t.state = 'open' ORDER BY 1",
        )
        .fetch_all(&self.store.reader)
        .await
        .map_err(|e| self.sql(e))?;
        let known = |(path, name, matter_name): (String, String, Option<String>)| {
            Ok(Known { path: self.path(&path)?, name, matter_name })
        };
        rows.into_iter().map(known).collect()
    }

    /// What was answered to a question within the last 30 days.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn answer(&self, key: &str, now: DateTime<Utc>) -> Result<Option<String>, IndexError> {
        sqlx::query_scalar("SELECT answer FROM answers WHERE key = ?1 AND at > ?2")
            .bind(key)
            .bind(micros(now - TimeDelta::days(KEPT_DAYS)))
            .fetch_optional(&self.store.writer)
            .await
            .map_err(|e| self.sql(e))
    }

    /// Keeps what was answered, and forgets what is older than 30 days.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn keep_answer(&self, key: &str, answer: &str, now: DateTime<Utc>) -> Result<(), IndexError> {
        let mut tx = self.begin().await?;
        let work = async {
            sqlx::query("INSERT OR REPLACE INTO answers (key, answer, at) VALUES (?1, ?2, ?3)")
                .bind(key)
                .bind(answer)
                .bind(micros(now))
                .execute(&mut *tx)
                .await?;
            let oldest = micros(now - TimeDelta::days(KEPT_DAYS));
            sqlx::query("DELETE FROM answers WHERE at <= ?1").bind(oldest).execute(&mut *tx).await?;
            tx.commit().await
        };
        work.await.map_err(|e| self.sql(e))
    }
}

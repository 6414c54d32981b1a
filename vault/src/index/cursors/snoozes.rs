//! Notes whose proposals and questions a person has put off for a while.
//!
//! A snooze hides; it answers nothing and no gate knows of it. It is state of the index and writes no file. A signal
//! about the note that is first seen later ends it.

use crate::index::actions::waiting::is_snoozed;
use crate::index::store::codec::{from_micros, to_micros};
use crate::index::{CursorsView, IndexError};
use chrono::{DateTime, Utc};
use sqlx::AssertSqlSafe;
use steward_domain::record::path::RecordPath;

impl CursorsView<'_> {
    /// Puts off what waits for a person about a note.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn snooze_note(
        self,
        note: &RecordPath,
        until: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<(), IndexError> {
        sqlx::query("INSERT OR REPLACE INTO snoozes (target, at, until) VALUES (?1, ?2, ?3)")
            .bind(note.as_str())
            .bind(to_micros(now))
            .bind(to_micros(until))
            .execute(&self.index.store.writer)
            .await
            .map(drop)
            .map_err(|e| self.index.sql_error(e))
    }

    /// Ends the snooze of a note, if there is one.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn end_snooze(self, note: &RecordPath) -> Result<(), IndexError> {
        sqlx::query("DELETE FROM snoozes WHERE target = ?1")
            .bind(note.as_str())
            .execute(&self.index.store.writer)
            .await
            .map(drop)
            .map_err(|e| self.index.sql_error(e))
    }

    /// Lists the notes that are put off at this moment, each with the end of its snooze, the earliest end first. At most
    /// 100.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_snoozes(self, now: DateTime<Utc>) -> Result<Vec<SnoozedNote>, IndexError> {
        let sql = format!(
            "SELECT s.target, s.until FROM snoozes s WHERE {} ORDER BY s.until, s.target LIMIT 100",
            is_snoozed("s.target", now)
        );
        let rows: Vec<(String, i64)> = sqlx::query_as(AssertSqlSafe(sql))
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let decode = |(note, until): (String, i64)| {
            Ok(SnoozedNote { note: self.index.parse_path(&note)?, until: from_micros(until).unwrap_or(now) })
        };
        rows.into_iter().map(decode).collect()
    }
}

/// A note that is put off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnoozedNote {
    pub note: RecordPath,
    pub until: DateTime<Utc>,
}

//! The numbers of instincts: which of them a person wrote, and which of those calibration changed.
//!
//! What calibration writes is noted before it is written. So a number that the file holds and that was not noted is a
//! person's. The notes are state of the index. Without them the numbers of a calibrated instinct count as Steward's.

use crate::index::store::codec::{from_micros, to_micros};
use crate::index::store::rows::to_json;
use crate::index::{IndexError, TrustView};
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde_json::Value;
use steward_domain::record::path::RecordPath;

/// How long a changed number is reported: 14 days.
const REPORTED_FOR: TimeDelta = TimeDelta::days(14);

/// A number that calibration is about to write into an instinct, or finds there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstinctNumber {
    pub path: RecordPath,
    /// `observations`, `confidence` or `status`.
    pub field: &'static str,
    /// What the file holds now, as JSON.
    pub found: Option<String>,
    /// What it is to hold, as JSON.
    pub wanted: String,
    /// Whether calibration has written the instinct before.
    pub is_counted: bool,
}

/// A number of a person that calibration changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangedNumber {
    pub path: RecordPath,
    pub field: String,
    /// What the person wrote.
    pub given: Value,
    /// What it is now.
    pub value: Value,
    pub at: DateTime<Utc>,
}

const NOTE: &str = "INSERT INTO instinct_numbers (path, field, value, before, given, changed_at)
    SELECT n.path, n.field, n.wanted, n.found, n.given, CASE WHEN n.given IS NOT NULL THEN ?2 END FROM (
        SELECT value->>'path' AS path, value->>'field' AS field, value->>'wanted' AS wanted, value->>'found' AS found,
            CASE WHEN value->>'found' <> value->>'wanted' AND NOT value->>'is_counted' THEN value->>'found' END AS given
        FROM json_each(?1)) n WHERE true
    ON CONFLICT (path, field) DO UPDATE SET
        given = CASE WHEN excluded.before NOT IN (value, COALESCE(before, value), excluded.value)
            THEN excluded.before ELSE given END,
        changed_at = CASE WHEN excluded.before NOT IN (value, COALESCE(before, value), excluded.value)
            THEN ?2 ELSE changed_at END,
        before = excluded.before, value = excluded.value
    WHERE value <> excluded.value OR before IS NOT excluded.before";

const CHANGED: &str = "SELECT n.path, n.field, n.given, n.value, n.changed_at
    FROM instinct_numbers n JOIN instincts i ON i.path = n.path
    WHERE n.given IS NOT NULL AND n.changed_at > ?1 ORDER BY n.changed_at DESC, n.path, n.field LIMIT 200";

impl TrustView<'_> {
    /// Notes what calibration is about to write. Call it before the files are written.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn note_instinct_numbers(self, numbers: &[InstinctNumber], now: DateTime<Utc>) -> Result<(), IndexError> {
        sqlx::query(NOTE)
            .bind(to_json(&numbers))
            .bind(to_micros(now))
            .execute(&self.index.store.writer)
            .await
            .map(drop)
            .map_err(|e| self.index.sql_error(e))
    }

    /// Lists the numbers of people that calibration changed in the last 14 days, the newest first, at most 200.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_changed_numbers(self, now: DateTime<Utc>) -> Result<Vec<ChangedNumber>, IndexError> {
        let rows: Vec<(String, String, String, String, i64)> = sqlx::query_as(CHANGED)
            .bind(to_micros(now - REPORTED_FOR))
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let decode = |(path, field, given, value, at): (String, String, String, String, i64)| {
            let read = |text: String| serde_json::from_str(&text).unwrap_or(Value::String(text));
            Ok(ChangedNumber {
                path: self.index.parse_path(&path)?,
                field,
                given: read(given),
                value: read(value),
                at: from_micros(at).unwrap_or(now),
            })
        };
        rows.into_iter().map(decode).collect()
    }
}

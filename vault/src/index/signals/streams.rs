//! Waiting stream events, and the progress and status of each stream.
//!
//! Events are derived from their files. The progress of the adapters, the keys of ingested events and the errors
//! exist only here. An adapter's progress is written after its events are on disk, in one transaction with their
//! keys. After a crash in between, the events are fetched again, and their file names show that they exist.
//! Extraction and purging happen elsewhere.

use crate::index::IndexError;
use crate::index::SignalsView;
use crate::index::store::codec::{from_micros, to_micros};
use crate::index::store::rows::to_json;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use sqlx::FromRow;
use std::collections::BTreeSet;
use steward_domain::record::path::RecordPath;
use steward_domain::signals::signal::source_key;
use steward_domain::signals::stream::MAX_TRIES;
use steward_domain::steward::guard::ExhaustedShares;

/// How long the key of an ingested event is kept after it was last seen: 32 days. 30 are far longer than an event
/// lives, one is for [`REFRESH_DAYS`], and one for servers that have dates without a time.
const SEEN_DAYS: i64 = 32;
/// The moment of a key that is seen again is updated after 1 day. So a calendar that returns the same entries every few
/// minutes causes few writes.
const REFRESH_DAYS: i64 = 1;

/// The events that an adapter has ingested since the last call, all of them on disk.
#[derive(Clone, Debug)]
pub struct StreamIngestion<'a> {
    pub stream: &'a str,
    /// The keys by which the events are recognised later.
    pub keys: &'a [String],
    /// The adapter's new cursor in its own format; `None` keeps the stored one.
    pub cursor: Option<&'a str>,
    /// The number of refused events.
    pub refused: u64,
    pub now: DateTime<Utc>,
}

/// One stream in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamCount {
    pub source: String,
    pub new: u64,
    pub extracted: u64,
    pub parked: u64,
    /// When its newest event was ingested.
    pub newest_at: Option<DateTime<Utc>>,
    /// When the oldest event that still waits was received.
    pub waits_since: Option<DateTime<Utc>>,
    pub paused: bool,
    /// When its last run ended.
    pub ran_at: Option<DateTime<Utc>>,
    /// Why its last run failed; `None` if it succeeded.
    pub last_error: Option<String>,
    /// Runs in a row that failed.
    pub failures: u64,
    /// The number of refused events, ever.
    pub refused: u64,
}

#[derive(FromRow)]
struct StreamCountColumns {
    name: String,
    new: i64,
    extracted: i64,
    parked: i64,
    newest: Option<i64>,
    waits: Option<i64>,
    paused: Option<bool>,
    ran_at: Option<i64>,
    error: Option<String>,
    failures: Option<i64>,
    refused: Option<i64>,
}

/// Round-robin over the streams, and within a stream over its senders, known ones first. So a flood from one delays
/// no other.
const TO_EXTRACT: &str = "
    SELECT path FROM (
        SELECT path, received_at, ROW_NUMBER() OVER (PARTITION BY source ORDER BY turn, strange, received_at, path)
            AS turn
        FROM (SELECT e.path, e.source, e.received_at, w.value ->> 'strange' AS strange,
                  ROW_NUMBER() OVER (PARTITION BY e.source, e.pattern ORDER BY e.received_at, e.path) AS turn
              FROM json_each(?1) w CROSS JOIN stream_events e
              ON e.source = w.value ->> 'stream' AND e.pattern = w.value ->> 'pattern'
              WHERE e.status = 'new' AND e.tries < ?2))
    ORDER BY turn, received_at, path LIMIT ?3";

/// A sender with events that wait.
#[derive(Serialize)]
struct WaitingSender {
    stream: String,
    pattern: String,
    /// Whether the sender was never right before.
    strange: bool,
}

const COUNTS: &str = "
    SELECT n.name, COUNT(CASE e.status WHEN 'new' THEN 1 END) AS new,
        COUNT(CASE e.status WHEN 'extracted' THEN 1 END) AS extracted,
        COUNT(CASE e.status WHEN 'parked' THEN 1 END) AS parked,
        MAX(e.received_at) AS newest, MIN(CASE e.status WHEN 'new' THEN e.received_at END) AS waits,
        c.paused, c.ran_at, c.error, c.failures, c.refused
    FROM (SELECT source AS name FROM stream_events UNION SELECT stream FROM stream_cursors) n
    LEFT JOIN stream_events e ON e.source = n.name LEFT JOIN stream_cursors c ON c.stream = n.name
    GROUP BY n.name ORDER BY n.name";

impl SignalsView<'_> {
    /// Lists events that the extraction has not read yet, oldest first, at most `limit`.
    ///
    /// Streams and the senders of a stream take turns. Events that were tried too often are left out, and so are
    /// senders whose share is exhausted.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_events_to_extract(
        self,
        limit: usize,
        exhausted: &ExhaustedShares,
    ) -> Result<Vec<RecordPath>, IndexError> {
        const WAITING: &str =
            "SELECT DISTINCT source, pattern FROM stream_events WHERE status = 'new' ORDER BY source, pattern";
        let mut db = self.index.store.reader.acquire().await.map_err(|e| self.index.sql_error(e))?;
        let known = self.index.cursors().known_sources(&mut db).await?;
        let waiting: Vec<(String, String)> =
            sqlx::query_as(WAITING).fetch_all(&mut *db).await.map_err(|e| self.index.sql_error(e))?;
        let sender = |(stream, pattern): (String, String)| {
            let slug = source_key(&pattern);
            let strange = !known.contains(&slug);
            let is_exhausted = exhausted.streams.contains(&stream)
                || (strange && (exhausted.all_unknown_senders || exhausted.unknown_senders_of.contains(&stream)))
                || exhausted.senders.contains(&slug);
            (!is_exhausted).then_some(WaitingSender { stream, pattern, strange })
        };
        let senders: Vec<WaitingSender> = waiting.into_iter().filter_map(sender).collect();
        let paths: Vec<String> = sqlx::query_scalar(TO_EXTRACT)
            .bind(to_json(&senders))
            .bind(MAX_TRIES)
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_all(&mut *db)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        paths.iter().map(|p| self.index.parse_path(p)).collect()
    }

    /// Lists extracted events that were received before a moment, oldest first, at most `limit`.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_events_to_purge(
        self,
        before: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<RecordPath>, IndexError> {
        let paths: Vec<String> = sqlx::query_scalar(
            "SELECT path FROM stream_events WHERE status = 'extracted' AND received_at < ?1
             ORDER BY received_at, path LIMIT ?2",
        )
        .bind(to_micros(before))
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(&self.index.store.reader)
        .await
        .map_err(|e| self.index.sql_error(e))?;
        paths.iter().map(|p| self.index.parse_path(p)).collect()
    }

    /// Counts the events of every stream that has events or has run, in the order of names.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_stream_counts(self) -> Result<Vec<StreamCount>, IndexError> {
        let rows: Vec<StreamCountColumns> =
            sqlx::query_as(COUNTS).fetch_all(&self.index.store.reader).await.map_err(|e| self.index.sql_error(e))?;
        let count = |row: StreamCountColumns| StreamCount {
            source: row.name,
            new: row.new.cast_unsigned(),
            extracted: row.extracted.cast_unsigned(),
            parked: row.parked.cast_unsigned(),
            newest_at: row.newest.and_then(from_micros),
            waits_since: row.waits.and_then(from_micros),
            paused: row.paused.unwrap_or(false),
            ran_at: row.ran_at.and_then(from_micros),
            last_error: row.error,
            failures: row.failures.unwrap_or(0).cast_unsigned(),
            refused: row.refused.unwrap_or(0).cast_unsigned(),
        };
        Ok(rows.into_iter().map(count).collect())
    }

    /// Reads the cursor of a stream's adapter, in its own format; `None` before the first run.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn read_stream_cursor(self, stream: &str) -> Result<Option<String>, IndexError> {
        let cursor: Option<Option<String>> = sqlx::query_scalar("SELECT cursor FROM stream_cursors WHERE stream = ?1")
            .bind(stream)
            .fetch_optional(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        Ok(cursor.flatten())
    }

    /// Lists which of these keys were ingested before, and keeps those for another 30 days.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_seen_stream_keys(
        self,
        stream: &str,
        keys: &[String],
        now: DateTime<Utc>,
    ) -> Result<BTreeSet<String>, IndexError> {
        const SEEN: &str =
            "SELECT key, at FROM stream_seen WHERE stream = ?1 AND key IN (SELECT value FROM json_each(?2))";
        const REFRESH: &str =
            "UPDATE stream_seen SET at = ?3 WHERE stream = ?1 AND key IN (SELECT value FROM json_each(?2))";
        let seen: Vec<(String, i64)> = sqlx::query_as(SEEN)
            .bind(stream)
            .bind(to_json(&keys))
            .fetch_all(&self.index.store.writer)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let refresh_before = to_micros(now - TimeDelta::days(REFRESH_DAYS));
        if seen.iter().any(|(_, at)| *at < refresh_before) {
            let keys: Vec<&str> = seen.iter().map(|(key, _)| key.as_str()).collect();
            let refresh = sqlx::query(REFRESH).bind(stream).bind(to_json(&keys)).bind(to_micros(now));
            refresh.execute(&self.index.store.writer).await.map_err(|e| self.index.sql_error(e))?;
        }
        Ok(seen.into_iter().map(|(key, _)| key).collect())
    }

    /// Stores the keys of ingested events and the adapter's cursor.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn record_ingestion(self, ingestion: &StreamIngestion<'_>) -> Result<(), IndexError> {
        const SEEN: &str =
            "INSERT INTO stream_seen (stream, key, at) SELECT ?1, value, ?3 FROM json_each(?2) WHERE true
            ON CONFLICT (stream, key) DO UPDATE SET at = excluded.at";
        const CURSOR: &str = "INSERT INTO stream_cursors (stream, cursor, refused) VALUES (?1, ?2, ?3)
            ON CONFLICT (stream) DO UPDATE SET cursor = COALESCE(excluded.cursor, cursor),
                refused = refused + excluded.refused";
        let mut tx = self.index.begin_write().await?;
        let work = async {
            let keys = sqlx::query(SEEN).bind(ingestion.stream).bind(to_json(&ingestion.keys));
            keys.bind(to_micros(ingestion.now)).execute(&mut *tx).await?;
            let refused = i64::try_from(ingestion.refused).unwrap_or(i64::MAX);
            sqlx::query(CURSOR).bind(ingestion.stream).bind(ingestion.cursor).bind(refused).execute(&mut *tx).await?;
            tx.commit().await
        };
        work.await.map_err(|e| self.index.sql_error(e))
    }

    /// Records the end of a stream's run, with its error if it failed.
    ///
    /// A successful run removes the keys that its own stream has not seen for 32 days.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn record_stream_run(
        self,
        stream: &str,
        now: DateTime<Utc>,
        error: Option<&str>,
    ) -> Result<(), IndexError> {
        const RAN: &str =
            "INSERT INTO stream_cursors (stream, ran_at, error, failures) VALUES (?1, ?2, ?3, ?3 IS NOT NULL)
             ON CONFLICT (stream) DO UPDATE SET ran_at = excluded.ran_at, error = excluded.error,
                 failures = CASE WHEN excluded.error IS NULL THEN 0 ELSE failures + 1 END";
        const FORGET: &str = "DELETE FROM stream_seen WHERE stream = ?1 AND at < ?2";
        let mut tx = self.index.begin_write().await?;
        let work = async {
            sqlx::query(RAN).bind(stream).bind(to_micros(now)).bind(error).execute(&mut *tx).await?;
            if error.is_none() {
                let before = to_micros(now - TimeDelta::days(SEEN_DAYS));
                sqlx::query(FORGET).bind(stream).bind(before).execute(&mut *tx).await?;
            }
            tx.commit().await
        };
        work.await.map_err(|e| self.index.sql_error(e))
    }

    /// Pauses or resumes a stream.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn update_stream_pause(self, stream: &str, paused: bool) -> Result<(), IndexError> {
        sqlx::query(
            "INSERT INTO stream_cursors (stream, paused) VALUES (?1, ?2)
             ON CONFLICT (stream) DO UPDATE SET paused = excluded.paused",
        )
        .bind(stream)
        .bind(paused)
        .execute(&self.index.store.writer)
        .await
        .map_err(|e| self.index.sql_error(e))?;
        Ok(())
    }

    /// Whether a person paused a stream.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn is_stream_paused(self, stream: &str) -> Result<bool, IndexError> {
        let paused: Option<bool> = sqlx::query_scalar("SELECT paused FROM stream_cursors WHERE stream = ?1")
            .bind(stream)
            .fetch_optional(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        Ok(paused.unwrap_or(false))
    }
}

//! The last complete reversibility drill, and since when the vault has been served.
//!
//! Both moments exist only in `meta`, and a rebuild keeps them. A drill that cannot run records nothing. So its absence
//! is judged here, and `steward status` and `steward doctor` report it.

use crate::index::IndexError;
use crate::index::TrustView;
use crate::index::store::codec::{from_micros, to_micros};
use chrono::{DateTime, TimeDelta, Utc};

/// A drill is late after 48 h: it is due each night, and one night may be missed.
const LATE: TimeDelta = TimeDelta::hours(48);
/// A vault without a scan for 24 h was not served. A missed drill is made up within the same time.
const PAUSE: TimeDelta = TimeDelta::hours(24);

const RECORD_DRILL: &str = "
    INSERT INTO meta (key, value) VALUES ('drilled_at', ?1)
    ON CONFLICT (key) DO UPDATE SET value = MAX(value, excluded.value)";

const RECORD_SERVICE_START: &str = "
    INSERT INTO meta (key, value) VALUES ('served_from', ?1)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value
    WHERE COALESCE((SELECT value FROM meta WHERE key = 'synced_at'), 0) < ?2";

/// The history of a vault's drills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrillHistory {
    /// The last drill that tried every class, with any result.
    pub last: Option<DateTime<Utc>>,
    /// Since when the vault has been served without a pause of a day; `None` before the first start.
    pub served_from: Option<DateTime<Utc>>,
}

impl DrillHistory {
    /// Whether no drill ran for 48 h although the vault was served for as long. Only valid while the vault is served.
    #[must_use]
    pub fn is_late(&self, now: DateTime<Utc>) -> bool {
        self.served_from.is_some_and(|from| now - self.last.map_or(from, |last| last.max(from)) > LATE)
    }
}

impl TrustView<'_> {
    /// Records that a drill has tried every class.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn record_drill(self, now: DateTime<Utc>) -> Result<(), IndexError> {
        let written = sqlx::query(RECORD_DRILL).bind(to_micros(now)).execute(&self.index.store.writer).await;
        written.map(drop).map_err(|e| self.index.sql_error(e))
    }

    /// Records that a process begins to serve the vault. Must be called before its first scan, which ends a pause.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn record_service_start(self, now: DateTime<Utc>) -> Result<(), IndexError> {
        let written = sqlx::query(RECORD_SERVICE_START)
            .bind(to_micros(now))
            .bind(to_micros(now - PAUSE))
            .execute(&self.index.store.writer)
            .await;
        written.map(drop).map_err(|e| self.index.sql_error(e))
    }

    /// Reads the history of the drills. A `state.db` that was recreated under a running process counts from its first
    /// scan.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn read_drill_history(self) -> Result<DrillHistory, IndexError> {
        let served_from = match self.index.read_meta("served_from").await? {
            Some(from) => Some(from),
            None => self.index.read_meta("filled_at").await?,
        };
        let last = self.index.read_meta("drilled_at").await?;
        Ok(DrillHistory { last: last.and_then(from_micros), served_from: served_from.and_then(from_micros) })
    }
}

//! When the reversibility drill last ran to its end, and since when it could have.
//!
//! Both moments are ours alone, in `meta`, and a rebuild keeps them. A drill that cannot run leaves no word of its
//! own, so it is the absence of one that is judged here; `steward status` and `steward doctor` tell it.

use crate::index::Index;
use crate::index::IndexError;
use crate::index::store::codec::{from_micros, to_micros};
use chrono::{DateTime, TimeDelta, Utc};

/// A drill is late after this, 48 h: it is due each night, and one night may be missed.
const LATE: TimeDelta = TimeDelta::hours(48);
/// A vault that no scan has looked at for this long was not served, 24 h: as long as a missed drill is caught up with.
const PAUSE: TimeDelta = TimeDelta::hours(24);

const DRILLED: &str = "
    INSERT INTO meta (key, value) VALUES ('drilled_at', ?1)
    ON CONFLICT (key) DO UPDATE SET value = MAX(value, excluded.value)";

const SERVED: &str = "
    INSERT INTO meta (key, value) VALUES ('served_from', ?1)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value
    WHERE COALESCE((SELECT value FROM meta WHERE key = 'synced_at'), 0) < ?2";

/// What is known of the drills of a vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrillHistory {
    /// The last one that tried every class, whatever it found.
    pub last: Option<DateTime<Utc>>,
    /// Since when the vault is served without a pause of a day; `None` before the first start.
    pub served_from: Option<DateTime<Utc>>,
}

impl DrillHistory {
    /// Whether there was none for 48 h although the vault was served for as long; to be asked while it is served.
    #[must_use]
    pub fn is_late(&self, now: DateTime<Utc>) -> bool {
        self.served_from.is_some_and(|from| now - self.last.map_or(from, |last| last.max(from)) > LATE)
    }
}

impl Index {
    /// Notes that a drill has tried every class.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn record_drill(&self, now: DateTime<Utc>) -> Result<(), IndexError> {
        let noted = sqlx::query(DRILLED).bind(to_micros(now)).execute(&self.store.writer).await;
        noted.map(drop).map_err(|e| self.sql_error(e))
    }

    /// Notes that a process begins to serve the vault; to be said before its first scan, which ends a pause.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn record_service_start(&self, now: DateTime<Utc>) -> Result<(), IndexError> {
        let noted =
            sqlx::query(SERVED).bind(to_micros(now)).bind(to_micros(now - PAUSE)).execute(&self.store.writer).await;
        noted.map(drop).map_err(|e| self.sql_error(e))
    }

    /// What is known of the drills. A file that was made anew under a running process counts from its first scan.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn read_drill_history(&self) -> Result<DrillHistory, IndexError> {
        let served_from = match self.read_meta("served_from").await? {
            Some(from) => Some(from),
            None => self.read_meta("filled_at").await?,
        };
        let last = self.read_meta("drilled_at").await?;
        Ok(DrillHistory { last: last.and_then(from_micros), served_from: served_from.and_then(from_micros) })
    }
}

//! Lists the events of some streams, and the signals that were read from events.
//!
//! An event here is what its file says without its words. The files hold the words; a file may be gone since it was indexed.

use crate::index::IndexError;
use crate::index::SignalsView;
use crate::index::store::codec::{from_micros, to_micros};
use crate::index::store::rows::to_json;
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;
use steward_domain::record::path::RecordPath;

/// An event of a stream, without its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEventRow {
    pub path: RecordPath,
    /// The name of the folder.
    pub stream: String,
    /// `<kind>:<author>`, as in `mail:billing@vendor.example`. Untrusted.
    pub pattern: String,
    pub received_at: DateTime<Utc>,
}

/// A signal that was read from an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSignal {
    /// The path of its file. Untrusted.
    pub signal: String,
    /// The path of the matter that it, or its task, belongs to; `None` if there is none. Untrusted.
    pub matter: Option<String>,
}

const EVENTS: &str = "SELECT path, source, pattern, received_at FROM stream_events
    WHERE source IN (SELECT value FROM json_each(?1)) AND received_at >= ?2";

const SIGNALS: &str = "SELECT s.source_event, s.path, COALESCE(t.parent, m.path)
    FROM signals s LEFT JOIN tasks t ON t.path = s.target LEFT JOIN matters m ON m.path = s.target
    WHERE s.source_event IN (SELECT value FROM json_each(?1)) ORDER BY s.path";

impl SignalsView<'_> {
    /// Lists the events of these streams that were received from a moment on, in no order.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_stream_events(
        self,
        streams: &[&str],
        since: DateTime<Utc>,
    ) -> Result<Vec<StreamEventRow>, IndexError> {
        let rows: Vec<(String, String, String, i64)> = sqlx::query_as(EVENTS)
            .bind(to_json(&streams))
            .bind(to_micros(since))
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let decode = |(path, stream, pattern, at): (String, String, String, i64)| {
            let received_at = from_micros(at).unwrap_or(DateTime::UNIX_EPOCH);
            Ok(StreamEventRow { path: self.index.parse_path(&path)?, stream, pattern, received_at })
        };
        rows.into_iter().map(decode).collect()
    }

    /// Lists the signals that were read from these events, by the paths of the events.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_event_signals(
        self,
        events: &[&RecordPath],
    ) -> Result<BTreeMap<String, Vec<EventSignal>>, IndexError> {
        let rows: Vec<(String, String, Option<String>)> = sqlx::query_as(SIGNALS)
            .bind(to_json(&events))
            .fetch_all(&self.index.store.reader)
            .await
            .map_err(|e| self.index.sql_error(e))?;
        let mut found: BTreeMap<String, Vec<EventSignal>> = BTreeMap::new();
        for (event, signal, matter) in rows {
            found.entry(event).or_default().push(EventSignal { signal, matter });
        }
        Ok(found)
    }
}

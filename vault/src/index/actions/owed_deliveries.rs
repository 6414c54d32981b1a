//! Deliveries that are owed to the tracker, derived from the audit records.
//!
//! A change owes a delivery until its outcome is recorded or the change is undone. The undo of such a change owes one
//! too. The list is derived, so a lost `state.db` loses no delivery. [`crate::tracker::outbox`] keeps the progress of
//! each.

use crate::index::store::codec::from_micros;
use crate::index::{ActionsView, IndexError};
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::FromRow;
use steward_domain::action::audit::ActionKind;
use steward_domain::action::plan::ActionId;
use steward_domain::record::path::RecordPath;

/// An audit record that owes the tracker a delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OwedDelivery {
    pub id: ActionId,
    pub record: RecordPath,
    pub kind: ActionKind,
    /// The issue's id.
    pub issue: String,
    /// When the record was written.
    pub at: DateTime<Utc>,
}

#[derive(FromRow)]
struct OwedDeliveryColumns {
    id: String,
    path: String,
    kind: String,
    issue: String,
    at: i64,
}

const OWING: &str = "SELECT a.id, a.path, a.kind, a.issue, a.at FROM actions a WHERE a.issue IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.tracks_of = a.id AND b.kind = 'steward-action-tracked')
    AND NOT EXISTS (SELECT 1 FROM actions b WHERE b.resolves = a.id AND b.kind = 'steward-action-reversed')
    ORDER BY a.seq";

impl ActionsView<'_> {
    /// Lists every record that owes the tracker a delivery, in chain order.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn list_owed_deliveries(self) -> Result<Vec<OwedDelivery>, IndexError> {
        let rows: Vec<OwedDeliveryColumns> =
            sqlx::query_as(OWING).fetch_all(&self.index.store.writer).await.map_err(|e| self.index.sql_error(e))?;
        let decode = |row: OwedDeliveryColumns| {
            Ok(OwedDelivery {
                id: self.index.parse_enum(&row.id)?,
                record: self.index.parse_path(&row.path)?,
                kind: self.index.parse_enum(&row.kind)?,
                issue: row.issue,
                at: from_micros(row.at).unwrap_or_default(),
            })
        };
        rows.into_iter().map(decode).collect()
    }
}

//! The log of what operators did: who, what, before and after, and why.
//!
//! A change and its line are one transaction: without the line there is no change. Only a stop holds without one. The
//! database lets nobody change a line; see the migration.

use crate::store::{FleetError, FleetStore, in_time};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sqlx::{FromRow, PgConnection};

/// Who changes something, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operator {
    /// The user of the operating system, or the name that the command was given.
    pub name: String,
    /// May be empty.
    pub reason: String,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, FromRow)]
pub struct OperatorEvent {
    pub at: DateTime<Utc>,
    /// The role of the database that made the change.
    pub role: String,
    pub operator: String,
    /// What was done, such as `tenant_set`.
    pub event: String,
    /// The tenant or bucket; `*` for all tenants.
    pub subject: String,
    pub before: Option<Value>,
    pub after: Option<Value>,
    pub reason: String,
}

/// A change that is recorded with its line.
pub(crate) struct RecordedChange<'c> {
    pub(crate) event: &'static str,
    pub(crate) subject: &'c str,
    pub(crate) before: Option<Value>,
    pub(crate) after: Option<Value>,
}

impl Operator {
    /// Writes the line of a change, in the transaction of that change.
    pub(crate) async fn record(&self, db: &mut PgConnection, change: RecordedChange<'_>) -> sqlx::Result<()> {
        let query = sqlx::query("SELECT record_event($1, $2, $3, $4, $5, $6)").bind(&self.name).bind(change.event);
        let query = query.bind(change.subject).bind(change.before).bind(change.after).bind(&self.reason);
        query.execute(db).await.map(drop)
    }
}

impl FleetStore {
    /// Lists the newest lines of the log, the newest first.
    ///
    /// # Errors
    /// [`FleetError`]; a tenant's role may not read the log.
    pub async fn list_operator_events(&self, limit: u32) -> Result<Vec<OperatorEvent>, FleetError> {
        let select =
            "SELECT at, role, operator, event, subject, before, after, reason FROM ops_log ORDER BY id DESC LIMIT $1";
        let query = sqlx::query_as(select).bind(i64::from(limit));
        Ok(in_time(query.fetch_all(&self.pool)).await??)
    }
}

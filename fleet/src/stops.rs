//! Stops of one tenant or of the whole fleet, as operators set and end them.
//!
//! A stop is one row. Each process reads it with its next leave to act, which is good for a second. A stop that cannot be
//! logged holds all the same.

use crate::events::{Operator, RecordedChange};
use crate::store::{FleetError, FleetStore, in_time};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::json;
use sqlx::FromRow;
use steward_domain::fleet::TenantId;

/// The scope of a stop of all tenants.
pub const ALL_TENANTS: &str = "*";

/// A stop in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, FromRow)]
pub struct StopRow {
    /// A tenant's id, or [`ALL_TENANTS`].
    pub scope: String,
    pub stopped_by: String,
    pub reason: String,
    pub stopped_at: DateTime<Utc>,
}

impl FleetStore {
    /// Stops a tenant, or all; `false` if that stop was in force already, which it then still is.
    ///
    /// # Errors
    /// [`FleetError`]. Nothing was stopped, except perhaps after [`FleetError::Late`].
    pub async fn stop_tenants(&self, tenant: Option<&TenantId>, operator: &Operator) -> Result<bool, FleetError> {
        let scope = tenant.map_or(ALL_TENANTS, TenantId::as_str);
        let insert = "INSERT INTO stop (scope, stopped_by, reason) VALUES ($1, $2, $3) ON CONFLICT (scope) DO NOTHING";
        let insert = sqlx::query(insert).bind(scope).bind(&operator.name).bind(&operator.reason);
        let is_new = in_time(insert.execute(&self.pool)).await??.rows_affected() > 0;
        if is_new && let Err(e) = self.log_stop(scope, operator).await {
            tracing::warn!("the stop holds, and the log of the fleet has no line about it: {e}");
        }
        Ok(is_new)
    }

    async fn log_stop(&self, scope: &str, operator: &Operator) -> Result<(), FleetError> {
        let record = async {
            let mut connection = self.pool.acquire().await?;
            let change = RecordedChange { event: "stop", subject: scope, before: None, after: None };
            operator.record(&mut connection, change).await
        };
        Ok(in_time(record).await??)
    }

    /// Ends the stop of a tenant, or that of all; `false` if there was none. A tenant can be under both.
    ///
    /// # Errors
    /// [`FleetError`]. The stop still holds, except perhaps after [`FleetError::Late`].
    pub async fn resume_tenants(&self, tenant: Option<&TenantId>, operator: &Operator) -> Result<bool, FleetError> {
        let scope = tenant.map_or(ALL_TENANTS, TenantId::as_str);
        let resume = async {
            let mut tx = self.pool.begin().await?;
            let delete = "DELETE FROM stop WHERE scope = $1 RETURNING scope, stopped_by, reason, stopped_at";
            let ended: Option<StopRow> = sqlx::query_as(delete).bind(scope).fetch_optional(&mut *tx).await?;
            let Some(ended) = ended else { return Ok(false) };
            let change = RecordedChange { event: "resume", subject: scope, before: Some(json!(ended)), after: None };
            operator.record(&mut tx, change).await?;
            tx.commit().await?;
            Ok::<_, sqlx::Error>(true)
        };
        Ok(in_time(resume).await??)
    }

    /// Lists the stops in force that the connected role sees.
    ///
    /// # Errors
    /// [`FleetError`].
    pub async fn list_stops(&self) -> Result<Vec<StopRow>, FleetError> {
        let query = sqlx::query_as("SELECT scope, stopped_by, reason, stopped_at FROM stop ORDER BY scope");
        Ok(in_time(query.fetch_all(&self.pool)).await??)
    }
}

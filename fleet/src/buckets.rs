//! The buckets of a fleet, as operators see and set them: the rate limits of an account at a provider.
//!
//! This module decides nothing about calls; see [`crate::gate`].

use crate::events::{Operator, RecordedChange};
use crate::gate::rows::{self, CallKey};
use crate::store::{FleetError, FleetStore, in_time};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use steward_domain::fleet::TenantId;
use steward_domain::fleet::provider_gate::{BucketWindow, LossKind, WindowFacts};
use steward_domain::steward::guard::{BackOff, GuardState, Probe};

/// A bucket and how full it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BucketStatus {
    pub name: String,
    pub windows: Vec<WindowStatus>,
    pub tenants: Vec<TenantId>,
    /// Set from a 429 until a probe is answered.
    pub back_off: Option<BackOff>,
    pub probe: Option<Probe>,
    /// Since when calls are missing, and why.
    pub lost_at: Option<DateTime<Utc>>,
    pub lost_why: Option<LossKind>,
    /// Since when the database's clock is behind the newest call.
    pub doubted_since: Option<DateTime<Utc>>,
}

/// A window of a bucket and its fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WindowStatus {
    #[serde(flatten)]
    pub window: BucketWindow,
    /// Calls that count now.
    pub used_calls: i64,
    /// Tokens that count now; 0 without a limit for them.
    pub used_tokens: u64,
}

/// Whether an operator's command changed a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketChange {
    Changed,
    /// There was nothing to change.
    Unchanged,
    Missing,
}

impl FleetStore {
    /// Creates a bucket, or gives it other windows. Its calls stay counted.
    ///
    /// # Errors
    /// [`FleetError`].
    pub async fn set_bucket(
        &self,
        name: &str,
        windows: &[BucketWindow],
        operator: &Operator,
    ) -> Result<(), FleetError> {
        Ok(in_time(self.try_set_bucket(name, windows, operator)).await??)
    }

    async fn try_set_bucket(&self, name: &str, windows: &[BucketWindow], operator: &Operator) -> sqlx::Result<()> {
        let mut tx = self.pool.begin().await?;
        let select = "SELECT windows FROM bucket WHERE name = $1 FOR UPDATE";
        let before: Option<Value> = sqlx::query_scalar(select).bind(name).fetch_optional(&mut *tx).await?;
        let upsert = "WITH b AS (INSERT INTO bucket (name, windows) VALUES ($1, $2) \
            ON CONFLICT (name) DO UPDATE SET windows = $2 RETURNING name) \
            INSERT INTO bucket_state (bucket) SELECT name FROM b ON CONFLICT DO NOTHING";
        let windows = serde_json::to_value(windows).map_err(|e| sqlx::Error::Encode(e.into()))?;
        sqlx::query(upsert).bind(name).bind(&windows).execute(&mut *tx).await?;
        let change = RecordedChange { event: "bucket_set", subject: name, before, after: Some(windows) };
        operator.record(&mut tx, change).await?;
        tx.commit().await
    }

    /// Lists the buckets by name, with their fill.
    ///
    /// # Errors
    /// [`FleetError`].
    pub async fn list_buckets(&self) -> Result<Vec<BucketStatus>, FleetError> {
        let names = sqlx::query_scalar("SELECT name FROM bucket ORDER BY name").fetch_all(&self.pool);
        let names: Vec<String> = in_time(names).await??;
        let mut found = Vec::new();
        for name in names {
            found.push(in_time(self.read_bucket_status(name)).await??);
        }
        Ok(found)
    }

    /// Whether there is a bucket of this name.
    ///
    /// # Errors
    /// [`FleetError`].
    pub async fn has_bucket(&self, name: &str) -> Result<bool, FleetError> {
        let select = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM bucket WHERE name = $1)").bind(name);
        Ok(in_time(select.fetch_one(&self.pool)).await??)
    }

    async fn read_bucket_status(&self, name: String) -> sqlx::Result<BucketStatus> {
        let mut connection = self.pool.acquire().await?;
        let found = rows::read_facts(&mut connection, &CallKey { bucket: &name, tenant: "", call: "" }).await?;
        let at = found.bucket.state.newest.map_or(found.clock.at, |newest| newest.max(found.clock.at));
        let tenants = "SELECT id FROM tenant WHERE bucket = $1 AND state <> 'dropped' ORDER BY id";
        let tenants: Vec<String> = sqlx::query_scalar(tenants).bind(&name).fetch_all(&mut *connection).await?;
        let mut windows = Vec::new();
        for WindowFacts { window, tokens, .. } in found.windows {
            let count = "SELECT count(*) FROM gate_call WHERE bucket = $1 AND reserved_at > $2";
            let count = sqlx::query_scalar(count).bind(&name).bind(at - window.counted_width());
            let used_calls = count.fetch_one(&mut *connection).await?;
            windows.push(WindowStatus { window, used_calls, used_tokens: tokens });
        }
        let GuardState { back_off, probe, doubted_since, .. } = found.bucket.state;
        let (lost_at, lost_why) = found.bucket.lost.unzip();
        let tenants = tenants.into_iter().filter_map(|id| id.parse().ok()).collect();
        Ok(BucketStatus { name, windows, tenants, back_off, probe, lost_at, lost_why, doubted_since })
    }

    /// Accepts that a bucket has forgotten calls, or that its clock went back. Calls are then admitted again.
    ///
    /// # Errors
    /// [`FleetError`].
    pub async fn accept_bucket_loss(&self, name: &str, operator: &Operator) -> Result<BucketChange, FleetError> {
        Ok(in_time(self.try_accept_loss(name, operator)).await??)
    }

    async fn try_accept_loss(&self, name: &str, operator: &Operator) -> sqlx::Result<BucketChange> {
        let mut tx = self.pool.begin().await?;
        let Some(mut bucket) = rows::lock_bucket(&mut tx, name).await? else {
            return Ok(BucketChange::Missing);
        };
        let clock = rows::read_server_clock(&mut tx).await?;
        let is_doubted = bucket.state.doubted_since.is_some();
        let is_elsewhere = bucket.identity.system != clock.system;
        if bucket.lost.is_none() && !is_doubted && !is_elsewhere {
            return Ok(BucketChange::Unchanged);
        }
        if is_doubted {
            bucket.last_number = rows::forget_calls_after(&mut tx, name, clock.at).await?;
            bucket.state.restart_clock(clock.at);
        }
        let before = bucket.lost.map(|(at, why)| json!({"lost_at": at, "why": why}));
        bucket.accept_loss(&clock);
        bucket.save(&mut tx).await?;
        let change = RecordedChange { event: "bucket_accept_loss", subject: name, before, after: None };
        operator.record(&mut tx, change).await?;
        tx.commit().await?;
        Ok(BucketChange::Changed)
    }

    /// Ends a back-off before its deadline. One probe still goes first.
    ///
    /// # Errors
    /// [`FleetError`].
    pub async fn lift_bucket_back_off(&self, name: &str, operator: &Operator) -> Result<BucketChange, FleetError> {
        Ok(in_time(self.try_lift_back_off(name, operator)).await??)
    }

    async fn try_lift_back_off(&self, name: &str, operator: &Operator) -> sqlx::Result<BucketChange> {
        let mut tx = self.pool.begin().await?;
        let Some(mut bucket) = rows::lock_bucket(&mut tx, name).await? else {
            return Ok(BucketChange::Missing);
        };
        let now = rows::read_server_clock(&mut tx).await?.at;
        let Some(until) = bucket.state.lift_back_off(now) else { return Ok(BucketChange::Unchanged) };
        bucket.save(&mut tx).await?;
        let before = Some(json!({"back_off_until": until}));
        let change = RecordedChange { event: "bucket_lift", subject: name, before, after: None };
        operator.record(&mut tx, change).await?;
        tx.commit().await?;
        Ok(BucketChange::Changed)
    }
}

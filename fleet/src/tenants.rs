//! The tenants of a fleet, as operators see and set them.
//!
//! A tenant's own role sees and lists its own row alone. This module decides nothing about owners.

use crate::events::{Operator, RecordedChange};
use crate::stops::StopRow;
use crate::store::{FleetError, FleetStore, in_time};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, Row};
use steward_domain::action::audit::ChainHead;
use steward_domain::fleet::TenantId;
use steward_domain::fleet::ownership::{OwnerInfo, OwnerProgress, OwnerRow};
use steward_domain::gates::mode::Mode;

/// Whether a tenant is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::EnumString, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TenantState {
    Active,
    /// Its id is never used again.
    Dropped,
}

/// A tenant and, once it was started, its owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TenantRow {
    pub id: TenantId,
    /// The id of its vault; `None` before its first start.
    pub vault_id: Option<String>,
    /// The most that its processes may do.
    pub mode_ceiling: Mode,
    /// The mode that its process should be started with.
    pub expected_mode: Mode,
    pub state: TenantState,
    /// The rate limits of its provider; `None` if none were set.
    pub bucket: Option<String>,
    pub owner: Option<OwnerRow>,
    /// The stop in force, of all tenants or of this one.
    pub stop: Option<StopRow>,
    /// Seconds since the owner was heard, by the database's clock.
    pub silent_seconds: Option<i64>,
}

/// A change of a tenant by an operator; `None` leaves a value as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantChange {
    pub mode_ceiling: Option<Mode>,
    pub expected_mode: Option<Mode>,
    pub bucket: Option<String>,
}

/// The outcome of a change of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TenantUpdate {
    Changed,
    /// There is none, or it was dropped.
    Missing,
    /// It cannot get another bucket while calls in the old one are not settled.
    CallsUnderWay,
}

const LIST: &str = "SELECT t.id, t.vault_id, t.mode_ceiling, t.expected_mode, t.state, t.bucket, o.copy, o.epoch, o.instance, \
    o.address, o.build, o.mode, o.policy_hash, o.seen, o.chain_records, o.chain_sha256, \
    o.since, o.last_check, o.matters_late, o.signals_fresh, o.shut_out, \
    extract(epoch FROM clock_timestamp() - o.seen)::bigint AS silent, s.scope, s.stopped_by, s.reason, s.stopped_at \
    FROM tenant t LEFT JOIN owner o ON o.tenant = t.id \
    LEFT JOIN LATERAL (SELECT * FROM stop WHERE scope IN ('*', t.id) ORDER BY scope LIMIT 1) s ON true \
    WHERE $1::text IS NULL OR t.id = $1 ORDER BY t.id";

/// What an operator may set of a tenant, locked.
const DESCRIBE: &str = "SELECT jsonb_build_object('max_mode', mode_ceiling, 'expect', expected_mode, 'bucket', bucket) \
    FROM tenant WHERE id = $1 AND state <> 'dropped' FOR UPDATE";

impl FleetStore {
    /// Commits a change of nothing: a server that has lost its standby still answers reads, and answers no commit.
    ///
    /// # Errors
    /// [`FleetError`]; [`FleetError::Late`] after 3 s.
    pub async fn check_commits(&self, tenant: &TenantId) -> Result<(), FleetError> {
        let nothing = sqlx::query("UPDATE tenant SET vault_id = vault_id WHERE id = $1").bind(tenant.as_str());
        in_time(nothing.execute(&self.pool)).await?.map(drop).map_err(FleetError::from)
    }

    /// Lists the tenants that the connected role sees, by id: all, or the named one.
    ///
    /// # Errors
    /// [`FleetError`].
    pub async fn list_tenants(&self, only: Option<&TenantId>) -> Result<Vec<TenantRow>, FleetError> {
        let query = sqlx::query(LIST).bind(only.map(TenantId::as_str));
        let rows = in_time(query.fetch_all(&self.pool)).await??;
        Ok(rows.iter().map(read_tenant).collect::<Result<_, _>>()?)
    }

    /// Changes a tenant.
    ///
    /// # Errors
    /// [`FleetError`].
    pub async fn change_tenant(
        &self,
        tenant: &TenantId,
        change: TenantChange,
        operator: &Operator,
    ) -> Result<TenantUpdate, FleetError> {
        Ok(in_time(self.try_change_tenant(tenant, change, operator)).await??)
    }

    async fn try_change_tenant(
        &self,
        tenant: &TenantId,
        change: TenantChange,
        operator: &Operator,
    ) -> sqlx::Result<TenantUpdate> {
        let mut tx = self.pool.begin().await?;
        let before: Option<Value> = sqlx::query_scalar(DESCRIBE).bind(tenant.as_str()).fetch_optional(&mut *tx).await?;
        let Some(before) = before else { return Ok(TenantUpdate::Missing) };
        if let (Some(new), Some(old)) = (change.bucket.as_deref(), before["bucket"].as_str())
            && new != old
        {
            // Under its lock no call begins meanwhile.
            sqlx::query("SELECT name FROM bucket WHERE name = $1 FOR UPDATE").bind(old).fetch_one(&mut *tx).await?;
            // A call is settled in the bucket of its tenant. Longer than a call may take.
            let open = "SELECT EXISTS (SELECT 1 FROM gate_call WHERE tenant = $1 AND NOT settled \
                AND reserved_at > clock_timestamp() - interval '2 minutes')";
            if sqlx::query_scalar(open).bind(tenant.as_str()).fetch_one(&mut *tx).await? {
                return Ok(TenantUpdate::CallsUnderWay);
            }
        }
        let update = "UPDATE tenant SET mode_ceiling = coalesce($2, mode_ceiling), expected_mode = coalesce($3, expected_mode), \
            bucket = coalesce($4, bucket) WHERE id = $1";
        let query = sqlx::query(update).bind(tenant.as_str()).bind(change.mode_ceiling.map(Mode::as_str));
        query.bind(change.expected_mode.map(Mode::as_str)).bind(change.bucket).execute(&mut *tx).await?;
        let after = sqlx::query_scalar(DESCRIBE).bind(tenant.as_str()).fetch_one(&mut *tx).await?;
        let subject = tenant.as_str();
        let change = RecordedChange { event: "tenant_set", subject, before: Some(before), after: Some(after) };
        operator.record(&mut tx, change).await?;
        tx.commit().await?;
        Ok(TenantUpdate::Changed)
    }
}

fn read_tenant(row: &PgRow) -> Result<TenantRow, sqlx::Error> {
    let id: TenantId = parse(row, "id")?;
    let copy: Option<String> = row.try_get("copy")?;
    let owner = copy.map(|copy| read_owner(row, id.clone(), copy)).transpose()?;
    Ok(TenantRow {
        vault_id: row.try_get("vault_id")?,
        mode_ceiling: parse(row, "mode_ceiling")?,
        expected_mode: parse(row, "expected_mode")?,
        state: parse(row, "state")?,
        bucket: row.try_get("bucket")?,
        silent_seconds: row.try_get("silent")?,
        owner,
        stop: row.try_get::<Option<String>, _>("scope")?.map(|_| StopRow::from_row(row)).transpose()?,
        id,
    })
}

/// Reads the columns of an owner.
pub(crate) fn read_owner(row: &PgRow, tenant: TenantId, copy: String) -> Result<OwnerRow, sqlx::Error> {
    let info = OwnerInfo {
        instance: row.try_get("instance")?,
        address: row.try_get("address")?,
        build: row.try_get("build")?,
        mode: parse(row, "mode")?,
        policy_hash: row.try_get("policy_hash")?,
    };
    let seen: DateTime<Utc> = row.try_get("seen")?;
    let count = |column: &str| Ok::<_, sqlx::Error>(u64::try_from(row.try_get::<i64, _>(column)?).unwrap_or_default());
    let progress = OwnerProgress {
        last_check: row.try_get("last_check")?,
        matters_late: count("matters_late")?,
        signals_fresh: count("signals_fresh")?,
    };
    let (epoch, since, chain) = (row.try_get("epoch")?, row.try_get("since")?, read_chain(row)?);
    let shut_out = row.try_get("shut_out")?;
    Ok(OwnerRow { tenant, copy, epoch, info, seen, since, chain, progress, shut_out })
}

fn read_chain(row: &PgRow) -> Result<ChainHead, sqlx::Error> {
    let column =
        |column: &str, problem: String| sqlx::Error::ColumnDecode { index: column.to_owned(), source: problem.into() };
    let records: i64 = row.try_get("chain_records")?;
    let seq = u64::try_from(records).map_err(|e| column("chain_records", e.to_string()))?;
    let sha256: Value = row.try_get::<String, _>("chain_sha256")?.into();
    let sha256 = serde_json::from_value(sha256).map_err(|e| column("chain_sha256", e.to_string()))?;
    Ok(ChainHead { seq, sha256 })
}

/// Reads a word of a closed set.
pub(crate) fn parse<T: std::str::FromStr>(row: &PgRow, column: &str) -> Result<T, sqlx::Error>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let text: String = row.try_get(column)?;
    text.parse().map_err(|source: T::Err| sqlx::Error::ColumnDecode { index: column.to_owned(), source: source.into() })
}

//! The rows of a bucket: its own, its calls, and the tokens of each minute.
//!
//! Every function runs in a transaction that has locked the bucket's row first. That lock gives each call its number, so a
//! full window is found by one look at the cap-th newest number. What the rows mean is decided elsewhere.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use steward_domain::fleet::TenantId;
use steward_domain::fleet::provider_gate::{BucketIdentity, BucketWindow, WindowFacts, compute_call_share};
use steward_domain::steward::guard::{BackOff, CallId, GuardState, Probe};

/// Up to this width the tokens of a window are added up call by call, and beyond it by the minute: 10 min.
const EXACT_SECONDS: u32 = 600;
/// Longer than any window is counted.
const KEEP: TimeDelta = TimeDelta::hours(25);

/// A bucket's row, locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BucketRow {
    pub(crate) identity: BucketIdentity,
    pub(crate) windows: Vec<BucketWindow>,
    /// Since when calls are missing, and why.
    pub(crate) lost: Option<(DateTime<Utc>, String)>,
    pub(crate) last_number: i64,
    pub(crate) state: GuardState,
}

/// One call of a tenant in a bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallKey<'k> {
    pub(crate) bucket: &'k str,
    pub(crate) tenant: &'k TenantId,
    pub(crate) call: &'k str,
}

impl CallKey<'_> {
    /// Its name among the calls of all tenants.
    pub(crate) fn to_call_id(self) -> CallId {
        CallId(format!("{}/{}", self.tenant, self.call))
    }
}

/// The database's time, and which server it is.
pub(crate) struct ServerClock {
    pub(crate) at: DateTime<Utc>,
    pub(crate) system: String,
}

const COLUMNS: &str = "b.name, b.windows, b.system, b.incarnation, b.is_accepted, b.revision, b.lost_at, b.lost_why, \
    b.last_number, b.newest, b.doubted_since, b.back_off_set, b.back_off_until, b.probe_call, b.probe_since";

/// Whether the row is locked until the end of the transaction. Only then may the bucket be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BucketLock {
    Locked,
    ReadOnly,
}

/// Reads the bucket of a tenant; `None` if the tenant has none.
pub(crate) async fn find_tenants_bucket(
    db: &mut PgConnection,
    tenant: &TenantId,
    lock: BucketLock,
) -> sqlx::Result<Option<BucketRow>> {
    find_bucket_where(db, "JOIN tenant t ON t.bucket = b.name WHERE t.id = $1", tenant.as_str(), lock).await
}

/// Reads a bucket by its name.
pub(crate) async fn find_bucket(
    db: &mut PgConnection,
    name: &str,
    lock: BucketLock,
) -> sqlx::Result<Option<BucketRow>> {
    find_bucket_where(db, "WHERE b.name = $1", name, lock).await
}

async fn find_bucket_where(
    db: &mut PgConnection,
    condition: &'static str,
    value: &str,
    lock: BucketLock,
) -> sqlx::Result<Option<BucketRow>> {
    let end = match lock {
        BucketLock::Locked => "FOR UPDATE OF b",
        BucketLock::ReadOnly => "",
    };
    let select = format!("SELECT {COLUMNS} FROM bucket b {condition} {end}");
    let row = sqlx::query(sqlx::AssertSqlSafe(select)).bind(value).fetch_optional(db).await?;
    row.map(|row| read_bucket(&row)).transpose()
}

fn read_bucket(row: &PgRow) -> sqlx::Result<BucketRow> {
    let (set_at, until): (Option<_>, Option<_>) = (row.try_get("back_off_set")?, row.try_get("back_off_until")?);
    let (call, since): (Option<String>, Option<_>) = (row.try_get("probe_call")?, row.try_get("probe_since")?);
    let (lost_at, lost_why): (Option<_>, Option<String>) = (row.try_get("lost_at")?, row.try_get("lost_why")?);
    let windows: serde_json::Value = row.try_get("windows")?;
    let windows = serde_json::from_value(windows)
        .map_err(|source| sqlx::Error::ColumnDecode { index: "windows".to_owned(), source: source.into() })?;
    Ok(BucketRow {
        identity: BucketIdentity {
            bucket: row.try_get("name")?,
            system: row.try_get("system")?,
            incarnation: row.try_get("incarnation")?,
            revision: row.try_get("revision")?,
            is_accepted: row.try_get("is_accepted")?,
        },
        windows,
        lost: lost_at.map(|at| (at, lost_why.unwrap_or_default())),
        last_number: row.try_get("last_number")?,
        state: GuardState {
            newest: row.try_get("newest")?,
            doubted_since: row.try_get("doubted_since")?,
            back_off: set_at.zip(until).map(|(set_at, until)| BackOff { set_at, until }),
            probe: call.zip(since).map(|(call, since)| Probe { call_id: CallId(call), since }),
        },
    })
}

/// Reads the clock. Only after the lock: a statement that waits for it may have an older time.
pub(crate) async fn read_server_clock(db: &mut PgConnection) -> sqlx::Result<ServerClock> {
    let select = "SELECT clock_timestamp() AS at, system_identifier::text AS system FROM pg_control_system()";
    let row = sqlx::query(select).fetch_one(db).await?;
    Ok(ServerClock { at: row.try_get("at")?, system: row.try_get("system")? })
}

impl BucketRow {
    /// Begins a new incarnation, whose calls count as whole.
    pub(crate) fn accept_loss(&mut self, clock: &ServerClock) {
        self.lost = None;
        self.identity.system.clone_from(&clock.system);
        self.identity.incarnation = clock.at.timestamp_micros().max(self.identity.incarnation + 1);
        self.identity.is_accepted = true;
    }

    /// Writes the row under the next revision.
    pub(crate) async fn save(&mut self, db: &mut PgConnection) -> sqlx::Result<()> {
        self.identity.revision += 1;
        let update = "UPDATE bucket SET system = $2, incarnation = $3, is_accepted = $4, revision = $5, lost_at = $6, \
            lost_why = $7, last_number = $8, newest = $9, doubted_since = $10, back_off_set = $11, back_off_until = $12, \
            probe_call = $13, probe_since = $14 WHERE name = $1";
        let (identity, state) = (&self.identity, &self.state);
        let query = sqlx::query(update).bind(&identity.bucket).bind(&identity.system).bind(identity.incarnation);
        let query = query.bind(identity.is_accepted).bind(identity.revision);
        let query = query.bind(self.lost.as_ref().map(|(at, _)| *at)).bind(self.lost.as_ref().map(|(_, why)| why));
        let query = query.bind(self.last_number).bind(state.newest).bind(state.doubted_since);
        let query = query.bind(state.back_off.map(|b| b.set_at)).bind(state.back_off.map(|b| b.until));
        let query = query.bind(state.probe.as_ref().map(|p| &p.call_id.0)).bind(state.probe.as_ref().map(|p| p.since));
        query.execute(db).await.map(drop)
    }
}

/// Whether the bucket holds this call already.
pub(crate) async fn has_call(db: &mut PgConnection, key: &CallKey<'_>) -> sqlx::Result<bool> {
    let select = "SELECT EXISTS (SELECT 1 FROM gate_call WHERE bucket = $1 AND tenant = $2 AND call = $3)";
    sqlx::query_scalar(select).bind(key.bucket).bind(key.tenant.as_str()).bind(key.call).fetch_one(db).await
}

/// Reads the fill of every window for one tenant. An exact sum costs one look at each call of the window, a rough one one
/// at each minute, whose oldest minute counts as a whole.
pub(crate) async fn read_windows(
    db: &mut PgConnection,
    bucket: &BucketRow,
    key: &CallKey<'_>,
    at: DateTime<Utc>,
) -> sqlx::Result<Vec<WindowFacts>> {
    const SELECT: &str = "
        WITH w AS (SELECT * FROM jsonb_to_recordset($3) AS w(k int, number bigint, share bigint, start timestamptz, tokens text)),
        own AS (SELECT coalesce(max(last_number), 0) AS last FROM gate_tenant WHERE bucket = $1 AND tenant = $2)
        SELECT
            (SELECT reserved_at FROM gate_call c WHERE c.bucket = $1 AND c.number = w.number) AS edge,
            (SELECT reserved_at FROM gate_call c WHERE c.bucket = $1 AND c.tenant = $2
                AND c.tenant_number = own.last - w.share + 1) AS own_edge,
            s.tokens, s.own_tokens, s.oldest
        FROM w CROSS JOIN own CROSS JOIN LATERAL (
            SELECT coalesce(sum(c.tokens), 0)::bigint AS tokens,
                coalesce(sum(c.tokens) FILTER (WHERE c.tenant = $2), 0)::bigint AS own_tokens, min(c.reserved_at) AS oldest
            FROM gate_call c WHERE w.tokens = 'exact' AND c.bucket = $1 AND c.reserved_at > w.start
            UNION ALL
            SELECT coalesce(sum(m.tokens) FILTER (WHERE m.tenant = ''), 0)::bigint,
                coalesce(sum(m.tokens) FILTER (WHERE m.tenant = $2), 0)::bigint, min(m.minute)
            FROM gate_minute m WHERE w.tokens = 'rough' AND m.bucket = $1 AND m.tenant IN ('', $2)
                AND m.minute > w.start - interval '1 minute'
            ORDER BY oldest NULLS LAST LIMIT 1
        ) s ORDER BY w.k";
    let asked: Vec<serde_json::Value> = bucket
        .windows
        .iter()
        .enumerate()
        .map(|(k, window)| {
            let sum = if window.seconds <= EXACT_SECONDS { "exact" } else { "rough" };
            json!({
                "k": k,
                "number": window.calls.map(|cap| bucket.last_number - i64::from(cap) + 1),
                "share": window.calls.map(compute_call_share),
                "start": at - window.counted_width(),
                "tokens": window.tokens.map(|_| sum),
            })
        })
        .collect();
    let query = sqlx::query(SELECT).bind(key.bucket).bind(key.tenant.as_str()).bind(serde_json::Value::from(asked));
    let rows = query.fetch_all(db).await?;
    let read = |(window, row): (&BucketWindow, &PgRow)| {
        Ok(WindowFacts {
            window: *window,
            edge: row.try_get("edge")?,
            own_edge: row.try_get("own_edge")?,
            tokens: read_count(row, "tokens")?,
            own_tokens: read_count(row, "own_tokens")?,
            oldest: row.try_get("oldest")?,
        })
    };
    bucket.windows.iter().zip(&rows).map(read).collect()
}

fn read_count(row: &PgRow, column: &str) -> sqlx::Result<u64> {
    let count: i64 = row.try_get(column)?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// When a window itself refused another tenant of the bucket that has had no call since.
pub(crate) async fn find_rival_refusal(
    db: &mut PgConnection,
    key: &CallKey<'_>,
) -> sqlx::Result<Option<DateTime<Utc>>> {
    let select = "SELECT max(refused_at) FROM gate_tenant WHERE bucket = $1 AND tenant <> $2";
    sqlx::query_scalar(select).bind(key.bucket).bind(key.tenant.as_str()).fetch_one(db).await
}

/// Notes that a window refused this tenant.
pub(crate) async fn note_refusal(db: &mut PgConnection, key: &CallKey<'_>, at: DateTime<Utc>) -> sqlx::Result<()> {
    let upsert = "INSERT INTO gate_tenant (bucket, tenant, refused_at) VALUES ($1, $2, $3) \
        ON CONFLICT (bucket, tenant) DO UPDATE SET refused_at = $3";
    sqlx::query(upsert).bind(key.bucket).bind(key.tenant.as_str()).bind(at).execute(db).await.map(drop)
}

/// Records a call under the next number, and forgets those that no window counts. Its tenant waits no longer.
pub(crate) async fn insert_call(
    db: &mut PgConnection,
    bucket: &mut BucketRow,
    key: &CallKey<'_>,
    tokens: u64,
    at: DateTime<Utc>,
) -> sqlx::Result<()> {
    const INSERT: &str = "
        WITH own AS (
            INSERT INTO gate_tenant (bucket, tenant, last_number) VALUES ($1, $2, 1)
            ON CONFLICT (bucket, tenant) DO UPDATE SET last_number = gate_tenant.last_number + 1, refused_at = NULL
            RETURNING last_number
        ), minutes AS (
            INSERT INTO gate_minute (bucket, tenant, minute, tokens)
            SELECT $1, who, date_trunc('minute', $5::timestamptz, 'UTC'), $6 FROM unnest(ARRAY['', $2]) AS who WHERE $6 > 0
            ON CONFLICT (bucket, tenant, minute) DO UPDATE SET tokens = gate_minute.tokens + excluded.tokens
        ), old_calls AS (
            DELETE FROM gate_call WHERE bucket = $1 AND reserved_at < $7
        ), old_minutes AS (
            DELETE FROM gate_minute WHERE bucket = $1 AND minute < $7 AND tenant IN ('', $2)
        )
        INSERT INTO gate_call (bucket, number, tenant, tenant_number, call, reserved_at, tokens)
        SELECT $1, $3, $2, own.last_number, $4, $5, $6 FROM own";
    bucket.last_number += 1;
    bucket.state.newest = Some(at);
    let query = sqlx::query(INSERT).bind(key.bucket).bind(key.tenant.as_str()).bind(bucket.last_number).bind(key.call);
    query.bind(at).bind(i64::try_from(tokens).unwrap_or(i64::MAX)).bind(at - KEEP).execute(&mut *db).await?;
    bucket.save(db).await
}

/// Settles a call and corrects its tokens if they are known. `None` if the bucket does not hold it, and `false` if it was
/// settled before.
pub(crate) async fn settle_call(
    db: &mut PgConnection,
    key: &CallKey<'_>,
    tokens: Option<u64>,
) -> sqlx::Result<Option<bool>> {
    let select = "SELECT settled, tokens, reserved_at FROM gate_call WHERE bucket = $1 AND tenant = $2 AND call = $3";
    let query = sqlx::query_as(select).bind(key.bucket).bind(key.tenant.as_str()).bind(key.call);
    let found: Option<(bool, i64, DateTime<Utc>)> = query.fetch_optional(&mut *db).await?;
    let Some((is_settled, reserved, at)) = found else { return Ok(None) };
    if is_settled {
        return Ok(Some(false));
    }
    const UPDATE: &str = "
        WITH minutes AS (
            UPDATE gate_minute SET tokens = gate_minute.tokens + $4 - $5
            WHERE bucket = $1 AND tenant IN ('', $2) AND minute = date_trunc('minute', $6::timestamptz, 'UTC')
        )
        UPDATE gate_call SET settled = true, tokens = $4 WHERE bucket = $1 AND tenant = $2 AND call = $3";
    let used = tokens.map_or(reserved, |tokens| i64::try_from(tokens).unwrap_or(i64::MAX));
    let query = sqlx::query(UPDATE).bind(key.bucket).bind(key.tenant.as_str()).bind(key.call);
    query.bind(used).bind(reserved).bind(at).execute(db).await?;
    Ok(Some(true))
}

/// Forgets the calls after an instant, and returns the number of the newest one that is left.
pub(crate) async fn forget_calls_after(db: &mut PgConnection, bucket: &str, at: DateTime<Utc>) -> sqlx::Result<i64> {
    sqlx::query("DELETE FROM gate_call WHERE bucket = $1 AND reserved_at > $2")
        .bind(bucket)
        .bind(at)
        .execute(&mut *db)
        .await?;
    sqlx::query("DELETE FROM gate_minute WHERE bucket = $1 AND minute > $2")
        .bind(bucket)
        .bind(at)
        .execute(&mut *db)
        .await?;
    let renumber = "UPDATE gate_tenant t SET refused_at = NULL, last_number = (SELECT coalesce(max(tenant_number), 0) \
        FROM gate_call c WHERE c.bucket = t.bucket AND c.tenant = t.tenant) WHERE bucket = $1";
    sqlx::query(renumber).bind(bucket).execute(&mut *db).await?;
    let last = "SELECT coalesce(max(number), 0) FROM gate_call WHERE bucket = $1";
    sqlx::query_scalar(last).bind(bucket).fetch_one(db).await
}

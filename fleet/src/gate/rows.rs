//! The rows of a bucket: its own, its calls, and the tokens of each second and minute.
//!
//! Every function that changes something runs in a transaction that has locked the bucket first. Under that lock each call
//! gets its number, so a full window is found by one look at the cap-th newest number. What the rows mean is decided
//! elsewhere.

use crate::tenants::parse;
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::postgres::{PgQueryResult, PgRow};
use sqlx::{PgConnection, Row};
use steward_domain::fleet::TenantId;
use steward_domain::fleet::provider_gate::{
    BucketIdentity, BucketWindow, LossKind, RESERVATION_LIFETIME, SHARE_DIVISOR, WindowFacts,
};
use steward_domain::steward::guard::{BackOff, CallId, GuardState, Probe};

/// Up to this width the tokens of a window are added up by the second, and beyond it by the minute: 10 min. The oldest
/// second or minute counts as a whole.
const SHORT_SECONDS: i32 = 600;
/// Longer than any window is counted.
const KEEP: TimeDelta = TimeDelta::hours(25);
/// As [`KEEP`], for the tokens of each second.
const KEEP_SECONDS: TimeDelta = TimeDelta::minutes(20);

/// A bucket and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BucketRow {
    pub(crate) identity: BucketIdentity,
    pub(crate) windows: Vec<BucketWindow>,
    /// Since when calls are missing, and why.
    pub(crate) lost: Option<(DateTime<Utc>, LossKind)>,
    pub(crate) last_number: i64,
    pub(crate) state: GuardState,
}

/// One call of a tenant in a bucket. Without a tenant and a call it asks about the bucket alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallKey<'k> {
    pub(crate) bucket: &'k str,
    pub(crate) tenant: &'k str,
    pub(crate) call: &'k str,
}

impl CallKey<'_> {
    /// Its name among the calls of all tenants.
    pub(crate) fn to_call_id(self) -> CallId {
        CallId(format!("{}/{}", self.tenant, self.call))
    }
}

/// What is recorded about a bucket at one moment, for one call.
pub(crate) struct RecordedFacts {
    pub(crate) bucket: BucketRow,
    pub(crate) clock: ServerClock,
    /// Whether the bucket holds this call already.
    pub(crate) has_call: bool,
    /// The entries of this tenant so far.
    pub(crate) entries: i64,
    /// The epoch of the vault's owner, and whether a stop holds.
    pub(crate) epoch: Option<i64>,
    pub(crate) is_stopped: bool,
    /// When a window itself refused another tenant of the bucket that has had no call since.
    pub(crate) rival_refused_at: Option<DateTime<Utc>>,
    pub(crate) windows: Vec<WindowFacts>,
}

/// The database's time, and which server it is.
pub(crate) struct ServerClock {
    pub(crate) at: DateTime<Utc>,
    pub(crate) system: String,
}

const COLUMNS: &str = "(SELECT id FROM fleet) AS fleet, b.name, b.windows, z.system, z.incarnation, z.is_accepted, z.lost_at, z.lost_why, \
    z.last_number, z.newest, z.doubted_since, z.back_off_set, z.back_off_until, z.probe_call, z.probe_since";

/// Whether the bucket is locked until the end of the transaction. Only then may its state be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BucketLock {
    Locked,
    ReadOnly,
}

impl BucketLock {
    fn as_sql(self) -> &'static str {
        match self {
            Self::Locked => "FOR UPDATE OF b",
            Self::ReadOnly => "",
        }
    }
}

/// Finds the bucket of a tenant; `None` if the tenant has none.
pub(crate) async fn find_tenants_bucket(
    db: &mut PgConnection,
    tenant: &TenantId,
    lock: BucketLock,
) -> sqlx::Result<Option<String>> {
    let end = lock.as_sql();
    let select = format!("SELECT b.name FROM bucket b JOIN tenant t ON t.bucket = b.name WHERE t.id = $1 {end}");
    sqlx::query_scalar(sqlx::AssertSqlSafe(select)).bind(tenant.as_str()).fetch_optional(db).await
}

/// Locks a bucket by its name and reads it; `None` if there is none.
pub(crate) async fn lock_bucket(db: &mut PgConnection, name: &str) -> sqlx::Result<Option<BucketRow>> {
    let select = "SELECT name FROM bucket WHERE name = $1 FOR UPDATE";
    let found: Option<String> = sqlx::query_scalar(select).bind(name).fetch_optional(&mut *db).await?;
    match found {
        // A statement of its own: one that waited for the lock would read what was there before.
        Some(name) => load_bucket(db, &name).await.map(Some),
        None => Ok(None),
    }
}

/// Reads a bucket that exists.
pub(crate) async fn load_bucket(db: &mut PgConnection, name: &str) -> sqlx::Result<BucketRow> {
    let select = format!("SELECT {COLUMNS} FROM bucket b JOIN bucket_state z ON z.bucket = b.name WHERE b.name = $1");
    read_bucket(&sqlx::query(sqlx::AssertSqlSafe(select)).bind(name).fetch_one(db).await?)
}

fn read_bucket(row: &PgRow) -> sqlx::Result<BucketRow> {
    let (set_at, until): (Option<_>, Option<_>) = (row.try_get("back_off_set")?, row.try_get("back_off_until")?);
    let (call, since): (Option<String>, Option<_>) = (row.try_get("probe_call")?, row.try_get("probe_since")?);
    let lost_at: Option<DateTime<Utc>> = row.try_get("lost_at")?;
    let windows: serde_json::Value = row.try_get("windows")?;
    let windows = serde_json::from_value(windows)
        .map_err(|source| sqlx::Error::ColumnDecode { index: "windows".to_owned(), source: source.into() })?;
    Ok(BucketRow {
        identity: BucketIdentity {
            fleet: row.try_get("fleet")?,
            bucket: row.try_get("name")?,
            system: row.try_get("system")?,
            incarnation: row.try_get("incarnation")?,
            is_accepted: row.try_get("is_accepted")?,
        },
        windows,
        lost: lost_at.map(|at| Ok::<_, sqlx::Error>((at, parse(row, "lost_why")?))).transpose()?,
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

    /// Writes the row. A role that no longer sees it, because its tenant has another bucket now, gets an error.
    pub(crate) async fn save(&self, db: &mut PgConnection) -> sqlx::Result<()> {
        let update = "UPDATE bucket_state SET system = $2, incarnation = $3, is_accepted = $4, lost_at = $5, lost_why = $6, \
            last_number = $7, newest = $8, doubted_since = $9, back_off_set = $10, back_off_until = $11, probe_call = $12, \
            probe_since = $13 WHERE bucket = $1";
        let (identity, state) = (&self.identity, &self.state);
        let query = sqlx::query(update).bind(&identity.bucket).bind(&identity.system).bind(identity.incarnation);
        let query = query.bind(identity.is_accepted);
        let query = query.bind(self.lost.map(|(at, _)| at)).bind(self.lost.map(|(_, why)| <&str>::from(why)));
        let query = query.bind(self.last_number).bind(state.newest).bind(state.doubted_since);
        let query = query.bind(state.back_off.map(|b| b.set_at)).bind(state.back_off.map(|b| b.until));
        let query = query.bind(state.probe.as_ref().map(|p| &p.call_id.0)).bind(state.probe.as_ref().map(|p| p.since));
        expect_one(query.execute(db).await?)
    }
}

/// Row-level security hides a row instead of refusing it.
fn expect_one(done: PgQueryResult) -> sqlx::Result<()> {
    if done.rows_affected() == 1 { Ok(()) } else { Err(sqlx::Error::RowNotFound) }
}

/// Reads the bucket and all that the decision about one call needs, in one statement. All windows end at the newest call if
/// that is later than the clock.
pub(crate) async fn read_facts(db: &mut PgConnection, key: &CallKey<'_>) -> sqlx::Result<RecordedFacts> {
    let select = format!(
        "WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
        own AS (SELECT coalesce(max(last_number), 0) AS last, coalesce(max(entries), 0) AS entries FROM gate_tenant WHERE bucket = $1 AND tenant = $2),
        w AS (SELECT v.k, z.last_number - v.calls + 1 AS number, greatest(1, (v.calls + $5 - 1) / $5) AS share, v.slot,
                greatest(now.at, z.newest) - make_interval(secs => v.seconds + $4) - make_interval(secs => v.slot) AS start
            FROM now, bucket b JOIN bucket_state z ON z.bucket = b.name,
            LATERAL (SELECT i.k, (i.v->>'calls')::bigint AS calls, (i.v->>'seconds')::int AS seconds,
                CASE WHEN NOT i.v ? 'tokens' THEN NULL WHEN (i.v->>'seconds')::int <= $6 THEN 1 ELSE 60 END AS slot
                FROM jsonb_array_elements(b.windows) WITH ORDINALITY AS i(v, k)) v
            WHERE b.name = $1)
        SELECT {COLUMNS}, now.at, (SELECT system_identifier::text FROM pg_control_system()) AS system_now,
            EXISTS (SELECT 1 FROM gate_call c WHERE c.bucket = $1 AND c.tenant = $2 AND c.call = $3) AS has_call,
            (SELECT max(refused_at) FROM gate_tenant r WHERE r.bucket = $1 AND r.tenant <> $2) AS rival_refused_at,
            (SELECT reserved_at FROM gate_call c WHERE c.bucket = $1 AND c.number = w.number) AS edge,
            (SELECT reserved_at FROM gate_call c WHERE c.bucket = $1 AND c.tenant = $2
                AND c.tenant_number = own.last - w.share + 1) AS own_edge,
            s.tokens, s.own_tokens, s.oldest, own.entries,
            (SELECT epoch FROM owner WHERE tenant = $2) AS epoch,
            EXISTS (SELECT 1 FROM stop WHERE scope IN ('*', $2)) AS is_stopped
        FROM bucket b JOIN bucket_state z ON z.bucket = b.name CROSS JOIN now CROSS JOIN own LEFT JOIN w ON true
        LEFT JOIN LATERAL (
            SELECT coalesce(sum(t.tokens) FILTER (WHERE t.tenant = ''), 0)::bigint AS tokens,
                coalesce(sum(t.tokens) FILTER (WHERE t.tenant = $2), 0)::bigint AS own_tokens, min(t.slot) AS oldest
            FROM gate_tokens t
            WHERE t.bucket = $1 AND t.tenant IN ('', $2) AND t.seconds = w.slot AND t.slot > w.start AND t.tokens > 0
        ) s ON true WHERE b.name = $1 ORDER BY w.k"
    );
    let query = sqlx::query(sqlx::AssertSqlSafe(select)).bind(key.bucket).bind(key.tenant).bind(key.call);
    let grace = RESERVATION_LIFETIME.num_seconds() as f64;
    let query = query.bind(grace).bind(i64::from(SHARE_DIVISOR)).bind(SHORT_SECONDS);
    let rows = query.fetch_all(db).await?;
    let first = rows.first().ok_or(sqlx::Error::RowNotFound)?;
    let bucket = read_bucket(first)?;
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
    Ok(RecordedFacts {
        clock: ServerClock { at: first.try_get("at")?, system: first.try_get("system_now")? },
        has_call: first.try_get("has_call")?,
        entries: first.try_get("entries")?,
        epoch: first.try_get("epoch")?,
        is_stopped: first.try_get("is_stopped")?,
        rival_refused_at: first.try_get("rival_refused_at")?,
        windows: bucket.windows.iter().zip(&rows).map(read).collect::<sqlx::Result<_>>()?,
        bucket,
    })
}

fn read_count(row: &PgRow, column: &str) -> sqlx::Result<u64> {
    let count: i64 = row.try_get(column)?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Notes that a window refused this tenant.
pub(crate) async fn note_refusal(db: &mut PgConnection, key: &CallKey<'_>, at: DateTime<Utc>) -> sqlx::Result<()> {
    let upsert = "INSERT INTO gate_tenant (bucket, tenant, refused_at) VALUES ($1, $2, $3) \
        ON CONFLICT (bucket, tenant) DO UPDATE SET refused_at = $3";
    sqlx::query(upsert).bind(key.bucket).bind(key.tenant).bind(at).execute(db).await.map(drop)
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
            INSERT INTO gate_tenant (bucket, tenant, last_number, entries) VALUES ($1, $2, 1, 1)
            ON CONFLICT (bucket, tenant) DO UPDATE SET last_number = gate_tenant.last_number + 1, entries = gate_tenant.entries + 1,
            refused_at = NULL
            RETURNING last_number
        ), booked AS (
            INSERT INTO gate_tokens (bucket, tenant, seconds, slot, tokens)
            SELECT $1, who, seconds, to_timestamp(floor(extract(epoch FROM $5::timestamptz) / seconds) * seconds), $6
            FROM unnest(ARRAY['', $2]) AS who, unnest(ARRAY[1, 60]) AS seconds WHERE $6 > 0
            ON CONFLICT (bucket, tenant, seconds, slot) DO UPDATE SET tokens = gate_tokens.tokens + excluded.tokens
        ), old_calls AS (
            DELETE FROM gate_call WHERE bucket = $1 AND reserved_at < $7
        ), old_tokens AS (
            DELETE FROM gate_tokens WHERE bucket = $1 AND tenant IN ('', $2)
            AND (seconds = 1 AND slot < $8 OR seconds = 60 AND slot < $7)
        )
        INSERT INTO gate_call (bucket, number, tenant, tenant_number, call, reserved_at, tokens)
        SELECT $1, $3, $2, own.last_number, $4, $5, $6 FROM own";
    bucket.last_number += 1;
    bucket.state.newest = Some(at);
    let query = sqlx::query(INSERT).bind(key.bucket).bind(key.tenant).bind(bucket.last_number).bind(key.call);
    let query = query.bind(at).bind(i64::try_from(tokens).unwrap_or(i64::MAX)).bind(at - KEEP);
    query.bind(at - KEEP_SECONDS).execute(&mut *db).await?;
    bucket.save(db).await
}

/// Counts one more entry of a tenant, and returns their number.
pub(crate) async fn count_entry(db: &mut PgConnection, key: &CallKey<'_>) -> sqlx::Result<i64> {
    let upsert = "INSERT INTO gate_tenant (bucket, tenant, entries) VALUES ($1, $2, 1) \
        ON CONFLICT (bucket, tenant) DO UPDATE SET entries = gate_tenant.entries + 1 RETURNING entries";
    sqlx::query_scalar(upsert).bind(key.bucket).bind(key.tenant).fetch_one(db).await
}

/// Settles a call and corrects its tokens if they are known. `None` if the bucket does not hold it, and `false` if it was
/// settled before.
pub(crate) async fn settle_call(
    db: &mut PgConnection,
    key: &CallKey<'_>,
    tokens: Option<u64>,
) -> sqlx::Result<Option<bool>> {
    let select = "SELECT settled, tokens, reserved_at FROM gate_call WHERE bucket = $1 AND tenant = $2 AND call = $3";
    let query = sqlx::query_as(select).bind(key.bucket).bind(key.tenant).bind(key.call);
    let found: Option<(bool, i64, DateTime<Utc>)> = query.fetch_optional(&mut *db).await?;
    let Some((is_settled, reserved, at)) = found else { return Ok(None) };
    if is_settled {
        return Ok(Some(false));
    }
    const UPDATE: &str = "
        WITH booked AS (
            UPDATE gate_tokens t SET tokens = t.tokens + $4 - $5 FROM unnest(ARRAY[1, 60]) AS s(width)
            WHERE bucket = $1 AND tenant IN ('', $2) AND t.seconds = s.width
            AND slot = to_timestamp(floor(extract(epoch FROM $6::timestamptz) / s.width) * s.width)
        )
        UPDATE gate_call SET settled = true, tokens = $4 WHERE bucket = $1 AND tenant = $2 AND call = $3";
    let used = tokens.map_or(reserved, |tokens| i64::try_from(tokens).unwrap_or(i64::MAX));
    let query = sqlx::query(UPDATE).bind(key.bucket).bind(key.tenant).bind(key.call);
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
    sqlx::query("DELETE FROM gate_tokens WHERE bucket = $1 AND slot > $2")
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

//! The ledger's rows: one of the ledger itself, and one per call of the last day.
//!
//! This module only reads and writes SQL. Every function runs inside a transaction of its caller. It must not decide
//! what the rows mean: `steward_domain::steward::guard` does that.

use chrono::{DateTime, Utc};
use sqlx::SqliteConnection;
use std::collections::BTreeSet;
use steward_domain::steward::clerk::TokenUsage;
use steward_domain::steward::guard::{
    BackOff, CallCaps, CallId, CallQuota, DAY, GuardState, Probe, Reservation, ReserveRequest, SettlementOutcome,
    WIKI_TOKENS, WindowEdges,
};

type NullableMicros = Option<i64>;
/// A result with SQLite's own error, which is not yet classified for the ledger.
pub(super) type LedgerSqlResult<T> = Result<T, sqlx::Error>;

/// Reads the ledger's own row.
pub(super) async fn load_state(db: &mut SqliteConnection) -> LedgerSqlResult<GuardState> {
    let select = "SELECT newest_us, doubted_since_us, back_off_set_us, back_off_until_us, probe_call, \
                      probe_since_us FROM ledger WHERE only_row = 1";
    let row: (NullableMicros, NullableMicros, NullableMicros, NullableMicros, Option<String>, NullableMicros) =
        sqlx::query_as(select).fetch_one(db).await?;
    let (newest, doubted_since, set_at, until, probe_call, probe_since) = row;
    let set_at = parse_instant(set_at)?;
    let until = parse_instant(until)?;
    let probe_since = parse_instant(probe_since)?;
    Ok(GuardState {
        newest: parse_instant(newest)?,
        doubted_since: parse_instant(doubted_since)?,
        back_off: set_at.zip(until).map(|(set_at, until)| BackOff { set_at, until }),
        probe: probe_call.zip(probe_since).map(|(call, since)| Probe { call_id: CallId(call), since }),
    })
}

/// Writes the ledger's own row.
pub(super) async fn save_state(db: &mut SqliteConnection, state: &GuardState) -> LedgerSqlResult<()> {
    let update = "UPDATE ledger SET newest_us = ?, doubted_since_us = ?, back_off_set_us = ?, \
                      back_off_until_us = ?, probe_call = ?, probe_since_us = ? WHERE only_row = 1";
    sqlx::query(update)
        .bind(state.newest.map(to_micros))
        .bind(state.doubted_since.map(to_micros))
        .bind(state.back_off.map(|b| to_micros(b.set_at)))
        .bind(state.back_off.map(|b| to_micros(b.until)))
        .bind(state.probe.as_ref().map(|p| p.call_id.0.as_str()))
        .bind(state.probe.as_ref().map(|p| to_micros(p.since)))
        .execute(db)
        .await?;
    Ok(())
}

/// Finds the reservation that this call already has.
pub(super) async fn find_reservation(db: &mut SqliteConnection, call: &CallId) -> LedgerSqlResult<Option<Reservation>> {
    let select = "SELECT reservation FROM call WHERE call_id = ?";
    let text: Option<String> = sqlx::query_scalar(select).bind(&call.0).fetch_optional(db).await?;
    text.map(|text| serde_json::from_str(&text).map_err(|error| sqlx::Error::Decode(error.into()))).transpose()
}

/// Reads the cap-th newest call of each of the request's windows. All caps are at least 1.
pub(super) async fn read_edges(
    db: &mut SqliteConnection,
    request: &ReserveRequest,
    caps: &CallCaps,
) -> LedgerSqlResult<WindowEdges> {
    let select = "SELECT \
        (SELECT reserved_us FROM call WHERE task = ?1 ORDER BY reserved_us DESC LIMIT 1 OFFSET ?2 - 1), \
        (SELECT reserved_us FROM call WHERE matter = ?3 ORDER BY reserved_us DESC LIMIT 1 OFFSET ?4 - 1), \
        (SELECT reserved_us FROM call ORDER BY reserved_us DESC LIMIT 1 OFFSET ?5 - 1), \
        (SELECT reserved_us FROM call ORDER BY reserved_us DESC LIMIT 1 OFFSET ?6 - 1), \
        (SELECT reserved_us FROM call ORDER BY reserved_us DESC LIMIT 1 OFFSET ?7 - 1)";
    let (task, matter, minute, hour, day): (
        NullableMicros,
        NullableMicros,
        NullableMicros,
        NullableMicros,
        NullableMicros,
    ) = sqlx::query_as(select)
        .bind(&request.task)
        .bind(caps.per_task_day)
        .bind(&request.matter)
        .bind(caps.per_matter_day)
        .bind(caps.per_minute)
        .bind(caps.per_hour)
        .bind(caps.per_day)
        .fetch_one(db)
        .await?;
    Ok(WindowEdges {
        task: parse_instant(task)?,
        matter: parse_instant(matter)?,
        minute: parse_instant(minute)?,
        hour: parse_instant(hour)?,
        day: parse_instant(day)?,
    })
}

/// Reads the quotas of the request's accounts, each with its edge: the limit-th newest call.
pub(super) async fn read_accounts(
    db: &mut SqliteConnection,
    request: &ReserveRequest,
    caps: &CallCaps,
) -> LedgerSqlResult<Vec<Vec<CallQuota>>> {
    let select = "SELECT reserved_us FROM account WHERE kind = ? AND name = ? \
        ORDER BY reserved_us DESC LIMIT 1 OFFSET ? - 1";
    let mut accounts = request.account_quotas(caps);
    for quota in accounts.iter_mut().flatten() {
        let edge = sqlx::query_scalar(select).bind(quota.key.kind).bind(&quota.key.name).bind(quota.limit);
        quota.edge = parse_instant(edge.fetch_optional(&mut *db).await?)?;
    }
    Ok(accounts)
}

/// Lists the calls about a wiki, oldest first, with their tokens: as they were settled, or else as they were estimated.
pub(super) async fn list_wiki_calls(
    db: &mut SqliteConnection,
    wiki: Option<&str>,
) -> LedgerSqlResult<Vec<(DateTime<Utc>, u64)>> {
    let Some(wiki) = wiki else { return Ok(Vec::new()) };
    let select = "SELECT account.reserved_us, COALESCE(prompt_tokens, 0) + COALESCE(completion_tokens, 0) FROM account \
        JOIN call USING (call_id) WHERE kind = ? AND name = ? ORDER BY account.reserved_us";
    let rows: Vec<(i64, i64)> = sqlx::query_as(select).bind(WIKI_TOKENS).bind(wiki).fetch_all(db).await?;
    let read = |(at, tokens)| Ok((parse_micros(at)?, u64::try_from(tokens).unwrap_or(u64::MAX)));
    rows.into_iter().map(read).collect()
}

/// Counts a call on its accounts, and on one more that has no cap of calls.
pub(super) async fn charge_accounts(
    db: &mut SqliteConnection,
    accounts: &[Vec<CallQuota>],
    more: Option<(&str, &str)>,
    issued: &Reservation,
) -> LedgerSqlResult<()> {
    let quotas = accounts.iter().flatten();
    let keys: BTreeSet<(&str, &str)> =
        quotas.map(|quota| (quota.key.kind, quota.key.name.as_str())).chain(more).collect();
    for (kind, name) in keys {
        sqlx::query("INSERT INTO account (kind, name, reserved_us, call_id) VALUES (?, ?, ?, ?)")
            .bind(kind)
            .bind(name)
            .bind(to_micros(issued.reserved_at()))
            .bind(&issued.call_id().0)
            .execute(&mut *db)
            .await?;
    }
    Ok(())
}

/// The accounts of a kind that have had at least `limit` calls since `start`.
pub(super) async fn list_exhausted_accounts(
    db: &mut SqliteConnection,
    kind: &str,
    start: DateTime<Utc>,
    limit: u32,
) -> LedgerSqlResult<Vec<String>> {
    let select = "SELECT name FROM account WHERE kind = ? AND reserved_us > ? GROUP BY name HAVING COUNT(*) >= ?";
    sqlx::query_scalar(select).bind(kind).bind(to_micros(start)).bind(limit).fetch_all(db).await
}

/// Records a reservation.
pub(super) async fn insert_call(
    db: &mut SqliteConnection,
    request: &ReserveRequest,
    issued: &Reservation,
) -> LedgerSqlResult<()> {
    // What a call about a wiki may take counts until it has ended.
    let estimate = request.wiki.as_ref().map(|_| i64::try_from(request.tokens).unwrap_or(i64::MAX));
    let text = serde_json::to_string(issued).map_err(|error| sqlx::Error::Encode(error.into()))?;
    sqlx::query(
        "INSERT INTO call (call_id, task, matter, reserved_us, reservation, prompt_tokens) VALUES (?, ?, ?, ?, ?, ?)",
    )
    .bind(&request.call_id.0)
    .bind(&request.task)
    .bind(&request.matter)
    .bind(to_micros(issued.reserved_at()))
    .bind(text)
    .bind(estimate)
    .execute(db)
    .await?;
    Ok(())
}

/// Removes calls that have left the longest window.
pub(super) async fn prune_calls(db: &mut SqliteConnection, at: DateTime<Utc>) -> LedgerSqlResult<()> {
    let horizon = to_micros(at).saturating_sub(DAY.num_microseconds().unwrap_or(i64::MAX));
    sqlx::query("DELETE FROM call WHERE reserved_us <= ?").bind(horizon).execute(&mut *db).await?;
    sqlx::query("DELETE FROM account WHERE reserved_us <= ?").bind(horizon).execute(db).await?;
    Ok(())
}

/// Removes calls that are later than `now`.
pub(super) async fn forget_calls_after(db: &mut SqliteConnection, now: DateTime<Utc>) -> LedgerSqlResult<()> {
    sqlx::query("DELETE FROM call WHERE reserved_us > ?").bind(to_micros(now)).execute(&mut *db).await?;
    sqlx::query("DELETE FROM account WHERE reserved_us > ?").bind(to_micros(now)).execute(db).await?;
    Ok(())
}

/// Records how a call ended; `false` if it was settled before.
pub(super) async fn record_call_outcome(
    db: &mut SqliteConnection,
    call: &CallId,
    outcome: &SettlementOutcome,
) -> LedgerSqlResult<bool> {
    if is_settled(db, call).await? {
        return Ok(false);
    }
    let (word, usage) = match outcome {
        SettlementOutcome::Answered { usage } => ("answered", *usage),
        SettlementOutcome::RateLimited { .. } => ("rate_limited", TokenUsage::default()),
        SettlementOutcome::Failed => ("failed", TokenUsage::default()),
        SettlementOutcome::NotSent => ("not_sent", TokenUsage::default()),
    };
    // A call that may have cost something keeps its estimate if nobody said what it used.
    let is_known = usage != TokenUsage::default() || matches!(outcome, SettlementOutcome::RateLimited { .. });
    let count = |tokens| is_known.then(|| i64::try_from(tokens).unwrap_or(i64::MAX));
    let update = "UPDATE call SET outcome = ?, prompt_tokens = COALESCE(?, prompt_tokens), completion_tokens = ? \
        WHERE call_id = ?";
    sqlx::query(update)
        .bind(word)
        .bind(count(usage.prompt_tokens))
        .bind(count(usage.completion_tokens))
        .bind(&call.0)
        .execute(db)
        .await?;
    Ok(true)
}

/// Removes a call that was never sent from every window; `false` if it was settled before.
pub(super) async fn release_call(db: &mut SqliteConnection, call: &CallId) -> LedgerSqlResult<bool> {
    if is_settled(db, call).await? {
        return Ok(false);
    }
    sqlx::query("DELETE FROM call WHERE call_id = ?").bind(&call.0).execute(&mut *db).await?;
    sqlx::query("DELETE FROM account WHERE call_id = ?").bind(&call.0).execute(db).await?;
    Ok(true)
}

/// Whether a call is settled. An unknown call, older than a day or of a lost ledger, counts as not settled.
async fn is_settled(db: &mut SqliteConnection, call: &CallId) -> LedgerSqlResult<bool> {
    let select = "SELECT outcome IS NOT NULL FROM call WHERE call_id = ?";
    let settled: Option<bool> = sqlx::query_scalar(select).bind(&call.0).fetch_optional(db).await?;
    Ok(settled == Some(true))
}

pub(super) fn to_micros(at: DateTime<Utc>) -> i64 {
    at.timestamp_micros()
}

pub(super) fn parse_instant(micros: NullableMicros) -> LedgerSqlResult<Option<DateTime<Utc>>> {
    micros.map(parse_micros).transpose()
}

fn parse_micros(micros: i64) -> LedgerSqlResult<DateTime<Utc>> {
    let at = DateTime::from_timestamp_micros(micros);
    at.ok_or_else(|| sqlx::Error::Decode(format!("{micros} is not a valid instant").into()))
}

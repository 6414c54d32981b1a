//! The status of the ledger, for people. It only reads.
//!
//! It uses the same facts and the same rule that admit a call. So the status shows the refusal that the next
//! reservation would get. `steward status` prints it.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::SqliteConnection;
use steward_domain::steward::clerk::TokenUsage;
use steward_domain::steward::guard::{
    CallCaps, CallId, ClockReading, DAY, ExhaustedPath, ExhaustedShares, GuardFacts, GuardStatus, HOUR, LedgerStatus,
    MINUTE, ReserveRequest, SENDER, STREAM, UNKNOWN_SENDERS, WindowFill, admit_call, read_clock,
};

use super::book::refuse_clock;
use super::rows::{self, LedgerSqlResult, parse_instant, to_micros};
use super::store::LedgerStore;

const FULL_TASKS: &str = "SELECT task, used, edge FROM \
    (SELECT task, reserved_us AS edge, row_number() OVER (PARTITION BY task ORDER BY reserved_us DESC) AS nth, \
     count(*) OVER (PARTITION BY task) AS used FROM call WHERE task IS NOT NULL AND reserved_us > ?) \
    WHERE nth = ? ORDER BY task";
const FULL_MATTERS: &str = "SELECT matter, used, edge FROM \
    (SELECT matter, reserved_us AS edge, row_number() OVER (PARTITION BY matter ORDER BY reserved_us DESC) AS nth, \
     count(*) OVER (PARTITION BY matter) AS used FROM call WHERE matter IS NOT NULL AND reserved_us > ?) \
    WHERE nth = ? ORDER BY matter";

pub(super) async fn read_status(
    store: &mut LedgerStore,
    caps: &CallCaps,
    now: DateTime<Utc>,
) -> LedgerSqlResult<GuardStatus> {
    let mut tx = store.begin_reading().await?;
    let state = rows::load_state(&mut tx).await?;
    let at = state.newest.map_or(now, |newest| newest.max(now));
    let infrastructure = ReserveRequest { call_id: CallId("status".to_owned()), ..ReserveRequest::default() };
    let edges = rows::read_edges(&mut tx, &infrastructure, caps).await?;
    let mut windows = LedgerWindows { db: &mut tx, at };
    let ledger = LedgerStatus {
        minute: windows.read_fill(MINUTE, caps.per_minute, edges.minute).await?,
        hour: windows.read_fill(HOUR, caps.per_hour, edges.hour).await?,
        day: windows.read_fill(DAY, caps.per_day, edges.day).await?,
        full_tasks: windows.list_full_paths(FULL_TASKS, caps.per_task_day).await?,
        full_matters: windows.list_full_paths(FULL_MATTERS, caps.per_matter_day).await?,
        back_off: state.back_off,
        probe: state.probe.clone(),
        day_usage: windows.sum_day_usage().await?,
    };
    tx.rollback().await?;
    let facts = GuardFacts {
        back_off: state.back_off,
        probe: state.probe,
        edges,
        accounts: Vec::new(),
        wiki_calls: Vec::new(),
    };
    let refusal = match read_clock(state.newest, state.doubted_since, now) {
        ClockReading::Sound { at } => admit_call(&infrastructure, caps, &facts, at).err(),
        ClockReading::Doubted { clears_at, .. } => Some(refuse_clock(state.newest, now, clears_at)),
        ClockReading::Restarted => None,
    };
    Ok(GuardStatus { refusal, ledger: Some(ledger) })
}

/// The streams and senders that have used up their share, in the windows that end now.
pub(super) async fn find_exhausted_shares(
    store: &mut LedgerStore,
    caps: &CallCaps,
    now: DateTime<Utc>,
) -> LedgerSqlResult<ExhaustedShares> {
    let mut tx = store.begin_reading().await?;
    let at = rows::load_state(&mut tx).await?.newest.map_or(now, |newest| newest.max(now));
    let (mut spent, mut unknown_sources) = (ExhaustedShares::default(), BTreeSet::new());
    for (kind, windows, names) in [
        (STREAM, caps.stream_limits(true), &mut spent.streams),
        (STREAM, caps.stream_limits(false), &mut spent.unknown_senders_of),
        (UNKNOWN_SENDERS, caps.unknown_source_limits(), &mut unknown_sources),
        (SENDER, caps.sender_limits(), &mut spent.senders),
    ] {
        for (width, limit) in windows {
            let start = at.checked_sub_signed(width).unwrap_or(DateTime::<Utc>::MIN_UTC);
            names.extend(rows::list_exhausted_accounts(&mut tx, kind, start, limit).await?);
        }
    }
    tx.rollback().await?;
    spent.all_unknown_senders = !unknown_sources.is_empty();
    Ok(spent)
}

/// Counts calls in the windows that end at `at`.
struct LedgerWindows<'c> {
    db: &'c mut SqliteConnection,
    at: DateTime<Utc>,
}

impl LedgerWindows<'_> {
    async fn read_fill(
        &mut self,
        width: TimeDelta,
        cap: u32,
        edge: Option<DateTime<Utc>>,
    ) -> LedgerSqlResult<WindowFill> {
        let count = "SELECT count(*) FROM call WHERE reserved_us > ?";
        let used = sqlx::query_scalar(count).bind(self.window_start(width)).fetch_one(&mut *self.db).await?;
        Ok(WindowFill { used, cap, next_free: self.next_free(width, edge) })
    }

    async fn list_full_paths(&mut self, select: &'static str, cap: u32) -> LedgerSqlResult<Vec<ExhaustedPath>> {
        let rows: Vec<(String, u32, i64)> =
            sqlx::query_as(select).bind(self.window_start(DAY)).bind(cap).fetch_all(&mut *self.db).await?;
        let full = rows.into_iter().map(|(path, used, edge)| {
            let next_free = self.next_free(DAY, parse_instant(Some(edge))?);
            Ok(ExhaustedPath { path, fill: WindowFill { used, cap, next_free } })
        });
        full.collect()
    }

    async fn sum_day_usage(&mut self) -> LedgerSqlResult<TokenUsage> {
        let sum = "SELECT total(prompt_tokens), total(completion_tokens) FROM call \
            WHERE reserved_us > ? AND completion_tokens IS NOT NULL";
        let (prompt, completion): (f64, f64) =
            sqlx::query_as(sum).bind(self.window_start(DAY)).fetch_one(&mut *self.db).await?;
        Ok(TokenUsage { prompt_tokens: prompt as u64, completion_tokens: completion as u64 })
    }

    fn window_start(&self, width: TimeDelta) -> i64 {
        to_micros(self.at.checked_sub_signed(width).unwrap_or(DateTime::<Utc>::MIN_UTC))
    }

    fn next_free(&self, width: TimeDelta, edge: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
        edge.and_then(|edge| edge.checked_add_signed(width)).filter(|leaves| self.at < *leaves)
    }
}

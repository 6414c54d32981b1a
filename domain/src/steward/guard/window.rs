//! The guard's decision, pure: may this call go now, and if not, which cap says so until when.
//!
//! A window of width `w` at the instant `t` is `(t - w, t]`. Recorded events never go back in
//! time (see [`read_clock`]), so a window is full exactly while its cap-th newest event, its
//! *edge*, lies inside; then no window slid over the events ever holds more than its cap.
//!
//! Must not read a clock, nor know how events are kept. What is granted here becomes a
//! reservation when the ledger has written it down.

use chrono::{DateTime, TimeDelta, Utc};

use super::BackOff;
use super::CLOCK_TOLERANCE;
use super::CallCaps;
use super::CallId;
use super::CallQuota;
use super::DAY;
use super::GuardCap;
use super::GuardRefusal;
use super::HOUR;
use super::MINUTE;
use super::PROBE_LEASE;
use super::Probe;
use super::Reservation;
use super::ReserveRequest;
use super::format_calls;

/// What the ledger has recorded, as far as one request needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardFacts {
    pub back_off: Option<BackOff>,
    pub probe: Option<Probe>,
    pub edges: WindowEdges,
    /// The request's [`accounts`](ReserveRequest::accounts), with their edges.
    pub accounts: Vec<Vec<CallQuota>>,
}

/// The cap-th newest event of each window, if there are that many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowEdges {
    pub task: Option<DateTime<Utc>>,
    pub matter: Option<DateTime<Utc>>,
    pub minute: Option<DateTime<Utc>>,
    pub hour: Option<DateTime<Utc>>,
    pub day: Option<DateTime<Utc>>,
}

/// A yes that is not written down yet. Only [`admit_call`] makes one.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct CallGrant {
    at: DateTime<Utc>,
    probe: bool,
}

impl CallGrant {
    /// The instant the call counts at.
    #[must_use]
    pub fn counted_at(&self) -> DateTime<Utc> {
        self.at
    }

    /// The call is to be the probe after a back-off.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.probe
    }

    /// The token for the call; for the ledger alone, in the transaction that records it.
    #[must_use]
    pub fn into_reservation(self, call_id: CallId) -> Reservation {
        Reservation { call_id, reserved_at: self.at, probe: self.probe }
    }
}

/// Judges one request at `at`, the instant that [`read_clock`] gave.
///
/// Order of checks: 429 back-off (then its probe), task, matter, minute, hour, day, shares.
///
/// # Errors
/// The first cap that refuses, with the instant it clears.
pub fn admit_call(
    request: &ReserveRequest,
    caps: &CallCaps,
    facts: &GuardFacts,
    at: DateTime<Utc>,
) -> Result<CallGrant, GuardRefusal> {
    let probe = match &facts.back_off {
        None => false,
        Some(back_off) => {
            check_probe(back_off, facts.probe.as_ref(), at)?;
            true
        }
    };
    let edges = &facts.edges;
    if let Some(task) = &request.task {
        let spent = || format!("{task} has had its {} of the last 24 hours", format_calls(caps.per_task_day));
        check_window(GuardCap::Task, edges.task, DAY, at, spent)?;
    }
    if let Some(matter) = &request.matter {
        let spent = || format!("{matter} has had its {} of the last 24 hours", format_calls(caps.per_matter_day));
        check_window(GuardCap::Matter, edges.matter, DAY, at, spent)?;
    }
    let spent = |cap, window| move || format!("the vault has had its {} of the last {window}", format_calls(cap));
    check_window(GuardCap::Minute, edges.minute, MINUTE, at, spent(caps.per_minute, "minute"))?;
    check_window(GuardCap::Hour, edges.hour, HOUR, at, spent(caps.per_hour, "hour"))?;
    check_window(GuardCap::Day, edges.day, DAY, at, spent(caps.per_day, "24 hours"))?;
    check_shares(&facts.accounts, at)?;
    Ok(CallGrant { at, probe })
}

/// One account with room is enough; otherwise the one that has room first is named.
fn check_shares(accounts: &[Vec<CallQuota>], at: DateTime<Utc>) -> Result<(), GuardRefusal> {
    let mut first: Option<GuardRefusal> = None;
    for account in accounts {
        let full = account.iter().filter_map(|q| check_window(q.cap, q.edge, q.width, at, || q.spent.clone()).err());
        let Some(full) = full.max_by_key(|refusal| refusal.clears_at) else { return Ok(()) };
        if first.as_ref().is_none_or(|first| full.clears_at < first.clears_at) {
            first = Some(full);
        }
    }
    first.map_or(Ok(()), Err)
}

fn check_probe(back_off: &BackOff, probe: Option<&Probe>, at: DateTime<Utc>) -> Result<(), GuardRefusal> {
    if at < back_off.until {
        return Err(GuardRefusal {
            cap: GuardCap::BackOff,
            clears_at: Some(back_off.until),
            reason: "the provider said 429 (too many requests); nothing is sent before its deadline".to_owned(),
        });
    }
    match probe.map(|probe| add_saturating(probe.since, PROBE_LEASE)) {
        Some(lease_ends) if at < lease_ends => Err(GuardRefusal {
            cap: GuardCap::ProbePending,
            clears_at: Some(lease_ends),
            reason: "one probe is out after a 429; the others wait for its answer".to_owned(),
        }),
        Some(_) | None => Ok(()),
    }
}

fn check_window(
    cap: GuardCap,
    edge: Option<DateTime<Utc>>,
    width: TimeDelta,
    at: DateTime<Utc>,
    spent: impl Fn() -> String,
) -> Result<(), GuardRefusal> {
    match edge.map(|edge| add_saturating(edge, width)) {
        Some(leaves) if at < leaves => Err(GuardRefusal { cap, clears_at: Some(leaves), reason: spent() }),
        Some(_) | None => Ok(()),
    }
}

/// What the ledger makes of a caller's `now`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockReading {
    /// Believed; the call counts at `at`, which is `now` or the newest event if that is later.
    Sound { at: DateTime<Utc> },
    /// `now` lies before the newest event: no calls until `clears_at`. `since` is to be kept.
    Doubted { since: DateTime<Utc>, clears_at: DateTime<Utc> },
    /// A whole day was refused in doubt: the present is believed again, and whatever is stamped
    /// after it was stamped by a clock that stood too far ahead.
    Restarted,
}

/// Reads the callers' clock against the newest recorded event and the kept start of a doubt.
///
/// A step back of at most [`CLOCK_TOLERANCE`] is levelled out: events never go back in time. A
/// larger one is doubted until the clock has caught up. A clock that once stood far ahead would
/// so close the guard for years; therefore a doubt lasts at most [`DAY`] by the clock that is
/// now in force: no call went out in all that time, so every window is empty in truth.
#[must_use]
pub fn read_clock(
    newest: Option<DateTime<Utc>>,
    doubted_since: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
) -> ClockReading {
    let Some(newest) = newest else {
        return ClockReading::Sound { at: now };
    };
    let caught_up = subtract_saturating(newest, CLOCK_TOLERANCE);
    if now >= caught_up {
        return ClockReading::Sound { at: now.max(newest) };
    }
    let since = keep_notice_time(doubted_since, now);
    let day_over = add_saturating(since, DAY);
    if now >= day_over {
        return ClockReading::Restarted;
    }
    ClockReading::Doubted { since, clears_at: caught_up.min(day_over) }
}

/// When the loss of a ledger that was noticed at `noticed_at` is over, and since when it counts.
///
/// Returns `(noticed_at, clears_at)`. A clock that since jumped back starts the day anew, or a
/// loss noticed by a clock far ahead would hold for years.
#[must_use]
pub fn loss_clears_at(noticed_at: DateTime<Utc>, now: DateTime<Utc>) -> (DateTime<Utc>, DateTime<Utc>) {
    let noticed_at = keep_notice_time(Some(noticed_at), now);
    (noticed_at, add_saturating(noticed_at, DAY))
}

/// The back-off and the probe after [`ClockReading::Restarted`]: stamps after `now` are moved.
///
/// A back-off keeps its length from now on; a probe is forgotten.
#[must_use]
pub fn shift_after_restart(
    back_off: Option<BackOff>,
    probe: Option<Probe>,
    now: DateTime<Utc>,
) -> (Option<BackOff>, Option<Probe>) {
    let back_off = back_off.map(|old| {
        if old.set_at <= now {
            return old;
        }
        BackOff { set_at: now, until: add_saturating(now, old.until - old.set_at) }
    });
    (back_off, probe.filter(|probe| probe.since <= now))
}

fn keep_notice_time(kept: Option<DateTime<Utc>>, now: DateTime<Utc>) -> DateTime<Utc> {
    kept.filter(|kept| now >= subtract_saturating(*kept, CLOCK_TOLERANCE)).unwrap_or(now)
}

fn add_saturating(instant: DateTime<Utc>, by: TimeDelta) -> DateTime<Utc> {
    instant.checked_add_signed(by).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

fn subtract_saturating(instant: DateTime<Utc>, by: TimeDelta) -> DateTime<Utc> {
    instant.checked_sub_signed(by).unwrap_or(DateTime::<Utc>::MIN_UTC)
}

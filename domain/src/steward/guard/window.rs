//! The guard's decision: whether a call may go now, and if not, which cap refuses it until when.
//!
//! A window of width `w` at the instant `t` is `(t - w, t]`. Recorded events never go back in
//! time (see [`read_clock`]). So a window is full exactly while its cap-th newest event, its
//! *edge*, lies inside. Then no sliding window ever holds more events than its cap.
//!
//! This module must not read a clock or know how events are stored. A grant becomes a
//! reservation when the ledger has recorded it.

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
use crate::fleet::provider_gate::SendDeadline;

/// The recorded facts that one request needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardFacts {
    pub back_off: Option<BackOff>,
    pub probe: Option<Probe>,
    pub edges: WindowEdges,
    /// The request's [`account_quotas`](ReserveRequest::account_quotas), with their edges.
    pub accounts: Vec<Vec<CallQuota>>,
    /// The calls about the request's wiki, oldest first, each with its instant and its tokens.
    pub wiki_calls: Vec<(DateTime<Utc>, u64)>,
}

/// The cap-th newest event of each window, if the window has that many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowEdges {
    pub task: Option<DateTime<Utc>>,
    pub matter: Option<DateTime<Utc>>,
    pub minute: Option<DateTime<Utc>>,
    pub hour: Option<DateTime<Utc>>,
    pub day: Option<DateTime<Utc>>,
}

/// A permission that is not recorded yet. Only [`admit_call`] and the rule of a fleet's gate make one.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct CallGrant {
    at: DateTime<Utc>,
    probe: bool,
}

impl CallGrant {
    pub(crate) fn new(at: DateTime<Utc>, probe: bool) -> Self {
        Self { at, probe }
    }

    /// The instant at which the call counts.
    #[must_use]
    pub fn counted_at(&self) -> DateTime<Utc> {
        self.at
    }

    /// Whether the call is the probe after a back-off.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.probe
    }

    /// Makes the reservation, with the gate's deadline in a fleet. Only the ledger may call this, in the transaction that
    /// records the call.
    #[must_use]
    pub fn into_reservation(self, call_id: CallId, deadline: Option<SendDeadline>) -> Reservation {
        Reservation { call_id, reserved_at: self.at, probe: self.probe, deadline }
    }
}

/// Decides on one request at `at`, the instant that [`read_clock`] returned.
///
/// The order of checks is: 429 back-off (then its probe), task, matter, minute, hour, day, shares, tokens of a wiki.
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
        let reason = || format!("{task} has used its {} of the last 24 hours", format_calls(caps.per_task_day));
        check_window(GuardCap::Task, edges.task, DAY, at, reason)?;
    }
    if let Some(matter) = &request.matter {
        let reason = || format!("{matter} has used its {} of the last 24 hours", format_calls(caps.per_matter_day));
        check_window(GuardCap::Matter, edges.matter, DAY, at, reason)?;
    }
    let reason = |cap, window| move || format!("the vault has used its {} of the last {window}", format_calls(cap));
    check_window(GuardCap::Minute, edges.minute, MINUTE, at, reason(caps.per_minute, "minute"))?;
    check_window(GuardCap::Hour, edges.hour, HOUR, at, reason(caps.per_hour, "hour"))?;
    check_window(GuardCap::Day, edges.day, DAY, at, reason(caps.per_day, "24 hours"))?;
    check_shares(&facts.accounts, at)?;
    if let Some(wiki) = &request.wiki {
        check_wiki_tokens(wiki, request.tokens, caps.wiki_tokens_per_day, &facts.wiki_calls, at)?;
    }
    Ok(CallGrant::new(at, probe))
}

/// One account with room is enough. Otherwise the refusal names the account that has room first.
fn check_shares(accounts: &[Vec<CallQuota>], at: DateTime<Utc>) -> Result<(), GuardRefusal> {
    let mut first: Option<GuardRefusal> = None;
    for account in accounts {
        let full = account.iter().filter_map(|q| check_window(q.cap, q.edge, q.width, at, || q.reason.clone()).err());
        let Some(full) = full.max_by_key(|refusal| refusal.clears_at) else { return Ok(()) };
        if first.as_ref().is_none_or(|first| full.clears_at < first.clears_at) {
            first = Some(full);
        }
    }
    first.map_or(Ok(()), Err)
}

/// The tokens of a wiki's calls in the last day, with those that this one may use, fit into the cap.
fn check_wiki_tokens(
    wiki: &str,
    tokens: u64,
    cap: u64,
    calls: &[(DateTime<Utc>, u64)],
    at: DateTime<Utc>,
) -> Result<(), GuardRefusal> {
    let start = subtract_saturating(at, DAY);
    let calls = calls.iter().filter(|(reserved, _)| *reserved > start);
    let mut used = calls.clone().fold(tokens, |sum, (_, tokens)| sum.saturating_add(*tokens));
    if used <= cap {
        return Ok(());
    }
    let mut clears_at = None;
    for (reserved, tokens) in calls {
        used -= tokens;
        if used <= cap {
            clears_at = Some(add_saturating(*reserved, DAY));
            break;
        }
    }
    let reason = match clears_at {
        Some(_) => format!("the wiki {wiki} has used its {cap} tokens of the last 24 hours"),
        None => format!(
            "one call about the wiki {wiki} may take {tokens} tokens, more than its {cap} of 24 hours: raise \
             STEWARD_CAPS_WIKI_TOKENS_PER_DAY"
        ),
    };
    Err(GuardRefusal { cap: GuardCap::WikiTokens, clears_at, reason })
}

pub(crate) fn check_probe(back_off: &BackOff, probe: Option<&Probe>, at: DateTime<Utc>) -> Result<(), GuardRefusal> {
    if at < back_off.until {
        return Err(GuardRefusal {
            cap: GuardCap::BackOff,
            clears_at: Some(back_off.until),
            reason: "the provider answered 429 (too many requests); nothing is sent before its deadline".to_owned(),
        });
    }
    match probe.map(|probe| add_saturating(probe.since, PROBE_LEASE)) {
        Some(lease_ends) if at < lease_ends => Err(GuardRefusal {
            cap: GuardCap::ProbePending,
            clears_at: Some(lease_ends),
            reason: "one call is testing the provider after a 429; the others wait for its outcome".to_owned(),
        }),
        Some(_) | None => Ok(()),
    }
}

pub(crate) fn check_window(
    cap: GuardCap,
    edge: Option<DateTime<Utc>>,
    width: TimeDelta,
    at: DateTime<Utc>,
    reason: impl Fn() -> String,
) -> Result<(), GuardRefusal> {
    match edge.map(|edge| add_saturating(edge, width)) {
        Some(clears_at) if at < clears_at => Err(GuardRefusal { cap, clears_at: Some(clears_at), reason: reason() }),
        Some(_) | None => Ok(()),
    }
}

/// How the ledger treats a caller's `now`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockReading {
    /// The clock is accepted. The call counts at `at`: `now`, or the newest event if that is later.
    Sound { at: DateTime<Utc> },
    /// `now` lies before the newest event: no calls until `clears_at`. The ledger must keep `since`.
    Doubted { since: DateTime<Utc>, clears_at: DateTime<Utc> },
    /// Calls were refused in doubt for a whole day. Now the clock is accepted again. Later timestamps
    /// came from a clock that was far ahead.
    Restarted,
}

/// Compares the caller's clock with the newest recorded event and the stored start of a doubt.
///
/// A step back of at most [`CLOCK_TOLERANCE`] is evened out, so that events never go back in time. A
/// larger one is doubted until the clock has caught up. A clock that was once far ahead would then
/// close the guard for years. So a doubt lasts at most [`DAY`] by the present clock. No call
/// was made in all that time, so every window is really empty.
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

/// Computes since when the loss of a ledger counts, and when it is over.
///
/// Returns `(noticed_at, clears_at)`. If the clock has jumped back since, the day starts again. Otherwise a
/// loss that was noticed by a clock far ahead would last for years.
#[must_use]
pub fn loss_clears_at(noticed_at: DateTime<Utc>, now: DateTime<Utc>) -> (DateTime<Utc>, DateTime<Utc>) {
    let noticed_at = keep_notice_time(Some(noticed_at), now);
    (noticed_at, add_saturating(noticed_at, DAY))
}

/// The back-off and the probe after [`ClockReading::Restarted`], without timestamps after `now`.
///
/// Such a back-off starts again at `now` with the same length. Such a probe is forgotten.
pub(super) fn shift_after_restart(
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

pub(crate) fn add_saturating(instant: DateTime<Utc>, by: TimeDelta) -> DateTime<Utc> {
    instant.checked_add_signed(by).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

fn subtract_saturating(instant: DateTime<Utc>, by: TimeDelta) -> DateTime<Utc> {
    instant.checked_sub_signed(by).unwrap_or(DateTime::<Utc>::MIN_UTC)
}

//! The rate guard's words: caps, requests, reservations, refusals, settlements, status.
//!
//! A clerk is never called without a [`Reservation`], and only the ledger makes one: it is the
//! end of a chain `Facts → admit → Grant → Reservation`, and the ledger alone gathers facts.
//! All types travel as JSON that a person reads, so words are whole and times are RFC 3339.
//!
//! Nothing here reads a clock or keeps state: the present is an argument (`now`), and what was
//! recorded comes in as [`GuardFacts`]. The ledger itself is `steward_vault::steward::guard`.

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::steward::clerk::TokenUsage;

mod retry_after;
mod share;
#[cfg(test)]
mod tests;
mod window;

pub use retry_after::{LONGEST_BACK_OFF, UNSAID_BACK_OFF, back_off_for, parse_retry_after};
pub use share::{AccountKey, CallQuota, CallSource, ExhaustedShares, SENDER, STRANGERS, STREAM};
pub use window::{
    CallGrant, ClockReading, GuardFacts, WindowEdges, admit_call, loss_clears_at, read_clock, shift_after_restart,
};

/// One minute, the shortest window.
pub const MINUTE: TimeDelta = TimeDelta::minutes(1);
/// One hour.
pub const HOUR: TimeDelta = TimeDelta::hours(1);
/// One day: the longest window, and so how long the past matters at all.
pub const DAY: TimeDelta = TimeDelta::days(1);

/// How far `now` may lie before the newest recorded event and still be believed: 10 s.
///
/// Longer than a caller can wait for the ledger's lock (5 s) plus a usual step of a time
/// service; an instant inside it counts as the newest event's. Beyond it the clock is doubted.
pub const CLOCK_TOLERANCE: TimeDelta = TimeDelta::seconds(10);

/// How long a probe may be out before another may go in its place: 2 min.
///
/// Longer than a clerk call may take, so that it ends only for a probe whose caller died.
pub const PROBE_LEASE: TimeDelta = TimeDelta::minutes(2);

/// How many calls fit into each sliding window, all at least 1.
///
/// An infrastructure call (no task, no matter) counts against the tenant's three alone, and the reading of
/// events against the shares of them that [`share`] tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallCaps {
    /// Calls of the whole tenant in any 60 s. Default 60.
    pub per_minute: u32,
    /// Calls of the whole tenant in any 60 min. Default 600.
    pub per_hour: u32,
    /// Calls of the whole tenant in any 24 h. Default 6000.
    pub per_day: u32,
    /// Calls about one task in any 24 h. Default 6.
    pub per_task_day: u32,
    /// Calls about one matter in any 24 h. Default 50.
    pub per_matter_day: u32,
    /// How much of the tenant's windows the reading of events may take: 1 to 100 %. Default 50.
    pub extraction_percent: u32,
    /// How much of its hour and day the events of one stream may cost: 1 to 100 %; those of senders nobody
    /// knows half of that. Default 40.
    pub stream_percent: u32,
    /// How much of its hour and day the events of one sender may cost: 1 to 100 %. Default 10.
    pub sender_percent: u32,
}

impl Default for CallCaps {
    fn default() -> Self {
        Self {
            per_minute: 60,
            per_hour: 600,
            per_day: 6000,
            per_task_day: 6,
            per_matter_day: 50,
            extraction_percent: 50,
            stream_percent: 40,
            sender_percent: 10,
        }
    }
}

/// Idempotency key of one clerk call, made by the workflow.
///
/// Unique among the calls of a day; a retry of the same step uses the same one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub String);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Asks for one clerk call.
///
/// `None` for task and matter is an infrastructure call: exempt from the caps per task and per matter,
/// not from the tenant's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReserveRequest {
    pub call_id: CallId,
    /// Path of the task the call is about, as in `task/<slug>.md`.
    #[serde(default)]
    pub task: Option<String>,
    /// Path of the matter the call is about, as in `matter/<slug>.md`.
    #[serde(default)]
    pub matter: Option<String>,
    /// The stream whose event is read; a steward's own call reads none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// Whose words the call carries, each once: on whose account it goes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub speakers: Vec<CallSource>,
}

/// What the ledger said to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ReserveOutcome {
    /// Go ahead, once, and settle it.
    Reserved(Reservation),
    /// No call now.
    Refused(GuardRefusal),
}

/// Leave to make one clerk call; it is recorded in the ledger before anyone holds it.
///
/// Made by the ledger alone, through [`CallGrant::into_reservation`]; a test of the ledger's crate holds
/// that no other code makes one. It can be read back from JSON, because it travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reservation {
    call_id: CallId,
    reserved_at: DateTime<Utc>,
    probe: bool,
}

impl Reservation {
    /// The call it is for.
    #[must_use]
    pub fn call_id(&self) -> &CallId {
        &self.call_id
    }

    /// The instant it counts at, in microseconds; never before any earlier reservation's.
    #[must_use]
    pub fn reserved_at(&self) -> DateTime<Utc> {
        self.reserved_at
    }

    /// It is the one call that finds out whether the provider answers again after a 429.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.probe
    }
}

/// Why there is no call now; every refusal names its cap and when it clears.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardRefusal {
    pub cap: GuardCap,
    /// The instant this cap stops refusing; `None` when a person has to mend something first.
    pub clears_at: Option<DateTime<Utc>>,
    /// One sentence for a person; names the file and the mend where there is one.
    pub reason: String,
}

/// What refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardCap {
    /// The provider said 429 and its deadline has not passed.
    BackOff,
    /// The deadline has passed and a probe is out.
    ProbePending,
    /// This task's calls of a day.
    Task,
    /// This matter's calls of a day.
    Matter,
    /// The tenant's calls of a minute.
    Minute,
    /// The tenant's calls of an hour.
    Hour,
    /// The tenant's calls of a day.
    Day,
    /// What the reading of events may take of the tenant's calls.
    Extraction,
    /// What the events of this stream may cost, or those of its senders that nobody knows.
    Stream,
    /// What the events of this sender may cost.
    Sender,
    /// Every source of the signals in question has had its share of the judgements.
    Source,
    /// The clock stands before what is already recorded.
    Clock,
    /// The ledger cannot be read or written.
    LedgerUnreadable,
    /// The ledger is gone, and what was called today is not known.
    LedgerLost,
    /// Someone pulled the brake. The ledger never says this; its callers do.
    Stopped,
}

/// Tells the ledger how a reserved call ended. A second settlement of one call changes nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settlement {
    pub call_id: CallId,
    pub outcome: SettlementOutcome,
}

/// How a reserved call ended, as far as the guard cares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SettlementOutcome {
    /// The provider answered, usefully or not.
    Answered { usage: TokenUsage },
    /// The provider said 429; seconds until it may be asked again, if it said so sensibly.
    RateLimited { retry_after_seconds: Option<f64> },
    /// No answer came: time-out, connection, a server's error.
    Failed,
    /// No request left the process: the reservation is given back.
    NotSent,
}

/// A hard back-off: no call before `until`, then one probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackOff {
    /// When the 429 was recorded.
    pub set_at: DateTime<Utc>,
    /// The deadline; at most 7 days after `set_at`. An operator may move it to the present.
    pub until: DateTime<Utc>,
}

/// The one call that goes first after a back-off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    pub call_id: CallId,
    /// When it was reserved; [`PROBE_LEASE`] later another may go.
    pub since: DateTime<Utc>,
}

/// How the guard stands, for people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuardStatus {
    /// What an infrastructure call would be told now; `None` means it would go through.
    pub refusal: Option<GuardRefusal>,
    /// `None` when the ledger cannot be read; `refusal` then says why.
    pub ledger: Option<LedgerStatus>,
}

/// What a readable ledger holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LedgerStatus {
    pub minute: WindowFill,
    pub hour: WindowFill,
    pub day: WindowFill,
    /// Tasks that have had all their calls of a day, by path.
    pub full_tasks: Vec<ExhaustedPath>,
    /// Matters that have had all their calls of a day, by path.
    pub full_matters: Vec<ExhaustedPath>,
    /// Set from a 429 until a probe was answered.
    pub back_off: Option<BackOff>,
    pub probe: Option<Probe>,
    /// Tokens of the last day's settled calls.
    pub day_usage: TokenUsage,
}

/// `1 call`, `6 calls`.
fn format_calls(cap: u32) -> String {
    if cap == 1 { "1 call".to_owned() } else { format!("{cap} calls") }
}

/// How full one window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowFill {
    pub used: u32,
    pub cap: u32,
    /// When a full window has room again; `None` means it has room now.
    pub next_free: Option<DateTime<Utc>>,
}

/// A task or matter with no calls left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExhaustedPath {
    pub path: String,
    pub fill: WindowFill,
}

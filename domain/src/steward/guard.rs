//! The rate guard's types: caps, requests, reservations, refusals, settlements, status.
//!
//! A clerk must never be called without a [`Reservation`]. Only the ledger makes one. It gathers [`GuardFacts`],
//! [`admit_call`] turns them into a [`CallGrant`], and the ledger turns the recorded grant into a [`Reservation`].
//! All types travel as JSON that a person reads, so words are written out and times are RFC 3339.
//!
//! Nothing here reads a clock or keeps state: the present is an argument (`now`). The ledger itself is
//! `steward_vault::steward::guard`.

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::fleet::provider_gate::SendDeadline;
use crate::steward::clerk::TokenUsage;

mod retry_after;
mod share;
mod state;
#[cfg(test)]
mod tests;
mod window;

pub use retry_after::{DEFAULT_BACK_OFF, LONGEST_BACK_OFF, back_off_for, parse_retry_after};
pub use share::{AccountKey, CallQuota, CallSource, ExhaustedShares, SENDER, STREAM, UNKNOWN_SENDERS, WIKI_TOKENS};
pub use state::GuardState;
pub use window::{CallGrant, ClockReading, GuardFacts, WindowEdges, admit_call, loss_clears_at, read_clock};
pub(crate) use window::{add_saturating, check_probe, check_window};

/// One minute, the shortest window.
pub const MINUTE: TimeDelta = TimeDelta::minutes(1);
/// One hour.
pub const HOUR: TimeDelta = TimeDelta::hours(1);
/// One day: the longest window. Older calls no longer matter.
pub const DAY: TimeDelta = TimeDelta::days(1);

/// How far `now` may lie before the newest recorded event and still be accepted: 10 s.
///
/// It is longer than a caller can wait for the ledger's lock (5 s) plus a usual correction by a time service.
/// Within it, `now` counts as the newest event's instant. Beyond it, the clock is doubted.
pub const CLOCK_TOLERANCE: TimeDelta = TimeDelta::seconds(10);

/// How long a probe may be unsettled before another one replaces it: 2 min.
///
/// It is longer than a clerk call may take, so it ends only for a probe whose caller died.
pub const PROBE_LEASE: TimeDelta = TimeDelta::minutes(2);

/// How many calls fit into each sliding window. Each cap is at least 1.
///
/// An infrastructure call (no task, no matter) counts only against the tenant's three caps. The extraction of events
/// counts against shares of those as well (see `share`).
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
    /// The share of the tenant's windows that the extraction of events may use: 1 to 100 %. Default 50.
    pub extraction_percent: u32,
    /// The share of the tenant's hour and day that the events of one stream may use: 1 to 100 %. Its unknown senders
    /// may use half of that. Default 40.
    pub stream_percent: u32,
    /// The share of the tenant's hour and day that the events of one sender may use: 1 to 100 %. Default 10.
    pub sender_percent: u32,
    /// The share of the tenant's hour and day that the wikis may use: 1 to 100 %. Default 30.
    pub wiki_percent: u32,
    /// The tokens of the calls about one wiki in any 24 h, with those of a call that has not ended as it was estimated.
    /// Default 3,000,000.
    pub wiki_tokens_per_day: u64,
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
            wiki_percent: 30,
            wiki_tokens_per_day: 3_000_000,
        }
    }
}

/// The idempotency key of one clerk call, made by the workflow.
///
/// It is unique among the calls of a day. A retry of the same step uses the same key.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub String);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A request for one clerk call.
///
/// Without a task and a matter it is an infrastructure call. That one is exempt from the caps per task and per
/// matter, but not from the tenant's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReserveRequest {
    pub call_id: CallId,
    /// The path of the task that the call is about, as in `task/<slug>.md`.
    #[serde(default)]
    pub task: Option<String>,
    /// The path of the matter that the call is about, as in `matter/<slug>.md`.
    #[serde(default)]
    pub matter: Option<String>,
    /// The stream of the event that is extracted. A steward's call has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// The wiki whose pages the call writes or checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wiki: Option<String>,
    /// The sources whose words the call carries, each once. The call counts on their accounts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<CallSource>,
    /// The most tokens that the call may use. The gate of a fleet counts them, and the cap of a wiki.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tokens: u64,
}

fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

/// Estimates the tokens of a text from its bytes: one for three, more than the usual four characters of English.
#[must_use]
pub fn estimate_tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(3)).unwrap_or(u64::MAX)
}

/// The ledger's reply to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ReserveOutcome {
    /// The caller may make one call and must settle it.
    Reserved(Reservation),
    /// No call now.
    Refused(GuardRefusal),
}

/// The permission to make one clerk call. The ledger records it before it returns it.
///
/// Only the ledger makes one, through [`CallGrant::into_reservation`]. A test of the ledger's crate ensures
/// that no other code does. It can be read back from JSON, because it travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reservation {
    call_id: CallId,
    reserved_at: DateTime<Utc>,
    probe: bool,
    /// Set by the gate of a fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadline: Option<SendDeadline>,
}

impl Reservation {
    /// The call that it permits.
    #[must_use]
    pub fn call_id(&self) -> &CallId {
        &self.call_id
    }

    /// The instant at which it counts, in microseconds. It is never before that of an earlier reservation.
    #[must_use]
    pub fn reserved_at(&self) -> DateTime<Utc> {
        self.reserved_at
    }

    /// Whether it is the one call that tests if the provider answers again after a 429.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.probe
    }

    /// When the call must have begun to connect; `None` if it may wait.
    #[must_use]
    pub fn deadline(&self) -> Option<&SendDeadline> {
        self.deadline.as_ref()
    }
}

/// Why there is no call now. Every refusal names its cap and when it clears.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardRefusal {
    pub cap: GuardCap,
    /// The instant at which this cap stops refusing, or `None` if a person has to fix something first.
    pub clears_at: Option<DateTime<Utc>>,
    /// One sentence for a person. It names the file and the fix if there is one.
    pub reason: String,
}

/// The cap that refused a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardCap {
    /// The provider answered 429, and its deadline has not passed.
    BackOff,
    /// The deadline has passed, and the probe is not settled yet.
    ProbePending,
    /// The calls of this task in a day.
    Task,
    /// The calls of this matter in a day.
    Matter,
    /// The tenant's calls in a minute.
    Minute,
    /// The tenant's calls in an hour.
    Hour,
    /// The tenant's calls in a day.
    Day,
    /// The extraction's share of the tenant's calls.
    Extraction,
    /// The share of this stream's events, or of its unknown senders.
    Stream,
    /// The share of this sender's events.
    Sender,
    /// The share of the wikis.
    Wiki,
    /// The tokens of this wiki in a day.
    WikiTokens,
    /// Every source of the fresh signals has used its share of the judgements.
    Source,
    /// The clock is behind the newest recorded event.
    Clock,
    /// The ledger cannot be read or written.
    LedgerUnreadable,
    /// The ledger is missing, so the number of today's calls is unknown.
    LedgerLost,
    /// An operator stopped the vault. The ledger never gives this reason; its callers do.
    Stopped,
    /// A window of the provider's account, which all tenants of a fleet share.
    Provider,
    /// The tenant's share of such a window, while another tenant waits for it.
    ProviderShare,
    /// The fleet's gate gives no answer, has lost calls, or is not set up.
    Gate,
}

/// Reports to the ledger how a reserved call ended. A second settlement of one call changes nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settlement {
    pub call_id: CallId,
    pub outcome: SettlementOutcome,
}

/// How a reserved call ended, as far as it concerns the guard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SettlementOutcome {
    /// The provider answered, usefully or not.
    Answered { usage: TokenUsage },
    /// The provider answered 429, perhaps with the seconds to wait.
    RateLimited { retry_after_seconds: Option<f64> },
    /// No answer came: time-out, connection, or an error of the server.
    Failed,
    /// No request left the process. The reservation is released.
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

/// The first call after a back-off. All other calls wait for its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    pub call_id: CallId,
    /// When it was reserved. After [`PROBE_LEASE`] another probe may replace it.
    pub since: DateTime<Utc>,
}

/// The guard's status, for people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuardStatus {
    /// The refusal that an infrastructure call would get now. `None` means that it would be admitted.
    pub refusal: Option<GuardRefusal>,
    /// `None` if the ledger cannot be read. Then `refusal` says why.
    pub ledger: Option<LedgerStatus>,
}

/// The contents of a readable ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LedgerStatus {
    pub minute: WindowFill,
    pub hour: WindowFill,
    pub day: WindowFill,
    /// The tasks that have used all their calls of a day, by path.
    pub full_tasks: Vec<ExhaustedPath>,
    /// The matters that have used all their calls of a day, by path.
    pub full_matters: Vec<ExhaustedPath>,
    /// Set from a 429 until a probe is answered.
    pub back_off: Option<BackOff>,
    pub probe: Option<Probe>,
    /// The tokens of the last day's settled calls.
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
    /// When a full window has room again. `None` means that it has room now.
    pub next_free: Option<DateTime<Utc>>,
}

/// A task or matter without calls left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExhaustedPath {
    pub path: String,
    pub fill: WindowFill,
}

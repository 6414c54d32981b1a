//! The gate of a provider: the rate limits of one account, which all tenants that hold its key share.
//!
//! It stands above each tenant's own rate guard and uses the same rules for windows, back-off and probe. A *bucket* is one
//! account at one provider. A reservation is good for a few seconds only, and every window counts that much longer, so
//! that the provider never sees more calls in a window than its cap. A tenant above its share waits while another one was
//! refused by the window itself. Everything here is pure; `steward_fleet::gate` keeps the rows.

mod limits;
mod loss;
#[cfg(test)]
mod tests;

pub use limits::{
    BucketWindow, InvalidBucketName, InvalidRateLimit, RateLimit, RepeatedLimit, merge_limits, parse_bucket_name,
};
pub use loss::{BucketIdentity, GateMark, LossKind, find_loss};

use crate::steward::guard::{
    BackOff, CallGrant, GuardCap, GuardRefusal, Probe, SettlementOutcome, add_saturating, back_off_for, check_probe,
    check_window,
};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

/// How long a reservation is good: 5 s. Every window of the gate counts its calls for that much longer.
pub const RESERVATION_LIFETIME: TimeDelta = TimeDelta::seconds(5);
/// How long connecting to the provider may take: 2 s. A call that began to connect in time sends its first byte while its
/// reservation is good.
pub const CONNECT_TIMEOUT: TimeDelta = TimeDelta::seconds(2);
/// A tenant may use this part of a window while others wait for the window: a quarter, rounded up.
pub const SHARE_DIVISOR: u32 = 4;
/// For how long a refusal by the window counts as another tenant's waiting: 60 s.
const RIVAL_WAITS: TimeDelta = TimeDelta::seconds(60);

/// A question to the gate about one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateRequest {
    /// Names the call within its tenant, without any name from the vault: a hash.
    pub call: String,
    /// The most tokens that it may use.
    pub tokens: u64,
    /// What this tenant saw of the bucket last.
    pub seen: Option<GateMark>,
}

/// What the gate still has to hear about a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateDebt {
    /// As in [`GateRequest`].
    pub call: String,
    pub outcome: SettlementOutcome,
    /// When it ended, by the vault's clock. A wait that the provider asked for counts from then.
    pub at: DateTime<Utc>,
}

impl GateDebt {
    /// The outcome as it counts at `now`: a wait that the provider asked for is shorter by its age. One that is over still
    /// makes the next call a probe.
    #[must_use]
    pub fn outcome_at(&self, now: DateTime<Utc>) -> SettlementOutcome {
        let SettlementOutcome::RateLimited { retry_after_seconds } = &self.outcome else { return self.outcome.clone() };
        let age = (now - self.at).max(TimeDelta::zero());
        let left = (back_off_for(*retry_after_seconds) - age).max(TimeDelta::zero());
        let seconds = left.num_microseconds().map(|micros| micros as f64 / 1e6);
        SettlementOutcome::RateLimited { retry_after_seconds: seconds }
    }
}

/// The gate's leave to send one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateGrant {
    pub deadline: SendDeadline,
    /// To be remembered beside the call.
    pub seen: GateMark,
}

/// A moment of the clock that counts since the start of a machine, its sleep included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootInstant {
    /// The random id of that start, which no other machine has.
    pub boot_id: String,
    /// Microseconds since then.
    pub micros: i64,
}

/// When a call must have begun to connect, by two clocks, because the clock on the wall can be set back. On another
/// machine, or after a restart of this one, the deadline is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendDeadline {
    pub wall: DateTime<Utc>,
    pub boot: BootInstant,
}

impl SendDeadline {
    /// The deadline of a call whose reservation was asked for at these times.
    #[must_use]
    pub fn from_request(wall: DateTime<Utc>, boot: BootInstant) -> Self {
        let patience = RESERVATION_LIFETIME - CONNECT_TIMEOUT;
        let micros = boot.micros.saturating_add(patience.num_microseconds().unwrap_or(0));
        Self { wall: add_saturating(wall, patience), boot: BootInstant { micros, ..boot } }
    }

    /// Whether the call must not be sent any more.
    #[must_use]
    pub fn is_over(&self, wall: DateTime<Utc>, boot: &BootInstant) -> bool {
        wall > self.wall || boot.boot_id != self.boot.boot_id || boot.micros > self.boot.micros
    }
}

/// The recorded facts of a bucket that one call needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketFacts {
    pub back_off: Option<BackOff>,
    pub probe: Option<Probe>,
    pub windows: Vec<WindowFacts>,
    /// When another tenant was last refused by a window itself.
    pub rival_refused_at: Option<DateTime<Utc>>,
}

/// The fill of one window, its calls counted for [`RESERVATION_LIFETIME`] longer than its width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowFacts {
    pub window: BucketWindow,
    /// The cap-th newest call of all tenants.
    pub edge: Option<DateTime<Utc>>,
    /// The share-th newest call of this tenant.
    pub own_edge: Option<DateTime<Utc>>,
    /// The tokens of all tenants, and of this one.
    pub tokens: u64,
    pub own_tokens: u64,
    /// The oldest call whose tokens are counted.
    pub oldest: Option<DateTime<Utc>>,
}

/// A refusal of the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketRefusal {
    pub refusal: GuardRefusal,
    /// Whether a window itself refused, and not the tenant's share of it or a back-off. Others then keep to their share.
    pub is_by_window: bool,
}

/// Decides on one call of `tokens` tokens at `at`, the instant that `read_clock` returned.
///
/// The order of checks is: 429 back-off (then its probe), the windows, the tenant's share of each window.
///
/// # Errors
/// The first limit that refuses, with the instant it clears.
pub fn admit_bucket_call(tokens: u64, facts: &BucketFacts, at: DateTime<Utc>) -> Result<CallGrant, BucketRefusal> {
    let by = |is_by_window| move |refusal| BucketRefusal { refusal, is_by_window };
    if let Some(back_off) = &facts.back_off {
        check_probe(back_off, facts.probe.as_ref(), at).map_err(by(false))?;
    }
    for window in &facts.windows {
        // What never fits waits for nobody.
        check_size(tokens, window).map_err(by(false))?;
        check_calls(window, at).and_then(|()| check_tokens(tokens, window, at)).map_err(by(true))?;
    }
    if facts.rival_refused_at.is_some_and(|refused| at < add_saturating(refused, RIVAL_WAITS)) {
        for window in &facts.windows {
            check_share(window, at).map_err(by(false))?;
        }
    }
    Ok(CallGrant::new(at, facts.back_off.is_some()))
}

fn check_calls(facts: &WindowFacts, at: DateTime<Utc>) -> Result<(), GuardRefusal> {
    let Some(calls) = facts.window.calls else { return Ok(()) };
    let reason = || format!("all tenants together have used the provider's {calls} calls {}", facts.window);
    check_window(GuardCap::Provider, facts.edge, facts.window.counted_width(), at, reason)
}

fn check_size(tokens: u64, facts: &WindowFacts) -> Result<(), GuardRefusal> {
    let Some(cap) = facts.window.tokens.filter(|cap| tokens > *cap) else { return Ok(()) };
    let reason = format!(
        "one call may use {tokens} tokens, more than the provider's {cap} {}: correct the limit with `steward fleet bucket \
         set`",
        facts.window
    );
    Err(GuardRefusal { cap: GuardCap::Provider, clears_at: None, reason })
}

fn check_tokens(tokens: u64, facts: &WindowFacts, at: DateTime<Utc>) -> Result<(), GuardRefusal> {
    let Some(cap) = facts.window.tokens.filter(|cap| facts.tokens.saturating_add(tokens) > *cap) else { return Ok(()) };
    let reason = format!(
        "all tenants together have reserved {} of the provider's {cap} tokens {}, and this call may use {tokens}",
        facts.tokens, facts.window
    );
    let clears_at = facts.oldest.map_or(at, |oldest| add_saturating(oldest, facts.window.counted_width()));
    Err(GuardRefusal { cap: GuardCap::Provider, clears_at: Some(clears_at), reason })
}

fn check_share(facts: &WindowFacts, at: DateTime<Utc>) -> Result<(), GuardRefusal> {
    let width = facts.window.counted_width();
    let reason =
        || format!("another tenant waits, and this one has its share of the provider's limit {}", facts.window);
    if facts.window.calls.is_some() {
        check_window(GuardCap::ProviderShare, facts.own_edge, width, at, reason)?;
    }
    match facts.window.tokens {
        Some(cap) if facts.own_tokens > cap.div_ceil(u64::from(SHARE_DIVISOR)) => {
            let clears_at = facts.oldest.map(|oldest| add_saturating(oldest, width));
            Err(GuardRefusal { cap: GuardCap::ProviderShare, clears_at, reason: reason() })
        }
        Some(_) | None => Ok(()),
    }
}

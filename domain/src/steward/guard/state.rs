//! What a rate limiter keeps beside its calls: its newest entry, a doubt about the clock, the back-off and its probe.
//!
//! The ledger of a vault and the bucket of a fleet keep the same and change it by the same rules. Nothing here reads a
//! clock.

use super::window::{add_saturating, read_clock, shift_after_restart};
use super::{BackOff, CallId, ClockReading, Probe, SettlementOutcome, back_off_for};
use chrono::{DateTime, Utc};

/// The state of a rate limiter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardState {
    /// The time of the newest entry. No reservation may be earlier.
    pub newest: Option<DateTime<Utc>>,
    pub doubted_since: Option<DateTime<Utc>>,
    pub back_off: Option<BackOff>,
    pub probe: Option<Probe>,
}

impl GuardState {
    /// Compares the clock with the newest entry, and keeps or ends a doubt. After [`ClockReading::Restarted`] the caller
    /// must forget the calls after `now`.
    pub fn check_clock(&mut self, now: DateTime<Utc>) -> ClockReading {
        let reading = read_clock(self.newest, self.doubted_since, now);
        match reading {
            ClockReading::Sound { .. } => self.doubted_since = None,
            ClockReading::Doubted { since, .. } => self.doubted_since = Some(since),
            ClockReading::Restarted => self.restart_clock(now),
        }
        reading
    }

    /// Begins anew at `now`. The caller must forget the calls after it.
    pub fn restart_clock(&mut self, now: DateTime<Utc>) {
        let (back_off, probe) = shift_after_restart(self.back_off, self.probe.take(), now);
        *self = Self { newest: Some(now), doubted_since: None, back_off, probe };
    }

    /// Changes the back-off and its probe by the end of a call.
    pub fn record_outcome(&mut self, call: &CallId, outcome: &SettlementOutcome, now: DateTime<Utc>) {
        let is_probe = self.probe.as_ref().is_some_and(|probe| probe.call_id == *call);
        match outcome {
            SettlementOutcome::RateLimited { retry_after_seconds } => self.begin_back_off(*retry_after_seconds, now),
            SettlementOutcome::Answered { .. } if is_probe => {
                self.back_off = None;
                self.probe = None;
            }
            // The probe had no result, so another one may go.
            SettlementOutcome::Failed | SettlementOutcome::NotSent if is_probe => self.probe = None,
            SettlementOutcome::Answered { .. } | SettlementOutcome::Failed | SettlementOutcome::NotSent => {}
        }
    }

    /// Begins a back-off after a 429 of any call. A probe under way can no longer end it.
    fn begin_back_off(&mut self, retry_after_seconds: Option<f64>, now: DateTime<Utc>) {
        let set_at = self.newest.map_or(now, |newest| newest.max(now));
        let until = add_saturating(set_at, back_off_for(retry_after_seconds));
        let until = self.back_off.map_or(until, |old| old.until.max(until));
        self.back_off = Some(BackOff { set_at, until });
        self.probe = None;
        // A 429 counts as an entry: if the clock is far ahead now, its later jump back must be detected.
        self.newest = Some(set_at);
    }

    /// Ends a back-off for an operator, and returns its deadline. The next call is its probe.
    pub fn lift_back_off(&mut self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let at = self.newest.map_or(now, |newest| newest.max(now));
        let back_off = self.back_off.filter(|back_off| at < back_off.until)?;
        self.back_off = Some(BackOff { until: at, ..back_off });
        Some(back_off.until)
    }
}

//! Decides what happens to a run that passed: it is committed, waits for a person, or is only shown.
//!
//! The strictest rule that fits holds. A run that nobody asked for never goes further than the mode of the stewards. A rollback
//! does not come here: a person asked for it, and it is committed.

use super::metrics::WikiMetric;
use super::run::WikiMode;
use crate::gates::mode::Mode;
use serde::{Deserialize, Serialize};

/// Why a run waits whose pages a model wrote, and no second model checked.
pub const UNVERIFIED: &str = "unverified: no second model checked it";

/// What a wiki does with new sources that nobody asked about (`auto_ingest` of `[wiki.<name>]`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::Display, strum::EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AutoIngest {
    /// Nothing.
    #[default]
    Off,
    /// Pages are made, and wait for a person.
    Propose,
    /// Pages are made and committed, as far as `STEWARD_LIVE_MODE` allows it.
    Land,
}

/// The settings of one wiki, which stand outside of the vault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WikiSettings {
    pub auto_ingest: AutoIngest,
    /// The nightly lint renders the index anew if it does not show the pages.
    pub lint_fix: bool,
}

/// Who caused a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunCause {
    /// A person asked for it.
    Attended(WikiMode),
    /// Nobody did: the setting of the wiki and the mode of the stewards decide.
    Unattended(AutoIngest, Mode),
}

/// What decides about a run that passed.
#[derive(Clone, Debug)]
pub struct RunGates<'a> {
    pub cause: RunCause,
    /// The person wants to see it first, or it drops claims.
    pub is_draft: bool,
    /// The manifest defers (`conflictResolution`).
    pub is_deferred: bool,
    /// A model wrote it, no other one checked it, and nobody allowed that.
    pub is_unverified: bool,
    /// The metrics that are broken.
    pub broken: &'a [WikiMetric],
}

/// What happens to a run, and why it is not committed at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDisposition {
    pub mode: WikiMode,
    /// One phrase each, such as `the manifest defers`.
    pub reasons: Vec<String>,
}

impl<'a> RunGates<'a> {
    /// The gates of a run with which nothing else is wrong.
    #[must_use]
    pub fn new(cause: RunCause, broken: &'a [WikiMetric]) -> Self {
        Self { cause, is_draft: false, is_deferred: false, is_unverified: false, broken }
    }

    /// Decides.
    #[must_use]
    pub fn decide(&self) -> RunDisposition {
        let mut found: Vec<(WikiMode, String)> = Vec::new();
        let mut hold = |mode, reason: &str| found.push((mode, reason.to_owned()));
        match self.cause {
            RunCause::Attended(WikiMode::Live) => {}
            RunCause::Attended(WikiMode::Pending) => hold(WikiMode::Pending, "STEWARD_WIKI_MODE is pending"),
            RunCause::Attended(WikiMode::Shadow) => hold(WikiMode::Shadow, "STEWARD_WIKI_MODE is shadow"),
            RunCause::Unattended(AutoIngest::Off | AutoIngest::Propose, _) => {
                hold(WikiMode::Pending, "nobody asked for it");
            }
            RunCause::Unattended(AutoIngest::Land, Mode::Live) => {}
            RunCause::Unattended(AutoIngest::Land, Mode::LiveHighConfidenceOnly) => {
                hold(WikiMode::Pending, "nobody asked for it, and STEWARD_LIVE_MODE is live_high_confidence_only");
            }
            RunCause::Unattended(AutoIngest::Land, Mode::Shadow) => {
                hold(WikiMode::Shadow, "nobody asked for it, and STEWARD_LIVE_MODE is shadow");
            }
        }
        if self.is_draft {
            hold(WikiMode::Pending, "it is a draft");
        }
        if self.is_deferred {
            hold(WikiMode::Pending, "the manifest defers");
        }
        if self.is_unverified {
            hold(WikiMode::Pending, UNVERIFIED);
        }
        let is_attended = matches!(self.cause, RunCause::Attended(_));
        for metric in self.broken.iter().filter(|metric| !is_attended || metric.holds_attended()) {
            hold(WikiMode::Pending, &format!("the metric `{metric}` is broken"));
        }
        let strictness = |mode: WikiMode| match mode {
            WikiMode::Live => 0,
            WikiMode::Pending => 1,
            WikiMode::Shadow => 2,
        };
        let mode = found.iter().map(|(mode, _)| *mode).max_by_key(|mode| strictness(*mode)).unwrap_or_default();
        RunDisposition { mode, reasons: found.into_iter().map(|(_, reason)| reason).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gates(cause: RunCause) -> RunGates<'static> {
        RunGates::new(cause, &[])
    }

    #[test]
    fn what_nobody_asked_for_goes_no_further_than_the_mode_of_the_stewards() {
        use {AutoIngest as A, WikiMode as W};
        for (auto, mode, expected) in [
            (A::Off, Mode::Live, W::Pending),
            (A::Propose, Mode::Live, W::Pending),
            (A::Propose, Mode::Shadow, W::Pending),
            (A::Land, Mode::Live, W::Live),
            (A::Land, Mode::LiveHighConfidenceOnly, W::Pending),
            (A::Land, Mode::Shadow, W::Shadow),
        ] {
            assert_eq!(gates(RunCause::Unattended(auto, mode)).decide().mode, expected, "{auto} under {mode:?}");
        }
    }

    #[test]
    fn the_strictest_rule_holds_and_all_are_named() {
        let attended = gates(RunCause::Attended(WikiMode::Live));
        assert_eq!(attended.decide(), RunDisposition { mode: WikiMode::Live, reasons: Vec::new() });
        let held = RunGates { is_draft: true, is_deferred: true, is_unverified: true, ..attended.clone() }.decide();
        assert_eq!((held.mode, held.reasons.len()), (WikiMode::Pending, 3));
        let shown = RunGates { is_draft: true, ..gates(RunCause::Attended(WikiMode::Shadow)) }.decide();
        assert_eq!(shown.mode, WikiMode::Shadow);
    }

    #[test]
    fn a_broken_metric_holds_unattended_runs_and_some_hold_attended_ones() {
        for (metric, holds) in
            [(WikiMetric::Fidelity, false), (WikiMetric::Retroactive, false), (WikiMetric::Coverage, true)]
        {
            let broken = [metric];
            let attended = RunGates::new(RunCause::Attended(WikiMode::Live), &broken);
            assert_eq!(attended.decide().mode == WikiMode::Pending, holds, "{metric}");
            let unattended = RunGates::new(RunCause::Unattended(AutoIngest::Land, Mode::Live), &broken);
            assert_eq!(unattended.decide().mode, WikiMode::Pending, "{metric}");
        }
    }
}

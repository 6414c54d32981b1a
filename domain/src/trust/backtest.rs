//! The backtest: replays recorded decisions under other settings and compares the results.
//!
//! It must not ask a clerk. The answers and the results of the gates are in the records ([`super::case`]). Ceilings
//! that humans set on sources and matters hold as they are now, except those of the sources in the replayed settings.
//! Scripts read the fields of [`BacktestReport`], so their names must not change.

use crate::action::mutation::MutationClass;
use crate::action::plan::Disposition;
use crate::gates::result::GateName;
use crate::trust::case::{ReplayRules, TrustCase};
use crate::trust::report::RecordSpan;
use crate::trust::report::risk::{RiskCurve, RiskTally};
use crate::trust::tally::CaseTally;
use crate::trust::wilson::RateEstimate;
use chrono::{DateTime, Utc};
use serde::Serialize;

/// One pass over the cases.
#[derive(Clone, Debug)]
pub struct BacktestPass {
    rules: [ReplayRules; 2],
    outcomes: [DispositionTallies; 2],
    newly: [CaseTally; 4],
    no_longer: [CaseTally; 4],
    risk: RiskTally,
    span: Option<RecordSpan>,
    now: DateTime<Utc>,
}

#[derive(Clone, Copy, Debug, Default)]
struct DispositionTallies {
    live: CaseTally,
    pending: CaseTally,
    shadow: CaseTally,
}

/// The result of a backtest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BacktestReport {
    /// `None` without cases.
    pub records: Option<RecordSpan>,
    /// The replayed settings.
    pub policy: BacktestOutcome,
    /// The settings with which they are compared.
    pub against: BacktestOutcome,
    /// The cases that are live under `policy` and not under `against`.
    pub newly_live: BacktestDifference,
    /// The cases that are live under `against` and not under `policy`.
    pub no_longer_live: BacktestDifference,
    /// The curve of the cases that nothing in `policy` but confidence and mode withholds.
    pub risk_coverage: RiskCurve,
}

/// The dispositions of the cases under some settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BacktestOutcome {
    pub rules: ReplayRules,
    pub live: CaseTally,
    pub pending: CaseTally,
    pub shadow: CaseTally,
    /// The share of all cases that would be live.
    pub coverage: RateEstimate,
}

/// The cases with another disposition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BacktestDifference {
    pub all: CaseTally,
    /// The classes with cases, in the order of [`MutationClass::ALL`].
    pub classes: Vec<ClassTally>,
}

/// The cases of one class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClassTally {
    pub class: MutationClass,
    #[serde(flatten)]
    pub tally: CaseTally,
}

impl BacktestPass {
    /// An empty pass that compares `rules` with `against`. `now` is the moment at which feedback is read.
    #[must_use]
    pub fn new(rules: ReplayRules, against: ReplayRules, now: DateTime<Utc>) -> Self {
        Self {
            rules: [rules, against],
            outcomes: Default::default(),
            newly: Default::default(),
            no_longer: Default::default(),
            risk: RiskTally::default(),
            span: None,
            now,
        }
    }

    /// Counts one case.
    pub fn add_case(&mut self, case: &TrustCase) {
        if case.is_repeated {
            return;
        }
        let closed = self.rules[0].closed_gates(case);
        let dispositions = [0, 1].map(|which: usize| self.rules[which].replay_case(case));
        for (tallies, disposition) in self.outcomes.iter_mut().zip(dispositions) {
            match disposition {
                Disposition::Live => tallies.live.add_case(case, self.now),
                Disposition::Pending => tallies.pending.add_case(case, self.now),
                Disposition::Shadow | Disposition::Recorded => tallies.shadow.add_case(case, self.now),
            }
        }
        match dispositions.map(|disposition| disposition == Disposition::Live) {
            [true, false] => self.newly[case.class as usize].add_case(case, self.now),
            [false, true] => self.no_longer[case.class as usize].add_case(case, self.now),
            [true, true] | [false, false] => {}
        }
        let without_thresholds = closed.set_gate(GateName::Confidence, false).set_gate(GateName::Mode, false);
        if without_thresholds.decide_disposition(true) == Disposition::Live {
            self.risk.add_case(case.confidence, case.feedback);
        }
        self.span = Some(RecordSpan::include_record(self.span, case.seq, case.at));
    }

    /// The report of all counted cases.
    #[must_use]
    pub fn into_report(self) -> BacktestReport {
        let [policy, against] = self.rules;
        BacktestReport {
            records: self.span,
            policy: summarize_outcome(policy, self.outcomes[0]),
            against: summarize_outcome(against, self.outcomes[1]),
            newly_live: summarize_difference(self.newly),
            no_longer_live: summarize_difference(self.no_longer),
            risk_coverage: self.risk.compute_curve(),
        }
    }
}

fn summarize_outcome(rules: ReplayRules, tallies: DispositionTallies) -> BacktestOutcome {
    let DispositionTallies { live, pending, shadow } = tallies;
    let all = live.merge(pending).merge(shadow).total_count();
    BacktestOutcome { rules, live, pending, shadow, coverage: RateEstimate::new(live.total_count(), all) }
}

fn summarize_difference(by_class: [CaseTally; 4]) -> BacktestDifference {
    let classes = MutationClass::ALL.into_iter().zip(by_class).filter(|(_, tally)| tally.total_count() > 0);
    BacktestDifference {
        all: by_class.into_iter().fold(CaseTally::default(), CaseTally::merge),
        classes: classes.map(|(class, tally)| ClassTally { class, tally }).collect(),
    }
}

#[cfg(test)]
mod tests;

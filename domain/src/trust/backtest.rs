//! Recorded decisions under other settings: what would have been done, how much of it right, and what differs.
//!
//! No clerk is asked: what it answered, and what the gates found, stand in the records ([`super::case`]). Ceilings that
//! humans set on sources and matters hold as they are now, but for those of sources that are asked about. The fields of [`BacktestReport`] are what scripts read.

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

/// The pass over the cases.
#[derive(Clone, Debug)]
pub struct BacktestPass {
    rules: [ReplayRules; 2],
    landed: [DispositionTallies; 2],
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

/// All that is told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BacktestReport {
    /// `None` of nothing.
    pub records: Option<RecordSpan>,
    /// The settings that were asked about.
    pub policy: BacktestOutcome,
    /// Those that they are compared with.
    pub against: BacktestOutcome,
    /// What `policy` makes live and `against` does not.
    pub newly_live: BacktestDifference,
    /// What `against` makes live and `policy` does not.
    pub no_longer_live: BacktestDifference,
    /// Of the cases that nothing in `policy` but confidence and mode holds back.
    pub risk_coverage: RiskCurve,
}

/// How the cases land under some settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BacktestOutcome {
    pub rules: ReplayRules,
    pub live: CaseTally,
    pub pending: CaseTally,
    pub shadow: CaseTally,
    /// The share of all cases that would be live.
    pub coverage: RateEstimate,
}

/// What lands otherwise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BacktestDifference {
    pub all: CaseTally,
    /// Those with cases, in the order of the contract.
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
    /// Nothing counted yet: these settings, against those, as cases stand at that moment.
    #[must_use]
    pub fn new(rules: ReplayRules, against: ReplayRules, now: DateTime<Utc>) -> Self {
        Self {
            rules: [rules, against],
            landed: Default::default(),
            newly: Default::default(),
            no_longer: Default::default(),
            risk: RiskTally::default(),
            span: None,
            now,
        }
    }

    /// Counts one case.
    pub fn add_case(&mut self, case: &TrustCase) {
        if case.again {
            return;
        }
        let closed = self.rules[0].closed_gates(case);
        let landings = [0, 1].map(|which: usize| self.rules[which].replay_case(case));
        for (landed, landing) in self.landed.iter_mut().zip(landings) {
            match landing {
                Disposition::Live => landed.live.add_case(case, self.now),
                Disposition::Pending => landed.pending.add_case(case, self.now),
                Disposition::Shadow | Disposition::Recorded => landed.shadow.add_case(case, self.now),
            }
        }
        match landings.map(|landing| landing == Disposition::Live) {
            [true, false] => self.newly[case.class as usize].add_case(case, self.now),
            [false, true] => self.no_longer[case.class as usize].add_case(case, self.now),
            [true, true] | [false, false] => {}
        }
        let but_for_confidence = closed.set_gate(GateName::Confidence, false).set_gate(GateName::Mode, false);
        if but_for_confidence.decide_disposition(true) == Disposition::Live {
            self.risk.add_case(case.confidence, case.lesson);
        }
        self.span = Some(RecordSpan::include_record(self.span, case.seq, case.at));
    }

    /// What it comes to.
    #[must_use]
    pub fn into_report(self) -> BacktestReport {
        let [policy, against] = self.rules;
        BacktestReport {
            records: self.span,
            policy: summarize_outcome(policy, self.landed[0]),
            against: summarize_outcome(against, self.landed[1]),
            newly_live: summarize_difference(self.newly),
            no_longer_live: summarize_difference(self.no_longer),
            risk_coverage: self.risk.compute_curve(),
        }
    }
}

fn summarize_outcome(
    rules: ReplayRules,
    DispositionTallies { live, pending, shadow }: DispositionTallies,
) -> BacktestOutcome {
    let all = live.merge(pending).merge(shadow).total_count();
    BacktestOutcome { rules, live, pending, shadow, coverage: RateEstimate::new(live.total_count(), all) }
}

fn summarize_difference(of: [CaseTally; 4]) -> BacktestDifference {
    let classes = MutationClass::ALL.into_iter().zip(of).filter(|(_, tally)| tally.total_count() > 0);
    BacktestDifference {
        all: of.into_iter().fold(CaseTally::default(), CaseTally::merge),
        classes: classes.map(|(class, tally)| ClassTally { class, tally }).collect(),
    }
}

#[cfg(test)]
mod tests;

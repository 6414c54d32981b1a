//! Recorded decisions under other settings: what would have been done, how much of it right, and what differs.
//!
//! No clerk is asked: what it answered, and what the gates found, stand in the records ([`super::case`]). Ceilings that
//! humans set on sources and matters hold as they are now, but for those of sources that are asked about. The fields of [`Backtest`] are what scripts read.

use crate::decide::GateName;
use crate::mutation::MutationClass;
use crate::plan::Disposition;
use crate::trust::case::{Case, Rules};
use crate::trust::report::Span;
use crate::trust::risk::{Curve, Risk};
use crate::trust::tally::Tally;
use crate::trust::wilson::Share;
use chrono::{DateTime, Utc};
use serde::Serialize;

/// The pass over the cases.
#[derive(Clone, Debug)]
pub struct Backtesting {
    rules: [Rules; 2],
    landed: [Landed; 2],
    newly: [Tally; 4],
    no_longer: [Tally; 4],
    risk: Risk,
    span: Option<Span>,
    now: DateTime<Utc>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Landed {
    live: Tally,
    pending: Tally,
    shadow: Tally,
}

/// All that is told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Backtest {
    /// `None` of nothing.
    pub records: Option<Span>,
    /// The settings that were asked about.
    pub policy: Outcome,
    /// Those that they are compared with.
    pub against: Outcome,
    /// What `policy` makes live and `against` does not.
    pub newly_live: Difference,
    /// What `against` makes live and `policy` does not.
    pub no_longer_live: Difference,
    /// Of the cases that nothing in `policy` but confidence and mode holds back.
    pub risk_coverage: Curve,
}

/// How the cases land under some settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    pub rules: Rules,
    pub live: Tally,
    pub pending: Tally,
    pub shadow: Tally,
    /// The share of all cases that would be live.
    pub coverage: Share,
}

/// What lands otherwise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    pub all: Tally,
    /// Those with cases, in the order of the contract.
    pub classes: Vec<OfClass>,
}

/// The cases of one class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OfClass {
    pub class: MutationClass,
    #[serde(flatten)]
    pub tally: Tally,
}

impl Backtesting {
    /// Nothing counted yet: these settings, against those, as cases stand at that moment.
    #[must_use]
    pub fn new(rules: Rules, against: Rules, now: DateTime<Utc>) -> Self {
        Self {
            rules: [rules, against],
            landed: Default::default(),
            newly: Default::default(),
            no_longer: Default::default(),
            risk: Risk::default(),
            span: None,
            now,
        }
    }

    /// Counts one case.
    pub fn add(&mut self, case: &Case) {
        if case.again {
            return;
        }
        let closed = self.rules[0].closed(case);
        let landings = [0, 1].map(|which: usize| self.rules[which].replay(case));
        for (landed, landing) in self.landed.iter_mut().zip(landings) {
            match landing {
                Disposition::Live => landed.live.add(case, self.now),
                Disposition::Pending => landed.pending.add(case, self.now),
                Disposition::Shadow | Disposition::Recorded => landed.shadow.add(case, self.now),
            }
        }
        match landings.map(|landing| landing == Disposition::Live) {
            [true, false] => self.newly[case.class as usize].add(case, self.now),
            [false, true] => self.no_longer[case.class as usize].add(case, self.now),
            [true, true] | [false, false] => {}
        }
        let but_for_confidence = closed.set_gate(GateName::Confidence, false).set_gate(GateName::Mode, false);
        if but_for_confidence.decide_disposition(true) == Disposition::Live {
            self.risk.add(case.confidence, case.lesson);
        }
        self.span = Some(Span::with(self.span, case.seq, case.at));
    }

    /// What it comes to.
    #[must_use]
    pub fn backtest(self) -> Backtest {
        let [policy, against] = self.rules;
        Backtest {
            records: self.span,
            policy: outcome(policy, self.landed[0]),
            against: outcome(against, self.landed[1]),
            newly_live: difference(self.newly),
            no_longer_live: difference(self.no_longer),
            risk_coverage: self.risk.curve(),
        }
    }
}

fn outcome(rules: Rules, Landed { live, pending, shadow }: Landed) -> Outcome {
    let all = live.and(pending).and(shadow).actions();
    Outcome { rules, live, pending, shadow, coverage: Share::new(live.actions(), all) }
}

fn difference(of: [Tally; 4]) -> Difference {
    let classes = MutationClass::ALL.into_iter().zip(of).filter(|(_, tally)| tally.actions() > 0);
    Difference {
        all: of.into_iter().fold(Tally::default(), Tally::and),
        classes: classes.map(|(class, tally)| OfClass { class, tally }).collect(),
    }
}

#[cfg(test)]
mod tests;

//! One recorded proposal with what became of it: what the report and the backtest are told from.
//!
//! A case holds what the gates found, as far as other settings can be held against it, and nothing of what was
//! said: no quote, no reasons. [`ReplayRules::replay`] lands it again by the very rule of [`crate::steward::decide`]. What no
//! setting moves stays as it was: a caller who asked for shadow, discretion with what was known of the source then,
//! and what was held for a human by the steward, a source's budget or the lines of a matter's note. A brake and a step back were of that day, and
//! are left out. Ceilings that humans set on sources and matters are taken as they are now, but for those of sources that
//! somebody asks about.

use crate::action::audit::AuditDraft;
use crate::action::mutation::MutationClass;
use crate::action::plan::Disposition;
use crate::gates::closed::ClosedGates;
use crate::gates::evaluate::replay_closed_gates;
use crate::gates::mode::{Ceiling, DecisionPolicy};
use crate::trust::outcome::ProposalFeedback;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A source that spoke for a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseSupporter {
    /// The name by which trust goes ([`crate::signals::signal::source_key`]).
    pub key: String,
    /// As the record names it. Untrusted.
    pub name: String,
}

/// A source that is cited, and the ceiling that a human has set on it by now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CitedSource {
    /// The name by which trust goes.
    pub key: String,
    pub ceiling: Option<Ceiling>,
}

/// An earlier proposal of the same act.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EarlierProposal {
    /// 0 to 1.
    pub confidence: f64,
    /// The gates that stood closed.
    pub closed: ClosedGates,
}

/// One proposal to change a record.
#[derive(Clone, Debug, PartialEq)]
pub struct TrustCase {
    /// Its place in the chain of records.
    pub seq: u64,
    pub at: DateTime<Utc>,
    /// When the same was proposed first, with nothing coming of it until now; of a live change its own moment.
    pub since: DateTime<Utc>,
    /// What was proposed of the same act before.
    pub earlier: Vec<EarlierProposal>,
    pub class: MutationClass,
    /// 0 to 1.
    pub confidence: f64,
    pub landing: Disposition,
    /// The gates that stood closed.
    pub closed: ClosedGates,
    /// The lowest ceiling that humans have set by now on the matters concerned.
    pub ceiling: Ceiling,
    pub cited: Vec<CitedSource>,
    /// The sources that spoke for it, by key; of one that was made again those that did not speak again, of one of those
    /// that were answered with one click those of which no other tells.
    pub voices: Vec<CaseSupporter>,
    /// Others proposed the very same again before anything came of it, or another action that was answered with the same
    /// click tells the lesson: it is a case of its own sources, and of nothing else, since one act is one case.
    pub again: bool,
    pub lesson: ProposalFeedback,
}

impl TrustCase {
    /// The case of a decision that has just been taken, in no chain yet; `None` where it proposes no change.
    #[must_use]
    pub fn from_draft(draft: &AuditDraft, ceiling: Ceiling) -> Option<Self> {
        Some(Self {
            seq: 0,
            at: draft.timestamp,
            since: draft.timestamp,
            earlier: Vec::new(),
            class: draft.class?,
            confidence: draft.confidence,
            landing: draft.landing,
            closed: ClosedGates::from_gates(&draft.gates),
            ceiling,
            cited: Vec::new(),
            voices: Vec::new(),
            again: false,
            lesson: ProposalFeedback::Open,
        })
    }
}

/// Settings under which a case is landed again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayRules {
    #[serde(flatten)]
    pub policy: DecisionPolicy,
    /// The ceiling of sources on which no human has set one.
    pub default_ceiling: Ceiling,
    /// By key, instead of what humans have set on these sources.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, Ceiling>,
}

impl ReplayRules {
    /// How the case would land under these settings: as the liveliest of all that was proposed of the act, because the
    /// first that could be live would have been.
    #[must_use]
    pub fn replay_case(&self, case: &TrustCase) -> Disposition {
        let earlier = case.earlier.iter().map(|before| self.closed_gates_of(case, *before));
        let landings = earlier.chain([self.closed_gates(case)]).map(|closed| closed.decide_disposition(true));
        landings.max().unwrap_or(Disposition::Shadow)
    }

    /// Whether anything could land livelier under these settings than under the others; ceilings of sources
    /// aside, which stand elsewhere.
    #[must_use]
    pub fn is_bolder_than(&self, other: &Self) -> bool {
        let (new, old) = (&self.policy, &other.policy);
        new.mode > old.mode
            || new.confidence_threshold < old.confidence_threshold
            || new.high_confidence_threshold < old.high_confidence_threshold
            || self.default_ceiling > other.default_ceiling
            || MutationClass::ALL.into_iter().any(|class| new.class_ceiling(class) > old.class_ceiling(class))
    }

    /// The gates that would stand closed before the last proposal of the act.
    #[must_use]
    pub fn closed_gates(&self, case: &TrustCase) -> ClosedGates {
        self.closed_gates_of(case, EarlierProposal { confidence: case.confidence, closed: case.closed })
    }

    fn closed_gates_of(&self, case: &TrustCase, proposed: EarlierProposal) -> ClosedGates {
        let of_source = |source: &CitedSource| {
            self.sources.get(&source.key).copied().or(source.ceiling).unwrap_or(self.default_ceiling)
        };
        let sources = case.cited.iter().map(of_source).min().unwrap_or_default();
        let ceiling = case.ceiling.min(self.policy.class_ceiling(case.class)).min(sources);
        replay_closed_gates(proposed.closed, &self.policy, proposed.confidence, ceiling)
    }
}

#[cfg(test)]
mod tests;

//! A case: one recorded proposal with its feedback. The report and the backtest use cases.
//!
//! A case keeps the results of the gates, so that other settings can be replayed, but no quote and no reasoning.
//! [`ReplayRules::replay_case`] decides it again by the same rule as [`crate::steward::decide`]. Results that no
//! setting affects stay: a caller's request for shadow, discretion with the observations of that time, and the gates of
//! the steward, a source's budget and a matter's policy. A stop and a demotion of that time are left out. Ceilings
//! that humans set on sources and matters hold as they are now, except those of the sources in the replayed settings.

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

/// A source that supported a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseSupporter {
    /// Its [`crate::signals::signal::source_key`].
    pub key: String,
    /// The name in the record. Untrusted.
    pub name: String,
}

/// A cited source, and the ceiling that a human has set on it so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CitedSource {
    /// Its [`crate::signals::signal::source_key`].
    pub key: String,
    pub ceiling: Option<Ceiling>,
}

/// An earlier proposal of the same change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EarlierProposal {
    /// 0 to 1.
    pub confidence: f64,
    /// The gates that were closed.
    pub closed: ClosedGates,
}

/// One proposal to change a record.
#[derive(Clone, Debug, PartialEq)]
pub struct TrustCase {
    /// Its position in the audit chain.
    pub seq: u64,
    pub at: DateTime<Utc>,
    /// When the same change was first proposed without feedback until now. For a live change, its own moment.
    pub since: DateTime<Utc>,
    /// The earlier proposals of the same change.
    pub earlier: Vec<EarlierProposal>,
    pub class: MutationClass,
    /// 0 to 1.
    pub confidence: f64,
    pub disposition: Disposition,
    /// The gates that were closed.
    pub closed: ClosedGates,
    /// The lowest ceiling that humans have set so far on the affected matters.
    pub ceiling: Ceiling,
    pub cited: Vec<CitedSource>,
    /// The sources that supported it. A repeated proposal lists only the sources that did not support the repetition. A
    /// member of a batch lists only the sources that no other member lists.
    pub supporters: Vec<CaseSupporter>,
    /// The same change was proposed again before there was feedback, or another member of its batch stands for it.
    /// Then it counts for its own sources and for nothing else, because one change is one case.
    pub is_repeated: bool,
    pub feedback: ProposalFeedback,
}

impl TrustCase {
    /// The case of a new decision that is not in the chain yet, or `None` if it proposes no change.
    #[must_use]
    pub fn from_draft(draft: &AuditDraft, ceiling: Ceiling) -> Option<Self> {
        Some(Self {
            seq: 0,
            at: draft.timestamp,
            since: draft.timestamp,
            earlier: Vec::new(),
            class: draft.class?,
            confidence: draft.confidence,
            disposition: draft.disposition,
            closed: ClosedGates::from_gates(&draft.gates),
            ceiling,
            cited: Vec::new(),
            supporters: Vec::new(),
            is_repeated: false,
            feedback: ProposalFeedback::Open,
        })
    }
}

/// Settings under which a case is decided again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayRules {
    #[serde(flatten)]
    pub policy: DecisionPolicy,
    /// The ceiling of sources on which no human has set one.
    pub default_ceiling: Ceiling,
    /// Ceilings by source key. They replace those that humans have set on these sources.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, Ceiling>,
}

impl ReplayRules {
    /// The case's disposition under these settings.
    ///
    /// It is the highest of all proposals of the same change, because the first one that could be live would have been
    /// applied.
    #[must_use]
    pub fn replay_case(&self, case: &TrustCase) -> Disposition {
        let earlier = case.earlier.iter().map(|before| self.closed_gates_of(case, *before));
        let dispositions = earlier.chain([self.closed_gates(case)]).map(|closed| closed.decide_disposition(true));
        dispositions.max().unwrap_or(Disposition::Shadow)
    }

    /// Whether any disposition could be higher under these settings than under the others.
    ///
    /// The ceilings of single sources are not compared, because they are not part of the configuration.
    #[must_use]
    pub fn is_bolder_than(&self, other: &Self) -> bool {
        let (new, old) = (&self.policy, &other.policy);
        new.mode > old.mode
            || new.confidence_threshold < old.confidence_threshold
            || new.high_confidence_threshold < old.high_confidence_threshold
            || self.default_ceiling > other.default_ceiling
            || MutationClass::ALL.into_iter().any(|class| new.class_ceiling(class) > old.class_ceiling(class))
    }

    /// The gates that would be closed for the last proposal of the change.
    #[must_use]
    pub fn closed_gates(&self, case: &TrustCase) -> ClosedGates {
        self.closed_gates_of(case, EarlierProposal { confidence: case.confidence, closed: case.closed })
    }

    fn closed_gates_of(&self, case: &TrustCase, proposed: EarlierProposal) -> ClosedGates {
        let source_ceiling = |source: &CitedSource| {
            self.sources.get(&source.key).copied().or(source.ceiling).unwrap_or(self.default_ceiling)
        };
        let lowest_of_sources = case.cited.iter().map(source_ceiling).min().unwrap_or_default();
        let ceiling = case.ceiling.min(self.policy.class_ceiling(case.class)).min(lowest_of_sources);
        replay_closed_gates(proposed.closed, &self.policy, proposed.confidence, ceiling)
    }
}

#[cfg(test)]
mod tests;

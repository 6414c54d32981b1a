//! The principal: what they do about a proposal, with known probabilities.
//!
//! They know what is so, but for a rare error. What they do about it depends on how the proposal landed, and on whether
//! they come to it at all. Pure: the lots were drawn with the message ([`super::calendar`]).

use serde::Serialize;
use steward_domain::action::plan::Disposition;

/// How likely the principal does what, each 0 to 1.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct SimulatedPrincipal {
    /// Takes what is right for wrong, or the other way round.
    pub(super) errs: f64,
    /// Does by hand what was only said and is right.
    pub(super) does_it: f64,
    /// Does something else by hand about what was only said and is wrong.
    pub(super) opposes: f64,
    /// Confirms what waits and is right.
    pub(super) confirms: f64,
    /// Dismisses what waits and is wrong.
    pub(super) dismisses: f64,
    /// Takes back what was made and is wrong.
    pub(super) undoes: f64,
}

/// The principal of every simulated month.
pub(super) const PRINCIPAL: SimulatedPrincipal =
    SimulatedPrincipal { errs: 0.004, does_it: 0.94, opposes: 0.85, confirms: 0.8, dismisses: 0.85, undoes: 0.95 };

/// What the principal did about a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PrincipalReaction {
    /// The very change, by hand.
    DidItByHand,
    /// Another change, by hand.
    DidOtherwise,
    Confirmed,
    Dismissed,
    Undid,
    /// Left a change in place that was made.
    LeftInPlace,
    /// Nothing that tells anything; the note of a task is thrown away.
    Nothing,
}

impl PrincipalReaction {
    /// Whether it says that the proposal was right; `None` where it says nothing.
    pub(super) fn implied_label(self) -> Option<bool> {
        match self {
            Self::DidItByHand | Self::Confirmed | Self::LeftInPlace => Some(true),
            Self::DidOtherwise | Self::Dismissed | Self::Undid => Some(false),
            Self::Nothing => None,
        }
    }
}

impl SimulatedPrincipal {
    /// What is done about a proposal that landed so; `errs` and `acts` are lots, 0 to 1.
    pub(super) fn choose_reaction(
        &self,
        landing: Disposition,
        right: bool,
        (errs, acts): (f64, f64),
    ) -> PrincipalReaction {
        let believed = right != (errs < self.errs);
        let or_nothing = |likely: f64, reaction| if acts < likely { reaction } else { PrincipalReaction::Nothing };
        match (landing, believed) {
            (Disposition::Shadow, true) => or_nothing(self.does_it, PrincipalReaction::DidItByHand),
            (Disposition::Shadow, false) => or_nothing(self.opposes, PrincipalReaction::DidOtherwise),
            (Disposition::Pending, true) => or_nothing(self.confirms, PrincipalReaction::Confirmed),
            (Disposition::Pending, false) => or_nothing(self.dismisses, PrincipalReaction::Dismissed),
            (Disposition::Live, false) if acts < self.undoes => PrincipalReaction::Undid,
            (Disposition::Live, _) => PrincipalReaction::LeftInPlace,
            (Disposition::Recorded, _) => PrincipalReaction::Nothing,
        }
    }
}

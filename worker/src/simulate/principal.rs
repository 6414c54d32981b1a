//! Simulates the principal, who reacts to proposals with known probabilities.
//!
//! The principal knows the truth, except for a rare error. The reaction depends on the proposal's disposition and on
//! whether the principal reacts at all. Pure: [`super::calendar`] drew the random values with the message.

use serde::Serialize;
use steward_domain::action::plan::Disposition;

/// The probabilities of the principal's reactions, each 0 to 1.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct SimulatedPrincipal {
    /// Mistakes right for wrong, or wrong for right.
    pub(super) errs: f64,
    /// Makes a right change of disposition `shadow` by hand.
    pub(super) does_it: f64,
    /// Makes another change by hand after a wrong one of disposition `shadow`.
    pub(super) opposes: f64,
    /// Confirms a right pending change.
    pub(super) confirms: f64,
    /// Dismisses a wrong pending change.
    pub(super) dismisses: f64,
    /// Undoes a wrong live change.
    pub(super) undoes: f64,
}

/// The principal of every simulated month.
pub(super) const PRINCIPAL: SimulatedPrincipal =
    SimulatedPrincipal { errs: 0.004, does_it: 0.94, opposes: 0.85, confirms: 0.8, dismisses: 0.85, undoes: 0.95 };

/// The principal's reaction to a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PrincipalReaction {
    /// Made the proposed change by hand.
    DidItByHand,
    /// Made another change by hand.
    DidOtherwise,
    Confirmed,
    Dismissed,
    Undid,
    /// Left a live change in place.
    LeftInPlace,
    /// Nothing that says anything about the proposal; the file of a task is removed.
    Nothing,
}

impl PrincipalReaction {
    /// Whether the reaction means that the proposal was right; `None` if it means neither.
    pub(super) fn implied_label(self) -> Option<bool> {
        match self {
            Self::DidItByHand | Self::Confirmed | Self::LeftInPlace => Some(true),
            Self::DidOtherwise | Self::Dismissed | Self::Undid => Some(false),
            Self::Nothing => None,
        }
    }
}

impl SimulatedPrincipal {
    /// Chooses the reaction to a proposal; `error_draw` and `action_draw` are random values, 0 to 1.
    pub(super) fn choose_reaction(
        &self,
        disposition: Disposition,
        right: bool,
        error_draw: f64,
        action_draw: f64,
    ) -> PrincipalReaction {
        let believed = right != (error_draw < self.errs);
        let or_nothing = |probability: f64, reaction| {
            if action_draw < probability { reaction } else { PrincipalReaction::Nothing }
        };
        match (disposition, believed) {
            (Disposition::Shadow, true) => or_nothing(self.does_it, PrincipalReaction::DidItByHand),
            (Disposition::Shadow, false) => or_nothing(self.opposes, PrincipalReaction::DidOtherwise),
            (Disposition::Pending, true) => or_nothing(self.confirms, PrincipalReaction::Confirmed),
            (Disposition::Pending, false) => or_nothing(self.dismisses, PrincipalReaction::Dismissed),
            (Disposition::Live, false) if action_draw < self.undoes => PrincipalReaction::Undid,
            (Disposition::Live, _) => PrincipalReaction::LeftInPlace,
            (Disposition::Recorded, _) => PrincipalReaction::Nothing,
        }
    }
}

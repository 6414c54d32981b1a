//! The reasons why a signal is skipped.
//!
//! Pure. [`super::plan_signal_route`] chooses the reason. Signals, the index and reports hold these
//! names, so a name must not change.

use crate::action::plan::ActionId;
use serde::{Deserialize, Serialize};

/// Why a signal leads to no change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RouteSkip {
    /// It changes nothing.
    NotAMutation,
    /// It asks the human to do something.
    AsksThePrincipal,
    /// It has no proposal that may be written.
    NoProposal,
    /// It may be about more than one record. A human has to name the right one.
    AmbiguousTarget,
    TargetMissing,
    /// The target is done or archived.
    TargetClosed,
    /// The target has no such field.
    WrongKind,
    /// The field does not hold the form that the change needs: text, a link or a list.
    WrongForm,
    Snoozed,
    /// The note of a matter concerned has quiet hours now.
    QuietHours,
    /// The target has the proposed value already.
    AlreadySo,
    /// The matter to move to does not exist.
    ParentMissing,
    /// The matter to move to is done or archived.
    ParentClosed,
    /// An earlier decision about this target cited the signal, or the signal was routed before.
    Claimed(ActionId),
    /// The target's steward has its turn first.
    WithTheSteward,
    /// The steward has weighed the signal and did not base a change on it.
    Weighed,
    /// The proposal is withheld and listed on this question to a human.
    Withheld(ActionId),
}

impl RouteSkip {
    /// The name used in signals and reports.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        self.into()
    }

    /// Whether the signal is routed again later, because the reason may pass with time.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Snoozed | Self::QuietHours | Self::WithTheSteward => true,
            Self::NotAMutation
            | Self::AsksThePrincipal
            | Self::NoProposal
            | Self::AmbiguousTarget
            | Self::TargetMissing
            | Self::TargetClosed
            | Self::WrongKind
            | Self::WrongForm
            | Self::AlreadySo
            | Self::ParentMissing
            | Self::ParentClosed
            | Self::Claimed(_)
            | Self::Weighed
            | Self::Withheld(_) => false,
        }
    }
}

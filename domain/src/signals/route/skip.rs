//! The named reasons why a signal is not acted upon.
//!
//! Pure. The words are kept in signals, in the index and in reports, so they do not change. [`super::route`] chooses one.

use crate::action::plan::ActionId;
use serde::{Deserialize, Serialize};

/// Why a signal is not acted upon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteSkip {
    /// It changes nothing.
    NotAMutation,
    /// It asks something of the principal.
    AsksThePrincipal,
    /// It proposes nothing that may be written.
    NoProposal,
    /// It may be about more than one record: a human names the one.
    AmbiguousTarget,
    TargetMissing,
    /// The target is done or archived.
    TargetClosed,
    /// The target has no such field.
    WrongKind,
    /// The field holds something else than text, or than a list.
    WrongForm,
    Snoozed,
    /// Its matter's note wants nothing changed at this time of day.
    QuietHours,
    /// The target says so already.
    AlreadySo,
    /// There is no such matter to move to.
    ParentMissing,
    /// The matter to move to is done or archived.
    ParentClosed,
    /// A record has cited it for this target before, or this very signal was routed before.
    Claimed(ActionId),
    /// Its target's steward has a turn first.
    WithTheSteward,
    /// The steward has weighed it and did not rest a decision on it.
    Weighed,
    /// It is listed on this question to a human instead of being proposed.
    Withheld(ActionId),
}

impl RouteSkip {
    /// The word used in signals and reports.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NotAMutation => "not_a_mutation",
            Self::AsksThePrincipal => "asks_the_principal",
            Self::NoProposal => "no_proposal",
            Self::AmbiguousTarget => "ambiguous_target",
            Self::TargetMissing => "target_missing",
            Self::TargetClosed => "target_closed",
            Self::WrongKind => "wrong_kind",
            Self::WrongForm => "wrong_form",
            Self::Snoozed => "snoozed",
            Self::QuietHours => "quiet_hours",
            Self::AlreadySo => "already_so",
            Self::ParentMissing => "parent_missing",
            Self::ParentClosed => "parent_closed",
            Self::Claimed(_) => "claimed",
            Self::WithTheSteward => "with_the_steward",
            Self::Weighed => "weighed",
            Self::Withheld(_) => "withheld",
        }
    }

    /// Whether the signal is looked at again, because time alone may change the answer.
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

//! The closed words of the domain as those of the contract, and back where a request may name one.
//!
//! Every word is matched by name, so that a new one does not compile before the contract has it. A number that the
//! contract does not know is refused.

use super::invalid_argument;
use steward_domain::action::audit::ActionKind;
use steward_domain::action::mutation::{ContextField, MutationClass, RelatedField};
use steward_domain::action::plan::Disposition;
use steward_domain::gates::mode::{Ceiling, Mode};
use steward_domain::gates::result::GateName;
use steward_domain::record::entity::{RecordState, SignalEffect, SurfaceClass};
use steward_domain::signals::signal::SignalStatus;
use steward_domain::steward::clerk::Judgement;
use steward_domain::steward::guard::GuardCap;
use steward_proto::v1;
use tonic::Status;

/// One word each way, so that none is forgotten.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident: $from:ident => $to:ident { $($word:ident),+ $(,)? }) => {
        $(#[$doc])*
        pub(super) fn $name(word: $from) -> i32 {
            let said = match word {
                $($from::$word => v1::$to::$word,)+
            };
            said.into()
        }
    };
}

words!(state: RecordState => State { Open, Done, Archived });
words!(class: MutationClass => ChangeClass { StateChange, ContextEdit, ParentMatter, Related });
words!(context: ContextField => ContextField { Summary, Description, Owner });
words!(related: RelatedField => RelatedField { RelatedOrgs, RelatedProjects, RelatedTo });
words!(mode: Mode => Mode { Shadow, LiveHighConfidenceOnly, Live });
words!(ceiling: Ceiling => Ceiling { Ask, Confirm, Act });
words!(landing: Disposition => Landing { Recorded, Shadow, Pending, Live });
words!(judgement: Judgement => Judgement { StillActive, LikelyDone, NeedsInput, StaleArchiveCandidate });
words!(surface: SurfaceClass => SurfaceClass { Low, Normal, High });
words!(effect: SignalEffect => Effect { Mutation, Action, None });
words!(signal: SignalStatus => SignalStatus { Unrouted, Applied, Skipped, Pending, ActionPending });
words!(kind: ActionKind => ActionKind {
    Action, Reversed, Confirmed, Dismissed, Tracked, TrackFailed, DoneAnyway, Opposed, Pruned, Lowered, Raised,
});
words!(gate: GateName => GateName {
    Caller, Mode, Confidence, Discretion, Ceiling, RateGuard, Steward, SourceBudget, Trust, Policy, Brake,
});
words!(cap: GuardCap => Cap {
    BackOff, ProbePending, Task, Matter, Minute, Hour, Day, Extraction, Stream, Sender, Source, Clock, LedgerUnreadable,
    LedgerLost, Stopped,
});

/// The state that a list is asked for; `None` for any.
pub(super) fn decode_state_filter(said: i32) -> Result<Option<RecordState>, Status> {
    match v1::State::try_from(said) {
        Ok(v1::State::Unspecified) => Ok(None),
        Ok(v1::State::Open) => Ok(Some(RecordState::Open)),
        Ok(v1::State::Done) => Ok(Some(RecordState::Done)),
        Ok(v1::State::Archived) => Ok(Some(RecordState::Archived)),
        Err(_) => Err(invalid_argument("`state` is none that there is")),
    }
}

/// Where the signals stand that a list is asked for; `None` for anywhere.
pub(super) fn decode_signal_status_filter(said: i32) -> Result<Option<SignalStatus>, Status> {
    match v1::SignalStatus::try_from(said) {
        Ok(v1::SignalStatus::Unspecified) => Ok(None),
        Ok(v1::SignalStatus::Unrouted) => Ok(Some(SignalStatus::Unrouted)),
        Ok(v1::SignalStatus::Applied) => Ok(Some(SignalStatus::Applied)),
        Ok(v1::SignalStatus::Skipped) => Ok(Some(SignalStatus::Skipped)),
        Ok(v1::SignalStatus::Pending) => Ok(Some(SignalStatus::Pending)),
        Ok(v1::SignalStatus::ActionPending) => Ok(Some(SignalStatus::ActionPending)),
        Err(_) => Err(invalid_argument("`status` is none that there is")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_a_request_may_name_comes_back() {
        for one in [RecordState::Open, RecordState::Done, RecordState::Archived] {
            assert_eq!(decode_state_filter(state(one)).unwrap(), Some(one));
        }
        for word in ["unrouted", "applied", "skipped", "pending", "action_pending"] {
            let one = SignalStatus::parse_or_unrouted(word);
            assert_eq!(decode_signal_status_filter(signal(one)).unwrap(), Some(one));
        }
        assert_eq!((decode_state_filter(0).unwrap(), decode_signal_status_filter(0).unwrap()), (None, None));
        assert!(decode_state_filter(9).is_err() && decode_signal_status_filter(-1).is_err());
    }
}

//! Encodes the domain's enums as those of the contract, and decodes the ones that a request may contain.
//!
//! Every variant is matched by name, so a new one does not compile before the contract has it. A number that the
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

/// Encodes one enum. The match is complete, so no variant can be forgotten.
macro_rules! encode_enum {
    ($(#[$doc:meta])* $name:ident: $from:ident => $to:ident { $($variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        pub(super) fn $name(value: $from) -> i32 {
            let encoded = match value {
                $($from::$variant => v1::$to::$variant,)+
            };
            encoded.into()
        }
    };
}

encode_enum!(state: RecordState => State { Open, Done, Archived });
encode_enum!(class: MutationClass => ChangeClass { StateChange, ContextEdit, ParentMatter, Related });
encode_enum!(context: ContextField => ContextField { Summary, Description, Owner });
encode_enum!(related: RelatedField => RelatedField { RelatedOrgs, RelatedProjects, RelatedTo });
encode_enum!(mode: Mode => Mode { Shadow, LiveHighConfidenceOnly, Live });
encode_enum!(ceiling: Ceiling => Ceiling { Ask, Confirm, Act });
encode_enum!(disposition: Disposition => Disposition { Recorded, Shadow, Pending, Live });
encode_enum!(judgement: Judgement => Judgement { StillActive, LikelyDone, NeedsInput, StaleArchiveCandidate });
encode_enum!(surface: SurfaceClass => SurfaceClass { Low, Normal, High });
encode_enum!(effect: SignalEffect => Effect { Mutation, Action, None });
encode_enum!(signal: SignalStatus => SignalStatus { Unrouted, Applied, Skipped, Pending, ActionPending });
encode_enum!(kind: ActionKind => ActionKind {
    Action, Reversed, Confirmed, Dismissed, Tracked, TrackFailed, DoneAnyway, Opposed, Pruned, Lowered, Raised,
    MappingAccepted, NotesMoved, Right, Wrong, Reopened, CeilingSet, Wiki, WikiSource, WikiManifest,
    WikiRejected,
});
encode_enum!(gate: GateName => GateName {
    Caller, Mode, Confidence, Discretion, Ceiling, RateGuard, Steward, SourceBudget, Trust, Policy,
});
encode_enum!(cap: GuardCap => Cap {
    BackOff, ProbePending, Task, Matter, Minute, Hour, Day, Extraction, Stream, Sender, Source, Clock, LedgerUnreadable,
    LedgerLost, Stopped, Provider, ProviderShare, Gate, Wiki, WikiTokens,
});

/// Decodes the state that a list is filtered by; `None` for any.
pub(super) fn decode_state_filter(number: i32) -> Result<Option<RecordState>, Status> {
    match v1::State::try_from(number) {
        Ok(v1::State::Unspecified) => Ok(None),
        Ok(v1::State::Open) => Ok(Some(RecordState::Open)),
        Ok(v1::State::Done) => Ok(Some(RecordState::Done)),
        Ok(v1::State::Archived) => Ok(Some(RecordState::Archived)),
        Err(_) => Err(invalid_argument("`state` is not a known value")),
    }
}

/// Decodes the status that signals are filtered by; `None` for any.
pub(super) fn decode_signal_status_filter(number: i32) -> Result<Option<SignalStatus>, Status> {
    match v1::SignalStatus::try_from(number) {
        Ok(v1::SignalStatus::Unspecified) => Ok(None),
        Ok(v1::SignalStatus::Unrouted) => Ok(Some(SignalStatus::Unrouted)),
        Ok(v1::SignalStatus::Applied) => Ok(Some(SignalStatus::Applied)),
        Ok(v1::SignalStatus::Skipped) => Ok(Some(SignalStatus::Skipped)),
        Ok(v1::SignalStatus::Pending) => Ok(Some(SignalStatus::Pending)),
        Ok(v1::SignalStatus::ActionPending) => Ok(Some(SignalStatus::ActionPending)),
        Err(_) => Err(invalid_argument("`status` is not a known value")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_a_request_is_decoded_as_it_was_encoded() {
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

//! Decodes resolutions and changes of requests.
//!
//! A change must have the closed form of all changes before anything is requested. Whether it fits the proposal is
//! decided by the rules of a confirmation.

use super::invalid_argument;
use steward_domain::action::mutation::{ContextField, Mutation, RelatedField};
use steward_domain::action::undo::ResolutionKind;
use steward_domain::record::entity::RecordState;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_proto::v1::{self, change};
use tonic::Status;

/// Decodes the change of a request.
///
/// # Errors
/// When it is incomplete or contains a value that must not be written.
pub(super) fn require_mutation(change: Option<v1::Change>) -> Result<Mutation, Status> {
    change
        .and_then(decode_change)
        .ok_or_else(|| invalid_argument("`change` is incomplete, or contains a value that must not be written"))
}

/// Decodes a change; `None` if it is incomplete or contains a value that must not be written.
#[must_use]
pub fn decode_change(change: v1::Change) -> Option<Mutation> {
    change.change.and_then(decode_mutation).filter(Mutation::is_sound)
}

/// Decodes the resolution of a batch.
///
/// # Errors
/// When the number is unknown or unspecified.
pub(super) fn decode_resolution_kind(number: i32) -> Result<ResolutionKind, Status> {
    match v1::ResolutionKind::try_from(number) {
        Ok(v1::ResolutionKind::Undo) => Ok(ResolutionKind::Undo),
        Ok(v1::ResolutionKind::Confirm) => Ok(ResolutionKind::Confirm),
        Ok(v1::ResolutionKind::Dismiss) => Ok(ResolutionKind::Dismiss),
        Ok(v1::ResolutionKind::Unspecified) | Err(_) => Err(invalid_argument("`kind` is not a known value")),
    }
}

fn decode_mutation(change: change::Change) -> Option<Mutation> {
    match change {
        change::Change::StateChange(it) => match v1::State::try_from(it.to).ok()? {
            v1::State::Unspecified => None,
            v1::State::Open => Some(Mutation::StateChange { to: RecordState::Open }),
            v1::State::Done => Some(Mutation::StateChange { to: RecordState::Done }),
            v1::State::Archived => Some(Mutation::StateChange { to: RecordState::Archived }),
        },
        change::Change::ContextEdit(it) => {
            let field = match v1::ContextField::try_from(it.field).ok()? {
                v1::ContextField::Unspecified => return None,
                v1::ContextField::Summary => ContextField::Summary,
                v1::ContextField::Description => ContextField::Description,
                v1::ContextField::Owner => ContextField::Owner,
            };
            Some(Mutation::ContextEdit { field, to: it.to })
        }
        change::Change::ParentMatter(it) => {
            let to = RecordPath::parse(&it.to)
                .ok()
                .filter(|to| !matches!(to.scanned_kind(), Some(kind) if kind != RecordKind::Matter))?;
            Some(Mutation::ParentMatter { to })
        }
        change::Change::Related(it) => {
            let field = match v1::RelatedField::try_from(it.field).ok()? {
                v1::RelatedField::Unspecified => return None,
                v1::RelatedField::RelatedOrgs => RelatedField::RelatedOrgs,
                v1::RelatedField::RelatedProjects => RelatedField::RelatedProjects,
                v1::RelatedField::RelatedTo => RelatedField::RelatedTo,
            };
            Some(Mutation::Related { field, member: it.member, present: it.present })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record;
    use super::*;
    use tonic::Code;

    #[test]
    fn every_change_is_decoded_as_it_was_encoded() {
        let mut all: Vec<Mutation> = [RecordState::Open, RecordState::Done, RecordState::Archived]
            .map(|to| Mutation::StateChange { to })
            .to_vec();
        all.extend(ContextField::ALL.map(|field| Mutation::ContextEdit { field, to: "Ann".into() }));
        all.push(Mutation::ParentMatter { to: RecordPath::parse("matter/house.md").unwrap() });
        let member = || "[[Acme]]".to_owned();
        all.extend(RelatedField::ALL.map(|field| Mutation::Related { field, member: member(), present: true }));
        all.push(Mutation::Related { field: RelatedField::RelatedTo, member: member(), present: false });
        for one in all {
            assert_eq!(require_mutation(Some(record::encode_change(&one))).unwrap(), one);
        }
    }

    #[test]
    fn an_incomplete_change_or_a_forbidden_value_is_refused() {
        let edit = |to: &str| change::Change::ContextEdit(v1::ContextEdit { field: 1, to: to.into() });
        for change in [
            change::Change::StateChange(v1::StateChange { to: 0 }),
            change::Change::StateChange(v1::StateChange { to: 9 }),
            change::Change::ContextEdit(v1::ContextEdit { field: 0, to: "x".into() }),
            edit(""),
            edit("a\nstate: done"),
            edit(&"x".repeat(501)),
            change::Change::ParentMatter(v1::ParentMatter { to: "task/x.md".into() }),
            change::Change::ParentMatter(v1::ParentMatter { to: "../x.md".into() }),
            change::Change::Related(v1::Related { field: 0, member: "x".into(), present: true }),
        ] {
            let refused = require_mutation(Some(v1::Change { change: Some(change.clone()) })).unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{change:?}");
        }
        assert_eq!(require_mutation(None).unwrap_err().code(), Code::InvalidArgument);
        assert_eq!(require_mutation(Some(v1::Change { change: None })).unwrap_err().code(), Code::InvalidArgument);
    }
}

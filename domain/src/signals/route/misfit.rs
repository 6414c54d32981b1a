//! Explains why a signal cannot change its target, and what to correct.
//!
//! The explanation uses only the signal and its target, by the same checks as the router. It must not
//! depend on the steward, the settings or the time. Values in the text are quoted from the two files.

use super::RouteSkip;
use super::RouteTarget;
use super::addressed_path;
use super::check_target;
use crate::action::mutation::Mutation;
use crate::record::path::RecordPath;
use crate::signals::signal::Signal;

/// Explains what in the signal or its target prevents the change, and names what to correct.
///
/// Returns `None` if neither file prevents it. `target` is `None` if the record does not exist.
#[must_use]
pub fn explain_misfit(signal: &Signal, target: Option<&RouteTarget>) -> Option<String> {
    let skip = addressed_path(signal).and_then(|path| check_target(signal, path, target)).err()?;
    let (reason, place) = (skip.as_str(), signal.target.as_ref().map_or("its target", RecordPath::as_str));
    let field = signal.proposal.as_ref().map_or("", Mutation::field);
    Some(match (&skip, &signal.proposal) {
        (RouteSkip::TargetMissing, _) => format!("{reason}: there is no {place}"),
        (RouteSkip::TargetClosed, _) => format!("{reason}: {place} is done or archived"),
        (RouteSkip::WrongKind, _) => format!("{reason}: {place} has no field `{field}` that may be changed"),
        (RouteSkip::WrongForm, Some(Mutation::Related { .. })) => {
            format!("{reason}: `{field}` of {place} is not a list: write it as a list, as in `{field}: [Ann]`")
        }
        (RouteSkip::WrongForm, Some(Mutation::ParentMatter { .. })) => {
            format!("{reason}: `{field}` of {place} is not a link to a matter")
        }
        (RouteSkip::WrongForm, _) => format!("{reason}: `{field}` of {place} is a list or a mapping, not text"),
        (RouteSkip::AlreadySo, Some(Mutation::Related { member, present: false, .. })) => {
            format!("{reason}: `{member}` is not in `{field}` of {place}")
        }
        (RouteSkip::AlreadySo, Some(Mutation::Related { member, present: true, .. })) => {
            format!("{reason}: `{member}` is in `{field}` of {place} already")
        }
        (RouteSkip::AlreadySo, _) => format!("{reason}: `{field}` of {place} has that value already"),
        (RouteSkip::NoProposal, _) => format!("{reason}: `mutation_proposal` holds nothing that may be written"),
        (RouteSkip::AmbiguousTarget, _) if signal.target.is_some() => {
            format!("{reason}: another task has the same `id` as {place}")
        }
        _ => reason.to_owned(),
    })
}

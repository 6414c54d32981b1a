//! What in a signal or its target keeps it from being acted upon, in words that name what to correct.
//!
//! It rests on the two files alone, by the same checks as [`super::route`]. Values in the words are quoted from them.

use super::RouteSkip;
use super::RouteTarget;
use super::addressed_path;
use super::check_target;
use crate::action::mutation::Mutation;
use crate::record::path::RecordPath;
use crate::signals::signal::Signal;

/// What in the signal or its target keeps it from being acted upon, in words that name what to correct; `None` where
/// nothing in the two files does. `target` is `None` where there is no such record.
#[must_use]
pub fn explain_misfit(signal: &Signal, target: Option<&RouteTarget>) -> Option<String> {
    let skip = addressed_path(signal).and_then(|path| check_target(signal, path, target)).err()?;
    let (word, place) = (skip.as_str(), signal.target.as_ref().map_or("its target", RecordPath::as_str));
    let field = signal.proposal.as_ref().map_or("", Mutation::field);
    Some(match (&skip, &signal.proposal) {
        (RouteSkip::TargetMissing, _) => format!("{word}: there is no {place}"),
        (RouteSkip::TargetClosed, _) => format!("{word}: {place} is done or archived"),
        (RouteSkip::WrongKind, _) => format!("{word}: {place} has no field `{field}` that may be changed"),
        (RouteSkip::WrongForm, Some(Mutation::Related { .. })) => {
            format!("{word}: `{field}` of {place} is no list: write it as one, as in `{field}: [Ann]`")
        }
        (RouteSkip::WrongForm, Some(Mutation::ParentMatter { .. })) => {
            format!("{word}: `{field}` of {place} is no link to a matter")
        }
        (RouteSkip::WrongForm, _) => format!("{word}: `{field}` of {place} is a list or a mapping, not text"),
        (RouteSkip::AlreadySo, Some(Mutation::Related { member, present: false, .. })) => {
            format!("{word}: `{member}` is not in `{field}` of {place}")
        }
        (RouteSkip::AlreadySo, Some(Mutation::Related { member, present: true, .. })) => {
            format!("{word}: `{member}` is in `{field}` of {place} already")
        }
        (RouteSkip::AlreadySo, _) => format!("{word}: `{field}` of {place} has that value already"),
        (RouteSkip::NoProposal, _) => format!("{word}: `mutation_proposal` holds nothing that may be written"),
        (RouteSkip::AmbiguousTarget, _) if signal.target.is_some() => {
            format!("{word}: another task has the same `id` as {place}")
        }
        _ => word.to_owned(),
    })
}

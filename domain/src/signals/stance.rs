//! Whether a signal about a record speaks for a proposed change, against it, or neither.
//!
//! A person who confirms a change must see what speaks against it, also if the decision did not cite it. A stance is
//! computed when it is shown, and is kept nowhere. It opens and closes no gate.

use crate::action::mutation::Mutation;
use crate::record::frontmatter::member_name;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a signal says about a proposed change of the same record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SignalStance {
    For,
    Against,
    Neutral,
}

impl SignalStance {
    /// The spelling in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A signal about the record of a proposed change.
#[derive(Clone, Copy, Debug)]
pub struct StanceCase<'a> {
    /// The change in question.
    pub proposed: &'a Mutation,
    /// When the newest signal was created that the decision cites in support.
    pub newest_support: Option<DateTime<Utc>>,
    /// Whether the decision cites this signal in support.
    pub is_cited_support: bool,
    /// What the signal itself proposes.
    pub mutation: Option<&'a Mutation>,
    /// Whether it asks somebody to act, and nobody has done so.
    pub asks: bool,
    /// Whether a person has resolved the signal, so that it says nothing about the record any more.
    pub is_settled: bool,
    pub created: DateTime<Utc>,
}

impl StanceCase<'_> {
    /// Judges what the signal says about the change.
    ///
    /// Another value for the same field speaks against it, whichever message is newer. A request for action speaks
    /// against a change of state only if it is newer than the support: an older one may be what was done.
    #[must_use]
    pub fn judge_stance(&self) -> SignalStance {
        if self.is_cited_support {
            return SignalStance::For;
        }
        if self.is_settled {
            return SignalStance::Neutral;
        }
        match self.mutation {
            Some(mutation) if !concerns_same_value(self.proposed, mutation) => SignalStance::Neutral,
            Some(mutation) if is_same_change(self.proposed, mutation) => SignalStance::For,
            Some(_) => SignalStance::Against,
            None => self.judge_request(),
        }
    }

    fn judge_request(&self) -> SignalStance {
        let is_newer = self.newest_support.is_none_or(|support| self.created > support);
        match self.proposed {
            Mutation::StateChange { .. } if self.asks && is_newer => SignalStance::Against,
            Mutation::StateChange { .. }
            | Mutation::ContextEdit { .. }
            | Mutation::ParentMatter { .. }
            | Mutation::Related { .. } => SignalStance::Neutral,
        }
    }
}

/// Whether both change the same field or, in a set, the same member.
fn concerns_same_value(one: &Mutation, other: &Mutation) -> bool {
    match (one, other) {
        (Mutation::Related { member: a, .. }, Mutation::Related { member: b, .. }) => {
            one.field() == other.field() && name_of(a) == name_of(b)
        }
        _ => one.field() == other.field(),
    }
}

fn is_same_change(one: &Mutation, other: &Mutation) -> bool {
    match (one, other) {
        (Mutation::Related { present: a, .. }, Mutation::Related { present: b, .. }) => a == b,
        (Mutation::ContextEdit { to: a, .. }, Mutation::ContextEdit { to: b, .. }) => a.trim() == b.trim(),
        _ => one == other,
    }
}

fn name_of(member: &str) -> String {
    member_name(&Value::from(member)).unwrap_or(member).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::mutation::{ContextField, RelatedField};
    use crate::record::entity::RecordState;
    use crate::time;
    use SignalStance::{Against, For, Neutral};

    #[test]
    fn each_signal_has_its_stance() {
        let done = Mutation::StateChange { to: RecordState::Done };
        let archived = Mutation::StateChange { to: RecordState::Archived };
        let owner = |to: &str| Mutation::ContextEdit { field: ContextField::Owner, to: to.into() };
        let summary = Mutation::ContextEdit { field: ContextField::Summary, to: "Ann".into() };
        let member = |member: &str, present| Mutation::Related {
            field: RelatedField::RelatedOrgs,
            member: member.into(),
            present,
        };
        let at = |hour: i64| time::parse("2026-11-22T00:00:00Z").unwrap() + chrono::TimeDelta::hours(hour);
        let judge = |proposed: &Mutation, mutation: Option<&Mutation>, asks: bool, created: DateTime<Utc>| {
            let case = StanceCase {
                proposed,
                newest_support: Some(at(8)),
                is_cited_support: false,
                mutation,
                asks,
                is_settled: false,
                created,
            };
            assert_eq!(StanceCase { is_settled: true, ..case }.judge_stance(), Neutral);
            assert_eq!(StanceCase { is_cited_support: true, is_settled: true, ..case }.judge_stance(), For);
            case.judge_stance()
        };
        for (proposed, mutation, expected) in [
            (&done, &done, For),
            (&done, &archived, Against),
            (&done, &owner("Ann"), Neutral),
            (&owner("Ann"), &owner(" Ann "), For),
            (&owner("Ann"), &owner("Bob"), Against),
            (&owner("Ann"), &summary, Neutral),
            (&member("[[ato]]", true), &member("ato", true), For),
            (&member("[[ato]]", true), &member("[[ato]]", false), Against),
            (&member("[[ato]]", true), &member("[[bank]]", false), Neutral),
        ] {
            for hour in [7, 9] {
                assert_eq!(judge(proposed, Some(mutation), false, at(hour)), expected, "{proposed:?} {mutation:?}");
            }
        }
        assert_eq!(judge(&done, None, true, at(9)), Against, "a newer request, such as a payment that bounced");
        assert_eq!(judge(&done, None, true, at(7)), Neutral, "an older request may be what was done");
        assert_eq!(judge(&done, None, false, at(9)), Neutral);
        assert_eq!(judge(&owner("Ann"), None, true, at(9)), Neutral);
    }

    #[test]
    fn without_any_support_a_request_speaks_against_a_change_of_state() {
        let done = Mutation::StateChange { to: RecordState::Done };
        let case = StanceCase {
            proposed: &done,
            newest_support: None,
            is_cited_support: false,
            mutation: None,
            asks: true,
            is_settled: false,
            created: DateTime::UNIX_EPOCH,
        };
        assert_eq!(case.judge_stance(), Against);
    }
}

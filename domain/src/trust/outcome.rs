//! The outcome of a proposal: its feedback, and when feedback counts as an observation.
//!
//! A confirmation and a change that was left alone for its undo window are different kinds of feedback. So are a
//! dismissal, an undo and another change by hand. If several apply, the latest one counts: a proposal that was
//! confirmed and then undone was wrong. An observation is feedback that agrees. Several of one source within an hour
//! must count once.

use crate::action::audit::UNDO_WINDOW_DAYS;
use crate::action::plan::Disposition;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

/// Feedback for one source within this time counts once: 1 h.
pub const BURST: TimeDelta = TimeDelta::hours(1);

/// The events of one proposal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProposalHistory {
    pub at: DateTime<Utc>,
    /// The change was applied without a confirmation.
    pub live: bool,
    pub confirmed: Option<DateTime<Utc>>,
    pub dismissed: Option<DateTime<Utc>>,
    pub undone: Option<DateTime<Utc>>,
    /// A human later made the proposed change by hand.
    pub done_anyway: Option<DateTime<Utc>>,
    /// A human later made another change by hand.
    pub opposed: Option<DateTime<Utc>>,
    /// A model undid or dismissed it. So it proves nothing that no person did.
    pub resolved_by_agent: bool,
}

/// The feedback on a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProposalFeedback {
    /// A human undid the change.
    Undone,
    /// A human confirmed the proposal.
    Confirmed,
    /// A human dismissed the proposal.
    Dismissed,
    /// A human made the proposed change by hand.
    DoneAnyway,
    /// A human made another change by hand.
    Opposed,
    /// The change was applied without a confirmation, and nobody undid it within the undo window.
    Survived,
    /// There is no feedback yet.
    Open,
}

impl ProposalFeedback {
    /// Whether the proposal was right, or `None` if that is not known yet.
    #[must_use]
    pub fn is_agreement(self) -> Option<bool> {
        match self {
            Self::Confirmed | Self::Survived | Self::DoneAnyway => Some(true),
            Self::Undone | Self::Dismissed | Self::Opposed => Some(false),
            Self::Open => None,
        }
    }
}

impl ProposalHistory {
    /// A new proposal with this disposition.
    #[must_use]
    pub fn from_disposition(disposition: Disposition, at: DateTime<Utc>) -> Self {
        Self { at, live: disposition == Disposition::Live, ..Self::default() }
    }

    /// The feedback by `now`, and since when it is known. For an open proposal that is the proposal's own moment.
    #[must_use]
    pub fn feedback_at(&self, now: DateTime<Utc>) -> (ProposalFeedback, DateTime<Utc>) {
        let reactions = [
            (ProposalFeedback::DoneAnyway, self.done_anyway),
            (ProposalFeedback::Opposed, self.opposed),
            (ProposalFeedback::Confirmed, self.confirmed),
            (ProposalFeedback::Dismissed, self.dismissed),
            (ProposalFeedback::Undone, self.undone),
        ];
        let latest = reactions.into_iter().filter_map(|(feedback, at)| Some((feedback, at?))).max_by_key(|(_, at)| *at);
        let survives_at = self.at + TimeDelta::days(UNDO_WINDOW_DAYS);
        match latest {
            Some(latest) => latest,
            None if self.live && !self.resolved_by_agent && now >= survives_at => {
                (ProposalFeedback::Survived, survives_at)
            }
            None => (ProposalFeedback::Open, self.at),
        }
    }
}

/// Counts the observations of one source from the moments of agreeing feedback. A burst counts once.
///
/// The moments may be in any order.
#[must_use]
pub fn count_observations(mut agreed_at: Vec<DateTime<Utc>>) -> u32 {
    agreed_at.sort_unstable();
    let (mut count, mut last): (u32, Option<DateTime<Utc>>) = (0, None);
    for at in agreed_at {
        if last.is_none_or(|last| at - last > BURST) {
            count = count.saturating_add(1);
            last = Some(at);
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time;
    use proptest::prelude::*;

    fn at(day: i64) -> DateTime<Utc> {
        time::parse("2026-11-01T08:00:00Z").unwrap() + TimeDelta::days(day)
    }

    #[test]
    fn each_history_has_its_feedback() {
        let (live, shadow) = (
            ProposalHistory::from_disposition(Disposition::Live, at(0)),
            ProposalHistory::from_disposition(Disposition::Shadow, at(0)),
        );
        let table = [
            (live.clone(), at(6), ProposalFeedback::Open),
            (live.clone(), at(7), ProposalFeedback::Survived),
            (shadow.clone(), at(400), ProposalFeedback::Open),
            (ProposalHistory { resolved_by_agent: true, ..live.clone() }, at(30), ProposalFeedback::Open),
            (
                ProposalHistory { resolved_by_agent: true, undone: Some(at(2)), ..live.clone() },
                at(30),
                ProposalFeedback::Undone,
            ),
            (ProposalHistory { undone: Some(at(3)), ..live.clone() }, at(30), ProposalFeedback::Undone),
            (ProposalHistory { confirmed: Some(at(1)), ..shadow.clone() }, at(2), ProposalFeedback::Confirmed),
            (
                ProposalHistory { confirmed: Some(at(1)), undone: Some(at(2)), ..shadow.clone() },
                at(3),
                ProposalFeedback::Undone,
            ),
            (ProposalHistory { dismissed: Some(at(1)), ..shadow.clone() }, at(3), ProposalFeedback::Dismissed),
            (ProposalHistory { done_anyway: Some(at(1)), ..shadow.clone() }, at(3), ProposalFeedback::DoneAnyway),
            (ProposalHistory { opposed: Some(at(1)), ..shadow.clone() }, at(3), ProposalFeedback::Opposed),
            (
                ProposalHistory { done_anyway: Some(at(1)), dismissed: Some(at(2)), ..shadow },
                at(3),
                ProposalFeedback::Dismissed,
            ),
        ];
        for (history, now, feedback) in table {
            assert_eq!(history.feedback_at(now).0, feedback, "{history:?}");
        }
        assert_eq!(live.feedback_at(at(99)).1, at(7), "known since the window closed, whenever it is asked");
    }

    #[test]
    fn a_burst_of_clicks_is_one_observation() {
        let minutes = |all: &[i64]| all.iter().map(|m| at(0) + TimeDelta::minutes(*m)).collect();
        assert_eq!(count_observations(minutes(&[])), 0);
        assert_eq!(count_observations(minutes(&[0, 1, 2, 3, 59, 60])), 1);
        assert_eq!(count_observations(minutes(&[61, 0])), 2);
        assert_eq!(count_observations(minutes(&[0, 40, 80, 120])), 2, "a burst does not go on by itself");
    }

    proptest! {
        #[test]
        fn the_order_of_feedback_does_not_matter(mut seconds in prop::collection::vec(0_i64..40_000, 0..40)) {
            let moments = |seconds: &[i64]| seconds.iter().map(|s| at(0) + TimeDelta::seconds(*s)).collect::<Vec<_>>();
            let one = count_observations(moments(&seconds));
            seconds.reverse();
            prop_assert_eq!(count_observations(moments(&seconds)), one);
            let twice = [seconds.clone(), seconds.clone()].concat();
            prop_assert_eq!(count_observations(moments(&twice)), one, "nor that they come twice");
        }
    }
}

//! What became of a proposal: the lesson that it holds, and when a lesson counts as an observation.
//!
//! An answer and a change that was left alone for its undo window are told apart, because they teach different
//! things, and so are a no, an undo and another change by hand. Where several hold, the latest word of a human
//! counts: a proposal that was confirmed and then undone was wrong. An observation is a lesson that agrees; those
//! of one source within an hour count once.

use crate::action::audit::UNDO_WINDOW_DAYS;
use crate::action::plan::Disposition;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

/// Lessons of one source that lie no further apart count once: 1 h.
pub const BURST: TimeDelta = TimeDelta::hours(1);

/// What is known of one proposal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProposalHistory {
    pub at: DateTime<Utc>,
    /// It was made without asking.
    pub live: bool,
    pub confirmed: Option<DateTime<Utc>>,
    pub dismissed: Option<DateTime<Utc>>,
    pub undone: Option<DateTime<Utc>>,
    /// A human later did by hand what was only proposed.
    pub done_anyway: Option<DateTime<Utc>>,
    /// A human later did something else by hand.
    pub opposed: Option<DateTime<Utc>>,
}

/// What became of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProposalFeedback {
    /// A human took it back.
    Undone,
    /// A human let it happen.
    Confirmed,
    /// A human turned it down.
    Dismissed,
    /// A human did by hand what was only proposed.
    DoneAnyway,
    /// A human did something else by hand.
    Opposed,
    /// It was made without asking, and nobody took it back while that was possible.
    Survived,
    /// Nothing yet.
    Open,
}

impl ProposalFeedback {
    /// Whether the proposal was right; `None` while nobody can tell.
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
    /// A proposal that landed so at that moment.
    #[must_use]
    pub fn from_disposition(landing: Disposition, at: DateTime<Utc>) -> Self {
        Self { at, live: landing == Disposition::Live, ..Self::default() }
    }

    /// What became of it by now, and since when that is known; the moment of an open one is its own.
    #[must_use]
    pub fn feedback_at(&self, now: DateTime<Utc>) -> (ProposalFeedback, DateTime<Utc>) {
        let said = [
            (ProposalFeedback::DoneAnyway, self.done_anyway),
            (ProposalFeedback::Opposed, self.opposed),
            (ProposalFeedback::Confirmed, self.confirmed),
            (ProposalFeedback::Dismissed, self.dismissed),
            (ProposalFeedback::Undone, self.undone),
        ];
        let latest = said.into_iter().filter_map(|(lesson, at)| Some((lesson, at?))).max_by_key(|(_, at)| *at);
        let survives_at = self.at + TimeDelta::days(UNDO_WINDOW_DAYS);
        match latest {
            Some(said) => said,
            None if self.live && now >= survives_at => (ProposalFeedback::Survived, survives_at),
            None => (ProposalFeedback::Open, self.at),
        }
    }
}

/// How many observations lessons of one source make: those that agree, a burst of them once.
///
/// The moments may come in any order.
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
    fn each_fate_has_its_lesson() {
        let (live, shadow) = (
            ProposalHistory::from_disposition(Disposition::Live, at(0)),
            ProposalHistory::from_disposition(Disposition::Shadow, at(0)),
        );
        let table = [
            (live.clone(), at(6), ProposalFeedback::Open),
            (live.clone(), at(7), ProposalFeedback::Survived),
            (shadow.clone(), at(400), ProposalFeedback::Open),
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
        for (fate, now, lesson) in table {
            assert_eq!(fate.feedback_at(now).0, lesson, "{fate:?}");
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
        fn the_order_in_which_lessons_come_does_not_matter(mut seconds in prop::collection::vec(0_i64..40_000, 0..40)) {
            let moments = |seconds: &[i64]| seconds.iter().map(|s| at(0) + TimeDelta::seconds(*s)).collect::<Vec<_>>();
            let one = count_observations(moments(&seconds));
            seconds.reverse();
            prop_assert_eq!(count_observations(moments(&seconds)), one);
            let twice = [seconds.clone(), seconds.clone()].concat();
            prop_assert_eq!(count_observations(moments(&twice)), one, "nor that they come twice");
        }
    }
}

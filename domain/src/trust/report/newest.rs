//! The newest cases of one kind: whether they contradict what all of them say.
//!
//! A thousand right proposals of last year must not outvote a source that went bad last week. The newest
//! [`NEWEST`] cases of which anything is known are kept, by the moment of the proposal, so that they are the same in
//! whatever order cases come. What was made live counts as right until somebody takes it back: an undo comes at once
//! and a change left alone is known only a week later, so that the decided ones alone would look too bad. What was only
//! proposed counts when it is answered, and as wrong when nobody answered while it was watched.
//!
//! They contradict when even the upper end of their 99 % interval (Wilson) lies below what is asked, which at 95 % takes 4
//! wrong ones of 20. What that costs is measured in the tests: of a source of which 2 % are wrong 0.06 % of all looks
//! say so without reason, of 3 % 0.3 %, of one right at the bar 1.6 %; of a source of which suddenly 60 % are wrong,
//! it is said after 6 cases, as a median.

use crate::action::plan::Disposition;
use crate::trust::case::TrustCase;
use crate::trust::tally::is_unanswered;
use crate::trust::wilson::{Z_99, score_interval};
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::collections::VecDeque;

/// So many cases are looked at.
pub const NEWEST: usize = 20;

/// The newest cases of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewestCases(VecDeque<NewestCaseEntry>);

/// One of them, in the order of its moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NewestCaseEntry {
    at: DateTime<Utc>,
    seq: u64,
    is_wrong: bool,
}

/// What they came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NewestTally {
    pub of: u64,
    pub wrong: u64,
}

impl NewestCases {
    /// Takes in a case, if it is new enough and anything is known of it.
    pub fn add_case(&mut self, case: &TrustCase, now: DateTime<Utc>) {
        let is_wrong = match case.lesson.is_agreement() {
            Some(agrees) => !agrees,
            None if case.landing == Disposition::Live => false,
            None if is_unanswered(case, now) => true,
            None => return,
        };
        self.push(NewestCaseEntry { at: case.at, seq: case.seq, is_wrong });
    }

    fn push(&mut self, known: NewestCaseEntry) {
        let place = self.0.partition_point(|other| *other < known);
        self.0.insert(place, known);
        if self.0.len() > NEWEST {
            self.0.pop_front();
        }
    }

    /// The newest of both.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Self {
        let mut both = self.clone();
        other.0.iter().for_each(|known| both.push(*known));
        both
    }

    /// How many there are, and how many of them were wrong.
    #[must_use]
    pub fn count_wrong(&self) -> NewestTally {
        let wrong = self.0.iter().filter(|known| known.is_wrong).count();
        NewestTally { of: self.0.len() as u64, wrong: wrong as u64 }
    }
}

impl NewestTally {
    /// Whether they contradict a precision of at least so much, 0 to 1; too few of them say nothing.
    #[must_use]
    pub fn is_surely_below(self, precision: f64) -> bool {
        self.of >= NEWEST as u64 && score_interval(self.of - self.wrong, self.of, Z_99).1 < precision
    }
}

#[cfg(test)]
mod tests;

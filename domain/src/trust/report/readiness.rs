//! How far the cases of one kind are from the support of a mode: ready, nearly, or too early.
//!
//! A refusal can say how many cases are missing. The number comes from the bar itself ([`EvidenceBar::is_cleared_by`]),
//! so that it and the refusal must never disagree.

use crate::gates::mode::Mode;
use crate::trust::report::advice::{EvidenceBar, Shortfall};
use crate::trust::tally::{ACTING_MODES, ActedTally, TallyCell};
use serde::Serialize;

/// The most further right cases that a kind may lack to be nearly ready: 20.
///
/// Each of them is one decision of a person, and a usual source brings so many in a few weeks. It is the number of newest
/// cases that the bar looks at, too. So a source with one wrong case in a hundred is near, and one with six is not.
pub const MOST_MISSING_WHEN_NEAR: u64 = 20;
/// Beyond this many cases no number is reported: nobody decides a billion.
const MOST_MISSING: u64 = 1_000_000_000;

/// How far the cases are from the support of a mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Readiness {
    /// A mode is supported.
    Ready,
    /// At most [`MOST_MISSING_WHEN_NEAR`] further right cases are missing, and it has not got worse lately.
    Nearly,
    #[default]
    TooEarly,
}

/// The mode that is supported or needs the fewest further cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NearestMode {
    pub readiness: Readiness,
    pub mode: Mode,
    /// The further right cases in a row that make it supported; 0 if it is. `None` if no number is enough.
    pub missing_cases: Option<u64>,
}

impl EvidenceBar {
    /// How many further right cases in a row make these cases clear the bar; 0 if they clear it. `None` if no number is
    /// enough.
    #[must_use]
    pub fn count_missing_cases(&self, acted: &ActedTally) -> Option<u64> {
        let is_enough = |more: u64| self.is_cleared_by(&acted.with_right_cases(more));
        if is_enough(0) {
            return Some(0);
        }
        let mut enough = std::iter::successors(Some(1_u64), |more| more.checked_mul(2))
            .take_while(|more| *more <= MOST_MISSING)
            .find(|more| is_enough(*more))?;
        let mut too_few = enough / 2;
        while enough - too_few > 1 {
            let middle = too_few + (enough - too_few) / 2;
            if is_enough(middle) { enough = middle } else { too_few = middle }
        }
        Some(enough)
    }

    /// Finds the highest mode that these cases support. If they support none, finds the one that needs the fewest further
    /// cases, of equal ones the more careful.
    #[must_use]
    pub fn find_nearest_mode(&self, cell: &TallyCell) -> NearestMode {
        if let Some(mode) = self.highest_supported_mode(cell) {
            return NearestMode { readiness: Readiness::Ready, mode, missing_cases: Some(0) };
        }
        let step = self.find_nearest_step(cell);
        let missing_cases = self.count_missing_cases(&cell.through[step]);
        let is_near = missing_cases.is_some_and(|missing| missing <= MOST_MISSING_WHEN_NEAR)
            && self.find_shortfall(&cell.through[step]) != Some(Shortfall::WorseLately);
        let readiness = if is_near { Readiness::Nearly } else { Readiness::TooEarly };
        NearestMode { readiness, mode: ACTING_MODES[step], missing_cases }
    }

    /// The step in [`ACTING_MODES`] that needs the fewest further cases, of equal ones the more careful.
    pub(super) fn find_nearest_step(&self, cell: &TallyCell) -> usize {
        let [careful, bold] = [0, 1].map(|step: usize| self.count_missing_cases(&cell.through[step]));
        // A mode that no number of cases supports comes last.
        usize::from(bold.unwrap_or(u64::MAX) < careful.unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests;

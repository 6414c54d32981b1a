//! The reliability of stated confidence: how well it matches the share of cases that were right.
//!
//! Decided cases go into ten bins of equal width by their stated confidence. The expected calibration error is the mean
//! distance between stated confidence and the share that was right, weighted by the bins' cases (Naeini, Cooper and
//! Hauskrecht, "Obtaining well calibrated probabilities using Bayesian binning", AAAI 2015). The Brier score is the
//! mean squared distance between confidence and outcome (Brier, "Verification of forecasts expressed in terms of
//! probability", Monthly Weather Review 78, 1950). 0 is best, and a coin's score is 0.25. Open cases must not count.

use crate::trust::outcome::ProposalFeedback;
use crate::trust::wilson::RateEstimate;
use serde::Serialize;

/// The number of bins. They have equal widths from 0 to 1.
pub const BINS: usize = 10;

/// The bin of a stated confidence, counted from 0. A value outside 0 to 1 is in an outer bin.
#[must_use]
pub fn bin_index(confidence: f64) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 0 and 10")]
    let at = (clamp_confidence(confidence) * 10.0) as usize;
    at.min(BINS - 1)
}

fn clamp_confidence(confidence: f64) -> f64 {
    if confidence.is_nan() { 0.0 } else { confidence.clamp(0.0, 1.0) }
}

/// The counts by bin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReliabilityBins {
    bins: [ReliabilityBinSum; BINS],
    squares: f64,
    open: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct ReliabilityBinSum {
    n: u64,
    right: u64,
    confidence: f64,
}

/// How well stated confidence matches the outcomes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReliabilitySummary {
    /// The number of cases of which it is known whether they were right.
    pub decided: u64,
    /// The number of cases that do not count.
    pub open: u64,
    /// 0 to 1. `None` without decided cases.
    pub expected_calibration_error: Option<f64>,
    /// 0 to 1. `None` without decided cases.
    pub brier_score: Option<f64>,
    pub bins: Vec<ReliabilityBin>,
}

/// The cases with a stated confidence between two tenths.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReliabilityBin {
    /// The lower end. The upper end is excluded, except for 1 in the last bin.
    pub from: f64,
    pub to: f64,
    /// The mean of the stated confidence, 0 to 1. `None` without cases.
    pub mean_confidence: Option<f64>,
    pub right: RateEstimate,
}

impl ReliabilityBins {
    /// Counts one case with its stated confidence, 0 to 1.
    pub fn add_case(&mut self, confidence: f64, feedback: ProposalFeedback) {
        let Some(right) = feedback.is_agreement() else {
            self.open += 1;
            return;
        };
        let confidence = clamp_confidence(confidence);
        let bin = &mut self.bins[bin_index(confidence)];
        bin.n += 1;
        bin.right += u64::from(right);
        bin.confidence += confidence;
        self.squares += (confidence - f64::from(u8::from(right))).powi(2);
    }

    /// The summary of all counted cases.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts of records are far below 2^53")]
    pub fn compute_reliability(&self) -> ReliabilitySummary {
        let decided: u64 = self.bins.iter().map(|b| b.n).sum();
        let mean = |sum: f64, n: u64| (n > 0).then(|| sum / n as f64);
        let distance = |b: &ReliabilityBinSum| (b.right as f64 - b.confidence).abs();
        let bin = |(at, b): (usize, &ReliabilityBinSum)| ReliabilityBin {
            from: at as f64 / 10.0,
            to: (at + 1) as f64 / 10.0,
            mean_confidence: mean(b.confidence, b.n),
            right: RateEstimate::new(b.right, b.n),
        };
        ReliabilitySummary {
            decided,
            open: self.open,
            expected_calibration_error: mean(self.bins.iter().map(distance).sum(), decided),
            brier_score: mean(self.squares, decided),
            bins: self.bins.iter().enumerate().map(bin).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn summarize(cases: &[(f64, ProposalFeedback)]) -> ReliabilitySummary {
        let mut bins = ReliabilityBins::default();
        cases.iter().for_each(|(confidence, feedback)| bins.add_case(*confidence, *feedback));
        bins.compute_reliability()
    }

    #[test]
    fn the_figures_are_those_of_the_papers() {
        use ProposalFeedback::{Confirmed, Dismissed, Open, Survived, Undone};
        let summary = summarize(&[
            (0.95, Confirmed),
            (0.95, Undone),
            (0.95, Survived),
            (0.65, Confirmed),
            (0.25, Dismissed),
            (0.9, Open),
        ]);
        assert_eq!((summary.decided, summary.open), (5, 1));
        // (3 * |2/3 - 0.95| + |1 - 0.65| + |0 - 0.25|) / 5
        assert!((summary.expected_calibration_error.unwrap() - (0.85 + 0.35 + 0.25) / 5.0).abs() < 1e-12);
        // (2 * 0.05² + 0.95² + 0.35² + 0.25²) / 5
        assert!((summary.brier_score.unwrap() - (0.005 + 0.9025 + 0.1225 + 0.0625) / 5.0).abs() < 1e-12);
        let last = &summary.bins[9];
        assert_eq!((last.right.count, last.right.of), (2, 3));
        assert!((last.mean_confidence.unwrap() - 0.95).abs() < 1e-12);
    }

    #[test]
    fn ends_fall_into_the_outer_bins_and_open_cases_have_no_figures() {
        let summary = summarize(&[
            (1.0, ProposalFeedback::Confirmed),
            (0.0, ProposalFeedback::Confirmed),
            (7.0, ProposalFeedback::Undone),
        ]);
        assert_eq!((summary.bins[9].right.of, summary.bins[0].right.of), (2, 1));
        let none = summarize(&[(0.5, ProposalFeedback::Open)]);
        assert_eq!((none.expected_calibration_error, none.brier_score, none.open), (None, None, 1));
    }

    proptest! {
        #[test]
        fn errors_lie_between_0_and_1_and_no_case_is_lost(
            cases in prop::collection::vec(((0.0..=1.0_f64), any::<bool>()), 1..200),
        ) {
            let all: Vec<_> = cases
                .iter()
                .map(|(c, right)| (*c, if *right { ProposalFeedback::Confirmed } else { ProposalFeedback::Undone }))
                .collect();
            let summary = summarize(&all);
            prop_assert!((0.0..=1.0).contains(&summary.expected_calibration_error.unwrap()));
            prop_assert!((0.0..=1.0).contains(&summary.brier_score.unwrap()));
            prop_assert_eq!(summary.bins.iter().map(|b| b.right.of).sum::<u64>(), cases.len() as u64);
            for bin in summary.bins.iter().filter(|b| b.right.of > 0) {
                let mean = bin.mean_confidence.unwrap();
                prop_assert!(bin.from - 1e-9 <= mean && mean <= bin.to + 1e-9);
            }
        }
    }
}

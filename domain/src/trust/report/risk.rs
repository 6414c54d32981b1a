//! The risk of a confidence threshold: a lower one applies more cases, and more of them may be wrong.
//!
//! It is the curve of risk over coverage (El-Yaniv and Wiener, "On the foundations of noise-free selective
//! classification", Journal of Machine Learning Research 11, 2010). For each threshold it has the share of decided
//! cases at or above it, and the share of those that were wrong. The area under it is the mean risk if cases are
//! applied one by one, the most confident first. Equally confident cases may come in any order, and the mean over the
//! orders is used. Confidence is counted in thousandths, so that a million cases need no more memory than ten.

use crate::trust::outcome::ProposalFeedback;
use crate::trust::wilson::RateEstimate;
use serde::Serialize;

/// The number of confidence steps.
const STEPS: usize = 1_000;
/// The number of reported thresholds, apart from 0.
const POINTS: usize = 20;

/// The counts by confidence.
#[derive(Clone, Debug)]
pub struct RiskTally {
    steps: Vec<RiskStep>,
}

#[derive(Clone, Copy, Debug, Default)]
struct RiskStep {
    decided: u64,
    wrong: u64,
}

/// The curve and the area under it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RiskCurve {
    pub decided: u64,
    /// 0 to 1, lower is better. `None` without decided cases.
    pub area: Option<f64>,
    /// The highest threshold first.
    pub points: Vec<RiskPoint>,
}

/// The cases that a threshold would apply.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RiskPoint {
    /// The lowest confidence, 0 to 1.
    pub threshold: f64,
    /// The share of decided cases at or above it.
    pub coverage: RateEstimate,
    /// The share of those that were wrong.
    pub risk: RateEstimate,
}

impl Default for RiskTally {
    fn default() -> Self {
        Self { steps: vec![RiskStep::default(); STEPS + 1] }
    }
}

impl RiskTally {
    /// Counts one case with its stated confidence, 0 to 1. An open case does not count.
    pub fn add_case(&mut self, confidence: f64, feedback: ProposalFeedback) {
        let Some(right) = feedback.is_agreement() else { return };
        let confidence = if confidence.is_nan() { 0.0 } else { confidence.clamp(0.0, 1.0) };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 0 and 1,000")]
        // As a float 0.29 is slightly less than 29 hundredths, but it belongs to the threshold 0.29.
        let at = (confidence * STEPS as f64 + 1e-9) as usize;
        let step = &mut self.steps[at.min(STEPS)];
        step.decided += 1;
        step.wrong += u64::from(!right);
    }

    /// The curve of all counted cases.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts of records are far below 2^53")]
    pub fn compute_curve(&self) -> RiskCurve {
        let all: u64 = self.steps.iter().map(|s| s.decided).sum();
        let (mut taken, mut wrong, mut risks, mut points) = (0, 0, 0.0, Vec::new());
        for (at, step) in self.steps.iter().enumerate().rev() {
            let each = if step.decided == 0 { 0.0 } else { step.wrong as f64 / step.decided as f64 };
            for nth in 1..=step.decided {
                risks += (wrong as f64 + each * nth as f64) / (taken + nth) as f64;
            }
            taken += step.decided;
            wrong += step.wrong;
            if at % (STEPS / POINTS) == 0 {
                let threshold = at as f64 / STEPS as f64;
                points.push(RiskPoint {
                    threshold,
                    coverage: RateEstimate::new(taken, all),
                    risk: RateEstimate::new(wrong, taken),
                });
            }
        }
        RiskCurve { decided: all, area: (all > 0).then(|| risks / all as f64), points }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn curve(cases: &[(f64, ProposalFeedback)]) -> RiskCurve {
        let mut risk = RiskTally::default();
        cases.iter().for_each(|(confidence, feedback)| risk.add_case(*confidence, *feedback));
        risk.compute_curve()
    }

    #[test]
    fn the_curve_is_that_of_the_paper() {
        use ProposalFeedback::{Confirmed, Dismissed, Open, Undone};
        let curve = curve(&[(0.95, Confirmed), (0.9, Undone), (0.7, Confirmed), (0.3, Dismissed), (0.99, Open)]);
        // The risks of one, two, three and four applied cases are 0, 1/2, 1/3, 1/2.
        assert!((curve.area.unwrap() - (0.5 + 1.0 / 3.0 + 0.5) / 4.0).abs() < 1e-12);
        let at =
            |threshold: f64| curve.points.iter().find(|p| (p.threshold - threshold).abs() < 1e-9).copied().unwrap();
        assert_eq!((at(0.95).coverage.count, at(0.95).risk.count), (1, 0));
        assert_eq!((at(0.9).coverage.count, at(0.9).coverage.of, at(0.9).risk.count), (2, 4, 1));
        assert_eq!((at(0.0).coverage.count, at(0.0).risk.count), (4, 2));
        assert_eq!((curve.points[0].threshold, curve.points.len()), (1.0, POINTS + 1));
    }

    #[test]
    fn equally_confident_cases_may_come_in_any_order() {
        let area = curve(&[(0.8, ProposalFeedback::Undone), (0.8, ProposalFeedback::Confirmed)]).area.unwrap();
        assert!((area - 0.5).abs() < 1e-12);
        assert_eq!(curve(&[]).area, None);
    }

    proptest! {
        #[test]
        fn a_lower_threshold_covers_more_and_a_right_one_first_is_no_worse(
            cases in prop::collection::vec((0_u32..=1_000, any::<bool>()), 1..150),
        ) {
            let feedback = |right: bool| if right { ProposalFeedback::Confirmed } else { ProposalFeedback::Undone };
            let all: Vec<_> = cases.iter().map(|(c, right)| (f64::from(*c) / 1_000.0, feedback(*right))).collect();
            let as_stated = curve(&all);
            for pair in as_stated.points.windows(2) {
                prop_assert!(pair[0].coverage.count <= pair[1].coverage.count);
            }
            for point in &as_stated.points {
                let above = all.iter().filter(|(c, _)| *c >= point.threshold - 1e-9).count() as u64;
                prop_assert_eq!(point.coverage.count, above);
            }
            let perfect = |right: bool| (f64::from(u8::from(right)), feedback(right));
            let knowing: Vec<_> = cases.iter().map(|(_, right)| perfect(*right)).collect();
            prop_assert!(curve(&knowing).area.unwrap() <= as_stated.area.unwrap() + 1e-12);
        }
    }
}

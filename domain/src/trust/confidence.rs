//! The confidence of one source: a moving average, its status, and the cost of an undo (S3-12, S3-53).
//!
//! A step is one judgement of a clerk to which the source contributed, or one undo of a change that the source
//! supported. It must not be one tick: a tick of ten tasks that use a source weighs the source ten times. A judgement
//! moves the confidence to `0.9 · before + 0.1 · contribution`. An undo takes 0.1, but never below 0. A source is
//! pending for three judgements. Then it is live if it ever contributed, and pruned if not. Below 0.2 for three
//! judgements in a row it is pruned as well, until it is above 0.5. Above 0.9 it is pinned, until it falls to 0.5.

use serde::{Deserialize, Serialize};

/// The first confidence of a source, unless a human wrote one.
pub const START: f64 = 0.5;
/// The weight of the old value in the moving average.
const KEPT: f64 = 0.9;
/// The cost of an undo.
pub const UNDO_COST: f64 = 0.1;
/// The number of judgements for which a source is pending.
const TRIAL: u32 = 3;
/// Below this for [`LOW_FOR`] judgements in a row, a source is pruned.
const LOW: f64 = 0.2;
const LOW_FOR: u32 = 3;
/// Above this, a source is pinned.
const HIGH: f64 = 0.9;
/// At or below this, a pinned source becomes live. Above it, a pruned source becomes live.
const MIDDLE: f64 = 0.5;

/// An event that changes a source's confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConfidenceStep {
    /// A clerk weighed the source, from 0 to 1. A value outside counts as the nearer end.
    Judged { contribution: f64 },
    /// A human undid a change that the source supported.
    Undone,
}

/// The status of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ConfidenceStatus {
    /// It has fewer than three judgements.
    Pending,
    Live,
    /// It was above 0.9 and has not fallen to 0.5 since.
    Pinned,
    /// It counts as an unknown source.
    Pruned,
}

impl ConfidenceStatus {
    /// The spelling in a record.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The confidence of one source and its counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceConfidence {
    /// 0 to 1.
    pub value: f64,
    /// The number of judgements so far.
    pub judged: u32,
    pub undone: u32,
    pub status: ConfidenceStatus,
    /// Whether it contributed at least once.
    contributed: bool,
    /// The number of judgements in a row that left it below `LOW`.
    low: u32,
}

impl Default for SourceConfidence {
    fn default() -> Self {
        Self { value: START, judged: 0, undone: 0, status: ConfidenceStatus::Pending, contributed: false, low: 0 }
    }
}

impl SourceConfidence {
    /// A source before its first step, with a confidence from 0 to 1.
    #[must_use]
    pub fn from_value(value: f64) -> Self {
        Self { value, ..Self::default() }
    }

    /// The same after one more step.
    #[must_use]
    pub fn apply_step(mut self, step: ConfidenceStep) -> Self {
        match step {
            ConfidenceStep::Judged { contribution } => {
                let contribution = if contribution.is_nan() { 0.0 } else { contribution.clamp(0.0, 1.0) };
                self.value = KEPT * self.value + (1.0 - KEPT) * contribution;
                self.judged = self.judged.saturating_add(1);
                self.contributed |= contribution > 0.0;
                self.low = if self.value < LOW { self.low.saturating_add(1) } else { 0 };
            }
            ConfidenceStep::Undone => {
                self.value = (self.value - UNDO_COST).max(0.0);
                self.undone = self.undone.saturating_add(1);
            }
        }
        self.status = self.next_status();
        self
    }

    fn next_status(&self) -> ConfidenceStatus {
        if self.judged < TRIAL {
            return ConfidenceStatus::Pending;
        }
        let status = if self.status == ConfidenceStatus::Pending {
            if self.contributed { ConfidenceStatus::Live } else { ConfidenceStatus::Pruned }
        } else {
            self.status
        };
        match status {
            ConfidenceStatus::Pruned if self.value > MIDDLE && self.contributed => ConfidenceStatus::Live,
            ConfidenceStatus::Pruned => ConfidenceStatus::Pruned,
            ConfidenceStatus::Live | ConfidenceStatus::Pinned if self.low >= LOW_FOR => ConfidenceStatus::Pruned,
            ConfidenceStatus::Live if self.value > HIGH => ConfidenceStatus::Pinned,
            ConfidenceStatus::Pinned if self.value <= MIDDLE => ConfidenceStatus::Live,
            ConfidenceStatus::Live | ConfidenceStatus::Pinned | ConfidenceStatus::Pending => status,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::{RngAlgorithm, TestRng};

    fn judged(contribution: f64) -> ConfidenceStep {
        ConfidenceStep::Judged { contribution }
    }

    fn after(steps: impl IntoIterator<Item = ConfidenceStep>) -> SourceConfidence {
        steps.into_iter().fold(SourceConfidence::default(), SourceConfidence::apply_step)
    }

    #[test]
    fn a_judgement_moves_it_by_a_tenth_and_an_undo_takes_a_tenth() {
        assert!((after([judged(1.0)]).value - 0.55).abs() < 1e-12);
        assert!((after([judged(0.0)]).value - 0.45).abs() < 1e-12);
        assert!((after([ConfidenceStep::Undone]).value - 0.4).abs() < 1e-12);
        assert_eq!(after([ConfidenceStep::Undone; 6]).value, 0.0, "never below 0");
        assert!((after([judged(7.0)]).value - 0.55).abs() < 1e-12, "a value outside counts as the nearer end");
        assert!((after([judged(f64::NAN)]).value - 0.45).abs() < 1e-12);
    }

    #[test]
    fn where_a_human_has_it_start_is_forgotten_by_a_tenth_at_each_judgement() {
        let known = [judged(1.0), judged(1.0)]
            .into_iter()
            .fold(SourceConfidence::from_value(0.82), SourceConfidence::apply_step);
        assert!((known.value - (0.81 * 0.82 + 0.19)).abs() < 1e-12, "{known:?}");
        assert_eq!(known.status, ConfidenceStatus::Pending, "its judgements are still counted from none");
    }

    #[test]
    fn three_judgements_long_it_is_on_trial() {
        assert_eq!(after([judged(1.0); 2]).status, ConfidenceStatus::Pending);
        assert_eq!(after([judged(1.0), judged(0.0), judged(0.0)]).status, ConfidenceStatus::Live);
        assert_eq!(after([judged(0.0); 3]).status, ConfidenceStatus::Pruned, "it never gave anything");
        assert_eq!(after([ConfidenceStep::Undone; 5]).status, ConfidenceStatus::Pending, "an undo is no judgement");
    }

    #[test]
    fn below_a_fifth_three_times_in_a_row_it_is_pruned_and_above_a_half_it_is_back() {
        let live = after([judged(0.4); 3]);
        let fallen = [ConfidenceStep::Undone; 3].into_iter().fold(live, SourceConfidence::apply_step);
        assert!(fallen.value < LOW && fallen.status == ConfidenceStatus::Live, "{fallen:?}");
        let twice = [judged(0.0); 2].into_iter().fold(fallen, SourceConfidence::apply_step);
        assert_eq!(twice.status, ConfidenceStatus::Live);
        let rescued = twice.apply_step(judged(1.0));
        assert!(rescued.value > LOW && rescued.low == 0, "{rescued:?}");
        let pruned = twice.apply_step(judged(0.0));
        assert_eq!(pruned.status, ConfidenceStatus::Pruned);
        let risen: Vec<SourceConfidence> =
            std::iter::successors(Some(pruned), |c| Some(c.apply_step(judged(1.0)))).take(12).collect();
        let back = risen.iter().position(|c| c.status == ConfidenceStatus::Live).unwrap();
        assert!(risen[back].value > MIDDLE && risen[back - 1].value <= MIDDLE, "{risen:?}");
    }

    #[test]
    fn above_nine_tenths_it_is_pinned_until_it_falls_to_a_half() {
        let pinned = after([judged(1.0); 20]);
        assert_eq!(pinned.status, ConfidenceStatus::Pinned);
        let falls: Vec<SourceConfidence> =
            std::iter::successors(Some(pinned), |c| Some(c.apply_step(ConfidenceStep::Undone))).take(8).collect();
        let let_go = falls.iter().position(|c| c.status == ConfidenceStatus::Live).unwrap();
        assert!(falls[let_go].value <= MIDDLE && falls[let_go - 1].value > MIDDLE, "{falls:?}");
    }

    /// The confidence of each of `sources` sources after `judgements` judgements. Each contributes between `low` and
    /// `high`, and is undone after a judgement with the probability `undone`.
    fn settled(low: f64, high: f64, undone: f64, sources: u32, judgements: u32) -> Vec<f64> {
        let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let mut source = || {
            (0..judgements).fold(SourceConfidence::default(), |now, _| {
                let now = now.apply_step(judged(random.random_range(low..high)));
                if random.random_bool(undone) { now.apply_step(ConfidenceStep::Undone) } else { now }
            })
        };
        (0..sources).map(|_| source().value).collect()
    }

    /// With `v' = 0.9 v + 0.1 c - 0.1 u` the mean approaches `E c - P(u)`, and the variance approaches `0.01 (Var c +
    /// P(u) (1 - P(u))) / (1 - 0.81)`, if the value does not reach 0. After `n` judgements the start counts `0.9^n`.
    #[test]
    #[allow(clippy::print_stdout, reason = "the figures help to set the bounds")]
    fn it_converges_to_what_a_source_contributes_less_what_is_undone() {
        const SOURCES: u32 = 2_000;
        for (range, undone) in [((0.9, 0.99), 0.01), ((0.86, 0.98), 0.03), ((0.72, 0.96), 0.2), ((0.3, 0.7), 0.0)] {
            let (mean_of, width): (f64, f64) = ((range.0 + range.1) / 2.0, range.1 - range.0);
            let expected = mean_of - undone;
            let variance = (width * width / 12.0 + undone * (1.0 - undone)) / 19.0;
            for judgements in [5, 20, 200] {
                let all = settled(range.0, range.1, undone, SOURCES, judgements);
                let left = KEPT.powi(judgements.cast_signed());
                let (mean_now, variance_now) = (expected + left * (START - expected), variance * (1.0 - left * left));
                let mean = all.iter().sum::<f64>() / f64::from(SOURCES);
                let spread = all.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / f64::from(SOURCES - 1);
                let error = (variance_now / f64::from(SOURCES)).sqrt();
                println!("{range:?} undone {undone}, {judgements} judgements: {mean:.4} ({mean_now:.4}), {spread:.6}");
                // Four standard errors: by chance once in 16,000 means, and these are the same in every run.
                assert!((mean - mean_now).abs() < 4.0 * error, "{mean} is not {mean_now} to {error}");
                assert!((spread / variance_now - 1.0).abs() < 0.25, "{spread} is not {variance_now}");
            }
        }
    }

    proptest! {
        #[test]
        fn it_stays_between_0_and_1_and_hysteresis_holds(
            steps in prop::collection::vec(prop_oneof![4 => (0.0..=1.0).prop_map(judged), 1 => Just(ConfidenceStep::Undone)], 0..200),
        ) {
            let mut now = SourceConfidence::default();
            for step in steps {
                let before = now;
                now = now.apply_step(step);
                prop_assert!((0.0..=1.0).contains(&now.value));
                match (before.status, now.status) {
                    (ConfidenceStatus::Pinned, ConfidenceStatus::Live) => prop_assert!(now.value <= MIDDLE),
                    (ConfidenceStatus::Live, ConfidenceStatus::Pinned) => prop_assert!(now.value > HIGH),
                    (ConfidenceStatus::Pruned, ConfidenceStatus::Live) => prop_assert!(now.value > MIDDLE),
                    (ConfidenceStatus::Live | ConfidenceStatus::Pinned, ConfidenceStatus::Pruned) => prop_assert!(now.value < LOW && now.low >= LOW_FOR),
                    (ConfidenceStatus::Pending, _) => prop_assert!(now.judged <= TRIAL),
                    (_, ConfidenceStatus::Pending) | (ConfidenceStatus::Pruned, ConfidenceStatus::Pinned) => prop_assert!(false, "{before:?} {now:?}"),
                    (_, _) => {}
                }
            }
        }
    }
}

//! The confidence interval of a rate, computed from counts.
//!
//! It is Wilson's score interval (E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
//! Journal of the American Statistical Association 22, 1927). Unlike the normal approximation, it stays within 0 and 1
//! and is accurate for few cases and for rates near the ends.

use serde::Serialize;

/// The quantile of the normal distribution for 95 %, two-sided.
pub const Z_95: f64 = 1.959_963_984_540_054;
/// The quantile of the normal distribution for 99 %, two-sided.
pub const Z_99: f64 = 2.575_829_303_548_901;

/// The interval for the rate behind `k` of `n`. Both ends are from 0 to 1. For `n = 0` it is the whole range.
#[must_use]
pub fn score_interval(k: u64, n: u64, z: f64) -> (f64, f64) {
    if n == 0 {
        return (0.0, 1.0);
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of records are far below 2^53")]
    let (k, n) = (k.min(n) as f64, n as f64);
    find_interval(k / n, n, z)
}

/// The interval for a share `p` of `n` cases.
fn find_interval(p: f64, n: f64, z: f64) -> (f64, f64) {
    let square = z * z;
    let middle = p + square / (2.0 * n);
    let half = z * (p * (1.0 - p) / n + square / (4.0 * n * n)).sqrt();
    let end = |at: f64| (at / (1.0 + square / n)).clamp(0.0, 1.0);
    (end(middle - half), end(middle + half))
}

/// A share of counted cases, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateEstimate {
    pub count: u64,
    pub of: u64,
    /// 0 to 1, or `None` if nothing was counted.
    pub share: Option<f64>,
    /// The lower end, 0 to 1.
    pub low: f64,
    /// The upper end, 0 to 1.
    pub high: f64,
}

impl RateEstimate {
    /// The estimate for `count` of `of` cases.
    #[must_use]
    pub fn new(count: u64, of: u64) -> Self {
        let (low, high) = score_interval(count, of, Z_95);
        #[expect(clippy::cast_precision_loss, reason = "counts of records are far below 2^53")]
        let share = (of > 0).then(|| count.min(of) as f64 / of as f64);
        Self { count, of, share, low, high }
    }

    /// The estimate for the mean of `of` scores from 0 to 1. Its `count` is their sum, rounded. No such scores vary more than cases
    /// that are counted, so the interval is not too narrow.
    #[must_use]
    pub fn from_mean(mean: f64, of: u64) -> Self {
        if of == 0 {
            return Self::new(0, 0);
        }
        let mean = mean.clamp(0.0, 1.0);
        #[expect(clippy::cast_precision_loss, reason = "counts of records are far below 2^53")]
        let scores = of as f64;
        let (low, high) = find_interval(mean, scores, Z_95);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 0 and `of`")]
        let count = (mean * scores).round() as u64;
        Self { count, of, share: Some(mean), low, high }
    }
}

/// The smallest number of cases for which the lower end of the 95 % interval can reach `low`, if all of them agree.
///
/// For `n` out of `n` the lower end is `n / (n + z²)`, so 0.95 needs 73 cases. `None` for 1 and above, which no number
/// reaches.
#[must_use]
pub fn least_cases(low: f64) -> Option<u64> {
    let least = (Z_95 * Z_95 * low.max(0.0) / (1.0 - low)).ceil();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is finite and not below 0")]
    (low < 1.0 && least < 1e15).then_some(least as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(interval: (f64, f64), expected: (f64, f64)) -> bool {
        (interval.0 - expected.0).abs() < 5e-4 && (interval.1 - expected.1).abs() < 5e-4
    }

    #[test]
    fn the_interval_is_wilsons() {
        assert!(close(score_interval(398, 407, Z_95), (0.9585, 0.9883)), "{:?}", score_interval(398, 407, Z_95));
        assert!(close(score_interval(0, 10, Z_95), (0.0, 0.2775)), "{:?}", score_interval(0, 10, Z_95));
        assert!(close(score_interval(2, 3, Z_99), (0.1442, 0.9596)), "{:?}", score_interval(2, 3, Z_99));
        assert_eq!(score_interval(0, 0, Z_95), (0.0, 1.0), "without cases nothing is known");
    }

    #[test]
    fn a_mean_of_scores_has_the_interval_of_such_a_share() {
        let mean = RateEstimate::from_mean(0.9, 10);
        assert!(close((mean.low, mean.high), score_interval(9, 10, Z_95)), "{mean:?}");
        assert_eq!((mean.count, mean.of, mean.share), (9, 10, Some(0.9)));
        assert_eq!(RateEstimate::from_mean(0.5, 0), RateEstimate::new(0, 0));
    }

    #[test]
    fn fewer_cases_than_the_least_cannot_reach_a_lower_end() {
        let cases = least_cases(0.95).unwrap();
        assert_eq!(cases, 73);
        assert!(score_interval(cases, cases, Z_95).0 >= 0.95 && score_interval(cases - 1, cases - 1, Z_95).0 < 0.95);
        assert_eq!((least_cases(1.0), least_cases(0.0), least_cases(f64::NAN)), (None, Some(0), None));
    }

    /// Numbers that look random and are the same in every run (the generator of Numerical Recipes).
    fn rolls(mut seed: u64) -> impl FnMut() -> f64 {
        move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    #[test]
    fn the_interval_holds_the_truth_about_as_often_as_it_says() {
        let mut roll = rolls(7);
        for (truth, n) in [(0.5, 40_u64), (0.9, 100), (0.97, 400), (0.02, 300)] {
            let held = (0..4_000)
                .filter(|_| {
                    let k = (0..n).filter(|_| roll() < truth).count() as u64;
                    let (low, high) = score_interval(k, n, Z_95);
                    (low..=high).contains(&truth)
                })
                .count();
            // For counts no interval holds exactly 95 %. Wilson's stays near it.
            assert!((0.925..=0.985).contains(&(held as f64 / 4_000.0)), "{truth} of {n}: {held}");
        }
    }

    #[test]
    fn each_end_solves_the_equation_of_the_score() {
        // |p - l| = z * sqrt(l (1 - l) / n)
        for (k, n) in [(1_u32, 1_u32), (2, 2), (2, 9), (5, 70), (70, 70)] {
            let (low, _) = score_interval(k.into(), n.into(), Z_99);
            let p = f64::from(k) / f64::from(n);
            let distance = Z_99 * (low * (1.0 - low) / f64::from(n)).sqrt();
            assert!(((p - low) - distance).abs() < 1e-12, "{k} of {n}: {low}");
        }
    }

    /// How often the interval of `n` cases holds a rate `p`, by the binomial distribution itself.
    fn coverage(n: u32, p: f64, z: f64) -> f64 {
        // The probability of k of n from that of k - 1, in logarithms, because p^n may be too small for a number.
        let odds = (p / (1.0 - p)).ln();
        let mut log = f64::from(n) * (1.0 - p).ln();
        let mut covered = 0.0;
        for k in 0..=n {
            let (low, high) = score_interval(k.into(), n.into(), z);
            covered += if (low..=high).contains(&p) { log.exp() } else { 0.0 };
            log += f64::from(n - k).ln() - f64::from(k + 1).ln() + odds;
        }
        covered
    }

    /// On average over the rates the interval holds the truth as often as it says. For single rates it dips. Next to 0
    /// and 1, where one case decides, it dips to 86 % on this grid (L. D. Brown, T. T. Cai, A. DasGupta, "Interval
    /// estimation for a binomial proportion", Statistical Science 16, 2001, explain why). Between 10 and 90 % it
    /// hardly dips.
    #[test]
    #[allow(clippy::print_stdout, reason = "the figures help to set the bounds")]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        for (z, says, dips, inner_dips) in [(Z_95, 0.95, 0.85, 0.92), (Z_99, 0.99, 0.90, 0.97)] {
            for n in [10_u32, 20, 50, 100, 400, 1_000] {
                let rates = (1..200).map(|p| f64::from(p) / 200.0);
                let of_n: Vec<(f64, f64)> = rates.map(|p| (p, coverage(n, p, z))).collect();
                let mean = of_n.iter().map(|(_, c)| c).sum::<f64>() / of_n.len() as f64;
                let lowest = |all: &[(f64, f64)]| all.iter().map(|(_, c)| *c).fold(1.0, f64::min);
                let inner: Vec<(f64, f64)> = of_n.iter().filter(|(p, _)| (0.1..=0.9).contains(p)).copied().collect();
                println!("{says} of {n}: {mean:.4}, lowest {:.4}, inside {:.4}", lowest(&of_n), lowest(&inner));
                assert!((mean - says).abs() < 0.005, "{n}: {mean}");
                assert!(lowest(&of_n) > dips && lowest(&inner) > inner_dips, "{n}: {of_n:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_rate_seen_lies_within_and_more_cases_say_more(k in 0_u64..500, more in 0_u64..500) {
            let n = (k + more).max(1);
            let seen = k as f64 / n as f64;
            let (low, high) = score_interval(k, n, Z_95);
            prop_assert!((0.0..=seen + 1e-12).contains(&low) && (seen - 1e-12..=1.0).contains(&high));
            let (tighter_low, tighter_high) = score_interval(k * 10, n * 10, Z_95);
            prop_assert!(tighter_high - tighter_low <= high - low);
        }
    }
}

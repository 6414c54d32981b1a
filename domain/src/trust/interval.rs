//! How far a share can be told from some cases: Wilson's score interval.
//!
//! E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal of the
//! American Statistical Association 22 (1927), without continuity correction.

use serde::{Deserialize, Serialize};

/// Standard deviations on both sides that hold 95 % of a normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// A share of some cases, with the interval that holds the true one in about 95 of 100 times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    pub hits: u64,
    pub cases: u64,
    /// `hits / cases`; 0 of no cases.
    pub share: f64,
    /// 0 to `share`; 0 of no cases.
    pub low: f64,
    /// `share` to 1; 1 of no cases.
    pub high: f64,
}

impl Share {
    /// The share of so many hits among so many cases; more hits than cases count as all.
    #[must_use]
    pub fn of(hits: u64, cases: u64) -> Self {
        let hits = hits.min(cases);
        if cases == 0 {
            return Self { hits, cases, share: 0.0, low: 0.0, high: 1.0 };
        }
        let (n, p) = (cases as f64, hits as f64 / cases as f64);
        let z2 = Z * Z;
        let middle = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
        let half = Z / (1.0 + z2 / n) * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
        // Exact at the ends, where rounding would leave a hair.
        let low = if hits == 0 { 0.0 } else { (middle - half).clamp(0.0, p) };
        let high = if hits == cases { 1.0 } else { (middle + half).clamp(p, 1.0) };
        Self { hits, cases, share: p, low, high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_gives_the_published_figures() {
        // Newcombe 1998, table I, method 3: Wilson score without continuity correction.
        for (hits, cases, low, high) in
            [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]
        {
            let share = Share::of(hits, cases);
            assert!((share.low - low).abs() < 5e-5 && (share.high - high).abs() < 5e-5, "{share:?}");
        }
        assert_eq!(Share::of(0, 0), Share { hits: 0, cases: 0, share: 0.0, low: 0.0, high: 1.0 });
        assert_eq!((Share::of(5, 5).high, Share::of(0, 5).low), (1.0, 0.0));
    }

    /// The probability of every count of hits, so that no chance is in the test.
    fn covers(p: f64, cases: u64) -> f64 {
        let (mut covered, mut log_choose) = (0.0, 0.0_f64);
        for hits in 0..=cases {
            if hits > 0 {
                log_choose += ((cases - hits + 1) as f64).ln() - (hits as f64).ln();
            }
            let share = Share::of(hits, cases);
            if share.low <= p && p <= share.high {
                covered += (log_choose + hits as f64 * p.ln() + (cases - hits) as f64 * (1.0 - p).ln()).exp();
            }
        }
        covered
    }

    #[test]
    fn it_holds_the_true_share_about_as_often_as_it_says() {
        let mut all = Vec::new();
        for cases in [20, 50, 200, 1_000] {
            for percent in 2..=98 {
                all.push(covers(f64::from(percent) / 100.0, cases));
            }
        }
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let least = all.iter().copied().fold(1.0, f64::min);
        assert!((0.945..0.958).contains(&mean) && least > 0.88, "{mean} {least}");
    }

    proptest! {
        #[test]
        fn more_cases_narrow_it_and_it_holds_its_own_share(hits in 0_u64..1_000, more in 0_u64..1_000) {
            let (one, ten) = (Share::of(hits, hits + more), Share::of(10 * hits, 10 * (hits + more)));
            prop_assert!(one.low <= one.share && one.share <= one.high || one.cases == 0);
            prop_assert!(ten.high - ten.low <= one.high - one.low);
        }
    }
}

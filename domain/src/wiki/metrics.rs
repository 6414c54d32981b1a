//! The metrics of a wiki: what each one measures, how it stands, and which runs wait for a person while it is broken.
//!
//! A metric without enough observations is unknown and holds nothing. A person may acknowledge a broken one: what was measured
//! before that moment does not count any more.

use crate::trust::wilson::RateEstimate;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// The fewest observations of a share that says anything.
pub const MIN_OBSERVATIONS: u64 = 10;
/// How many of the newest runs of a model count for the coverage.
pub const COVERAGE_RUNS: usize = 20;
/// By how much gold queries may be answered less alike than at the last measurement.
const MAX_FALL: f64 = 0.05;
/// What a computed difference may be off.
const ROUNDING: f64 = 1e-9;

/// What is measured about a wiki.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display, strum::EnumString, strum::EnumIter,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum WikiMetric {
    /// The share of claims that their quotes carry.
    Fidelity,
    /// The share of the pairs of claims that do not contradict each other.
    Consistency,
    /// The share of the pages that a run was offered and that it changed or found in need of no change.
    Coverage,
    /// How alike the answers to gold queries are to those that a person found good.
    Retroactive,
}

/// How a metric stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum MetricState {
    /// Too little was counted.
    Unknown,
    Healthy,
    Degraded,
    Broken,
}

impl WikiMetric {
    /// The share from which on it is healthy, and from which on it is only degraded. Only a fall breaks the answers to gold queries.
    #[must_use]
    pub fn thresholds(self) -> (f64, f64) {
        match self {
            Self::Fidelity | Self::Consistency => (0.95, 0.85),
            Self::Coverage => (0.90, 0.70),
            Self::Retroactive => (0.80, 0.0),
        }
    }

    /// How it stands by a share, whatever the interval of the share is.
    #[must_use]
    pub fn judge(self, rate: &RateEstimate) -> MetricState {
        let (healthy, degraded) = self.thresholds();
        match rate.share.filter(|_| rate.of >= MIN_OBSERVATIONS) {
            None => MetricState::Unknown,
            Some(share) if share >= healthy => MetricState::Healthy,
            Some(share) if share >= degraded => MetricState::Degraded,
            Some(_) => MetricState::Broken,
        }
    }

    /// How it stands by a share and the one before, if there is one with which it is compared.
    #[must_use]
    pub fn judge_against(self, rate: &RateEstimate, before: Option<f64>) -> MetricState {
        match (self.judge(rate), before, rate.share) {
            (MetricState::Unknown, ..) => MetricState::Unknown,
            (_, Some(before), Some(share)) if before - share > MAX_FALL + ROUNDING => MetricState::Broken,
            (state, ..) => state,
        }
    }

    /// Whether runs that a person asked for wait too while it is broken. Unattended runs always do.
    #[must_use]
    pub fn holds_attended(self) -> bool {
        matches!(self, Self::Coverage | Self::Consistency)
    }

    /// How the contract of wikis names it. M4 is the cost, which only informs.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Fidelity => "M1",
            Self::Coverage => "M2",
            Self::Retroactive => "M3",
            Self::Consistency => "M5",
        }
    }

    /// What it says, for people.
    #[must_use]
    pub fn explain(self) -> &'static str {
        match self {
            Self::Fidelity => "claims that their quotes carry",
            Self::Consistency => "pairs of claims that do not contradict each other",
            Self::Coverage => "related pages that the last runs of a model changed or found in need of no change",
            Self::Retroactive => "gold questions, and how alike their answers are",
        }
    }
}

/// What one run of a model did with the pages that it was offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCoverage {
    /// The related pages that the writer was offered.
    pub offered: u64,
    /// Those of them that it changed.
    pub touched: u64,
    /// Those that it left alone, with a reason.
    pub unchanged: u64,
}

impl RunCoverage {
    /// Sums the newest runs, and returns the share that was dealt with.
    #[must_use]
    pub fn rate_newest<'a>(newest_last: impl DoubleEndedIterator<Item = &'a Self>) -> RateEstimate {
        let counted = newest_last.rev().filter(|run| run.offered > 0).take(COVERAGE_RUNS);
        let (covered, offered) = counted.fold((0, 0), |(covered, offered), run| {
            (covered + (run.touched + run.unchanged).min(run.offered), offered + run.offered)
        });
        RateEstimate::new(covered, offered)
    }
}

/// A metric as it stands now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricReading {
    pub metric: WikiMetric,
    pub state: MetricState,
    /// What was counted, with its share and interval.
    #[serde(flatten)]
    pub rate: RateEstimate,
    /// When it was measured last.
    pub at: Option<DateTime<Utc>>,
    /// Until when earlier measurements were acknowledged.
    pub acknowledged_at: Option<DateTime<Utc>>,
}

impl MetricReading {
    /// Reads a metric from what counts for it.
    #[must_use]
    pub fn new(
        metric: WikiMetric,
        rate: RateEstimate,
        at: Option<DateTime<Utc>>,
        acknowledged_at: Option<DateTime<Utc>>,
    ) -> Self {
        Self { metric, state: metric.judge(&rate), rate, at, acknowledged_at }
    }

    /// The same beside an earlier measurement, if there is one with which it is compared.
    #[must_use]
    pub fn compare_with(self, before: Option<f64>) -> Self {
        Self { state: self.metric.judge_against(&self.rate, before), ..self }
    }

    /// Whether runs wait because of it.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.state == MetricState::Broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_follows_from_the_share_and_few_observations_say_nothing() {
        for (count, of, state) in [
            (0, 0, MetricState::Unknown),
            (0, 9, MetricState::Unknown),
            (19, 20, MetricState::Healthy),
            (18, 20, MetricState::Degraded),
            (17, 20, MetricState::Degraded),
            (16, 20, MetricState::Broken),
        ] {
            let rate = RateEstimate::new(count, of);
            assert_eq!(WikiMetric::Fidelity.judge(&rate), state, "{count} of {of}");
        }
        assert_eq!(WikiMetric::Coverage.judge(&RateEstimate::new(14, 20)), MetricState::Degraded);
        assert_eq!(WikiMetric::Coverage.judge(&RateEstimate::new(13, 20)), MetricState::Broken);
    }

    #[test]
    fn the_newest_runs_count_and_those_that_were_offered_nothing_do_not() {
        let run = |offered, touched, unchanged| RunCoverage { offered, touched, unchanged };
        let old = vec![run(10, 0, 0); 5];
        let new = vec![run(10, 4, 5); COVERAGE_RUNS];
        let all: Vec<RunCoverage> = old.into_iter().chain(new).chain([run(0, 0, 0)]).collect();
        let rate = RunCoverage::rate_newest(all.iter());
        assert_eq!((rate.count, rate.of), (180, 200));
        assert_eq!(RunCoverage::rate_newest([].iter()).of, 0);
    }
}

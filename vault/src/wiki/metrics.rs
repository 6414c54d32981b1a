//! What was measured about a wiki, and what a person acknowledged.
//!
//! It is kept for ever below `.steward/wiki/<name>/`. Nothing of the wiki is changed.

use crate::files::root::VaultRoot;
use crate::wiki::evals::{EvalReport, read_evals};
use crate::wiki::kept::{change_log, read_log};
use crate::wiki::staged::{RunMeta, StagedPlan};
use crate::wiki::state::ReadWikiError;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use steward_domain::trust::wilson::RateEstimate;
use steward_domain::wiki::metrics::{MetricReading, RunCoverage, WikiMetric};
use steward_domain::wiki::run::RunId;
use strum::IntoEnumIterator;

const COVERAGE: &str = "coverage.jsonl";
const ACKNOWLEDGED: &str = "acknowledged.jsonl";

/// What a committed run of a model did with the pages that it was offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CoverageLine {
    run: RunId,
    at: DateTime<Utc>,
    #[serde(flatten)]
    coverage: RunCoverage,
}

/// That a person knows of a broken metric and lets runs go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricAcknowledgement {
    pub metric: WikiMetric,
    pub at: DateTime<Utc>,
    /// The person's name, as they gave it.
    pub by: String,
    pub reason: String,
}

/// What a plan did with the pages that its writer was offered; `None` if it was offered nothing.
#[must_use]
pub(crate) fn measure_coverage(plan: &StagedPlan, touched: &BTreeSet<String>) -> Option<RunCoverage> {
    let count = |is: &dyn Fn(&&String) -> bool| plan.offered.iter().filter(|slug| is(slug)).count() as u64;
    let coverage = RunCoverage {
        offered: plan.offered.len() as u64,
        touched: count(&|slug| touched.contains(*slug)),
        unchanged: count(&|slug| !touched.contains(*slug) && plan.unchanged.contains(slug)),
    };
    (coverage.offered > 0).then_some(coverage)
}

/// Keeps the coverage of a committed run, once. Only a model is offered pages.
///
/// # Errors
/// [`ReadWikiError`].
pub(crate) fn keep_coverage(
    root: &VaultRoot,
    meta: &RunMeta,
    coverage: Option<RunCoverage>,
) -> Result<(), ReadWikiError> {
    let Some(coverage) = coverage else { return Ok(()) };
    let line = CoverageLine { run: meta.run.clone(), at: meta.began, coverage };
    change_log(root, &meta.wiki, COVERAGE, |lines: &mut Vec<CoverageLine>| {
        if lines.iter().all(|known| known.run != line.run) {
            lines.push(line);
        }
    })
}

/// Keeps that a person acknowledged a metric. What was measured before does not count any more.
///
/// # Errors
/// [`ReadWikiError`].
pub fn acknowledge_metric(root: &VaultRoot, wiki: &str, line: MetricAcknowledgement) -> Result<(), ReadWikiError> {
    change_log(root, wiki, ACKNOWLEDGED, |lines: &mut Vec<MetricAcknowledgement>| {
        if !lines.contains(&line) {
            lines.push(line);
        }
    })
}

/// Until when a person acknowledged a metric; `None` if nobody did.
pub(super) fn read_acknowledged(
    root: &VaultRoot,
    wiki: &str,
    metric: WikiMetric,
) -> Result<Option<DateTime<Utc>>, ReadWikiError> {
    let lines: Vec<MetricAcknowledgement> = read_log(root, wiki, ACKNOWLEDGED)?;
    Ok(find_acknowledged(&lines, metric))
}

fn find_acknowledged(lines: &[MetricAcknowledgement], metric: WikiMetric) -> Option<DateTime<Utc>> {
    lines.iter().filter(|line| line.metric == metric).map(|line| line.at).max()
}

/// The metrics of a wiki as they stand.
///
/// # Errors
/// [`ReadWikiError`].
pub fn read_metrics(root: &VaultRoot, wiki: &str) -> Result<Vec<MetricReading>, ReadWikiError> {
    let acknowledged: Vec<MetricAcknowledgement> = read_log(root, wiki, ACKNOWLEDGED)?;
    let coverage: Vec<CoverageLine> = read_log(root, wiki, COVERAGE)?;
    let evals = read_evals(root, wiki)?;
    let read = |metric: WikiMetric| {
        let since = find_acknowledged(&acknowledged, metric);
        let counts = |at: DateTime<Utc>| since.is_none_or(|since| at > since);
        let mut before = None;
        let newest = match metric {
            WikiMetric::Coverage => {
                let runs: Vec<&CoverageLine> = coverage.iter().filter(|line| counts(line.at)).collect();
                let rate = RunCoverage::rate_newest(runs.iter().map(|line| &line.coverage));
                runs.last().map(|line| (line.at, rate))
            }
            WikiMetric::Fidelity => evals.iter().rev().find_map(|report| match report {
                EvalReport::Fidelity(report) if counts(report.at) => Some((report.at, report.fidelity())),
                _ => None,
            }),
            WikiMetric::Consistency => evals.iter().rev().find_map(|report| match report {
                EvalReport::Consistency(report) if counts(report.at) => Some((report.at, report.consistency())),
                _ => None,
            }),
            WikiMetric::Retroactive => evals.iter().rev().find_map(|report| match report {
                EvalReport::Gold(report) if counts(report.at) => {
                    before = report.before;
                    Some((report.at, report.rate()))
                }
                _ => None,
            }),
        };
        let (at, rate) = newest.unzip();
        MetricReading::new(metric, rate.unwrap_or_else(|| RateEstimate::new(0, 0)), at, since).compare_with(before)
    };
    Ok(WikiMetric::iter().map(read).collect())
}

/// The metrics of a wiki that are broken.
///
/// # Errors
/// [`ReadWikiError`].
pub fn list_broken_metrics(root: &VaultRoot, wiki: &str) -> Result<Vec<WikiMetric>, ReadWikiError> {
    let readings = read_metrics(root, wiki)?;
    Ok(readings.into_iter().filter(MetricReading::is_broken).map(|reading| reading.metric).collect())
}

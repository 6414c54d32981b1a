//! Checks whether this build can continue the runs of a deployment (S3-57 to S3-62).
//!
//! [`runs`] lists and downloads the runs, [`history`] reads them, [`replay`] and [`payloads`] judge one. The judgements
//! are collected in a [`PreflightReport`], one line for each shape and outcome. Open runs are all judged; of the ended
//! ones the newest few of each shape. `steward preflight` prints the report, and the boot check waits until it is safe.
//! Nothing is changed and no activity runs.

mod boot;
mod history;
mod payloads;
mod replay;
mod report;
mod runs;

pub(crate) use boot::wait_until_runs_are_safe;
pub(crate) use report::{ALL_SAFE, PreflightReport};
pub(crate) use runs::{RunReader, WorkflowRun};

use anyhow::Context;
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::{StreamExt, stream};
use history::{RunShape, has_completed_task, is_open, parse_history};
use replay::HistoryReplayer;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use steward_server::views::schedules::VAULT_SCHEDULES;
use steward_vault::index::{Index, IndexError};
use temporalio_protos::temporal::api::history::v1::History;

/// Histories that are downloaded at once.
const DOWNLOADS: usize = 8;

/// How many runs `steward preflight` looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PreflightScope {
    /// Ended runs of each shape.
    pub(crate) closed: usize,
    /// Hours back in which runs ended.
    pub(crate) hours: u32,
    /// Most runs.
    pub(crate) max: usize,
}

/// More runs than the operator allowed.
#[derive(Debug, thiserror::Error)]
#[error(
    "{open} runs are open and {closed} ended in the last {} h, more than --max {}: {hint}",
    scope.hours, scope.max
)]
pub(crate) struct TooManyRuns {
    open: usize,
    closed: usize,
    scope: PreflightScope,
    hint: String,
}

/// Collects judgements.
pub(crate) struct Preflight {
    replayer: HistoryReplayer,
    report: PreflightReport,
    /// The number of ended runs that were met, by shape.
    closed: BTreeMap<RunShape, usize>,
    /// Ended runs of each shape that are replayed.
    closed_limit: usize,
}

impl Preflight {
    /// # Errors
    /// The workflows of this build cannot be registered.
    pub(crate) fn new(closed_limit: usize) -> anyhow::Result<Self> {
        let (replayer, report) = (HistoryReplayer::of_this_build()?, PreflightReport::default());
        Ok(Self { replayer, report, closed: BTreeMap::new(), closed_limit })
    }

    /// Judges histories in files; folders stand for the JSON files below them.
    ///
    /// # Errors
    /// A folder cannot be read. A file that cannot be read is part of the report.
    pub(crate) async fn check_files(mut self, paths: &[PathBuf]) -> anyhow::Result<PreflightReport> {
        for path in list_history_files(paths)? {
            let name = path.display().to_string();
            match tokio::fs::read_to_string(&path)
                .await
                .map_err(|e| e.to_string())
                .and_then(|text| parse_history(&text))
            {
                Ok(history) => self.judge(&history, Some(name)).await,
                Err(message) => self.report.add_unreadable_file(&name, message),
            }
        }
        self.report.sort();
        Ok(self.report)
    }

    /// Judges the open runs that visibility knows, and those of these schedules.
    ///
    /// # Errors
    /// The open runs cannot be listed.
    pub(crate) async fn check_open_runs_of(
        mut self,
        reader: &RunReader,
        schedules: Vec<String>,
    ) -> anyhow::Result<PreflightReport> {
        let list = async || reader.list_open_runs().await.context("failed to list the open runs");
        let mut open: BTreeSet<WorkflowRun> = list().await?.into_iter().collect();
        self.add_running_of_schedules(reader, schedules, &mut open).await;
        self.check_open_runs(reader, &open).await;
        // The first list may have been too early for what the last holder did.
        let later = select_new_runs(&open, list().await?.into_iter().collect());
        self.check_open_runs(reader, &later).await;
        self.report.sort();
        Ok(self.report)
    }

    /// Judges the open runs, and the newest of those that ended.
    ///
    /// # Errors
    /// [`TooManyRuns`]; the runs cannot be counted or listed.
    pub(crate) async fn check_server(
        mut self,
        reader: &RunReader,
        scope: PreflightScope,
        now: DateTime<Utc>,
    ) -> anyhow::Result<PreflightReport> {
        let since = now - TimeDelta::hours(i64::from(scope.hours));
        let (open, closed) = reader.count_runs(since).await.context("failed to count the runs")?;
        if open.saturating_add(closed) > scope.max {
            return Err(TooManyRuns { open, closed, scope, hint: suggest_scope(open, closed, scope) }.into());
        }
        let open = self.collect_open_runs(reader).await?;
        self.check_open_runs(reader, &open).await;
        if scope.closed > 0 {
            let closed = reader.list_closed_runs(since).await.context("failed to list the ended runs")?;
            self.check_closed_runs(reader, closed.into_iter().filter(|run| !open.contains(run)).collect()).await;
        }
        // Runs may have begun meanwhile, and the list lags behind.
        let later = select_new_runs(&open, self.collect_open_runs(reader).await?);
        self.check_open_runs(reader, &later).await;
        self.report.sort();
        Ok(self.report)
    }

    /// Lists the open runs by visibility and by the schedules. A schedule that cannot be described is reported.
    async fn collect_open_runs(&mut self, reader: &RunReader) -> anyhow::Result<BTreeSet<WorkflowRun>> {
        let mut open: BTreeSet<WorkflowRun> =
            reader.list_open_runs().await.context("failed to list the open runs")?.into_iter().collect();
        let schedules = reader.list_schedule_ids().await.context("failed to list the schedules")?;
        self.add_running_of_schedules(reader, schedules, &mut open).await;
        Ok(open)
    }

    /// Adds the runs that these schedules believe to be running. A schedule that cannot be described is reported.
    async fn add_running_of_schedules(
        &mut self,
        reader: &RunReader,
        schedules: Vec<String>,
        open: &mut BTreeSet<WorkflowRun>,
    ) {
        let mut described = stream::iter(schedules)
            .map(async |id| reader.list_running_of_schedule(&id).await)
            .buffer_unordered(DOWNLOADS);
        while let Some(running) = described.next().await {
            match running {
                Ok(running) => add_runs(open, running),
                Err(e) => self.report.not_checked.push(format!("failed to {e}")),
            }
        }
    }

    async fn check_open_runs(&mut self, reader: &RunReader, runs: &BTreeSet<WorkflowRun>) {
        let mut histories = download_histories(reader, runs.iter().cloned().collect());
        while let Some((run, history)) = histories.next().await {
            match history {
                Ok(Some(history)) if is_open(&history) => {
                    self.report.open += 1;
                    // Nothing of its path is recorded, so any build begins it.
                    if has_completed_task(&history) {
                        self.judge(&history, Some(run.workflow_id)).await;
                    } else {
                        self.report.not_begun += 1;
                    }
                }
                // It has ended since it was listed.
                Ok(Some(_) | None) => {}
                Err(e) => self.report.add_unread_run(&run, &e),
            }
        }
    }

    async fn check_closed_runs(&mut self, reader: &RunReader, runs: Vec<WorkflowRun>) {
        let mut histories = download_histories(reader, runs);
        while let Some((run, history)) = histories.next().await {
            match history {
                Ok(Some(history)) => {
                    self.report.closed += 1;
                    let met = self.closed.entry(RunShape::of_history(&history)).or_default();
                    *met += 1;
                    if *met <= self.closed_limit {
                        self.report.closed_replayed += 1;
                        self.judge(&history, None).await;
                    }
                }
                Ok(None) => {}
                Err(e) => self.report.add_unread_run(&run, &e),
            }
        }
    }

    /// Replays one history. `open` names an open run or a file; an ended run is only counted.
    async fn judge(&mut self, history: &History, open: Option<String>) {
        let outcome = self.replayer.replay_history(history).await;
        self.report.add_outcome(RunShape::of_history(history), outcome, open);
    }
}

/// The schedules that may have open runs which visibility does not know yet: the routines, and those of the matters of
/// which a run is judging tasks. Describing all schedules would take minutes.
///
/// # Errors
/// The index cannot be read.
pub(crate) async fn find_open_run_schedules(index: &Index) -> Result<Vec<String>, IndexError> {
    let judged = index.cursors().list_leased_matters(Utc::now()).await?;
    let matters = judged.iter().map(steward_workflows::schedule_id);
    Ok(matters.chain(VAULT_SCHEDULES.iter().map(|(id, _)| (*id).to_owned())).collect())
}

/// Lists the open runs, by visibility and by these schedules: those that a worker has begun, or with `unbegun` all.
///
/// # Errors
/// The runs cannot be listed or read.
pub(crate) async fn list_runs_under_way(
    reader: &RunReader,
    schedules: Vec<String>,
    unbegun: bool,
) -> anyhow::Result<Vec<WorkflowRun>> {
    let mut listed: BTreeSet<WorkflowRun> = reader.list_open_runs().await?.into_iter().collect();
    for id in schedules {
        add_runs(&mut listed, reader.list_running_of_schedule(&id).await?);
    }
    let mut open = Vec::new();
    let mut histories = download_histories(reader, listed.into_iter().collect());
    while let Some((run, history)) = histories.next().await {
        if history?.is_some_and(|history| is_open(&history) && (unbegun || has_completed_task(&history))) {
            open.push(run);
        }
    }
    Ok(open)
}

/// Adds the runs whose workflow is not listed yet. A schedule names only the first run of a workflow that continues as new.
fn add_runs(listed: &mut BTreeSet<WorkflowRun>, more: Vec<WorkflowRun>) {
    let new = select_new_runs(listed, more.into_iter().collect());
    listed.extend(new);
}

/// The runs whose workflow is not known yet.
fn select_new_runs(known: &BTreeSet<WorkflowRun>, mut runs: BTreeSet<WorkflowRun>) -> BTreeSet<WorkflowRun> {
    let known: BTreeSet<&str> = known.iter().map(|run| run.workflow_id.as_str()).collect();
    runs.retain(|run| !known.contains(run.workflow_id.as_str()));
    runs
}

/// Downloads histories, a few at once, in the given order.
fn download_histories(
    reader: &RunReader,
    runs: Vec<WorkflowRun>,
) -> impl stream::Stream<Item = (WorkflowRun, anyhow::Result<Option<History>>)> + Unpin {
    Box::pin(
        stream::iter(runs)
            .map(async move |run| {
                let history = reader.download_history(&run).await;
                (run, history)
            })
            .buffered(DOWNLOADS),
    )
}

/// What would fit: fewer hours, or a higher limit.
fn suggest_scope(open: usize, closed: usize, scope: PreflightScope) -> String {
    let room = scope.max.saturating_sub(open);
    let hours = (u128::from(scope.hours) * room as u128) / (closed.max(1) as u128);
    let more = format!("give --max {}", open.saturating_add(closed).next_multiple_of(1000));
    if hours >= 1 { format!("give --hours {hours}, or {}", more.trim_start_matches("give ")) } else { more }
}

/// All files, and the JSON files below the folders, by name.
fn list_history_files(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let before = files.len();
        add_json_files(path, &mut files).with_context(|| format!("failed to read {}", path.display()))?;
        anyhow::ensure!(
            files.len() > before,
            "{} holds no .json file: write one with `temporal workflow show -w <workflow id> -o json`",
            path.display()
        );
    }
    Ok(files)
}

fn add_json_files(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut entries = std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        if entry.file_type()?.is_dir() {
            add_json_files(&entry.path(), files)?;
        } else if entry.path().extension().is_some_and(|extension| extension == "json") {
            files.push(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

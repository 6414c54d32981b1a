//! `StewardWorkflow`: one tick of one matter.
//!
//! It observes the matter. If nothing needs a clerk, the tick is over. Otherwise every check is evaluated, at most
//! eight at once, the oldest first, within the run's time and until a stop. A record that a person changed meanwhile
//! is observed and judged again, and must not be overwritten.

use crate::activities::{ObserveInput, VaultActivities};
use crate::argument::WorkflowArgument;
use crate::steward::evaluate::{EvaluationRound, evaluate_task};
use crate::steward::run_details::{describe_tick, list_outcome_attributes};
use crate::{CALLER_MEMO, MATTER_ATTRIBUTE};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::steward::tick::{
    MatterObservation, RunDisplay, TaskCheck, TaskCheckOutcome, TaskCheckReport, TickReport,
};
use temporalio_common::ActivityCloseTimeouts;
use temporalio_common::error::ApplicationFailure;
use temporalio_common::search_attributes::SearchAttributeKey;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{
    ActivityOptions, LocalActivityOptions, RetryPolicy, WorkflowContext, WorkflowResult, join_all,
};

/// Most clerk questions of one tick at once: 8.
const LANES: usize = 8;
/// Most rounds of one tick: 3. A further round follows if people changed records meanwhile.
const MAX_ROUNDS: u32 = 3;
/// No evaluation starts later than this into a run of 300 s: 200 s. The slowest takes under 90 s.
const START_NO_LATER: Duration = Duration::from_secs(200);
/// Longest time of all tries of a long activity together: 1 h.
const ALL_TRIES: Duration = Duration::from_secs(3_600);
/// The attribute by which a person finds the runs of one matter.
const MATTER_KEY: SearchAttributeKey<String> = SearchAttributeKey::keyword(MATTER_ATTRIBUTE);
/// A process without a heartbeat for this long counts as dead: 10 s.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(10);

/// One tick of one matter's steward. Argument: the matter's path; result: [`TickReport`].
#[workflow]
#[derive(Default)]
pub struct StewardWorkflow;

#[workflow_methods]
impl StewardWorkflow {
    /// Runs the tick.
    ///
    /// # Errors
    /// Fails when the argument is not a matter's path or the index cannot be read.
    #[run(name = "StewardWorkflow")]
    pub async fn run(ctx: &mut WorkflowContext<Self>, matter: WorkflowArgument<String>) -> WorkflowResult<TickReport> {
        let matter =
            matter.into_value("a text: the path of a matter, as in matter/house.md").map_err(permanent_failure)?;
        let matter = parse_matter_path(&matter).map_err(permanent_failure)?;
        let caller = ctx.memo().get::<String>(CALLER_MEMO);
        let caller =
            caller.map_err(|e| permanent_failure(format!("invalid memo `{CALLER_MEMO}` ({e}): expected a text")))?;
        let caller_says_shadow = caller.as_deref() == Some("shadow");
        let started = ctx.workflow_time();
        let mut report = TickReport { matter: matter.to_string(), ..TickReport::default() };
        let mut display = RunDisplay::default();
        for number in 1..=MAX_ROUNDS {
            let check_id = format!("{}/{number}", ctx.run_id());
            let input = ObserveInput { matter: matter.clone(), check_id: check_id.clone() };
            let options = local_activity_options(&format!("check {matter}"));
            let mut observation = ctx.execute_local_activity(VaultActivities::observe, input, options).await?;
            display = std::mem::take(&mut observation.display);
            let checks = std::mem::take(&mut observation.task_checks);
            record_observation(&mut report, &observation);
            let (policy, note, limit) = (observation.policy, observation.matter_policy, START_NO_LATER);
            let round = EvaluationRound { check_id, policy, note, caller_says_shadow, started, limit };
            let reports = evaluate_tasks(ctx, &round, checks).await;
            let has_outcome = |outcome: &TaskCheckOutcome| reports.iter().any(|task| task.ended == *outcome);
            let (again, stopped) =
                (has_outcome(&TaskCheckOutcome::ChangedMeanwhile), has_outcome(&TaskCheckOutcome::Stopped));
            report.stopped |= stopped;
            merge_task_reports(&mut report, reports);
            if !again || stopped {
                break;
            }
        }
        if report.evaluated.iter().any(|task| !matches!(task.ended, TaskCheckOutcome::Decided { .. })) {
            ctx.execute_local_activity(
                VaultActivities::release,
                ctx.run_id().to_owned(),
                local_activity_options("release calls that were not made"),
            )
            .await?;
        }
        if display.has_search_attributes && !report.evaluated.is_empty() {
            // A schedule that was made before the server had the attributes starts its runs without one.
            let known = ctx.search_attributes().get(&MATTER_KEY);
            let of_matter = known.is_none().then(|| MATTER_KEY.value_set(report.matter.clone()));
            ctx.upsert_search_attributes(list_outcome_attributes(&report).into_iter().chain(of_matter));
        }
        ctx.set_current_details(describe_tick(&report, &display));
        Ok(report)
    }
}

/// The options of every local activity: quick, and retried for a while if the machine fails.
pub(crate) fn local_activity_options(summary: &str) -> LocalActivityOptions {
    let retry = RetryPolicy::builder()
        .initial_interval(Duration::from_millis(100))
        .backoff_coefficient(3.0)
        .maximum_interval(Duration::from_secs(5))
        .maximum_attempts(5)
        .build();
    LocalActivityOptions::builder()
        .start_to_close_timeout(Duration::from_secs(30))
        .schedule_to_close_timeout(Duration::from_secs(120))
        .retry_policy(retry)
        .summary(summary.to_owned())
        .build()
}

/// The options of an activity that may take minutes: with heartbeats, and tried five times within an hour. `call` is the longest
/// time of one try. A repeat finds what an earlier one did.
pub(crate) fn long_activity_options(summary: &str, call: Duration) -> ActivityOptions {
    let limits = ActivityCloseTimeouts::ScheduleAndStartToClose { start_to_close: call, schedule_to_close: ALL_TRIES };
    ActivityOptions::with_close_timeouts(limits)
        .heartbeat_timeout(HEARTBEAT_TIMEOUT)
        .retry_policy(RetryPolicy::builder().maximum_attempts(5).build())
        .summary(summary.to_owned())
        .build()
}

fn parse_matter_path(text: &str) -> Result<RecordPath, String> {
    let path = RecordPath::parse(text).map_err(|e| format!("{e}: expected matter/<slug>.md"))?;
    // Which note is a matter is known to the vault process alone. It finds no tasks under any other note.
    match path.scanned_kind() {
        Some(RecordKind::Matter) | None => Ok(path),
        Some(RecordKind::Task | RecordKind::Signal | RecordKind::Event | RecordKind::Instinct | RecordKind::Stream) => {
            Err(format!("`{path}` is not a matter: expected matter/<slug>.md"))
        }
    }
}

/// A failure that a retry would only repeat.
pub(crate) fn permanent_failure(reason: String) -> ApplicationFailure {
    ApplicationFailure::non_retryable(std::io::Error::other(reason))
}

async fn evaluate_tasks(
    ctx: &WorkflowContext<StewardWorkflow>,
    round: &EvaluationRound,
    checks: Vec<TaskCheck>,
) -> Vec<TaskCheckReport> {
    let lanes = checks.len().min(LANES);
    let queue: RefCell<VecDeque<(usize, TaskCheck)>> = RefCell::new(checks.into_iter().enumerate().collect());
    let stopped = Cell::new(false);
    let (queue, stopped) = (&queue, &stopped);
    let lane = |_| async move {
        let mut reports = Vec::new();
        loop {
            let next = queue.borrow_mut().pop_front();
            let Some((place, check)) = next else {
                return reports;
            };
            // Once one task met a stop, no waiting task is begun.
            let report = if stopped.get() {
                TaskCheckReport { task: check.question.subject.task, ended: TaskCheckOutcome::Stopped }
            } else {
                evaluate_task(ctx, round, check).await
            };
            stopped.set(stopped.get() || report.ended == TaskCheckOutcome::Stopped);
            reports.push((place, report));
        }
    };
    let mut all: Vec<(usize, TaskCheckReport)> = join_all((0..lanes).map(lane)).await.into_iter().flatten().collect();
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, report)| report).collect()
}

fn record_observation(report: &mut TickReport, observation: &MatterObservation) {
    report.stopped = observation.stopped;
    report.quiet += observation.quiet;
    report.left_due = observation.left_due;
    report.signals = report.signals.max(observation.signals);
    report.interval_seconds = observation.interval_seconds;
    if report.skipped.is_empty() {
        report.skipped.clone_from(&observation.skipped);
    }
    for problem in &observation.problems {
        if !report.errors.contains(problem) {
            report.errors.push(problem.clone());
        }
    }
}

/// Adds task reports. A task that was judged again keeps only its last outcome.
fn merge_task_reports(report: &mut TickReport, reports: Vec<TaskCheckReport>) {
    for task in reports {
        report.evaluated.retain(|t| t.task != task.task);
        report.evaluated.push(task);
    }
}

//! `StewardWorkflow`: one look at one matter.
//!
//! Observe; if nothing needs a clerk the tick is over. Otherwise every look is evaluated, at most
//! eight at once, oldest first, within the run's time and until a stop. A record that a human changed meanwhile is
//! observed and judged again, never overwritten.

use crate::CALLER_MEMO;
use crate::activities::{ObserveInput, VaultActivities};
use crate::argument::WorkflowArgument;
use crate::steward::evaluate::{EvaluationRound, evaluate_task};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::steward::tick::{MatterObservation, TaskCheck, TaskCheckOutcome, TaskCheckReport, TickReport};
use temporalio_common::error::ApplicationFailure;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{LocalActivityOptions, RetryPolicy, WorkflowContext, WorkflowResult, join_all};

/// Most clerk questions of one tick that are under way at once.
const LANES: usize = 8;
/// Most times a tick looks again because humans keep changing records.
const MAX_ROUNDS: u32 = 3;
/// No evaluation starts later than this into a run of 300 s: the slowest takes under 90 s.
const START_NO_LATER: Duration = Duration::from_secs(200);

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
        for number in 1..=MAX_ROUNDS {
            let look_id = format!("{}/{number}", ctx.run_id());
            let ask = ObserveInput { matter: matter.clone(), look_id: look_id.clone() };
            let mut seen =
                ctx.execute_local_activity(VaultActivities::observe, ask, local_activity_options("look")).await?;
            let looks = std::mem::take(&mut seen.looks);
            record_observation(&mut report, &seen);
            let (policy, note, limit) = (seen.policy, seen.note, START_NO_LATER);
            let round = EvaluationRound { look_id, policy, note, caller_says_shadow, started, limit };
            let ended = evaluate_tasks(ctx, &round, looks).await;
            let ended_so = |end: &TaskCheckOutcome| ended.iter().any(|task| task.ended == *end);
            let (again, stopped) =
                (ended_so(&TaskCheckOutcome::ChangedMeanwhile), ended_so(&TaskCheckOutcome::Stopped));
            report.stopped |= stopped;
            merge_task_reports(&mut report, ended);
            if !again || stopped {
                break;
            }
        }
        if report.evaluated.iter().any(|task| !matches!(task.ended, TaskCheckOutcome::Decided { .. })) {
            ctx.execute_local_activity(
                VaultActivities::release,
                ctx.run_id().to_owned(),
                local_activity_options("release"),
            )
            .await?;
        }
        ctx.set_current_details(describe_tick(&report));
        Ok(report)
    }
}

/// The options of every local activity: quick, tried again for a while when the machine hiccups.
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

fn parse_matter_path(text: &str) -> Result<RecordPath, String> {
    RecordPath::parse(text).map_err(|e| e.to_string()).and_then(|path| match path.kind() {
        RecordKind::Matter => Ok(path),
        RecordKind::Task | RecordKind::Signal | RecordKind::Event | RecordKind::Instinct | RecordKind::Stream => {
            Err(format!("`{path}` is not a matter: expected matter/<slug>.md"))
        }
    })
}

/// A failure that trying again would only repeat.
pub(crate) fn permanent_failure(reason: String) -> ApplicationFailure {
    ApplicationFailure::non_retryable(std::io::Error::other(reason))
}

async fn evaluate_tasks(
    ctx: &WorkflowContext<StewardWorkflow>,
    round: &EvaluationRound,
    looks: Vec<TaskCheck>,
) -> Vec<TaskCheckReport> {
    let lanes = looks.len().min(LANES);
    let queue: RefCell<VecDeque<(usize, TaskCheck)>> = RefCell::new(looks.into_iter().enumerate().collect());
    let stopped = Cell::new(false);
    let (queue, stopped) = (&queue, &stopped);
    let lane = |_| async move {
        let mut ended = Vec::new();
        loop {
            let next = queue.borrow_mut().pop_front();
            let Some((place, look)) = next else {
                return ended;
            };
            // Once one task met a stop, those that wait are not begun.
            let report = if stopped.get() {
                TaskCheckReport { task: look.question.subject.task, ended: TaskCheckOutcome::Stopped }
            } else {
                evaluate_task(ctx, round, look).await
            };
            stopped.set(stopped.get() || report.ended == TaskCheckOutcome::Stopped);
            ended.push((place, report));
        }
    };
    let mut all: Vec<(usize, TaskCheckReport)> = join_all((0..lanes).map(lane)).await.into_iter().flatten().collect();
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, report)| report).collect()
}

fn record_observation(report: &mut TickReport, seen: &MatterObservation) {
    report.stopped = seen.stopped;
    report.quiet += seen.quiet;
    report.left_due = seen.left_due;
    report.signals = report.signals.max(seen.signals);
    report.interval_seconds = seen.interval_seconds;
    if report.skipped.is_empty() {
        report.skipped.clone_from(&seen.skipped);
    }
    for problem in &seen.problems {
        if !report.errors.contains(problem) {
            report.errors.push(problem.clone());
        }
    }
}

/// A task that was judged again has its last end in the report.
fn merge_task_reports(report: &mut TickReport, ended: Vec<TaskCheckReport>) {
    for task in ended {
        report.evaluated.retain(|t| t.task != task.task);
        report.evaluated.push(task);
    }
}

fn describe_tick(report: &TickReport) -> String {
    let mut lines = vec![format!(
        "{} evaluated, {} quiet, {} skipped, {} signals; next in {} s",
        report.evaluated.len(),
        report.quiet,
        report.skipped.values().sum::<u32>(),
        report.signals,
        report.interval_seconds
    )];
    for task in &report.evaluated {
        lines.push(match &task.ended {
            TaskCheckOutcome::Decided { decision, confidence, landing, action_id } => {
                format!("- {}: {} {confidence:.2}, {}, `{action_id}`", task.task, decision.as_str(), landing.as_str())
            }
            TaskCheckOutcome::RateGuarded { .. } => format!("- {}: rate guarded", task.task),
            TaskCheckOutcome::ClerkFailed { .. } => format!("- {}: no answer from the clerk", task.task),
            TaskCheckOutcome::ChangedMeanwhile => format!("- {}: changed meanwhile", task.task),
            TaskCheckOutcome::NoTimeLeft => format!("- {}: no time left", task.task),
            TaskCheckOutcome::Stopped => format!("- {}: stopped", task.task),
            TaskCheckOutcome::Error { .. } => format!("- {}: error", task.task),
        });
    }
    lines.join("\n")
}

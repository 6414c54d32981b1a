//! `ExtractWorkflow`: turns new stream events into signals, a few at once, within one limited run.
//!
//! It lists the waiting events and has an activity of the vault's process read each of them. No text of an event must
//! come here. A refusal of the rate guard, a stop, or a provider that asks for a long wait ends the run early, and the
//! next run continues. A short wait that fits into the run is waited for, and then one event goes first. If more
//! events wait than one run may read, a new run follows at once. Neither a failed event nor a sender without calls
//! left stops the others.

use crate::activities::{ExtractActivities, ExtractEventOutput, ExtractReport};
use crate::argument::WorkflowArgument;
use crate::steward::tick::local_activity_options;
use crate::steward::tick::permanent_failure;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::{Duration, SystemTime};
use steward_domain::record::path::RecordPath;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{
    ActivityOptions, ContinueAsNewOptions, RetryPolicy, WorkflowContext, WorkflowResult, join_all,
};

/// Most events of one run: 200. At six history events each, the history stays well below 2,000.
const MAX_EVENTS: usize = 200;
/// Most events that are read at once: 4.
const LANES: usize = 4;
/// No event is begun later than this into a run: 115 s. The slowest takes [`EVENT_TIMEOUT`], which makes 4 min.
const START_NO_LATER: Duration = Duration::from_secs(115);
/// Longest extraction of one event: 120 s, for two clerk calls.
const EVENT_TIMEOUT: Duration = Duration::from_secs(120);
/// A process without a heartbeat for this long counts as dead: 10 s.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(10);
/// After this many calls in a row without an answer, the clerk counts as away: 8.
const UNANSWERED_IN_A_ROW: u32 = 8;
/// Longest wait for a provider within a run: 60 s.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Most waits of one run: 20. They add little to a history beside its events.
const MAX_WAITS: u32 = 20;

/// Extracts new events. No argument; result: [`ExtractReport`].
#[workflow]
#[derive(Default)]
pub struct ExtractWorkflow;

#[workflow_methods]
impl ExtractWorkflow {
    /// Runs until all new events are read, the time is up, or no call may be made.
    ///
    /// # Errors
    /// Fails when the index cannot be read.
    #[run(name = "ExtractWorkflow")]
    pub async fn run(ctx: &mut WorkflowContext<Self>, none: WorkflowArgument<()>) -> WorkflowResult<ExtractReport> {
        none.into_value("no argument").map_err(permanent_failure)?;
        let started = ctx.workflow_time();
        let limit = u32::try_from(MAX_EVENTS).unwrap_or(u32::MAX);
        let events = ctx
            .execute_local_activity(ExtractActivities::next, limit, local_activity_options("list new events"))
            .await?;
        let is_last_batch = events.len() < MAX_EVENTS;
        let round = ExtractRound {
            queue: RefCell::new(events.into()),
            report: RefCell::new(ExtractReport::default()),
            unanswered: Cell::new(0),
            wait: Cell::new(None),
            waits: Cell::new(0),
            started,
        };
        join_all((0..LANES).map(|_| run_lane(ctx, &round))).await;
        while let Some(wait) = round.take_wait(ctx.workflow_time()) {
            ctx.timer(wait).await;
            // After a 429, one call goes first, and the others wait for its answer.
            if let Some(event) = round.next_event(ctx.workflow_time()) {
                read_event(ctx, &round, event).await;
            }
            join_all((0..LANES).map(|_| run_lane(ctx, &round))).await;
        }
        let may_continue = round.can_continue();
        let left = round.queue.into_inner().len();
        let report = ExtractReport { left: u32::try_from(left).unwrap_or(u32::MAX), ..round.report.into_inner() };
        ctx.set_current_details(format!(
            "{} read, {} signals, {} failed, {} parked, {} left{}",
            report.extracted,
            report.signals,
            report.failed,
            report.parked,
            report.left,
            if report.held { "; held" } else { "" }
        ));
        // Only a run with progress continues. Events that cannot be read now wait for the schedule.
        let has_progress = report.extracted + report.failed > 0;
        if may_continue && has_progress && (report.left > 0 || !is_last_batch) {
            ctx.continue_as_new(().into(), ContinueAsNewOptions::default())?;
        }
        Ok(report)
    }
}

/// The state that the lanes share.
struct ExtractRound {
    queue: RefCell<VecDeque<RecordPath>>,
    report: RefCell<ExtractReport>,
    unanswered: Cell<u32>,
    /// How long to wait for the provider, if it asked for that.
    wait: Cell<Option<Duration>>,
    waits: Cell<u32>,
    started: Option<SystemTime>,
}

impl ExtractRound {
    fn next_event(&self, now: Option<SystemTime>) -> Option<RecordPath> {
        let late = self.elapsed_since_start(now).is_some_and(|elapsed| elapsed > START_NO_LATER);
        if late || !self.can_continue() { None } else { self.queue.borrow_mut().pop_front() }
    }

    fn elapsed_since_start(&self, now: Option<SystemTime>) -> Option<Duration> {
        self.started.zip(now).and_then(|(start, now)| now.duration_since(start).ok())
    }

    /// Takes the wait that stopped all lanes, if it is short and fits into the run. Then they may continue.
    fn take_wait(&self, now: Option<SystemTime>) -> Option<Duration> {
        let wait = self.wait.take().filter(|wait| *wait <= LONGEST_WAIT && self.waits.get() < MAX_WAITS)?;
        if self.elapsed_since_start(now)? + wait > START_NO_LATER {
            return None;
        }
        self.waits.set(self.waits.get() + 1);
        self.report.borrow_mut().held = false;
        Some(wait)
    }

    fn can_continue(&self) -> bool {
        !self.report.borrow().held && self.unanswered.get() < UNANSWERED_IN_A_ROW
    }

    fn record_result(&self, event: RecordPath, output: &ExtractEventOutput) {
        let mut report = self.report.borrow_mut();
        let mut unanswered = 0;
        match output {
            ExtractEventOutput::Done { signals, cached } => {
                report.extracted += 1;
                report.signals += signals;
                report.cached += u32::from(*cached);
            }
            ExtractEventOutput::Failed { parked } => {
                report.failed += 1;
                report.parked += u32::from(*parked);
            }
            ExtractEventOutput::Unanswered => {
                report.unanswered += 1;
                unanswered = self.unanswered.get() + 1;
            }
            ExtractEventOutput::Held { wait_seconds: Some(seconds) } => {
                report.held = true;
                let wait = Duration::from_secs((*seconds).into());
                self.wait.set(self.wait.get().max(Some(wait)));
                self.queue.borrow_mut().push_front(event);
                unanswered = self.unanswered.get();
            }
            ExtractEventOutput::Held { wait_seconds: None } => {
                report.held = true;
                report.unanswered += 1;
            }
            ExtractEventOutput::OverShare => {
                report.over_share += 1;
                unanswered = self.unanswered.get();
            }
            ExtractEventOutput::NotNew => {}
        }
        self.unanswered.set(unanswered);
    }
}

async fn run_lane(ctx: &WorkflowContext<ExtractWorkflow>, round: &ExtractRound) {
    while let Some(event) = round.next_event(ctx.workflow_time()) {
        read_event(ctx, round, event).await;
    }
}

async fn read_event(ctx: &WorkflowContext<ExtractWorkflow>, round: &ExtractRound, event: RecordPath) {
    // One attempt only: an event that a lost process left is read again by the next run, from the start.
    let once = RetryPolicy::builder().maximum_attempts(1).build();
    let options = ActivityOptions::with_start_to_close_timeout(EVENT_TIMEOUT)
        .heartbeat_timeout(HEARTBEAT_TIMEOUT)
        .retry_policy(once)
        .summary(format!("read {event}"))
        .build();
    match ctx.execute_activity(ExtractActivities::event, event.clone(), options).await {
        Ok(output) => round.record_result(event, &output),
        Err(_) => round.report.borrow_mut().errors += 1,
    }
}

//! What Temporal knows of our schedules and workers; asked, never told.
//!
//! Every question has a short patience: a page says that the server gave no answer rather than wait for one.

use chrono::{DateTime, Utc};
use std::time::Duration;
use temporalio_client::tonic::{Code, IntoRequest};
use temporalio_client::{Client, NamespacedClient};
use temporalio_common::protos::temporal::api::enums::v1::{TaskQueueKind, TaskQueueType, WorkflowExecutionStatus};
use temporalio_common::protos::temporal::api::schedule::v1::ScheduleActionResult;
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflowservice::v1 as svc;

/// How long the server may take to answer: 2 s.
const PATIENCE: Duration = Duration::from_secs(2);

/// The server gave no answer.
#[derive(Debug, thiserror::Error)]
#[error("the Temporal server gave no answer ({0})")]
pub(crate) struct Away(String);

/// Asks the server.
#[derive(Clone)]
pub(crate) struct Temporal {
    client: Client,
}

/// One schedule.
pub(crate) struct Schedule {
    pub(crate) paused: bool,
    /// What was noted at the pause. Untrusted.
    pub(crate) note: String,
    pub(crate) next: Option<DateTime<Utc>>,
    /// The newest first.
    pub(crate) recent: Vec<Run>,
}

/// One run that it started.
pub(crate) struct Run {
    pub(crate) at: Option<DateTime<Utc>>,
    /// How long after its time it was started, in seconds.
    pub(crate) late_seconds: i64,
    pub(crate) workflow: String,
    pub(crate) run: String,
    /// `running`, `completed`, `failed`, …, as the schedule last saw it.
    pub(crate) status: String,
}

/// A process that takes work from a queue.
pub(crate) struct Worker {
    /// As it calls itself, `<process>@<host>`.
    pub(crate) name: String,
    pub(crate) seen_at: Option<DateTime<Utc>>,
}

impl Temporal {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// To ask for all schedules.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// A schedule; `None` when there is none of that id.
    pub(crate) async fn schedule(&self, id: &str) -> Result<Option<Schedule>, Away> {
        let request =
            svc::DescribeScheduleRequest { namespace: self.client.namespace().to_owned(), schedule_id: id.to_owned() };
        let mut service = self.client.connection().workflow_service();
        let asked = tokio::time::timeout(PATIENCE, service.describe_schedule(request.into_request())).await;
        match asked {
            Err(_) => Err(late()),
            Ok(Err(status)) if status.code() == Code::NotFound => Ok(None),
            Ok(Err(status)) => Err(Away(status.message().to_owned())),
            Ok(Ok(answer)) => Ok(Some(schedule(answer.into_inner()))),
        }
    }

    /// Who took workflow or activity tasks from a queue in the last five minutes.
    pub(crate) async fn workers(&self, queue: &str, kind: TaskQueueType) -> Result<Vec<Worker>, Away> {
        let named =
            TaskQueue { name: queue.to_owned(), kind: TaskQueueKind::Normal.into(), normal_name: String::new() };
        let request = svc::DescribeTaskQueueRequest {
            namespace: self.client.namespace().to_owned(),
            task_queue: Some(named),
            task_queue_type: kind.into(),
            ..svc::DescribeTaskQueueRequest::default()
        };
        let mut service = self.client.connection().workflow_service();
        let asked = tokio::time::timeout(PATIENCE, service.describe_task_queue(request.into_request())).await;
        let answer = asked.map_err(|_| late())?.map_err(|status| Away(status.message().to_owned()))?;
        let pollers = answer.into_inner().pollers.into_iter();
        Ok(pollers
            .map(|one| Worker {
                name: one.identity,
                seen_at: one.last_access_time.and_then(|at| instant(at.seconds, at.nanos)),
            })
            .collect())
    }
}

fn late() -> Away {
    Away(format!("within {} s", PATIENCE.as_secs()))
}

fn instant(seconds: i64, nanos: i32) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(seconds, u32::try_from(nanos).ok()?)
}

fn schedule(answer: svc::DescribeScheduleResponse) -> Schedule {
    let state = answer.schedule.and_then(|schedule| schedule.state).unwrap_or_default();
    let info = answer.info.unwrap_or_default();
    let mut recent: Vec<Run> = info.recent_actions.into_iter().map(run).collect();
    recent.sort_by_key(|run| std::cmp::Reverse(run.at));
    let next = info
        .future_action_times
        .into_iter()
        .filter_map(|at| instant(at.seconds, at.nanos))
        .min()
        .filter(|_| !state.paused);
    Schedule { paused: state.paused, note: state.notes, next, recent }
}

fn run(result: ScheduleActionResult) -> Run {
    let (due, begun) = (
        result.schedule_time.and_then(|at| instant(at.seconds, at.nanos)),
        result.actual_time.and_then(|at| instant(at.seconds, at.nanos)),
    );
    let status = WorkflowExecutionStatus::try_from(result.start_workflow_status);
    let status = status.map_or("", |status| status.as_str_name()).trim_start_matches("WORKFLOW_EXECUTION_STATUS_");
    let started = result.start_workflow_result.unwrap_or_default();
    Run {
        at: begun.or(due),
        late_seconds: due.zip(begun).map_or(0, |(due, begun)| (begun - due).num_seconds().max(0)),
        workflow: started.workflow_id,
        run: started.run_id,
        status: status.to_ascii_lowercase().replace('_', " "),
    }
}

//! Reads schedules, runs and workers from Temporal; changes nothing.
//!
//! Every request has a short timeout. A page rather says that the server gave no answer than wait for one.

use crate::views::schedules::TENANT_ATTRIBUTE;
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;
use std::time::Duration;
use steward_domain::fleet::names::VaultNames;
use steward_domain::time::format_seconds;
use temporalio_client::tonic::{Code, IntoRequest};
use temporalio_client::{Client, NamespacedClient};
use temporalio_common::protos::temporal::api::common::v1::WorkflowExecution;
use temporalio_common::protos::temporal::api::enums::v1::{TaskQueueKind, TaskQueueType, WorkflowExecutionStatus};
use temporalio_common::protos::temporal::api::schedule::v1::ScheduleActionResult;
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflow::v1::WorkflowExecutionInfo;
use temporalio_common::protos::temporal::api::workflowservice::v1 as svc;

/// How long the server may take to answer: 2 s.
const PATIENCE: Duration = Duration::from_secs(2);
/// Most failed runs that are read.
const FAILED: i32 = 200;
/// The search attribute with the schedule that started a run.
const SCHEDULED_BY: &str = "TemporalScheduledById";

/// The server gave no answer.
#[derive(Debug, thiserror::Error)]
#[error("the Temporal server gave no answer ({0})")]
pub(crate) struct TemporalQueryError(String);

impl TemporalQueryError {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// The client for these requests.
#[derive(Clone)]
pub(crate) struct TemporalQueryClient {
    client: Client,
    names: VaultNames,
}

/// One schedule, as the server describes it.
pub(crate) struct ScheduleDescription {
    pub(crate) paused: bool,
    /// The note of the pause. Untrusted.
    pub(crate) note: String,
    pub(crate) next: Option<DateTime<Utc>>,
    /// The newest first.
    pub(crate) recent: Vec<ScheduledRun>,
}

/// One run that a schedule started.
pub(crate) struct ScheduledRun {
    pub(crate) at: Option<DateTime<Utc>>,
    /// How late it was started, in seconds.
    pub(crate) late_seconds: i64,
    pub(crate) workflow: String,
    pub(crate) run: String,
    /// `running`, `completed`, `failed`, …; `started` if it is not known what became of it.
    pub(crate) status: String,
}

/// A schedule whose run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FailedSchedule {
    pub(crate) schedule: String,
    pub(crate) at: DateTime<Utc>,
    /// `failed` or `timed out`.
    pub(crate) status: String,
}

/// A process that polls a task queue.
pub(crate) struct QueueWorker {
    /// Its identity, `<process>@<host>`.
    pub(crate) name: String,
    pub(crate) seen_at: Option<DateTime<Utc>>,
}

impl TemporalQueryClient {
    pub(crate) fn new(client: Client, names: VaultNames) -> Self {
        Self { client, names }
    }

    /// The names of the vault at the server.
    pub(crate) fn names(&self) -> &VaultNames {
        &self.names
    }

    /// The client itself, for listing schedules.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Describes a schedule; `None` when there is none with this plain id.
    pub(crate) async fn describe_schedule(&self, id: &str) -> Result<Option<ScheduleDescription>, TemporalQueryError> {
        let (namespace, schedule_id) = (self.client.namespace().to_owned(), self.names.qualify_id(id));
        let request = svc::DescribeScheduleRequest { namespace, schedule_id };
        let mut service = self.client.connection().workflow_service();
        match tokio::time::timeout(PATIENCE, service.describe_schedule(request.into_request())).await {
            Err(_) => Err(timeout_error()),
            Ok(Err(status)) if status.code() == Code::NotFound => Ok(None),
            Ok(Err(status)) => Err(TemporalQueryError(status.message().to_owned())),
            Ok(Ok(response)) => {
                let mut schedule = parse_schedule(response.into_inner());
                self.refresh_runs(&mut schedule.recent).await;
                Ok(Some(schedule))
            }
        }
    }

    /// Asks for the status of the runs that were running when the schedule last saw them. If there is no answer, such a
    /// run is said to have been started.
    async fn refresh_runs(&self, runs: &mut [ScheduledRun]) {
        let ask = |run: &ScheduledRun| {
            let request = svc::DescribeWorkflowExecutionRequest {
                namespace: self.client.namespace().to_owned(),
                execution: Some(WorkflowExecution { workflow_id: run.workflow.clone(), run_id: run.run.clone() }),
            };
            let mut service = self.client.connection().workflow_service();
            async move {
                let asked = service.describe_workflow_execution(request.into_request());
                let response = tokio::time::timeout(PATIENCE, asked).await.ok()?.ok()?.into_inner();
                Some(describe_run_status(response.workflow_execution_info?.status))
            }
        };
        let stale = runs.iter_mut().filter(|run| run.status == RUNNING);
        let asked = stale.map(|run| async { run.status = ask(run).await.unwrap_or_else(|| "started".to_owned()) });
        futures_util::future::join_all(asked).await;
    }

    /// Lists the schedules of the vault, by plain ids with this prefix, of which a run failed since then. Each has its
    /// newest failed run; the
    /// newest comes first. Also returns whether there may be more.
    pub(crate) async fn list_failed_schedules(
        &self,
        prefix: &str,
        since: DateTime<Utc>,
    ) -> Result<(Vec<FailedSchedule>, bool), TemporalQueryError> {
        let of_tenant = self.names.tenant().map(|tenant| format!("{TENANT_ATTRIBUTE} = '{tenant}' AND "));
        let query = format!(
            "{}{SCHEDULED_BY} STARTS_WITH '{prefix}' AND ExecutionStatus IN ('Failed', 'TimedOut') AND CloseTime > '{}'",
            of_tenant.unwrap_or_default(),
            format_seconds(since)
        );
        let request = svc::ListWorkflowExecutionsRequest {
            namespace: self.client.namespace().to_owned(),
            page_size: FAILED,
            query,
            ..svc::ListWorkflowExecutionsRequest::default()
        };
        let mut service = self.client.connection().workflow_service();
        let listed = tokio::time::timeout(PATIENCE, service.list_workflow_executions(request.into_request())).await;
        let response = listed
            .map_err(|_| timeout_error())?
            .map_err(|status| TemporalQueryError(status.message().to_owned()))?
            .into_inner();
        let mut newest: BTreeMap<String, FailedSchedule> = BTreeMap::new();
        for mut run in response.executions.into_iter().filter_map(parse_failed_run) {
            let Some(plain) = self.names.plain_id(&run.schedule).map(str::to_owned) else { continue };
            run.schedule = plain;
            let known = newest.entry(run.schedule.clone()).or_insert_with(|| run.clone());
            if known.at < run.at {
                *known = run;
            }
        }
        let mut newest: Vec<FailedSchedule> = newest.into_values().collect();
        newest.sort_by_key(|run| std::cmp::Reverse(run.at));
        Ok((newest, !response.next_page_token.is_empty()))
    }

    /// Whether a run of the schedule with this plain id succeeded after that moment.
    pub(crate) async fn has_succeeded_since(
        &self,
        schedule: &str,
        after: DateTime<Utc>,
    ) -> Result<bool, TemporalQueryError> {
        // The id is quoted in the query. No id of a Steward schedule contains a quote.
        if schedule.contains(['\'', '\\']) {
            return Ok(false);
        }
        let query = format!(
            "{SCHEDULED_BY} = '{}' AND ExecutionStatus = 'Completed' AND CloseTime > '{}'",
            self.names.qualify_id(schedule),
            after.to_rfc3339()
        );
        let request = svc::CountWorkflowExecutionsRequest { namespace: self.client.namespace().to_owned(), query };
        let mut service = self.client.connection().workflow_service();
        let counted = tokio::time::timeout(PATIENCE, service.count_workflow_executions(request.into_request())).await;
        let response =
            counted.map_err(|_| timeout_error())?.map_err(|status| TemporalQueryError(status.message().to_owned()))?;
        Ok(response.into_inner().count > 0)
    }

    /// Lists the workers that polled a queue for workflow or activity tasks in the last five minutes.
    pub(crate) async fn list_queue_workers(
        &self,
        queue: &str,
        kind: TaskQueueType,
    ) -> Result<Vec<QueueWorker>, TemporalQueryError> {
        let task_queue =
            TaskQueue { name: queue.to_owned(), kind: TaskQueueKind::Normal.into(), normal_name: String::new() };
        let request = svc::DescribeTaskQueueRequest {
            namespace: self.client.namespace().to_owned(),
            task_queue: Some(task_queue),
            task_queue_type: kind.into(),
            ..svc::DescribeTaskQueueRequest::default()
        };
        let mut service = self.client.connection().workflow_service();
        let described = tokio::time::timeout(PATIENCE, service.describe_task_queue(request.into_request())).await;
        let response = described
            .map_err(|_| timeout_error())?
            .map_err(|status| TemporalQueryError(status.message().to_owned()))?;
        let pollers = response.into_inner().pollers.into_iter();
        Ok(pollers
            .map(|poller| QueueWorker {
                name: poller.identity,
                seen_at: poller.last_access_time.and_then(|at| parse_timestamp(at.seconds, at.nanos)),
            })
            .collect())
    }
}

fn parse_failed_run(info: WorkflowExecutionInfo) -> Option<FailedSchedule> {
    let schedule = info.search_attributes.and_then(|mut all| all.indexed_fields.remove(SCHEDULED_BY))?;
    let at = info.close_time.and_then(|at| parse_timestamp(at.seconds, at.nanos))?;
    Some(FailedSchedule {
        schedule: serde_json::from_slice(&schedule.data).ok()?,
        at,
        status: describe_run_status(info.status),
    })
}

/// The status of a run that has not ended.
const RUNNING: &str = "running";

/// A status as lower-case words.
fn describe_run_status(status: i32) -> String {
    let status = WorkflowExecutionStatus::try_from(status).map_or("", |status| status.as_str_name());
    status.trim_start_matches("WORKFLOW_EXECUTION_STATUS_").to_ascii_lowercase().replace('_', " ")
}

fn timeout_error() -> TemporalQueryError {
    TemporalQueryError(format!("within {} s", PATIENCE.as_secs()))
}

fn parse_timestamp(seconds: i64, nanos: i32) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(seconds, u32::try_from(nanos).ok()?)
}

fn parse_schedule(response: svc::DescribeScheduleResponse) -> ScheduleDescription {
    let state = response.schedule.and_then(|schedule| schedule.state).unwrap_or_default();
    let info = response.info.unwrap_or_default();
    let mut recent: Vec<ScheduledRun> = info.recent_actions.into_iter().map(parse_run).collect();
    recent.sort_by_key(|run| std::cmp::Reverse(run.at));
    let next = info
        .future_action_times
        .into_iter()
        .filter_map(|at| parse_timestamp(at.seconds, at.nanos))
        .min()
        .filter(|_| !state.paused);
    ScheduleDescription { paused: state.paused, note: state.notes, next, recent }
}

fn parse_run(result: ScheduleActionResult) -> ScheduledRun {
    let (due, started_at) = (
        result.schedule_time.and_then(|at| parse_timestamp(at.seconds, at.nanos)),
        result.actual_time.and_then(|at| parse_timestamp(at.seconds, at.nanos)),
    );
    let started = result.start_workflow_result.unwrap_or_default();
    ScheduledRun {
        at: started_at.or(due),
        late_seconds: due.zip(started_at).map_or(0, |(due, started_at)| (started_at - due).num_seconds().max(0)),
        workflow: started.workflow_id,
        run: started.run_id,
        status: describe_run_status(result.start_workflow_status),
    }
}

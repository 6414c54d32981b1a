//! Lists the runs of one deployment at Temporal, and downloads their histories.
//!
//! Visibility may lag behind by seconds, so open runs are also taken from the descriptions of the schedules that
//! started them. A list counts only if every page arrived. This module must not change anything.

use crate::registrar::{RegistrarError, ScheduleRegistrar};
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;
use std::time::Duration;
use temporalio_client::tonic::{Code, IntoRequest};
use temporalio_client::{Client, NamespacedClient};
use temporalio_common::protos::temporal::api::common::v1::WorkflowExecution;
use temporalio_common::protos::temporal::api::workflowservice::v1 as svc;
use temporalio_protos::temporal::api::history::v1::History;

/// Runs per page of a list.
const PAGE: i32 = 1000;
/// The pause between two pages: 50 ms, so that there are fewer than 30 visibility calls a second.
const PAGE_PAUSE: Duration = Duration::from_millis(50);
/// How long the server may take for one answer: 15 s.
const PATIENCE: Duration = Duration::from_secs(15);

/// One run of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WorkflowRun {
    pub(crate) workflow_id: String,
    /// Empty for the newest run of the workflow.
    pub(crate) run_id: String,
}

/// Reads the runs of one task queue.
pub(crate) struct RunReader {
    client: Client,
    registrar: ScheduleRegistrar,
    task_queue: String,
}

impl RunReader {
    pub(crate) fn new(client: Client, registrar: ScheduleRegistrar, task_queue: &str) -> Self {
        // It stands between quotes in queries.
        let task_queue = task_queue.replace('\\', "\\\\").replace('\'', "\\'");
        Self { client, registrar, task_queue }
    }

    fn open_query(&self) -> String {
        format!("TaskQueue = '{}' AND ExecutionStatus = 'Running'", self.task_queue)
    }

    fn closed_query(&self, since: DateTime<Utc>) -> String {
        format!("TaskQueue = '{}' AND CloseTime > '{}'", self.task_queue, since.to_rfc3339())
    }

    /// The number of open runs, and of those that ended since then.
    ///
    /// # Errors
    /// The server does not answer or refuses.
    pub(crate) async fn count_runs(&self, closed_since: DateTime<Utc>) -> anyhow::Result<(usize, usize)> {
        let count = async |query: String| {
            let request = svc::CountWorkflowExecutionsRequest { namespace: self.client.namespace().to_owned(), query };
            let mut service = self.client.connection().workflow_service();
            let response = answer(service.count_workflow_executions(request.into_request())).await?;
            anyhow::Ok(usize::try_from(response.count).unwrap_or_default())
        };
        Ok((count(self.open_query()).await?, count(self.closed_query(closed_since)).await?))
    }

    /// Lists the open runs that visibility knows.
    ///
    /// # Errors
    /// The server does not answer or refuses.
    pub(crate) async fn list_open_runs(&self) -> anyhow::Result<Vec<WorkflowRun>> {
        Ok(self.list_runs(self.open_query()).await?.into_keys().collect())
    }

    /// Lists the runs that ended since then, the newest first.
    ///
    /// # Errors
    /// The server does not answer or refuses.
    pub(crate) async fn list_closed_runs(&self, since: DateTime<Utc>) -> anyhow::Result<Vec<WorkflowRun>> {
        let mut runs: Vec<_> = self.list_runs(self.closed_query(since)).await?.into_iter().collect();
        runs.sort_by_key(|(_, closed)| std::cmp::Reverse(*closed));
        Ok(runs.into_iter().map(|(run, _)| run).collect())
    }

    /// Lists runs with the times at which they closed, in nanoseconds.
    async fn list_runs(&self, query: String) -> anyhow::Result<BTreeMap<WorkflowRun, i128>> {
        let mut runs = BTreeMap::new();
        let mut token = Vec::new();
        loop {
            let request = svc::ListWorkflowExecutionsRequest {
                namespace: self.client.namespace().to_owned(),
                page_size: PAGE,
                next_page_token: token,
                query: query.clone(),
            };
            let mut service = self.client.connection().workflow_service();
            let response = answer(service.list_workflow_executions(request.into_request())).await?;
            runs.extend(response.executions.into_iter().filter_map(|info| {
                let closed =
                    info.close_time.map_or(0, |at| i128::from(at.seconds) * 1_000_000_000 + i128::from(at.nanos));
                info.execution.map(|run| (WorkflowRun::from(run), closed))
            }));
            if response.next_page_token.is_empty() {
                return Ok(runs);
            }
            token = response.next_page_token;
            tokio::time::sleep(PAGE_PAUSE).await;
        }
    }

    /// Lists the ids of this deployment's schedules.
    ///
    /// # Errors
    /// The listing is not complete.
    pub(crate) async fn list_schedule_ids(&self) -> Result<Vec<String>, RegistrarError> {
        self.registrar.list_plain_ids().await
    }

    /// The runs that a schedule has started and that it believes to be running; none if there is no such schedule.
    ///
    /// # Errors
    /// The server does not answer or refuses.
    pub(crate) async fn list_running_of_schedule(&self, id: &str) -> Result<Vec<WorkflowRun>, RegistrarError> {
        let found = self.registrar.describe_schedule(id).await?;
        let running = found.and_then(|found| found.info).unwrap_or_default().running_workflows;
        // Without the run's id, which is that of the first run if the workflow has continued as new.
        Ok(running.into_iter().map(|run| WorkflowRun { run_id: String::new(), ..run.into() }).collect())
    }

    /// Downloads a whole history; `None` if the run is gone.
    ///
    /// # Errors
    /// The server does not answer or refuses.
    pub(crate) async fn download_history(&self, run: &WorkflowRun) -> anyhow::Result<Option<History>> {
        let (mut events, mut token) = (Vec::new(), Vec::new());
        loop {
            let request = svc::GetWorkflowExecutionHistoryRequest {
                namespace: self.client.namespace().to_owned(),
                execution: Some(WorkflowExecution { workflow_id: run.workflow_id.clone(), run_id: run.run_id.clone() }),
                next_page_token: token,
                ..svc::GetWorkflowExecutionHistoryRequest::default()
            };
            let mut service = self.client.connection().workflow_service();
            let fetched = service.get_workflow_execution_history(request.into_request());
            let response = match tokio::time::timeout(PATIENCE, fetched).await? {
                Ok(response) => response.into_inner(),
                Err(status) if status.code() == Code::NotFound => return Ok(None),
                Err(status) => return Err(status.into()),
            };
            events.extend(response.history.unwrap_or_default().events);
            if response.next_page_token.is_empty() {
                return Ok(Some(History { events }));
            }
            token = response.next_page_token;
        }
    }
}

impl From<WorkflowExecution> for WorkflowRun {
    fn from(run: WorkflowExecution) -> Self {
        Self { workflow_id: run.workflow_id, run_id: run.run_id }
    }
}

/// Waits for an answer, but not forever.
async fn answer<T>(
    call: impl Future<Output = Result<temporalio_client::tonic::Response<T>, temporalio_client::tonic::Status>>,
) -> anyhow::Result<T> {
    Ok(tokio::time::timeout(PATIENCE, call).await??.into_inner())
}

//! The runs of a namespace as the Temporal server recorded them, and a worker of a test that makes some.
//!
//! Who made a step is the identity that the worker sent, which begins with the id of its process. Nothing here comes from
//! a log or a file of Steward.

use chrono::{DateTime, Utc};
use futures::{StreamExt, TryStreamExt};
use temporalio_client::{Client, UntypedWorkflow};
use temporalio_common::protos::temporal::api::enums::v1::EventType;
use temporalio_common::protos::temporal::api::history::v1::HistoryEvent;
use temporalio_common::protos::temporal::api::history::v1::history_event::Attributes;
use temporalio_sdk::{Runtime, Worker, WorkerOptions};

/// One run.
#[derive(Clone, Debug)]
pub struct RunFacts {
    pub id: String,
    /// When its schedule wanted it; `None` if no schedule started it.
    pub due: Option<DateTime<Utc>>,
    pub started: DateTime<Utc>,
    /// `None` while it is open.
    pub closed: Option<DateTime<Utc>>,
}

/// A workflow task that a worker completed.
#[derive(Clone, Debug)]
pub struct CompletedTask {
    pub at: DateTime<Utc>,
    /// Of the process that completed it.
    pub pid: u32,
}

/// The runs that match a query of the server, oldest first.
pub async fn list_runs(client: &Client, query: &str) -> Vec<RunFacts> {
    let listed = client.list_workflows(query, Default::default());
    let mut runs: Vec<RunFacts> = listed
        .map_ok(|run| {
            let raw = run.raw();
            let due = raw.search_attributes.as_ref().and_then(|all| {
                let payload = all.indexed_fields.get("TemporalScheduledStartTime")?;
                serde_json::from_slice(&payload.data).ok()
            });
            RunFacts {
                id: run.id().to_owned(),
                due,
                started: raw.start_time.as_ref().map(|at| read_time(at.seconds, at.nanos)).unwrap(),
                closed: raw.close_time.as_ref().map(|at| read_time(at.seconds, at.nanos)),
            }
        })
        .try_collect()
        .await
        .unwrap();
    runs.sort_by_key(|run| run.started);
    runs
}

/// The history of a run.
pub async fn fetch_events(client: &Client, id: &str) -> Vec<HistoryEvent> {
    let handle = client.get_workflow_handle::<UntypedWorkflow>(id);
    handle.fetch_history(Default::default()).into_events().await.unwrap()
}

/// The workflow tasks that workers completed in a run.
pub async fn list_completed_tasks(client: &Client, id: &str) -> Vec<CompletedTask> {
    let events = fetch_events(client, id).await;
    let completed = events.iter().filter(|event| event.event_type() == EventType::WorkflowTaskCompleted);
    completed
        .filter_map(|event| match &event.attributes {
            Some(Attributes::WorkflowTaskCompletedEventAttributes(task)) => Some(CompletedTask {
                at: event.event_time.as_ref().map(|at| read_time(at.seconds, at.nanos))?,
                pid: task.identity.split('@').next()?.parse().ok()?,
            }),
            _ => None,
        })
        .collect()
}

/// The workflow tasks of all runs that match a query, 8 histories at once.
pub async fn list_all_completed_tasks(client: &Client, query: &str) -> Vec<CompletedTask> {
    let runs = list_runs(client, query).await;
    let histories = futures::stream::iter(runs).map(async |run| list_completed_tasks(client, &run.id).await);
    histories.buffer_unordered(8).concat().await
}

/// Runs a worker of a test until some work is done, and returns what the work returned.
pub async fn run_worker<T>(client: &Client, options: WorkerOptions, work: impl Future<Output = T>) -> T {
    let runtime = Runtime::from_current_tokio(Default::default()).unwrap();
    let mut worker = Worker::new(&runtime, client.clone(), options).unwrap();
    let stop = worker.shutdown_handle();
    let work = async {
        let done = work.await;
        stop();
        done
    };
    let (ended, done) = tokio::join!(worker.run(), work);
    ended.unwrap();
    done
}

fn read_time(seconds: i64, nanos: i32) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, u32::try_from(nanos).unwrap()).unwrap()
}

//! Checks whether a worker serves a task queue.
//!
//! A schedule keeps firing when no worker listens, and its ticks then wait silently. The server remembers the pollers
//! of the last five minutes, so a killed worker is listed a while longer. The vault's lock shows the difference. This
//! module must not judge the result: `doctor` reports it.

use super::clock::build_task_queue;
use std::time::{Duration, Instant};
use temporalio_client::tonic::IntoRequest;
use temporalio_client::{Client, NamespacedClient};
use temporalio_common::protos::temporal::api::enums::v1::TaskQueueType;
use temporalio_common::protos::temporal::api::workflowservice::v1::DescribeTaskQueueRequest;

/// How long a new worker may take to poll: 5 s.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(200);

/// Whether a worker polled this queue for tasks of this kind recently, or does so within 5 s.
///
/// # Errors
/// The server does not answer.
pub(crate) async fn is_queue_polled(client: &Client, queue: &str, kind: TaskQueueType) -> anyhow::Result<bool> {
    let begun = Instant::now();
    loop {
        let request = DescribeTaskQueueRequest {
            namespace: client.namespace().to_owned(),
            task_queue: Some(build_task_queue(queue)),
            task_queue_type: kind.into(),
            ..DescribeTaskQueueRequest::default()
        };
        let described = client.connection().workflow_service().describe_task_queue(request.into_request()).await?;
        let polled = !described.into_inner().pollers.is_empty();
        if polled || begun.elapsed() > PATIENCE {
            return Ok(polled);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

//! Whether anybody serves a task queue.
//!
//! A schedule goes on firing when nobody listens; its ticks then wait and nothing says so. The server
//! remembers who polled during the last five minutes, so a worker that was killed shows a while longer:
//! the vault's lock tells that apart. What comes of it is for `doctor` to say.

use super::clock::build_task_queue;
use std::time::{Duration, Instant};
use temporalio_client::tonic::IntoRequest;
use temporalio_client::{Client, NamespacedClient};
use temporalio_common::protos::temporal::api::enums::v1::TaskQueueType;
use temporalio_common::protos::temporal::api::workflowservice::v1::DescribeTaskQueueRequest;

/// How long a worker that has just started may take to poll: 5 s.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(200);

/// Whether anybody polled this queue for tasks of this kind lately, or does so in a moment.
///
/// # Errors
/// When the server gives no answer.
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

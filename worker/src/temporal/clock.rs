//! Measures the difference between the Temporal server's clock and the local one.
//!
//! The server has no call that returns its time, but it records when it last saw a poller. So this module polls a queue
//! that no other process uses, and describes the queue while the poll waits. The result is exact to the duration of the
//! call. It must not store anything; `doctor` reports the result.

use anyhow::Context;
use chrono::{DateTime, TimeDelta, Utc};
use std::time::{Duration, SystemTime};
use temporalio_client::tonic::IntoRequest;
use temporalio_client::{Client, NamespacedClient};
use temporalio_common::protos::temporal::api::enums::v1::{TaskQueueKind, TaskQueueType};
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflowservice::v1 as svc;

/// How long the server may take to record the poll: 5 s.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// The server's clock minus the local one (`now`); zero if the duration of the calls explains the difference.
///
/// # Errors
/// The server does not answer, or does not record the poll.
pub(crate) async fn measure_clock_offset(
    client: &Client,
    now: impl Fn() -> DateTime<Utc>,
) -> anyhow::Result<TimeDelta> {
    let queue = format!("steward-doctor-{}", std::process::id());
    let before = now();
    let seen = tokio::select! {
        seen = tokio::time::timeout(PATIENCE, read_poll_time(client, &queue)) => {
            seen.context("the server did not record the poll")??
        }
        ended = poll_queue(client, &queue) => match ended {
            Ok(()) => anyhow::bail!("the server ended the poll at once"),
            Err(e) => return Err(e),
        },
    };
    Ok(compute_offset(before, seen, now()))
}

/// How far `seen` lies outside the span from `before` to `after`, in which it was recorded.
pub(crate) fn compute_offset(before: DateTime<Utc>, seen: DateTime<Utc>, after: DateTime<Utc>) -> TimeDelta {
    if seen > after {
        seen - after
    } else if seen < before {
        seen - before
    } else {
        TimeDelta::zero()
    }
}

async fn poll_queue(client: &Client, queue: &str) -> anyhow::Result<()> {
    let request = svc::PollActivityTaskQueueRequest {
        namespace: client.namespace().to_owned(),
        task_queue: Some(build_task_queue(queue)),
        identity: queue.to_owned(),
        ..svc::PollActivityTaskQueueRequest::default()
    };
    client.connection().workflow_service().poll_activity_task_queue(request.into_request()).await?;
    Ok(())
}

async fn read_poll_time(client: &Client, queue: &str) -> anyhow::Result<DateTime<Utc>> {
    loop {
        tokio::time::sleep(PAUSE).await;
        let request = svc::DescribeTaskQueueRequest {
            namespace: client.namespace().to_owned(),
            task_queue: Some(build_task_queue(queue)),
            task_queue_type: TaskQueueType::Activity.into(),
            ..svc::DescribeTaskQueueRequest::default()
        };
        let described = client.connection().workflow_service().describe_task_queue(request.into_request()).await?;
        if let Some(at) = described.into_inner().pollers.into_iter().find_map(|poller| poller.last_access_time) {
            return Ok(SystemTime::try_from(at).context("the server sent an invalid time")?.into());
        }
    }
}

pub(super) fn build_task_queue(queue: &str) -> TaskQueue {
    TaskQueue { name: queue.to_owned(), kind: TaskQueueKind::Normal.into(), ..TaskQueue::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::test_server::DevServer;
    use temporalio_client::ClientOptions;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_clock_that_is_an_hour_off_is_detected_and_a_right_one_is_not() {
        let server = DevServer::start();
        let client = server.client(ClientOptions::new("default").build()).await;
        assert!(measure_clock_offset(&client, Utc::now).await.unwrap().abs() < TimeDelta::seconds(1));
        let slow = measure_clock_offset(&client, || Utc::now() - TimeDelta::hours(1)).await.unwrap();
        assert!((slow - TimeDelta::hours(1)).abs() < TimeDelta::minutes(1), "{slow}");
        let fast = measure_clock_offset(&client, || Utc::now() + TimeDelta::hours(1)).await.unwrap();
        assert!((fast + TimeDelta::hours(1)).abs() < TimeDelta::minutes(1), "{fast}");
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_gives_no_clock() {
        let server = DevServer::start();
        let client = server.client(ClientOptions::new("nowhere").build()).await;
        assert!(measure_clock_offset(&client, Utc::now).await.is_err());
    }
}

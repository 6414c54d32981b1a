//! Tests of the health watcher against a scripted Temporal server.

use super::*;
use prost::Message;
use std::sync::Arc;
use temporalio_client::callback_based::{CallbackBasedGrpcService, GrpcSuccessResponse};
use temporalio_client::tonic::Status;
use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions, Url};
use temporalio_common::protos::temporal::api::common::v1::{
    Payload, SearchAttributes, WorkflowExecution, WorkflowType,
};
use temporalio_common::protos::temporal::api::enums::v1::WorkflowExecutionStatus;
use temporalio_common::protos::temporal::api::schedule::v1::{ScheduleListEntry, ScheduleListInfo};
use temporalio_common::protos::temporal::api::workflow::v1::WorkflowExecutionInfo;
use temporalio_common::protos::temporal::api::workflowservice::v1 as svc;

/// A server that answers each rpc with this function.
async fn server(answer: impl Fn(&str, &[u8]) -> Option<Vec<u8>> + Send + Sync + 'static) -> TemporalQueryClient {
    let answer = Arc::new(answer);
    let service = CallbackBasedGrpcService {
        callback: Arc::new(move |request| {
            let answer = Arc::clone(&answer);
            Box::pin(async move {
                let proto =
                    answer(&request.rpc, &request.proto).ok_or_else(|| Status::permission_denied("it is away"))?;
                Ok(GrpcSuccessResponse { headers: Default::default(), proto })
            })
        }),
    };
    let options = ConnectionOptions::new(Url::parse("http://127.0.0.1:1").unwrap()).service_override(service);
    let connection = Connection::connect(options.dns_load_balancing(None).build()).await.unwrap();
    TemporalQueryClient::new(
        Client::new(connection, ClientOptions::new("default").build()).unwrap(),
        Default::default(),
    )
}

fn paused(id: &str, note: &str) -> ScheduleListEntry {
    let workflow_type = Some(WorkflowType { name: "StewardWorkflow".into() });
    let info = ScheduleListInfo { workflow_type, notes: note.into(), paused: true, ..Default::default() };
    ScheduleListEntry { schedule_id: id.into(), info: Some(info), ..Default::default() }
}

fn failed(schedule: &str, seconds: u64) -> WorkflowExecutionInfo {
    let data = serde_json::to_vec(schedule).unwrap();
    let by = Payload { data, ..Default::default() };
    WorkflowExecutionInfo {
        execution: Some(WorkflowExecution { workflow_id: format!("{schedule}-1"), run_id: "r".into() }),
        close_time: Some((std::time::UNIX_EPOCH + Duration::from_secs(seconds)).into()),
        status: WorkflowExecutionStatus::TimedOut.into(),
        search_attributes: Some(SearchAttributes { indexed_fields: [("TemporalScheduledById".into(), by)].into() }),
        ..Default::default()
    }
}

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_000_000, 0).unwrap()
}

#[tokio::test]
async fn pauses_by_hand_and_failures_without_a_later_success_are_reported() {
    let temporal = server(|rpc, proto| match rpc {
        "ListSchedules" => {
            let ours = paused("al-steward-done", "Paused by Steward: the matter is done.");
            let other = ScheduleListEntry { schedule_id: "al-steward-x".into(), ..paused("", "someone else's") };
            let other =
                ScheduleListEntry { info: other.info.map(|i| ScheduleListInfo { workflow_type: None, ..i }), ..other };
            let schedules = vec![paused("al-steward-house", "holidays"), ours, other];
            Some(svc::ListSchedulesResponse { schedules, ..Default::default() }.encode_to_vec())
        }
        "ListWorkflowExecutions" => {
            let executions = [("al-steward-a", 900_000), ("al-steward-b", 900_050), ("al-steward-a", 900_100)];
            let executions = executions.map(|(id, at)| failed(id, at)).to_vec();
            Some(svc::ListWorkflowExecutionsResponse { executions, ..Default::default() }.encode_to_vec())
        }
        "CountWorkflowExecutions" => {
            let request = svc::CountWorkflowExecutionsRequest::decode(proto).unwrap();
            let count = i64::from(request.query.contains("'al-steward-b'"));
            Some(svc::CountWorkflowExecutionsResponse { count, ..Default::default() }.encode_to_vec())
        }
        _ => Some(Vec::new()),
    });
    let health = query_temporal_health(&temporal.await, now()).await.unwrap();
    let by_hand = PausedSchedule { subject: "matter/house.md".into(), note: "holidays".into() };
    let at = DateTime::from_timestamp(900_100, 0).unwrap();
    let still = FailedSchedule { schedule: "al-steward-a".into(), at, status: "timed out".into() };
    assert_eq!(
        health,
        TemporalHealth { is_known: true, error: None, paused: vec![by_hand], failed: vec![still], more: false }
    );
}

#[tokio::test]
async fn thousands_of_schedules_need_only_a_few_requests() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static REQUESTS: AtomicUsize = AtomicUsize::new(0);
    let temporal = server(|rpc, _| {
        let page = REQUESTS.fetch_add(1, Ordering::Relaxed);
        match rpc {
            "ListSchedules" => {
                let schedules = (0..1000).map(|n| paused(&format!("al-steward-{page}-{n}"), "")).collect();
                let next_page_token = page.to_string().into_bytes();
                Some(svc::ListSchedulesResponse { schedules, next_page_token }.encode_to_vec())
            }
            "ListWorkflowExecutions" => {
                let executions = (0..200).map(|n| failed(&format!("al-steward-{n}"), 900_000 + n)).collect();
                let next_page_token = b"more".to_vec();
                Some(svc::ListWorkflowExecutionsResponse { executions, next_page_token }.encode_to_vec())
            }
            _ => Some(Vec::new()),
        }
    });
    let temporal = temporal.await;
    REQUESTS.store(0, Ordering::Relaxed);
    let health = query_temporal_health(&temporal, now()).await.unwrap();
    assert_eq!((health.paused.len(), health.failed.len(), health.more), (5000, 20, true));
    assert_eq!(REQUESTS.load(Ordering::Relaxed), 5 + 1 + 20);
}

#[tokio::test]
async fn an_unreachable_server_is_reported_and_breaks_nothing_else() {
    let temporal = server(|rpc, _| (rpc == "GetSystemInfo").then(Vec::new)).await;
    let (end, stop) = watch::channel(false);
    let mut health = spawn_health_watcher(temporal, stop);
    let away = health.wait_for(|health| health.error.is_some()).await.unwrap().clone();
    assert!(away.error.unwrap().contains("it is away"));
    drop(end);
}

//! Client and server meet without a network: a refusal arrives with its code and what goes with it.

use steward_proto::v1::guard_service_client::GuardServiceClient;
use steward_proto::v1::guard_service_server::{GuardService, GuardServiceServer};
use steward_proto::v1::{GetGuardRequest, GetGuardResponse, RefusalReason};
use steward_proto::{FIELDS_TRAILER, NEWER_TRAILER, REASON_TRAILER, RECORD_TRAILER, STATUS_TRAILER};
use tonic::{Code, Request, Response, Status};

const SAID: [(&str, &str); 5] = [
    (STATUS_TRAILER, "409"),
    (REASON_TRAILER, "not_the_newest"),
    (FIELDS_TRAILER, "summary,owner"),
    (NEWER_TRAILER, "0123456789abcdef"),
    (RECORD_TRAILER, "event/steward-action-reversed-20261122T080000000Z-x.md"),
];

struct Refuses;

#[tonic::async_trait]
impl GuardService for Refuses {
    async fn get_guard(&self, _: Request<GetGuardRequest>) -> Result<Response<GetGuardResponse>, Status> {
        let mut status = Status::failed_precondition("undo 0123456789abcdef first");
        for (key, value) in SAID {
            status.metadata_mut().insert(key, value.parse().unwrap());
        }
        Err(status)
    }
}

#[tokio::test]
async fn a_client_reads_the_status_and_the_fields_of_a_refusal() {
    let mut client = GuardServiceClient::new(GuardServiceServer::new(Refuses));
    let status = client.get_guard(GetGuardRequest {}).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::FailedPrecondition, "undo 0123456789abcdef first"));
    for (key, value) in SAID {
        assert_eq!(status.metadata().get(key).unwrap(), value, "{key}");
    }
}

#[test]
fn the_word_of_a_reason_is_its_name_without_the_prefix() {
    let name = RefusalReason::NotTheNewest.as_str_name();
    assert_eq!(name.strip_prefix("REFUSAL_REASON_").unwrap().to_lowercase(), SAID[1].1);
}

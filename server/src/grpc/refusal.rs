//! Encodes refusals for gRPC: a code, one sentence, and the trailers that the contract names.
//!
//! The table at the head of `refusals.proto` assigns a code to each HTTP status. Every refusal of the rules is listed
//! here with its code.

use crate::api::problem::ProblemDetails;
use crate::temporal::resolve::ResolutionRequestError;
use crate::views::FactsError;
use axum::response::Response;
use steward_domain::action::undo::{ResolutionRefusal, ResolutionRefusalDetails};
use steward_proto::v1::{self, RefusalReason};
use steward_proto::{FIELDS_TRAILER, NEWER_TRAILER, REASON_TRAILER, RECORD_TRAILER, REFUSAL_TRAILER, STATUS_TRAILER};
use steward_vault::gates::stop::StopFileError;
use steward_vault::index::IndexError;
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

/// Builds a status that is not a refused resolution.
pub(crate) fn build_status(code: Code, http: u16, message: impl Into<String>) -> Status {
    let mut status = Status::new(code, message);
    insert_trailer(&mut status, STATUS_TRAILER, &http.to_string());
    status
}

/// Sets a trailer; a value that no trailer can carry is left out. Callers pass only Steward's own text.
fn insert_trailer(status: &mut Status, key: &'static str, value: &str) {
    if let Ok(value) = value.parse() {
        status.metadata_mut().insert(key, value);
    }
}

/// Builds the status of a refused resolution.
pub(crate) fn status_from_refusal(refusal: &ResolutionRefusal) -> Status {
    let (code, reason) = classify_refusal(refusal);
    let mut status = build_status(code, refusal.http_status(), refusal.to_string());
    insert_trailer(&mut status, REASON_TRAILER, &format_reason(reason));
    let ResolutionRefusalDetails { fields, newer, record } = refusal.details();
    if !fields.is_empty() {
        insert_trailer(&mut status, FIELDS_TRAILER, &fields.join(","));
    }
    for (key, value) in [(NEWER_TRAILER, newer), (RECORD_TRAILER, record)] {
        if !value.is_empty() {
            insert_trailer(&mut status, key, value);
        }
    }
    if let Ok(json) = serde_json::to_vec(refusal) {
        status.metadata_mut().insert_bin(REFUSAL_TRAILER, MetadataValue::from_bytes(&json));
    }
    status
}

/// Encodes a refusal as part of a response.
pub(super) fn encode_refusal(refusal: &ResolutionRefusal) -> v1::Refusal {
    let ResolutionRefusalDetails { fields, newer, record } = refusal.details();
    v1::Refusal {
        reason: classify_refusal(refusal).1.into(),
        http_status: refusal.http_status().into(),
        message: refusal.to_string(),
        fields: fields.to_vec(),
        newer_id: newer.to_owned(),
        record: record.to_owned(),
        json: serde_json::to_string(refusal).unwrap_or_default(),
    }
}

fn classify_refusal(refusal: &ResolutionRefusal) -> (Code, RefusalReason) {
    match refusal {
        ResolutionRefusal::Unknown { .. } => (Code::NotFound, RefusalReason::Unknown),
        ResolutionRefusal::Ambiguous { .. } => (Code::InvalidArgument, RefusalReason::Ambiguous),
        ResolutionRefusal::Malformed { .. } => (Code::InvalidArgument, RefusalReason::Malformed),
        ResolutionRefusal::NothingToUndo { .. } => (Code::FailedPrecondition, RefusalReason::NothingToUndo),
        // No rpc restores trust or answers in Watch, so these reasons have no code of their own.
        ResolutionRefusal::NotPending { .. }
        | ResolutionRefusal::NothingToRaise { .. }
        | ResolutionRefusal::NothingProposed { .. }
        | ResolutionRefusal::NotWatched { .. }
        | ResolutionRefusal::NothingToReopen { .. } => (Code::FailedPrecondition, RefusalReason::NotPending),
        ResolutionRefusal::PersonOnly => (Code::PermissionDenied, RefusalReason::HumanOnly),
        ResolutionRefusal::HumanOnly { .. } => (Code::FailedPrecondition, RefusalReason::HumanOnly),
        ResolutionRefusal::CeilingStays { .. } => (Code::FailedPrecondition, RefusalReason::HumanOnly),
        ResolutionRefusal::NotAnEdit { .. } => (Code::InvalidArgument, RefusalReason::UnfitEdit),
        ResolutionRefusal::AlreadyResolved { .. } => (Code::AlreadyExists, RefusalReason::AlreadyResolved),
        ResolutionRefusal::Conflict { .. } => (Code::FailedPrecondition, RefusalReason::Conflict),
        ResolutionRefusal::NotTheNewest { .. } => (Code::FailedPrecondition, RefusalReason::NotTheNewest),
        ResolutionRefusal::Unclear { .. } => (Code::FailedPrecondition, RefusalReason::Unclear),
        ResolutionRefusal::OtherMapping { .. } => (Code::FailedPrecondition, RefusalReason::OtherMapping),
        ResolutionRefusal::ShadowNow => (Code::FailedPrecondition, RefusalReason::ShadowNow),
        ResolutionRefusal::Stopped => (Code::FailedPrecondition, RefusalReason::Stopped),
        ResolutionRefusal::Expired { .. } | ResolutionRefusal::ReopenExpired { .. } => {
            (Code::FailedPrecondition, RefusalReason::Expired)
        }
        ResolutionRefusal::Record { .. } | ResolutionRefusal::UnknownMapping { .. } => {
            (Code::DataLoss, RefusalReason::Record)
        }
        ResolutionRefusal::Tracker { .. } => (Code::Aborted, RefusalReason::Tracker),
    }
}

fn format_reason(reason: RefusalReason) -> String {
    reason.as_str_name().trim_start_matches("REFUSAL_REASON_").to_ascii_lowercase()
}

/// The HTTP response for a refusal before a service was reached.
pub(crate) fn build_response(problem: &ProblemDetails) -> Response {
    status_from_problem(problem).into_http()
}

/// Converts a refusal that all interfaces share.
pub(crate) fn status_from_problem(problem: &ProblemDetails) -> Status {
    let code = match problem.status {
        401 => Code::Unauthenticated,
        403 | 421 => Code::PermissionDenied,
        // An unknown service or rpc; every gRPC server uses this code.
        404 | 405 => Code::Unimplemented,
        429 => Code::ResourceExhausted,
        503 => Code::Unavailable,
        _ => Code::Internal,
    };
    build_status(code, problem.status, problem.detail.clone())
}

impl From<FactsError> for Status {
    fn from(e: FactsError) -> Self {
        match e {
            FactsError::Unknown { id } => status_from_refusal(&ResolutionRefusal::Unknown { id }),
            FactsError::Ambiguous { id, count } => status_from_refusal(&ResolutionRefusal::Ambiguous { id, count }),
            FactsError::Malformed { id } => status_from_refusal(&ResolutionRefusal::Malformed { id }),
            e @ (FactsError::Index(_) | FactsError::Record { .. }) => internal_error(&e.to_string()),
        }
    }
}

/// Logs an internal error and builds its status; the message includes the fix if there is one.
pub(super) fn internal_error(message: &str) -> Status {
    tracing::error!("failed to answer a gRPC request: {}", message.escape_debug());
    build_status(Code::Internal, 500, message)
}

/// Converts an error of the index as [`FactsError`] is converted.
pub(super) fn index_error(e: IndexError) -> Status {
    FactsError::from(e).into()
}

pub(super) fn stop_error(e: &StopFileError) -> Status {
    internal_error(&e.to_string())
}

pub(super) fn resolution_error(e: &ResolutionRequestError) -> Status {
    match e {
        ResolutionRequestError::Away { .. } | ResolutionRequestError::Paused { .. } => {
            build_status(Code::Unavailable, 503, e.to_string())
        }
        ResolutionRequestError::Late { .. } => build_status(Code::DeadlineExceeded, 504, e.to_string()),
        ResolutionRequestError::Failed { .. } => internal_error(&e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;

    fn all_refusals() -> Vec<(ResolutionRefusal, Code, &'static str)> {
        let id = || "0123456789abcdef".to_owned();
        let (fields, disposition) = (vec!["summary".to_owned(), "owner".to_owned()], "shadow".to_owned());
        vec![
            (ResolutionRefusal::Unknown { id: id() }, Code::NotFound, "unknown"),
            (ResolutionRefusal::Ambiguous { id: id(), count: 2 }, Code::InvalidArgument, "ambiguous"),
            (ResolutionRefusal::Malformed { id: "ü\n".into() }, Code::InvalidArgument, "malformed"),
            (
                ResolutionRefusal::NothingToUndo { id: id(), disposition: disposition.clone() },
                Code::FailedPrecondition,
                "nothing_to_undo",
            ),
            (ResolutionRefusal::NotPending { id: id(), disposition }, Code::FailedPrecondition, "not_pending"),
            (ResolutionRefusal::NothingToRaise { id: id() }, Code::FailedPrecondition, "not_pending"),
            (ResolutionRefusal::HumanOnly { id: id() }, Code::FailedPrecondition, "human_only"),
            (ResolutionRefusal::Unclear { id: id() }, Code::FailedPrecondition, "unclear"),
            (ResolutionRefusal::NotAnEdit { id: id(), reason: "odd".into() }, Code::InvalidArgument, "unfit_edit"),
            (
                ResolutionRefusal::AlreadyResolved { id: id(), how: "undone".into(), by: "ann".into(), undo: None },
                Code::AlreadyExists,
                "already_resolved",
            ),
            (ResolutionRefusal::Conflict { fields: fields.clone() }, Code::FailedPrecondition, "conflict"),
            (
                ResolutionRefusal::NotTheNewest { id: id(), fields, newer: id() },
                Code::FailedPrecondition,
                "not_the_newest",
            ),
            (ResolutionRefusal::ShadowNow, Code::FailedPrecondition, "shadow_now"),
            (ResolutionRefusal::Stopped, Code::FailedPrecondition, "stopped"),
            (ResolutionRefusal::Expired { id: id(), ended: "then".into() }, Code::FailedPrecondition, "expired"),
            (ResolutionRefusal::Record { reason: "odd".into() }, Code::DataLoss, "record"),
            (
                ResolutionRefusal::Tracker { record: "event/x.md".into(), reason: "away".into() },
                Code::Aborted,
                "tracker",
            ),
        ]
    }

    #[test]
    fn every_refusal_has_the_code_and_the_trailers_that_the_contract_says() {
        let table = include_str!("../../../proto/steward/v1/refusals.proto");
        for (refusal, code, reason) in all_refusals() {
            let status = status_from_refusal(&refusal);
            assert_eq!((status.code(), status.message()), (code, refusal.to_string().as_str()));
            let trailer = |key| status.metadata().get(key).map(|value| value.to_str().unwrap().to_owned());
            assert_eq!(trailer(STATUS_TRAILER), Some(refusal.http_status().to_string()));
            assert_eq!(trailer(REASON_TRAILER).as_deref(), Some(reason));
            let json = status.metadata().get_bin(REFUSAL_TRAILER).unwrap().to_bytes().unwrap();
            assert_eq!(serde_json::from_slice::<ResolutionRefusal>(&json).unwrap(), refusal);
            let name = format!("{code:?}").chars().fold(String::new(), |name, c| {
                let gap = if c.is_uppercase() && !name.is_empty() { "_" } else { "" };
                format!("{name}{gap}{}", c.to_ascii_uppercase())
            });
            let row = format!("// | {}  | {name} ", refusal.http_status());
            assert!(table.contains(&row), "no row `{row}`");
        }
    }

    #[test]
    fn trailers_and_messages_have_the_same_details_of_a_refusal() {
        for (refusal, ..) in all_refusals() {
            let (status, message) = (status_from_refusal(&refusal), encode_refusal(&refusal));
            let trailer = |key| status.metadata().get(key).map_or("", |value| value.to_str().unwrap()).to_owned();
            assert_eq!((trailer(NEWER_TRAILER), trailer(RECORD_TRAILER)), (message.newer_id, message.record));
            assert_eq!(trailer(FIELDS_TRAILER), message.fields.join(","));
            assert_eq!(u32::from(refusal.http_status()), message.http_status);
        }
    }

    #[test]
    fn a_refusal_before_a_service_is_a_complete_http_response() {
        for (status, code) in [(401, "16"), (403, "7"), (421, "7"), (404, "12"), (429, "8"), (500, "13")] {
            let problem = ProblemDetails::new(StatusCode::from_u16(status).unwrap(), "no");
            let response = build_response(&problem);
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.headers()["grpc-status"], code);
            assert_eq!(response.headers()[STATUS_TRAILER], status.to_string().as_str());
        }
    }
}

//! Errors as JSON problem details (RFC 9457), with the text of the refusal.
//!
//! Refusals of the rules, of the views and of Temporal are each converted in one place. So every interface has the same
//! status for the same reason. Pages show the same text.

use crate::temporal::resolve::ResolutionRequestError;
use crate::views::FactsError;
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use steward_domain::action::undo::{ResolutionRefusal, ResolutionRefusalDetails};
use utoipa::ToSchema;

/// Why a request was refused or failed.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub(crate) struct ProblemDetails {
    /// The status in words.
    pub(crate) title: &'static str,
    /// The HTTP status, repeated.
    #[schema(minimum = 400, maximum = 599)]
    pub(crate) status: u16,
    /// What is wrong, for a person. May contain foreign text.
    pub(crate) detail: String,
    /// For a refused resolution, the rule: `unknown`, `already_resolved`, `conflict`, `expired`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) refused: Option<Box<str>>,
    /// For a conflict, the fields that a human edited since.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub(crate) fields: Box<[String]>,
    /// The audit record of what was done in the vault all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) record: Option<Box<str>>,
    /// The workflow as which the resolution goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) workflow: Option<Box<str>>,
    /// Seconds to wait before trying again, as in the `Retry-After` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after: Option<u32>,
}

impl ProblemDetails {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Error");
        Self { title, status: status.as_u16(), detail: detail.into(), ..Self::default() }
    }

    /// Builds the problem of a refused resolution.
    pub(crate) fn from_refusal(refusal: &ResolutionRefusal, status: u16, message: String) -> Self {
        let json = serde_json::to_value(refusal).unwrap_or_default();
        let rule = json.get("refused").and_then(|rule| rule.as_str()).map(Into::into);
        let ResolutionRefusalDetails { fields, record, .. } = refusal.details();
        let (fields, record) = (fields.into(), (!record.is_empty()).then(|| record.into()));
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { refused: rule, fields, record, ..Self::new(status, message) }
    }
}

impl From<FactsError> for ProblemDetails {
    fn from(e: FactsError) -> Self {
        let detail = e.to_string();
        match e {
            FactsError::Unknown { .. } => Self::new(StatusCode::NOT_FOUND, detail),
            FactsError::Ambiguous { .. } | FactsError::Malformed { .. } => Self::new(StatusCode::BAD_REQUEST, detail),
            FactsError::Index(_) | FactsError::Record { .. } => {
                tracing::error!("failed to answer a request: {}", detail.escape_debug());
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
            }
        }
    }
}

impl From<ResolutionRequestError> for ProblemDetails {
    fn from(e: ResolutionRequestError) -> Self {
        let detail = e.to_string();
        match e {
            ResolutionRequestError::Away { .. } => Self::new(StatusCode::SERVICE_UNAVAILABLE, detail),
            ResolutionRequestError::Paused { retry_after_seconds, .. } => {
                Self { retry_after: Some(retry_after_seconds), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, detail) }
            }
            ResolutionRequestError::Late { workflow } => {
                Self { workflow: Some(workflow.into()), ..Self::new(StatusCode::GATEWAY_TIMEOUT, detail) }
            }
            ResolutionRequestError::Failed { workflow, .. } => {
                Self { workflow: Some(workflow.into()), ..Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail) }
            }
        }
    }
}

impl IntoResponse for ProblemDetails {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry_after = self.retry_after;
        let mut response = (status, Json(self)).into_response();
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer realm=\"steward\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}

//! `POST undo|confirm|dismiss/{id}`: a human's resolution, with the statuses of the rules.
//!
//! The resolution is requested from the process that holds the vault; this module only encodes it as JSON. It is
//! recorded under the caller's name, whatever the body says.

use super::actions::bad_request;
use super::problem::ProblemDetails;
use crate::access::AuthenticatedCaller;
use crate::http::app::{SharedAppState, check_may_resolve};
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{Path, State};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use steward_domain::action::audit::ResolverKind;
use steward_domain::action::undo::ResolutionKind;
use steward_workflows::activities::{ResolveInput, ResolveOutput};
use utoipa::ToSchema;

/// The body of a resolution.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResolutionBody {
    /// The reason. The audit record keeps its first 2,000 characters.
    #[serde(default)]
    reason: Option<String>,
}

/// A resolution that was accepted.
#[derive(Serialize, ToSchema)]
pub(crate) struct ResolutionReceipt {
    /// The id of the resolution itself, which is an action too.
    action: String,
    /// Its audit record.
    record: String,
    /// The record that it is about.
    target: String,
    /// What was done in the tracker, in Steward's own words.
    tracker: Option<String>,
    /// The sources and classes that were demoted because of one undo too many, in Steward's own words.
    lowered: Vec<String>,
}

macro_rules! endpoint {
    ($name:ident, $kind:ident, $path:literal, $summary:literal) => {
        #[doc = $summary]
        #[utoipa::path(
            post, path = $path, tag = "resolutions",
            params(("id" = String, Path, description = "The action's id, or its first digits (at least 4)", pattern = "^[0-9a-f]{4,16}$")),
            request_body(content = Option<ResolutionBody>, description = "Optional", content_type = "application/json"),
            responses(
                (status = 200, description = "Done", body = ResolutionReceipt),
                (status = 400, description = "Not an id, or an action that cannot be resolved so (for example a shadow record)", body = ProblemDetails, content_type = "application/problem+json"),
                (status = 401, description = "No token, or an unknown one", body = ProblemDetails, content_type = "application/problem+json"),
                (status = 403, description = "The token's scope is `read`", body = ProblemDetails, content_type = "application/problem+json"),
                (status = 404, description = "No such action", body = ProblemDetails, content_type = "application/problem+json"),
                (status = 409, description = "Already resolved; or edited by a human since (`fields`); or the mode is shadow; or the vault is stopped", body = ProblemDetails, content_type = "application/problem+json"),
                (status = 410, description = "Its 7 days are over", body = ProblemDetails, content_type = "application/problem+json"),
                (status = 413, description = "The body is too large", body = ProblemDetails, content_type = "application/problem+json"),
                (status = 421, description = "Unknown host name", body = ProblemDetails, content_type = "application/problem+json"),
                (status = 422, description = "A record cannot be read or is invalid", body = ProblemDetails, content_type = "application/problem+json"),
                (status = 429, description = "Too many requests", body = ProblemDetails, content_type = "application/problem+json"),
                (status = 500, description = "The resolution failed", body = ProblemDetails, content_type = "application/problem+json"),
                (status = 502, description = "Done in the vault (`record`), not in the tracker", body = ProblemDetails, content_type = "application/problem+json"),
                (status = 503, description = "The Temporal server gives no answer, or no resolution is taken during a drain; nothing was changed", body = ProblemDetails, content_type = "application/problem+json"),
                (status = 504, description = "No outcome within a minute; it goes on as `workflow`", body = ProblemDetails, content_type = "application/problem+json"),
            )
        )]
        pub(crate) async fn $name(
            State(app): State<SharedAppState>,
            Extension(caller): Extension<AuthenticatedCaller>,
            id: Result<Path<String>, PathRejection>,
            body: Result<Bytes, BytesRejection>,
        ) -> Result<Json<ResolutionReceipt>, ProblemDetails> {
            resolve_action(&app, ResolutionKind::$kind, caller, id, body).await
        }
    };
}

endpoint!(undo, Undo, "/api/v1/steward/undo/{id}", "Undoes a change, within 7 days.");
endpoint!(confirm, Confirm, "/api/v1/steward/confirm/{id}", "Applies a pending proposal.");
endpoint!(dismiss, Dismiss, "/api/v1/steward/dismiss/{id}", "Rejects a pending proposal, or ends a question.");

async fn resolve_action(
    app: &SharedAppState,
    kind: ResolutionKind,
    caller: AuthenticatedCaller,
    id: Result<Path<String>, PathRejection>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<ResolutionReceipt>, ProblemDetails> {
    let Path(action) = id.map_err(|e| bad_request(e.body_text()))?;
    let body = body.map_err(|e| ProblemDetails::new(e.status(), e.body_text()))?;
    let ResolutionBody { reason } = parse_resolution_body(&body)?;
    // The full id is used, so that two prefixes of one id are one resolution.
    let row = app.views.find_action_row(&action).await?;
    check_may_resolve(caller.scope, kind, row.kind)?;
    let action = row.id.to_string();
    match app
        .resolution_client()
        .request_resolution(ResolveInput {
            kind,
            action,
            by: caller.name,
            reason,
            edited: None,
            batch_id: None,
            resolved_by: ResolverKind::Human,
        })
        .await?
    {
        ResolveOutput::Done { action_id, record, target, tracker, lowered, .. } => Ok(Json(ResolutionReceipt {
            action: action_id.to_string(),
            record: record.to_string(),
            target: target.to_string(),
            tracker,
            lowered,
        })),
        ResolveOutput::Refused { status, refusal, message } => {
            Err(ProblemDetails::from_refusal(&refusal, status, message))
        }
    }
}

/// Parses the body; an empty one is allowed.
fn parse_resolution_body(body: &[u8]) -> Result<ResolutionBody, ProblemDetails> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(ResolutionBody::default());
    }
    // Read as a map first, because serde would also accept a list of the fields' values.
    let map = serde_json::from_slice::<Option<serde_json::Map<String, Value>>>(body);
    let parsed = map.and_then(|map| map.map(|map| serde_json::from_value(map.into())).transpose());
    Ok(parsed.map_err(|e| bad_request(format!("the body is not {{\"reason\": …}}: {e}")))?.unwrap_or_default())
}

/// Largest body, in bytes: more than a reason needs. A larger one is refused with 413.
pub(crate) const MAX_BODY: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;

    #[test]
    fn a_body_is_optional_and_contains_only_a_reason() {
        assert_eq!(parse_resolution_body(b"").unwrap().reason, None);
        assert_eq!(parse_resolution_body(b"null").unwrap().reason, None);
        assert_eq!(parse_resolution_body(b" {}").unwrap().reason, None);
        assert_eq!(parse_resolution_body(br#"{"reason": "late"}"#).unwrap().reason.as_deref(), Some("late"));
        for body in [&b"late"[..], br#"{"why": "late"}"#, br#"{"reason": 3}"#, b"[]", b"\xff"] {
            assert_eq!(parse_resolution_body(body).unwrap_err().status, StatusCode::BAD_REQUEST.as_u16(), "{body:?}");
        }
    }
}

//! Checks the body of a request before it is parsed: its size, and how deeply it is nested.
//!
//! A parser of nested values takes stack for each level, so depth has a limit of its own. Nothing else of the body is judged here.

use super::MAX_BODY;
use crate::api::problem::ProblemDetails;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// How deeply objects and lists may be nested: arguments of tools take about six levels.
pub(in crate::mcp) const MAX_DEPTH: usize = 32;

pub(super) async fn check_body(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, MAX_BODY).await else {
        return ProblemDetails::new(StatusCode::PAYLOAD_TOO_LARGE, "a request has at most 1 MiB").into_response();
    };
    if !is_shallow(&bytes) {
        let detail = format!("a request is nested at most {MAX_DEPTH} levels deep");
        return ProblemDetails::new(StatusCode::BAD_REQUEST, detail).into_response();
    }
    next.run(Request::from_parts(parts, Body::from(bytes))).await
}

/// Whether a JSON text is nested no deeper than allowed. What is no JSON is refused later.
pub(in crate::mcp) fn is_shallow(json: &[u8]) -> bool {
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for byte in json {
        match (is_text, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => is_text = !is_text,
            (false, b'{' | b'[') => depth += 1,
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_outside_of_texts_alone() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(is_shallow(nested(MAX_DEPTH).as_bytes()) && !is_shallow(nested(MAX_DEPTH + 1).as_bytes()));
        assert!(!is_shallow("{\"a\":".repeat(MAX_DEPTH + 1).as_bytes()));
        let text = format!("{{\"a\": \"{} \\\" {}\"}}", "[".repeat(100), "{".repeat(100));
        assert!(is_shallow(text.as_bytes()));
        assert!(!is_shallow(format!("\"\\\\\"{}", nested(40)).as_bytes()), "an escaped backslash ends no text early");
        assert!(is_shallow("[]".repeat(100).as_bytes()));
    }
}

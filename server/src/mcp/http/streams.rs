//! The streams by which sessions of the older protocol learn what changes.
//!
//! They count as live streams, as those of pages and events do. While one is open its session is not idle. It ends when its token is revoked, or the
//! server stops. None can be resumed: who comes back gets a fresh stream.

use super::sessions::{SessionOwners, read_session};
use crate::access::AuthenticatedCaller;
use crate::access::connection_limit::ConnectionPermit;
use crate::api::problem::ProblemDetails;
use crate::http::app::{LIVE_RECHECK_INTERVAL, SharedAppState};
use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::watch;
use tokio::time::{Interval, interval};

/// With which a client asks for what it missed. Nothing is kept for that.
const RESUME_HEADER: &str = "last-event-id";

/// What a stream is held to.
#[derive(Clone)]
pub(super) struct StreamLimits {
    pub(super) app: SharedAppState,
    pub(super) owners: Arc<SessionOwners>,
}

/// An open stream.
struct LimitedStream {
    body: BodyDataStream,
    limits: StreamLimits,
    /// The headers of the request, to check again whether the caller may still read.
    headers: HeaderMap,
    session: String,
    clock: Interval,
    stop: watch::Receiver<bool>,
    _permit: ConnectionPermit<String>,
}

/// Lets a stream open within the limits, and holds it to them.
pub(super) async fn limit_stream(State(limits): State<StreamLimits>, mut request: Request, next: Next) -> Response {
    if request.method() != Method::GET {
        return next.run(request).await;
    }
    let (headers, caller) = (request.headers().clone(), request.extensions().get::<AuthenticatedCaller>());
    let (Some(caller), Some(session)) = (caller, read_session(&headers)) else {
        return ProblemDetails::new(StatusCode::INTERNAL_SERVER_ERROR, "the caller is unknown").into_response();
    };
    let permit = match limits.app.acquire_live_permit(caller) {
        Ok(permit) => permit,
        Err(full) => return full.into_response(),
    };
    request.headers_mut().remove(RESUME_HEADER);
    let response = next.run(request).await;
    if !response.status().is_success() {
        return response;
    }
    let (parts, body) = response.into_parts();
    let stop = limits.app.stop.clone();
    let clock = interval(LIVE_RECHECK_INTERVAL);
    let limited =
        LimitedStream { body: body.into_data_stream(), limits, headers, session, clock, stop, _permit: permit };
    let events = stream::unfold(limited, |mut limited| async move { Some((limited.next().await?, limited)) });
    Response::from_parts(parts, Body::from_stream(events))
}

impl LimitedStream {
    /// The next part of the stream; `None` ends it.
    async fn next(&mut self) -> Option<Result<Bytes, axum::Error>> {
        loop {
            tokio::select! {
                part = self.body.next() => return part,
                _ = self.stop.wait_for(|stop| *stop) => return None,
                _ = self.clock.tick() => {}
            }
            if !self.limits.app.can_still_read(&self.headers).unwrap_or(false) {
                return None;
            }
            self.limits.owners.touch(&self.session, Instant::now());
        }
    }
}

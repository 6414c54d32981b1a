//! Serves webhooks at `POST /hooks/<stream>`, by default only for this machine.
//!
//! A call must not be answered with 200 before its event is on disk. Events that come at the same time are stored as
//! one batch. The [`Webhook`] authenticates a call and interprets its body. A refused call gets only a status and its
//! name. Bodies are limited in size and time. Each webhook reads a limited number of bodies at once; further calls wait
//! for up to 2 s. Refused calls are counted together, so that a flood of them causes few writes.

use crate::runtime::engine::wait_for_stop;
use crate::runtime::streams::{StreamContext, is_stream_paused};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header::CONTENT_LENGTH};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use chrono::Utc;
use futures_util::StreamExt;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use steward_activities::signals::streams::webhook::{Webhook, WebhookCall, WebhookRefusal};
use steward_activities::signals::streams::{FoundMessage, Intake, IntakeBatch, StreamConfig, StreamSource};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, oneshot, watch as flag};

/// The bodies that are read at once, divided among the webhooks: 64.
const MAX_BODIES: usize = 64;
/// The least share of one webhook, however many webhooks there are: 8.
const MIN_BODIES_PER_HOOK: usize = 8;
/// How long a call waits for its turn before it gets 503: 2 s. Vendors hang up a few seconds later.
const TURN_TIMEOUT: Duration = Duration::from_secs(2);
/// The most events of one stream that wait to be stored: 1,000.
const MAX_QUEUED: usize = 1_000;
/// The most events that are stored as one batch: 200.
const BATCH: usize = 200;
/// How long a body may take to arrive: 10 s.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the count of refused calls is stored: 2 s.
const REFUSAL_INTERVAL: Duration = Duration::from_secs(2);
/// The pause before the next attempt to bind a taken address: 10 s.
const BIND_RETRY: Duration = Duration::from_secs(10);

/// An event, and the channel that reports whether it was stored.
type QueuedEvent = (FoundMessage, oneshot::Sender<bool>);

/// One webhook that accepts calls.
struct OpenWebhook {
    hook: Webhook,
    queue: mpsc::Sender<QueuedEvent>,
    /// Separate for each webhook, so that slow callers of one do not block another.
    bodies: Semaphore,
    refused: WebhookRefusalCounter,
}

/// The refused calls that are not stored yet.
struct WebhookRefusalCounter {
    count: Arc<AtomicU64>,
    has_refusals: mpsc::Sender<()>,
}

struct WebhookListenerState {
    streams: StreamContext,
    hooks: BTreeMap<String, OpenWebhook>,
}

/// Serves the webhooks until the process is asked to stop.
pub(crate) async fn serve_webhooks(
    streams: StreamContext,
    configs: Vec<StreamConfig>,
    address: SocketAddr,
    mut stop: flag::Receiver<bool>,
) {
    let names: Vec<String> = configs.iter().map(|c| c.name.clone()).collect();
    let hooks = open_hooks(&streams, configs).await;
    let app = build_router(streams.clone(), hooks);
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => {
                tracing::info!(%address, "listening for webhooks");
                let stop = stop.clone();
                let served = axum::serve(listener, app.clone()).with_graceful_shutdown(async move {
                    wait_for_stop(&mut stop.clone()).await;
                });
                if let Err(e) = served.await {
                    tracing::error!(error = %e, "failed to serve webhooks; trying again");
                }
            }
            Err(e) => {
                let text = format!("{address}: {e}: set STEWARD_WEBHOOK_LISTEN to a free address");
                tracing::warn!("failed to listen for webhooks on {text}");
                for name in &names {
                    streams.record_round(name, Some(&text)).await;
                }
            }
        }
        tokio::select! {
            () = wait_for_stop(&mut stop) => return,
            () = tokio::time::sleep(BIND_RETRY) => {}
        }
    }
}

/// Opens the webhooks; one that cannot be opened is logged and left out.
async fn open_hooks(streams: &StreamContext, configs: Vec<StreamConfig>) -> BTreeMap<String, Webhook> {
    let mut hooks = BTreeMap::new();
    for config in configs {
        match config.open(streams.writer.root()) {
            Ok(StreamSource::Pushed(hook)) => {
                streams.record_round(&config.name, None).await;
                hooks.insert(config.name, hook);
            }
            Ok(StreamSource::Polled(_)) => {}
            Err(e) => {
                let text = e.to_string();
                let reason = text.escape_debug();
                tracing::error!(stream = %config.name, "webhook not served: {reason}; fix this and start again");
                streams.record_round(&config.name, Some(&text)).await;
            }
        }
    }
    hooks
}

fn build_router(streams: StreamContext, hooks: BTreeMap<String, Webhook>) -> Router {
    let share = (MAX_BODIES / hooks.len().max(1)).max(MIN_BODIES_PER_HOOK);
    let open = |(name, hook): (String, Webhook)| {
        let (queue, queued) = mpsc::channel(MAX_QUEUED);
        tokio::spawn(store_events(streams.clone(), name.clone(), queued));
        let refused = WebhookRefusalCounter::new(&streams, &name);
        (name, OpenWebhook { hook, queue, bodies: Semaphore::new(share), refused })
    };
    let hooks = hooks.into_iter().map(open).collect();
    let state = Arc::new(WebhookListenerState { streams: streams.clone(), hooks });
    Router::new().route("/hooks/{stream}", post(handle_call)).with_state(state)
}

async fn handle_call(
    State(state): State<Arc<WebhookListenerState>>,
    Path(stream): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    match process_call(&state, &stream, &headers, body).await {
        Ok(text) => (StatusCode::OK, text).into_response(),
        Err(status) => (status, status.canonical_reason().unwrap_or_default()).into_response(),
    }
}

async fn process_call(
    state: &WebhookListenerState,
    stream: &str,
    headers: &HeaderMap,
    body: Body,
) -> Result<String, StatusCode> {
    let webhook = state.hooks.get(stream).ok_or(StatusCode::NOT_FOUND)?;
    if is_stream_paused(&state.streams.index, stream).await {
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    let verified = verify_call(webhook, stream, headers, body).await;
    match verified.inspect_err(|status| webhook.refused.count_refusal(*status))? {
        WebhookCall::Challenge(text) => Ok(text),
        WebhookCall::Nothing => Ok("ok".to_owned()),
        WebhookCall::Event(found) => {
            let (report, reported) = oneshot::channel();
            let sent = webhook.queue.send_timeout((*found, report), TURN_TIMEOUT).await;
            sent.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
            let stored = reported.await.unwrap_or(false);
            if stored { Ok("ok".to_owned()) } else { Err(StatusCode::SERVICE_UNAVAILABLE) }
        }
    }
}

/// Reads a body and has the webhook check it. Nothing is stored here.
async fn verify_call(
    webhook: &OpenWebhook,
    stream: &str,
    headers: &HeaderMap,
    body: Body,
) -> Result<WebhookCall, StatusCode> {
    let max_bytes = webhook.hook.max_bytes;
    let stated_length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if stated_length.is_some_and(|length| length > max_bytes) {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let turn = tokio::time::timeout(TURN_TIMEOUT, webhook.bodies.acquire()).await;
    let Ok(Ok(_turn)) = turn else { return Err(StatusCode::SERVICE_UNAVAILABLE) };
    let body = tokio::time::timeout(BODY_TIMEOUT, read_whole_body(body, max_bytes))
        .await
        .map_err(|_| StatusCode::REQUEST_TIMEOUT)??;
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    webhook.hook.check_call(header, &body, Utc::now()).map_err(|refused| match refused {
        WebhookRefusal::Unsigned => {
            tracing::warn!(stream, "refused a call without a valid signature");
            StatusCode::UNAUTHORIZED
        }
        WebhookRefusal::Unreadable(why) => {
            tracing::warn!(stream, "failed to read a signed call: {}", why.escape_debug());
            StatusCode::BAD_REQUEST
        }
    })
}

async fn read_whole_body(body: Body, max_bytes: u64) -> Result<Vec<u8>, StatusCode> {
    let (mut parts, mut bytes) = (body.into_data_stream(), Vec::new());
    while let Some(part) = parts.next().await {
        // A caller that hung up does not see this status.
        let part = part.map_err(|_| StatusCode::REQUEST_TIMEOUT)?;
        if (bytes.len() + part.len()) as u64 > max_bytes {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

impl WebhookRefusalCounter {
    fn new(streams: &StreamContext, name: &str) -> Self {
        let (has_refusals, refusals) = mpsc::channel(1);
        let count = Arc::new(AtomicU64::new(0));
        tokio::spawn(record_refusals(streams.clone(), name.to_owned(), Arc::clone(&count), refusals));
        Self { count, has_refusals }
    }

    /// Counts a call that was refused because of its content. A call at a bad time, such as during a pause, does not
    /// count.
    fn count_refusal(&self, status: StatusCode) {
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE) {
            self.count.fetch_add(1, Ordering::Relaxed);
            // One waiting message is enough for all refusals.
            let _ = self.has_refusals.try_send(());
        }
    }
}

/// Adds the refused calls to the stream's count, at most once per `REFUSAL_INTERVAL`.
async fn record_refusals(
    streams: StreamContext,
    name: String,
    count: Arc<AtomicU64>,
    mut refusals: mpsc::Receiver<()>,
) {
    while refusals.recv().await.is_some() {
        tokio::time::sleep(REFUSAL_INTERVAL).await;
        let refused = count.swap(0, Ordering::Relaxed);
        if refused == 0 {
            continue;
        }
        let mut intake = Intake::new(&name, Arc::clone(&streams.writer), Arc::clone(&streams.index));
        if let Err(e) = intake.ingest_batch(IntakeBatch { refused, ..IntakeBatch::default() }).await {
            tracing::error!(stream = %name, refused, "failed to store the number of refused calls: {e}");
        }
    }
}

/// Batches incoming events, stores each batch, and answers the waiting calls.
async fn store_events(streams: StreamContext, name: String, mut queued: mpsc::Receiver<QueuedEvent>) {
    let mut batch = Vec::with_capacity(BATCH);
    while queued.recv_many(&mut batch, BATCH).await > 0 {
        let (found, reports): (Vec<FoundMessage>, Vec<_>) = batch.drain(..).unzip();
        let mut intake = Intake::new(&name, Arc::clone(&streams.writer), Arc::clone(&streams.index));
        let result = intake.ingest_batch(IntakeBatch { found, ..IntakeBatch::default() }).await;
        let text = result.as_ref().err().map(ToString::to_string);
        if let Some(text) = &text {
            tracing::error!(stream = %name, "failed to store events of a webhook: {}", text.escape_debug());
        }
        streams.record_round(&name, text.as_deref()).await;
        for report in reports {
            // The caller may have hung up.
            let _ = report.send(result.is_ok());
        }
    }
}

#[cfg(test)]
mod tests;

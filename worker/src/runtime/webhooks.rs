//! Listens for webhooks: `POST /hooks/<stream>`, on this machine alone unless the operator says otherwise.
//!
//! A call is answered with 200 when its event is on disk and not before; calls that come at once are
//! stored together. Who may call and what a body means, its [`Webhook`] says. Answers to strangers hold a
//! number and one word. Bodies are bounded in size and time, and of each webhook so many are read at once;
//! more wait a moment. Calls that are refused are counted together, so that a flood writes little.

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

/// Bodies that are read at once, shared out among the webhooks.
const AT_ONCE: usize = 64;
/// Of one webhook, however many there are.
const AT_ONCE_LEAST: usize = 8;
/// How long a call waits for its turn before it is told to come again: 2 s; vendors hang up after some more.
const TURN: Duration = Duration::from_secs(2);
/// Events that wait to be stored, of one stream.
const WAITING: usize = 1_000;
/// Events that are stored together.
const TOGETHER: usize = 200;
/// How long a body may take to arrive: 10 s.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often calls that were refused are written down: 2 s.
const REFUSED: Duration = Duration::from_secs(2);
/// How long after the address was taken the next try is made: 10 s.
const TAKEN: Duration = Duration::from_secs(10);

/// An event, and who waits to hear that it is stored.
type QueuedEvent = (FoundMessage, oneshot::Sender<bool>);

/// One webhook, open.
struct OpenWebhook {
    hook: Webhook,
    stored: mpsc::Sender<QueuedEvent>,
    /// Whoever is slow here keeps nobody from another webhook.
    bodies: Semaphore,
    refused: WebhookRefusalCounter,
}

/// Calls that were refused and are not written down yet.
struct WebhookRefusalCounter {
    count: Arc<AtomicU64>,
    some: mpsc::Sender<()>,
}

struct WebhookListenerState {
    streams: StreamContext,
    hooks: BTreeMap<String, OpenWebhook>,
}

/// Serves the webhooks until told to stop.
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
                let ends = stop.clone();
                let served = axum::serve(listener, app.clone()).with_graceful_shutdown(async move {
                    wait_for_stop(&mut ends.clone()).await;
                });
                if let Err(e) = served.await {
                    tracing::error!(error = %e, "the listener for webhooks failed");
                }
            }
            Err(e) => {
                let text = format!("{address}: {e}: set STEWARD_WEBHOOK_LISTEN to an address that is free");
                tracing::warn!("webhooks cannot be listened to: {text}");
                for name in &names {
                    streams.record_round(name, Some(&text)).await;
                }
            }
        }
        tokio::select! {
            () = wait_for_stop(&mut stop) => return,
            () = tokio::time::sleep(TAKEN) => {}
        }
    }
}

/// Opens what can be opened; the rest says why it cannot.
async fn open_hooks(streams: &StreamContext, configs: Vec<StreamConfig>) -> BTreeMap<String, Webhook> {
    let mut hooks = BTreeMap::new();
    for config in configs {
        match config.open(streams.keeper.root()) {
            Ok(StreamSource::Pushed(hook)) => {
                streams.record_round(&config.name, None).await;
                hooks.insert(config.name, hook);
            }
            Ok(StreamSource::Polled(_)) => {}
            Err(e) => {
                let text = e.to_string();
                tracing::error!(stream = %config.name, "not listened to: {}; start again when it is mended", text.escape_debug());
                streams.record_round(&config.name, Some(&text)).await;
            }
        }
    }
    hooks
}

fn build_router(streams: StreamContext, hooks: BTreeMap<String, Webhook>) -> Router {
    let share = (AT_ONCE / hooks.len().max(1)).max(AT_ONCE_LEAST);
    let open = |(name, hook): (String, Webhook)| {
        let (stored, waiting) = mpsc::channel(WAITING);
        tokio::spawn(store_events(streams.clone(), name.clone(), waiting));
        let refused = WebhookRefusalCounter::new(&streams, &name);
        (name, OpenWebhook { hook, stored, bodies: Semaphore::new(share), refused })
    };
    let hooks = hooks.into_iter().map(open).collect();
    let state = Arc::new(WebhookListenerState { streams: streams.clone(), hooks });
    Router::new().route("/hooks/{stream}", post(handle_call)).with_state(state)
}

async fn handle_call(
    State(listening): State<Arc<WebhookListenerState>>,
    Path(stream): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    match process_call(&listening, &stream, &headers, body).await {
        Ok(text) => (StatusCode::OK, text).into_response(),
        Err(status) => (status, status.canonical_reason().unwrap_or_default()).into_response(),
    }
}

async fn process_call(
    listening: &WebhookListenerState,
    stream: &str,
    headers: &HeaderMap,
    body: Body,
) -> Result<String, StatusCode> {
    let open = listening.hooks.get(stream).ok_or(StatusCode::NOT_FOUND)?;
    if is_stream_paused(&listening.streams.index, stream).await {
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    let judged = verify_call(open, stream, headers, body).await;
    match judged.inspect_err(|status| open.refused.count_refusal(*status))? {
        WebhookCall::Challenge(text) => Ok(text),
        WebhookCall::Nothing => Ok("ok".to_owned()),
        WebhookCall::Event(found) => {
            let (tell, told) = oneshot::channel();
            let sent = open.stored.send_timeout((*found, tell), TURN).await;
            sent.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
            let stored = told.await.unwrap_or(false);
            if stored { Ok("ok".to_owned()) } else { Err(StatusCode::SERVICE_UNAVAILABLE) }
        }
    }
}

/// Reads a body and lets it go again.
async fn verify_call(
    open: &OpenWebhook,
    stream: &str,
    headers: &HeaderMap,
    body: Body,
) -> Result<WebhookCall, StatusCode> {
    let most = open.hook.max_bytes;
    let told = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if told.is_some_and(|length| length > most) {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let turn = tokio::time::timeout(TURN, open.bodies.acquire()).await;
    let Ok(Ok(_turn)) = turn else { return Err(StatusCode::SERVICE_UNAVAILABLE) };
    let body = tokio::time::timeout(PATIENCE, read_whole_body(body, most))
        .await
        .map_err(|_| StatusCode::REQUEST_TIMEOUT)??;
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    open.hook.check_call(header, &body, Utc::now()).map_err(|refused| match refused {
        WebhookRefusal::Unsigned => {
            tracing::warn!(stream, "a call without the right signature was refused");
            StatusCode::UNAUTHORIZED
        }
        WebhookRefusal::Unreadable(why) => {
            tracing::warn!(stream, "a signed call could not be read: {}", why.escape_debug());
            StatusCode::BAD_REQUEST
        }
    })
}

async fn read_whole_body(body: Body, most: u64) -> Result<Vec<u8>, StatusCode> {
    let (mut parts, mut bytes) = (body.into_data_stream(), Vec::new());
    while let Some(part) = parts.next().await {
        // Whoever hung up hears nothing.
        let part = part.map_err(|_| StatusCode::REQUEST_TIMEOUT)?;
        if (bytes.len() + part.len()) as u64 > most {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

impl WebhookRefusalCounter {
    fn new(streams: &StreamContext, name: &str) -> Self {
        let (some, more) = mpsc::channel(1);
        let count = Arc::new(AtomicU64::new(0));
        tokio::spawn(record_refusals(streams.clone(), name.to_owned(), Arc::clone(&count), more));
        Self { count, some }
    }

    /// Counts what was refused for what it is, not for coming at a bad time.
    fn count_refusal(&self, status: StatusCode) {
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE) {
            self.count.fetch_add(1, Ordering::Relaxed);
            // One that waits to be heard stands for all.
            let _ = self.some.try_send(());
        }
    }
}

/// Adds what was refused to the stream's count, at most once in a while.
async fn record_refusals(streams: StreamContext, name: String, count: Arc<AtomicU64>, mut more: mpsc::Receiver<()>) {
    while more.recv().await.is_some() {
        tokio::time::sleep(REFUSED).await;
        let refused = count.swap(0, Ordering::Relaxed);
        if refused == 0 {
            continue;
        }
        let mut intake = Intake::new(&name, Arc::clone(&streams.keeper), Arc::clone(&streams.index));
        if let Err(e) = intake.ingest_batch(IntakeBatch { refused, ..IntakeBatch::default() }).await {
            tracing::error!(stream = %name, refused, "failed to count calls that were refused: {e}");
        }
    }
}

/// Stores what comes, together what came together, and tells those who wait.
async fn store_events(streams: StreamContext, name: String, mut waiting: mpsc::Receiver<QueuedEvent>) {
    let mut some = Vec::with_capacity(TOGETHER);
    while waiting.recv_many(&mut some, TOGETHER).await > 0 {
        let (found, tell): (Vec<FoundMessage>, Vec<_>) = some.drain(..).unzip();
        let mut intake = Intake::new(&name, Arc::clone(&streams.keeper), Arc::clone(&streams.index));
        let taken = intake.ingest_batch(IntakeBatch { found, ..IntakeBatch::default() }).await;
        let text = taken.as_ref().err().map(ToString::to_string);
        if let Some(text) = &text {
            tracing::error!(stream = %name, "failed to store what was called in: {}", text.escape_debug());
        }
        streams.record_round(&name, text.as_deref()).await;
        for one in tell {
            // Who called may have hung up.
            let _ = one.send(taken.is_ok());
        }
    }
}

#[cfg(test)]
mod tests;

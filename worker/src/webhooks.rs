//! Listens for webhooks: `POST /hooks/<stream>`, on this machine alone unless the operator says otherwise.
//!
//! A call is answered with 200 when its event is on disk and not before; calls that come at once are
//! stored together. Who may call and what a body means, its [`Hook`] says. Answers to strangers hold a
//! number and one word. Bodies are bounded in size and time, and of each webhook so many are read at once;
//! more wait a moment. Calls that are refused are counted together, so that a flood writes little.

use crate::engine::raised;
use crate::streams::{Streams, is_paused};
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
use steward_activities::streams::webhook::{Call, Hook, Refused};
use steward_activities::streams::{Batch, Found, Intake, Source, StreamConfig};
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
type Waiting = (Found, oneshot::Sender<bool>);

/// One webhook, open.
struct Open {
    hook: Hook,
    stored: mpsc::Sender<Waiting>,
    /// Whoever is slow here keeps nobody from another webhook.
    bodies: Semaphore,
    refused: Refusals,
}

/// Calls that were refused and are not written down yet.
struct Refusals {
    count: Arc<AtomicU64>,
    some: mpsc::Sender<()>,
}

struct Listening {
    streams: Streams,
    hooks: BTreeMap<String, Open>,
}

/// Serves the webhooks until told to stop.
pub(crate) async fn run(
    streams: Streams,
    configs: Vec<StreamConfig>,
    address: SocketAddr,
    mut stop: flag::Receiver<bool>,
) {
    let names: Vec<String> = configs.iter().map(|c| c.name.clone()).collect();
    let hooks = open(&streams, configs).await;
    let app = router(streams.clone(), hooks);
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => {
                tracing::info!(%address, "listening for webhooks");
                let ends = stop.clone();
                let served = axum::serve(listener, app.clone()).with_graceful_shutdown(async move {
                    raised(&mut ends.clone()).await;
                });
                if let Err(e) = served.await {
                    tracing::error!(error = %e, "the listener for webhooks failed");
                }
            }
            Err(e) => {
                let text = format!("{address}: {e}: set STEWARD_WEBHOOK_LISTEN to an address that is free");
                tracing::warn!("webhooks cannot be listened to: {text}");
                for name in &names {
                    streams.note(name, Some(&text)).await;
                }
            }
        }
        tokio::select! {
            () = raised(&mut stop) => return,
            () = tokio::time::sleep(TAKEN) => {}
        }
    }
}

/// Opens what can be opened; the rest says why it cannot.
async fn open(streams: &Streams, configs: Vec<StreamConfig>) -> BTreeMap<String, Hook> {
    let mut hooks = BTreeMap::new();
    for config in configs {
        match config.open(streams.keeper.root()) {
            Ok(Source::Pushed(hook)) => {
                streams.note(&config.name, None).await;
                hooks.insert(config.name, hook);
            }
            Ok(Source::Polled(_)) => {}
            Err(e) => {
                let text = e.to_string();
                tracing::error!(stream = %config.name, "not listened to: {}; start again when it is mended", text.escape_debug());
                streams.note(&config.name, Some(&text)).await;
            }
        }
    }
    hooks
}

fn router(streams: Streams, hooks: BTreeMap<String, Hook>) -> Router {
    let share = (AT_ONCE / hooks.len().max(1)).max(AT_ONCE_LEAST);
    let open = |(name, hook): (String, Hook)| {
        let (stored, waiting) = mpsc::channel(WAITING);
        tokio::spawn(store(streams.clone(), name.clone(), waiting));
        let refused = Refusals::new(&streams, &name);
        (name, Open { hook, stored, bodies: Semaphore::new(share), refused })
    };
    let hooks = hooks.into_iter().map(open).collect();
    let state = Arc::new(Listening { streams: streams.clone(), hooks });
    Router::new().route("/hooks/{stream}", post(call)).with_state(state)
}

async fn call(
    State(listening): State<Arc<Listening>>,
    Path(stream): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    match answer(&listening, &stream, &headers, body).await {
        Ok(text) => (StatusCode::OK, text).into_response(),
        Err(status) => (status, status.canonical_reason().unwrap_or_default()).into_response(),
    }
}

async fn answer(listening: &Listening, stream: &str, headers: &HeaderMap, body: Body) -> Result<String, StatusCode> {
    let open = listening.hooks.get(stream).ok_or(StatusCode::NOT_FOUND)?;
    if is_paused(&listening.streams.index, stream).await {
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    let judged = judge(open, stream, headers, body).await;
    match judged.inspect_err(|status| open.refused.add(*status))? {
        Call::Challenge(text) => Ok(text),
        Call::Nothing => Ok("ok".to_owned()),
        Call::Event(found) => {
            let (tell, told) = oneshot::channel();
            let sent = open.stored.send_timeout((*found, tell), TURN).await;
            sent.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
            let stored = told.await.unwrap_or(false);
            if stored { Ok("ok".to_owned()) } else { Err(StatusCode::SERVICE_UNAVAILABLE) }
        }
    }
}

/// Reads a body and lets it go again.
async fn judge(open: &Open, stream: &str, headers: &HeaderMap, body: Body) -> Result<Call, StatusCode> {
    let most = open.hook.max_bytes;
    let told = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if told.is_some_and(|length| length > most) {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let turn = tokio::time::timeout(TURN, open.bodies.acquire()).await;
    let Ok(Ok(_turn)) = turn else { return Err(StatusCode::SERVICE_UNAVAILABLE) };
    let body = tokio::time::timeout(PATIENCE, whole(body, most)).await.map_err(|_| StatusCode::REQUEST_TIMEOUT)??;
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    open.hook.judge(header, &body, Utc::now()).map_err(|refused| match refused {
        Refused::Unsigned => {
            tracing::warn!(stream, "a call without the right signature was refused");
            StatusCode::UNAUTHORIZED
        }
        Refused::Unreadable(why) => {
            tracing::warn!(stream, "a signed call could not be read: {}", why.escape_debug());
            StatusCode::BAD_REQUEST
        }
    })
}

async fn whole(body: Body, most: u64) -> Result<Vec<u8>, StatusCode> {
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

impl Refusals {
    fn new(streams: &Streams, name: &str) -> Self {
        let (some, more) = mpsc::channel(1);
        let count = Arc::new(AtomicU64::new(0));
        tokio::spawn(write_down(streams.clone(), name.to_owned(), Arc::clone(&count), more));
        Self { count, some }
    }

    /// Counts what was refused for what it is, not for coming at a bad time.
    fn add(&self, status: StatusCode) {
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE) {
            self.count.fetch_add(1, Ordering::Relaxed);
            // One that waits to be heard stands for all.
            let _ = self.some.try_send(());
        }
    }
}

/// Adds what was refused to the stream's count, at most once in a while.
async fn write_down(streams: Streams, name: String, count: Arc<AtomicU64>, mut more: mpsc::Receiver<()>) {
    while more.recv().await.is_some() {
        tokio::time::sleep(REFUSED).await;
        let refused = count.swap(0, Ordering::Relaxed);
        if refused == 0 {
            continue;
        }
        let mut intake = Intake::new(&name, Arc::clone(&streams.keeper), Arc::clone(&streams.index));
        if let Err(e) = intake.take(Batch { refused, ..Batch::default() }).await {
            tracing::error!(stream = %name, refused, "failed to count calls that were refused: {e}");
        }
    }
}

/// Stores what comes, together what came together, and tells those who wait.
async fn store(streams: Streams, name: String, mut waiting: mpsc::Receiver<Waiting>) {
    let mut some = Vec::with_capacity(TOGETHER);
    while waiting.recv_many(&mut some, TOGETHER).await > 0 {
        let (found, tell): (Vec<Found>, Vec<_>) = some.drain(..).unzip();
        let mut intake = Intake::new(&name, Arc::clone(&streams.keeper), Arc::clone(&streams.index));
        let taken = intake.take(Batch { found, ..Batch::default() }).await;
        let text = taken.as_ref().err().map(ToString::to_string);
        if let Some(text) = &text {
            tracing::error!(stream = %name, "failed to store what was called in: {}", text.escape_debug());
        }
        streams.note(&name, text.as_deref()).await;
        for one in tell {
            // Who called may have hung up.
            let _ = one.send(taken.is_ok());
        }
    }
}

#[cfg(test)]
mod tests;

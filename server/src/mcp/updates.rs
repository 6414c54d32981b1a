//! Notifies clients that resources changed: on a stream of `subscriptions/listen`, or in a session after `resources/subscribe`.
//!
//! Nothing is queued. When something may have changed, the files of the watched resources are looked at, and what differs is reported. A server looks when
//! its change notifier says so, a process without one every two seconds, and both only while somebody watches. A revoked token ends it.

mod watched;

use super::caller::McpCaller;
use super::resources::uri::ResourceUri;
use super::resources::{open_visible, refuse_unknown};
use super::vault::McpVault;
use crate::access::AuthenticatedCaller;
use crate::http::app::{LIVE_RECHECK_INTERVAL, SharedAppState};
use crate::views::revision::LiveRevision;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};
use chrono::Utc;
use rmcp::RoleServer;
use rmcp::model::{ErrorData, ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{Peer, RequestContext, SubscriptionContext};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use watched::MAX_WATCHED;

pub(crate) use watched::WatchedResources;

/// How often a process without a change notifier looks at the files.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// How it becomes known that something may have changed.
#[derive(Clone)]
pub(crate) enum ChangeSource {
    /// The change notifier of a server.
    Server(SharedAppState),
    /// The files are looked at again and again.
    Files,
}

/// Waits for changes on behalf of one caller.
enum ChangeClock {
    Server {
        app: SharedAppState,
        headers: HeaderMap,
        revision: watch::Receiver<LiveRevision>,
        stop: watch::Receiver<bool>,
    },
    Files,
}

impl ChangeSource {
    /// A clock for the caller of a request.
    ///
    /// # Errors
    /// A layer of the server is missing.
    fn start_clock(&self, parts: Option<&Parts>) -> Result<ChangeClock, ErrorData> {
        match (self, parts) {
            (Self::Files, _) => Ok(ChangeClock::Files),
            (Self::Server(app), Some(parts)) => Ok(ChangeClock::Server {
                app: Arc::clone(app),
                headers: parts.headers.clone(),
                revision: app.revision.clone(),
                stop: app.stop.clone(),
            }),
            (Self::Server(_), None) => Err(ErrorData::internal_error("the caller is unknown", None)),
        }
    }
}

impl ChangeClock {
    /// Waits until something may have changed; `false` if the caller may not read any more, or the server stops.
    async fn wait(&mut self) -> bool {
        let Self::Server { app, headers, revision, stop } = self else {
            tokio::time::sleep(POLL_INTERVAL).await;
            return true;
        };
        tokio::select! {
            // A file that a person edited may change before the index does, so the files are looked at in any case.
            () = tokio::time::sleep(LIVE_RECHECK_INTERVAL) => {}
            changed = revision.changed() => if changed.is_err() { return false },
            _ = stop.wait_for(|stop| *stop) => return false,
        }
        app.can_still_read(headers).unwrap_or(false)
    }
}

/// What a stream may watch of what is asked for. It says nothing about what is there: what a caller does not see never changes for them.
pub(crate) fn accept_filter(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let uris = requested.resource_subscriptions.iter().flatten();
    // What the stewards say is no file, so it is read and not watched.
    let is_watchable = |uri: &&String| ResourceUri::parse(uri).is_some_and(|uri| uri.workspace().is_some());
    let ours = uris.filter(is_watchable).take(MAX_WATCHED);
    SubscriptionFilter::builder().resource_subscriptions(ours.cloned()).build()
}

/// Serves a stream of `subscriptions/listen` until it is cancelled.
///
/// # Errors
/// The caller has too many live streams.
pub(crate) async fn serve_listen(
    vault: &Arc<McpVault>,
    caller: McpCaller,
    changes: &ChangeSource,
    context: SubscriptionContext,
) -> Result<(), ErrorData> {
    let parts = context.request_context().extensions.get::<Parts>();
    let mut clock = changes.start_clock(parts)?;
    let _permit = match changes {
        ChangeSource::Server(app) => Some(acquire_permit(app, parts.map(|parts| &parts.extensions))?),
        ChangeSource::Files => None,
    };
    let watched = Arc::new(WatchedResources::default());
    let uris: Vec<String> = context.accepted().resource_subscriptions.clone().unwrap_or_default();
    for uri in uris {
        watched.watch(vault, &caller, uri).await;
    }
    for uri in watched.list_recent(Utc::now()) {
        if context.sink().notify_resource_updated(uri).await.is_err() {
            return Ok(());
        }
    }
    loop {
        let goes_on = tokio::select! {
            goes_on = clock.wait() => goes_on,
            () = context.cancelled() => false,
        };
        if !goes_on {
            return Ok(());
        }
        for uri in watched.find_changes(vault, &caller).await {
            if context.sink().notify_resource_updated(uri).await.is_err() {
                return Ok(());
            }
        }
    }
}

fn acquire_permit(app: &SharedAppState, extensions: Option<&Extensions>) -> Result<impl Send + use<>, ErrorData> {
    let caller = extensions.and_then(Extensions::get::<AuthenticatedCaller>);
    let caller = caller.ok_or_else(|| ErrorData::internal_error("the caller is unknown", None))?;
    app.acquire_live_permit(caller).map_err(|full| ErrorData::internal_error(full.detail, None))
}

/// Watches a resource for a session.
///
/// # Errors
/// The caller does not see it, or the session watches too many.
pub(crate) async fn subscribe_session(
    vault: &Arc<McpVault>,
    caller: McpCaller,
    changes: &ChangeSource,
    session: &Arc<WatchedResources>,
    uri: String,
    context: &RequestContext<RoleServer>,
) -> Result<(), ErrorData> {
    let clock = changes.start_clock(context.extensions.get::<Parts>())?;
    if !is_there(vault, &caller, &uri).await {
        return Err(refuse_unknown(&uri));
    }
    if !session.watch(vault, &caller, uri).await {
        let what = format!("a session watches at most {MAX_WATCHED} resources: unsubscribe from some");
        return Err(ErrorData::invalid_params(what, None));
    }
    if session.claim_watcher() {
        tokio::spawn(watch_session(Arc::clone(vault), caller, clock, Arc::clone(session), context.peer.clone()));
    }
    Ok(())
}

async fn is_there(vault: &Arc<McpVault>, caller: &McpCaller, uri: &str) -> bool {
    let (vault, caller, uri) = (Arc::clone(vault), caller.clone(), uri.to_owned());
    let look = move || match ResourceUri::parse(&uri) {
        Some(ResourceUri::File { .. }) => watched::stamp_resource(&vault, &caller, &uri).is_some(),
        Some(resource) => open_visible(&vault, &caller, &resource).is_some(),
        None => false,
    };
    tokio::task::spawn_blocking(look).await.unwrap_or(false)
}

/// Reports to a session what changed, until it watches nothing or has ended.
async fn watch_session(
    vault: Arc<McpVault>,
    caller: McpCaller,
    mut clock: ChangeClock,
    session: Arc<WatchedResources>,
    peer: Peer<RoleServer>,
) {
    while clock.wait().await && !peer.is_transport_closed() {
        if session.release_if_empty() {
            return;
        }
        for uri in session.find_changes(&vault, &caller).await {
            let update = ResourceUpdatedNotificationParam::new(uri);
            if peer.notify_resource_updated(update).await.is_err() {
                return session.release_watcher();
            }
        }
    }
    session.release_watcher();
}

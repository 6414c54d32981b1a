//! `GET /live`: tells an open page that there are newer records than it shows.
//!
//! The stream sends server-sent events, one line of HTML each. The page itself does not change, so text that is being
//! read or typed stays. The stream ends when the caller logs out or loses the right to read. A browser that reconnects
//! is refused.

use super::PageError;
use super::PageFrame;
use super::build_url;
use super::form::keep_local_url;
use crate::access::AuthenticatedCaller;
use crate::access::connection_limit::ConnectionPermit;
use crate::http::app::{LIVE_RECHECK_INTERVAL, SharedAppState};
use crate::views::revision::LiveRevision;
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream;
use serde::Deserialize;
use std::convert::Infallible;
use std::time::Duration;
use steward_vault::gates::stop;
use tokio::sync::watch;

/// Clears the line on the page. It is not empty, because an event without data would not arrive.
const NOTHING: &str = "<!-- -->";
/// How often an empty comment is sent, so that no proxy takes the connection for dead: 20 s.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

#[derive(Deserialize)]
pub(crate) struct LiveQuery {
    /// The sequence number of the newest record that the page shows.
    #[serde(default)]
    seen: u64,
    /// Whether the page shows that the vault is stopped.
    #[serde(default)]
    stopped: bool,
    /// The URL of the page, to which the line links.
    #[serde(default)]
    at: String,
}

/// The URL from which a page gets its updates.
pub(super) fn build_live_url(page: &PageFrame) -> String {
    let (seen, stopped) = (page.seen.to_string(), page.stop.is_some().to_string());
    build_url("/live", &[("seen", &seen), ("stopped", &stopped), ("at", &page.path)])
}

pub(crate) async fn stream_live_updates(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    headers: HeaderMap,
    Query(query): Query<LiveQuery>,
) -> Result<impl IntoResponse, PageError> {
    let _permit = app.acquire_live_permit(&caller)?;
    let (revision, stop) = (app.revision.clone(), app.stop.clone());
    let watcher = LivePageWatcher { app, headers, query, _permit, revision, stop, last: NOTHING.to_owned() };
    let events = stream::unfold(watcher, |mut watcher| async move {
        let text = watcher.next().await?;
        Some((Ok::<_, Infallible>(Event::default().data(text)), watcher))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// The update stream of one open page.
struct LivePageWatcher {
    app: SharedAppState,
    /// The headers of the request, to check again whether the caller may still read.
    headers: HeaderMap,
    query: LiveQuery,
    _permit: ConnectionPermit<String>,
    revision: watch::Receiver<LiveRevision>,
    stop: watch::Receiver<bool>,
    last: String,
}

impl LivePageWatcher {
    /// Waits for the next line that differs from the last one; `None` ends the stream.
    async fn next(&mut self) -> Option<String> {
        loop {
            if !self.app.can_still_read(&self.headers).unwrap_or(false) {
                return None;
            }
            // The revision may be half a second old. The stop file itself is read, because the page may be newer.
            let seq = self.revision.borrow_and_update().seq;
            let text = render_update_line(&self.query, seq, stop::is_stopped(self.app.views.root()));
            if text != self.last {
                self.last.clone_from(&text);
                return Some(text);
            }
            tokio::select! {
                changed = self.revision.changed() => changed.ok()?,
                _ = self.stop.wait_for(|stop| *stop) => return None,
                () = tokio::time::sleep(LIVE_RECHECK_INTERVAL) => {}
            }
        }
    }
}

fn render_update_line(query: &LiveQuery, seq: u64, stopped: bool) -> String {
    let stop_change = match (query.stopped, stopped) {
        (false, true) => "The vault was stopped. ",
        (true, false) => "The vault runs again. ",
        (true, true) | (false, false) => "",
    };
    let news = match seq.saturating_sub(query.seen) {
        0 if stop_change.is_empty() => return NOTHING.to_owned(),
        0 => "Show".to_owned(),
        1 => "One new record: show it".to_owned(),
        n => format!("{n} new records: show them"),
    };
    // A local URL holds only visible ASCII. The characters that end an attribute or begin an entity are escaped.
    let at = keep_local_url(&query.at)
        .replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    format!("{stop_change}<a href=\"{at}\">{news}</a>")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(new: u64, shows_stopped: bool, stopped: bool) -> String {
        render_update_line(&LiveQuery { seen: 3, stopped: shows_stopped, at: "/fleet".into() }, 3 + new, stopped)
    }

    #[test]
    fn only_news_is_announced() {
        assert_eq!(line(0, false, false), NOTHING);
        assert_eq!(line(0, true, true), NOTHING);
        assert!(line(2, false, false).contains("2 new records"));
        assert!(line(0, false, true).starts_with("The vault was stopped. "));
        assert!(line(1, true, false).contains("runs again. <a"));
    }

    #[test]
    fn the_line_leads_to_the_page_and_never_out_of_its_attribute() {
        let line = |at: &str| render_update_line(&LiveQuery { seen: 0, stopped: false, at: at.into() }, 1, false);
        assert!(line("/search?q=a&k=b").starts_with("<a href=\"/search?q=a&amp;k=b\">"));
        assert!(line("/\"onclick=\"x").starts_with("<a href=\"/&quot;onclick=&quot;x\">"));
        for foreign in ["", "//evil.example", "javascript:x"] {
            assert!(line(foreign).starts_with("<a href=\"/\">"), "{foreign}");
        }
    }
}

//! `GET /live`: says on a page that is open that there is more to see than it shows.
//!
//! Nothing on the page moves by itself: what is being read or typed stays. Server-sent events, one line of HTML each. Whoever
//! logged out, or whose key was taken away, is told nothing more: the stream ends, and a browser that asks again is refused.

use super::PageError;
use super::PageFrame;
use super::build_url;
use super::form::keep_local_url;
use crate::access::AuthenticatedCaller;
use crate::access::connection_limit::ConnectionPermit;
use crate::http::app::{KNOWN_AGAIN, SharedAppState};
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

/// Takes back what was said: an event without data would not arrive.
const NOTHING: &str = "<!-- -->";
/// How often a line is sent that says nothing, so that nobody between takes the connection for dead: 20 s.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

#[derive(Deserialize)]
pub(crate) struct LiveQuery {
    /// How far the page has come.
    #[serde(default)]
    seen: u64,
    /// It shows a fleet that is stopped.
    #[serde(default)]
    stopped: bool,
    /// Where the page is, or the one that comes after it.
    #[serde(default)]
    at: String,
}

/// Where a page hears of what it does not show.
pub(super) fn build_live_url(page: &PageFrame) -> String {
    let (seen, stopped) = (page.seen.to_string(), page.stop.is_some().to_string());
    build_url("/live", &[("seen", &seen), ("stopped", &stopped), ("at", &page.path)])
}

pub(crate) async fn stream_live_updates(
    State(app): State<SharedAppState>,
    Extension(caller): Extension<AuthenticatedCaller>,
    headers: HeaderMap,
    Query(asked): Query<LiveQuery>,
) -> Result<impl IntoResponse, PageError> {
    let _seat = app.acquire_live_permit(&caller)?;
    let (beat, stop) = (app.beat.clone(), app.stop.clone());
    let watch = LivePageWatcher { app, headers, asked, _seat, beat, stop, last: NOTHING.to_owned() };
    let events = stream::unfold(watch, |mut watch| async move {
        let text = watch.next().await?;
        Some((Ok::<_, Infallible>(Event::default().data(text)), watch))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// One page that listens.
struct LivePageWatcher {
    app: SharedAppState,
    /// What was shown, which may be taken away.
    headers: HeaderMap,
    asked: LiveQuery,
    _seat: ConnectionPermit<String>,
    beat: watch::Receiver<LiveRevision>,
    stop: watch::Receiver<bool>,
    last: String,
}

impl LivePageWatcher {
    /// The next line that is another than the last; `None` when there will be none.
    async fn next(&mut self) -> Option<String> {
        loop {
            if !self.app.can_still_read(&self.headers).unwrap_or(false) {
                return None;
            }
            // The beat may be half a second old: a page that was drawn after a stop knows better.
            let seq = self.beat.borrow_and_update().seq;
            let text = render_update_line(&self.asked, seq, stop::is_stopped(&self.app.root));
            if text != self.last {
                self.last.clone_from(&text);
                return Some(text);
            }
            tokio::select! {
                changed = self.beat.changed() => changed.ok()?,
                _ = self.stop.wait_for(|stop| *stop) => return None,
                () = tokio::time::sleep(KNOWN_AGAIN) => {}
            }
        }
    }
}

fn render_update_line(asked: &LiveQuery, seq: u64, stopped: bool) -> String {
    let brake = match (asked.stopped, stopped) {
        (false, true) => "The fleet was stopped. ",
        (true, false) => "The fleet runs again. ",
        (true, true) | (false, false) => "",
    };
    let news = match seq.saturating_sub(asked.seen) {
        0 if brake.is_empty() => return NOTHING.to_owned(),
        0 => "Show".to_owned(),
        1 => "One new record: show it".to_owned(),
        n => format!("{n} new records: show them"),
    };
    // A page of ours is letters, digits and marks; of these the ones that end an attribute or begin an entity are HTML too.
    let at = keep_local_url(&asked.at)
        .replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    format!("{brake}<a href=\"{at}\">{news}</a>")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(new: u64, shows_stopped: bool, stopped: bool) -> String {
        render_update_line(&LiveQuery { seen: 3, stopped: shows_stopped, at: "/fleet".into() }, 3 + new, stopped)
    }

    #[test]
    fn what_is_new_is_said_and_what_is_not_is_not() {
        assert_eq!(said(0, false, false), NOTHING);
        assert_eq!(said(0, true, true), NOTHING);
        assert!(said(2, false, false).contains("2 new records"));
        assert!(said(0, false, true).starts_with("The fleet was stopped. "));
        assert!(said(1, true, false).contains("runs again. <a"));
    }

    #[test]
    fn the_line_leads_to_the_page_and_never_out_of_its_attribute() {
        let led = |at: &str| render_update_line(&LiveQuery { seen: 0, stopped: false, at: at.into() }, 1, false);
        assert!(led("/search?q=a&k=b").starts_with("<a href=\"/search?q=a&amp;k=b\">"));
        assert!(led("/\"onclick=\"x").starts_with("<a href=\"/&quot;onclick=&quot;x\">"));
        for theirs in ["", "//evil.example", "javascript:x"] {
            assert!(led(theirs).starts_with("<a href=\"/\">"), "{theirs}");
        }
    }
}

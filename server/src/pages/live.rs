//! `GET /live`: says on a page that is open that there is more to see than it shows.
//!
//! Nothing on the page moves by itself: what is being read or typed stays. Server-sent events, one line of HTML each.

use super::Oops;
use crate::app::Shared;
use axum::extract::{Query, State};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream;
use serde::Deserialize;
use std::convert::Infallible;
use std::time::Duration;
use steward_vault::brake;

/// Takes back what was said: an event without data would not arrive.
const NOTHING: &str = "<!-- -->";
/// How often a line is sent that says nothing, so that nobody between takes the connection for dead: 20 s.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

#[derive(Deserialize)]
pub(crate) struct Asked {
    /// How far the page has come.
    #[serde(default)]
    seen: u64,
    /// It shows a fleet that is stopped.
    #[serde(default)]
    stopped: bool,
}

pub(crate) async fn stream(State(app): State<Shared>, Query(asked): Query<Asked>) -> Result<impl IntoResponse, Oops> {
    let (beat, stop, root) = (app.beat.clone(), app.stop.clone(), app.root.clone());
    let events = stream::unfold((beat, stop, String::new()), move |(mut beat, mut stop, mut last)| {
        let (seen, stopped, root) = (asked.seen, asked.stopped, root.clone());
        async move {
            loop {
                // The beat may be half a second old: a page that was drawn after a stop knows better.
                let new = beat.borrow_and_update().seq.saturating_sub(seen);
                let text = line(new, stopped, brake::is_stopped(&root));
                if text != last {
                    last.clone_from(&text);
                    let event = Event::default().data(text);
                    return Some((Ok::<_, Infallible>(event), (beat, stop, last)));
                }
                tokio::select! {
                    changed = beat.changed() => if changed.is_err() { return None },
                    _ = stop.wait_for(|stop| *stop) => return None,
                }
            }
        }
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

fn line(new: u64, shows_stopped: bool, stopped: bool) -> String {
    let brake = match (shows_stopped, stopped) {
        (false, true) => "The fleet was stopped. ",
        (true, false) => "The fleet runs again. ",
        (true, true) | (false, false) => "",
    };
    let news = match new {
        0 if brake.is_empty() => return NOTHING.to_owned(),
        0 => "Show".to_owned(),
        1 => "One new record: show it".to_owned(),
        n => format!("{n} new records: show them"),
    };
    format!("{brake}<a href=\"\">{news}</a>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_is_said_and_what_is_not_is_not() {
        assert_eq!(line(0, false, false), NOTHING);
        assert_eq!(line(0, true, true), NOTHING);
        assert!(line(2, false, false).contains("2 new records"));
        assert!(line(0, false, true).starts_with("The fleet was stopped. "));
        assert!(line(1, true, false).contains("runs again. <a"));
    }
}

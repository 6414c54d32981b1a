//! One signal as every face explains it: where it came from, why it stands where it does, what would change that.
//!
//! Read from its file and from that of its event. Nearly all of it is a stranger's.

mod orphan;

use serde::Serialize;
use steward_domain::frontmatter::{self, FrontmatterError};
use steward_domain::path::RecordPath;
use steward_domain::record::{Effect, RecordError};
use steward_domain::signal::{Signal, SignalStatus};
use steward_domain::stream::StreamEvent;
use steward_domain::time::stamp;
use steward_vault::root::{Root, RootError};

/// A signal and where it lies.
#[derive(Serialize)]
pub struct Filed {
    pub path: RecordPath,
    #[serde(flatten)]
    pub signal: Signal,
}

/// Why a signal stands where it does.
#[derive(Serialize)]
pub struct Explained {
    #[serde(flatten)]
    pub filed: Filed,
    /// The event it was read from, if that is still there.
    pub event: Option<Event>,
    pub why: String,
    pub what_would_change_it: String,
}

/// What a signal was read from; not its text.
#[derive(Serialize)]
pub struct Event {
    pub path: RecordPath,
    /// Untrusted.
    pub source: String,
    /// Untrusted.
    pub author: Option<String>,
    /// Untrusted.
    pub subject: Option<String>,
    pub received_at: String,
    pub status: &'static str,
}

/// Why a signal cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum SignalError {
    #[error(transparent)]
    Root(#[from] RootError),
    #[error("failed to read {path}: {source}")]
    Form { path: RecordPath, source: FrontmatterError },
    #[error("failed to understand {path}: {source}")]
    Record { path: RecordPath, source: RecordError },
}

/// Reads a signal.
///
/// # Errors
/// [`SignalError`] when it is not there or cannot be understood.
pub fn read(root: &Root, path: RecordPath) -> Result<Filed, SignalError> {
    let file = root.read(&path)?;
    let document = frontmatter::read(&file.bytes).map_err(|source| SignalError::Form { path: path.clone(), source })?;
    let signal =
        Signal::read(document.fields()).map_err(|source| SignalError::Record { path: path.clone(), source })?;
    Ok(Filed { path, signal })
}

/// The same with what is known around it.
#[must_use]
pub fn explain(root: &Root, filed: Filed) -> Explained {
    let event = filed.signal.source_event.as_ref().and_then(|path| event(root, path));
    let waits = filed.signal.status == SignalStatus::Unrouted && filed.signal.effect == Effect::Mutation;
    let orphaned = filed.signal.target.as_ref().filter(|_| waits).and_then(|path| orphan::missing_steward(root, path));
    let why = why(&filed.signal);
    let what_would_change_it = orphaned.unwrap_or_else(|| what_would_change(&filed.signal));
    Explained { filed, event, why, what_would_change_it }
}

fn event(root: &Root, path: &RecordPath) -> Option<Event> {
    let file = root.read(path).ok()?;
    let document = frontmatter::read(&file.bytes).ok()?;
    let event = StreamEvent::read(document.fields(), document.body()).ok()?;
    Some(Event {
        path: path.clone(),
        source: event.pattern,
        author: event.author,
        subject: event.subject,
        received_at: stamp(event.received_at),
        status: event.status.word(),
    })
}

fn why(signal: &Signal) -> String {
    let reason = signal.reason.clone();
    match signal.status {
        SignalStatus::Unrouted => reason.unwrap_or_else(|| "nobody has acted upon it yet".to_owned()),
        SignalStatus::Applied => reason.unwrap_or_else(|| "it was acted upon".to_owned()),
        SignalStatus::Skipped | SignalStatus::Pending | SignalStatus::ActionPending => {
            reason.unwrap_or_else(|| "no reason is written down".to_owned())
        }
    }
}

fn what_would_change(signal: &Signal) -> String {
    let text = match (signal.status, &signal.target, signal.effect) {
        (SignalStatus::Applied, _, _) => "take the action back with `steward undo` (see `steward audit list`)",
        (_, None, _) => "write `target_path` with one of the candidates, and `status: unrouted`",
        (_, Some(_), Effect::None) => "nothing: it states no change; edit the record by hand if it should change",
        (_, Some(_), Effect::Action) => "do what it asks, then set `status: applied`",
        (SignalStatus::Unrouted, Some(_), Effect::Mutation) => {
            "its matter's steward judges it at its next look: `steward tick <matter> --wait` asks at once"
        }
        (SignalStatus::Pending, Some(_), Effect::Mutation) => {
            "confirm what it led to with `steward confirm`, or let the stewards act (`STEWARD_LIVE_MODE`)"
        }
        (SignalStatus::Skipped | SignalStatus::ActionPending, Some(_), Effect::Mutation) => {
            "mend what the reason names, and set `status: unrouted`"
        }
    };
    text.to_owned()
}

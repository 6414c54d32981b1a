//! One signal as every face explains it: where it came from, why it stands where it does, what would change that.
//!
//! Read from its file, its event's and its target's, and from what the router last made of it. Nearly all of it is a
//! stranger's.

mod orphan;

use serde::Serialize;
use steward_domain::frontmatter::{self, FrontmatterError};
use steward_domain::mutation::Mutation;
use steward_domain::path::{RecordKind, RecordPath};
use steward_domain::record::{Effect, Matter, RecordError, Task};
use steward_domain::route::{RouteSkip, Target, explain_misfit};
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
    /// Why what it proposes may not be written; `None` where it may, or where it proposes nothing.
    #[serde(skip)]
    pub refused: Option<String>,
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
    let proposal = document.fields().get("mutation_proposal").filter(|proposal| !proposal.is_null());
    let refused = proposal.and_then(|proposal| Mutation::read(proposal).err()).map(|e| e.to_string());
    Ok(Filed { path, signal, refused })
}

/// The same with what is known around it; `stored` is what the router last made of it.
#[must_use]
pub fn explain(root: &Root, filed: Filed, stored: Option<&str>) -> Explained {
    let signal = &filed.signal;
    let event = signal.source_event.as_ref().and_then(|path| event(root, path));
    let (why, holds) = why(signal, misfit(root, &filed), stored);
    let waits = signal.status == SignalStatus::Unrouted && signal.effect == Effect::Mutation;
    let orphaned = signal.target.as_ref().filter(|_| waits).and_then(|path| orphan::missing_steward(root, path));
    let would_change = match holds {
        Holds::Nothing => orphaned.unwrap_or_else(|| what_would_change(signal).into()),
        Holds::Question => "answer the question that the reason names, or edit the record".into(),
        Holds::Action => "answer the action that the reason names (see `steward audit show`)".into(),
        Holds::Target => {
            "nothing while the record stands so; `steward why <task>` says what was decided about it".into()
        }
        Holds::Misfit => "correct what the reason names, and set `status: unrouted`".into(),
    };
    Explained { filed, event, why, what_would_change_it: would_change }
}

/// What keeps a signal where it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// No more than its own status says.
    Nothing,
    Question,
    Action,
    /// Its target is closed, or says so already.
    Target,
    Misfit,
}

/// What in its file or its target's keeps a signal that nobody has acted upon from being acted upon.
fn misfit(root: &Root, filed: &Filed) -> Option<String> {
    let signal = &filed.signal;
    if let (Some(refused), Effect::Mutation) = (&filed.refused, signal.effect) {
        return Some(format!("{}: {refused}", RouteSkip::NoProposal.word()));
    }
    let path = signal.target.clone().filter(|path| matches!(path.kind(), RecordKind::Task | RecordKind::Matter));
    let target = match path.filter(|_| signal.effect == Effect::Mutation).map(|path| target(root, path)).transpose() {
        Ok(target) => target.flatten(),
        Err(reason) => return Some(format!("unreadable: {reason}")),
    };
    explain_misfit(signal, target.as_ref())
}

fn target(root: &Root, path: RecordPath) -> Result<Option<Target>, String> {
    if !root.exists(&path) {
        return Ok(None);
    }
    let content = root.read(&path).map_err(|e| e.to_string())?;
    let document = frontmatter::read(&content.bytes).map_err(|e| format!("{path}: failed to {e}"))?;
    let state = match path.kind() {
        RecordKind::Matter => Matter::read(document.fields()).map(|matter| matter.state),
        _ => Task::read(document.fields()).map(|task| task.state),
    };
    let state = state.map_err(|e| format!("{path}: {e}"))?;
    let (hash, fields) = (content.hash, document.into_fields());
    Ok(Some(Target { path, state, snoozed_until: None, has_twin: false, hash, fields }))
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

/// What its file says comes first; then what was done about it, what the files say now, and why the router left it.
fn why(signal: &Signal, misfit: Option<String>, stored: Option<&str>) -> (String, Holds) {
    let reason = signal.reason.clone();
    let held = |reason: &str| {
        if reason.starts_with("withheld:") {
            return Holds::Question;
        }
        let acted = ["live:", "pending:", "shadow:", "claimed:"].iter().any(|word| reason.starts_with(word));
        if acted { Holds::Action } else { Holds::Nothing }
    };
    match (signal.status, reason, misfit) {
        (SignalStatus::Unrouted | SignalStatus::Skipped, Some(reason), Some(misfit)) if misfit.starts_with(&reason) => {
            (misfit, Holds::Misfit)
        }
        (_, Some(reason), _) => {
            let holds = if reason.starts_with("withheld:") { Holds::Question } else { Holds::Nothing };
            (reason, holds)
        }
        (SignalStatus::Applied, None, _) => ("it was acted upon".to_owned(), Holds::Nothing),
        (SignalStatus::Unrouted, None, misfit) => match (stored, misfit) {
            (Some(stored), _) if held(stored) != Holds::Nothing => (stored.to_owned(), held(stored)),
            (_, Some(misfit)) => {
                let is_settled = ["target_closed:", "already_so:"].iter().any(|word| misfit.starts_with(word));
                (misfit, if is_settled { Holds::Target } else { Holds::Misfit })
            }
            (Some(stored), None) => (stored.to_owned(), Holds::Nothing),
            (None, None) => ("nobody has acted upon it yet".to_owned(), Holds::Nothing),
        },
        (SignalStatus::Skipped | SignalStatus::Pending | SignalStatus::ActionPending, None, _) => {
            (stored.unwrap_or("no reason is written down").to_owned(), Holds::Nothing)
        }
    }
}

fn what_would_change(signal: &Signal) -> &'static str {
    match (signal.status, &signal.target, signal.effect) {
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
    }
}

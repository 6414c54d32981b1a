//! One signal as every interface explains it: its source, the reason of its status, and what would change that.
//!
//! The values come from the files of the signal, its event and its target, and from the index. Nearly all of them are
//! untrusted.

mod explanation;
mod orphan;

pub use self::explanation::SignalHistory;

use self::explanation::ReasonAndAdvice;

use serde::Serialize;
use steward_domain::action::mutation::Mutation;
use steward_domain::record::entity::{Matter, RecordFaults, SignalEffect, Task};
use steward_domain::record::frontmatter::{self, FrontmatterError};
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::record::schema::NoteSchema;
use steward_domain::signals::route::{RouteSkip, RouteTarget, explain_misfit};
use steward_domain::signals::signal::Signal;
use steward_domain::signals::stream::StreamEvent;
use steward_domain::time::format_millis;
use steward_vault::files::root::{VaultRoot, VaultRootError};

/// A signal with its path.
#[derive(Serialize)]
pub struct SignalFile {
    pub path: RecordPath,
    #[serde(flatten)]
    pub signal: Signal,
    /// Why its proposal is invalid; `None` if it is valid, or if there is no proposal.
    #[serde(skip)]
    pub refused: Option<String>,
}

/// Why a signal has its status, and what would change that.
#[derive(Serialize)]
pub struct SignalExplanation {
    #[serde(flatten)]
    pub filed: SignalFile,
    /// The event from which it was read, if that still exists.
    pub event: Option<SignalSourceEvent>,
    pub why: String,
    pub what_would_change_it: String,
}

/// The event from which a signal was read, without its text.
#[derive(Serialize)]
pub struct SignalSourceEvent {
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

/// Why a signal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SignalReadError {
    #[error(transparent)]
    Root(#[from] VaultRootError),
    #[error("failed to read {path}: {source}")]
    Form { path: RecordPath, source: FrontmatterError },
    #[error("invalid signal in {path}: {source}")]
    Record { path: RecordPath, source: RecordFaults },
}

/// Reads a signal.
///
/// # Errors
/// [`SignalReadError`] when it does not exist or is invalid.
pub fn read_signal(root: &VaultRoot, path: RecordPath) -> Result<SignalFile, SignalReadError> {
    let file = root.read_file(&path)?;
    let document = frontmatter::read_document(&file.bytes)
        .map_err(|source| SignalReadError::Form { path: path.clone(), source })?;
    let signal =
        Signal::read(document.fields()).map_err(|source| SignalReadError::Record { path: path.clone(), source })?;
    let proposal = document.fields().get("mutation_proposal").filter(|proposal| !proposal.is_null());
    let refused = proposal.and_then(|proposal| Mutation::from_proposal(proposal).err()).map(|e| e.to_string());
    Ok(SignalFile { path, signal, refused })
}

/// Explains a signal by its files and its history in the index.
#[must_use]
pub fn explain_signal(
    root: &VaultRoot,
    schema: &NoteSchema,
    mut filed: SignalFile,
    history: &SignalHistory,
) -> SignalExplanation {
    filed.signal.target = history.target.clone().or(filed.signal.target);
    let event = filed.signal.source_event.as_ref().and_then(|path| read_event(root, path));
    let ReasonAndAdvice { why, advice } = explanation::explain_status(root, schema, &filed, history);
    SignalExplanation { filed, event, why, what_would_change_it: advice }
}

/// Finds what in the file of a signal, or of its target, prevents the signal from being applied.
fn find_misfit(root: &VaultRoot, schema: &NoteSchema, filed: &SignalFile) -> Option<String> {
    let signal = &filed.signal;
    if signal.effect != SignalEffect::Mutation {
        return None;
    }
    if let Some(refused) = &filed.refused {
        return Some(format!("{}: {refused}", RouteSkip::NoProposal.as_str()));
    }
    let path = signal.target.clone().filter(|path| schema.allows_place(signal.target_kind, path));
    let target = match path.map(|path| read_target(root, schema, path, signal)).transpose() {
        Ok(target) => target.flatten(),
        Err(reason) => return Some(format!("unreadable: {reason}")),
    };
    explain_misfit(signal, target.as_ref())
}

fn read_target(
    root: &VaultRoot,
    schema: &NoteSchema,
    path: RecordPath,
    signal: &Signal,
) -> Result<Option<RouteTarget>, String> {
    let kind = signal.target_kind;
    if !root.exists(&path) {
        return Ok(None);
    }
    let content = root.read_file(&path).map_err(|e| e.to_string())?;
    let document = frontmatter::read_document(&content.bytes).map_err(|e| format!("{path}: failed to {e}"))?;
    let fields = schema.read_note(kind, &path, document.fields()).fields;
    let read = match kind {
        RecordKind::Matter => Matter::read(&fields).map(|matter| (matter.state, None)),
        _ => Task::read(&fields).map(|task| (task.state, Some(task.parent_matter))),
    };
    let (state, parent) = read.map_err(|e| format!("{path}: {e}"))?;
    let (hash, snoozed_until, has_twin) = (content.hash, None, false);
    let can_write = |mutation| schema.can_write_into(kind, mutation, document.fields());
    let is_writable = signal.proposal.as_ref().is_none_or(can_write);
    Ok(Some(RouteTarget { path, kind, parent, state, snoozed_until, has_twin, hash, fields, is_writable }))
}

fn read_event(root: &VaultRoot, path: &RecordPath) -> Option<SignalSourceEvent> {
    let file = root.read_file(path).ok()?;
    let document = frontmatter::read_document(&file.bytes).ok()?;
    let event = StreamEvent::read(document.fields(), document.body()).ok()?;
    Some(SignalSourceEvent {
        path: path.clone(),
        source: event.pattern,
        author: event.author,
        subject: event.subject,
        received_at: format_millis(event.received_at),
        status: event.status.as_str(),
    })
}

//! `steward replay`: checks whether this build takes the path of recorded workflow histories.
//!
//! It reads histories as the Temporal CLI prints them, and replays each against the workflows of this build (S3-57). It
//! must not call a server, run an activity or write a file. It compares the order, kinds and names of the steps. The
//! SDK's replayer does not compare their arguments, timeouts and durations. The caller prints the outcomes as text or
//! JSON.

use prost::Message;
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use steward_workflows::ExtractWorkflow;
use steward_workflows::PurgeWorkflow;
use steward_workflows::ResolveBatchWorkflow;
use steward_workflows::ResolveWorkflow;
use steward_workflows::ReversalCalibrationWorkflow;
use steward_workflows::ReversibilityDrillWorkflow;
use steward_workflows::RouterWorkflow;
use steward_workflows::SetCeilingWorkflow;
use steward_workflows::StewardWorkflow;
use steward_workflows::TrackerWorkflow;
use temporalio_protos::temporal::api::history::v1::{History, HistoryEvent, history_event::Attributes};
use temporalio_sdk::workflow_replayer::{
    WorkflowReplayError, WorkflowReplayFailure, WorkflowReplayer, WorkflowReplayerOptions,
};
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;

#[cfg(test)]
mod tests;

/// The protocol's descriptors. They are needed because the SDK's own JSON reader rejects the output of the CLI.
static DESCRIPTORS: LazyLock<Result<DescriptorPool, String>> = LazyLock::new(|| {
    let bytes: &[u8] = include_bytes!(env!("TEMPORAL_DESCRIPTORS"));
    DescriptorPool::decode(bytes).map_err(|e| e.to_string())
});

/// One history and the outcome of its replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ReplayedHistory {
    pub(crate) path: PathBuf,
    /// `None` if the file cannot be read.
    pub(crate) workflow_type: Option<String>,
    pub(crate) events: usize,
    pub(crate) outcome: ReplayOutcome,
}

/// How a replay ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum ReplayOutcome {
    /// This build takes the recorded path.
    Ok,
    /// This build takes another path; an open run would get stuck.
    Nondeterminism {
        message: String,
        /// The first recorded event that does not fit, if the replayer names one.
        event_id: Option<i64>,
    },
    /// This build cannot replay the history at all: it panics, or cannot read the argument.
    Failed { message: String },
    /// This build has no workflow of that type.
    UnknownWorkflow,
    /// The file is not a history.
    Unreadable { message: String },
}

impl ReplayedHistory {
    /// Whether this build takes the recorded path.
    #[must_use]
    pub(crate) fn is_ok(&self) -> bool {
        self.outcome == ReplayOutcome::Ok
    }
}

impl fmt::Display for ReplayedHistory {
    /// One line: the file, the outcome and the fix.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let workflow = self.workflow_type.as_deref().unwrap_or("no workflow");
        write!(f, "{}: {workflow}, {} events: ", self.path.display(), self.events)?;
        match &self.outcome {
            ReplayOutcome::Ok => f.write_str("ok"),
            ReplayOutcome::Nondeterminism { message, event_id } => {
                f.write_str("this build would take another path")?;
                if let Some(id) = event_id {
                    write!(f, " at event {id}")?;
                }
                write!(f, ": guard the change with ctx.patched(..) or restore the old step ({message})")
            }
            ReplayOutcome::Failed { message } => write!(
                f,
                "this build fails on it: make it accept the recorded arguments too, and fix the panic ({message})"
            ),
            ReplayOutcome::UnknownWorkflow => {
                f.write_str("this build has no workflow of that type: restore it under its old name")
            }
            ReplayOutcome::Unreadable { message } => {
                write!(f, "not a history: {message}; write one with `temporal workflow show -w <workflow id> -o json`")
            }
        }
    }
}

/// Replays every history in the given order; a failure of one does not stop the others.
///
/// The future is not `Send`: await it on the main task.
pub(crate) async fn replay_histories(paths: &[PathBuf]) -> Vec<ReplayedHistory> {
    let options = WorkflowReplayerOptions::new()
        .register_workflow::<StewardWorkflow>()
        .and_then(|o| o.register_workflow::<ResolveWorkflow>())
        .and_then(|o| o.register_workflow::<ResolveBatchWorkflow>())
        .and_then(|o| o.register_workflow::<RouterWorkflow>())
        .and_then(|o| o.register_workflow::<PurgeWorkflow>())
        .and_then(|o| o.register_workflow::<ReversalCalibrationWorkflow>())
        .and_then(|o| o.register_workflow::<ReversibilityDrillWorkflow>())
        .and_then(|o| o.register_workflow::<SetCeilingWorkflow>())
        .and_then(|o| o.register_workflow::<ExtractWorkflow>())
        .and_then(|o| o.register_workflow::<TrackerWorkflow>())
        .map(|o| o.build())
        .map_err(|e| e.to_string());
    let mut all = Vec::new();
    for path in paths {
        all.push(match &options {
            Ok(options) => replay_file(options, path).await,
            Err(message) => ReplayedHistory {
                path: path.clone(),
                workflow_type: None,
                events: 0,
                outcome: ReplayOutcome::Failed { message: message.clone() },
            },
        });
    }
    all
}

async fn replay_file(options: &WorkflowReplayerOptions, path: &Path) -> ReplayedHistory {
    let history = tokio::fs::read_to_string(path).await.map_err(|e| e.to_string()).and_then(|text| read_history(&text));
    let history = match history {
        Ok(history) => history,
        Err(message) => {
            let outcome = ReplayOutcome::Unreadable { message };
            return ReplayedHistory { path: path.to_owned(), workflow_type: None, events: 0, outcome };
        }
    };
    let events = history.events.len();
    let workflow_type = read_workflow_type(&history);
    let known = workflow_type.as_ref().is_some_and(|name| {
        options.workflows().workflow_definitions().any(|definition| definition.workflow_type == *name)
    });
    let outcome = match &workflow_type {
        None => ReplayOutcome::Unreadable { message: "its first event is not WorkflowExecutionStarted".into() },
        Some(_) if !known => ReplayOutcome::UnknownWorkflow,
        Some(_) => check_history(options, history).await,
    };
    ReplayedHistory { path: path.to_owned(), workflow_type, events, outcome }
}

/// Replays one history. The SDK's log is off: its result holds the same message.
async fn check_history(options: &WorkflowReplayerOptions, history: History) -> ReplayOutcome {
    let replayer = match WorkflowReplayer::new(options.clone()) {
        Ok(replayer) => replayer,
        Err(e) => return ReplayOutcome::Failed { message: e.to_string() },
    };
    let replay = replayer.replay_workflow(history.clone().into()).with_subscriber(NoSubscriber::new());
    match replay.await {
        Ok(()) => ReplayOutcome::Ok,
        Err(WorkflowReplayError::Replay(WorkflowReplayFailure::Nondeterminism { message })) => {
            let message = extract_core_message(&message);
            ReplayOutcome::Nondeterminism { event_id: find_event_id(&message, &history), message }
        }
        Err(WorkflowReplayError::Replay(WorkflowReplayFailure::InvalidHistory { message })) => {
            ReplayOutcome::Unreadable { message }
        }
        Err(e) => ReplayOutcome::Failed { message: extract_core_message(&e.to_string()) },
    }
}

/// Reads a history from the protobuf JSON that the Temporal CLI and Web UI write.
///
/// Fields that a newer server wrote are skipped.
///
/// # Errors
/// The text is not a history; the message names the place.
fn read_history(json: &str) -> Result<History, String> {
    let pool = DESCRIPTORS.as_ref().map_err(Clone::clone)?;
    let descriptor = pool
        .get_message_by_name("temporal.api.history.v1.History")
        .ok_or("this build's protocol descriptors lack the history")?;
    let mut reader = serde_json::Deserializer::from_str(json);
    let lenient = DeserializeOptions::new().deny_unknown_fields(false);
    let message = DynamicMessage::deserialize_with_options(descriptor, &mut reader, &lenient)
        .and_then(|message| reader.end().map(|()| message))
        .map_err(|e| e.to_string())?;
    let history = History::decode(message.encode_to_vec().as_slice()).map_err(|e| e.to_string())?;
    if history.events.is_empty() { Err("it has no events".into()) } else { Ok(history) }
}

fn read_workflow_type(history: &History) -> Option<String> {
    match history.events.first()?.attributes.as_ref()? {
        Attributes::WorkflowExecutionStartedEventAttributes(started) => {
            Some(started.workflow_type.as_ref()?.name.clone())
        }
        _ => None,
    }
}

/// The sentence inside the SDK's message, which is a whole failure in Rust's debug notation.
fn extract_core_message(message: &str) -> String {
    let inner = message.split_once("message: \"").and_then(|(_, rest)| rest.split_once("\", source: \""));
    inner.map_or(message, |(inner, _)| inner).to_owned()
}

/// The event that did not fit; the replayer names it only inside its message, if at all.
///
/// It never guesses: the type of a step points to an event only if exactly one event has it.
fn find_event_id(message: &str, history: &History) -> Option<i64> {
    if let Some(id) = parse_number_after(message, "HistoryEvent(id: ") {
        return Some(id);
    }
    if let Some(number) = parse_number_after(message, "LocalActivity(") {
        return history
            .events
            .iter()
            .find(|e| read_local_activity(e).is_some_and(|m| m.seq == number))
            .map(|e| e.event_id);
    }
    let (_, rest) = message.split_once("Activity type of ")?;
    let name = rest.split('\'').nth(1)?;
    let mut named = history.events.iter().filter(|e| read_step_type(e).is_some_and(|found| found == name));
    let first = named.next()?;
    if named.next().is_none() { Some(first.event_id) } else { None }
}

fn parse_number_after(message: &str, words: &str) -> Option<i64> {
    let (_, rest) = message.split_once(words)?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The part of the SDK's record of a local activity that is needed here.
#[derive(Deserialize)]
struct LocalActivityMarker {
    seq: i64,
    activity_type: String,
}

fn read_local_activity(event: &HistoryEvent) -> Option<LocalActivityMarker> {
    let Some(Attributes::MarkerRecordedEventAttributes(marker)) = &event.attributes else { return None };
    serde_json::from_slice(&marker.details.get("data")?.payloads.first()?.data).ok()
}

fn read_step_type(event: &HistoryEvent) -> Option<String> {
    match &event.attributes {
        Some(Attributes::ActivityTaskScheduledEventAttributes(task)) => Some(task.activity_type.as_ref()?.name.clone()),
        _ => read_local_activity(event).map(|m| m.activity_type),
    }
}

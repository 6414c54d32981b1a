//! Replays one recorded history against the workflows of this build (S3-57).
//!
//! The SDK's replayer compares the order, kinds and names of the steps. It does not compare arguments, which
//! [`super::payloads`] reads, nor timeouts and durations, which nothing compares. No activity runs.

use super::history::{
    find_task_queue, find_workflow_type, format_event_type, has_completed_task, read_activity_name,
    read_local_activity, set_activity_name,
};
use super::payloads::{PayloadTypes, UnreadablePayload};
use serde::Serialize;
use std::fmt;
use steward_workflows::registry::{WorkflowVisitor, visit_workflows};
use temporalio_common::WorkflowDefinition;
use temporalio_protos::temporal::api::history::v1::{History, HistoryEvent};
use temporalio_sdk::WorkflowRegistrationError;
use temporalio_sdk::workflow_replayer::{
    WorkflowReplayError, WorkflowReplayFailure, WorkflowReplayer, WorkflowReplayerOptions,
};
use temporalio_workflow::workflows::WorkflowImplementation;
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;

#[cfg(test)]
mod tests;

/// The name of an activity that no build has.
const UNASKED: &str = "(no such activity)";

/// What this build would do with a recorded run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum ReplayOutcome {
    /// This build takes the recorded path and reads what was recorded.
    Safe,
    /// This build takes another path; an open run would get stuck.
    Breaks {
        /// The first recorded event that does not fit, if the replayer names one.
        event_id: Option<i64>,
        /// The type of that event.
        event_type: Option<String>,
        /// The activity that was recorded there, if it is known.
        recorded: Option<String>,
        /// The activity that this build asks for instead, if it is known.
        asks: Option<String>,
        message: String,
    },
    /// This build cannot read an argument or a result that was recorded.
    Unreadable(UnreadablePayload),
    /// This build has no workflow of that type.
    UnknownType,
    /// This build cannot replay the history at all: it panics.
    Fails { message: String },
    /// It is not a whole history.
    NoHistory { message: String },
}

impl ReplayOutcome {
    /// Whether this build can continue the run.
    #[must_use]
    pub(crate) fn is_safe(&self) -> bool {
        *self == Self::Safe
    }
}

impl fmt::Display for ReplayOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Safe => f.write_str("safe"),
            Self::Breaks { event_id, event_type, recorded, asks, message } => {
                f.write_str("breaks")?;
                if let Some(id) = event_id {
                    write!(f, " at event {id}")?;
                }
                if let Some(event_type) = event_type {
                    write!(f, " ({event_type})")?;
                }
                match (recorded, asks) {
                    (Some(recorded), Some(asks)) => write!(f, ": recorded {recorded}, this build asks {asks}"),
                    (Some(recorded), None) => write!(f, ": recorded {recorded}; {message}"),
                    _ => write!(f, ": {message}"),
                }
            }
            Self::Unreadable(payload) => write!(
                f,
                "{} of {} no longer reads at event {}: {}",
                payload.role, payload.owner, payload.event_id, payload.reason
            ),
            Self::UnknownType => f.write_str("unknown type: this build has no such workflow"),
            Self::Fails { message } => write!(f, "fails: {message}"),
            Self::NoHistory { message } => {
                write!(f, "not a history: {message}; write one with `temporal workflow show -w <workflow id> -o json`")
            }
        }
    }
}

/// Replays histories against the workflows and types of one build.
pub(crate) struct HistoryReplayer {
    options: WorkflowReplayerOptions,
    types: PayloadTypes,
}

/// Registers workflows for replay.
struct ReplayRegistration(WorkflowReplayerOptions);

impl WorkflowVisitor for ReplayRegistration {
    type Error = WorkflowRegistrationError;

    fn visit_workflow<W>(&mut self) -> Result<(), WorkflowRegistrationError>
    where
        W: WorkflowImplementation,
        <W::Run as WorkflowDefinition>::Input: Send,
    {
        self.0.register_workflow::<W>().map(drop)
    }
}

impl HistoryReplayer {
    /// A replayer for this build.
    ///
    /// # Errors
    /// Two workflows have one name, which a test would notice.
    pub(crate) fn of_this_build() -> anyhow::Result<Self> {
        let mut registration = ReplayRegistration(WorkflowReplayerOptions::new().build());
        visit_workflows(&mut registration)?;
        Ok(Self { options: registration.0, types: PayloadTypes::of_this_build() })
    }

    /// Judges one history.
    ///
    /// The future is not `Send`: await it on a thread of its own or on the main task.
    pub(crate) async fn replay_history(&self, history: &History) -> ReplayOutcome {
        let Some(workflow_type) = find_workflow_type(history) else {
            return ReplayOutcome::NoHistory { message: "its first event is not WorkflowExecutionStarted".into() };
        };
        let known = self.options.workflows();
        if !known.workflow_definitions().any(|definition| definition.workflow_type == workflow_type) {
            return ReplayOutcome::UnknownType;
        }
        if has_completed_task(history) {
            match self.replay_steps(history).await {
                ReplayOutcome::Safe => {}
                // What no longer reads is the cause, and has an event.
                fails @ ReplayOutcome::Fails { .. } => {
                    return self.types.find_unreadable(history).map_or(fails, ReplayOutcome::Unreadable);
                }
                outcome => return outcome,
            }
        }
        self.types.find_unreadable(history).map_or(ReplayOutcome::Safe, ReplayOutcome::Unreadable)
    }

    /// Replays the steps of one history. The SDK's log is off: its result holds the same message.
    async fn run_replayer(&self, history: &History) -> Result<(), WorkflowReplayError> {
        let mut options = self.options.clone();
        // A tenant's workflow takes other steps, and its queue says that it is one.
        if let Some(queue) = find_task_queue(history) {
            queue.clone_into(&mut options.task_queue);
        }
        let replayer = WorkflowReplayer::new(options)?;
        replayer.replay_workflow(history.clone().into()).with_subscriber(NoSubscriber::new()).await
    }

    async fn replay_steps(&self, history: &History) -> ReplayOutcome {
        match self.run_replayer(history).await {
            Ok(()) => ReplayOutcome::Safe,
            Err(WorkflowReplayError::Replay(WorkflowReplayFailure::Nondeterminism { message })) => {
                let message = extract_core_message(&message);
                let event = self.find_broken_event(&message, history).await;
                describe_break(message, event)
            }
            Err(WorkflowReplayError::Replay(WorkflowReplayFailure::InvalidHistory { message })) => {
                ReplayOutcome::NoHistory { message }
            }
            Err(e) => ReplayOutcome::Fails { message: extract_core_message(&e.to_string()) },
        }
    }
}

impl HistoryReplayer {
    /// Finds the event that did not fit, from the replayer's message.
    async fn find_broken_event<'h>(&self, message: &str, history: &'h History) -> Option<&'h HistoryEvent> {
        let mut events = history.events.iter();
        if let Some(id) = parse_number_after(message, "HistoryEvent(id: ") {
            return events.find(|event| event.event_id == id);
        }
        if let Some(number) = parse_number_after(message, "LocalActivity(") {
            return events.find(|event| read_local_activity(event).is_some_and(|marker| marker.seq == number));
        }
        let (recorded, _) = parse_named_steps(message)?;
        let named: Vec<usize> = (0..history.events.len())
            .filter(|place| read_activity_name(&history.events[*place]).is_some_and(|name| name == recorded))
            .collect();
        // The message names no event. A step with a name that no build asks for is the first that does not fit, unless
        // the broken one comes before it. So the broken event is the last one of this name where that name is reported.
        let (mut first, mut end) = (0, named.len());
        while end.saturating_sub(first) > 1 {
            let middle = first.midpoint(end);
            let mut altered = history.clone();
            set_activity_name(&mut altered.events[named[middle]], UNASKED);
            match self.run_replayer(&altered).await {
                Err(e) if e.to_string().contains(UNASKED) => first = middle,
                _ => end = middle,
            }
        }
        named.get(first).and_then(|place| history.events.get(*place))
    }
}

/// The sentence inside the SDK's message, which is a whole failure in Rust's debug notation.
fn extract_core_message(message: &str) -> String {
    let inner = message.split_once("message: \"").and_then(|(_, rest)| rest.split_once("\", source: \""));
    inner.map_or(message, |(inner, _)| inner).to_owned()
}

/// Describes the event that did not fit and both steps. The replayer names them only inside its message, if at all.
fn describe_break(message: String, event: Option<&HistoryEvent>) -> ReplayOutcome {
    let (recorded, asks) = parse_named_steps(&message).unzip();
    ReplayOutcome::Breaks {
        event_id: event.map(|event| event.event_id),
        event_type: event.map(format_event_type),
        recorded: recorded.or_else(|| event.and_then(read_activity_name)),
        asks,
        message,
    }
}

/// The recorded step and the one asked for: `Activity type of … '<recorded>' does not match … '<asked>'`.
fn parse_named_steps(message: &str) -> Option<(String, String)> {
    let (_, rest) = message.split_once("Activity type of ")?;
    let mut quoted = rest.split('\'').skip(1).step_by(2).map(str::to_owned);
    quoted.next().zip(quoted.next())
}

fn parse_number_after(message: &str, words: &str) -> Option<i64> {
    let (_, rest) = message.split_once(words)?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

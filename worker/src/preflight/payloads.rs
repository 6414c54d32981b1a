//! Reads the recorded inputs and results of a history with the types of this build (S3-58).
//!
//! The SDK's replayer compares no arguments. So each recorded payload is decoded and encoded again here. It no longer
//! reads if decoding fails, or if this build would write another value. Payloads of activities that this build does not
//! have are left to the replay. This module must not call a server.

use super::history::read_local_activity;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use steward_workflows::registry::{ActivityVisitor, WorkflowVisitor, visit_activities, visit_workflows};
use temporalio_common::data_converters::{
    GenericPayloadConverter, PayloadConverter, SerializationContext, SerializationContextData, TemporalDeserializable,
    TemporalSerializable, WorkflowSerializationContext,
};
use temporalio_common::{ActivityDefinition, WorkflowDefinition};
use temporalio_protos::temporal::api::common::v1::{Payload, Payloads};
use temporalio_protos::temporal::api::enums::v1::EventType;
use temporalio_protos::temporal::api::history::v1::{History, history_event::Attributes};
use temporalio_workflow::workflows::WorkflowImplementation;

/// Whether a payload is an argument or a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(crate) enum PayloadRole {
    Argument,
    Result,
}

/// A recorded payload that this build no longer reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct UnreadablePayload {
    pub(crate) event_id: i64,
    pub(crate) role: PayloadRole,
    /// The workflow or activity to which it belongs.
    pub(crate) owner: String,
    /// What does not read, as `judged would be lost`.
    pub(crate) reason: String,
}

type PayloadCheck = fn(Vec<Payload>) -> Result<(), String>;

/// The checks of one workflow or activity.
#[derive(Clone, Copy)]
struct PayloadChecks {
    argument: PayloadCheck,
    result: PayloadCheck,
}

impl PayloadChecks {
    fn new<Input, Output>() -> Self
    where
        Input: TemporalDeserializable + TemporalSerializable + 'static,
        Output: TemporalDeserializable + TemporalSerializable + 'static,
    {
        Self { argument: check_payloads::<Input>, result: check_payloads::<Output> }
    }
}

/// The types of all workflows and activities, by name.
#[derive(Default)]
pub(crate) struct PayloadTypes {
    workflows: BTreeMap<String, PayloadChecks>,
    activities: BTreeMap<String, PayloadChecks>,
}

impl PayloadTypes {
    /// The types of this build.
    pub(crate) fn of_this_build() -> Self {
        let mut types = Self::default();
        let Ok(()) = visit_workflows(&mut types);
        visit_activities(&mut types);
        types
    }

    /// Finds the first payload of a history that this build no longer reads.
    pub(crate) fn find_unreadable(&self, history: &History) -> Option<UnreadablePayload> {
        let mut workflow = "";
        // Its argument was invalid, or it failed for another reason; no build continues it.
        let has_failed =
            history.events.last().is_some_and(|last| last.event_type() == EventType::WorkflowExecutionFailed);
        let mut scheduled: HashMap<i64, &str> = HashMap::new();
        for event in &history.events {
            let Some(attributes) = &event.attributes else { continue };
            let found = match attributes {
                Attributes::WorkflowExecutionStartedEventAttributes(started) => {
                    workflow = started.workflow_type.as_ref().map_or("", |each| &each.name);
                    let checked = Self::check(&self.workflows, workflow, PayloadRole::Argument, started.input.as_ref());
                    checked.filter(|_| !has_failed)
                }
                Attributes::WorkflowExecutionCompletedEventAttributes(completed) => {
                    Self::check(&self.workflows, workflow, PayloadRole::Result, completed.result.as_ref())
                }
                Attributes::ActivityTaskScheduledEventAttributes(task) => {
                    let name = task.activity_type.as_ref().map_or("", |each| &each.name);
                    scheduled.insert(event.event_id, name);
                    Self::check(&self.activities, name, PayloadRole::Argument, task.input.as_ref())
                }
                Attributes::ActivityTaskCompletedEventAttributes(completed) => {
                    let name = scheduled.get(&completed.scheduled_event_id).copied().unwrap_or_default();
                    Self::check(&self.activities, name, PayloadRole::Result, completed.result.as_ref())
                }
                Attributes::MarkerRecordedEventAttributes(marker) => match read_local_activity(event) {
                    // A failed local activity has no result.
                    Some(local) if marker.failure.is_none() => Self::check(
                        &self.activities,
                        &local.activity_type,
                        PayloadRole::Result,
                        marker.details.get("result"),
                    ),
                    _ => None,
                },
                _ => None,
            };
            if let Some((role, owner, reason)) = found {
                return Some(UnreadablePayload { event_id: event.event_id, role, owner, reason });
            }
        }
        None
    }

    fn check(
        types: &BTreeMap<String, PayloadChecks>,
        owner: &str,
        role: PayloadRole,
        payloads: Option<&Payloads>,
    ) -> Option<(PayloadRole, String, String)> {
        let checks = types.get(owner)?;
        let payloads = payloads.map(|each| each.payloads.clone()).unwrap_or_default();
        let check = match role {
            PayloadRole::Argument => checks.argument,
            PayloadRole::Result => checks.result,
        };
        check(payloads).err().map(|reason| (role, owner.to_owned(), reason))
    }
}

impl WorkflowVisitor for PayloadTypes {
    type Error = Infallible;

    fn visit_workflow<W>(&mut self) -> Result<(), Infallible>
    where
        W: WorkflowImplementation,
        <W::Run as WorkflowDefinition>::Input: Send,
    {
        let checks =
            PayloadChecks::new::<<W::Run as WorkflowDefinition>::Input, <W::Run as WorkflowDefinition>::Output>();
        self.workflows.insert(W::name().to_owned(), checks);
        Ok(())
    }
}

impl ActivityVisitor for PayloadTypes {
    fn visit_activity<A: ActivityDefinition>(&mut self, activity: A) {
        self.activities.insert(activity.name().to_owned(), PayloadChecks::new::<A::Input, A::Output>());
    }
}

/// Decodes and encodes payloads by a type.
fn check_payloads<T: TemporalDeserializable + TemporalSerializable + 'static>(
    payloads: Vec<Payload>,
) -> Result<(), String> {
    let (data, converter) =
        (SerializationContextData::Workflow(WorkflowSerializationContext::new()), PayloadConverter::default());
    let context = SerializationContext::new(&data, &converter);
    let decoded: T = converter.from_payloads(&context, payloads.clone()).map_err(|e| shorten_reason(&e.to_string()))?;
    // An invalid workflow argument decodes, and says why it is invalid when it is encoded.
    let written = converter.to_payloads(&context, &decoded).map_err(|e| shorten_reason(&e.to_string()))?;
    let nothing = Payload::default();
    for (place, recorded) in payloads.iter().enumerate() {
        let written = serde_json::from_slice(&written.get(place).unwrap_or(&nothing).data).unwrap_or(Value::Null);
        // What is not JSON is of another encoding, which the type has read.
        if let Ok(recorded) = serde_json::from_slice::<Value>(&recorded.data)
            && !(is_empty(&recorded) && is_empty(&written))
            && let Some(loss) = describe_loss(&recorded, &written)
        {
            return Err(loss);
        }
    }
    Ok(())
}

/// The first difference between a recorded value and what this build writes for it: `judged would be lost`.
fn describe_loss(recorded: &Value, written: &Value) -> Option<String> {
    let (path, loss) = find_loss(recorded, written)?;
    Some(if path.is_empty() { loss } else { format!("{} {loss}", path.join(".")) })
}

/// The path of the first difference, and the difference.
///
/// Empty values may come and go: a build may write them or leave them out. A field may have another name, if its value is
/// found again under that name: `serde(alias)`.
fn find_loss(recorded: &Value, written: &Value) -> Option<(Vec<String>, String)> {
    match (recorded, written) {
        (Value::Object(recorded), Value::Object(written)) => recorded.iter().find_map(|(name, value)| {
            let renamed = || written.iter().any(|(other, found)| !recorded.contains_key(other) && found == value);
            let (mut path, loss) = match written.get(name) {
                Some(written) => find_loss(value, written)?,
                None if is_empty(value) || renamed() => return None,
                None => (Vec::new(), "would be lost".to_owned()),
            };
            path.insert(0, name.clone());
            Some((path, loss))
        }),
        (Value::Array(recorded), Value::Array(written)) if recorded.len() == written.len() => {
            recorded.iter().zip(written).find_map(|(recorded, written)| find_loss(recorded, written))
        }
        (Value::Number(recorded), Value::Number(written)) if recorded.as_f64() == written.as_f64() => None,
        (recorded, written) if recorded == written => None,
        (recorded, written) => {
            let (before, after) = (name_kind(recorded), name_kind(written));
            let loss =
                if before == after { format!("would be another {before}") } else { format!("would be a {after}") };
            Some((Vec::new(), loss))
        }
    }
}

/// A value in a word: payloads may hold untrusted text, which belongs in no message.
fn name_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "truth value",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(all) => all.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// The reason without the SDK's wrapping and the place in the JSON text, which says nothing to a person.
fn shorten_reason(message: &str) -> String {
    let message = message.rsplit("error: ").next().unwrap_or(message);
    let message = message.split(" at line ").next().unwrap_or(message);
    match message.strip_prefix("missing field ") {
        Some(field) => format!("{} is missing", field.trim_matches('`')),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests;

//! Counts Steward's own metrics from the results of activities.
//!
//! [`super::activity`] calls this for every activity, so activities must not count anything themselves. An activity
//! that runs twice counts twice. These metrics are for monitoring; the ledger and the audit records are for accounting.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};
use std::time::Duration;
use steward_activities::steward::clerks::remote::KeyHealth;
use steward_domain::steward::clerk::{ClerkCallOutcome, ClerkReply};
use steward_domain::steward::guard::ReserveOutcome;
use steward_domain::steward::tick::MatterObservation;
use steward_workflows::activities::ApplyOutput;
use temporalio_sdk::interceptors::ExecuteActivityResult;

/// The upper bounds of the buckets for the clerk's latency, in seconds. A call ends within 90 s.
const LATENCY_BUCKETS: [f64; 12] = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 90.0];

/// The instruments of Steward's own metrics.
pub(super) struct ActivityMetrics {
    ticks: Counter<u64>,
    decisions: Counter<u64>,
    applies: Counter<u64>,
    clerk_calls: Counter<u64>,
    clerk_latency: Histogram<f64>,
    guard_refusals: Counter<u64>,
}

impl ActivityMetrics {
    pub(super) fn new(meter: &Meter) -> Self {
        let counter = |name: &'static str, unit: &'static str, description: &'static str| {
            meter.u64_counter(name).with_unit(unit).with_description(description).build()
        };
        Self {
            ticks: counter("steward.ticks", "{tick}", "Checks of a matter, by whether a clerk is needed"),
            decisions: counter("steward.decisions", "{decision}", "Decisions filed, by disposition"),
            applies: counter("steward.applies", "{apply}", "Plans applied, by outcome"),
            clerk_calls: counter("steward.clerk.calls", "{call}", "Clerk calls, by outcome"),
            clerk_latency: meter
                .f64_histogram("steward.clerk.latency")
                .with_unit("s")
                .with_description("How long a clerk call takes")
                .with_boundaries(LATENCY_BUCKETS.to_vec())
                .build(),
            guard_refusals: counter("steward.guard.refusals", "{refusal}", "Clerk calls refused, by cap"),
        }
    }

    /// Counts the result of an activity.
    pub(super) fn count_activity(&self, activity: &str, result: &ExecuteActivityResult, took: Duration) {
        let output = result.as_ref().ok();
        if let Some(observation) = output.and_then(|o| o.downcast_ref::<MatterObservation>()) {
            self.ticks.add(1, &[KeyValue::new("outcome", label_tick(observation))]);
        } else if let Some(ReserveOutcome::Refused(refusal)) = output.and_then(|o| o.downcast_ref()) {
            self.guard_refusals.add(1, &[KeyValue::new("cap", serialize_label(&refusal.cap))]);
        } else if let Some(applied) = output.and_then(|o| o.downcast_ref::<ApplyOutput>()) {
            self.count_apply(applied);
        } else if let Some(reply) = output.and_then(|o| o.downcast_ref::<ClerkReply>()) {
            self.count_clerk_call(label_call(&reply.outcome), took);
        } else if result.is_err() && activity == "steward.apply" {
            self.applies.add(1, &[KeyValue::new("outcome", "error")]);
        } else if result.is_err() && activity == "steward.judge" {
            self.count_clerk_call("error", took);
        }
    }

    fn count_apply(&self, applied: &ApplyOutput) {
        let outcome = match applied {
            ApplyOutput::Filed { disposition, .. } => {
                self.decisions.add(1, &[KeyValue::new("disposition", disposition.as_str())]);
                "filed"
            }
            ApplyOutput::ChangedMeanwhile => "changed_meanwhile",
            ApplyOutput::Unusable { .. } => "unusable",
            ApplyOutput::Stopped => "stopped",
        };
        self.applies.add(1, &[KeyValue::new("outcome", outcome)]);
    }

    fn count_clerk_call(&self, outcome: &'static str, took: Duration) {
        let outcome = [KeyValue::new("outcome", outcome)];
        self.clerk_calls.add(1, &outcome);
        self.clerk_latency.record(took.as_secs_f64(), &outcome);
    }
}

/// Shows whether the provider refuses the key. It is state and no count: a call may be an hour away.
pub(super) fn observe_key_health(meter: &Meter, health: KeyHealth) {
    let gauge = meter.u64_observable_gauge("steward.clerk.key_refused");
    let gauge = gauge.with_description("Whether the provider refused the key at the last call");
    gauge.with_callback(move |observer| observer.observe(u64::from(health.is_refused()), &[])).build();
}

fn label_tick(observation: &MatterObservation) -> &'static str {
    if observation.stopped {
        "stopped"
    } else if observation.task_checks.is_empty() {
        "quiet"
    } else {
        "evaluating"
    }
}

fn label_call(outcome: &ClerkCallOutcome) -> &'static str {
    match outcome {
        ClerkCallOutcome::Answered { .. } => "answered",
        ClerkCallOutcome::BadAnswer { .. } => "bad_answer",
        ClerkCallOutcome::RateLimited { .. } => "rate_limited",
        ClerkCallOutcome::Failed { .. } => "failed",
        ClerkCallOutcome::NotSent { .. } => "not_sent",
    }
}

/// The spelling of a value in JSON.
fn serialize_label(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

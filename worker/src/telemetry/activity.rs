//! Wraps every activity: adds fields to its logs and its trace, and counts it.
//!
//! Every line that an activity logs carries `workflow_id`, `matter`, `task` and `action_id`, as far as its input holds
//! them. The SDK's RunActivity span gets the same attributes. The watcher must come after the SDK's tracing in the
//! chain; otherwise there is no span yet. It must not change the input or the output of an activity.

use super::metrics::ActivityMetrics;
use opentelemetry::trace::TraceContextExt;
use opentelemetry::{Context, KeyValue};
use std::time::Instant;
use steward_domain::steward::guard::ReserveRequest;
use steward_workflows::activities::{ApplyInput, JudgeInput, ObserveInput, ResolveInput};
use temporalio_common::ActivityError;
use temporalio_sdk::interceptors::{ActivityInboundInterceptor, ExecuteActivityInput, ExecuteActivityOutput, Next};
use tracing::Instrument;

/// The target of the watcher's spans, which are only for the logs.
pub(super) const TARGET: &str = "steward::activity";

/// Adds log fields, span attributes and counts to every activity.
pub(super) struct ActivityWatcher {
    metrics: Option<ActivityMetrics>,
}

impl ActivityWatcher {
    pub(super) fn new(metrics: Option<ActivityMetrics>) -> Self {
        Self { metrics }
    }
}

impl ActivityInboundInterceptor for ActivityWatcher {
    fn execute_activity<'a>(
        &'a self,
        input: ExecuteActivityInput,
        next: Next<'a, ExecuteActivityInput, ExecuteActivityOutput<'a>>,
    ) -> ExecuteActivityOutput<'a> {
        let subject = ActivitySubject::from_input(&input);
        let info = input.activity_info();
        let activity = info.activity_type.clone();
        // At error level, so that no log level hides the subject of a line.
        let span = tracing::error_span!(
            target: TARGET, "activity",
            activity, workflow_id = info.workflow_id, attempt = info.attempt,
            matter = subject.matter, task = subject.task, action_id = subject.action_id,
        );
        let watched = async move {
            subject.set_attributes(&Context::current());
            let begun = Instant::now();
            let result = next.run(input).await;
            if let Some(metrics) = &self.metrics {
                metrics.count_activity(&activity, &result, begun.elapsed());
            }
            if let Err(ActivityError::Application(failure)) = &result {
                tracing::warn!(error = %failure, "activity failed");
            }
            result
        };
        Box::pin(watched.instrument(span))
    }
}

/// The records that an activity concerns, as far as its input holds them.
#[derive(Default)]
struct ActivitySubject {
    matter: Option<String>,
    task: Option<String>,
    action_id: Option<String>,
}

impl ActivitySubject {
    fn from_input(input: &ExecuteActivityInput) -> Self {
        if let Some(observe) = input.args_ref::<ObserveInput>() {
            Self { matter: Some(observe.matter.to_string()), ..Self::default() }
        } else if let Some(reserve) = input.args_ref::<ReserveRequest>() {
            Self { matter: reserve.matter.clone(), task: reserve.task.clone(), action_id: None }
        } else if let Some(judge) = input.args_ref::<JudgeInput>() {
            let subject = &judge.question.subject;
            let (matter, task) = (Some(subject.matter.to_string()), Some(subject.task.to_string()));
            Self { matter, task, action_id: None }
        } else if let Some(apply) = input.args_ref::<ApplyInput>() {
            let (task, action_id) = (Some(apply.plan.target().to_string()), Some(apply.plan.id().to_string()));
            Self { matter: None, task, action_id }
        } else if let Some(resolve) = input.args_ref::<ResolveInput>() {
            Self { action_id: Some(resolve.action.clone()), ..Self::default() }
        } else {
            Self::default()
        }
    }

    fn set_attributes(self, context: &Context) {
        let attributes = [("matter", self.matter), ("task", self.task), ("action_id", self.action_id)];
        for (name, value) in attributes.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            context.span().set_attribute(KeyValue::new(name, value));
        }
    }
}

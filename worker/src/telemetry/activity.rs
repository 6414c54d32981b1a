//! One watcher around every activity: names for the logs, marks for the trace, counts.
//!
//! Every line that an activity logs carries `workflow_id`, `matter`, `task` and `action_id` as far
//! as its argument tells them; the SDK's RunActivity span gets the same marks. It must come after
//! the SDK's tracing in the chain, or there is no span to mark, and it changes neither argument nor
//! answer.

use super::metrics::ActivityMetrics;
use opentelemetry::trace::TraceContextExt;
use opentelemetry::{Context, KeyValue};
use std::time::Instant;
use steward_domain::steward::guard::ReserveRequest;
use steward_workflows::activities::{ApplyInput, JudgeInput, ObserveInput, ResolveInput};
use temporalio_common::ActivityError;
use temporalio_sdk::interceptors::{ActivityInboundInterceptor, ExecuteActivityInput, ExecuteActivityOutput, Next};
use tracing::Instrument;

/// The target of the watcher's spans, which are for the logs alone.
pub(super) const TARGET: &str = "steward::activity";

/// Watches activities.
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
        let about = ActivitySubject::from_input(&input);
        let info = input.activity_info();
        let activity = info.activity_type.clone();
        // At the level of errors, so that no level of the log hides what a line is about.
        let span = tracing::error_span!(
            target: TARGET, "activity",
            activity, workflow_id = info.workflow_id, attempt = info.attempt,
            matter = about.matter, task = about.task, action_id = about.action_id,
        );
        let watched = async move {
            about.mark_span(&Context::current());
            let begun = Instant::now();
            let ended = next.run(input).await;
            if let Some(metrics) = &self.metrics {
                metrics.count_activity(&activity, &ended, begun.elapsed());
            }
            if let Err(ActivityError::Application(failure)) = &ended {
                tracing::warn!(error = %failure, "activity failed");
            }
            ended
        };
        Box::pin(watched.instrument(span))
    }
}

/// What an activity is about, as far as its argument tells.
#[derive(Default)]
struct ActivitySubject {
    matter: Option<String>,
    task: Option<String>,
    action_id: Option<String>,
}

impl ActivitySubject {
    fn from_input(input: &ExecuteActivityInput) -> Self {
        if let Some(ask) = input.args_ref::<ObserveInput>() {
            Self { matter: Some(ask.matter.to_string()), ..Self::default() }
        } else if let Some(ask) = input.args_ref::<ReserveRequest>() {
            Self { matter: ask.matter.clone(), task: ask.task.clone(), action_id: None }
        } else if let Some(ask) = input.args_ref::<JudgeInput>() {
            let subject = &ask.question.subject;
            let (matter, task) = (Some(subject.matter.to_string()), Some(subject.task.to_string()));
            Self { matter, task, action_id: None }
        } else if let Some(ask) = input.args_ref::<ApplyInput>() {
            let (task, action_id) = (Some(ask.plan.target().to_string()), Some(ask.plan.id().to_string()));
            Self { matter: None, task, action_id }
        } else if let Some(ask) = input.args_ref::<ResolveInput>() {
            Self { action_id: Some(ask.action.clone()), ..Self::default() }
        } else {
            Self::default()
        }
    }

    fn mark_span(self, context: &Context) {
        let marks = [("matter", self.matter), ("task", self.task), ("action_id", self.action_id)];
        for (name, value) in marks.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            context.span().set_attribute(KeyValue::new(name, value));
        }
    }
}

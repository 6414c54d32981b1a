//! Builds with other workflows: what each would have left open at the server when it was replaced.
//!
//! Such a build is a real worker on the tenant's queue. Its first step answers with what a real tick of this build had observed,
//! so that a replay goes on to the step that differs. Then it waits for an activity on a queue that it serves only on the way back.
#![allow(unreachable_pub, dead_code, reason = "the macros want public types, and steps are called by their names")]

use crate::fleet::Fleet;
use crate::{runs, wait};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use temporalio_client::{Client, UntypedWorkflow, WorkflowStartOptions};
use temporalio_common::UntypedActivity;
use temporalio_common::data_converters::{PayloadConverter, RawValue};
use temporalio_common::protos::temporal::api::enums::v1::EventType;
use temporalio_common::protos::temporal::api::history::v1::history_event::Attributes;
use temporalio_macros::{activities, workflow, workflow_methods};
use temporalio_sdk::WorkerOptions;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use temporalio_workflow::workflows::WorkflowImplementation;
use temporalio_workflow::{ActivityOptions, LocalActivityOptions, WorkflowContext, WorkflowResult};

/// How a build differs from this one.
#[derive(Clone, Copy, Debug)]
pub enum Build {
    /// The second step has another name.
    Renamed,
    /// The first step records what this build cannot read.
    Unreadable,
    /// The third step comes second.
    Reordered,
    /// There is a timer before the first step.
    Added,
    /// There is no first step.
    Removed,
}

impl Build {
    pub const ALL: [Self; 5] = [Self::Renamed, Self::Unreadable, Self::Reordered, Self::Added, Self::Removed];

    /// The event at which this build cannot go on. The first four events begin every run.
    pub fn breaks_at(self) -> i64 {
        match self {
            Self::Added | Self::Removed | Self::Unreadable => 5,
            Self::Renamed | Self::Reordered => 6,
        }
    }

    fn register(self, options: &mut WorkerOptions) {
        let registered = match self {
            Self::Renamed => options.register_workflow::<Renamed>(),
            Self::Unreadable => options.register_workflow::<Unreadable>(),
            Self::Reordered => options.register_workflow::<Reordered>(),
            Self::Added => options.register_workflow::<Added>(),
            Self::Removed => options.register_workflow::<Removed>(),
        };
        registered.unwrap();
    }
}

/// A step of a former tick.
#[derive(Clone, Copy)]
enum Step {
    Local(&'static str),
    /// An activity that nobody serves before the way back.
    Remote(&'static str),
    Timer,
}

/// The queue of the remote steps.
const REMOTE: &str = "former-steps";

async fn walk<W: WorkflowImplementation>(ctx: &mut WorkflowContext<W>, steps: &[Step]) -> WorkflowResult<Value> {
    let argument = || RawValue::from_value(&json!({}), &PayloadConverter::default());
    for step in steps {
        match step {
            Step::Local(name) => {
                let options = LocalActivityOptions::builder().start_to_close_timeout(Duration::from_secs(30)).build();
                drop(ctx.execute_local_activity(UntypedActivity::new(*name), argument(), options).await?);
            }
            Step::Remote(name) => {
                let options = ActivityOptions::with_schedule_to_close_timeout(Duration::from_secs(3600));
                let options = options.task_queue(REMOTE.to_owned()).build();
                drop(ctx.execute_activity(UntypedActivity::new(*name), argument(), options).await?);
            }
            Step::Timer => drop(ctx.timer(Duration::from_millis(1)).await),
        }
    }
    Ok(Value::Null)
}

macro_rules! builds {
    ($($name:ident: [$($step:expr),*];)*) => {$(
        #[workflow]
        #[derive(Default)]
        pub struct $name;

        #[workflow_methods]
        impl $name {
            #[run(name = "StewardWorkflow")]
            pub async fn run(ctx: &mut WorkflowContext<Self>, _matter: String) -> WorkflowResult<Value> {
                walk(ctx, &[$($step),*]).await
            }
        }
    )*};
}

const OBSERVE: Step = Step::Local("steward.observe");

builds! {
    Renamed: [OBSERVE, Step::Remote("steward.book")];
    Unreadable: [OBSERVE, Step::Remote("steward.reserve")];
    Reordered: [OBSERVE, Step::Remote("steward.judge"), Step::Remote("steward.reserve")];
    Added: [Step::Timer, OBSERVE, Step::Remote("steward.reserve")];
    Removed: [Step::Remote("steward.reserve")];
}

/// The first step, with a recorded answer.
pub struct Observer(Value);

#[activities]
impl Observer {
    #[activity(name = "steward.observe")]
    pub async fn observe(self: Arc<Self>, _ctx: ActivityContext, _input: Value) -> Result<Value, ActivityError> {
        Ok(self.0.clone())
    }
}

/// The remote steps on the way back.
pub struct RemoteSteps;

#[activities]
impl RemoteSteps {
    #[activity(name = "steward.book")]
    pub async fn book(_ctx: ActivityContext, _input: Value) -> Result<Value, ActivityError> {
        Ok(Value::Null)
    }
    #[activity(name = "steward.reserve")]
    pub async fn reserve(_ctx: ActivityContext, _input: Value) -> Result<Value, ActivityError> {
        Ok(Value::Null)
    }
    #[activity(name = "steward.judge")]
    pub async fn judge(_ctx: ActivityContext, _input: Value) -> Result<Value, ActivityError> {
        Ok(Value::Null)
    }
}

/// A former build at the queue of one tenant.
pub struct FormerBuild<'a> {
    pub client: &'a Client,
    pub tenant: &'a str,
    pub build: Build,
    /// What a tick of this build has observed.
    pub observed: &'a Value,
}

impl FormerBuild<'_> {
    fn queue(&self) -> String {
        format!("steward.{}", self.tenant)
    }

    /// Serves the queue until some work is done.
    async fn serve<T>(&self, work: impl Future<Output = T>) -> T {
        let answer = match self.build {
            Build::Unreadable => json!({"matter": "matter/house.md", "checked": []}),
            _ => self.observed.clone(),
        };
        let mut options = WorkerOptions::new(self.queue()).register_activities(Observer(answer)).build();
        self.build.register(&mut options);
        runs::run_worker(self.client, options, work).await
    }

    /// Begins a run and leaves it open; returns its id.
    pub async fn begin_run(&self) -> String {
        let id = format!("al-steward-house@{}-{:?}", self.tenant, self.build).to_lowercase();
        self.serve(async {
            let options = WorkflowStartOptions::new(self.queue(), id.clone()).build();
            let matter = RawValue::from_value(&"matter/house.md", &PayloadConverter::default());
            self.client.start_workflow(UntypedWorkflow::new("StewardWorkflow"), matter, options).await.unwrap();
            wait::until("the former build to wait for its step", async || {
                let events = runs::fetch_events(self.client, &id).await;
                events.iter().any(|event| event.event_type() == EventType::ActivityTaskScheduled).then_some(())
            })
            .await;
        })
        .await;
        id
    }

    /// Serves everything until the run has ended.
    pub async fn finish_run(&self, id: &str) {
        let remote = WorkerOptions::new(REMOTE.to_owned()).register_activities(RemoteSteps).build();
        let ended = async {
            wait::until("the former build to end its run", async || {
                let events = runs::fetch_events(self.client, id).await;
                events.iter().any(|event| event.event_type() == EventType::WorkflowExecutionCompleted).then_some(())
            })
            .await;
        };
        runs::run_worker(self.client, remote, self.serve(ended)).await;
    }
}

/// What a real tick of a tenant recorded as the answer of its first step, with a task to judge.
pub async fn find_observation(fleet: &Fleet, tenant: &str) -> Value {
    let prefix = format!("al-steward-house@{tenant}-");
    for run in runs::list_runs(&fleet.client, "WorkflowType = 'StewardWorkflow'").await {
        let events = runs::fetch_events(&fleet.client, &run.id).await;
        let markers = events.iter().filter_map(|event| match &event.attributes {
            Some(Attributes::MarkerRecordedEventAttributes(marker)) => marker.details.get("result")?.payloads.first(),
            _ => None,
        });
        let mut answers = markers.filter_map(|payload| serde_json::from_slice::<Value>(&payload.data).ok());
        let judged = |answer: &Value| answer["task_checks"].as_array().is_some_and(|checks| !checks.is_empty());
        if run.id.starts_with(&prefix)
            && let Some(answer) = answers.find(judged)
        {
            return answer;
        }
    }
    panic!("no tick of {tenant} has judged a task")
}

//! Changes of the workflow that would break a run under way. A kept history must catch each of them.
//!
//! A variant makes the steps of a tick of one task and ignores their results, because the replayer compares kinds,
//! names and order. `Same` shows that a variant can pass at all.
#![allow(unreachable_pub, clippy::unimplemented, reason = "the macros' declarations are bodies that are never called")]

use serde_json::{Value, json};
use std::time::Duration;
use temporalio_common::ActivityError;
use temporalio_macros::{activity_definitions, workflow, workflow_methods};
use temporalio_sdk::workflow_replayer::{
    WorkflowReplayError, WorkflowReplayFailure, WorkflowReplayer, WorkflowReplayerOptions,
};
use temporalio_workflow::workflows::WorkflowImplementation;
use temporalio_workflow::{ActivityOptions, LocalActivityOptions, WorkflowContext, WorkflowResult};

use super::scenes::histories;

struct Named;

#[activity_definitions]
impl Named {
    #[activity(name = "steward.observe")]
    fn observe(_ask: Value) -> Result<Value, ActivityError> {
        unimplemented!()
    }
    #[activity(name = "steward.reserve")]
    fn reserve(_ask: Value) -> Result<Value, ActivityError> {
        unimplemented!()
    }
    #[activity(name = "steward.judge")]
    fn judge(_ask: Value) -> Result<Value, ActivityError> {
        unimplemented!()
    }
    #[activity(name = "steward.settle")]
    fn settle(_ask: Value) -> Result<Value, ActivityError> {
        unimplemented!()
    }
    #[activity(name = "steward.apply")]
    fn apply(_ask: Value) -> Result<Value, ActivityError> {
        unimplemented!()
    }
    #[activity(name = "steward.other")]
    fn other(_ask: Value) -> Result<Value, ActivityError> {
        unimplemented!()
    }
}

#[derive(Clone, Copy)]
enum Step {
    Observe,
    Reserve,
    Judge,
    Settle,
    Apply,
    /// An activity of another name, as a local one.
    Other,
    /// An activity of another name, as a remote one.
    OtherClerk,
    Wait,
}

use Step::{Apply, Judge, Observe, Other, OtherClerk, Reserve, Settle, Wait};

async fn walk<W: WorkflowImplementation>(ctx: &mut WorkflowContext<W>, steps: &[Step]) -> WorkflowResult<Value> {
    let ask = json!({});
    let local = || LocalActivityOptions::builder().start_to_close_timeout(Duration::from_secs(30)).build();
    let remote = || ActivityOptions::with_schedule_to_close_timeout(Duration::from_secs(85)).build();
    for step in steps {
        match step {
            Observe => drop(ctx.execute_local_activity(Named::observe, ask.clone(), local()).await?),
            Reserve => drop(ctx.execute_local_activity(Named::reserve, ask.clone(), local()).await?),
            Judge => drop(ctx.execute_activity(Named::judge, ask.clone(), remote()).await?),
            Settle => drop(ctx.execute_local_activity(Named::settle, ask.clone(), local()).await?),
            Apply => drop(ctx.execute_local_activity(Named::apply, ask.clone(), local()).await?),
            Other => drop(ctx.execute_local_activity(Named::other, ask.clone(), local()).await?),
            OtherClerk => drop(ctx.execute_activity(Named::other, ask.clone(), remote()).await?),
            Wait => drop(ctx.timer(Duration::from_millis(1)).await),
        }
    }
    Ok(json!({}))
}

macro_rules! variants {
    ($($name:ident: [$($step:ident),*];)*) => {$(
        #[workflow]
        #[derive(Default)]
        struct $name;

        #[workflow_methods]
        impl $name {
            #[run(name = "StewardWorkflow")]
            async fn run(ctx: &mut WorkflowContext<Self>, _matter: String) -> WorkflowResult<Value> {
                walk(ctx, &[$($step),*]).await
            }
        }
    )*};
}

variants! {
    Same: [Observe, Reserve, Judge, Settle, Apply];
    ReorderedLocal: [Observe, Reserve, Judge, Apply, Settle];
    ReorderedAcrossTheCall: [Observe, Judge, Reserve, Settle, Apply];
    AddedLocal: [Observe, Reserve, Judge, Settle, Apply, Other];
    AddedCall: [Observe, Reserve, Judge, OtherClerk, Settle, Apply];
    AddedTimer: [Wait, Observe, Reserve, Judge, Settle, Apply];
    RemovedLocal: [Observe, Reserve, Judge, Apply];
    RemovedCall: [Observe, Reserve, Settle, Apply];
    RemovedEnd: [Observe, Reserve, Judge];
    RenamedLocal: [Observe, Reserve, Judge, Other, Apply];
    RenamedCall: [Observe, Reserve, OtherClerk, Settle, Apply];
}

async fn replay<W>(name: &str) -> Result<(), WorkflowReplayError>
where
    W: WorkflowImplementation,
    <W::Run as temporalio_common::WorkflowDefinition>::Input: Send,
{
    let options = WorkflowReplayerOptions::new().register_workflow::<W>().unwrap().build();
    let text = std::fs::read_to_string(histories().join(format!("{name}.json"))).unwrap();
    let history = steward_tests::history::read(&text);
    WorkflowReplayer::new(options).unwrap().replay_workflow(history.into()).await
}

async fn is_caught<W>(what: &str)
where
    W: WorkflowImplementation,
    <W::Run as temporalio_common::WorkflowDefinition>::Input: Send,
{
    for name in ["live-tick", "shadow-tick", "pending-tick"] {
        match replay::<W>(name).await {
            Err(WorkflowReplayError::Replay(WorkflowReplayFailure::Nondeterminism { .. })) => {}
            Ok(()) => panic!("{what} passes for {name}"),
            Err(e) => panic!("{what} fails on {name} for another reason: {e}"),
        }
    }
}

#[tokio::test]
async fn the_steps_as_they_are_pass() {
    for name in ["live-tick", "shadow-tick", "pending-tick"] {
        replay::<Same>(name).await.unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[tokio::test]
async fn a_reordered_step_is_caught() {
    is_caught::<ReorderedLocal>("a local step moved").await;
    is_caught::<ReorderedAcrossTheCall>("a step moved over the clerk call").await;
}

#[tokio::test]
async fn an_added_step_is_caught() {
    is_caught::<AddedLocal>("a local step added").await;
    is_caught::<AddedCall>("a call added").await;
    is_caught::<AddedTimer>("a timer added").await;
}

#[tokio::test]
async fn a_removed_step_is_caught() {
    is_caught::<RemovedLocal>("a local step removed").await;
    is_caught::<RemovedCall>("the clerk call removed").await;
    is_caught::<RemovedEnd>("the last steps removed").await;
}

#[tokio::test]
async fn a_renamed_step_is_caught() {
    is_caught::<RenamedLocal>("a local step renamed").await;
    is_caught::<RenamedCall>("the clerk call renamed").await;
}

//! Replays a toy workflow, recorded once from a real server, against other versions of itself.
// The macros want their workflows public.
#![allow(unreachable_pub)]

use super::super::history::parse_history;
use super::*;
use crate::temporal::test_server::DevServer;
use std::time::Duration;
use temporalio_client::{ClientOptions, WorkflowStartOptions};
use temporalio_common::WorkflowDefinition;
use temporalio_macros::{activities, workflow, workflow_methods};
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use temporalio_sdk::{Runtime, Worker, WorkerOptions};
use temporalio_workflow::workflows::WorkflowImplementation;
use temporalio_workflow::{ActivityOptions, LocalActivityOptions, WorkflowContext, WorkflowResult};

/// The CLI's output about one run of [`recorded::Toy`]; never edited.
const RECORDED: &str = include_str!("toy-history.json");

struct Toys;

#[activities]
impl Toys {
    #[activity(name = "toy.look")]
    async fn look(_ctx: ActivityContext, what: String) -> Result<String, ActivityError> {
        Ok(format!("{what}, seen"))
    }
    #[activity(name = "toy.ask")]
    async fn ask(_ctx: ActivityContext, what: String) -> Result<String, ActivityError> {
        Ok(format!("{what}, asked"))
    }
    #[activity(name = "toy.question")]
    async fn question(_ctx: ActivityContext, what: String) -> Result<String, ActivityError> {
        Ok(format!("{what}, questioned"))
    }
    #[activity(name = "toy.file")]
    async fn file(_ctx: ActivityContext, what: String) -> Result<String, ActivityError> {
        Ok(format!("{what}, filed"))
    }
}

fn local() -> LocalActivityOptions {
    LocalActivityOptions::builder().start_to_close_timeout(Duration::from_secs(120)).build()
}

fn regular() -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(120)).build()
}

/// One version of the toy in a module of its own; all have the name `Toy`.
macro_rules! toy {
    ($version:ident, $input:ty, |$ctx:ident, $given:ident| $body:block) => {
        mod $version {
            use super::*;
            #[workflow]
            #[derive(Default)]
            pub struct Toy;
            #[workflow_methods]
            impl Toy {
                #[run(name = "Toy")]
                pub async fn run($ctx: &mut WorkflowContext<Self>, $given: $input) -> WorkflowResult<String> $body
            }
        }
    };
}

toy!(recorded, String, |ctx, given| {
    let seen = ctx.execute_local_activity(Toys::look, given, local()).await?;
    let asked = ctx.execute_activity(Toys::ask, seen, regular()).await?;
    Ok(ctx.execute_local_activity(Toys::file, asked, local()).await?)
});
toy!(reordered, String, |ctx, given| {
    let asked = ctx.execute_activity(Toys::ask, given, regular()).await?;
    let seen = ctx.execute_local_activity(Toys::look, asked, local()).await?;
    Ok(ctx.execute_local_activity(Toys::file, seen, local()).await?)
});
toy!(with_a_step_added, String, |ctx, given| {
    let seen = ctx.execute_local_activity(Toys::look, given, local()).await?;
    let again = ctx.execute_local_activity(Toys::look, seen, local()).await?;
    let asked = ctx.execute_activity(Toys::ask, again, regular()).await?;
    Ok(ctx.execute_local_activity(Toys::file, asked, local()).await?)
});
toy!(with_a_step_removed, String, |ctx, given| {
    let seen = ctx.execute_local_activity(Toys::look, given, local()).await?;
    Ok(ctx.execute_local_activity(Toys::file, seen, local()).await?)
});
toy!(with_its_last_step_removed, String, |ctx, given| {
    let seen = ctx.execute_local_activity(Toys::look, given, local()).await?;
    Ok(ctx.execute_activity(Toys::ask, seen, regular()).await?)
});
toy!(with_a_step_renamed, String, |ctx, given| {
    let seen = ctx.execute_local_activity(Toys::look, given, local()).await?;
    let asked = ctx.execute_activity(Toys::question, seen, regular()).await?;
    Ok(ctx.execute_local_activity(Toys::file, asked, local()).await?)
});
toy!(with_a_local_step_renamed, String, |ctx, given| {
    let seen = ctx.execute_local_activity(Toys::question, given, local()).await?;
    let asked = ctx.execute_activity(Toys::ask, seen, regular()).await?;
    Ok(ctx.execute_local_activity(Toys::file, asked, local()).await?)
});
toy!(with_a_guarded_step, String, |ctx, given| {
    let mut seen = ctx.execute_local_activity(Toys::look, given, local()).await?;
    if ctx.patched("look-twice") {
        seen = ctx.execute_local_activity(Toys::look, seen, local()).await?;
    }
    let asked = ctx.execute_activity(Toys::ask, seen, regular()).await?;
    Ok(ctx.execute_local_activity(Toys::file, asked, local()).await?)
});
toy!(with_another_argument, u32, |ctx, given| {
    let seen = ctx.execute_local_activity(Toys::look, given.to_string(), local()).await?;
    let asked = ctx.execute_activity(Toys::ask, seen, regular()).await?;
    Ok(ctx.execute_local_activity(Toys::file, asked, local()).await?)
});
toy!(that_panics, String, |ctx, given| {
    assert!(given.is_empty(), "the toy broke");
    Ok(ctx.execute_local_activity(Toys::look, given, local()).await?)
});

async fn against<W: WorkflowImplementation>(text: &str) -> ReplayOutcome
where
    <W::Run as WorkflowDefinition>::Input: Send,
{
    let options = WorkflowReplayerOptions::new().register_workflow::<W>().unwrap().build();
    let mut types = PayloadTypes::default();
    let Ok(()) = types.visit_workflow::<W>();
    HistoryReplayer { options, types }.replay_history(&parse_history(text).unwrap()).await
}

/// The message and the event of the first step that does not fit.
async fn other_path<W: WorkflowImplementation>() -> (String, Option<i64>)
where
    <W::Run as WorkflowDefinition>::Input: Send,
{
    let outcome = against::<W>(RECORDED).await;
    let line = outcome.to_string();
    assert!(line.starts_with("breaks at event "), "{line}");
    assert!(!line.contains("failure_info"), "{line}");
    match outcome {
        ReplayOutcome::Breaks { message, event_id, .. } => (message, event_id),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_recorded_build_takes_the_recorded_path() {
    assert_eq!(against::<recorded::Toy>(RECORDED).await, ReplayOutcome::Safe);
}

#[tokio::test]
async fn a_reordered_step_is_caught() {
    let (message, event) = other_path::<reordered::Toy>().await;
    assert_eq!(event, Some(5), "{message}");
}

#[tokio::test]
async fn an_added_step_is_caught() {
    let (message, event) = other_path::<with_a_step_added::Toy>().await;
    assert_eq!(event, Some(6), "{message}");
}

#[tokio::test]
async fn a_removed_step_is_caught() {
    let (message, event) = other_path::<with_a_step_removed::Toy>().await;
    assert_eq!(event, Some(6), "{message}");
    let (message, event) = other_path::<with_its_last_step_removed::Toy>().await;
    assert_eq!(event, Some(12), "{message}");
}

#[tokio::test]
async fn a_renamed_step_is_caught() {
    let (message, event) = other_path::<with_a_step_renamed::Toy>().await;
    assert_eq!(event, Some(6), "{message}");
    assert!(message.contains("toy.ask") && message.contains("toy.question"), "{message}");
    let (message, event) = other_path::<with_a_local_step_renamed::Toy>().await;
    assert_eq!(event, Some(5), "{message}");
    assert!(message.contains("toy.look") && message.contains("toy.question"), "{message}");
}

#[tokio::test]
async fn a_step_behind_a_patch_is_no_other_path() {
    assert_eq!(against::<with_a_guarded_step::Toy>(RECORDED).await, ReplayOutcome::Safe);
}

#[tokio::test]
async fn a_history_that_breaks_the_build_is_told_from_another_path() {
    let outcome = against::<that_panics::Toy>(RECORDED).await;
    assert!(matches!(outcome, ReplayOutcome::Fails { .. }), "{outcome}");
    let outcome = against::<with_another_argument::Toy>(RECORDED).await.to_string();
    assert!(outcome.contains("no longer reads at event 1"), "{outcome}");
}

#[tokio::test]
async fn what_is_no_whole_history_of_ours_says_so() {
    assert_eq!(
        HistoryReplayer::of_this_build().unwrap().replay_history(&parse_history(RECORDED).unwrap()).await,
        ReplayOutcome::UnknownType
    );
    for (text, words) in [
        ("not JSON", "expected"),
        (r#"{"events": "many"}"#, "invalid type"),
        (r#"{"events":[]}"#, "no events"),
        (&format!("{RECORDED}{RECORDED}"), "trailing"),
    ] {
        let message = parse_history(text).unwrap_err();
        assert!(message.contains(words), "{message}");
    }
    let headless = r#"{"events":[{"eventId":"1","eventType":"EVENT_TYPE_WORKFLOW_TASK_SCHEDULED"}]}"#;
    let outcome = against::<recorded::Toy>(headless).await.to_string();
    assert!(outcome.contains("first event") && outcome.contains("temporal workflow show"), "{outcome}");
}

#[test]
fn the_bridge_reads_what_the_cli_prints() {
    let newer = RECORDED.replacen("\"eventId\"", "\"aFieldOfTomorrow\": 1, \"eventId\"", 1);
    let history = parse_history(&newer).unwrap();
    assert_eq!(history.events.iter().map(|e| e.event_id).collect::<Vec<_>>(), (1..=13).collect::<Vec<_>>());
    assert_eq!(history, parse_history(RECORDED).unwrap());
    assert_eq!(read_local_activity(&history.events[4]).unwrap().activity_type, "toy.look");
    assert!(history.events[0].event_time.is_some());
}

#[tokio::test]
async fn a_fresh_run_on_a_real_server_replays() {
    let server = DevServer::start();
    let client = server.client(ClientOptions::new("default").build()).await;
    let options = WorkerOptions::new("toys").register_activities(Toys).register_workflow::<recorded::Toy>().unwrap();
    let runtime = Runtime::from_current_tokio(Default::default()).unwrap();
    let mut worker = Worker::new(&runtime, client.clone(), options.build()).unwrap();
    let stop = worker.shutdown_handle();
    let run = async {
        let started = client
            .start_workflow(recorded::Toy::run, "a toy".to_string(), WorkflowStartOptions::new("toys", "toy-1").build())
            .await
            .unwrap();
        let result: String = started.get_result(Default::default()).await.unwrap();
        stop();
        result
    };
    let (ended, result) = tokio::join!(worker.run(), run);
    ended.unwrap();
    assert_eq!(result, "a toy, seen, asked, filed");
    let text = server.history("toy-1");
    assert!(against::<recorded::Toy>(&text).await.is_safe());
    assert!(!against::<with_a_step_renamed::Toy>(&text).await.is_safe());
}

//! A toy workflow, recorded once from a real server, against versions of itself.

use super::*;
use crate::devserver::DevServer;
use std::time::Duration;
use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions, WorkflowStartOptions};
use temporalio_common::WorkflowDefinition;
use temporalio_macros::{activities, workflow, workflow_methods};
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use temporalio_sdk::{Runtime, Worker, WorkerOptions};
use temporalio_workflow::workflows::WorkflowImplementation;
use temporalio_workflow::{ActivityOptions, LocalActivityOptions, WorkflowContext, WorkflowResult};

/// What the CLI printed about one run of [`recorded::Toy`]; never edited.
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
    LocalActivityOptions::builder().start_to_close_timeout(Duration::from_secs(5)).build()
}

fn regular() -> ActivityOptions {
    ActivityOptions::with_start_to_close_timeout(Duration::from_secs(5)).build()
}

/// One version of the toy in a module of its own; all go by the name `Toy`.
macro_rules! toy {
    ($version:ident, $input:ty, |$ctx:ident, $given:ident| $body:block) => {
        mod $version {
            use super::*;
            #[workflow]
            #[derive(Default)]
            pub(super) struct Toy;
            #[workflow_methods]
            impl Toy {
                #[run(name = "Toy")]
                pub(super) async fn run($ctx: &mut WorkflowContext<Self>, $given: $input) -> WorkflowResult<String> $body
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

async fn against<W: WorkflowImplementation>(text: &str) -> Replayed
where
    <W::Run as WorkflowDefinition>::Input: Send,
{
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let options = WorkflowReplayerOptions::new().register_workflow::<W>().unwrap().build();
    replay_one(&options, file.path()).await
}

async fn path_taken<W: WorkflowImplementation>() -> (String, Option<i64>)
where
    <W::Run as WorkflowDefinition>::Input: Send,
{
    let replayed = against::<W>(RECORDED).await;
    let said = replayed.to_string();
    eprintln!("{said}");
    assert!(said.contains("this build would take another path"), "{said}");
    assert!(said.contains("guard the change with ctx.patched(..) or restore the old step"), "{said}");
    match replayed.outcome {
        Outcome::Nondeterminism { message, event_id } => (message, event_id),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_recorded_build_takes_the_recorded_path() {
    let replayed = against::<recorded::Toy>(RECORDED).await;
    assert!(replayed.is_ok(), "{replayed}");
    assert_eq!(replayed.workflow_type.as_deref(), Some("Toy"));
    assert!(replayed.to_string().ends_with("Toy, 17 events: ok"), "{replayed}");
}

#[tokio::test]
async fn a_reordered_step_is_caught() {
    assert_eq!(path_taken::<reordered::Toy>().await.1, Some(5));
}

#[tokio::test]
async fn an_added_step_is_caught() {
    path_taken::<with_a_step_added::Toy>().await;
}

#[tokio::test]
async fn a_removed_step_is_caught() {
    path_taken::<with_a_step_removed::Toy>().await;
    path_taken::<with_its_last_step_removed::Toy>().await;
}

#[tokio::test]
async fn a_renamed_step_is_caught() {
    path_taken::<with_a_step_renamed::Toy>().await;
    path_taken::<with_a_local_step_renamed::Toy>().await;
}

#[tokio::test]
async fn a_step_behind_a_patch_is_no_other_path() {
    let replayed = against::<with_a_guarded_step::Toy>(RECORDED).await;
    assert!(replayed.is_ok(), "{replayed}");
}

#[tokio::test]
async fn a_history_that_breaks_the_build_is_told_from_another_path() {
    for replayed in [against::<with_another_argument::Toy>(RECORDED).await, against::<that_panics::Toy>(RECORDED).await] {
        assert!(matches!(replayed.outcome, Outcome::Failed { .. }), "{replayed}");
        eprintln!("{replayed}");
    }
}

#[tokio::test]
async fn a_fresh_run_on_a_real_server_replays() {
    let server = DevServer::start();
    let connection = Connection::connect(ConnectionOptions::new(server.url.parse().unwrap()).build()).await.unwrap();
    let client = Client::new(connection, ClientOptions::new("default").build()).unwrap();
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
    if let Some(path) = std::env::var_os("RECORD") { std::fs::write(path, &text).unwrap(); }
    assert!(against::<recorded::Toy>(&text).await.is_ok());
    assert!(!against::<with_a_step_renamed::Toy>(&text).await.is_ok());
}

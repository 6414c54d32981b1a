//! Runs of a wiki worth recording: one that waits for its verifier, one that is corrected, one that a person commits against
//! the verifier, one that is staged again, and a measurement of the claims as they stand.
//!
//! A scripted model writes one summary and is asked about its own claim. Nothing here checks what a run does: other tests do.

use super::scenes::{Played, wiki, wiki_ingest};
use chrono::Utc;
use rustix::process::Signal;
use serde_json::{Value, json};
use steward_domain::wiki::run::RunId;
use steward_tests::clerk::{Asked, Clerk, Says};
use steward_tests::wait;
use steward_tests::world::{Started, World, is_frozen};
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::staged::StagedRuns;

const QUOTE: &str = "The lease of plot 12 ends in March.";

fn is_check(asked: &Asked) -> bool {
    asked.question.get("claims").is_some()
}

/// Writes a summary that says so, and is done.
fn write_summary(asked: &Asked, statement: &str) -> Says {
    let has_written = asked.body["messages"].as_array().unwrap().iter().any(|message| message["role"] == "assistant");
    let content = format!("{statement}[^1]\n\n[^1]: \"{QUOTE}\"");
    let page = json!({"page_type": "summary", "title": "The lease", "content": content, "summary": "It ends."});
    match has_written {
        true => Says::Text("I am done.".to_owned()),
        false => Says::Calls(vec![("write_wiki_page".to_owned(), page)]),
    }
}

/// Reports every claim alike.
fn report(asked: &Asked, support: &str) -> Says {
    let claims = asked.question["claims"].as_array().unwrap();
    let verdict = |claim: &Value| json!({"id": claim["id"], "support": support, "reason": "It says otherwise."});
    let claims: Vec<Value> = claims.iter().map(verdict).collect();
    Says::Calls(vec![("report_claims".to_owned(), json!({"claims": claims}))])
}

/// Registers a document of the wiki, and begins to make pages of it.
async fn begin_ingest(world: &World, document: &str) -> Started {
    let request = json!({"kind": "add_source", "path": format!("sources/{document}.md"), "upload": null});
    let input = json!({"wiki": "allotment", "by": "ann", "at": Utc::now(), "request": request});
    let added = world.begin_as(&format!("add-{document}"), "WikiRunWorkflow", &input).await.result().await;
    let input = json!({"wiki": "allotment", "source": added["source"], "by": "ann", "at": Utc::now(), "draft": false});
    world.begin_as(&format!("ingest-{document}"), "IngestWorkflow", &input).await
}

/// The verifier has no time today, so the run is still open.
pub(super) async fn verify_wiki_run(world: World) -> Played {
    let clerk = Clerk::start(|asked| match is_check(asked) {
        true => Says::Status(429, Some("600".to_owned())),
        false => write_summary(asked, "It ends in March."),
    })
    .await;
    let world = world.asking(&clerk);
    let _worker = wiki(&world).await;
    let run = begin_ingest(&world, "lease").await;
    wait::until("the run to wait for its verifier", async || {
        let shown = world.temporal(&["workflow", "show", "--workflow-id", run.id(), "--output", "json"]).await;
        (clerk.asked().iter().any(is_check) && shown.contains("EVENT_TYPE_TIMER_STARTED")).then_some(())
    })
    .await;
    let runs = world.run(&["wiki", "runs", "list", "--json"]).await.expect(0).json();
    assert_eq!(runs[0]["state"], "verifying", "{runs:#}");
    (world, run.id().to_owned())
}

/// The verifier refuses what was written first, and the writer corrects it.
pub(super) async fn revise_wiki_run(world: World) -> Played {
    let clerk = Clerk::start(|asked| match (is_check(asked), asked.question.get("findings").is_some()) {
        (true, _) if asked.question["claims"].to_string().contains("in May") => report(asked, "does_not_support"),
        (true, _) => report(asked, "supports"),
        (false, true) => write_summary(asked, "It ends in March."),
        (false, false) => write_summary(asked, "It ends in May."),
    })
    .await;
    let world = world.asking(&clerk);
    let _worker = wiki(&world).await;
    let run = begin_ingest(&world, "lease").await;
    assert_eq!(run.result().await["kind"], "committed");
    assert_eq!(clerk.asked().iter().filter(|asked| is_check(asked)).count(), 2);
    (world, run.id().to_owned())
}

/// The verifier refuses everything, and a person commits it all the same.
pub(super) async fn override_wiki_run(world: World) -> Played {
    let clerk = Clerk::start(|asked| match is_check(asked) {
        true => report(asked, "does_not_support"),
        false => write_summary(asked, "It ends in March."),
    })
    .await;
    let world = world.asking(&clerk);
    let _worker = wiki(&world).await;
    let refused = begin_ingest(&world, "lease").await.result().await;
    assert!(refused["message"].as_str().unwrap().starts_with("rejected by the verifier"), "{refused}");
    let run: RunId = serde_json::from_value(refused["run"].clone()).unwrap();
    let staged = StagedRuns::new(&VaultRoot::open(world.vault.path()).unwrap()).peek(&run).unwrap();
    let hash = staged.read_staged().unwrap().unwrap().0.hash();
    let request = json!({
        "kind": "approve", "run": run, "staged": hash, "override_reason": "page 2 says so", "in_terminal": true,
    });
    let input = json!({"wiki": "allotment", "by": "ann", "at": Utc::now(), "request": request});
    let overridden = world.begin_as("wiki-override", "WikiRunWorkflow", &input).await;
    let output = overridden.result().await;
    assert_eq!(output["kind"], "done", "{output}");
    (world, overridden.id().to_owned())
}

/// A person edits a page while the run is committed, so it is staged again.
pub(super) async fn restage_wiki_run(mut world: World) -> Played {
    // The first two changes accept the wiki and add the source.
    world.steward.set("STEWARD_CRASH_AT", "after-journal:3:stop");
    let worker = wiki(&world).await;
    let page = "wiki/allotment/summaries/summary-lease.md";
    let run = begin_ingest(&world, "lease").await;
    wait::until("the commit to be held", async || is_frozen(worker.pid()).then_some(())).await;
    world.vault.write(page, "# A note of mine\n");
    worker.send(Signal::CONT);
    let output = run.result().await;
    assert!(["committed", "refused"].contains(&output["kind"].as_str().unwrap()), "{output}");
    assert_eq!(world.vault.read(page), b"# A note of mine\n");
    (world, run.id().to_owned())
}

/// The verifier is asked about the claims as they stand.
pub(super) async fn measure_wiki_claims(world: World) -> Played {
    let (world, _) = wiki_ingest(world, false).await;
    {
        let worker = world.worker().await;
        let text = "# The letter\n\nThe council extends it. The fence is new. A stopcock is a valve.\n";
        world.vault.write("wiki/allotment/sources/letter.md", text);
        assert_eq!(begin_ingest(&world, "letter").await.result().await["kind"], "committed");
        worker.stop().await;
    }
    let clerk = Clerk::start(|asked| report(asked, "supports")).await;
    let world = world.asking(&clerk);
    let _worker = world.worker().await;
    let input = json!({"wiki": "allotment", "method": "fidelity", "claims": 10, "by": "ann", "at": Utc::now()});
    let run = world.begin_as("wiki-fidelity", "EvalWorkflow", &input).await;
    assert_eq!(run.result().await["kind"], "measured");
    assert!(!clerk.asked().is_empty());
    (world, run.id().to_owned())
}

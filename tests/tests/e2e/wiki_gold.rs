//! `steward wiki eval gold` and `eval run --gold` on the real binary: questions whose answer a person found good are asked again, and a
//! fall of their score holds what nobody asked for.

use crate::wiki_runs::{Desk, LEASE};
use crate::wiki_writer::{answer, checked_desk, good_turns, ingest, report};
use serde_json::{Value, json};
use std::time::Duration;
use steward_tests::clerk::{Clerk, Says};
use steward_tests::steward::Steward;
use steward_tests::wait;

/// Ten things of which a document says one sentence each.
const THINGS: [&str; 10] = ["lease", "rent", "fence", "gate", "hens", "shed", "water", "bonfire", "hedge", "beehive"];

/// A wiki that knows ten things, by fixed rules.
async fn desk_of_things() -> Desk {
    let desk = Desk::new().await;
    let worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    let text: String = THINGS.iter().map(|thing| format!("The {thing} of the site is old and green. ")).collect();
    desk.ingest(&desk.write("2026-11-20-site.md", format!("# The site\n\n{text}\n"))).await;
    worker.stop().await;
    desk
}

/// Asks a question, and keeps its answer.
async fn keep(steward: &Steward, question: &str) -> Value {
    steward.run(&["wiki", "query", "allotment", question]).await.expect(0);
    steward.run(&["wiki", "eval", "gold", "allotment", "--json"]).await.expect(0).json()
}

async fn measure(steward: &Steward) -> Value {
    steward.run(&["wiki", "eval", "run", "allotment", "--gold", "--json"]).await.expect(0).json()
}

/// The metric as `wiki status` shows it.
async fn read_metric(desk: &Desk) -> Value {
    let status = desk.wiki(&["status", "allotment", "--json"]).await.expect(0).json();
    let metrics = status[0]["metrics"].as_array().unwrap();
    metrics.iter().find(|reading| reading["metric"] == "retroactive").unwrap().clone()
}

/// Puts a document into the folder of sources, as a person does who asks for nothing.
fn drop_source(desk: &Desk, name: &str, text: &str) {
    let path = desk.world.vault.path().join("wiki/allotment/sources").join(name);
    std::fs::write(&path, text).unwrap();
    let old = std::time::SystemTime::now() - Duration::from_secs(60);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
}

/// The run of a source that nobody asked about, after it ended or waits.
async fn wait_for_run_of(desk: &Desk, title: &str) -> Value {
    wait::until("the run of a source that was dropped", async || {
        let runs = desk.wiki(&["runs", "list", "allotment", "--json"]).await.expect(0).json();
        let is_it = |run: &&Value| run["what"].as_str().unwrap().contains(title);
        let run = runs.as_array().unwrap().iter().find(is_it).cloned();
        run.filter(|run| run["state"] == "committed" || run["waits"] == true)
    })
    .await
}

#[tokio::test]
async fn ten_gold_questions_are_healthy_and_a_fall_holds_what_nobody_asked_for() {
    let desk = desk_of_things().await;
    let file = desk.world.folder.join("configuration.toml");
    std::fs::write(&file, "[wiki.allotment]\nauto_ingest = \"land\"\n").unwrap();
    let steward = desk.steward.with("STEWARD_CONFIG", file.display()).with("STEWARD_SCAN_SECONDS", 1);
    let _worker = desk.world.worker_with(&steward.with("STEWARD_LIVE_MODE", "live")).await;
    desk.wiki(&["eval", "run", "allotment", "--gold"]).await.expect(3);
    desk.wiki(&["eval", "gold", "allotment"]).await.expect(1);
    desk.wiki(&["query", "allotment", "Elephants?"]).await.expect(0);
    let refused = desk.wiki(&["eval", "gold", "allotment"]).await.expect(3);
    assert!(refused.err.contains("cites nothing"), "{refused}");
    for thing in &THINGS[1..] {
        keep(&desk.steward, &format!("How old is the {thing}?")).await;
    }
    let few = measure(&desk.steward).await;
    assert_eq!((&few["model"], &few["score"], &few["before"]), (&json!("rules"), &json!(1.0), &Value::Null), "{few:#}");
    assert_eq!(read_metric(&desk).await["state"], "unknown", "nine questions say nothing");
    let kept = keep(&desk.steward, "How old is the lease?").await;
    assert!(
        !kept["topics"].as_array().unwrap().is_empty() && !kept["citations"].as_array().unwrap().is_empty(),
        "{kept:#}"
    );
    let first = measure(&desk.steward).await;
    assert_eq!((first["answers"].as_array().unwrap().len(), &first["score"]), (10, &json!(1.0)), "{first:#}");
    assert_eq!(read_metric(&desk).await["state"], "healthy");
    // Nothing is left that could answer.
    let runs = desk.wiki(&["runs", "list", "allotment", "--json"]).await.expect(0).json();
    let run = runs[0]["run"].as_str().unwrap().rsplit('-').next().unwrap().to_owned();
    desk.wiki(&["runs", "revert", &run]).await.expect(0);
    for _ in 0..2 {
        let fallen = measure(&desk.steward).await;
        assert_eq!((&fallen["score"], &fallen["before"]), (&json!(0.0), &json!(1.0)), "{fallen:#}");
        assert!(!fallen["answers"][0]["lost"].as_array().unwrap().is_empty(), "{fallen:#}");
        assert_eq!(read_metric(&desk).await["state"], "broken", "measured once more, it is no better");
    }
    let shown = desk.wiki(&["status", "allotment"]).await.expect(0).out;
    assert!(
        shown.contains("retroactive broken: 10 gold questions") && shown.contains("that nobody asked for"),
        "{shown}"
    );
    drop_source(&desk, "2026-11-22-letter.md", "# Letter\n\nThe council thanks the holder of Plot 13.\n");
    let held = wait_for_run_of(&desk, "2026-11-22-letter").await;
    assert_eq!((&held["waits"], &held["state"]), (&json!(true), &json!("pending")), "{held:#}");
    assert!(held["what"].as_str().unwrap().contains("the metric `retroactive` is broken"), "{held:#}");
    // What a person asks for goes on.
    desk.ingest(&desk.write("2026-11-23-note.md", "# Note\n\nThe roof of the barn is new since May.\n")).await;
    let ack = ["wiki", "eval", "ack", "allotment", "retroactive", "--reason", "the document was withdrawn"];
    desk.steward.run_in_terminal(&ack, "y\n").await.expect(0);
    assert_eq!(read_metric(&desk).await["state"], "unknown");
    let after = measure(&desk.steward).await;
    assert_eq!(after["before"], Value::Null, "what was acknowledged is no measure: {after:#}");
    assert_eq!(read_metric(&desk).await["state"], "degraded");
    let second = desk.wiki(&["eval", "report", "allotment"]).await.expect(0).out;
    assert!(second.contains("not cited any more: c") && second.contains("cost: no ingest took tokens; "), "{second}");
    desk.is_sound().await;
}

#[tokio::test]
async fn a_model_is_asked_once_for_each_gold_question_and_its_answers_are_not_kept() {
    let desk = desk_of_things().await;
    let page = desk.read("summaries/summary-2026-11-20-site.md");
    let label =
        page.lines().find(|line| line.starts_with("[^c") && line.contains("The lease")).unwrap()[2..11].to_owned();
    let cited = format!("It is old.[^{label}]");
    // It cites the quote once, is busy once, and then says the same without it.
    let clerk = Clerk::start(move |asked| match asked.number {
        1 => Says::Text(cited.clone()),
        2 => Says::Status(429, Some("1".to_owned())),
        _ => Says::Text("It is old.".to_owned()),
    })
    .await;
    let steward = desk.steward.with("STEWARD_WIKI_CLERK", "openai");
    let steward = steward.with("STEWARD_WIKI_CLERK_BASE_URL", &clerk.url).with("STEWARD_WIKI_CLERK_MODEL", "scripted");
    let _worker = desk.world.worker_with(&steward).await;
    let kept = keep(&steward, "How old is the lease?").await;
    assert_eq!(kept["citations"], json!([label]), "{kept:#}");
    let measured = measure(&steward).await;
    assert_eq!((&measured["model"], &measured["score"]), (&json!("openai/scripted"), &json!(0.0)), "{measured:#}");
    assert_eq!((&measured["answers"][0]["topics"], &measured["answers"][0]["lost"]), (&json!(1.0), &json!([label])));
    assert_eq!(measured["tokens"]["prompt_tokens"], json!(100), "{measured:#}");
    let asked = clerk.asked();
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[2].question, asked[0].question, "it is asked as a person asks");
    let answers =
        std::fs::read_to_string(desk.world.vault.path().join(".steward/wiki/allotment/answers.jsonl")).unwrap();
    assert_eq!(answers.lines().count(), 1, "{answers}");
    let listed = desk.wiki(&["eval", "gold", "allotment", "--list"]).await.expect(0).out;
    assert!(listed.contains("How old is the lease?"), "{listed}");
    let id = kept["id"].as_str().unwrap();
    desk.wiki(&["eval", "gold", "allotment", "--remove", id]).await.expect(0);
    desk.wiki(&["eval", "gold", "allotment", "--remove", id]).await.expect(1);
    desk.wiki(&["eval", "gold", "allotment", id]).await.expect(0);
    desk.wiki(&["eval", "gold", "allotment", "00000000"]).await.expect(1);
    desk.wiki(&["eval", "run", "allotment", "--gold", "--pairs"]).await.expect(2);
}

#[tokio::test]
async fn the_report_says_what_an_ingest_took_beside_a_question_to_the_sources() {
    let writer = Clerk::start(|asked| answer(&good_turns(), asked)).await;
    let verifier = Clerk::start(|asked| report(asked, "nothing of this")).await;
    let desk = checked_desk(&writer, &verifier).await;
    let _worker = desk.world.worker_with(&desk.steward).await;
    let done = ingest(&desk).await;
    assert_eq!(done["kind"], "committed", "{done:#}");
    let cost = desk.wiki(&["eval", "report", "allotment", "--json"]).await.expect(0).json()["cost"].clone();
    let calls = writer.asked().len() as u64;
    let took = json!({"prompt_tokens": 100 * calls, "completion_tokens": 20 * calls});
    assert_eq!(cost["sources"], json!([{"source": "2026-11-20-lease", "tokens": took}]), "{cost:#}");
    assert_eq!((&cost["tokens"], &cost["question_tokens"]), (&took, &json!(LEASE.len().div_ceil(4))), "{cost:#}");
    let shown = desk.wiki(&["eval", "report", "allotment"]).await.expect(0).out;
    let line = format!(
        "cost: 1 ingested source took {} tokens in and {} out, {} for each",
        100 * calls,
        20 * calls,
        120 * calls
    );
    assert!(shown.contains(&line) && shown.contains("nothing was measured on allotment yet"), "{shown}");
}

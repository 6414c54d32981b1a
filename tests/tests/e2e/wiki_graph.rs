//! A model notes relations between pages while it writes them, on the real binary: they cost no call, go back with their run, and never
//! hold it up.

use crate::wiki_runs::{Desk, LEASE};
use crate::wiki_writer::{Calls, answer, call, desk, good_turns, ingest};
use serde_json::{Value, json};
use steward_tests::clerk::Clerk;

const EMPTY: &str = "# Graph\n\n";
const LINE: &str = "[[plot-12]] --described_in--> [[summary-2026-11-20-lease]]\n";

/// The turns of a good writer, the first one with relations to a page that is written later.
fn turns() -> Vec<Calls> {
    let mut turns = good_turns();
    let triples = json!({"triples": [
        {"subject": "Plot 12", "relation": "Described in", "object": "The lease"},
        {"subject": "plot-12", "relation": "owned_by", "object": "Nobody"},
        {"subject": "plot-12", "relation": "x--> [[overview]]", "object": "The lease"},
    ]});
    turns[0].push(call("note_relations", triples));
    turns
}

async fn take_back(desk: &Desk, run_type: &str) {
    let runs = desk.wiki(&["runs", "list", "allotment", "--json"]).await.expect(0).json();
    let run = runs.as_array().unwrap().iter().find(|run| run["run_type"] == run_type).unwrap();
    desk.wiki(&["runs", "revert", run["run"].as_str().unwrap()]).await.expect(0);
}

#[tokio::test]
async fn relations_are_shown_committed_and_taken_back_with_their_run() {
    let clerk = Clerk::start(|asked| answer(&turns(), asked)).await;
    let desk = desk("openai", &clerk).await;
    let steward = desk.steward.with("STEWARD_WIKI_ALLOW_UNVERIFIED", "false");
    let _worker = desk.world.worker_with(&steward).await;
    let done = ingest(&desk).await;
    assert_eq!((&done["kind"], clerk.asked().len()), (&json!("pending"), 3), "no call of its own: {done:#}");
    let run = done["run"].as_str().unwrap();
    // Whoever approves the run sees what it adds.
    let shown = desk.wiki(&["runs", "show", run]).await.expect(0).out;
    assert!(shown.contains(&format!("_graph.md (changed)\n  + {LINE}")), "{shown}");
    assert_eq!(desk.read("_graph.md"), EMPTY);
    desk.steward.run_in_terminal(&["wiki", "runs", "approve", run], "y\n").await.expect(0);
    assert_eq!(desk.read("_graph.md"), format!("{EMPTY}{LINE}"));
    assert!(desk.read("_log.md").contains("ideas: 1; graph: extracted 1 new triples\n"), "{}", desk.read("_log.md"));
    take_back(&desk, "ingest").await;
    assert_eq!(desk.read("_graph.md"), EMPTY);
    take_back(&desk, "rollback").await;
    assert_eq!(desk.read("_graph.md"), format!("{EMPTY}{LINE}"));
    desk.is_sound().await;
}

#[tokio::test]
async fn relations_that_are_no_relations_hold_up_no_run_and_a_crash_notes_them_once() {
    let text = json!({"triples": "plot 12 owns everything"});
    let garbage: [Value; 5] =
        [text.clone(), text.clone(), text, json!({}), json!({"triples": [7, {"subject": "plot-12"}]})];
    let mut only: Vec<Calls> = garbage.iter().map(|it| vec![call("note_relations", it.clone())]).collect();
    only.extend(good_turns());
    let clerk = Clerk::start(move |asked| answer(&only, asked)).await;
    let first = desk("openai", &clerk).await;
    let worker = first.world.worker().await;
    let done = ingest(&first).await;
    assert_eq!((&done["kind"], first.read("_graph.md").as_str()), (&json!("committed"), EMPTY), "{done:#}");
    assert!(!first.read("_log.md").contains("graph:"));
    first.is_sound().await;
    worker.stop().await;
    let clerk = Clerk::start(|asked| answer(&turns(), asked)).await;
    let second = desk("openai", &clerk).await;
    let workers = second.ingest_over_crash(&second.write("2026-11-20-lease.md", LEASE), "after-answer:1").await;
    assert_eq!((workers.len(), clerk.asked().len()), (2, 3), "an answer was paid for twice");
    assert_eq!(second.read("_graph.md"), format!("{EMPTY}{LINE}"));
    second.is_sound().await;
}

//! The life of a run: opened, committed, rejected, given up, or forgotten.

use super::{add_verifier, create, is_refused, list_changed, submit};
use crate::mcp::{Client, ingested};
use crate::wiki_writer::report;
use chrono::TimeDelta;
use serde_json::{Value, json};
use steward_tests::clerk::Clerk;
use steward_tests::process_clock::ProcessClock;
use steward_tests::wait;

/// What the verifier finds wrong.
const WRONG: &str = "2029";
/// A run that nobody submits has a day.
const MORE_THAN_A_DAY: TimeDelta = TimeDelta::hours(25);

/// The entry of a run in the history.
async fn read_entry(client: &mut Client, run: &Value) -> Value {
    client.value("history", json!({"run_id": run})).await["entries"][0].clone()
}

/// Checks how a run stands.
async fn check_status(client: &mut Client, name: &str, run: &Value, expected: &str) {
    let entry = read_entry(client, run).await;
    assert_eq!(entry["status"], expected, "{name}: {entry:#}");
}

async fn abandon(client: &mut Client, run: &Value) -> Value {
    let path = format!("runs/{}", run.as_str().unwrap());
    client.call("delete", json!({"path": path, "reason": "a test"})).await
}

#[tokio::test]
async fn runs_end_as_those_of_others() {
    let verifier = Clerk::start(|asked| report(asked, WRONG)).await;
    let desk = ingested().await;
    let steward = add_verifier(&desk.steward, &verifier);
    let worker = desk.world.worker_with(&steward).await;
    let mut client = Client::start(&desk, &["--workspace", "allotment"]).await;
    let before = desk.world.vault.files();
    // The first call opens a run, which has a folder of its own. Nothing of the wiki changes.
    let opened = client.value("write", create("wiki/concepts/spring.md", "Spring", "It ends in spring.")).await;
    let committed = &opened["run"];
    let folder = desk.world.vault.path().join(".steward/runs").join(opened["run_id"].as_str().unwrap());
    assert!(folder.is_dir(), "{opened:#}");
    let entry = read_entry(&mut client, committed).await;
    assert_eq!((&entry["status"], &entry["op"]), (&json!("pending"), &json!("manual")), "{entry:#}");
    assert_eq!(list_changed(&desk, &before), [""; 0]);
    // A commit puts what was staged into the wiki.
    let done = client.value("write", submit(committed, "concepts/spring.md")).await;
    assert_eq!(done["state"], "committed", "{done:#}");
    check_status(&mut client, "a committed run", committed, "committed").await;
    assert!(desk.read("concepts/spring.md").contains("\nIt ends in spring.[^c"));
    // A rejected run changes nothing, and what it staged and what was found is kept.
    let before = desk.world.vault.files();
    let page = create("wiki/concepts/autumn.md", "Autumn", "It ends in 2029.");
    let rejected = client.value("write", page).await["run"].clone();
    for state in ["open", "open", "rejected"] {
        let judged = client.value("write", submit(&rejected, "concepts/autumn.md")).await;
        assert_eq!(judged["state"], state, "{judged:#}");
    }
    assert_eq!(list_changed(&desk, &before), [""; 0], "nothing of a rejected run is committed");
    let shown = client.value("history", json!({"run_id": &rejected})).await;
    assert_eq!(
        (&shown["entries"][0]["status"], &shown["entries"][0]["verdict"]),
        (&json!("rejected"), &json!("reject")),
        "{shown:#}"
    );
    assert!(shown["run"]["findings"][0].as_str().unwrap().contains("unsupported"), "{shown:#}");
    assert!(shown["run"]["files"][0]["diff"].as_str().unwrap().contains("+It ends in 2029."), "{shown:#}");
    // A run that is open is given up, and takes nothing more.
    let page = create("wiki/concepts/winter.md", "Winter", "It ends in winter.");
    let abandoned = client.value("write", page).await["run"].clone();
    assert_eq!(abandon(&mut client, &abandoned).await["structuredContent"]["state"], "abandoned");
    check_status(&mut client, "a run that was given up", &abandoned, "abandoned").await;
    let late = client.call("write", submit(&abandoned, "concepts/winter.md")).await;
    assert!(is_refused(&late, "run_closed"), "{late:#}");
    // One that was committed is not.
    let refused = abandon(&mut client, committed).await;
    assert!(is_refused(&refused, "run_closed"), "{refused:#}");
    check_status(&mut client, "a run that cannot be given up", committed, "committed").await;
    assert!(desk.has("concepts/spring.md"));
    // One that its assistant forgot is ended by the process that holds the vault. Others stay as they are.
    let page = create("wiki/concepts/summer.md", "Summer", "It ends in summer.");
    let forgotten = client.value("write", page).await["run"].clone();
    worker.stop().await;
    let (clock, mut later) = (ProcessClock::new(), steward.with("STEWARD_SCAN_SECONDS", 1));
    clock.set(MORE_THAN_A_DAY);
    clock.give_to(&mut later);
    let _worker = desk.world.worker_with(&later).await;
    wait::until("the forgotten run to be ended", async || {
        (read_entry(&mut client, &forgotten).await["status"] == "abandoned").then_some(())
    })
    .await;
    for (run, status) in [(committed, "committed"), (&rejected, "rejected"), (&abandoned, "abandoned")] {
        check_status(&mut client, "a run that had ended before", run, status).await;
    }
    assert!(!desk.has("concepts/summer.md"));
    client.end().await;
}

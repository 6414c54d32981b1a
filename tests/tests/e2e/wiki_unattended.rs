//! What happens to a wiki that nobody asked for, on the real binary: new sources, checks at night, and metrics that hold runs.

use crate::wiki_runs::{Desk, LEASE};
use serde_json::{Value, json};
use std::time::Duration;
use steward_tests::clerk::{Clerk, Says};
use steward_tests::process_clock::ProcessClock;
use steward_tests::steward::Steward;
use steward_tests::wait;

/// A desk with an empty wiki, whose configuration has this table for it.
async fn desk(settings: &str) -> (Desk, Steward) {
    let desk = Desk::new().await;
    let worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    worker.stop().await;
    let file = desk.world.folder.join("configuration.toml");
    std::fs::write(&file, format!("[wiki.allotment]\n{settings}\n")).unwrap();
    let steward = desk.steward.with("STEWARD_CONFIG", file.display()).with("STEWARD_SCAN_SECONDS", 1);
    (desk, steward)
}

/// Puts a document into the folder of sources as a person does; it lies there for a while already.
fn drop_source(desk: &Desk, name: &str, text: &str) {
    let path = desk.world.vault.path().join("wiki/allotment/sources").join(name);
    std::fs::write(&path, text).unwrap();
    let old = std::time::SystemTime::now() - Duration::from_secs(60);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
}

async fn list_runs(desk: &Desk) -> Vec<Value> {
    desk.wiki(&["runs", "list", "allotment", "--json"]).await.expect(0).json().as_array().unwrap().clone()
}

async fn wait_for_run(desk: &Desk, count: usize) -> Value {
    wait::until("a run", async || {
        let runs = list_runs(desk).await;
        let ended = |run: &&Value| run["state"] == "committed" || run["waits"] == true;
        (runs.len() == count).then(|| runs.iter().rfind(ended).cloned()).flatten()
    })
    .await
}

#[tokio::test]
async fn new_sources_become_pages_as_far_as_the_settings_allow() {
    for (settings, mode, expected) in [
        ("auto_ingest = \"propose\"", "live", "it waits for a person; the rules found no fault; nobody asked for it"),
        ("auto_ingest = \"land\"", "shadow", "nobody asked for it, and STEWARD_LIVE_MODE is shadow"),
        ("auto_ingest = \"land\"", "live", ""),
    ] {
        let (desk, steward) = desk(settings).await;
        drop_source(&desk, "2026-11-20-lease.md", LEASE);
        let _worker = desk.world.worker_with(&steward.with("STEWARD_LIVE_MODE", mode)).await;
        let run = wait_for_run(&desk, 1).await;
        assert_eq!(run["waits"] == true, !expected.is_empty(), "{settings} under {mode}: {run:#}");
        assert!(run["what"].as_str().unwrap().contains(expected), "{settings} under {mode}: {run:#}");
        assert_eq!(desk.has("concepts/plot-12.md"), expected.is_empty(), "{settings} under {mode}");
        // A source had its run, whatever a person decides about it.
        let short = run["run"].as_str().unwrap().rsplit('-').next().unwrap().to_owned();
        let decision = if expected.is_empty() { "revert" } else { "reject" };
        desk.wiki(&["runs", decision, &short]).await.expect(0);
        drop_source(&desk, "2026-11-22-letter.md", "# Letter\n\nThe council thanks the holder of Plot 13.\n");
        let second = wait_for_run(&desk, if expected.is_empty() { 3 } else { 2 }).await;
        assert!(second["what"].as_str().unwrap().contains(expected), "{second:#}");
        let runs = list_runs(&desk).await;
        assert_eq!(runs.iter().filter(|run| run["run_type"] == "ingest").count(), 2, "each source once: {runs:#?}");
    }
}

#[tokio::test]
async fn without_the_setting_nothing_happens_by_itself_and_a_wrong_value_is_named() {
    let (desk, steward) = desk("auto_ingest = \"off\"").await;
    drop_source(&desk, "2026-11-20-lease.md", LEASE);
    let mut worker = desk.world.worker_with(&steward.with("STEWARD_LIVE_MODE", "live")).await;
    wait::a_moment(Duration::from_secs(4)).await;
    assert!(worker.status().is_none() && list_runs(&desk).await.is_empty());
    worker.stop().await;
    let file = desk.world.folder.join("wrong.toml");
    std::fs::write(&file, "[wiki.allotment]\nauto_ingest = \"always\"\n").unwrap();
    let refused = steward.with("STEWARD_CONFIG", file.display()).run(&["status"]).await.expect(1);
    assert!(refused.err.contains("wrong.toml:1") && refused.err.contains("always"), "{refused}");
    assert!(refused.err.contains("`off`, `propose`, `land`"), "{refused}");
    std::fs::write(&file, "[wiki.allotmnt]\nauto_ingest = \"land\"\n").unwrap();
    let worker = desk.world.worker_with(&steward.with("STEWARD_CONFIG", file.display())).await;
    wait::until("a word about the wiki that is not there", async || {
        worker.err().contains("settings for the wiki `allotmnt`").then_some(())
    })
    .await;
    worker.stop().await;
}

#[tokio::test]
async fn a_changed_wiki_is_checked_at_night_and_a_quiet_one_costs_nothing() {
    let (desk, mut steward) = desk("lint_fix = true").await;
    let clock = ProcessClock::new();
    clock.give_to(&mut steward);
    let worker = desk.world.worker_with(&steward).await;
    desk.ingest(&desk.write("2026-11-20-lease.md", LEASE)).await;
    let count_checks = |log: String| log.matches("] lint | ").count();
    assert_eq!(count_checks(desk.read("_log.md")), 0);
    // A night passes.
    clock.set(chrono::TimeDelta::days(1));
    wait::until("a check", async || (count_checks(desk.read("_log.md")) == 1).then_some(())).await;
    assert!(desk.read("_log.md").contains("] lint | 0 errors, 0 warnings"), "{}", desk.read("_log.md"));
    // Nothing changed, so the next night is quiet.
    clock.set(chrono::TimeDelta::days(2));
    wait::a_moment(Duration::from_secs(4)).await;
    assert_eq!(count_checks(desk.read("_log.md")), 1);
    desk.edit("concepts/plot-12.md", |text| text.replace("# Plot 12\n", "# Plot 12\n\n[[nowhere]]\n"));
    desk.edit("_index.md", |text| text + "A line of mine.\n");
    clock.set(chrono::TimeDelta::days(3));
    wait::until("a second check", async || (count_checks(desk.read("_log.md")) == 2).then_some(())).await;
    assert!(desk.read("_log.md").contains("broken_ref: concepts/plot-12.md"), "{}", desk.read("_log.md"));
    assert!(desk.read("_index.md").contains("A line of mine."), "in shadow nothing is fixed that nobody asked for");
    worker.stop().await;
    desk.edit("concepts/plot-12.md", |text| text.replace("[[nowhere]]", "[[anywhere]]"));
    clock.set(chrono::TimeDelta::days(4));
    let _worker = desk.world.worker_with(&steward.with("STEWARD_LIVE_MODE", "live")).await;
    wait::until("a third check", async || (count_checks(desk.read("_log.md")) == 4).then_some(())).await;
    assert!(!desk.read("_index.md").contains("A line of mine."), "the index is rendered anew");
}

#[tokio::test]
async fn a_persons_check_is_noted_once_and_fixes_nothing() {
    let desk = Desk::new().await;
    let _worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    desk.ingest(&desk.write("2026-11-20-lease.md", LEASE)).await;
    desk.edit("_index.md", |text| text + "A line of mine.\n");
    let index = desk.read("_index.md");
    for _ in 0..2 {
        desk.wiki(&["lint", "allotment"]).await.expect(0);
        let log = desk.read("_log.md");
        assert_eq!(log.matches("] lint | 0 errors, 1 warning").count(), 1, "{log}");
    }
    assert_eq!(desk.read("_index.md"), index);
    let status = desk.wiki(&["status", "allotment", "--json"]).await.expect(0).json();
    assert_eq!(status[0]["lifecycle"], "linted", "{status:#}");
    desk.is_sound().await;
}

/// A model that changes none of the pages that it is offered, and does not say why.
fn ignore_pages(name: &str) -> Says {
    let content = format!("It names {name}.[^1]\n\n[^1]: \"{name} is old.\"\n");
    let page =
        json!({"page_type": "summary", "title": format!("About {name}"), "content": content, "summary": "About it."});
    Says::Calls(vec![("write_wiki_page".to_owned(), page)])
}

#[tokio::test]
async fn a_model_that_passes_over_related_pages_breaks_the_coverage_until_a_person_knows() {
    let clerk = Clerk::start(|asked| {
        let messages = asked.body["messages"].as_array().unwrap();
        let is_first = messages.iter().all(|message| message["role"] != "assistant");
        let text = asked.question["source"]["text"].as_str().unwrap_or_default();
        let name = if text.contains("Beech 1") { "Beech 1" } else { "Beech 2" };
        if is_first { ignore_pages(name) } else { Says::Text("Done.".to_owned()) }
    })
    .await;
    let world = steward_tests::world::World::new().await.asking(&clerk);
    let world = world.set("STEWARD_WIKI_ALLOW_UNVERIFIED", "true").set("STEWARD_WIKI_VERIFIER", "rules");
    let desk = Desk::build(world.steward.clone(), world);
    let rules = desk.world.worker_with(&desk.steward.with("STEWARD_WIKI_CLERK", "rules")).await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    let trees: Vec<String> = (1..=12).map(|n| format!("Elm {n}")).collect();
    for tree in &trees {
        let file = format!("wiki/allotment/entities/{}.md", tree.to_lowercase().replace(' ', "-"));
        let slug = tree.to_lowercase().replace(' ', "-");
        let page = format!(
            "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: entity\ntitle: {tree}\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\n# {tree}\n"
        );
        desk.world.vault.write(&file, &page);
    }
    rules.stop().await;
    let _worker = desk.world.worker().await;
    let document = |name: &str| format!("# {name}\n\n{name} is old. It stands beside {}.\n", trees.join(", "));
    let ingest = async |name: &str| {
        let file = desk.write(&format!("{}.md", name.replace(' ', "-")), document(name));
        desk.wiki(&["ingest", "allotment", &file, "--json"]).await.json()[0]["ingested"].clone()
    };
    let first = ingest("Beech 1").await;
    assert_eq!(first["kind"], "committed", "{first:#}");
    assert!(desk.read("_log.md").contains("related pages: 12 offered, 0 touched, 0 need no change"));
    let status = desk.wiki(&["status", "allotment"]).await.expect(0).out;
    assert!(status.contains("coverage broken: 0 of 12") && status.contains("runs wait for you"), "{status}");
    let second = ingest("Beech 2").await;
    assert_eq!(second["kind"], "pending", "{second:#}");
    let listed = desk.wiki(&["runs", "list"]).await.expect(0).out;
    assert!(listed.contains("the metric `coverage` is broken"), "{listed}");
    let ack = ["wiki", "eval", "ack", "allotment", "coverage", "--reason", "a new model"];
    desk.steward.run(&ack).await.expect(3);
    desk.steward.run_in_terminal(&ack, "y\n").await.expect(0);
    desk.steward.run_in_terminal(&ack, "y\n").await.expect(3);
    let short = second["run"].as_str().unwrap().rsplit('-').next().unwrap().to_owned();
    desk.steward.run_in_terminal(&["wiki", "runs", "approve", &short], "y\n").await.expect(0);
    let shown = desk.wiki(&["runs", "show", &short, "--json"]).await.expect(0).json();
    assert!(shown["what"].as_str().unwrap().contains("tester approved it in a terminal"), "{shown:#}");
}

//! Assistants write pages, on the real binary and the real Temporal server: staged call by call, judged, committed, and taken back.

use crate::mcp::Client;
use crate::wiki_runs::{Desk, LEASE};
use crate::wiki_writer::{QUOTE, checked_desk, report};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use steward_tests::clerk::Clerk;
use steward_tests::files::Files;
use steward_tests::wait;

const LOG: &str = "wiki/log.md";

/// The wiki's pages and what code writes there, but the log of all runs.
fn read_pages(desk: &Desk) -> BTreeMap<String, Vec<u8>> {
    let files = Files::of(desk.world.vault.path());
    let own = files
        .paths()
        .filter(|path| path.starts_with("wiki/") && !path.ends_with("_log.md") && !path.contains("/.trash/"));
    own.map(|path| (path.to_owned(), desk.world.vault.read(path))).collect()
}

fn summary(quote: &str) -> Value {
    let content = format!(
        "---\ntitle: The lease\nkind: summary\ntags: [lease]\n---\nThe lease of plot 12 ends in March 2027.[^a]\n\n[^a]: raw/2026-11-20-lease.md — \"{quote}\"\n"
    );
    json!({"op": "create", "path": "wiki/summaries/summary-2026-11-20-lease.md", "source": "2026-11-20-lease", "content": content})
}

fn submit(run: &Value, entry: &str) -> Value {
    json!({"op": "append", "path": LOG, "run_id": run, "content": entry})
}

const ENTRY: &str = "## [2026-11-24] ingest | The lease | touched: summaries/summary-2026-11-20-lease.md";

/// A wiki with a document of which no page was made yet. A first run, which is given up, had it registered.
async fn desk_with_source(desk: Desk) -> Desk {
    let worker = desk.world.worker_with(&desk.steward).await;
    if !desk.has("KNOWLEDGE.md") {
        desk.wiki(&["init", "allotment"]).await.expect(0);
    }
    desk.world.vault.write("wiki/allotment/sources/2026-11-20-lease.md", LEASE);
    let mut client = Client::start(&desk, &["--workspace", "allotment"]).await;
    let mut first = summary(QUOTE);
    first["source"] = json!("raw/2026-11-20-lease.md");
    let made = client.value("write", first).await;
    let path = format!("runs/{}", made["run"].as_str().unwrap());
    let given_up = client.value("delete", json!({"path": path, "reason": "a test"})).await;
    assert_eq!(given_up["state"], "abandoned", "{given_up:#}");
    client.end().await;
    worker.stop().await;
    desk
}

#[tokio::test]
async fn a_staged_page_is_verified_committed_explained_and_taken_back() {
    let writer = Clerk::start(|_| unreachable!("an assistant writes")).await;
    let verifier = Clerk::start(|asked| report(asked, "2029")).await;
    let desk = desk_with_source(checked_desk(&writer, &verifier).await).await;
    let _worker = desk.world.worker_with(&desk.steward).await;
    let before = read_pages(&desk);
    let mut client = Client::start(&desk, &["--workspace", "allotment"]).await;
    let guide = client.call("guide", json!({})).await;
    assert!(guide["content"][0]["text"].as_str().unwrap().contains("allotment"), "{guide:#}");
    let refused = client.refusal("write", summary("The lease of Plot 12 never ends.")).await;
    assert!(refused.starts_with("error quote_not_found: ") && refused.contains("nearest"), "{refused}");
    let made = client.value("write", summary(QUOTE)).await;
    assert_eq!((&made["state"], &made["quotes"][0]["quote"]), (&json!("open"), &json!(QUOTE)), "{made:#}");
    let run = &made["run"];
    assert!(read_pages(&desk) == before, "nothing of the wiki changes before the commit");
    let incomplete = client.refusal("write", submit(run, &ENTRY.replace("summary-2026", "other-2026"))).await;
    assert!(incomplete.starts_with("error run_incomplete: "), "{incomplete}");
    let done = client.value("write", submit(run, ENTRY)).await;
    assert_eq!(done["state"], "committed", "{done:#}");
    assert_eq!(verifier.asked().len(), 1, "the verifier checked the claim");
    let page = desk.read("summaries/summary-2026-11-20-lease.md");
    assert!(page.contains("The lease of plot 12 ends in March 2027.[^c") && page.contains(QUOTE), "{page}");
    let log = desk.read("_log.md");
    assert!(
        log.contains("ingest | The lease\n")
            && log.contains("writer: assistant, verdict: commit, verifier: anthropic/checker"),
        "{log}"
    );
    let why = client.value("why", json!({"query": "lease"})).await;
    assert!(why.to_string().contains("ends in March 2027"), "{why:#}");
    let shown = client.value("history", json!({"run_id": run, "mine": true})).await;
    assert_eq!(
        (&shown["entries"][0]["status"], &shown["run"]["action"]),
        (&json!("committed"), &done["action"]),
        "{shown:#}"
    );
    let closed = client.refusal("write", submit(run, ENTRY)).await;
    assert!(closed.starts_with("error run_closed: "), "{closed}");
    let mut steward = Client::start(&desk, &["--allow", "act"]).await;
    let today = steward.value("steward_today", json!({})).await;
    let runs = today["sections"].as_array().unwrap().iter().find(|it| it["section"] == "wiki_runs").unwrap();
    assert_eq!((&runs["actions"][0]["id"], &runs["actions"][0]["disposition"]), (&done["action"], &json!("live")));
    let preview = json!({"action": done["action"], "resolution": "undo"});
    let shown = steward.value("steward_preview", preview.clone()).await;
    let page = json!("wiki/allotment/summaries/summary-2026-11-20-lease.md");
    let change = shown["fields"].as_array().unwrap().iter().find(|change| change["field"] == page).unwrap();
    assert!(change["now"].as_str().unwrap().contains(QUOTE) && change["after"] == "(removed)", "{shown:#}");
    let confirmed = steward.value("steward_confirm", json!({"action": done["action"]})).await;
    assert_eq!(confirmed["outcome"], "committed", "{confirmed:#}");
    let undo = json!({"action": done["action"], "reason": "a test"});
    let undone = client.value("steward_undo", undo).await;
    let again = steward.value("steward_preview", preview).await;
    assert_eq!(again["refused"], 409, "{again:#}");
    steward.end().await;
    assert!(undone["record"].as_str().unwrap().starts_with("event/"), "{undone:#}");
    assert!(!desk.has("summaries/summary-2026-11-20-lease.md"));
    assert!(read_pages(&desk) == before, "all of it is taken back to the byte");
    client.end().await;
}

#[tokio::test]
async fn the_verifier_opens_a_run_again_and_a_third_refusal_ends_it() {
    let writer = Clerk::start(|_| unreachable!("an assistant writes")).await;
    let verifier = Clerk::start(|asked| report(asked, "March 2027")).await;
    let desk = desk_with_source(checked_desk(&writer, &verifier).await).await;
    let _worker = desk.world.worker_with(&desk.steward).await;
    let before = read_pages(&desk);
    let mut client = Client::start(&desk, &[]).await;
    let mut summary = summary(QUOTE);
    summary["workspace"] = json!("allotment");
    let made = client.value("write", summary).await;
    let mut entry = submit(&made["run"], ENTRY);
    entry["workspace"] = json!("allotment");
    for state in ["open", "open", "rejected"] {
        let judged = client.value("write", entry.clone()).await;
        assert_eq!(judged["state"], state, "{judged:#}");
        let shown = client.value("history", json!({"workspace": "allotment", "run_id": made["run"]})).await;
        assert!(shown["run"]["findings"][0].as_str().unwrap().contains("unsupported"), "{shown:#}");
    }
    let closed = client.refusal("write", entry).await;
    assert!(closed.starts_with("error run_closed: "), "{closed}");
    assert!(read_pages(&desk) == before, "nothing was committed");
    client.end().await;
}

#[tokio::test]
async fn without_a_verifier_a_person_decides_and_a_removal_always_waits_for_one() {
    let desk = desk_with_source(Desk::new().await).await;
    let _worker = desk.world.worker().await;
    let mut client = Client::start(&desk, &["--workspace", "allotment"]).await;
    let made = client.value("write", summary(QUOTE)).await;
    let waits = client.value("write", submit(&made["run"], ENTRY)).await;
    assert_eq!(waits["state"], "pending", "{waits:#}");
    let mut whole = Client::start(&desk, &["--allow", "read"]).await;
    let listed = whole.value("steward_actions", json!({"waiting": true})).await;
    let today = whole.value("steward_today", json!({})).await;
    for actions in [&listed["actions"], &today["sections"][0]["actions"]] {
        assert_eq!((&actions[0]["id"], &actions[0]["waits"]), (&waits["action"], &json!(true)), "{actions:#}");
    }
    let missing = whole.refusal("steward_tasks", json!({"matter": "matter/nobody.md"})).await;
    assert!(missing.starts_with("error not_found: "), "{missing}");
    whole.end().await;
    assert!(!desk.has("summaries/summary-2026-11-20-lease.md"));
    let early = client.refusal("steward_undo", json!({"action": waits["action"], "reason": "too soon"})).await;
    assert!(early.starts_with("error needs_human: ") && early.contains("steward wiki runs approve"), "{early}");
    let run = made["run"].as_str().unwrap();
    desk.steward.run_in_terminal(&["wiki", "runs", "approve", run], "y\n").await.expect(0);
    assert!(desk.has("summaries/summary-2026-11-20-lease.md"));
    let remove = json!({"path": "wiki/summaries/summary-2026-11-20-lease.md", "reason": "not needed"});
    let removal = client.value("delete", remove).await;
    let entry = "## [2026-11-24] manual | Remove the summary | touched: summary-2026-11-20-lease";
    let waits = client.value("write", submit(&removal["run"], entry)).await;
    assert_eq!(waits["state"], "pending", "{waits:#}");
    assert!(desk.has("summaries/summary-2026-11-20-lease.md"));
    let page = desk.read("summaries/summary-2026-11-20-lease.md");
    let removal = removal["run"].as_str().unwrap();
    desk.steward.run_in_terminal(&["wiki", "runs", "approve", removal], "y\n").await.expect(0);
    assert!(!desk.has("summaries/summary-2026-11-20-lease.md"));
    assert!(desk.read("_log.md").contains("removed: summaries/summary-2026-11-20-lease.md"));
    desk.wiki(&["runs", "revert", removal]).await.expect(0);
    assert_eq!(desk.read("summaries/summary-2026-11-20-lease.md"), page);
    desk.is_sound().await;
    client.end().await;
}

#[tokio::test]
async fn who_may_only_read_sees_no_tool_that_writes() {
    let mut desk = desk_with_source(Desk::new().await).await;
    let mut client = Client::start(&desk, &["--allow", "read"]).await;
    let listed = client.request("tools/list", json!({})).await;
    let names: Vec<&str> = listed["tools"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert!(names.iter().all(|name| !["write", "delete", "steward_undo", "steward_stop"].contains(name)), "{names:?}");
    let refused = client.refusal("write", summary(QUOTE)).await;
    assert!(refused.starts_with("error scope_too_small: "), "{refused}");
    client.end().await;
    desk.steward = desk.steward.with("TEMPORAL_ADDRESS", "http://127.0.0.1:1");
    let mut client = Client::start(&desk, &["--workspace", "allotment"]).await;
    let made = client.value("write", summary(QUOTE)).await;
    let away = client.refusal("write", submit(&made["run"], ENTRY)).await;
    assert!(away.starts_with("error engine_away: "), "{away}");
    let shown = client.value("history", json!({"run_id": made["run"]})).await;
    assert_eq!(shown["entries"][0]["status"], "pending", "the run is open as before: {shown:#}");
    client.end().await;
}

#[tokio::test]
async fn the_process_of_a_client_holds_the_vault_while_it_is_connected_and_a_second_one_uses_it() {
    let desk = Desk::new().await;
    let worker = desk.world.worker_with(&desk.steward).await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    worker.stop().await;
    desk.world.vault.write("wiki/allotment/sources/2026-11-20-lease.md", LEASE);
    let mut first = Client::start(&desk, &["--workspace", "allotment", "--up"]).await;
    let mut document = summary(QUOTE);
    document["source"] = json!("raw/2026-11-20-lease.md");
    // The engine takes a moment, and until then the answer says so.
    let made = wait::until("the process to hold the vault", async || {
        let called = first.call("write", document.clone()).await;
        let is_away = called["content"][0]["text"].as_str().unwrap().starts_with("error engine_away: ");
        assert!(is_away || called["isError"] == false, "{called:#}");
        (!is_away).then(|| called["structuredContent"].clone())
    })
    .await;
    let done = first.value("write", submit(&made["run_id"], ENTRY)).await;
    assert_eq!(done["state"], "pending", "no model verifies it, so it waits: {done:#}");
    let mut second = Client::start(&desk, &["--workspace", "allotment", "--up"]).await;
    let waits = second.value("history", json!({"run_id": made["run_id"]})).await;
    assert_eq!(waits["entries"][0]["status"], "pending", "{waits:#}");
    let plot = |slug: &str| {
        let content = format!(
            "---\ntitle: {slug}\nkind: concept\n---\nThe lease of plot 12 ends in March 2027.[^a]\n\n[^a]: raw/2026-11-20-lease.md — \"{QUOTE}\"\n"
        );
        json!({"op": "create", "path": format!("wiki/concepts/{slug}.md"), "content": content})
    };
    let entry = |slug: &str| format!("## [2026-11-24] manual | {slug} | touched: concepts/{slug}.md");
    let staged = second.value("write", plot("plot")).await;
    let submitted = second.value("write", submit(&staged["run_id"], &entry("plot"))).await;
    assert_eq!(submitted["state"], "pending", "the first process carries it out: {submitted:#}");
    second.end().await;
    first.end().await;
    let mut alone = Client::start(&desk, &["--workspace", "allotment"]).await;
    let staged = alone.value("write", plot("tap")).await;
    let submitted = alone.value("write", submit(&staged["run_id"], &entry("tap"))).await;
    assert_eq!(
        submitted["state"], "verifying",
        "nobody holds the vault any more, so it waits in Temporal: {submitted:#}"
    );
    alone.end().await;
    let mut next = Client::start(&desk, &["--workspace", "allotment", "--up"]).await;
    wait::until("the next process to carry it out", async || {
        let shown = next.value("history", json!({"run_id": staged["run_id"]})).await;
        (shown["entries"][0]["waits"] == true).then_some(())
    })
    .await;
    next.end().await;
}

//! Every refusal of the rules for writing, over both transports: the same calls end with the same code, and nothing of the wiki changes.

use crate::mcp::{Client, served};
use crate::mcp_clients::{AnyClient, HttpClient, find_refusal};
use crate::wiki_writer::QUOTE;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::symlink;
use steward_tests::api::Api;
use steward_tests::files::Files;
use steward_tests::world::World;

const PUMP: &str = "wiki/concepts/pump.md";
const PAGE: &str = "wiki/concepts/refused.md";
const LOG: &str = "wiki/log.md";
const LETTER: &str =
    "# Letter of the council\n\nThe council extends the lease of Plot 12 to 31 March 2029. Plot 12 keeps its water.\n";
/// Stands for the run of the first answer of a case.
const RUN: &str = "$run";
/// One page more than a run may make.
const TOO_MANY_PAGES: usize = 13;
/// What a call of a run that is in use is refused with, after half a minute.
const BUSY: &str = "workspace_busy";
/// What a name of two runs is refused with.
const AMBIGUOUS: &str = "run_ambiguous";
/// All codes that a case must meet.
const CODES: [&str; 33] = [
    "archive_immutable",
    "bad_arguments",
    "claim_unanchored",
    "drops_claims",
    "escapes_workspace",
    "folder_too_deep",
    "is_a_link",
    "kind_unknown",
    "log_header_unparseable",
    "many_matches",
    "name_collides",
    "no_citation",
    "no_match",
    "path_not_wiki",
    "person_wrote_this",
    "protected_file",
    "quota_reached",
    "quote_missing",
    "quote_not_found",
    "raw_is_read_only",
    AMBIGUOUS,
    "run_closed",
    "run_incomplete",
    "run_unknown",
    "source_drifted",
    "source_missing",
    "stale_base",
    "statement_too_long",
    "template_missing",
    "text_pending",
    BUSY,
    "workspace_not_accessible",
    "workspace_required",
];

/// A tool and its arguments.
type Call = (&'static str, Value);

/// Calls of which the last one is refused.
struct RefusedCase {
    code: &'static str,
    calls: Vec<Call>,
}

fn page(kind: &str, body: &str, footnote: &str) -> String {
    format!("---\ntitle: Refused\nkind: {kind}\n---\n{body}\n\n{footnote}\n")
}

fn quoted(quote: &str) -> String {
    page("concept", "It ends in March 2027.[^1]", &format!("[^1]: 2026-11-20-lease — \"{quote}\""))
}

fn create(path: &str, content: &str) -> Call {
    ("write", json!({"op": "create", "path": path, "content": content}))
}

fn replace(path: &str, old: &str, new: &str) -> Call {
    ("write", json!({"op": "str_replace", "path": path, "old_text": old, "new_text": new}))
}

fn submit(run: Option<&str>, content: &str) -> Call {
    let mut arguments = json!({"op": "append", "path": LOG, "content": content});
    if let Some(run) = run {
        arguments["run_id"] = json!(run);
    }
    ("write", arguments)
}

/// A call of a run that a case has opened.
fn within_run(call: Call) -> Call {
    let (tool, mut arguments) = call;
    arguments["run_id"] = json!(RUN);
    (tool, arguments)
}

fn delete(path: &str) -> Call {
    ("delete", json!({"path": path, "reason": "a test"}))
}

fn refused(code: &'static str, calls: impl IntoIterator<Item = Call>) -> RefusedCase {
    RefusedCase { code, calls: calls.into_iter().collect() }
}

/// Cases of paths, pages and their names.
fn list_path_cases() -> Vec<RefusedCase> {
    let good = &quoted(QUOTE);
    vec![
        refused("path_not_wiki", [create("concepts/refused.md", good)]),
        refused("path_not_wiki", [create("/etc/passwd", good)]),
        refused("raw_is_read_only", [create("raw/refused.md", good)]),
        refused("escapes_workspace", [create("wiki/../refused.md", good)]),
        refused("escapes_workspace", [create("wiki/concepts/../../../other/x.md", good)]),
        refused("is_a_link", [("read", json!({"path": "raw/linked.md"}))]),
        refused("text_pending", [("read", json!({"path": "raw/scan.pdf"}))]),
        refused("is_a_link", [create("wiki/timelines/refused.md", &good.replace("concept", "timeline"))]),
        refused("name_collides", [create(PUMP, good)]),
        refused("folder_too_deep", [create("wiki/concepts/deep/refused.md", good)]),
        refused("kind_unknown", [create("wiki/entities/refused.md", good)]),
        refused("kind_unknown", [create("wiki/lint/report.md", &good.replace("concept", "lint"))]),
        refused("archive_immutable", [replace("wiki/archives/answer.md", "It was asked.", "Nobody asked.")]),
        refused("protected_file", [create("wiki/index.md", good)]),
        refused("protected_file", [delete("wiki/overview.md")]),
        refused("protected_file", [delete(LOG)]),
        refused("template_missing", [create(PAGE, "It ends.\n")]),
    ]
}

/// Cases of what a page says, and of what stood on it.
fn list_text_cases() -> Vec<RefusedCase> {
    let drifted = page("concept", "It is longer.[^1]", "[^1]: 2026-11-21-letter — \"Plot 12 keeps its water.\"");
    let good = quoted(QUOTE);
    let mut lint = create(PAGE, &good);
    lint.1["run_type"] = json!("lint");
    let mut stale = replace(PUMP, "My own note.", "Another one.");
    stale.1["base_sha256"] = json!("0".repeat(64));
    let mut missing = create(PAGE, &good);
    missing.1["source"] = json!("nobody");
    vec![
        refused(
            "no_citation",
            [create(PAGE, &page("concept", "It ends in March 2027.[^1]", &format!("[^1]: \"{QUOTE}\"")))],
        ),
        refused("claim_unanchored", [create(PAGE, &page("concept", "It has no source.", ""))]),
        refused(
            "statement_too_long",
            [create(PAGE, &good.replace("It ends in March 2027.", &"Long words. ".repeat(40)))],
        ),
        refused("quote_missing", [create(PAGE, &quoted("short"))]),
        refused(
            "quote_missing",
            [create(PAGE, &page("concept", "It ends in March 2027.[^1]", "[^1]: 2026-11-20-lease"))],
        ),
        refused("quote_not_found", [create(PAGE, &quoted("The lease of Plot 12 never ends."))]),
        refused("source_drifted", [create(PAGE, &drifted)]),
        refused("source_missing", [missing]),
        refused("drops_claims", [lint, within_run(delete("wiki/concepts/stopcock.md"))]),
        refused("person_wrote_this", [replace(PUMP, "My own note.", "Gone.")]),
        refused("no_match", [replace(PUMP, "nowhere", "x")]),
        refused("many_matches", [replace(PUMP, "o", "x")]),
        refused("stale_base", [stale]),
    ]
}

/// Cases of runs and of arguments.
fn list_run_cases() -> Vec<RefusedCase> {
    let good = &quoted(QUOTE);
    let entry = "## [2026-11-24] manual | Refused | touched: concepts/refused.md";
    let one_more = |number: usize| {
        let title = format!("title: Refused {number}");
        let call = create(&format!("wiki/concepts/refused-{number}.md"), &good.replace("title: Refused", &title));
        if number == 0 { call } else { within_run(call) }
    };
    let mut unknown = create(PAGE, good);
    unknown.1["run_id"] = json!("00000000");
    vec![
        refused("quota_reached", (0..TOO_MANY_PAGES).map(one_more)),
        refused("log_header_unparseable", [submit(None, "The lease was read.")]),
        refused("run_incomplete", [submit(None, entry)]),
        refused("run_incomplete", [create(PAGE, good), submit(Some(RUN), &entry.replace("refused.md", "another.md"))]),
        refused("run_closed", [create(PAGE, good), delete(&format!("runs/{RUN}")), submit(Some(RUN), entry)]),
        refused("run_unknown", [unknown]),
        refused("run_unknown", [delete("runs/00000000")]),
        refused("workspace_required", [("list", json!({}))]),
        refused("workspace_not_accessible", [("list", json!({"workspace": "nobody"}))]),
        refused("bad_arguments", [("write", json!({"op": "create", "path": PAGE}))]),
        refused("bad_arguments", [("list", json!({"limit": 0}))]),
    ]
}

/// Plays a case: all calls but the last are answered.
async fn play(client: &mut AnyClient, case: &RefusedCase) {
    let (code, transport) = (case.code, client.transport());
    let mut run = String::new();
    let Some((last, first)) = case.calls.split_last() else { panic!("{code}: no call") };
    let fill = |arguments: &Value, run: &str| -> Value {
        let mut arguments: Value = serde_json::from_str(&arguments.to_string().replace(RUN, run)).unwrap();
        if arguments.get("workspace").is_none() && code != "workspace_required" {
            arguments["workspace"] = json!("allotment");
        }
        arguments
    };
    for (tool, arguments) in first {
        let answer = client.call(tool, fill(arguments, &run)).await;
        assert_eq!(find_refusal(&answer), None, "{transport}, {code}: {arguments}: {answer:#}");
        if run.is_empty() {
            answer["result"]["structuredContent"]["run"].as_str().unwrap().clone_into(&mut run);
        }
    }
    let answer = client.call(last.0, fill(&last.1, &run)).await;
    assert_eq!(find_refusal(&answer).as_deref(), Some(code), "{transport}: {}: {answer:#}", last.1);
}

/// Holds a run as another call of it would, for longer than a call waits.
async fn provoke_busy_run(world: &World, client: &mut AnyClient) {
    let create_page =
        |path: &str| json!({"workspace": "allotment", "op": "create", "path": path, "content": quoted(QUOTE)});
    let made = client.call("write", create_page("wiki/concepts/busy.md")).await;
    let made = &made["result"]["structuredContent"];
    let run = made["run_id"].as_str().unwrap_or_else(|| panic!("{made:#}"));
    let lock = File::options().write(true).open(world.vault.path().join(format!(".steward/runs/{run}/lock"))).unwrap();
    lock.try_lock().unwrap();
    let mut again = create_page("wiki/concepts/busy-again.md");
    again["run_id"] = json!(run);
    let answer = client.call("write", again).await;
    assert_eq!(find_refusal(&answer).as_deref(), Some(BUSY), "{}: {answer:#}", client.transport());
    lock.unlock().unwrap();
}

/// Makes another run whose id ends as that of a run of the caller.
async fn provoke_ambiguous_run(world: &World, client: &mut AnyClient) {
    let mut arguments = json!({"workspace": "allotment", "op": "create", "path": "wiki/concepts/twice.md"});
    arguments["content"] = json!(quoted(QUOTE));
    let made = client.call("write", arguments.clone()).await;
    let run = made["result"]["structuredContent"]["run_id"].as_str().unwrap_or_else(|| panic!("{made:#}")).to_owned();
    let (end, runs) = (&run[run.len() - 8..], world.vault.path().join(".steward/runs"));
    let other = format!("r-20260101T000000Z-{end}");
    std::fs::create_dir(runs.join(&other)).unwrap();
    for file in ["meta.json", "status"] {
        let text = std::fs::read_to_string(runs.join(&run).join(file)).unwrap();
        std::fs::write(runs.join(&other).join(file), text.replace(&run, &other)).unwrap();
    }
    arguments["run_id"] = json!(end);
    let answer = client.call("write", arguments).await;
    assert_eq!(find_refusal(&answer).as_deref(), Some(AMBIGUOUS), "{}: {answer:#}", client.transport());
    let text = answer.to_string();
    assert!(text.contains(&run) && text.contains(&other), "{text}");
    std::fs::remove_dir_all(runs.join(other)).unwrap();
}

/// A wiki with what the cases need: a page of a person, an archive, a document that has changed since, and a link.
async fn prepare(world: &World) {
    let letter = world.folder.join("2026-11-21-letter.md");
    std::fs::write(&letter, LETTER).unwrap();
    world.run(&["wiki", "ingest", "allotment", letter.to_str().unwrap()]).await.expect(0);
    let vault = &world.vault;
    vault.write("wiki/allotment/sources/2026-11-21-letter.md", LETTER.replace("2029", "2030"));
    let write = |slug: &str, kind: &str, body: &str| {
        let text = format!(
            "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: {kind}\ntitle: \"The {slug}\"\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\n# The {slug}\n\n{body}\n"
        );
        vault.write(&format!("wiki/allotment/{kind}s/{slug}.md"), text);
    };
    write("pump", "concept", "My own note.");
    write("answer", "archive", "It was asked.");
    vault.write("wiki/allotment/sources/scan.pdf", "%PDF-1.7\0");
    symlink("/etc/hostname", vault.path().join("wiki/allotment/sources/linked.md")).unwrap();
    symlink(&world.folder, vault.path().join("wiki/allotment/timelines")).unwrap();
}

async fn open_clients(world: &World, api: &Api) -> [AnyClient; 2] {
    let stdio = Client::start_with(&world.steward, &[], ("2025-06-18", json!({}))).await;
    [AnyClient::Stdio(Box::new(stdio)), AnyClient::Http(HttpClient::new(&api.token(world, "act").await, "/mcp"))]
}

#[tokio::test]
async fn every_refusal_has_the_same_code_over_both_transports() {
    let (world, _up, api) = served().await;
    prepare(&world).await;
    let cases: Vec<RefusedCase> =
        [list_path_cases(), list_text_cases(), list_run_cases()].into_iter().flatten().collect();
    let met: BTreeSet<&str> = cases.iter().map(|case| case.code).chain([AMBIGUOUS, BUSY]).collect();
    let expected: BTreeSet<&str> = CODES.into_iter().collect();
    assert_eq!(met, expected);
    let before = world.vault.files();
    let [mut busy_stdio, mut busy_http] = open_clients(&world, &api).await;
    let clients = open_clients(&world, &api).await;
    let play_all = async {
        for mut client in clients {
            for case in &cases {
                play(&mut client, case).await;
            }
            provoke_ambiguous_run(&world, &mut client).await;
            client.end().await;
        }
    };
    // The rest is played while these wait.
    tokio::join!(play_all, provoke_busy_run(&world, &mut busy_stdio), provoke_busy_run(&world, &mut busy_http));
    busy_stdio.end().await;
    busy_http.end().await;
    let changed = Files::of(world.vault.path()).since(&before);
    assert_eq!(changed.into_iter().filter(|line| line.contains("wiki/")).collect::<Vec<_>>(), [""; 0]);
}

//! What the tests of two other servers of wikis, alexandria-wiki and llmwiki, expect of their tools, restated in our words for ours.
//! Each case is a call to the real binary over standard input and output, and its name says what is expected.

mod budget;
mod citations;
mod pages;
mod runs;
mod tools;
mod traversal;

use crate::mcp::Client;
use crate::wiki_runs::Desk;
use crate::wiki_writer::QUOTE;
use serde_json::{Value, json};
use steward_tests::clerk::Clerk;
use steward_tests::files::Files;
use steward_tests::steward::Steward;

/// The document of the wiki, and two of the pages that fixed rules made of it.
const LEASE_FILE: &str = "sources/2026-11-20-lease.md";
const LEASE_PATH: &str = "raw/2026-11-20-lease.md";
const STOPCOCK: &str = "wiki/concepts/stopcock.md";
const PLOT: &str = "wiki/concepts/plot-12.md";

/// A call, and whether its result is as expected.
struct Case {
    name: &'static str,
    tool: &'static str,
    arguments: Value,
    is_met: fn(&Value) -> bool,
}

fn case(name: &'static str, tool: &'static str, arguments: Value, is_met: fn(&Value) -> bool) -> Case {
    Case { name, tool, arguments, is_met }
}

/// Plays cases in their order.
async fn play(client: &mut Client, cases: Vec<Case>) {
    for Case { name, tool, arguments, is_met } in cases {
        let result = client.call(tool, arguments.clone()).await;
        assert!(is_met(&result), "{name}: {tool} {arguments}: {result:#}");
    }
}

/// All blocks of text of a result.
fn read_text(result: &Value) -> String {
    let blocks = result["content"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
    blocks.collect::<Vec<_>>().join("\n")
}

/// Whether a text of a result holds this.
fn has_text(result: &Value, words: &str) -> bool {
    read_text(result).contains(words)
}

/// Whether a call was refused with this code.
fn is_refused(result: &Value, code: &str) -> bool {
    result["isError"] == json!(true) && result["_meta"]["io.steward/error"]["code"] == json!(code)
}

/// One value of a structured result.
fn is_equal(result: &Value, field: &str, expected: &Value) -> bool {
    result["structuredContent"][field] == *expected
}

/// The rows of a structured result.
fn list_rows<'r>(result: &'r Value, rows: &str) -> &'r [Value] {
    result["structuredContent"][rows].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The paths of the rows of a structured result.
fn list_paths<'r>(result: &'r Value, rows: &str) -> Vec<&'r str> {
    list_rows(result, rows).iter().filter_map(|row| row["path"].as_str()).collect()
}

/// A new page that states something about the lease.
fn create(path: &str, title: &str, statement: &str) -> Value {
    create_with_footnote(path, title, statement, &format!("2026-11-20-lease — \"{QUOTE}\""))
}

/// A new page with another footnote.
fn create_with_footnote(path: &str, title: &str, statement: &str, footnote: &str) -> Value {
    let content = format!("---\ntitle: {title}\nkind: concept\n---\n{statement}[^1]\n\n[^1]: {footnote}\n");
    json!({"op": "create", "path": path, "content": content})
}

/// The entry for the log that submits a run.
fn submit(run: &Value, touched: &str) -> Value {
    let content = format!("## [2026-11-24] manual | A test | touched: {touched}");
    json!({"op": "append", "path": "wiki/log.md", "run_id": run, "content": content})
}

/// The binary with a model that checks what others write.
fn add_verifier(steward: &Steward, verifier: &Clerk) -> Steward {
    steward
        .with("STEWARD_WIKI_VERIFIER", "anthropic")
        .with("STEWARD_WIKI_VERIFIER_BASE_URL", &verifier.address)
        .with("STEWARD_WIKI_VERIFIER_MODEL", "checker")
}

/// The files of wikis that have other bytes since, apart from their logs.
fn list_changed(desk: &Desk, before: &Files) -> Vec<String> {
    let changed = Files::of(desk.world.vault.path()).since(before);
    let is_meant =
        |line: &String| line.contains(" wiki/") && !line.starts_with("touched") && !line.ends_with("_log.md");
    changed.into_iter().filter(is_meant).collect()
}

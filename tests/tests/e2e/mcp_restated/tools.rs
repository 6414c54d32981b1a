//! The tools that read, and who reaches which wiki by them.

use super::{
    Case, LEASE_PATH, PLOT, STOPCOCK, case, has_text, is_equal, is_refused, list_paths, list_rows, play, read_text,
};
use crate::mcp::{Client, ingested};
use crate::wiki_writer::QUOTE;
use serde_json::{Value, json};
use steward_tests::pdf::render_pdf;

const NOTICE: &str = "raw/2026-11-23-notice.pdf";
const WATER: &str = "wiki/concepts/water.md";
/// The first bytes of a picture.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

/// The cases of the tests of alexandria-wiki that read one wiki.
fn list_reading_cases() -> Vec<Case> {
    let line = json!({"pattern": "VALVE that", "path": "raw/**"});
    let mut any_case = line.clone();
    any_case["ignore_case"] = json!(true);
    vec![
        case("a guide says what is in force, and then how things stand", "guide", json!({}), |it| {
            let blocks = it["content"].as_array().map_or(0, Vec::len);
            let begins =
                |at: usize, words: &str| it["content"][at]["text"].as_str().is_some_and(|it| it.starts_with(words));
            blocks == 2
                && begins(0, "# Workspace `allotment`\n")
                && begins(1, "## Effort\n")
                && has_text(it, "open runs: none")
        }),
        case("an overview counts the files of each folder", "overview", json!({}), |it| {
            let find = |path: &str| list_rows(it, "tree").iter().find(|row| row["path"] == path).cloned();
            let counts = find("wiki/concepts").is_some_and(|row| row["pages"] == 3 && row["tokens"] != 0);
            counts && find("raw").is_some_and(|row| row["files"] == 4) && !is_equal(it, "raw_tokens", &json!(0))
        }),
        case("a list shows the files of a folder", "list", json!({"path": "wiki/concepts/*"}), |it| {
            list_paths(it, "entries") == [PLOT, STOPCOCK, WATER] && is_equal(it, "total", &json!(3))
        }),
        case("grep finds the line of a pattern", "grep", json!({"pattern": "valve that", "path": "raw/**"}), |it| {
            list_paths(it, "hits") == [LEASE_PATH] && list_rows(it, "hits")[0]["line"] == 7
        }),
        case("grep finds other letters only if it is told to", "grep", line, |it| list_rows(it, "hits").is_empty()),
        case("grep ignores upper and lower case if it is told to", "grep", any_case, |it| {
            list_paths(it, "hits") == [LEASE_PATH]
        }),
        case("search finds pages by their words", "search", json!({"query": "stopcock valve"}), |it| {
            list_paths(it, "hits").first() == Some(&STOPCOCK)
        }),
        case("read shows one file", "read", json!({"path": STOPCOCK}), |it| {
            has_text(it, "# Stopcock\n") && has_text(it, "A stopcock is a valve") && !has_text(it, "# Plot 12")
        }),
        case("read shows all files of a glob", "read", json!({"path": "wiki/concepts/*"}), |it| {
            let shows = |path: &str| has_text(it, &format!("{path}: sha256 "));
            it["content"].as_array().map(Vec::len) == Some(3) && [PLOT, STOPCOCK, WATER].into_iter().all(shows)
        }),
        case("read shows nothing outside of the wiki", "read", json!({"path": "../../etc/passwd"}), |it| {
            is_refused(it, "not_found") && !has_text(it, "root:")
        }),
        case(
            "follow leads to the words of a document",
            "follow",
            json!({"from_page": PLOT, "footnote_id": "1"}),
            |it| is_equal(it, "path", &json!(LEASE_PATH)) && is_equal(it, "quote", &json!(QUOTE)),
        ),
        case(
            "follow names the footnotes of a page if there is none such",
            "follow",
            json!({"from_page": PLOT, "footnote_id": "99"}),
            |it| is_refused(it, "no_footnote") && has_text(it, " footnotes⟧\nc"),
        ),
        case("history shows what happened and when", "history", json!({"op": "ingest"}), |it| {
            let is_ingest =
                |row: &&Value| row["title"] == "The lease" && row["at"].as_str().is_some_and(|at| at.ends_with('Z'));
            list_rows(it, "entries").iter().filter(is_ingest).count() == 1
        }),
    ]
}

/// Further cases, those of llmwiki.
fn list_further_cases() -> Vec<Case> {
    let pages = |pages: &str| json!({"path": NOTICE, "pages": pages});
    let mut cases = vec![
        case("a list says which files are pages and which are documents", "list", json!({}), |it| {
            let kind = |path: &str| {
                list_rows(it, "entries").iter().find(|row| row["path"] == path).map(|row| row["kind"].clone())
            };
            kind(LEASE_PATH) == Some(json!("raw")) && kind(PLOT) == Some(json!("concept"))
        }),
        case("one star of a glob stays in its folder", "list", json!({"path": "wiki/*.md"}), |it| {
            !list_rows(it, "entries").is_empty() && !list_paths(it, "entries").contains(&PLOT)
        }),
        case("two stars of a glob go into folders", "list", json!({"path": "/wiki/**"}), |it| {
            list_paths(it, "entries").contains(&PLOT)
        }),
        case("a glob may mean nothing", "list", json!({"path": "notes/*"}), |it| is_equal(it, "total", &json!(0))),
        case("a path may begin with a slash", "read", json!({"path": format!("/{STOPCOCK}")}), |it| {
            has_text(it, "# Stopcock\n")
        }),
        case("a section is read alone", "read", json!({"path": LEASE_PATH, "section": "Water"}), |it| {
            has_text(it, "A stopcock is a valve") && !has_text(it, "by the river")
        }),
        case("a picture is shown if it is asked for", "read", json!({"path": "raw/plan.png", "images": true}), |it| {
            it["content"].as_array().into_iter().flatten().any(|block| block["mimeType"] == "image/png")
        }),
        case("a picture is no text", "read", json!({"path": "raw/plan.png"}), |it| is_refused(it, "not_text")),
        case("a search stays in a folder", "search", json!({"query": "stopcock", "path": "wiki/concepts/"}), |it| {
            let paths = list_paths(it, "hits");
            !paths.is_empty() && paths.iter().all(|path| path.starts_with("wiki/concepts/"))
        }),
        case("documents are searched apart", "search", json!({"query": "stopcock", "kind": "raw"}), |it| {
            list_paths(it, "hits") == [LEASE_PATH]
        }),
        case(
            "a search shows as few hits as are asked for, and where it goes on",
            "search",
            json!({"query": "plot", "limit": 1}),
            |it| list_rows(it, "hits").len() == 1 && it["structuredContent"]["cursor"].is_string(),
        ),
        case("a document that no page cites is listed as new", "sources", json!({"state": "new"}), |it| {
            let [row] = list_rows(it, "sources") else { return false };
            row["path"] == "raw/letter.md" && row["pages"] == 0
        }),
        case("one page of a PDF is read", "read", pages("2"), |it| has_text(it, "⟧\nPlot 13 has a gate.\n⟦")),
        case("a range of pages is read", "read", pages("1-2"), |it| {
            has_text(it, "rent of Plot 13") && !has_text(it, "at night")
        }),
        case("single pages are read together", "read", pages(" 1 ,3"), |it| {
            has_text(it, "at night") && !has_text(it, "a gate")
        }),
        case(
            "a footnote of a PDF has its page",
            "follow",
            json!({"from_page": "wiki/summaries/summary-2026-11-23-notice.md", "footnote_id": "2"}),
            |it| is_equal(it, "page", &json!(2)) && is_equal(it, "verified", &json!("ok")),
        ),
    ];
    for wrong in ["0", "4", "1-100", "2,abc", "1-", "-5", "1-x", ""] {
        cases.push(case("pages that there are not are refused", "read", pages(wrong), |it| {
            is_refused(it, "no_pages") && has_text(it, "The text has 3 pages")
        }));
    }
    cases
}

/// The tools of wikis that a client has.
async fn list_wiki_tools(client: &mut Client) -> Vec<String> {
    let listed = client.request("tools/list", json!({})).await;
    let names = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
    names.filter(|name| !name.starts_with("steward_")).collect()
}

/// No tool answers without a wiki, or for another one than the server was started for.
async fn check_workspaces(open: &mut Client, pinned: &mut Client) {
    let tools = list_wiki_tools(open).await;
    assert_eq!(tools.len(), 19);
    for tool in &tools {
        let result = open.call(tool, json!({})).await;
        assert!(is_refused(&result, "workspace_required"), "{tool}: {result:#}");
        assert!(has_text(&result, "Use one of: allotment, other"), "{tool}: {result:#}");
    }
    assert_eq!(list_wiki_tools(pinned).await, tools);
    for tool in &tools {
        for workspace in ["allotment", "nobody"] {
            let result = pinned.call(tool, json!({"workspace": workspace})).await;
            assert!(is_refused(&result, "workspace_not_accessible"), "{tool}: {result:#}");
            assert!(read_text(&result).ends_with("Use one of: other"), "{tool}: {result:#}");
        }
    }
    // And what it does answer holds nothing of the other wiki.
    for (tool, arguments) in [
        ("guide", json!({})),
        ("overview", json!({})),
        ("list", json!({})),
        ("grep", json!({"pattern": "stopcock", "ignore_case": true})),
        ("search", json!({"query": "stopcock"})),
        ("search", json!({"query": "stopcock", "kind": "raw"})),
        ("history", json!({})),
        ("sources", json!({})),
        ("why", json!({"query": "stopcock"})),
    ] {
        let result = pinned.call(tool, arguments).await;
        assert_ne!(result["isError"], json!(true), "{tool}: {result:#}");
        let text = read_text(&result).to_lowercase();
        assert!(!text.contains("valve") && !text.contains("plot-12"), "{tool}: {result:#}");
    }
}

#[tokio::test]
async fn tools_that_read_answer_as_those_of_others() {
    let desk = ingested().await;
    let worker = desk.world.worker().await;
    let notice = render_pdf(&[
        &["The rent of Plot 13 is due in May."],
        &["Plot 13 has a gate."],
        &["The gate is closed at night."],
    ]);
    desk.ingest(&desk.write("2026-11-23-notice.pdf", notice)).await;
    worker.stop().await;
    desk.world.vault.write("wiki/allotment/sources/plan.png", PNG);
    desk.world.vault.write("wiki/allotment/sources/letter.md", "# Letter\n\nThe gate is new.\n");
    let mut client = Client::start(&desk, &["--workspace", "allotment"]).await;
    play(&mut client, list_reading_cases()).await;
    play(&mut client, list_further_cases()).await;
    client.end().await;
    let (mut open, mut pinned) =
        (Client::start(&desk, &[]).await, Client::start(&desk, &["--workspace", "other"]).await);
    check_workspaces(&mut open, &mut pinned).await;
    open.end().await;
    pinned.end().await;
}

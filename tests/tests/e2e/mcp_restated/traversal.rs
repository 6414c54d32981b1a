//! Paths that lead out of a wiki: nothing is quoted, read or committed through them.

use super::{Case, case, create, create_with_footnote, is_refused, list_changed, play, submit};
use crate::mcp::{Client, ingested};
use serde_json::json;
use std::os::unix::fs::symlink;

const SECRET: &str = "The key lies below the third stone.";
const INVENTED: &str = "The key lies below the fourth stone.";
/// How a footnote may name what lies outside of the wiki.
const OUTSIDE_SOURCES: [&str; 8] = [
    "../secret.md",
    "../../secret.md",
    "raw/../../../secret.md",
    "sources/../../../secret.md",
    "raw/../KNOWLEDGE.md",
    "/etc/passwd",
    "raw//etc/passwd",
    "wiki/concepts/stopcock.md",
];
const PAGE: &str = "wiki/concepts/outside.md";
const TIDES: &str = "wiki/timelines/tides.md";

/// The cases of paths that are written, removed, or followed.
fn list_path_cases() -> Vec<Case> {
    let remove = |path: &str| json!({"path": path, "reason": "a test"});
    let follow = |footnote: &str| json!({"from_page": "wiki/concepts/crafted.md", "footnote_id": footnote});
    let write = |path: &str| create(path, "Outside", "It ends in 2027.");
    let outside = "no page is written outside of the wiki";
    vec![
        case(outside, "write", write("wiki/../secret.md"), |it| is_refused(it, "escapes_workspace")),
        case(outside, "write", write("wiki/concepts/../../../other/concepts/x.md"), |it| {
            is_refused(it, "escapes_workspace")
        }),
        case(outside, "write", write("/etc/secret.md"), |it| is_refused(it, "path_not_wiki")),
        case("two dots in another spelling are no folder", "write", write("wiki/%2e%2e/secret.md"), |it| {
            is_refused(it, "kind_unknown")
        }),
        case("nothing is removed outside of the wiki", "delete", remove("wiki/../../secret.md"), |it| {
            is_refused(it, "escapes_workspace")
        }),
        case("a glob is not removed", "delete", remove("wiki/*"), |it| is_refused(it, "path_not_wiki")),
        case("a glob of everything is not removed", "delete", remove("**"), |it| is_refused(it, "path_not_wiki")),
        case("a glob of pages is not removed", "delete", remove("wiki/concepts/*.md"), |it| {
            is_refused(it, "not_found")
        }),
        case("a footnote that climbs leads nowhere", "follow", follow("1"), |it| is_refused(it, "source_missing")),
        case("a footnote with an absolute path leads nowhere", "follow", follow("2"), |it| {
            is_refused(it, "source_missing")
        }),
        case(
            "a page outside has no footnotes",
            "follow",
            json!({"from_page": "../secret.md", "footnote_id": "1"}),
            |it| is_refused(it, "not_found"),
        ),
    ]
}

/// Whoever quotes what lies outside does not even learn whether the words stand there.
async fn check_footnotes(client: &mut Client) {
    for source in OUTSIDE_SOURCES {
        let mut refusals = Vec::new();
        for words in [SECRET, INVENTED] {
            let page = create_with_footnote(PAGE, "Outside", "It lies there.", &format!("{source} — \"{words}\""));
            refusals.push(client.refusal("write", page).await);
        }
        assert_eq!(refusals[0], refusals[1], "{source}");
    }
}

#[tokio::test]
async fn no_path_leads_out_of_a_wiki() {
    let desk = ingested().await;
    let _worker = desk.world.worker().await;
    let outside = desk.world.folder.join("outside");
    std::fs::create_dir(&outside).unwrap();
    for path in ["secret.md", "wiki/secret.md"] {
        desk.world.vault.write(path, format!("# Secret\n\n{SECRET}\n"));
    }
    let crafted = format!(
        "---\nschema: knowledge.entry/v1\nslug: crafted\nkind: concept\ntitle: Crafted\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\n# Crafted\n\n\
         One.[^c00000001]\n\nTwo.[^c00000002]\n\n[^c00000001]: ../../secret.md — \"{SECRET}\"\n[^c00000002]: /etc/passwd — \"root:x:0:0:root\"\n"
    );
    desk.world.vault.write("wiki/allotment/concepts/crafted.md", crafted);
    let before = desk.world.vault.files();
    let mut client = Client::start(&desk, &["--workspace", "allotment"]).await;
    play(&mut client, list_path_cases()).await;
    check_footnotes(&mut client).await;
    assert_eq!(list_changed(&desk, &before), [""; 0]);
    let open = client.value("history", json!({"status": "pending"})).await;
    assert_eq!(open["entries"], json!([]), "a refused call leaves no run: {open:#}");
    // A link is put in the way after the page was staged, and again after the run was submitted.
    let mut page = create(TIDES, "Tides", "It ends in 2027.");
    page["content"] = json!(page["content"].as_str().unwrap().replace("concept", "timeline"));
    let run = client.value("write", page).await["run"].clone();
    let link = desk.world.vault.path().join("wiki/allotment/timelines");
    symlink(&outside, &link).unwrap();
    let result = client.call("read", json!({"path": TIDES})).await;
    assert!(is_refused(&result, "is_a_link"), "{result:#}");
    std::fs::remove_file(&link).unwrap();
    assert_eq!(client.value("write", submit(&run, "timelines/tides.md")).await["state"], "pending");
    symlink(&outside, &link).unwrap();
    let approve = ["wiki", "runs", "approve", run.as_str().unwrap()];
    desk.steward.run_in_terminal(&approve, "y\n").await.expect(3);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0, "nothing is committed through a link");
    // Without it the same run is committed.
    std::fs::remove_file(&link).unwrap();
    desk.steward.run_in_terminal(&approve, "y\n").await.expect(0);
    assert!(desk.read("timelines/tides.md").contains("It ends in 2027."));
    client.end().await;
}

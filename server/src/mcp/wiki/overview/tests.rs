use super::super::stream_events::NO_STREAMS;
use super::*;
use crate::mcp::tests::TestWiki;
use serde_json::json;

fn call_overview(wiki: &TestWiki, arguments: Value) -> Value {
    let result = wiki.call("overview", arguments).unwrap();
    let text = result.content[0].as_text().unwrap().text.clone();
    assert!(count_tokens(&text) <= MAX_TOKENS, "{} tokens", count_tokens(&text));
    result.structured_content.unwrap()
}

#[test]
fn it_shows_folders_new_pages_and_what_people_pinned() {
    let wiki = TestWiki::accepted("plot");
    let pinned = "metadata: {steward: {pinned: true}}\n";
    wiki.write("entities/plot-12.md", &TestWiki::render_page("plot-12", "entity", pinned, "By the river.\n"));
    let old = TestWiki::render_page("water", "concept", "", "It flows.\n").replace("2026-11-22", "2026-11-20");
    wiki.write("concepts/water.md", &old);
    wiki.write("concepts/deep/mud.md", "No page.\n");
    wiki.write("sources/2026/lease.md", &"x".repeat(401));
    let shown = call_overview(&wiki, json!({}));
    let rows: Vec<(&str, u64, u64)> = shown["tree"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["path"].as_str().unwrap(), row["files"].as_u64().unwrap(), row["tokens"].as_u64().unwrap()))
        .filter(|row| row.0 != "wiki")
        .map(|row| (row.0, row.1, if row.0.starts_with("raw") { row.2 } else { 0 }))
        .collect();
    assert_eq!(rows, [("raw", 1, 101), ("raw/2026", 1, 101), ("wiki/concepts", 2, 0), ("wiki/entities", 1, 0)]);
    let titles: Vec<&str> =
        shown["recent"].as_array().unwrap().iter().map(|row| row["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["The plot-12", "The water"]);
    assert_eq!(
        shown["pinned"],
        json!([{"path": "wiki/entities/plot-12.md", "title": "The plot-12", "updated_at": "2026-11-22T09:15:04Z"}])
    );
    assert_eq!((&shown["events"], &shown["notice"]), (&json!([]), &json!(NO_STREAMS)));
    assert_eq!((&shown["raw_tokens"], &shown["truncated"], shown.get("findings")), (&json!(101), &json!([]), None));
}

#[test]
fn findings_come_with_their_fixes_and_nothing_exceeds_the_limit() {
    let wiki = TestWiki::accepted("plot");
    wiki.write("concepts/water.md", &TestWiki::render_page("water", "concept", "", "See [[nowhere]].\n"));
    let shown = call_overview(&wiki, json!({"include": ["findings"]}));
    assert_eq!((shown.get("tree"), shown.get("notice")), (None, None));
    let found = shown["findings"].as_array().unwrap();
    assert_eq!(shown["findings_total"], found.len());
    let broken = found.iter().find(|row| row["code"] == "broken_ref").unwrap();
    assert_eq!(broken["path"], "wiki/concepts/water.md");
    assert!(!broken["fix"].as_str().unwrap().is_empty(), "{broken}");
    let links: String = (0..400).map(|at| format!("[[nowhere-{at}-{}]]\n\n", "ꙮ".repeat(60))).collect();
    for page in 0..60 {
        let title = format!("title: \"{}\"", "ꙮ\u{202e}".repeat(90));
        let text =
            TestWiki::render_page(&format!("p-{page}"), "concept", "metadata: {steward: {pinned: true}}\n", &links);
        let text = text.replace(&format!("title: \"The p-{page}\""), &title);
        wiki.write(&format!("folder-{page}-{}/p-{page}.md", "long".repeat(20)), &text);
    }
    let all = json!({"include": ["tree", "recent", "events", "pinned", "findings"]});
    let shown = call_overview(&wiki, all);
    assert!(shown["findings_total"].as_u64().unwrap() > 1_000, "{}", shown["findings_total"]);
    assert_eq!(shown["truncated"], json!(["tree", "recent", "pinned", "findings"]));
    assert!(!shown["findings"].as_array().unwrap().is_empty());
}

//! Long lists are divided: no part is too large for a model, and all parts together are the list.

use super::bench::{Bench, EventDraft, ask, attach, call_as, refuse};
use crate::access::{Toolset, WikiRight};
use crate::mcp::tests::TestWiki;
use crate::mcp::tokens::count_tokens;
use crate::mcp::tool::{ToolAnswer, ToolCall};
use crate::mcp::wiki::WIKI_TOOLS;
use crate::mcp::{McpCaller, McpVault};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a result may take of a model's context, in tokens.
const MAX_RESULT_TOKENS: usize = 8_000;

/// All rows of a list, part by part, and how many parts there were.
async fn read_parts(vault: &Arc<McpVault>, tool: &str, rows: &str, mut arguments: Value) -> (Vec<Value>, usize) {
    let (mut all, mut parts) = (Vec::new(), 0);
    loop {
        let part = ask(vault, tool, arguments.clone()).await;
        assert!(count_tokens(&part.to_string()) <= MAX_RESULT_TOKENS, "{tool}: {}", count_tokens(&part.to_string()));
        let shown = part[rows].as_array().unwrap();
        assert!(!shown.is_empty(), "{part}");
        all.extend(shown.iter().cloned());
        parts += 1;
        match part.get("cursor") {
            Some(cursor) => arguments["cursor"] = cursor.clone(),
            None => return (all, parts),
        }
        assert!(parts < 200, "{tool} has no end");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_with_much_around_them_come_in_parts() {
    let bench = Bench::new();
    let lines: String = (0..60).map(|n| format!("lease {n} {}\n", "ꙮ".repeat(380))).collect();
    for file in ["a", "b"] {
        bench.put(&format!("wiki/acme/sources/{file}.txt"), &lines);
    }
    let vault = bench.open([]);
    let arguments = json!({"pattern": "^lease", "path": "raw/**", "context": 5, "limit": 200});
    let (hits, parts) = read_parts(&vault, "grep", "hits", arguments.clone()).await;
    assert!(parts > 10, "{parts}");
    let places: BTreeSet<(String, u64)> =
        hits.iter().map(|hit| (hit["path"].to_string(), hit["line"].as_u64().unwrap())).collect();
    assert_eq!((hits.len(), places.len()), (120, 120));
    assert!(hits.is_sorted_by_key(|hit| (hit["path"].to_string(), hit["line"].as_u64())));
    // A limit divides a list as well, and a cursor fits its pattern alone.
    let (few, parts) =
        read_parts(&vault, "grep", "hits", json!({"pattern": "lease 1", "path": "raw/**", "limit": 4})).await;
    assert_eq!((few.len(), parts), (22, 6));
    let first = ask(&vault, "grep", arguments).await;
    assert_eq!(first["truncated"], true);
    let other = json!({"pattern": "lease", "path": "raw/**", "cursor": first["cursor"]});
    assert!(refuse(&vault, "grep", other).await.starts_with("error bad_cursor: "));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_comes_in_parts_newest_first() {
    let bench = Bench::new();
    // Each moment has two entries, and a part may end between them.
    let entry = |n: usize| {
        let moment = format!("2026-11-20T08:{:02}:00Z", n / 2);
        format!("## [{moment}] manual | Entry {n}\n- touched: {}\n\n", "a long name ".repeat(40))
    };
    let log: String = (0..90).map(entry).collect();
    bench.put("wiki/acme/_log.md", format!("# Log\n\n{log}"));
    let vault = bench.open([]);
    for limit in [7, 200] {
        let (entries, parts) = read_parts(&vault, "history", "entries", json!({"limit": limit})).await;
        assert!(parts > 1, "{limit}: {parts}");
        let titles: BTreeSet<String> = entries.iter().map(|entry| entry["title"].to_string()).collect();
        assert_eq!((entries.len(), titles.len()), (90, 90), "{limit}");
        assert!(entries.is_sorted_by(|a, b| a["at"].as_str() >= b["at"].as_str()), "{limit}");
    }
    let first = ask(&vault, "history", json!({"limit": 5})).await;
    bench.put("wiki/acme/_log.md", format!("# Log\n\n{log}{}", entry(300).replace("2026-11-20", "2026-11-25")));
    let second = ask(&vault, "history", json!({"limit": 5, "cursor": first["cursor"]})).await;
    let last = &first["entries"][4]["title"];
    assert!(
        second["entries"].as_array().unwrap().iter().all(|entry| entry["title"] != *last),
        "a new entry moves none"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_files_is_cut_by_its_tokens() {
    let bench = Bench::new();
    for n in 0..300 {
        bench.put(&format!("wiki/acme/sources/{n}-{}.txt", "ꙮ".repeat(60)), "words");
    }
    let vault = bench.open([]);
    let (entries, parts) = read_parts(&vault, "list", "entries", json!({"path": "raw/**", "limit": 500})).await;
    assert!(entries.len() == 300 && parts > 1, "{} {parts}", entries.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_come_in_parts_and_none_is_shown_twice() {
    let bench = Bench::new();
    for n in 0..300 {
        bench.put(&format!("wiki/acme/sources/{n:03}-{}.txt", "ꙮ".repeat(60)), "words");
    }
    let vault = bench.open([]);
    for limit in [70, 500] {
        let (sources, parts) = read_parts(&vault, "sources", "sources", json!({"limit": limit})).await;
        let paths: BTreeSet<&str> = sources.iter().map(|source| source["path"].as_str().unwrap()).collect();
        assert!(sources.len() == 300 && paths.len() == 300 && parts > 1, "{} {} {parts}", sources.len(), paths.len());
    }
    // A document that is put there meanwhile moves none.
    let first = ask(&vault, "sources", json!({"limit": 2})).await;
    bench.put("wiki/acme/sources/000-a.txt", "words");
    let second = ask(&vault, "sources", json!({"limit": 2, "cursor": first["cursor"]})).await;
    let begins = |value: &Value, prefix: &str| value["sources"][0]["path"].as_str().unwrap().starts_with(prefix);
    assert!(begins(&first, "raw/000-") && begins(&second, "raw/002-"), "{first} {second}");
}

#[tokio::test(flavor = "multi_thread")]
async fn beliefs_with_many_long_quotes_fit_into_an_answer() {
    let bench = Bench::new();
    for (beliefs, quotes, quote) in
        [(22, 8, "ꙮ".repeat(390)), (1, 40, "ꙮ".repeat(2_000)), (25, 1, "short words".into())]
    {
        let label = |belief: usize, quote: usize| format!("c{:08x}", belief * 100 + quote);
        let marks = |belief: usize| (0..quotes).map(|n| format!("[^{}]", label(belief, n))).collect::<String>();
        let said: String = (0..beliefs).map(|n| format!("Plot {n} ends in March.{}\n\n", marks(n))).collect();
        let notes = (0..beliefs).flat_map(|belief| (0..quotes).map(move |n| (belief, n)));
        let notes: String =
            notes.map(|(belief, n)| format!("[^{}]: lease — \"{quote}\"\n", label(belief, n))).collect();
        let page = TestWiki::render_page("lease", "concept", "", &format!("{said}{notes}"));
        bench.put("wiki/acme/concepts/lease.md", page);
        let vault = bench.open([]);
        let shown = ask(&vault, "why", json!({"query": "lease", "include_history": true})).await;
        let tokens = count_tokens(&shown.to_string());
        assert!(tokens <= MAX_RESULT_TOKENS, "{tokens}");
        let listed = shown["beliefs"].as_array().unwrap();
        assert!(!listed.is_empty() && listed.len() <= 20, "{}", listed.len());
        assert_eq!(shown["total"], beliefs);
        let shown_quotes = listed.iter().flat_map(|belief| belief["quotes"].as_array().unwrap());
        let lengths = shown_quotes.map(|it| it["quote"].as_str().unwrap().chars().count());
        assert!(lengths.max().is_none_or(|longest| longest <= 401));
        let notice = shown["notice"].as_str().unwrap();
        assert!(notice.starts_with("cut: not shown are "), "{notice}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_is_of_no_use_to_another_caller() {
    let bench = Bench::new();
    for n in 0..3 {
        bench.put(&format!("wiki/acme/sources/{n}.txt"), "words");
        let origin = format!("2026-11-2{n}T08:00:00Z");
        let text = format!("Mail {n}.");
        let (stream, pattern) = ("work", "mail:ann@b.example");
        bench.put_event(&EventDraft { stream, pattern, origin: &origin, subject: "Roof", text: &text });
    }
    let vault = bench.open([attach("acme", &["imap:work"], &[])]);
    for (tool, rows) in [("sources", "sources"), ("events", "events"), ("subscriptions", "items"), ("list", "entries")]
    {
        let mut arguments = match tool {
            "list" => json!({"path": "raw/**", "limit": 1}),
            _ => json!({"limit": 1}),
        };
        let first = ask(&vault, tool, arguments.clone()).await;
        arguments["cursor"] = first["cursor"].clone();
        let second = ask(&vault, tool, arguments.clone()).await;
        assert_eq!(second[rows].as_array().unwrap().len(), 1, "{tool}: {second}");
        let caller =
            McpCaller::new("eve".to_owned(), Some("acme".to_owned()), &[Toolset::Wiki], WikiRight::Read, false);
        let definition = WIKI_TOOLS.iter().find(|known| known.name == tool).unwrap();
        let call = ToolCall { vault: Arc::clone(&vault), caller, arguments: arguments.as_object().unwrap().clone() };
        let answer = tokio::task::spawn_blocking(move || (definition.run)(&call)).await.unwrap();
        assert!(answer.is_err_and(|error| error.to_string().starts_with("error bad_cursor: ")), "{tool}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_found_by_any_word_by_all_and_by_a_phrase() {
    let bench = Bench::new();
    let page = |slug: &str, tags: &str, body: &str| {
        let text = TestWiki::render_page(slug, "concept", &format!("tags: [{tags}]\n"), body);
        bench.put(&format!("wiki/acme/concepts/{slug}.md"), &text);
    };
    page("lease", "law, plots", "Above.\n\nThe lease ends in March.\n");
    page("rent", "law", "The end of the rent.\n\nA lease.\n");
    page("water", "plots", "It flows.\n");
    bench.put("wiki/acme/sources/lease.txt", "The lease ends.\n");
    bench.put("wiki/acme/sources/end.txt", "It ends. A lease.\n");
    let vault = bench.open_indexed([]).await;
    let find = async |arguments: Value| -> Vec<String> {
        let found = ask(&vault, "search", arguments).await;
        found["hits"].as_array().unwrap().iter().map(|hit| hit["path"].as_str().unwrap().to_owned()).collect()
    };
    let (lease, rent) = ("wiki/concepts/lease.md".to_owned(), "wiki/concepts/rent.md".to_owned());
    let any = find(json!({"query": "lease ends"})).await;
    assert_eq!(any.iter().collect::<BTreeSet<_>>(), [&lease, &rent].into());
    assert_eq!(find(json!({"query": "lease ends", "match": "all"})).await, std::slice::from_ref(&lease));
    assert_eq!(find(json!({"query": "ends lease", "match": "phrase"})).await, [""; 0]);
    assert_eq!(find(json!({"query": "lease ends", "match": "phrase"})).await, std::slice::from_ref(&lease));
    assert_eq!(find(json!({"query": "lease", "tags": ["law", "plots"]})).await, std::slice::from_ref(&lease));
    assert_eq!(find(json!({"query": "lease", "tags": ["law"]})).await.len(), 2);
    let raw = find(json!({"query": "lease ends", "kind": "raw", "match": "phrase"})).await;
    assert_eq!(raw, ["raw/lease.txt"]);
    let hit = ask(&vault, "search", json!({"query": "lease ends", "match": "phrase"})).await["hits"][0].clone();
    let text =
        TestWiki::render_page("lease", "concept", "tags: [law, plots]\n", "Above.\n\nThe lease ends in March.\n");
    let line = text.lines().position(|line| line == "The lease ends in March.").unwrap() + 1;
    assert_eq!((&hit["line"], &hit["tokens"]), (&json!(line), &json!(text.len().div_ceil(4))), "{hit}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hits_come_in_parts_and_a_cursor_ends_when_what_was_shown_is_found_no_more() {
    let bench = Bench::new();
    let page = |n: usize| format!("wiki/acme/concepts/p{n:02}.md");
    let put = |n: usize, body: &str| {
        let slug = format!("p{n:02}");
        bench.put(&page(n), TestWiki::render_page(&slug, "concept", "", body));
        bench.put(&format!("wiki/acme/sources/s{n:02}.txt"), body);
    };
    (0..40).for_each(|n| put(n, &format!("The lease of plot {n} {}\n", "ends ".repeat(n + 1))));
    let log: String = (0..40).map(|n| format!("## [2026-11-20T08:{n:02}:00Z] manual | The lease {n}\n\n")).collect();
    bench.put("wiki/acme/_log.md", format!("# Log\n\n{log}"));
    for vault in [bench.open([]), bench.open_indexed([]).await] {
        for kind in ["wiki", "raw", "log"] {
            for (limit, least) in [(7, 6), (100, 1)] {
                let arguments = json!({"query": "lease", "kind": kind, "limit": limit});
                let (hits, parts) = read_parts(&vault, "search", "hits", arguments).await;
                let each: BTreeSet<String> = hits.iter().map(|hit| format!("{}{}", hit["path"], hit["at"])).collect();
                assert_eq!((hits.len(), each.len(), parts >= least), (40, 40, true), "{kind} {limit}: {parts}");
                let all = ask(&vault, "search", json!({"query": "lease", "kind": kind, "limit": 100})).await;
                assert_eq!(
                    all["hits"].as_array().unwrap().iter().take(20).collect::<Vec<_>>(),
                    hits.iter().take(20).collect::<Vec<_>>()
                );
            }
        }
    }
    let vault = bench.open([]);
    let first = ask(&vault, "search", json!({"query": "lease", "limit": 5})).await;
    let again = |query: &str| json!({"query": query, "limit": 5, "cursor": first["cursor"]});
    assert!(refuse(&vault, "search", again("plot")).await.starts_with("error bad_cursor: "), "another query");
    let second = ask(&vault, "search", again("lease")).await;
    assert_eq!(second["hits"].as_array().unwrap().len(), 5);
    let shown = first["hits"][0]["path"].as_str().unwrap().replace("wiki/concepts/p", "").replace(".md", "");
    put(shown.parse().unwrap(), "It is gone.\n");
    let refused = refuse(&vault, "search", again("lease")).await;
    assert!(refused.starts_with("error bad_cursor: what the search finds has changed"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn images_are_shown_as_pictures_if_they_are_asked_for() {
    let bench = Bench::new();
    let put = |name: &str, bytes: &[u8]| bench.put(&format!("wiki/acme/sources/{name}"), bytes);
    let png = |size: usize| [b"\x89PNG\r\n\x1a\n".to_vec(), vec![0; size]].concat();
    bench.put("wiki/acme/sources/a.txt", "The plan is in the drawing.\n");
    (0..5).for_each(|n| put(&format!("drawing-{n}.png"), &png(n)));
    put("large.png", &png(1024 * 1024));
    put("lies.png", b"The lease ends.");
    let vault = bench.open([]);
    let read = async |arguments: Value| call_as(&vault, Some("acme"), "read", arguments).await;
    let Ok(ToolAnswer::TextWithImages { blocks, images }) =
        read(json!({"paths": ["raw/a.txt", "raw/drawing-0.png", "raw/lies.png"], "images": true})).await
    else {
        panic!("it holds an image")
    };
    assert_eq!((images.len(), images[0].media_type, images[0].bytes.clone()), (1, "image/png", png(0)));
    assert!(blocks[0].contains("The plan is in the drawing."), "{blocks:?}");
    assert!(blocks[1].contains("8 bytes, live, image/png, shown as image 1"), "{blocks:?}");
    assert!(blocks[2].contains("The lease ends."), "{blocks:?}");
    let Ok(ToolAnswer::TextWithImages { blocks, images }) =
        read(json!({"path": "raw/drawing-*.png", "images": true})).await
    else {
        panic!("they are images")
    };
    assert_eq!((images.len(), blocks.len()), (4, 5));
    assert!(blocks[4].contains("error too_large: ") && blocks[4].contains("at most 4 images"), "{blocks:?}");
    let refused = async |arguments: Value| refuse(&vault, "read", arguments).await;
    let plain = refused(json!({"path": "raw/drawing-0.png"})).await;
    assert!(plain.starts_with("error not_text: ") && plain.contains("Read it with `images`"), "{plain}");
    let large = refused(json!({"path": "raw/large.png", "images": true})).await;
    assert!(large.starts_with("error too_large: ") && large.contains("1 MiB"), "{large}");
}

//! Events belong to the wiki whose streams brought them, and nobody else sees a word of them.

use super::bench::{Bench, EventDraft, ask, attach, call_as, refuse};
use crate::mcp::tool::ToolAnswer;
use crate::mcp::wiki::WIKI_TOOLS;
use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};

const MAIL: EventDraft<'static> = EventDraft {
    stream: "work",
    pattern: "mail:ann@b.example",
    origin: "2026-11-20T08:00:00Z",
    subject: "Roof #123",
    text: "The roof leaks.\nSee https://git.example/issues/77.",
};

fn fill(bench: &Bench) {
    bench.put_event(&MAIL);
    bench.put_event(&EventDraft { origin: "2026-11-16T08:00:00Z", subject: "Older", text: "An older mail.", ..MAIL });
    bench.put_event(&EventDraft {
        stream: "calls",
        pattern: "webhook:ci",
        origin: "2026-11-17T08:00:00Z",
        subject: "Build",
        text: "The build of the roof failed.",
    });
    bench.put_event(&EventDraft { stream: "private", text: "A zebra for Ann #123.", subject: "Zebra", ..MAIL });
}

fn titles(value: &Value) -> Vec<&str> {
    value["events"].as_array().unwrap().iter().map(|event| event["title"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_chosen_by_source_time_author_words_and_reference() {
    let bench = Bench::new();
    fill(&bench);
    let vault = bench.open_indexed([attach("acme", &["imap:work", "webhook:calls"], &[])]).await;
    for (arguments, expected) in [
        (json!({}), vec!["Roof #123", "Build", "Older"]),
        (json!({"source": "webhook:calls"}), vec!["Build"]),
        (json!({"type": "mail"}), vec!["Roof #123", "Older"]),
        (json!({"actor": "ANN@b"}), vec!["Roof #123", "Older"]),
        (json!({"since": "2026-11-17", "until": "2026-11-20"}), vec!["Build"]),
        (json!({"query": "roof"}), vec!["Roof #123", "Build"]),
        (json!({"query": "roof build"}), vec!["Build"]),
        (json!({"ref": "#123"}), vec!["Roof #123"]),
        (json!({"ref": "77"}), vec!["Roof #123"]),
        (json!({"ref": "#12"}), vec![]),
    ] {
        let found = ask(&vault, "events", arguments.clone()).await;
        assert_eq!(titles(&found), expected, "{arguments}");
        assert!(found.get("notice").is_none(), "{found}");
    }
    let first = ask(&vault, "events", json!({"limit": 1})).await;
    let event = &first["events"][0];
    assert_eq!(
        (&event["at"], &event["source"], &event["actor"]),
        (&json!("2026-11-20T08:00:00Z"), &json!("imap:work"), &json!("ann@b.example"))
    );
    assert_eq!(event["refs"], json!([{"text": "#123"}, {"text": "77"}]));
    assert_eq!(event["excerpt"], "The roof leaks. See https://git.example/issues/77.");
    let rest = ask(&vault, "events", json!({"limit": 1, "cursor": first["cursor"]})).await;
    assert_eq!(titles(&rest), ["Build"]);
    let other = refuse(&vault, "events", json!({"limit": 2, "cursor": first["cursor"]})).await;
    assert!(other.contains("bad_cursor"), "{other}");
}

#[tokio::test(flavor = "multi_thread")]
async fn items_spans_hits_and_adapters_are_those_of_the_wiki() {
    let bench = Bench::new();
    fill(&bench);
    bench.put("wiki/acme/sources/roof.txt", "Tiles of the roof.\n");
    let attachments = || [attach("acme", &["imap:work", "webhook:calls"], &[])];
    // The index is made only after the files were read without one.
    for notice in [true, false] {
        let vault = if notice { bench.open(attachments()) } else { bench.open_indexed(attachments()).await };
        let items = ask(&vault, "subscriptions", json!({"adapter": "imap:work"})).await;
        let listed: Vec<&str> =
            items["items"].as_array().unwrap().iter().map(|it| it["title"].as_str().unwrap()).collect();
        assert_eq!((listed, &items["total"]), (vec!["Roof #123", "Older"], &json!(2)));
        assert_eq!(
            items.get("notice").is_some_and(|it| it.as_str().unwrap().starts_with("no_index")),
            notice,
            "{items}"
        );
        assert_eq!(ask(&vault, "subscriptions", json!({"status": "ingested"})).await["items"], json!([]));
        let spans =
            ask(&vault, "timeline", json!({"grain": "week", "since": "2026-11-01", "until": "2026-11-30"})).await;
        assert_eq!((&spans["buckets"][0]["begin"], &spans["buckets"][0]["total"]), (&json!("2026-11-16"), &json!(3)));
        assert_eq!(spans["buckets"][0]["counts"][0], json!({"source": "imap:work", "type": "mail", "count": 2}));
        assert_eq!(spans["buckets"][0]["highlights"][0]["title"], "Roof #123");
        let hits = ask(&vault, "search", json!({"query": "build failed", "kind": "event"})).await;
        assert_eq!((hits["hits"].as_array().unwrap().len(), &hits["hits"][0]["title"]), (1, &json!("Build")));
        let hits = ask(&vault, "search", json!({"query": "tiles", "kind": "raw"})).await;
        assert_eq!(
            (&hits["hits"][0]["path"], &hits["hits"][0]["snippet"]),
            (&json!("raw/roof.txt"), &json!("Tiles of the roof."))
        );
        let adapters = ask(&vault, "sources", json!({})).await;
        let named: Vec<(&str, u64)> = adapters["adapters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| (it["name"].as_str().unwrap(), it["total"].as_u64().unwrap()))
            .collect();
        assert_eq!(named, [("raw", 1), ("imap:work", 2), ("webhook:calls", 1)]);
        let few = ask(&vault, "sources", json!({"kind": "webhook"})).await;
        assert_eq!(few["adapters"].as_array().unwrap().len(), 1);
    }
    let error = refuse(&bench.open(attachments()), "timeline", json!({"since": "2020-01-01"})).await;
    assert!(error.contains("120 spans"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_counts_the_events_of_seven_days_by_source() {
    let bench = Bench::new();
    for (stream, days) in [("work", 1), ("work", 6), ("work", 8), ("calls", 2), ("private", 1)] {
        let origin = (Utc::now() - TimeDelta::days(days)).to_rfc3339();
        bench.put_event(&EventDraft { stream, origin: &origin, text: &origin, ..MAIL });
    }
    let vault = bench.open_indexed([attach("acme", &["imap:work", "webhook:calls"], &[])]).await;
    let overview = ask(&vault, "overview", json!({"include": ["events"]})).await;
    let counts = json!([{"source": "imap:work", "count": 2}, {"source": "webhook:calls", "count": 1}]);
    assert_eq!((&overview["events"], overview.get("notice")), (&counts, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wiki_without_streams_has_no_events_and_says_what_to_set() {
    let bench = Bench::new();
    fill(&bench);
    let vault = bench.open([attach("home", &["imap:work"], &[])]);
    for (tool, list) in
        [("events", "events"), ("subscriptions", "items"), ("timeline", "buckets"), ("overview", "events")]
    {
        let value = ask(&vault, tool, json!({})).await;
        assert_eq!(value[list], json!([]), "{tool}");
        let notice = value["notice"].as_str().unwrap();
        assert!(notice.starts_with("no_streams") && notice.contains("[wiki.<name>] streams"), "{notice}");
    }
    let value = ask(&vault, "search", json!({"query": "roof", "kind": "event"})).await;
    assert!(value["hits"] == json!([]) && value["notice"].as_str().unwrap().starts_with("no_streams"), "{value}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_sees_a_word_of_the_streams_of_another_wiki() {
    let bench = Bench::new();
    fill(&bench);
    let attachments = || [attach("acme", &["imap:work"], &[]), attach("home", &["imap:private"], &[])];
    let with_words = |tool: &str| match tool {
        "grep" => vec![json!({"pattern": "(?i)zebra"})],
        "search" => ["wiki", "raw", "log", "event"].map(|kind| json!({"query": "zebra", "kind": kind})).to_vec(),
        "events" => {
            vec![json!({}), json!({"query": "zebra"}), json!({"ref": "#123"}), json!({"source": "imap:private"})]
        }
        "subscriptions" => vec![json!({}), json!({"adapter": "imap:private"})],
        "timeline" => vec![json!({"since": "2026-11-01", "until": "2026-11-30"}), json!({"source": "imap:private"})],
        "read" => vec![json!({"path": "**"}), json!({"path": "raw/../../../stream"})],
        "why" => vec![json!({"query": "zebra"})],
        "follow" => vec![json!({"from_page": "wiki/x.md", "footnote_id": "zebra"})],
        "git_show" => vec![json!({"rev": "HEAD"})],
        "git_blame" => vec![json!({"path": "x"})],
        _ => vec![json!({})],
    };
    for is_indexed in [false, true] {
        let vault = if is_indexed { bench.open_indexed(attachments()).await } else { bench.open(attachments()) };
        // The mail is there for whoever reads the other wiki.
        let Ok(ToolAnswer::Value(own)) = call_as(&vault, Some("home"), "events", json!({})).await else { panic!() };
        assert_eq!(titles(&own), ["Zebra"]);
        for tool in WIKI_TOOLS {
            for mut arguments in with_words(tool.name) {
                for pin in [Some("acme"), None] {
                    arguments["workspace"] = json!("acme");
                    let answer = match call_as(&vault, pin, tool.name, arguments.clone()).await {
                        Ok(ToolAnswer::Value(value)) => value.to_string(),
                        Ok(
                            ToolAnswer::Text(blocks)
                            | ToolAnswer::TextWithMeta { blocks, .. }
                            | ToolAnswer::TextWithImages { blocks, .. },
                        ) => blocks.join("\n"),
                        Err(error) => error.to_string(),
                    };
                    let words = ["Zebra", "A zebra for Ann", "stream/private", "private/"];
                    assert!(words.iter().all(|word| !answer.contains(word)), "{} {arguments}: {answer}", tool.name);
                }
                arguments["workspace"] = json!("home");
                assert!(call_as(&vault, Some("acme"), tool.name, arguments).await.is_err(), "{}", tool.name);
            }
        }
    }
}

//! Footnotes: their quotes are found when a page is staged, and compared with their documents whenever one is followed.

use super::{
    Case, LEASE_FILE, LEASE_PATH, PLOT, STOPCOCK, case, create, create_with_footnote, has_text, is_equal, is_refused,
    list_rows, play,
};
use crate::mcp::{Client, ingested};
use crate::wiki_runs::LEASE;
use crate::wiki_writer::QUOTE;
use serde_json::{Value, json};
use steward_domain::action::plan::ContentHash;

const PAGE: &str = "wiki/concepts/cited.md";

/// The cases of footnotes that are staged.
fn list_staging_cases() -> Vec<Case> {
    let two = format!(
        "---\ntitle: Cited\nkind: concept\n---\nIt ends in 2027.[^a]\n\nA stopcock is a valve.[^b]\n\n[^a]: 2026-11-20-lease — \"{QUOTE}\"\n\
         [^b]: {LEASE_PATH} — \"A stopcock is a valve that shuts off the water.\"\n"
    );
    let invented = "2026-11-20-lease — \"The lease of Plot 12 never ends.\"";
    let without_quote = |footnote: &str| create_with_footnote(PAGE, "Cited", "It ends in 2027.", footnote);
    vec![
        case(
            "both footnotes are found, by the id of a source and by its path",
            "write",
            json!({"op": "create", "path": PAGE, "content": two}),
            |it| {
                let [first, second] = list_rows(it, "quotes") else { return false };
                let is_of_lease = |row: &Value| row["source"] == "2026-11-20-lease";
                is_of_lease(first) && is_of_lease(second) && first["label"] != second["label"]
            },
        ),
        case(
            "a footnote without a quote is refused with the form of one",
            "write",
            without_quote("2026-11-20-lease, p.3"),
            |it| it["isError"] == json!(true) && has_text(it, "[^1]: <source> — "),
        ),
        case("a quote of another length is refused", "write", without_quote("2026-11-20-lease — \"Plot 12\""), |it| {
            is_refused(it, "quote_missing")
        }),
        case("a quote that stands nowhere is refused with the nearest words", "write", without_quote(invented), |it| {
            is_refused(it, "quote_not_found") && has_text(it, &format!(" nearest⟧\n{QUOTE}\n"))
        }),
        case(
            "a source that there is not is refused",
            "write",
            without_quote("nobody — \"Words of nobody at all.\""),
            |it| is_refused(it, "quote_missing") && has_text(it, "`nobody`"),
        ),
    ]
}

fn follow() -> Value {
    json!({"from_page": PLOT, "footnote_id": "1"})
}

/// Follows a footnote, and checks how its words compare with those of the document.
async fn check_state(client: &mut Client, name: &str, expected: &str) -> Value {
    let followed = client.value("follow", follow()).await;
    assert_eq!(followed["verified"], expected, "{name}: {followed:#}");
    assert_eq!(followed["quote"], QUOTE, "{name}: {followed:#}");
    followed
}

#[tokio::test]
async fn quotes_are_found_and_compared_as_those_of_others() {
    let desk = ingested().await;
    let mut client = Client::start(&desk, &["--workspace", "allotment"]).await;
    play(&mut client, list_staging_cases()).await;
    // The hash of a quote is that of its words, each time.
    let first = check_state(&mut client, "the words stand there", "ok").await;
    assert_eq!(client.value("follow", follow()).await, first);
    assert_eq!(first["quote_sha256"], ContentHash::hash_bytes(QUOTE.as_bytes()).as_str());
    assert_eq!(first["offset"], json!(LEASE.find(QUOTE)));
    // Blanks and line breaks do not matter.
    let blanks = format!("2026-11-20-lease — \"  {} \"", QUOTE.replace("of Plot", "of\n  Plot "));
    let staged = client.value("write", create_with_footnote(PAGE, "Cited", "It ends in 2027.", &blanks)).await;
    let found = &staged["quotes"][0];
    assert_eq!((&found["quote"], &found["label"]), (&json!(QUOTE), &first["label"]), "{staged:#}");
    // The document changes around the words, then in them, and then is gone.
    desk.edit(LEASE_FILE, |text| text.replace(QUOTE, &format!("Mind: {QUOTE} That is all.")));
    let moved = check_state(&mut client, "other words around them", "moved").await;
    assert!(moved["before"].as_str().unwrap().ends_with("Mind: "), "{moved:#}");
    assert_eq!(moved["quote_sha256"], first["quote_sha256"]);
    desk.edit(LEASE_FILE, |text| text.replace("31 March 2027", "1 April 2027"));
    let drifted = check_state(&mut client, "other words", "drifted").await;
    assert!(drifted.get("offset").is_none() && drifted.get("before").is_none(), "{drifted:#}");
    let refused = client.call("write", create("wiki/concepts/later.md", "Later", "It ends in 2027.")).await;
    assert!(is_refused(&refused, "source_drifted"), "{refused:#}");
    std::fs::remove_file(desk.world.vault.path().join("wiki/allotment").join(LEASE_FILE)).unwrap();
    check_state(&mut client, "no document", "missing").await;
    desk.world.vault.write(&format!("wiki/allotment/{LEASE_FILE}"), LEASE);
    assert_eq!(check_state(&mut client, "the document is there again", "ok").await, first);
    // A footnote that somebody edited proves nothing.
    desk.edit("concepts/stopcock.md", |text| text.replace("— \"A stopcock is a valve", "— \"A stopcock is a tap"));
    let edited = json!({"from_page": STOPCOCK, "footnote_id": "1"});
    play(
        &mut client,
        vec![case("edited words are told from those of a document", "follow", edited, |it| {
            is_equal(it, "verified", &json!("edited"))
        })],
    )
    .await;
    client.end().await;
}

//! Limits: of the tokens of a guide and of a read, and of the calls of models that a measurement and a check take.

use super::{Case, add_verifier, case, create, has_text, is_equal, is_refused, list_changed, list_rows, play, submit};
use crate::mcp::{Client, ingested};
use crate::wiki_runs::{Desk, LEASE};
use crate::wiki_writer::report;
use serde_json::{Value, json};
use steward_tests::clerk::Clerk;

const LONG_A: &str = "raw/long-a.md";
const LONG_B: &str = "raw/long-b.md";
/// How often a caller may have a wiki measured in a day.
const MEASUREMENTS: usize = 6;
/// The setting of the calls that all models together may take.
const CALLS_AN_HOUR: &str = "STEWARD_CAPS_PER_HOUR";
/// The setting of the tokens that one wiki may take.
const TOKENS_A_DAY: &str = "STEWARD_CAPS_WIKI_TOKENS_PER_DAY";

/// Where the files of a read go on, in bytes.
fn list_offsets(result: &Value) -> Vec<u64> {
    let blocks = result["content"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
    let offset = |text: &str| text.lines().next()?.split_once("goes on at offset ")?.1.parse().ok();
    blocks.filter_map(offset).collect()
}

fn measure() -> Value {
    json!({"metric": "M1", "action": "run"})
}

/// The cases of what a client reads.
fn list_reading_cases() -> Vec<Case> {
    let read = |tokens: u64| json!({"path": LONG_A, "max_tokens": tokens});
    vec![
        case("a guide within its limits is shown, and states its counts and limits", "guide", json!({}), |it| {
            let facts = &it["_meta"]["io.steward/guide"];
            let fits = |part: &str, limit: u64| {
                facts[part]["limit"] == limit
                    && facts[part]["tokens"].as_u64().is_some_and(|tokens| tokens > 0 && tokens <= limit)
            };
            fits("l0", 500) && fits("l1", 1_500)
        }),
        // No token of such words is longer than 8 bytes.
        case("a read stays within its tokens, and says where it goes on", "read", read(500), |it| {
            let [offset] = list_offsets(it)[..] else { return false };
            offset > 500 && offset < 4_000
        }),
        case("a read of too few tokens is refused", "read", read(99), |it| is_refused(it, "bad_arguments")),
        case("a read of too many tokens is refused", "read", read(20_001), |it| is_refused(it, "bad_arguments")),
    ]
}

/// Two files share the tokens that one of them would have alone.
async fn check_shared_tokens(client: &mut Client) {
    let alone = list_offsets(&client.call("read", json!({"path": LONG_A, "max_tokens": 1_000})).await);
    let both = list_offsets(&client.call("read", json!({"paths": [LONG_A, LONG_B], "max_tokens": 1_000})).await);
    assert_eq!((alone.len(), both.len()), (1, 2));
    assert!(
        both.iter().sum::<u64>() <= alone[0] && both.iter().all(|offset| *offset > alone[0] / 4),
        "{alone:?} {both:?}"
    );
}

/// What is in force stays the same to the byte until a person accepts other files, and is refused if it has become too long.
async fn check_guide(desk: &Desk, client: &mut Client) {
    let first = client.call("guide", json!({})).await;
    let write_identity = |text: &str| desk.world.vault.write("wiki/allotment/identity.md", text);
    let accept = async || {
        desk.steward.run_in_terminal(&["wiki", "validate", "allotment", "--accept"], "y\n").await.expect(0);
    };
    write_identity(&"It lies by the river, and many people know it.\n\n".repeat(60));
    desk.edit("overview.md", |text| text + "\nMore words.\n");
    let same = client.call("guide", json!({})).await;
    let key = "io.steward/guide";
    assert_eq!(same["content"][0], first["content"][0], "a client may keep it");
    assert_eq!(same["_meta"][key]["l0"]["sha256"], first["_meta"][key]["l0"]["sha256"]);
    assert_ne!(same["content"][1], first["content"][1]);
    accept().await;
    play(
        client,
        vec![case("a guide that is too long is refused with what to prune", "guide", json!({}), |it| {
            is_refused(it, "budget_exceeded")
                && has_text(it, "identity.md makes the guide too long")
                && has_text(it, "500 are allowed")
        })],
    )
    .await;
    write_identity("It lies by the river.\n");
    accept().await;
    play(
        client,
        vec![case("a guide that was pruned is shown again", "guide", json!({}), |it| {
            has_text(it, "It lies by the river.\n")
        })],
    )
    .await;
}

/// Without room for a call no model is asked: staging goes on, and nothing is committed.
async fn check_no_room(desk: &Desk, client: &mut Client, verifier: &Clerk) {
    play(
        client,
        vec![
            case("a measurement without room is refused with the cap", "eval", measure(), |it| {
                is_refused(it, "guard_refused") && has_text(it, TOKENS_A_DAY)
            }),
            case("the figures are shown without any call", "eval", json!({"metric": "M1"}), |it| {
                list_rows(it, "metrics").len() == 1 && it["structuredContent"].get("run").is_none()
            }),
        ],
    )
    .await;
    let before = desk.world.vault.files();
    let staged = client.value("write", create("wiki/concepts/spring.md", "Spring", "It ends in spring.")).await;
    assert_eq!(staged["state"], "open", "staging asks no model: {staged:#}");
    let judged = client.value("write", submit(&staged["run"], "concepts/spring.md")).await;
    assert_eq!(judged["state"], "rejected", "{judged:#}");
    assert!(judged["warnings"][0].as_str().unwrap().contains(TOKENS_A_DAY), "{judged:#}");
    assert_eq!(list_changed(desk, &before), [""; 0], "what nobody checked is not committed");
    assert_eq!(verifier.asked().len(), 0, "each call is reserved before it is sent");
}

/// A cap that clears by itself is not waited for: the refusal says when it does.
async fn check_full_hour(client: &mut Client, verifier: &Clerk) {
    let asked = verifier.asked().len();
    play(
        client,
        vec![case("a measurement in an hour that is full is refused until it clears", "eval", measure(), |it| {
            is_refused(it, "guard_refused") && has_text(it, "it has room again at 20")
        })],
    )
    .await;
    assert_eq!(verifier.asked().len(), asked);
}

/// With room a measurement is made, but not without end.
async fn check_measurements(client: &mut Client, count: usize) {
    for _ in 0..count {
        play(
            client,
            vec![case("a measurement with room is made", "eval", measure(), |it| {
                let [metric] = list_rows(it, "metrics") else { return false };
                is_equal(it, "run", &json!("measured")) && metric["score"] == 1.0
            })],
        )
        .await;
    }
}

/// What was measured often enough is measured no more.
async fn check_last_measurement(client: &mut Client, verifier: &Clerk) {
    let asked = verifier.asked().len();
    assert!(asked >= MEASUREMENTS, "{asked}");
    play(
        client,
        vec![
            case("a seventh measurement of a day is refused", "eval", measure(), |it| {
                is_refused(it, "too_fast") && has_text(it, "6 times within a day")
            }),
            case("what pages cost is counted in tokens", "eval", json!({"metric": "M4"}), |it| {
                let [cost] = list_rows(it, "metrics") else { return false };
                // Fixed rules wrote the pages. A question to all sources takes about a quarter of their characters.
                cost["ingest_tokens"] == 0 && cost["question_tokens"] == LEASE.chars().count().div_ceil(4)
            }),
        ],
    )
    .await;
    assert_eq!(verifier.asked().len(), asked);
}

#[tokio::test]
async fn limits_hold_as_those_of_others() {
    let verifier = Clerk::start(|asked| report(asked, "nothing of this")).await;
    let desk = ingested().await;
    for path in ["sources/long-a.md", "sources/long-b.md"] {
        let text = "Words of a long document, line by line.\n".repeat(2_000);
        desk.world.vault.write(&format!("wiki/allotment/{path}"), text);
    }
    let steward = add_verifier(&desk.steward, &verifier);
    let worker = desk.world.worker_with(&steward.with(TOKENS_A_DAY, 10)).await;
    let mut client = Client::start(&desk, &["--workspace", "allotment"]).await;
    play(&mut client, list_reading_cases()).await;
    check_shared_tokens(&mut client).await;
    check_guide(&desk, &mut client).await;
    check_no_room(&desk, &mut client, &verifier).await;
    worker.stop().await;
    let worker = desk.world.worker_with(&steward).await;
    check_measurements(&mut client, 1).await;
    worker.stop().await;
    let worker = desk.world.worker_with(&steward.with(CALLS_AN_HOUR, 1)).await;
    check_full_hour(&mut client, &verifier).await;
    worker.stop().await;
    let _worker = desk.world.worker_with(&steward).await;
    check_measurements(&mut client, MEASUREMENTS - 1).await;
    check_last_measurement(&mut client, &verifier).await;
    client.end().await;
}

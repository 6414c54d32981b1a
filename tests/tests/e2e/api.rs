//! The control API: decisions, a person's resolutions, and the scopes of callers.

use reqwest::Method;
use serde_json::{Value, json};
use steward_domain::action::plan::Disposition;
use steward_tests::api::{self, Api};
use steward_tests::run;
use steward_tests::vault::Signal;
use steward_tests::world::World;

const RECENT: &str = "/api/v1/steward/recent-actions";

async fn acting(world: &World, api: &Api) -> Api {
    api.token(world, "act").await
}

fn words(answer: &Value) -> (&str, &str) {
    (answer["kind"].as_str().unwrap(), answer["disposition"].as_str().unwrap())
}

#[tokio::test]
async fn a_change_is_listed_with_what_decided_and_undone_once() {
    let world = World::with_one_done().await.live();
    let original = world.vault.read("task/rent.md");
    let (_up, api) = api::up(&world).await;
    world.tick("house").await;
    let api = acting(&world, &api).await;

    let listed = api.get(RECENT).await.expect(200);
    assert_eq!((&listed["truncated"], &listed["limit"]), (&json!(false), &json!(100)));
    let action = &listed["actions"][0];
    assert_eq!(words(action), ("steward-action", "live"));
    assert_eq!(action["change"], json!({"field": "state", "before": "open", "after": "done"}));
    assert_eq!(action["evidence"][0]["quote"].as_str().map(str::is_empty), Some(false), "{action}");
    assert!(action["gates"].as_array().unwrap().iter().all(|gate| gate["open"] == json!(true)), "{action}");
    let id = action["id"].as_str().unwrap();
    let whole = api.get(&format!("/api/v1/steward/actions/{}", &id[..6])).await.expect(200);
    assert_eq!((&whole["id"], &whole["seq"]), (&json!(id), &json!(1)));
    assert_eq!(whole["clerk"]["provider"], json!("rules"), "{whole}");
    assert_eq!(whole["workflow"]["run_id"].as_str().map(str::len), Some(36), "{whole}");

    let done = api.answer("undo", &id[..8]).await.expect(200);
    assert_eq!(done["target"], json!("task/rent.md"));
    assert_eq!(world.vault.read("task/rent.md"), original);
    let undo = world.vault.records().last().unwrap().draft.resolution.clone().unwrap();
    assert_eq!(
        (undo.by.split('#').next().unwrap(), undo.reason.as_deref()),
        ("token:test act", Some("as the test says"))
    );

    let again = api.answer("undo", id).await.expect(409);
    assert_eq!(again["refused"], json!("already_resolved"), "{again}");
    assert!(again["detail"].as_str().unwrap().contains("token:test act#"), "{again}");
    assert_eq!(world.vault.records().len(), 2);
    let listed = api.get(RECENT).await.expect(200);
    assert_eq!(listed["actions"][0]["resolves"], json!(id));
    assert_eq!(listed["actions"][1]["resolution"], json!("steward-action-reversed"));
    assert_eq!(listed["actions"][1]["undo_until"], Value::Null);
    world.verify_chain().await;
}

#[tokio::test]
async fn every_click_that_cannot_be_gets_its_status() {
    let world = World::with_one_done().await.live();
    world.vault.task("roof", "house");
    world.vault.signal("s2", &Signal { effect_confidence: 0.9, ..Signal::done("roof") });
    let (_up, api) = api::up(&world).await;
    let api = acting(&world, &api).await;
    world.tick("house").await;
    let records = world.vault.records();
    let id = |disposition| records.iter().find(|r| r.draft.disposition == disposition).unwrap().draft.id.to_string();
    let (live, waits) = (id(Disposition::Live), id(Disposition::Pending));

    assert_eq!(api.answer("undo", "ffffffffffffffff").await.expect(404)["refused"], Value::Null);
    for nonsense in ["zzzz", "abc", "%2e%2e%2f", "0123456789abcdef0"] {
        assert_eq!(api.answer("undo", nonsense).await.status, 400, "{nonsense}");
    }
    assert_eq!(api.answer("confirm", &live).await.expect(400)["refused"], json!("not_pending"));
    assert_eq!(api.answer("undo", &waits).await.expect(400)["refused"], json!("nothing_to_undo"));

    let text = String::from_utf8(world.vault.read("task/rent.md")).unwrap();
    world.vault.write("task/rent.md", text.replace("state: done", "state: archived"));
    let conflict = api.answer("undo", &live).await.expect(409);
    assert_eq!((&conflict["refused"], &conflict["fields"]), (&json!("conflict"), &json!(["state"])), "{conflict}");
    assert_eq!(world.vault.state("rent"), "archived");

    assert_eq!(api.post(&format!("/api/v1/steward/dismiss/{waits}"), &json!({"why": 1})).await.status, 400);
    let _ = api.answer("dismiss", &waits).await.expect(200);
    assert_eq!(api.answer("confirm", &waits).await.expect(409)["refused"], json!("already_resolved"));
    assert_eq!(world.vault.state("roof"), "open");
}

#[tokio::test]
async fn what_is_proposed_is_confirmed_and_that_can_be_undone() {
    let world = World::new().await.live();
    world.vault.matter("house");
    world.vault.task("rent", "house");
    world.vault.signal("s1", &Signal { effect_confidence: 0.9, ..Signal::done("rent") });
    let (_up, api) = api::up(&world).await;
    let api = acting(&world, &api).await;
    world.tick("house").await;
    let listed = api.get(&format!("{RECENT}?target=task/rent.md&limit=1")).await.expect(200);
    let waiting = &listed["actions"][0];
    assert_eq!((&waiting["waits"], &waiting["confirmable"]), (&json!(true), &json!(true)), "{waiting}");
    let done = api.answer("confirm", waiting["id"].as_str().unwrap()).await.expect(200);
    assert_eq!(world.vault.state("rent"), "done");
    let _ = api.answer("undo", done["action"].as_str().unwrap()).await.expect(200);
    assert_eq!(world.vault.state("rent"), "open");
    let first = api.get(&format!("{RECENT}?limit=1")).await.expect(200);
    assert_eq!((&first["truncated"], &first["actions"][0]["kind"]), (&json!(true), &json!("steward-action-reversed")));
}

#[tokio::test]
async fn only_who_may_is_answered_and_only_by_our_own_name() {
    let world = World::with_one_done().await;
    let (_up, api) = api::up(&world).await;
    world.tick("house").await;
    let shadow = world.vault.records()[0].draft.id.to_string();
    assert_eq!(api.get("/healthz").await.body, "ok");
    assert_eq!(api.get("/readyz").await.body, "ready");
    let nobody = api.get(RECENT).await;
    assert_eq!(nobody.status, 401);
    assert!(nobody.headers.contains_key("www-authenticate"), "{nobody:?}");
    assert_eq!(api.get("/api/v1/steward/nothing").await.status, 401, "an anonymous client learns of no address");
    let wrong = api.with("authorization", "Bearer steward_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    assert_eq!(wrong.get(RECENT).await.status, 401);
    assert_eq!(api.with("cookie", "steward_session=e30.AAAA").get(RECENT).await.status, 401);

    let reader = api.token(&world, "read").await;
    let listed = reader.get(RECENT).await;
    assert_eq!(listed.status, 200);
    for header in ["content-security-policy", "x-content-type-options", "referrer-policy", "cache-control"] {
        assert!(listed.headers.contains_key(header), "{header}: {listed:?}");
    }
    assert_eq!(reader.answer("undo", &shadow).await.status, 403);
    assert_eq!(acting(&world, &api).await.answer("undo", &shadow).await.status, 400);
    assert_eq!(reader.with("host", "evil.example").get(RECENT).await.status, 421);
    assert_eq!(reader.get("/api/v1/steward/nothing").await.status, 404);
    assert_eq!(reader.ask(Method::DELETE, RECENT, None).await.status, 405);
    for query in ["limit=0", "limit=501", "limit=x", "since=yesterday", "target=../x", "target=task/%00.md"] {
        assert_eq!(reader.get(&format!("{RECENT}?{query}")).await.status, 400, "{query}");
    }

    let tokens = world.json(&["token", "list"]).await;
    let id = tokens[0]["id"].as_str().unwrap();
    world.run(&["token", "revoke", id]).await.expect(0);
    world.run(&["token", "revoke", id]).await.expect(1);
    assert_eq!(reader.get(RECENT).await.status, 401, "a token that is taken away is nobody's at once");
}

#[tokio::test]
async fn a_server_beside_the_worker_tells_and_asks_the_same() {
    let world = World::with_one_done().await.live();
    let _worker = world.worker().await;
    world.tick("house").await;
    let mut serve = world.steward.with("STEWARD_LISTEN", "127.0.0.1:0").start(&["serve"]);
    serve.says("Ctrl-C ends it").await;
    let out = serve.out();
    let link = out.lines().find_map(|line| line.strip_prefix("dashboard")).unwrap().trim();
    let api = acting(&world, &Api::new(link.split("/login").next().unwrap())).await;
    let listed = api.get(RECENT).await.expect(200);
    let _ = api.answer("undo", listed["actions"][0]["id"].as_str().unwrap()).await.expect(200);
    assert_eq!(world.vault.state("rent"), "open");
    assert!(serve.stop().await.success());
}

/// A fuzzer compares every response with the OpenAPI description; the server must withstand it.
#[tokio::test]
async fn a_fuzzer_finds_no_fault_with_the_description() {
    let world = World::with_one_done().await.live();
    world.vault.task("roof", "house");
    world.vault.signal("s2", &Signal { effect_confidence: 0.9, ..Signal::done("roof") });
    let (_up, api) = api::up(&world).await;
    world.tick("house").await;
    let made = world.json(&["token", "create", "--scope", "act", "--name", "fuzzer"]).await;
    let (said, fine) = fuzz(&api, &format!("Bearer {}", made["token"].as_str().unwrap())).await;
    assert!(fine, "{said}");
    assert!(said.contains("Tested: 16") && said.contains("passed"), "{said}");
    let (said, fine) = fuzz(&api, "Bearer steward_nobody").await;
    assert!(!fine || !said.contains("passed"), "an API that lets nobody in is not tested: {said}");
}

async fn fuzz(api: &Api, token: &str) -> (String, bool) {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut command = tokio::process::Command::new("python3");
    command.env("PYTHONPATH", root.join(".tools/schemathesis")).current_dir(api_folder());
    command.args(["-m", "schemathesis.cli", "--config-file"]).arg(root.join("tests/schemathesis.toml"));
    command.args(["run", &format!("{}/api/v1/openapi.json", api.base), "--no-color", "--rate-limit", "40/s"]);
    command.args(["--max-examples", if run::is_thorough() { "40" } else { "10" }]);
    command.args(["--seed", "1", "-H", &format!("Authorization: {token}")]);
    let output = command.kill_on_drop(true).output().await.unwrap();
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.success())
}

/// The folder in which the fuzzer may keep its findings.
fn api_folder() -> std::path::PathBuf {
    run::new_folder().0
}

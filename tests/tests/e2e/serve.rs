//! `steward serve` beside a worker: commands find it by its note, and it never shows outdated data.

use serde_json::{Value, json};
use steward_proto::v1::guard_service_client::GuardServiceClient;
use steward_proto::v1::matters_service_client::MattersServiceClient;
use steward_proto::v1::modes_service_client::ModesServiceClient;
use steward_proto::v1::{self, Mode};
use steward_tests::api::{self, Api};
use steward_tests::steward::{Running, Steward};
use steward_tests::vault::Signal;
use steward_tests::world::World;
use steward_tests::{rpc, wait};

/// Serves on a free port, with its address.
async fn serve(steward: &Steward) -> (Running, Api) {
    let mut running = steward.with("STEWARD_LISTEN", "127.0.0.1:0").start(&["serve"]);
    running.says("Ctrl-C ends it").await;
    let base = api::link(&running).split("/login").next().unwrap().to_owned();
    (running, Api::new(&base))
}

#[tokio::test]
async fn the_commands_find_the_server_that_listens_beside_the_worker() {
    let world = World::with_one_done().await.live();
    let _worker = world.worker().await;
    world.tick("house").await;
    assert_eq!(world.json(&["status"]).await["grpc"], Value::Null, "a worker listens nowhere");
    let (serving, api) = serve(&world.steward).await;
    let status = world.json(&["status"]).await;
    assert_eq!((&status["grpc"], &status["running"]["command"]), (&json!(api.base), &json!("worker")));
    assert_eq!(status["serving"][0]["pid"], json!(serving.pid()));
    let told = world.run(&["status"]).await.expect(0).out;
    assert!(told.contains(&format!("dashboard at {}", api.base)), "{told}");
    let link = world.json(&["login"]).await;
    assert!(link["link"].as_str().unwrap().starts_with(&format!("{}/login", api.base)), "{link}");
    world.run(&["undo", &world.live_action()]).await.expect(0);
    assert!(serving.stop().await.success());
    let status = world.json(&["status"]).await;
    assert_eq!((&status["grpc"], &status["serving"]), (&Value::Null, &json!([])));

    let (mut killed, _) = serve(&world.steward).await;
    killed.kill();
    let status = world.json(&["status"]).await;
    assert_eq!((&status["grpc"], &status["serving"]), (&Value::Null, &json!([])), "the note of a dead one");
}

#[tokio::test]
async fn a_server_shows_the_settings_of_whoever_holds_the_vault_now() {
    let world = World::with_one_done().await;
    let worker = world.worker().await;
    let _ = world.tick("house").await;
    let (_serving, api) = serve(&world.steward).await;
    let line = rpc::caller(&world, &api, "read").await;
    let reader = api.token(&world, "read").await;
    let shown = async || {
        let modes = ModesServiceClient::new(line.clone()).get_modes(v1::GetModesRequest {}).await;
        let listed = MattersServiceClient::new(line.clone()).list_matters(v1::ListMattersRequest::default()).await;
        let guard = GuardServiceClient::new(line.clone()).get_guard(v1::GetGuardRequest {}).await.unwrap();
        let fleet = reader.get("/fleet").await.body;
        let trust = reader.get("/trust").await.body;
        let (sources, ui) =
            (trust.contains(&senders_without_a_setting("confirm")), fleet.contains("https://temporal.example/"));
        let (mode, matters) = (modes.unwrap().into_inner().configured(), listed.unwrap().into_inner().matters);
        let cap = guard.into_inner().ledger.unwrap().minute.unwrap().cap;
        (mode, matters[0].interval_seconds, cap == 7, sources, ui)
    };
    assert_eq!(shown().await, (Mode::Shadow, 1800, false, false, false));
    assert!(worker.stop().await.success());
    let mut other = world.steward.with("STEWARD_LIVE_MODE", "live").with("STEWARD_DEFAULT_CEILING", "confirm");
    other.set("STEWARD_CADENCE_MATTER_SECONDS", 600).set("STEWARD_TEMPORAL_UI", "https://temporal.example");
    let _worker = world.worker_with(&other.with("STEWARD_CAPS_PER_MINUTE", 7)).await;
    assert_eq!(shown().await, (Mode::Live, 600, true, true, true));
}

/// The row of the page "Trust" about senders on which no person has set a ceiling.
fn senders_without_a_setting(ceiling: &str) -> String {
    let words = if ceiling == "confirm" { "wait for you" } else { "are left to you" };
    format!("<td><bdi>Senders without a setting</bdi></td><td><bdi>{words} ({ceiling})</bdi></td>")
}

#[tokio::test]
async fn an_answer_reaches_whoever_holds_the_vault_now_by_whichever_queue_they_serve() {
    let world = World::with_one_done().await.live();
    world.vault.task("roof", "house");
    world.vault.signal("s2", &Signal::done("roof"));
    let worker = world.worker().await;
    let _ = world.tick("house").await;
    let (_serving, api) = serve(&world.steward).await;
    let api = api.token(&world, "act").await;
    assert!(worker.stop().await.success());
    let _worker = world.worker_with(&world.steward.with("STEWARD_TASK_QUEUE", format!("{}-2", world.queue))).await;
    let ids = world.live_actions();
    let _ = api.answer("undo", &ids[0]).await.expect(200);
    world.run(&["undo", &ids[1]]).await.expect(0);
    assert_eq!((world.vault.state("rent"), world.vault.state("roof")), ("open".to_owned(), "open".to_owned()));
}

#[tokio::test]
async fn a_server_keeps_the_configuration_of_its_start_and_takes_a_new_one_at_the_next() {
    let world = World::with_one_done().await;
    let file = world.folder.join("steward.toml");
    std::fs::write(&file, "default_ceiling = \"ask\"\n").unwrap();
    let steward = world.steward.with("STEWARD_CONFIG", file.display());
    let (serving, api) = serve(&steward).await;
    let (token, id) = rpc::token(&world, "read").await;
    let with_token = |api: &Api| api.with("authorization", &format!("Bearer {token}"));
    let says = async |api: &Api, word: &str| {
        with_token(api).get("/trust").await.body.contains(&senders_without_a_setting(word))
    };
    assert!(says(&api, "ask").await);
    std::fs::write(&file, "no_such_key = 1\n").unwrap();
    assert!(says(&api, "ask").await, "a file that was broken later changes nothing");
    assert!(serving.stop().await.success());
    let said = steward.run(&["serve"]).await.expect(1);
    assert!(said.err.contains("no_such_key"), "{said}");
    std::fs::write(&file, "default_ceiling = \"confirm\"\n").unwrap();
    let (_serving, api) = serve(&steward).await;
    assert!(says(&api, "confirm").await);
    world.run(&["token", "revoke", &id]).await.expect(0);
    assert_eq!(with_token(&api).get("/fleet").await.status, 401, "a token that was taken away needs no restart");
}

#[tokio::test]
async fn a_server_ends_when_its_index_is_replaced_and_shows_the_new_one_after_the_next_start() {
    let world = World::with_one_done().await.live();
    let worker = world.worker().await;
    let (mut serving, api) = serve(&world.steward).await;
    let api = api.token(&world, "act").await;
    let recent = async |api: &Api| api.get("/api/v1/steward/recent-actions").await.expect(200)["actions"].clone();
    assert_eq!(recent(&api).await, json!([]));
    assert!(worker.stop().await.success());
    let state = world.vault.path().join(".steward");
    // The file is removed and not overwritten: a process that has the old file open could still read it, and must not.
    for file in ["state.db", "state.db-wal", "state.db-shm"] {
        let _ = std::fs::remove_file(state.join(file));
    }
    std::fs::write(state.join("state.db"), "no database").unwrap();
    world.run(&["index", "rebuild"]).await.expect(0);
    let _worker = world.worker().await;
    world.tick("house").await;
    assert_eq!(serving.ends().await.code(), Some(1));
    assert!(serving.err().contains("start `steward serve` again"), "{}", serving.err());
    assert_eq!(world.json(&["status"]).await["serving"], json!([]));

    let (_serving, api) = serve(&world.steward).await;
    let api = api.token(&world, "act").await;
    // The rebuilt index has no cursors, so the signal wakes the matter too. The change may be that run's, not this tick's.
    let made = async || {
        let listed = recent(&api).await;
        (listed != json!([])).then_some(listed)
    };
    let listed = wait::until("the new index to show the change", made).await;
    assert_eq!(listed[0]["target"], json!("task/rent.md"));
    let _ = api.answer("undo", listed[0]["id"].as_str().unwrap()).await.expect(200);
    assert_eq!(world.vault.state("rent"), "open");
}

#[tokio::test]
async fn readiness_says_what_is_missing_and_an_address_that_asks_too_often_is_put_off() {
    let world = World::with_one_done().await;
    let mut worker = world.worker().await;
    world.tick("house").await;
    let (_serving, api) = serve(&world.steward).await;
    let ready = async || (api.get("/readyz").await.body == "ready").then_some(());
    wait::until("it to be ready", ready).await;
    worker.kill();
    let died = async || {
        let answer = api.get("/readyz").await;
        (answer.status == 503).then(|| answer.json()["detail"].as_str().unwrap().to_owned())
    };
    let detail = wait::until("it to be ready no more", died).await;
    assert!(detail.contains("died"), "{detail}");
    assert_eq!(api.get("/healthz").await.status, 200, "it lives all the same");
    for path in ["/readyz", "/api/v1/openapi.json"] {
        let mut last = api.get(path).await;
        for _ in 0..1_000 {
            if last.status == 429 {
                break;
            }
            last = api.get(path).await;
        }
        assert!(last.status == 429 && last.headers.contains_key("retry-after"), "{path}: {}", last.status);
    }
    assert_eq!(api.get("/healthz").await.status, 200, "who watches too closely is not told that it died");
}

//! Commands that use a named server: several at once, by TLS, and without a vault.

use serde_json::json;
use steward_tests::certificate::create_certificate;
use steward_tests::run::free_port;
use steward_tests::steward::Steward;
use steward_tests::vault::Signal;
use steward_tests::world::World;
use steward_tests::{api, rpc};

/// Changed tasks of two matters.
async fn changed() -> World {
    let world = World::with_one_done().await.live();
    world.vault.task("roof", "house");
    world.vault.signal("s2", &Signal::done("roof"));
    world
}

/// A process with this setting reaches no Temporal server.
fn nowhere(world: &World) -> Steward {
    world.steward.with("TEMPORAL_ADDRESS", "127.0.0.1:9")
}

#[tokio::test]
async fn several_are_answered_by_a_server_as_by_temporal() {
    let world = changed().await;
    let (_up, api) = api::up(&world).await;
    world.tick("house").await;
    let ids = world.live_actions();
    let (token, _) = rpc::token(&world, "act").await;
    let named = nowhere(&world).with("STEWARD_SERVER", &api.base).with("STEWARD_TOKEN", token);
    let asked = ["--json", "undo", &ids[0], &ids[1], "ffffffffffffffff", "--by", "Jörg"];
    let here = world.run(&asked).await.expect(3).json();
    assert_eq!((world.vault.state("rent"), world.vault.state("roof")), ("open".to_owned(), "open".to_owned()));
    assert_eq!(here["resolutions"][0]["kind"], json!("done"), "{here}");
    assert_eq!(here["resolutions"][2]["refusal"]["refused"], json!("unknown"), "{here}");
    let answers = world.vault.records().into_iter().filter_map(|record| record.draft.resolution);
    assert_eq!(answers.map(|answer| answer.by).collect::<Vec<_>>(), ["Jörg", "Jörg"]);
    let again = world.run(&asked).await.expect(3).json();
    let there = named.run(&asked).await.expect(3).json();
    assert_eq!(there, again, "by gRPC and by Temporal");
}

#[tokio::test]
async fn a_server_with_tls_is_asked_only_where_this_machine_trusts_its_certificate() {
    let mut world = changed().await;
    let (cert, key) = create_certificate(&world.folder, "localhost").await;
    let (other, _) = create_certificate(&world.folder, "other.example").await;
    world.steward.set("STEWARD_TLS_CERT", cert.display()).set("STEWARD_TLS_KEY", key.display());
    let (_up, api) = api::up(&world).await;
    world.tick("house").await;
    let ids = world.live_actions();
    let (token, _) = rpc::token(&world, "act").await;
    // The user of the command has none of the settings.
    let bare = ["STEWARD_VAULT", "STEWARD_TLS_CERT", "STEWARD_TLS_KEY"];
    let bare = bare.iter().fold(nowhere(&world), |steward, name| steward.without(name));
    let server = api.base.replace("127.0.0.1", "localhost");
    let named = bare.with("STEWARD_SERVER", &server).with("STEWARD_TOKEN", token);
    let by_address = named.with("STEWARD_SERVER", &api.base).with("SSL_CERT_FILE", cert.display());
    for (what, steward) in [
        ("by the authorities of this machine", &named),
        ("by another certificate", &named.with("SSL_CERT_FILE", other.display())),
        ("by another name", &by_address),
    ] {
        let said = steward.run(&["undo", &ids[0]]).await.expect(1);
        assert!(said.err.contains("certificate"), "{what}: {said}");
    }
    assert_eq!(world.vault.records().len(), 2, "nothing was answered");
    named.with("SSL_CERT_FILE", cert.display()).run(&["undo", &ids[0]]).await.expect(0);
    assert_eq!(world.vault.records().len(), 3);
}

#[tokio::test]
async fn a_server_that_is_named_is_asked_with_a_token_from_where_no_vault_is() {
    let world = changed().await;
    let (_up, api) = api::up(&world).await;
    world.tick("house").await;
    let ids = world.live_actions();
    let token = async |scope: &str| {
        let made = world.json(&["token", "create", "--scope", scope, "--name", "elsewhere"]).await;
        made["token"].as_str().unwrap().to_owned()
    };
    let elsewhere = nowhere(&world).without("STEWARD_VAULT").with("STEWARD_SERVER", &api.base);
    let undo = async |steward: &Steward, code: i32| steward.run(&["undo", &ids[0]]).await.expect(code).all();
    assert!(undo(&elsewhere, 1).await.contains("steward token create --scope act"));
    let nobody = elsewhere.with("STEWARD_TOKEN", "steward_AAAA");
    assert!(undo(&nobody, 1).await.contains("does not know this STEWARD_TOKEN"));
    let reader = elsewhere.with("STEWARD_TOKEN", token("read").await);
    assert!(undo(&reader, 1).await.contains("needs the scope `act`"));
    let actor = elsewhere.with("STEWARD_TOKEN", token("act").await);
    let away = actor.with("STEWARD_SERVER", format!("http://127.0.0.1:{}", free_port()));
    assert!(undo(&away, 1).await.contains("no server answers at"));
    let clear = actor.with("STEWARD_SERVER", "http://steward.example");
    assert!(undo(&clear, 1).await.contains("unencrypted only to this machine"));

    assert!(undo(&actor, 0).await.contains("undone: task/"));
    let by = world.vault.records().last().unwrap().draft.resolution.clone().unwrap().by;
    assert!(by.starts_with("token:elsewhere#"), "{by}");
    assert!(actor.run(&["streams", "pause", "inbox"]).await.expect(1).err.contains("needs the scope `operate`"));
    let operator = elsewhere.with("STEWARD_TOKEN", token("operate").await);
    operator.run(&["streams", "pause", "inbox"]).await.expect(0);
    assert_eq!(world.json(&["streams", "list"]).await[0]["paused"], json!(true));
}

#[tokio::test]
async fn another_value_is_chosen_from_where_no_vault_is() {
    let world = World::new().await.live();
    world.vault.matter("house");
    world.vault.task("rent", "house");
    world.vault.signal("s1", &Signal { effect_confidence: 0.9, ..Signal::done("rent") });
    let (_up, api) = api::up(&world).await;
    world.tick("house").await;
    let waits = world.vault.records()[0].draft.id.to_string();
    let made = world.json(&["token", "create", "--scope", "act", "--name", "elsewhere"]).await;
    let elsewhere = nowhere(&world).without("STEWARD_VAULT").with("STEWARD_SERVER", &api.base);
    let actor = elsewhere.with("STEWARD_TOKEN", made["token"].as_str().unwrap());
    actor.run(&["confirm", &waits, "--set", "archived"]).await.expect(0);
    assert_eq!(world.vault.state("rent"), "archived");
}

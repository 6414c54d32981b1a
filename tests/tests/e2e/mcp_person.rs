//! Only a person's click confirms: a client that opens addresses shows them the card, in both eras of the protocol, and what it answers proves nothing.

use crate::mcp::{Client, modern, read_message};
use serde_json::{Value, json};
use steward_tests::api::{self, Api};
use steward_tests::steward::Running;
use steward_tests::vault::Signal;
use steward_tests::world::World;

/// A proposal that waits, the process that holds the vault, and a caller who may act.
async fn proposed() -> (World, Running, Api, String) {
    let world = World::new().await.live();
    world.vault.matter("house");
    world.vault.task("rent", "house");
    world.vault.signal("s1", &Signal { effect_confidence: 0.9, ..Signal::done("rent") });
    let (up, api) = api::up(&world).await;
    let api = api.token(&world, "act").await.with("accept", "application/json, text/event-stream");
    world.tick("house").await;
    let listed = api.get("/api/v1/steward/recent-actions?target=task/rent.md&limit=1").await.expect(200);
    let action = listed["actions"][0]["id"].as_str().unwrap().to_owned();
    (world, up, api, action)
}

#[tokio::test]
async fn over_stdio_a_session_shows_the_card_and_the_clients_answer_confirms_nothing() {
    let (world, _up, api, action) = proposed().await;
    let can_open = json!({"elicitation": {"url": {}}});
    let mut client = Client::start_with(&world.steward, &["--allow", "act"], ("2025-11-25", can_open)).await;
    let confirm = json!({"name": "steward_confirm", "arguments": {"action": action}});
    for answer in ["accept", "decline", "cancel"] {
        let id = client.begin("tools/call", confirm.clone()).await;
        let asked = client.receive().await;
        assert_eq!((&asked["method"], &asked["params"]["mode"]), (&json!("elicitation/create"), &json!("url")));
        let address = asked["params"]["url"].as_str().unwrap();
        assert!(address.ends_with(&format!("/actions/{action}")), "{address}");
        assert!(!asked["params"]["message"].as_str().unwrap().contains("rent"), "no outside words: {asked:#}");
        client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": answer}})).await;
        let called = client.receive().await;
        assert_eq!(called["id"], json!(id), "{called:#}");
        let result = &called["result"]["structuredContent"];
        assert_eq!((&result["outcome"], &result["address"]), (&json!("needs_human"), &json!(address)), "{answer}");
        assert_eq!(world.vault.state("rent"), "open", "{answer}");
    }
    let id = client.begin("tools/call", confirm.clone()).await;
    let asked = client.receive().await;
    let _ = api.answer("confirm", &action).await.expect(200);
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}})).await;
    let called = client.receive().await;
    assert_eq!((&called["id"], &called["result"]["structuredContent"]["outcome"]), (&json!(id), &json!("confirmed")));
    assert_eq!(world.vault.state("rent"), "done");
    client.end().await;
    // A client that opens no addresses is not asked, and gets its answer at once.
    let mut plain = Client::start_with(&world.steward, &["--allow", "act"], ("2025-06-18", json!({}))).await;
    assert_eq!(plain.value("steward_confirm", json!({"action": action})).await["outcome"], "confirmed");
    plain.end().await;
}

#[tokio::test]
async fn over_http_a_call_asks_for_the_person_once_and_reads_the_record_when_it_is_made_again() {
    let (world, _up, api, action) = proposed().await;
    let (caller, mut meta) = modern(&api, "tools/call", "steward_confirm");
    let caller = caller.with("content-type", "application/json");
    let call = |meta: &Value, state: Option<&str>| {
        let mut params = json!({"name": "steward_confirm", "arguments": {"action": action}, "_meta": meta});
        if let Some(state) = state {
            params["requestState"] = json!(state);
            params["inputResponses"] = json!({"card": {"action": "accept"}});
        }
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    };
    let ask = async |meta: &Value, state: Option<&str>| {
        read_message(&caller.post("/mcp", &call(meta, state)).await)["result"].clone()
    };
    let plain = ask(&meta, None).await;
    assert_eq!(plain["structuredContent"]["outcome"], "needs_human", "{plain:#}");
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {"url": {}}});
    let asked = ask(&meta, None).await;
    assert_eq!(asked["resultType"], "input_required", "{asked:#}");
    let url = &asked["inputRequests"]["card"]["params"]["url"];
    assert_eq!(url, &plain["structuredContent"]["address"], "{asked:#}");
    let state = asked["requestState"].as_str().unwrap();
    let waits = ask(&meta, Some(state)).await;
    assert_eq!(waits["structuredContent"]["outcome"], "needs_human", "what the client says proves nothing: {waits:#}");
    let forged = ask(&meta, Some("99999999999.0123456789ab")).await;
    assert_eq!(forged["resultType"], "input_required", "{forged:#}");
    let _ = api.answer("confirm", &action).await.expect(200);
    let done = ask(&meta, Some(state)).await;
    assert_eq!(done["structuredContent"]["outcome"], "confirmed", "{done:#}");
    assert_eq!(world.vault.state("rent"), "done");
}

#[tokio::test]
async fn a_suggested_value_stands_in_the_address_and_names_of_matters_and_actions_are_completed() {
    let (world, _up, _api, action) = proposed().await;
    let mut client = Client::start_with(&world.steward, &["--allow", "act"], ("2025-06-18", json!({}))).await;
    let led = client.value("steward_confirm", json!({"action": action, "set": "archived"})).await;
    let address = led["address"].as_str().unwrap();
    assert!(address.ends_with(&format!("/actions/{action}?set=archived#edit")), "{led:#}");
    let refused = client.refusal("steward_confirm", json!({"action": action, "set": "closed"})).await;
    assert!(refused.starts_with("error bad_arguments: "), "{refused}");
    for (uri, argument, typed, value) in [
        ("steward://matter/{+name}", "name", "hou", "house"),
        ("steward://action/{id}", "id", &action[..4], action.as_str()),
    ] {
        let ask = json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": argument, "value": typed}});
        let completed = client.request("completion/complete", ask).await;
        assert_eq!(completed["completion"]["values"], json!([value]), "{completed:#}");
    }
    for name in ["house", "matter/house.md"] {
        let read = client.request("resources/read", json!({"uri": format!("steward://matter/{name}")})).await;
        assert!(read["contents"][0]["text"].as_str().unwrap().contains("matter/house.md"), "{read:#}");
    }
    client.end().await;
}

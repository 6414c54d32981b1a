//! Access: the operator log, the end of open pages and streams, and the limits of requests and connections.

use futures::StreamExt;
use reqwest::{Client, Method, Response};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use steward_tests::api::{self, Api};
use steward_tests::certificate::create_certificate;
use steward_tests::world::World;
use steward_tests::{rpc, wait};

/// The number of live pages that one caller may have open.
const OF_EACH: usize = 32;

fn written(world: &World) -> Vec<(String, String, String)> {
    let text = std::fs::read_to_string(world.vault.path().join(".steward/operator.jsonl")).unwrap_or_default();
    let line = |line: &str| {
        let act: Value = serde_json::from_str(line).unwrap();
        let field = |name: &str| act[name].as_str().unwrap_or_default().to_owned();
        assert!(!field("at").is_empty(), "{act}");
        (field("by"), field("act"), field("on"))
    };
    text.lines().map(line).collect()
}

#[tokio::test]
async fn whoever_makes_a_token_pauses_a_stream_comes_or_goes_is_written_down() {
    let world = World::with_one_done().await.live();
    let (up, api) = api::up(&world).await;
    let (token, id) = rpc::token(&world, "operate").await;
    world.json(&["streams", "pause", "inbox"]).await;
    let link = api::link(&up);
    let secret = link.split("link=").nth(1).unwrap();
    let form = api.with("origin", &api.base).with("content-type", "application/x-www-form-urlencoded");
    let entered = form.ask(Method::POST, "/login", Some(format!("link={secret}"))).await;
    assert_eq!(entered.status, 303, "{}", entered.body);
    let cookie = entered.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let left = form.with("cookie", &cookie).ask(Method::POST, "/logout", Some(String::new())).await;
    assert_eq!(left.status, 303, "{}", left.body);
    let page = api.with("authorization", &format!("Bearer {token}")).get("/fleet").await;
    world.json(&["token", "revoke", &id]).await;

    let acts = written(&world);
    let did: Vec<&str> = acts.iter().map(|(_, act, _)| act.as_str()).collect();
    assert_eq!(did, ["token.created", "stream.paused", "login", "logout", "token.revoked"]);
    assert!(acts.iter().all(|(by, ..)| by == "tester"), "{acts:?}");
    assert!(acts[0].2.contains(&id) && acts[0].2.contains("operate") && acts[1].2 == "inbox", "{acts:?}");
    let file = std::fs::metadata(world.vault.path().join(".steward/operator.jsonl")).unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
    for told in ["paused a stream", "inbox", "created a token", "logged in", "logged out"] {
        assert!(page.status == 200 && page.body.contains(told), "{told}: {}", page.body);
    }
    assert!(
        !page.body.contains(&token) && !acts.iter().any(|(.., on)| on.contains(&token)),
        "no secret is written down"
    );
}

#[tokio::test]
async fn too_large_a_body_is_refused_in_the_face_that_was_asked_and_only_to_who_may() {
    let world = World::with_one_done().await.live();
    let (_up, api) = api::up(&world).await;
    let body = || Some(format!("{{\"reason\": \"{}\"}}", "x".repeat(70_000)));
    let undo = "/api/v1/steward/undo/ffffffffffffffff";
    let anonymous = api.with("content-type", "application/json").ask(Method::POST, undo, body()).await;
    assert_eq!(anonymous.status, 401);
    let actor = api.token(&world, "act").await;
    let refused = actor.with("content-type", "application/json").ask(Method::POST, undo, body()).await;
    assert_eq!(refused.headers["content-type"], "application/problem+json");
    assert_eq!(refused.expect(413)["status"], 413);
    let form = actor.with("content-type", "application/x-www-form-urlencoded");
    let page = form.ask(Method::POST, "/batch", body()).await;
    assert_eq!((page.status, page.headers["content-type"].to_str().unwrap()), (413, "text/html; charset=utf-8"));
}

async fn listen(api: &Api, token: &str) -> Response {
    let request = Client::new().get(format!("{}/live?seen=0", api.base)).bearer_auth(token);
    request.send().await.unwrap()
}

#[tokio::test]
async fn nobody_takes_all_the_places_of_who_listens_and_who_may_no_more_hears_no_more() {
    let world = World::with_one_done().await.live();
    let (_up, api) = api::up(&world).await;
    let (token, id) = rpc::token(&world, "read").await;
    let (other, _) = rpc::token(&world, "read").await;
    let mut open = Vec::new();
    for _ in 0..OF_EACH {
        let listening = listen(&api, &token).await;
        assert_eq!(listening.status(), 200);
        open.push(listening);
    }
    let full = listen(&api, &token).await;
    assert!(full.status() == 429 && full.headers().contains_key("retry-after"), "{full:?}");
    assert_eq!(listen(&api, &other).await.status(), 200, "another caller has places of their own");
    drop(open.split_off(1));
    let again = async || (listen(&api, &token).await.status() == 200).then_some(());
    wait::until("a place to be free again", again).await;

    world.json(&["token", "revoke", &id]).await;
    let mut last = open.pop().unwrap().bytes_stream();
    let ends = async { while let Some(Ok(_)) = last.next().await {} };
    tokio::time::timeout(wait::PATIENCE, ends).await.expect("it ends when its token is taken away");
}

#[tokio::test]
async fn a_link_for_somebody_else_lets_them_in_by_their_name_and_to_no_more_than_it_says() {
    let world = World::with_one_done().await.live();
    let (_up, api) = api::up(&world).await;
    let login = world.json(&["login", "--name", "Ann", "--scope", "read"]).await;
    let secret = login["link"].as_str().unwrap().split("link=").nth(1).unwrap().to_owned();
    let form = api.with("origin", &api.base).with("content-type", "application/x-www-form-urlencoded");
    let enter = async || form.ask(Method::POST, "/login", Some(format!("link={secret}"))).await;
    let entered = enter().await;
    let cookie = entered.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let ann = form.with("cookie", &cookie);
    let page = ann.get("/").await;
    assert!(page.body.contains("Ann") && page.body.contains("<button class=\"stop\" disabled>"), "{}", page.body);
    let key = page.body.split("name=\"form_key\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let stopped = ann.ask(Method::POST, "/stop", Some(format!("form_key={key}&back=/"))).await;
    assert_eq!(stopped.status, 403, "{}", stopped.body);
    let again = enter().await;
    assert!(again.status == 401 && again.body.contains("Link expired"), "{}", again.body);
    assert_eq!(written(&world), [("Ann".into(), "login".into(), "read".into())]);
}

#[tokio::test]
async fn by_tls_a_browser_is_told_to_come_so_again_and_its_cookie_goes_no_other_way() {
    let mut world = World::with_one_done().await;
    let (cert, key) = create_certificate(&world.folder, "steward.example").await;
    world.steward.set("STEWARD_TLS_CERT", cert.display()).set("STEWARD_TLS_KEY", key.display());
    world.steward.set("STEWARD_HOSTS", "steward.example");
    let (_up, api) = api::up(&world).await;
    let link = world.json(&["login"]).await["link"].as_str().unwrap().to_owned();
    let (base, secret) = link.split_once("/login?link=").unwrap();
    assert_eq!(base, api.base, "the command knows the name and the key by which it is reached");
    let port = base.rsplit(':').next().unwrap();
    // The name is the test's own; another test checks the certificate.
    let client = Client::builder()
        .danger_accept_invalid_certs(true)
        .resolve("steward.example", format!("127.0.0.1:{port}").parse().unwrap())
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .unwrap();
    let page = client.get(&link).send().await.unwrap();
    assert!(page.status() == 200 && page.headers().contains_key("strict-transport-security"), "{page:?}");
    let form = client.post(format!("{base}/login")).header("origin", base);
    let form = form.header("content-type", "application/x-www-form-urlencoded").body(format!("link={secret}"));
    let entered = form.send().await.unwrap();
    let cookie = entered.headers()["set-cookie"].to_str().unwrap().to_owned();
    for word in ["; Secure", "; HttpOnly", "; SameSite=Strict"] {
        assert!(entered.status() == 303 && cookie.contains(word), "{cookie}");
    }
}

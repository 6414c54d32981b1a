//! Logging out ends the session on the server, for every copy of its cookie.

use futures::StreamExt;
use reqwest::{Client, Method};
use steward_tests::api::{self, Answer, Api};
use steward_tests::wait;
use steward_tests::world::World;

/// Logs in by a link of its own. Returns the cookie.
async fn enter(world: &World, form: &Api) -> String {
    let login = world.json(&["login"]).await;
    let secret = login["link"].as_str().unwrap().split("link=").nth(1).unwrap().to_owned();
    let entered = form.ask(Method::POST, "/login", Some(format!("link={secret}"))).await;
    entered.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
}

fn form(api: &Api) -> Api {
    api.with("origin", &api.base).with("content-type", "application/x-www-form-urlencoded")
}

async fn leave(api: &Api, cookie: &str) -> Answer {
    form(api).with("cookie", cookie).ask(Method::POST, "/logout", Some(String::new())).await
}

#[tokio::test]
async fn a_copied_cookie_is_worth_nothing_once_its_session_was_logged_out_and_others_stay() {
    let world = World::with_one_done().await.live();
    let (up, api) = api::up(&world).await;
    let (left, other) = (enter(&world, &form(&api)).await, enter(&world, &form(&api)).await);
    let copy = api.with("cookie", &left);
    assert_eq!(copy.get("/").await.status, 200);
    let live = Client::new().get(format!("{}/live?seen=0", api.base)).header("cookie", &left).send().await.unwrap();
    assert_eq!(live.status(), 200);

    assert_eq!(leave(&api, &left).await.status, 303);
    for path in ["/", "/fleet", "/live?seen=0", "/api/v1/steward/recent-actions"] {
        let refused = copy.get(path).await;
        assert_eq!(refused.status, 401, "{path}: {}", refused.body);
    }
    assert!(copy.get("/").await.body.contains("Log in"));
    let form_of_theirs = form(&api).with("cookie", &left).ask(Method::POST, "/stop", Some("back=/".into())).await;
    assert_eq!(form_of_theirs.status, 401, "{}", form_of_theirs.body);
    assert_eq!(api.with("cookie", &other).get("/").await.status, 200, "another session of the same person stays");
    let mut live = live.bytes_stream();
    let ends = async { while let Some(Ok(_)) = live.next().await {} };
    tokio::time::timeout(wait::PATIENCE, ends).await.expect("its live page hears no more");

    up.stop().await;
    let (_up, api) = api::up(&world).await;
    assert_eq!(api.with("cookie", &left).get("/").await.status, 401, "a new process knows it");
    assert_eq!(api.with("cookie", &other).get("/").await.status, 200);
}

#[tokio::test]
async fn a_logout_that_cannot_be_written_down_says_so_and_can_be_asked_for_again() {
    let world = World::with_one_done().await.live();
    let (_up, api) = api::up(&world).await;
    let cookie = enter(&world, &form(&api)).await;
    let folder = world.vault.path().join(".steward/access/ended-sessions");
    std::os::unix::fs::symlink(world.folder.join("nowhere"), &folder).unwrap();
    let refused = leave(&api, &cookie).await;
    assert!(refused.status == 500 && refused.body.contains("still logged in"), "{}", refused.body);
    assert!(!refused.headers.contains_key("set-cookie"), "the browser keeps what it needs to ask again");
    assert_eq!(api.with("cookie", &cookie).get("/").await.status, 200, "and it says the truth");
    std::fs::remove_file(&folder).unwrap();
    assert_eq!(leave(&api, &cookie).await.status, 303);
    assert_eq!(api.with("cookie", &cookie).get("/").await.status, 401);
}

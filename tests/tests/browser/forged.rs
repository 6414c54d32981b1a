//! Forged requests: from another site, or with the key of another session.

use crate::house::{clear, unclear};
use reqwest::Method;
use steward_tests::api::{self, Answer, Api};
use steward_tests::world::World;

async fn form(api: &Api, path: &str, body: &str) -> Answer {
    api.with("content-type", "application/x-www-form-urlencoded").ask(Method::POST, path, Some(body.into())).await
}

/// A session of our browser, and the key of its forms.
async fn session(api: &Api, link: &str) -> (Api, String) {
    let ours = api.with("origin", &api.base);
    let entered = form(&ours, "/login", &format!("link={}", link.split("link=").nth(1).unwrap())).await;
    assert_eq!(entered.status, 303, "{entered:?}");
    let cookie = entered.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let session = ours.with("cookie", &cookie);
    let page = session.get("/").await.body;
    let key = page.split("name=\"form_key\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    (session, key)
}

#[tokio::test]
async fn a_click_that_no_page_of_this_session_made_does_nothing() {
    let world = World::new().await.live();
    world.vault.matter("house");
    clear(&world, "rent");
    unclear(&world, "roof");
    let (up, api) = api::up(&world).await;
    world.tick("house").await;
    let (ann, key) = session(&api, &api::link(&up)).await;
    let login = world.json(&["login"]).await;
    let (_bob, others) = session(&api, login["link"].as_str().unwrap()).await;
    assert_ne!(key, others);
    let files = world.vault.files();
    let paths = world.vault.records().into_iter().map(|record| format!("/actions/{}/resolve", record.draft.id));
    let forms: Vec<_> = paths.chain(["/stop".into(), "/resume".into()]).collect();
    for path in &forms {
        for kind in ["undo", "confirm", "dismiss"] {
            let body = |key: &str| format!("kind={kind}&back=/&form_key={key}");
            for wrong in [String::new(), others.clone(), format!("{key}x")] {
                assert_eq!(form(&ann, path, &body(&wrong)).await.status, 403, "{path} {kind} {wrong}");
            }
            for origin in ["http://evil.example", "null", "http://127.0.0.1:1"] {
                assert_eq!(form(&ann.with("origin", origin), path, &body(&key)).await.status, 403, "{path} {origin}");
            }
        }
        assert_eq!(form(&ann, path, "form_key=%00&form_key=").await.status / 100, 4);
        assert_eq!(ann.get(path).await.status, 405, "to look is never to do");
    }
    assert_eq!(form(&api.with("origin", "http://evil.example"), "/login", "link=x").await.status, 403);
    assert_eq!(form(&ann.with("host", "evil.example"), "/stop", &format!("form_key={key}")).await.status, 421);
    assert_eq!(world.vault.files().since(&files), Vec::<String>::new());
    assert!(!world.vault.path().join(".steward/STOP").exists());

    // The same request from a page of the session is accepted, so the checks above refuse only forged ones.
    let right = form(&ann, "/stop", &format!("form_key={key}&back=//evil.example")).await;
    assert_eq!((right.status, right.headers["location"].to_str().unwrap()), (303, "/"));
    assert!(world.vault.path().join(".steward/STOP").exists());
}

//! A person logs in once by the link that `steward up` prints, and logs out.

use crate::house::House;
use serde_json::json;
use steward_tests::api;
use steward_tests::world::World;

#[tokio::test]
async fn the_printed_address_lets_one_person_in_once() {
    let Some(house) = House::of("login", World::with_one_done().await).await else { return };
    let (page, link) = (&house.browser, api::link(&house.up));
    for script in [true, false] {
        page.script(script).await;
        page.goto("/").await;
        assert_eq!((page.status().await, page.text("h1").await.as_str()), (401, "Log in"));
        assert!(page.text("main").await.contains("steward login"), "it says where an address comes from");
        page.goto("/fleet?x=1").await;
        assert_eq!(page.status().await, 401);
        page.is_sound().await;
    }
    // Opening the link does not use it up.
    page.goto(&link).await;
    page.goto(&link).await;
    page.shot("link").await;
    page.press("button.go").await;
    assert_eq!((page.place().await.as_str(), page.text("h1").await.as_str()), ("/", "Today"));
    let cookies = page.cookies().await;
    assert_eq!(cookies.len(), 1, "{cookies:?}");
    assert_eq!((&cookies[0]["httpOnly"], &cookies[0]["sameSite"]), (&json!(true), &json!("Strict")), "{cookies:?}");
    assert_eq!(page.run("return document.cookie").await, json!(""), "no script sees the cookie");

    let other = page.another().await;
    other.goto(&link).await;
    assert_eq!((other.status().await, other.text("h1").await.as_str()), (401, "Link expired"));
    other.press("main a").await;
    assert_eq!((other.status().await, other.text("h1").await.as_str()), (401, "Log in"));
    other.is_sound().await;

    page.press("footer button.plain").await;
    assert_eq!((page.place().await.as_str(), page.text("h1").await.as_str()), ("/login", "Log in"));
    page.goto("/").await;
    assert_eq!((page.status().await, page.cookies().await.len()), (401, 0), "who went is out");
    page.is_sound().await;
}

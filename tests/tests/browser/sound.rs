//! The checks for every page, and that they find the faults of a bad page.

use crate::house::House;
use axum::Router;
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::response::Html;
use axum::routing::get;
use steward_tests::api;
use steward_tests::browser::Browser;
use steward_tests::wait;

const WIDTHS: [u32; 2] = [390, 1_200];

#[tokio::test]
async fn everybody_can_use_every_page_in_light_and_dark_on_a_phone_and_a_desk() {
    // Enough waiting proposals of one source to be offered as a batch.
    let Some(house) = House::lived_in_with("sound", &["gate", "shed", "lamp"]).await else { return };
    let page = &house.browser;
    let (id, waits) = (house.action("rent"), house.action("roof"));
    page.goto("/").await;
    let together = page.find(".cluster a").await.attr("href").await.unwrap().unwrap();
    page.press(&format!("{} button[value=undo]", house.card("bills"))).await;
    let pages = [
        ("today", page.place().await),
        ("why", format!("/actions/{id}")),
        ("waits", format!("/actions/{waits}")),
        ("undo", format!("/actions/{id}/undo")),
        ("undone", format!("/actions/{}/undo", house.action("bills"))),
        ("matters", "/matters".into()),
        ("matter", "/records/matter/house.md".into()),
        ("task", "/records/task/rent.md".into()),
        ("trust", "/trust".into()),
        ("fleet", "/fleet".into()),
        ("charts", "/charts".into()),
        ("search", "/search?q=rent".into()),
        ("actions", "/search?kind=action".into()),
        ("batch_id", together),
        ("undo-together", "/batch/undo?source=mail&class=state_change".into()),
        ("refused", "/actions/ffffffffffffffff".into()),
        ("nowhere", "/nowhere".into()),
        ("used", api::link(&house.up).replace(&house.api.base, "")),
    ];
    for (name, at) in &pages {
        page.goto(at).await;
        let mut found = Vec::new();
        for (width, dark) in WIDTHS.into_iter().flat_map(|width| [(width, false), (width, true)]) {
            page.looks(width, dark).await;
            page.shot(&format!("{name}-{width}-{}", if dark { "dark" } else { "light" })).await;
            let told = page.barriers().await.into_iter().chain(page.faults().await);
            found.extend(told.map(|it| format!("{width} dark {dark}: {it}")));
        }
        assert_eq!(found, Vec::<String>::new(), "{at}");
    }
    page.looks(390, false).await;
    page.goto("/").await;
    page.press(".stop-bar button.stop").await;
    let found = (page.barriers().await, page.faults().await);
    assert_eq!(found, (Vec::new(), Vec::new()), "stopped");
    page.shot("stopped-390").await;
}

/// A page with deliberate faults.
async fn careless(body: &'static str, policy: &'static str) -> String {
    let html = format!("<!doctype html><html lang=en><title>t</title><main>{body}</main></html>");
    let answer = move || async move { ([(CONTENT_SECURITY_POLICY, policy)], Html(html)) };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    // The server ends with the test's runtime.
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/", get(answer))).await });
    address
}

#[tokio::test]
async fn a_page_that_breaks_a_rule_is_found_out() {
    const FREE: &str = "img-src *";
    let Some(page) = Browser::open("careless", "").await else { return };
    let cases = [
        ("<script>window.__ran = 1</script>", "script-src 'self'", "Content Security Policy"),
        ("<p style='color: red'>x</p>", "style-src 'self'", "Content Security Policy"),
        ("<script>window.__ran = 1</script>", FREE, "a script of others ran: [1]"),
        ("<script>alert(1)</script>", FREE, "a script of others ran: [\"alert\"]"),
        ("<script>nothing()</script>", FREE, "nothing is not defined"),
        ("<img alt=x src=/assets/none.png>", FREE, "404"),
        ("<p style='width: 500px'>x</p>", FREE, "it scrolls sideways"),
        (
            "<p style='white-space: nowrap'>xxxxxxxx xxxxxxxxx xxxxxxxxx xxxxxxxxx xxxxxxxxx xxxxxxx x</p>",
            FREE,
            "sideways",
        ),
    ];
    page.looks(390, false).await;
    for (body, policy, says) in cases {
        page.goto(&careless(body, policy).await).await;
        let found = async || page.faults().await.iter().any(|fault| fault.contains(says)).then_some(());
        wait::until(&format!("`{says}` of {body}"), found).await;
    }
    let barriers = [
        ("<img src=x.png>", "image-alt"),
        ("<button></button>", "button-name"),
        ("<p style='color: #999; background: #aaa'>Hardly there at all.</p>", "color-contrast"),
        ("<input name=q>", "label"),
    ];
    for (body, rule) in barriers {
        page.goto(&careless(body, FREE).await).await;
        let found = page.barriers().await;
        assert!(found.iter().any(|it| it.starts_with(rule)), "{body}: {found:?}");
    }
    page.goto(&careless("<h1>Fine</h1><p>Nothing wrong.</p>", "default-src 'none'").await).await;
    let (faults, barriers) = (page.faults().await, page.barriers().await);
    // The browser requests an icon by itself, which the policy forbids here. Nothing else is wrong.
    assert!(faults.iter().all(|fault| fault.contains("favicon")), "{faults:?}");
    assert_eq!(barriers, Vec::<String>::new());
}

//! The dashboard as an installed web app: its manifest, its icons, and its page while Steward cannot be reached. Moments
//! are in the reader's own zone.

use crate::house::House;
use serde_json::Value;
use steward_tests::wait;

#[tokio::test]
async fn the_dashboard_can_be_installed_and_says_when_it_cannot_be_reached() {
    let Some(mut house) = House::lived_in("web-app").await else { return };
    let (page, api) = (&house.browser, &house.api);
    page.goto("/").await;
    let manifest = page.run("return document.querySelector('link[rel=manifest]').href").await;
    let path = manifest.as_str().unwrap().split(&api.base).nth(1).unwrap().to_owned();
    let manifest = api.get(&path).await;
    assert_eq!(manifest.headers["content-type"], "application/manifest+json");
    let manifest: Value = manifest.json();
    assert_eq!((&manifest["display"], &manifest["start_url"]), (&"standalone".into(), &"/".into()));
    for icon in manifest["icons"].as_array().unwrap() {
        let file = api.get(icon["src"].as_str().unwrap()).await;
        assert_eq!((file.status, file.headers["content-type"].to_str().ok()), (200, icon["type"].as_str()));
    }
    let active = "return navigator.serviceWorker.ready.then(() => true)";
    wait::until("the service worker", async || (page.run(active).await == true).then_some(())).await;
    let kept = "return caches.open('offline').then((cache) => cache.keys()).then((all) => all.map((r) => new \
                URL(r.url).pathname))";
    wait::until("the page to be kept", async || {
        (page.run(kept).await == serde_json::json!(["/assets/offline.html"])).then_some(())
    })
    .await;
    house.up.kill();
    let page = &house.browser;
    page.goto("/").await;
    assert_eq!(page.text("h1").await, "Steward is not reachable");
    page.shot("offline").await;
}

#[tokio::test]
async fn moments_are_in_the_readers_zone_with_utc_in_the_title() {
    let Some(house) = House::lived_in("zone").await else { return };
    let page = &house.browser;
    // The browser of the tests stands five and a half hours east of Greenwich.
    assert_eq!(page.run("return new Date().getTimezoneOffset()").await, -330);
    house.world.run(&["stop", "--reason", "to read the moment"]).await.expect(0);
    page.goto("/").await;
    let moment = ".stopped time.moment";
    let machine = page.run(&format!("return document.querySelector('{moment}').dateTime")).await;
    let at = steward_domain::time::parse(machine.as_str().unwrap()).unwrap();
    let there = at + chrono::TimeDelta::minutes(330);
    assert_eq!(page.text(moment).await, there.format("%-d %b %Y, %H:%M").to_string());
    let title = page.run(&format!("return document.querySelector('{moment}').title")).await;
    assert_eq!(title, at.format("%-d %b %Y, %H:%M UTC").to_string());
    page.script(false).await;
    page.goto("/").await;
    assert_eq!(page.text(moment).await, at.format("%-d %b %Y, %H:%M UTC").to_string(), "without script it is UTC");
}

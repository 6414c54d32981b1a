//! The wikis on the dashboard: what waits is approved, a page shows its quotes, a question is answered and kept, and a run
//! goes back.

use crate::house::House;
use steward_tests::world::World;

const LEASE: &str = "# The lease\n\nThe lease of Plot 12 ends on 31 March 2027. Plot 12 lies by the river. Who pays for \
    Plot 12?\n\n## Water\n\nA stopcock is a valve that shuts off the water.\n";
const WIDTHS: [u32; 2] = [390, 1_200];

/// A dashboard on a vault with a wiki, into which a document was ingested as a draft.
async fn house(test: &str) -> Option<House> {
    let world = World::new().await;
    let house = House::of(test, world).await?;
    house.world.run(&["wiki", "init", "allotment"]).await.expect(0);
    let document = house.world.folder.join("2026-11-20-lease.md");
    std::fs::write(&document, LEASE).unwrap();
    house.world.run(&["wiki", "ingest", "allotment", document.to_str().unwrap(), "--draft"]).await.expect(0);
    house.browser.log_in(&steward_tests::api::link(&house.up)).await;
    Some(house)
}

fn has(house: &House, file: &str) -> bool {
    house.world.vault.path().join("wiki/allotment").join(file).exists()
}

#[tokio::test]
async fn a_person_approves_reads_asks_keeps_and_takes_back() {
    let Some(house) = house("wikis").await else { return };
    let page = &house.browser;
    for script in [true, false] {
        page.script(script).await;
        page.goto("/").await;
        let today = page.text("main").await;
        assert!(today.contains("ingest") && today.contains("waits for you"), "{today}");
    }
    page.script(true).await;
    page.press("section[aria-labelledby=waits] .rows a").await;
    let run = page.place().await;
    let shown = page.text("main").await;
    assert!(shown.contains("The rules found no fault.") && shown.contains("The lease of Plot 12 ends"), "{shown}");
    assert!(!has(&house, "concepts/plot-12.md"));
    page.press("main button[value=approve]").await;
    assert_eq!(page.place().await, run);
    assert!(has(&house, "concepts/plot-12.md") && page.text(".meta .chip").await.contains("committed"));

    page.goto("/wikis/allotment?q=stopcock").await;
    page.press("section[aria-labelledby=found] a").await;
    let claims = page.text("main").await;
    assert!(claims.contains("stands there at byte") && claims.contains("A stopcock is a valve"), "{claims}");
    page.goto("/wikis/allotment?check=1").await;
    assert!(page.text("section[aria-labelledby=health]").await.contains("0 errors"));

    page.types("input[name=value]", "When does the lease end?").await;
    page.press("form[action$=ask] button").await;
    let answer = page.text("main").await;
    assert!(answer.contains("ends on 31 March 2027. [1]") && answer.contains("2026-11-20-lease"), "{answer}");
    page.is_sound().await;
    page.press("main button[value=qa]").await;
    assert!(has(&house, "qa/when-does-the-lease-end.md"), "{}", page.text("main").await);
    page.press("main button[value=revert]").await;
    assert!(!has(&house, "qa/when-does-the-lease-end.md"));
    assert!(page.text(".meta .chip").await.contains("taken back by"));
    page.is_sound().await;
    house.world.verify_chain().await;
}

#[tokio::test]
async fn every_page_of_a_wiki_is_sound_on_a_phone_and_a_desk() {
    let Some(house) = house("wiki-pages").await else { return };
    let page = &house.browser;
    let runs = house.world.json(&["wiki", "runs", "list"]).await;
    let run = runs[0]["run"].as_str().unwrap().rsplit('-').next().unwrap().to_owned();
    let look = async |name: &str, at: &str| {
        page.goto(at).await;
        let mut found = Vec::new();
        for (width, dark) in WIDTHS.into_iter().flat_map(|width| [(width, false), (width, true)]) {
            page.looks(width, dark).await;
            page.shot(&format!("{name}-{width}-{}", if dark { "dark" } else { "light" })).await;
            let told = page.barriers().await.into_iter().chain(page.faults().await);
            found.extend(told.map(|it| format!("{width} dark {dark}: {it}")));
        }
        assert_eq!(found, Vec::<String>::new(), "{at}");
    };
    look("wiki-waits", &format!("/wikis/allotment/runs/{run}")).await;
    page.press("main button[value=approve]").await;
    look("wiki-today", "/").await;
    look("wikis", "/wikis").await;
    look("wiki", "/wikis/allotment?q=lease&check=1").await;
    look("wiki-run", &format!("/wikis/allotment/runs/{run}")).await;
    look("wiki-page", "/wikis/allotment/pages/plot-12").await;
    page.goto("/wikis/allotment").await;
    page.types("input[name=value]", "When does the lease end?").await;
    page.press("form[action$=ask] button").await;
    look("wiki-answer", &page.place().await).await;
    for nowhere in
        ["/wikis/none", "/wikis/allotment/pages/none", "/wikis/allotment/runs/00000000", "/wikis/allotment/answers/x"]
    {
        page.goto(nowhere).await;
        assert_eq!(page.status().await, 404, "{nowhere}");
    }
}

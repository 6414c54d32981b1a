//! Stop, from every page and at once; and that an open page says what it does not show yet.

use crate::house::{House, clear};
use std::time::Duration;
use steward_tests::wait;

/// Longer than a page takes to get an event. A slower machine finds fewer faults, never more.
const A_WHILE: Duration = Duration::from_secs(1);

#[tokio::test]
async fn stop_works_at_once_from_every_page() {
    let Some(house) = House::lived_in("stop").await else { return };
    let (page, world) = (&house.browser, &house.world);
    let stop_file = world.vault.path().join(".steward/STOP");
    let id = house.action("rent");
    let pages = ["/".to_owned(), format!("/actions/{id}"), format!("/actions/{id}/undo"), "/matters".into()];
    let more = [
        "/batch",
        "/batch/undo",
        "/records/matter/house.md",
        "/records/task/rent.md",
        "/trust",
        "/fleet",
        "/search?q=rent",
        "/charts",
    ];
    for (number, at) in pages.into_iter().chain(more.map(str::to_owned)).enumerate() {
        page.script(number % 2 == 0).await;
        page.goto(&at).await;
        assert_eq!((page.status().await, page.count(".stop-bar button.stop").await), (200, 1), "{at}");
        page.press(".stop-bar button.stop").await;
        assert!(stop_file.exists(), "{at}: the answer came before the stop");
        assert_eq!(page.place().await, at, "it stays where it was pressed");
        let said = page.text(".stopped").await;
        assert!(said.starts_with("Stopped by tester"), "{said}");
        page.press(".stop-bar button.go").await;
        assert!(!stop_file.exists() && page.count(".stopped").await == 0, "{at}");
    }
    page.is_sound().await;

    page.script(true).await;
    for button in ["stop", "go", "stop"] {
        page.goto("/").await;
        page.press(&format!(".stop-bar button.{button}")).await;
        let quiet = async || page.text(".news").await.is_empty();
        wait::stays(A_WHILE, "what the page itself did is no news to it", quiet).await;
    }
    page.shot("stopped").await;
    let status = world.json(&["status"]).await;
    assert!(status["stop"].to_string().contains("tester"), "{status}");
    clear(world, "late");
    let files = world.vault.files();
    world.tick("house").await;
    assert_eq!(world.vault.files().since(&files), Vec::<String>::new(), "a tick changes nothing");
    // A person's resolution still works.
    page.press(&format!("{} button[value=undo]", house.card("rent"))).await;
    assert_eq!(world.vault.state("rent"), "open");
    page.press(".stop-bar button.go").await;
    // The end of the stop wakes the matter by itself.
    wait::until("what the stop held to be done", async || (world.vault.state("late") == "done").then_some(())).await;
}

#[tokio::test]
async fn an_open_page_says_that_there_is_more_and_moves_nothing() {
    let Some(house) = House::lived_in("live").await else { return };
    let page = &house.browser;
    // The schedule's own tick may file its decisions after the one that the test asked for.
    let read_again = async || {
        page.goto("/").await;
        wait::a_moment(A_WHILE).await;
        page.text(".news").await.is_empty().then_some(())
    };
    wait::until("the stewards to have nothing more to decide", read_again).await;
    let other = house.another().await;
    other.goto("/").await;
    other.press(&format!("{} button[value=undo]", house.card("rent"))).await;
    let quiet = async || other.text(".news").await.is_empty();
    wait::stays(A_WHILE, "nothing is new to who did it", quiet).await;
    let line = "One new record: show it";
    wait::until(line, async || (page.text(".news").await == line).then_some(())).await;
    assert_eq!(page.count(&format!("{} button[value=undo]", house.card("rent"))).await, 1, "what is read stays");
    page.shot("live").await;
    page.press(".news a").await;
    assert!(page.text("section[aria-labelledby=resolved]").await.contains("undone"));
    assert_eq!(page.text(".news").await, "");

    other.press(".stop-bar button.stop").await;
    let stopped = async || page.text(".news").await.starts_with("The vault was stopped.").then_some(());
    wait::until("the page to say that the vault was stopped", stopped).await;
    other.press(".stop-bar button.go").await;
    let silent = async || page.text(".news").await.is_empty().then_some(());
    wait::until("the page to take that back", silent).await;
    page.is_sound().await;
}

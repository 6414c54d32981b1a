//! The keyboard alone: from card to card, an answer, the search, Stop.

use crate::house::House;
use steward_tests::browser::TAB;
use steward_tests::wait;

#[tokio::test]
async fn everything_is_done_by_keys() {
    let Some(house) = House::lived_in("keys").await else { return };
    let (page, world) = (&house.browser, &house.world);
    page.goto("/").await;
    // A key that is pressed while the page is drawn may be lost. The first key that arrives skips the page head.
    let first = wait::until("a key to reach the page", async || {
        page.strikes(TAB).await;
        Some(page.focus().await).filter(|focus| focus != "body")
    })
    .await;
    assert_eq!(first, "skip", "the first way leads past the head");
    page.shot("skip").await;
    page.strikes('\u{E007}').await;
    assert_eq!(page.focus().await, "main");

    let cards = page.count(".card, .change").await;
    page.strikes('j').await;
    let first = page.focus().await;
    page.strikes('j').await;
    let second = page.focus().await;
    page.strikes('k').await;
    assert!(first.starts_with('a') && second.starts_with('a') && first != second, "{first} {second}");
    assert_eq!(page.focus().await, first);
    for _ in 0..=cards {
        page.strikes('j').await;
    }
    assert_eq!(
        page.run("return document.activeElement === [...document.querySelectorAll('.card, .change')].at(-1)").await,
        true
    );
    page.strikes('/').await;
    assert_eq!(page.run("return document.activeElement.name").await, "q");
    // In a text field a letter is only a letter.
    page.strikes('j').await;
    assert_eq!(page.run("return document.activeElement.value").await, "j");

    for (task, key, state) in [("roof", 'c', "done"), ("desk", 'd', "open"), ("rent", 'u', "open")] {
        page.goto("/").await;
        let card = house.card(task);
        let mut turns = 0..=cards;
        while format!("#{}", page.focus().await) != card {
            assert!(turns.next().is_some(), "no way to {card}");
            page.strikes('j').await;
        }
        page.strikes_and_leaves(key).await;
        assert_eq!(world.vault.state(task), state, "{task}");
    }
    page.goto("/").await;
    page.strikes('?').await;
    assert!(page.text("#keys").await.contains("select, to answer several together"));
    page.strikes('\u{E00C}').await;
    page.strikes('j').await;
    page.strikes_and_leaves('w').await;
    assert!(page.text("h1").await.starts_with("Why: "));

    page.goto("/").await;
    let mut turns = 0..20;
    while page.focus().await != "stop" {
        assert!(turns.next().is_some(), "Tab does not reach Stop");
        page.strikes(TAB).await;
    }
    page.strikes_and_leaves('\u{E007}').await;
    assert!(world.vault.path().join(".steward/STOP").exists());
    page.is_sound().await;
}

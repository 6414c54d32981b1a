//! Pending proposals are confirmed or dismissed on the pages, with a reason.

use crate::house::{House, clear};
use steward_domain::action::audit::ActionKind;
use steward_tests::vault::Signal;
use steward_tests::wait;

#[tokio::test]
async fn what_waits_is_confirmed_or_dismissed_with_a_reason() {
    let Some(house) = House::lived_in("answers").await else { return };
    let (page, vault) = (&house.browser, &house.world.vault);
    let (roof, desk) = (house.action("roof"), house.action("desk"));
    let before = vault.read("task/desk.md");

    page.script(false).await;
    page.goto("/").await;
    assert!(page.text(".lead").await.starts_with("2 proposals wait for you"));
    house.give_reason("desk", "still creaks <b>").await;
    page.press(&format!("{} button[value=dismiss]", house.card("desk"))).await;
    assert_eq!(page.text(".done[role=status] span").await, "Dismissed: desk");
    assert_eq!(
        house.answer(&desk),
        ("steward-action-dismissed".into(), "tester".into(), Some("still creaks <b>".into()))
    );
    assert!(page.text("main").await.contains("tester: still creaks <b>"));
    assert_eq!(vault.read("task/desk.md"), before);

    page.script(true).await;
    page.goto("/").await;
    assert!(page.text(".lead").await.starts_with("One proposal waits for you"));
    page.press(&format!("{} button[value=confirm]", house.card("roof"))).await;
    assert_eq!(page.text(".done[role=status] span").await, "Confirmed: roof (state: open → done)");
    assert_eq!(vault.state("roof"), "done");
    page.shot("confirmed").await;
    page.goto("/").await;
    page.answers("confirm", &roof).await;
    assert_eq!((page.status().await, page.text("h1").await.as_str()), (409, "Not done"));
    assert_eq!(page.count(".stop-bar button.stop").await, 1, "whom something is refused may stop it all");
    page.goto("/").await;
    page.answers("dismiss", &house.action("rent")).await;
    assert_eq!((page.status().await, page.text("h1").await.as_str()), (400, "Refused"));

    // A confirmed change is like any other change.
    page.goto(&format!("/actions/{roof}")).await;
    let followed = page.text("section[aria-labelledby=followed]").await;
    assert!(followed.contains("confirmed") && followed.contains("tester"), "{followed}");
    page.press("section[aria-labelledby=followed] a").await;
    page.press("button[value=undo]").await;
    assert_eq!(vault.state("roof"), "open");
    page.is_sound().await;
    house.world.verify_chain().await;
}

/// Ticks until the first page begins with this text.
async fn leads_to(house: &House, lead: &str) {
    let page = &house.browser;
    let says = async || {
        house.world.tick("house").await;
        page.goto("/").await;
        page.text(".lead").await.starts_with(lead).then_some(())
    };
    wait::until(lead, says).await;
}

#[tokio::test]
async fn what_only_a_human_can_say_is_asked_once_and_can_be_set_aside() {
    let Some(house) = House::lived_in("asks").await else { return };
    let (page, vault) = (&house.browser, &house.world.vault);
    let quote = "So sorry about the bank. Could you wait until the first, or shall I pay half of it now?";
    for task in ["loan", "fence"] {
        vault.task(task, "house");
        let asks = Signal { quote, proposes: "", effect: "action", ..Signal::done(task) };
        vault.signal(&format!("s-{task}"), &asks);
    }
    page.script(false).await;
    leads_to(&house, "2 proposals wait for you; you have 2 questions; ").await;
    let card = house.card("loan");
    let shown = page.text(&card).await;
    assert!(shown.contains("asks you") && shown.contains(quote), "{shown}");
    assert_eq!(page.count(&format!("{card} button[value=confirm]")).await, 0, "there is nothing to confirm");
    page.shot("asked").await;
    page.press(&format!("{card} button[value=dismiss]")).await;
    assert_eq!(page.text(".done[role=status] span").await, "Kept open: loan");
    assert_eq!(house.answer(&house.action("loan")).0, "steward-action-dismissed");

    // The other change is made by hand, so it is no longer a question.
    vault.set_state("fence", "done");
    leads_to(&house, "2 proposals wait for you; 2 things").await;
    assert_eq!(page.count("section[aria-labelledby=asks]").await, 0);
    page.is_sound().await;
}

#[tokio::test]
async fn what_was_confirmed_together_is_one_card_and_undone_together() {
    let Some(house) = House::lived_in_with("confirm-together", &["gate"]).await else { return };
    let (page, vault) = (&house.browser, &house.world.vault);
    page.goto("/").await;
    page.press("section[aria-labelledby=waits] .cluster a").await;
    page.press("main button[value=confirm]").await;
    assert_eq!(page.text("h1").await, "3 confirmed");
    page.goto("/").await;
    let all = "section[aria-labelledby=changed] .resolutions a.button";
    assert_eq!(page.text(all).await, "Undo all 3");
    page.press(all).await;
    assert_eq!(page.text("h1").await, "Undo 3 changes");
    // One of them alone, by somebody else: the others are left as one.
    let one =
        vault.records().iter().rev().find(|r| r.draft.kind == ActionKind::Confirmed).unwrap().draft.id.to_string();
    let other = house.another().await;
    other.goto("/").await;
    other.answers("undo", &one).await;
    page.goto("/").await;
    assert_eq!(page.text(all).await, "Undo all 2");
    page.press(all).await;
    page.press("main button[value=undo]").await;
    assert_eq!(page.text("h1").await, "2 undone");
    for task in ["roof", "desk", "gate"] {
        assert_eq!(vault.state(task), "open", "{task}");
    }
    page.is_sound().await;
    house.world.verify_chain().await;
}

#[tokio::test]
async fn changes_of_one_source_are_undone_together_after_a_look_at_what_that_does() {
    let Some(house) = House::lived_in("undo-together").await else { return };
    let (page, world) = (&house.browser, &house.world);
    for task in ["lamp", "door"] {
        clear(world, task);
    }
    leads_to(&house, "2 proposals wait for you; 4 things").await;
    let offer = "section[aria-labelledby=changed] .cluster a";
    assert_eq!(page.text(offer).await, "Undo 4 changes");
    // What somebody changed since is told, and left as it is.
    world.vault.set_state("door", "archived");
    page.press(offer).await;
    assert_eq!(page.text("h1").await, "Undo 3 changes");
    assert!(page.text("main .problem").await.starts_with("Undo would be refused now"), "{}", page.text("main").await);
    page.shot("looked-at").await;
    page.types(".reason input", "too early").await;
    page.press("main button[value=undo]").await;
    assert_eq!(page.text("h1").await, "3 undone");
    for task in ["rent", "bills", "lamp"] {
        assert_eq!(world.vault.state(task), "open");
        let (kind, by, reason) = house.answer(&house.action(task));
        assert_eq!(
            (kind.as_str(), by.as_str(), reason.as_deref()),
            ("steward-action-reversed", "tester", Some("too early"))
        );
    }
    assert_eq!(world.vault.state("door"), "archived");
    page.goto("/").await;
    assert_eq!(page.count(offer).await, 0, "one is too few to be offered");
    page.is_sound().await;
    world.verify_chain().await;
}

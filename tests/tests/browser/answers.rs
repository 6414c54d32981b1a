//! What waits is let happen or turned down, with a reason.

use crate::house::House;

#[tokio::test]
async fn what_waits_is_confirmed_or_dismissed_with_a_reason() {
    let Some(house) = House::lived_in("answers").await else { return };
    let (page, vault) = (&house.browser, &house.world.vault);
    let (roof, desk) = (house.action("roof"), house.action("desk"));
    let before = vault.read("task/desk.md");

    page.script(false).await;
    page.goto("/").await;
    assert!(page.text(".lead").await.starts_with("2 proposals wait for you"));
    page.types(&format!("{} .reason input", house.card("desk")), "still creaks <b>").await;
    page.press(&format!("{} button[value=dismiss]", house.card("desk"))).await;
    assert_eq!(page.text(".done[role=status]").await, "Dismissed: desk");
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
    assert_eq!(page.text(".done[role=status]").await, "Confirmed: roof");
    assert_eq!(vault.state("roof"), "done");
    page.shot("confirmed").await;
    page.goto("/").await;
    page.answers("confirm", &roof).await;
    assert_eq!((page.status().await, page.text("h1").await.as_str()), (409, "Not done"));
    page.goto("/").await;
    page.answers("dismiss", &house.action("rent")).await;
    assert_eq!((page.status().await, page.text("h1").await.as_str()), (400, "Refused"));

    // What was confirmed is a change like others.
    page.goto(&format!("/actions/{roof}")).await;
    let followed = page.text("section[aria-labelledby=followed]").await;
    assert!(followed.contains("confirmed") && followed.contains("tester"), "{followed}");
    page.press("section[aria-labelledby=followed] a").await;
    page.press("button[value=undo]").await;
    assert_eq!(vault.state("roof"), "open");
    page.is_sound().await;
    house.world.verify_chain().await;
}

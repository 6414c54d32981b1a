//! Undo in every situation: at once, again, from an old page, after a person's edit, too late, and where nothing
//! changed.

use crate::house::{House, clear};
use chrono::{TimeDelta, Utc};
use steward_tests::past;
use steward_tests::world::World;

/// The text of the page after a refused click.
async fn refused(house: &House, status: u64, title: &str, says: &str) {
    let page = &house.browser;
    let (h1, main) = (page.text("h1").await, page.text("main").await);
    assert_eq!((page.status().await, h1.as_str()), (status, title), "{main}");
    assert!(main.contains(says), "{main}");
    page.is_sound().await;
}

#[tokio::test]
async fn one_click_takes_a_change_back_and_an_old_page_is_told_so() {
    let Some(house) = House::lived_in("undo").await else { return };
    let (page, vault) = (&house.browser, &house.world.vault);
    let other = house.another().await;
    for (script, task) in [(true, "rent"), (false, "bills")] {
        page.script(script).await;
        other.script(script).await;
        other.goto("/").await;
        page.goto("/").await;
        let (action, card) = (house.action(task), house.card(task));
        let shown = page.text(&card).await;
        for said in [task, "state", "open", "done", "mail"] {
            assert!(shown.contains(said), "{said}: {shown}");
        }
        let waits = page.text(&house.card("roof")).await;
        assert!(waits.contains("waits for you") && waits.contains("this one holds it back"), "{waits}");
        page.shot(&format!("today-{script}")).await;
        let changed = String::from_utf8(vault.read(&format!("task/{task}.md"))).unwrap();

        page.press(&format!("{card} a[href$=undo]")).await;
        page.types(".reason input", "not yet").await;
        page.press("main button[value=undo]").await;
        assert!(page.place().await.starts_with(&format!("/actions/{action}?done=")));
        let done = page.text(".done[role=status]").await;
        assert!(done.starts_with("Undone") && done.contains(task), "{done}");
        assert_eq!(String::from_utf8(vault.read(&format!("task/{task}.md"))).unwrap(), changed.replace("done", "open"));
        let said = house.answer(&action);
        assert_eq!(said, ("steward-action-reversed".into(), "tester".into(), Some("not yet".into())));
        page.is_sound().await;

        other.press(&format!("{card} button[value=undo]")).await;
        let told = other.text("main").await;
        assert_eq!((other.status().await, other.text("h1").await.as_str()), (409, "Not done"), "{told}");
        assert!(told.contains("already undone by tester"), "{told}");
        assert_eq!(house.answer(&action), said);
        other.is_sound().await;
    }
    house.world.verify_chain().await;
}

#[tokio::test]
async fn what_cannot_be_undone_is_refused_with_the_reason() {
    let Some(house) = House::lived_in("refused").await else { return };
    let (page, vault) = (&house.browser, &house.world.vault);
    let waits = house.action("roof");
    for (script, task) in [(true, "rent"), (false, "bills")] {
        page.script(script).await;
        let (action, file) = (house.action(task), format!("task/{task}.md"));
        page.goto(&format!("/actions/{action}/undo")).await;
        let edited = String::from_utf8(vault.read(&file)).unwrap().replace("state: done", "state: archived");
        vault.write(&file, &edited);
        page.press("main form.resolutions button").await;
        refused(&house, 409, "Not done", "edited by a human since: state").await;
        page.goto(&format!("/actions/{action}/undo")).await;
        let kept = page.text("main").await;
        assert!(kept.contains("Undo would be refused now") && kept.contains("archived"), "{kept}");
        page.shot(&format!("preview-{script}")).await;
        assert_eq!(page.count("main form.resolutions").await, 0, "what would be refused is not offered");
        page.goto("/").await;
        page.answers("undo", &waits).await;
        refused(&house, 400, "Refused", "changed nothing (pending)").await;
        page.goto("/").await;
        page.answers("undo", "ffffffffffffffff").await;
        refused(&house, 404, "Not found", "no action has the id").await;
        page.goto("/actions/ffffffffffffffff").await;
        refused(&house, 404, "Not found", "no action").await;
        page.goto("/nowhere").await;
        refused(&house, 404, "Not found", "").await;
        assert_eq!(vault.read(&file), edited.as_bytes());
    }
    assert_eq!(vault.records().len(), 4, "a refusal leaves no record");
}

#[tokio::test]
async fn after_a_week_and_in_shadow_there_is_nothing_to_take_back() {
    let world = World::new().await;
    world.vault.matter("house");
    clear(&world, "rent");
    world.vault.task("old", "house");
    let old = past::change(&world.vault, "old", Utc::now() - TimeDelta::days(7));
    let young = {
        world.vault.task("young", "house");
        past::change(&world.vault, "young", Utc::now() - TimeDelta::days(7) + TimeDelta::hours(1))
    };
    let Some(house) = House::of("too-late", world).await else { return };
    house.world.tick("house").await;
    let page = &house.browser;
    page.log_in(&steward_tests::api::link(&house.up)).await;
    let shadow = house.action("rent");
    for script in [true, false] {
        page.script(script).await;
        page.goto("/").await;
        page.answers("undo", &old).await;
        refused(&house, 410, "Too late", "its undo window ended").await;
        page.goto(&format!("/actions/{old}")).await;
        assert_eq!(page.count("button[value=undo]").await, 0);
        page.goto("/").await;
        assert_eq!(page.count(&format!("#a{shadow} button[value=undo]")).await, 0, "a shadow changed nothing");
        page.answers("undo", &shadow).await;
        refused(&house, 400, "Refused", "changed nothing (shadow)").await;
    }
    assert_eq!(house.world.vault.state("old"), "done");
    page.goto(&format!("/actions/{young}")).await;
    page.press("button[value=undo]").await;
    assert_eq!(house.world.vault.state("young"), "open", "an hour before its end the window is open");
}

//! A person teaches from the first day: evidence for and against, questions, Right and Wrong in Watch, answers that are
//! taken back, and cards that are put off.

use crate::house::{House, unclear};
use chrono::{TimeDelta, Utc};
use steward_tests::vault::Signal;
use steward_tests::wait;
use steward_tests::world::World;

/// A world in Watch with these tasks, each reported as done.
async fn watching(test: &str, tasks: &[&str]) -> Option<House> {
    let world = World::new().await;
    world.vault.matter("house");
    for task in tasks {
        world.vault.task(task, "house");
        world.vault.signal(&format!("s-{task}"), &Signal::done(task));
    }
    let house = House::of(test, world).await?;
    house.world.tick("house").await;
    house.browser.log_in(&steward_tests::api::link(&house.up)).await;
    Some(house)
}

#[tokio::test]
async fn what_speaks_against_a_proposal_is_on_its_card_and_confirm_is_not_the_main_button() {
    let world = World::new().await.live();
    world.vault.matter("house");
    unclear(&world, "roof");
    let Some(house) = House::of("against", world).await else { return };
    let page = &house.browser;
    house.world.tick("house").await;
    page.log_in(&steward_tests::api::link(&house.up)).await;
    let card = house.card("roof");
    assert_eq!(page.count(&format!("{card} button.go[value=confirm]")).await, 1);
    assert!(page.text(&card).await.contains("this one holds it back"), "{}", page.text(&card).await);

    let bounced = Signal {
        source: "bank",
        quote: "Returned unpaid: insufficient funds.",
        proposes: "",
        effect: "action",
        created: Utc::now(),
        ..Signal::done("roof")
    };
    house.world.vault.signal("s-bounced", &bounced);
    let shown = async || {
        page.goto("/").await;
        (page.count(&format!("{card} .message.against")).await == 1).then_some(())
    };
    wait::until("the card to show what speaks against it", shown).await;
    let text = page.text(&format!("{card} .message.against")).await;
    assert!(text.contains("Returned unpaid") && text.contains("Against") && text.contains("bank"), "{text}");
    assert_eq!(page.count(&format!("{card} button[value=confirm]")).await, 1);
    assert_eq!(page.count(&format!("{card} button.go[value=confirm]")).await, 0);
    page.is_sound().await;
    page.shot("card").await;

    let told = house.world.json(&["why", "roof"]).await;
    let stances: Vec<&str> = told["stances"].as_object().unwrap().values().filter_map(|s| s.as_str()).collect();
    assert!(stances.contains(&"against") && stances.contains(&"for"), "{told:#}");
    let said = house.world.run(&["why", "roof"]).await.expect(0).out;
    assert!(said.contains("against: signal/s-bounced.md"), "{said}");
}

#[tokio::test]
async fn a_question_is_answered_with_a_click_and_the_answer_is_taken_back() {
    let Some(house) = House::lived_in("questions").await else { return };
    let (page, vault) = (&house.browser, &house.world.vault);
    for task in ["loan", "fence"] {
        vault.task(task, "house");
        let asks =
            Signal { quote: "Shall I pay half of it now?", proposes: "", effect: "action", ..Signal::done(task) };
        vault.signal(&format!("s-{task}"), &asks);
    }
    let asked = async || {
        house.world.tick("house").await;
        page.goto("/").await;
        (page.count("section[aria-labelledby=asks] .card").await == 2).then_some(())
    };
    wait::until("both questions", asked).await;
    let before = vault.read("task/loan.md");
    let (loan, fence) = (house.card("loan"), house.card("fence"));
    page.shot("asked").await;
    page.press(&format!("{loan} button[value=set_done]")).await;
    assert!(page.text(".done[role=status]").await.contains("loan (state: open → done)"));
    assert_eq!(vault.state("loan"), "done");
    page.press(".done[role=status] button[value=undo]").await;
    assert_eq!(vault.read("task/loan.md"), before);

    page.press(&format!("{fence} button[value=dismiss]")).await;
    assert_eq!(page.count("section[aria-labelledby=asks]").await, 0);
    page.press(".done[role=status] button[value=reopen]").await;
    assert_eq!(page.count(&fence).await, 1, "the question is asked again");
    house.world.run(&["stop"]).await.expect(0);
    page.goto("/").await;
    assert_eq!(page.count(&format!("{fence} button[value=set_done]")).await, 0);
    assert!(page.text(&fence).await.contains("Steward is stopped"));
    page.is_sound().await;
    house.world.verify_chain().await;
}

#[tokio::test]
async fn a_proposal_is_dismissed_reopened_twice_confirmed_and_undone() {
    let Some(house) = House::lived_in("reopened").await else { return };
    let (page, vault) = (&house.browser, &house.world.vault);
    page.goto("/").await;
    let (roof, before) = (house.card("roof"), vault.read("task/roof.md"));
    for _ in 0..2 {
        page.press(&format!("{roof} button[value=dismiss]")).await;
        assert_eq!(page.count(&format!("{roof} button[value=dismiss]")).await, 0);
        page.press(".done[role=status] button[value=reopen]").await;
        assert_eq!(page.count(&format!("{roof} button[value=dismiss]")).await, 1);
    }
    page.press(&format!("{roof} button[value=confirm]")).await;
    assert_eq!(vault.state("roof"), "done");
    page.press(".done[role=status] button[value=undo]").await;
    assert_eq!(vault.read("task/roof.md"), before);
    let kinds: Vec<&str> = vault
        .records()
        .iter()
        .filter(|record| record.draft.target.as_str() == "task/roof.md" && record.draft.resolution.is_some())
        .map(|record| record.draft.kind.as_str().trim_start_matches("steward-action-"))
        .collect();
    assert_eq!(kinds, ["dismissed", "reopened", "dismissed", "reopened", "confirmed", "reversed"]);
    house.world.verify_chain().await;
    // The same by the command line, with the ids that it prints.
    let desk = house.action("desk");
    for command in ["dismiss", "reopen", "dismiss", "reopen", "confirm"] {
        house.world.run(&[command, &desk]).await.expect(0);
    }
    assert_eq!(vault.state("desk"), "done");
    house.world.run(&["reopen", &desk]).await.expect(3);
}

#[tokio::test]
async fn in_watch_a_person_says_right_and_wrong_and_the_report_counts_it() {
    let tasks = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let Some(house) = watching("watch", &tasks).await else { return };
    let (page, vault) = (&house.browser, &house.world.vault);
    let before = vault.files();
    page.goto("/").await;
    assert_eq!(page.text(".mode").await, "Mode: Watch");
    assert_eq!(page.count("section[aria-labelledby=would] .card").await, 10);
    page.is_sound().await;
    page.shot("before").await;
    for n in 0..tasks.len() {
        let kind = ["right", "right_done", "wrong", "right", "right"][n % 5];
        page.press(&format!("section[aria-labelledby=would] .card button[value={kind}]")).await;
    }
    page.shot("after").await;
    assert_eq!(page.count("section[aria-labelledby=would] button[value=right]").await, 0);
    let told = house.world.json(&["trust", "report"]).await;
    let total = &told["total"];
    assert_eq!((&total["agreed"], &total["wrong"]), (&8.into(), &2.into()), "{told:#}");
    assert_eq!(vault.files().since_but_events(&before), Vec::<String>::new(), "no note is changed");

    // A wrong that was a slip is taken back.
    page.press(".done[role=status] button[value=reopen]").await;
    assert_eq!(page.count("section[aria-labelledby=would] button[value=wrong]").await, 1);
    house.world.verify_chain().await;
}

#[tokio::test]
async fn nothing_that_raises_trust_is_taken_from_a_token() {
    let Some(house) = watching("tokens", &["rent"]).await else { return };
    let action = house.action("rent");
    let token = house.world.json(&["token", "create", "--name", "bot", "--scope", "operate"]).await;
    let token = token["token"].as_str().unwrap().to_owned();
    for kind in ["right", "right_done", "wrong", "reopen"] {
        let url = format!("{}/actions/{action}/resolve", house.api.base);
        let form = reqwest::Client::new().post(url).header("content-type", "application/x-www-form-urlencoded");
        let sent = form.bearer_auth(&token).body(format!("kind={kind}")).send().await.unwrap();
        assert_eq!(sent.status().as_u16(), 403, "{kind}");
    }
    house.world.run(&["wrong", &action]).await.expect(0);
    let refused = house.world.run(&["right", &action]).await.expect(3);
    assert!(refused.out.contains("called wrong"), "{}", refused.out);
}

#[tokio::test]
async fn a_card_that_was_put_off_is_back_at_the_next_signal_or_at_once() {
    let Some(house) = House::lived_in("later").await else { return };
    let (page, vault) = (&house.browser, &house.world.vault);
    let before = vault.files();
    page.goto("/").await;
    assert_eq!(page.run("return document.title").await, "(2) Today · Steward");
    let roof = house.card("roof");
    page.find(&format!("{roof} details.more summary")).await.click().await.unwrap();
    page.press(&format!("{roof} button[value=tomorrow]")).await;
    assert_eq!(page.count(&roof).await, 0);
    assert!(page.text(".lead").await.starts_with("One proposal waits for you"));
    assert!(page.text("section[aria-labelledby=snoozed]").await.contains("roof until"));
    page.shot("put-off").await;
    page.is_sound().await;
    page.press(".done[role=status] button[value=end]").await;
    assert_eq!(page.count(&roof).await, 1);
    page.find(&format!("{roof} details.more summary")).await.click().await.unwrap();
    page.press(&format!("{roof} button[value=week]")).await;
    assert_eq!(vault.files().since(&before), Vec::<String>::new(), "it writes no file");
    vault.signal(
        "s-later",
        &Signal {
            quote: "One more thing.",
            proposes: "",
            effect: "action",
            created: Utc::now() - TimeDelta::minutes(1),
            ..Signal::done("roof")
        },
    );
    let back = async || {
        page.goto("/").await;
        (page.count("section[aria-labelledby=snoozed]").await == 0).then_some(())
    };
    wait::until("the card to be back", back).await;
}

#[tokio::test]
async fn what_an_assistant_dismissed_counts_when_a_person_agrees_and_no_more_when_they_take_that_back() {
    let Some(house) = House::lived_in("agreed").await else { return };
    let (page, action) = (&house.browser, house.action("roof"));
    let wrong = async || house.world.json(&["trust", "report"]).await["total"]["wrong"].as_u64().unwrap();
    let before = wrong().await;
    let named = format!("action={action}");
    let arguments = ["mcp", "call", "steward_dismiss", &named, "reason=the roof is not done", "--allow", "act"];
    let dismissed = house.world.json(&arguments).await;
    assert_eq!(wrong().await, before, "it teaches nothing: {dismissed:#}");
    page.goto(&format!("/actions/{}", dismissed["undo_id"].as_str().unwrap())).await;
    assert!(
        page.text("main").await.contains("An assistant did this, so Steward learns nothing from it until you agree.")
    );
    page.is_sound().await;
    page.shot("agree").await;
    page.press("button[value=right]").await;
    page.shot("agreed").await;
    assert_eq!(page.count("button[value=right]").await, 0);
    assert_eq!(wrong().await, before + 1);
    page.press(".done[role=status] button[value=reopen]").await;
    assert_eq!((page.count("button[value=right]").await, wrong().await), (1, before));
    page.goto(&format!("/actions/{}?set=archived", house.action("desk"))).await;
    assert!(page.text("section[aria-labelledby=edit]").await.contains("An assistant suggests archived."));
    assert_eq!(page.run("return document.querySelector('select[name=value]').value").await, "archived");
    page.shot("suggested").await;
    house.world.verify_chain().await;
}

//! The page "Trust" on simulated days: a sender is let act, acts, is undone, and is asked first again.

use crate::house::House;
use steward_domain::action::audit::ActionKind;
use steward_domain::action::plan::Disposition;
use steward_tests::vault::Signal;
use steward_tests::wait;
use steward_tests::world::World;

/// The sender that is right in nearly every case of the simulated days.
const VENDOR: &str = "gmail:invoices@vendor-x.example";

/// A vault with simulated days, in Suggest.
async fn simulated(days: &str) -> World {
    let world = World::new().await.live().set("STEWARD_DEFAULT_CEILING", "confirm");
    let folder = world.vault.path().display().to_string();
    world.run(&["simulate", "--days", days, &folder]).await.expect(0);
    world
}

/// The instinct of the vendor, and its file.
fn instinct(world: &World) -> (String, String) {
    let entries = std::fs::read_dir(world.vault.path().join("instinct")).unwrap();
    let names = entries.map(|entry| format!("instinct/{}", entry.unwrap().file_name().to_str().unwrap()));
    let read = |path: String| (path.clone(), String::from_utf8(world.vault.read(&path)).unwrap());
    names.map(read).find(|(_, text)| text.contains(&format!("source: {VENDOR}"))).unwrap()
}

/// A new task, and a message of the vendor that it is done.
fn vendor_writes(world: &World, task: &str) {
    let matter = std::fs::read_dir(world.vault.path().join("matter")).unwrap().next().unwrap().unwrap();
    let matter = matter.path().file_stem().unwrap().to_str().unwrap().to_owned();
    world.vault.task(task, &matter);
    let signal = Signal { source: VENDOR, created: chrono::Utc::now(), ..Signal::done(task) };
    world.vault.signal(&format!("s-{task}"), &signal);
}

async fn until_decided(world: &World, task: &str) -> Disposition {
    let target = format!("task/{task}.md");
    wait::within(2 * wait::PATIENCE, &format!("a decision about {task}"), async || {
        let records = world.vault.records();
        let found = records.iter().find(|r| r.draft.target.as_str() == target && r.draft.class.is_some());
        found.map(|record| record.draft.disposition)
    })
    .await
}

#[tokio::test]
async fn one_sender_is_let_act_acts_is_undone_and_is_asked_first_again_all_from_the_page() {
    let world = simulated("12").await;
    let Some(house) = House::of("senders", world).await else { return };
    let (page, world) = (&house.browser, &house.world);
    page.log_in(&steward_tests::api::link(&house.up)).await;
    page.goto("/trust").await;
    let (path, before) = instinct(world);
    let key = path.trim_start_matches("instinct/").trim_end_matches(".md").to_owned();
    let card = format!("#s-{key}");
    let text = page.text("section[aria-labelledby=ready]").await;
    assert!(text.contains(VENDOR) && text.contains("It has earned to act: you can let it."), "{text}");
    let early = page.text("section[aria-labelledby=early]").await;
    assert!(early.contains("Show all"), "{early}");
    page.find("section[aria-labelledby=early] summary").await.click().await.unwrap();
    assert!(page.text("section[aria-labelledby=early]").await.contains("more right proposals before it may act"));
    assert!(page.count("section[aria-labelledby=early] button[value=act][disabled]").await >= 5);
    let mut barriers = Vec::new();
    for (width, dark) in [(390, false), (390, true), (1_280, false), (1_280, true)] {
        page.looks(width, dark).await;
        page.shot(&format!("{width}-{}", if dark { "dark" } else { "light" })).await;
        barriers.extend(page.barriers().await.into_iter().chain(page.faults().await));
    }
    assert_eq!(barriers, Vec::<String>::new());

    page.press(&format!("{card} button[value=act]")).await;
    assert!(page.text(".done[role=status]").await.contains("may act from its next message on"));
    assert_eq!(instinct(world).1, before.replacen("\n---\n", "\nceiling: act\n---\n", 1));
    let line = page.text(&format!("section[aria-labelledby=acting] {card}")).await;
    assert!(line.contains(&format!("{path}:")), "the line that sets it is named: {line}");

    vendor_writes(world, "by-itself");
    assert_eq!(until_decided(world, "by-itself").await, Disposition::Live);
    wait::until("the change", async || (world.vault.state("by-itself") == "done").then_some(())).await;
    let undo = format!("#a{} button[value=undo]", house.action("by-itself"));
    wait::until("the change on Today", async || {
        page.goto("/").await;
        (page.count(&undo).await == 1).then_some(())
    })
    .await;
    page.press(&undo).await;
    wait::until("the undo", async || (world.vault.state("by-itself") == "open").then_some(())).await;

    page.goto("/trust").await;
    page.press(&format!("{card} button[value=confirm]")).await;
    assert!(page.text(".done[role=status]").await.contains("asks you first from now on"));
    assert!(instinct(world).1.contains("\nceiling: confirm\n"));
    vendor_writes(world, "asked");
    assert_eq!(until_decided(world, "asked").await, Disposition::Pending);

    // Steward's own numbers may have changed meanwhile, but not the ceiling.
    page.goto("/trust").await;
    let set: Vec<_> = world.vault.records().into_iter().filter(|r| r.draft.kind == ActionKind::CeilingSet).collect();
    assert_eq!(set.len(), 2);
    world.run(&["undo", set[1].draft.id.as_str()]).await.expect(0);
    assert!(instinct(world).1.contains("\nceiling: act\n"), "its cases still support it");
    world.run(&["undo", set[0].draft.id.as_str()]).await.expect(0);
    assert!(!instinct(world).1.contains("ceiling:"));
    world.verify_chain().await;
}

#[tokio::test]
async fn only_who_may_operate_raises_a_sender_and_only_with_the_cases_for_it() {
    let world = simulated("8").await;
    let Some(house) = House::of("senders-refused", world).await else { return };
    let (page, world) = (&house.browser, &house.world);
    page.log_in(&steward_tests::api::link(&house.up)).await;
    page.goto("/trust").await;
    let nearly = page.text("section[aria-labelledby=nearly]").await;
    assert!(nearly.contains(VENDOR) && nearly.contains("more right proposals before it may act"), "{nearly}");
    let (path, before) = instinct(world);
    let key = path.trim_start_matches("instinct/").trim_end_matches(".md").to_owned();
    let set = async |api: &steward_tests::api::Api, source: &str, kind: &str| {
        api.form("/trust", &[("value", source), ("kind", kind)]).await
    };
    let operator = house.api.token(world, "operate").await;
    let refused = set(&operator, &key, "act").await;
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(refused.body.contains("more right proposals are needed"), "{refused:?}");
    assert_eq!(instinct(world).1, before);
    assert_eq!(set(&operator, "nobody", "ask").await.status, 404);
    assert_eq!(set(&operator, &key, "live").await.status, 400);
    let acting = house.api.token(world, "act").await;
    for kind in ["act", "confirm", "ask"] {
        assert_eq!(set(&acting, &key, kind).await.status, 403, "{kind}");
    }
    assert_eq!(acting.get("/trust").await.status, 200);

    // To lower is never refused, and who may only act cannot undo it.
    assert_eq!(set(&operator, &key, "ask").await.status, 303);
    let record = world.vault.records().pop().unwrap();
    assert_eq!(record.draft.kind, ActionKind::CeilingSet);
    assert!(record.render().unwrap().contains("from none to ask"), "{record:?}");
    let answer = acting.answer("undo", record.draft.id.as_str()).await;
    assert_eq!(answer.status, 403, "{answer:?}");
    // A person wrote `act` by hand; who takes it back from there needs the cases to undo that.
    world.vault.write(&path, instinct(world).1.replace("ceiling: ask", "ceiling: act"));
    wait::until("the index to know", async || {
        page.goto("/trust").await;
        (page.count("section[aria-labelledby=acting]").await == 1).then_some(())
    })
    .await;
    assert_eq!(set(&operator, &key, "confirm").await.status, 303);
    let lowered = world.vault.records().pop().unwrap();
    let answer = operator.answer("undo", lowered.draft.id.as_str()).await;
    assert_eq!(answer.status, 409, "{answer:?}");
    assert!(answer.body.contains("more right proposals are needed"), "{answer:?}");
    assert!(instinct(world).1.contains("\nceiling: confirm\n"));
    world.verify_chain().await;
}

//! Pages of notes with the names that people give them.

use crate::house::House;
use steward_tests::api;
use steward_tests::vault::Signal;
use steward_tests::wait;
use steward_tests::world::World;

const MATTER: &str = "Wedding of Ann & Ben";
const TASK: &str = "100 % \"Blüte\" #2 💐?";

#[tokio::test]
async fn a_note_of_any_name_is_reached_from_its_card_and_from_its_matter() {
    let world = World::new().await.live();
    world.vault.matter(MATTER);
    world.vault.task(TASK, MATTER);
    world.vault.write("signal/paid.md", Signal::done("x").text().replace("task/x.md", &format!("'task/{TASK}.md'")));
    let Some(house) = House::of("names", world).await else { return };
    house.world.tick(MATTER).await;
    let page = &house.browser;
    page.log_in(&api::link(&house.up)).await;
    page.goto("/").await;
    page.press(&format!("{} h3 a", house.card(TASK))).await;
    assert_eq!(page.status().await, 200);
    let shown = page.text("main").await;
    assert!(shown.contains(&format!("task/{TASK}.md")) && shown.contains("It is finished"), "{shown}");
    page.is_sound().await;
    page.shot("task").await;
    page.press("main .meta a").await;
    let matter = page.text("main").await;
    assert!(matter.contains(&format!("matter/{MATTER}.md")) && matter.contains(TASK), "{matter}");
    page.press("section[aria-labelledby=tasks] td a").await;
    assert!(page.text("main").await.contains(&format!("task/{TASK}.md")));
}

#[tokio::test]
async fn the_page_of_a_note_shows_its_text_as_text_opens_it_elsewhere_and_checks_it_now() {
    let world = World::new().await.live();
    world.vault.matter("house");
    let lines: String = (1..=320).map(|n| format!("line {n}\n")).collect();
    let text = format!(
        "---\ntype: task\nname: Rent\nstate: open\ndue: 2026-12-01\nowner: Ann\nparent_matter: house\n---\n<script>alert(1)</script>\n{lines}"
    );
    world.vault.write("task/rent.md", text);
    world.vault.write("matter/house.md", "---\ntype: matter\nname: House\nsteward:\n  daily_budget: 3\n---\nOurs.\n");
    let Some(house) = House::of("note", world).await else { return };
    let page = &house.browser;
    page.log_in(&api::link(&house.up)).await;
    page.goto("/records/task/rent.md").await;
    let shown = page.text("main").await;
    for part in ["<script>alert(1)</script>", "line 299", "21 more lines", "2026-12-01", "Ann", "at most 3"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("line 300\n"), "{shown}");
    assert_eq!(page.count("main script").await, 0);
    let link = page.find(".note-links a").await.attr("href").await.unwrap().unwrap();
    assert!(link.starts_with("obsidian://open?vault=") && link.ends_with("&file=task%2Frent"), "{link}");
    page.is_sound().await;
    page.shot("task").await;

    // A new signal is judged now, and not at the next half hour.
    house.world.hold_schedule("al-signal-router").await;
    house.world.vault.signal("s", &Signal::done("rent"));
    page.press("form[action='/check'] button").await;
    assert_eq!(page.place().await, "/records/task/rent.md");
    steward_tests::wait::until("the task to be done", async || {
        (house.world.vault.state("rent") == "done").then_some(())
    })
    .await;
    house.world.run(&["stop"]).await.expect(0);
    page.goto("/records/task/rent.md").await;
    assert_eq!(page.count("form[action='/check']").await, 0, "a stopped vault checks nothing");
    page.goto("/records/matter/house.md").await;
    assert!(page.text("main").await.contains("Ours."));
    page.is_sound().await;
}

#[tokio::test]
async fn a_note_that_was_renamed_and_changed_at_once_is_found_again_with_a_click() {
    let Some(house) = House::lived_in("moved").await else { return };
    let (page, vault) = (&house.browser, &house.world.vault);
    let text = String::from_utf8(vault.read("task/rent.md")).unwrap();
    // Another machine renamed it and wrote into it, so nothing of it is the same.
    std::fs::remove_file(vault.path().join("task/rent.md")).unwrap();
    vault.write("task/Rent & more.md", format!("{text}more\n"));
    let lost = "ul.troubles a[href='/records/task/rent.md']";
    let missed = async || {
        page.goto("/").await;
        (page.count(lost).await == 1).then_some(())
    };
    wait::until("Today to say that a note is gone", missed).await;
    page.press(lost).await;
    let shown = page.text("section[aria-labelledby=lost]").await;
    assert!(shown.contains("Where is this note?") && shown.contains("task/Rent & more.md"), "{shown}");
    page.is_sound().await;
    page.shot("lost").await;

    page.types("section[aria-labelledby=lost] input[name=value]:not([type=hidden])", "task/nowhere").await;
    page.press("section[aria-labelledby=lost] label + button").await;
    assert_eq!(page.status().await, 409);
    assert!(page.text("main").await.contains("no such note"), "{}", page.text("main").await);
    page.goto("/records/task/rent.md").await;
    page.press("section[aria-labelledby=lost] button[value='task/Rent & more.md']").await;
    assert_eq!(page.place().await, "/records/task/Rent%20%26%20more.md");
    assert!(page.text("section[aria-labelledby=timeline]").await.contains("changed"), "its history follows");
    page.press(&format!("{} button[value=undo]", house.card("rent"))).await;
    assert_eq!(
        String::from_utf8(vault.read("task/Rent & more.md")).unwrap(),
        format!("{}more\n", text.replace("done", "open"))
    );
}

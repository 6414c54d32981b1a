//! A crash during an undo that a person clicked.

use crate::house::{House, clear};
use futures::join;
use steward_tests::api;
use steward_tests::browser::Browser;
use steward_tests::run;
use steward_tests::world::World;

/// After the change and before its record is filed, and after both.
const POINTS: [&str; 2] = ["before-filing", "after-filing"];

/// A world in which a worker set `rent` to done and then ended, and the earlier contents of the file.
async fn done_once() -> (World, Vec<u8>) {
    let world = World::new().await.live();
    world.vault.matter("house");
    clear(&world, "rent");
    let original = world.vault.read("task/rent.md");
    let worker = world.worker().await;
    world.tick("house").await;
    assert!(worker.stop().await.success());
    (world, original)
}

#[tokio::test]
async fn an_undo_goes_on_after_the_worker_died_and_the_page_gets_its_answer() {
    let Some(mut page) = Browser::open("worker-dies", "").await else { return };
    for (point, script) in POINTS.into_iter().zip([true, false]) {
        let (world, original) = done_once().await;
        let mut worker = world.worker_with(&world.steward.with("STEWARD_CRASH_AT", point)).await;
        let mut serve = world.steward.with("STEWARD_LISTEN", "127.0.0.1:0").start(&["serve"]);
        serve.says("Ctrl-C ends it").await;
        let link = api::link(&serve);
        page.moves_to(link.split("/login").next().unwrap());
        page.forgets().await;
        page.script(script).await;
        page.log_in(&link).await;
        let action = world.live_action();
        let next = async {
            worker.dies().await;
            world.worker().await
        };
        let ((), _next) = join!(page.press("button[value=undo]"), next);
        let said = page.text(".done[role=status]").await;
        assert!(said.starts_with("Undone"), "{point}: {said}");
        assert_eq!(world.vault.read("task/rent.md"), original, "{point}");
        page.answers("undo", &action).await;
        assert_eq!((page.status().await, page.text("h1").await.as_str()), (409, "Not done"), "{point}");
        assert_eq!(world.vault.records().len(), 2, "{point}: one undo, one record");
        world.verify_chain().await;
    }
}

#[tokio::test]
async fn a_click_that_the_whole_house_died_of_is_done_once() {
    let world = World::new().await.live();
    world.vault.matter("house");
    clear(&world, "rent");
    let port = format!("127.0.0.1:{}", run::free_port());
    let Some(mut house) = House::of("house-dies", world.set("STEWARD_LISTEN", &port)).await else { return };
    house.world.tick("house").await;
    let listen = house.world.steward.with("STEWARD_LISTEN", &port);
    house.up.kill();
    house.up = listen.with("STEWARD_CRASH_AT", "before-filing").start(&["up"]);
    house.up.says("up; Ctrl-C ends it").await;
    house.browser.moves_to(&format!("http://{port}"));
    let page = &house.browser;
    page.log_in(&api::link(&house.up)).await;
    page.goto("/").await;
    let old = page.another().await;
    let login = house.world.json(&["login"]).await;
    old.log_in(login["link"].as_str().unwrap()).await;
    let undo = format!("{} button[value=undo]", house.card("rent"));
    let up = &mut house.up;
    let ((), ()) = join!(page.press_into_the_void(&undo), up.dies());

    house.up = listen.start(&["up"]);
    house.up.says("up; Ctrl-C ends it").await;
    let vault = &house.world.vault;
    let workflow = format!("steward-undo-{}", house.action("rent"));
    house.world.temporal(&["workflow", "result", "--workflow-id", &workflow]).await;
    assert_eq!(vault.state("rent"), "open");
    old.press(&undo).await;
    assert_eq!((old.status().await, old.text("h1").await.as_str()), (409, "Not done"));
    assert!(old.text("main").await.contains("already undone by tester"));
    page.goto("/").await;
    assert!(page.text("section[aria-labelledby=resolved]").await.contains("undone"), "whoever was logged in still is");
    assert_eq!(vault.records().len(), 2);
    house.world.verify_chain().await;
}

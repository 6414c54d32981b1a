//! Pages of notes with the names that people give them.

use crate::house::House;
use steward_tests::api;
use steward_tests::vault::Signal;
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

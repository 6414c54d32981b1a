//! Problems outside the vault are shown on the pages.

use steward_tests::world::World;
use steward_tests::{api, wait};

#[tokio::test]
async fn what_temporal_knows_that_needs_mending_stands_on_today_and_fleet() {
    let world = World::with_one_done().await;
    let (_up, api) = api::up(&world).await;
    let reader = api.token(&world, "read").await;
    world
        .temporal(&["schedule", "toggle", "--schedule-id", "al-steward-house", "--pause", "--reason", "holidays"])
        .await;
    let mut ghost = vec!["schedule", "create", "--schedule-id", "al-steward-ghost", "--interval", "1h"];
    ghost.extend(["--task-queue", "nobody", "--type", "StewardWorkflow", "--workflow-id", "ghost"]);
    ghost.extend(["--execution-timeout", "1s"]);
    world.temporal(&ghost).await;
    world.temporal(&["schedule", "trigger", "--schedule-id", "al-steward-ghost"]).await;
    let says = [
        "<b>matter/house.md</b> its schedule was paused by hand (“holidays”)",
        "<b>matter/ghost.md</b> its last run timed out at",
    ];
    let shown = async || {
        let text = |body: String| body.replace("<bdi>", "").replace("</bdi>", "");
        let (today, fleet) = (text(reader.get("/").await.body), text(reader.get("/fleet").await.body));
        says.iter().all(|line| today.contains(line) && fleet.contains(line)).then_some(())
    };
    wait::until("both to be told", shown).await;
    world.run(&["stop"]).await.expect(0);
    assert!(reader.get("/fleet").await.body.contains("stopped: no matter is checked until the vault is resumed"));
    world.run(&["resume"]).await.expect(0);
    assert!(reader.get("/fleet").await.body.contains("none: every matter was checked on time"));
}

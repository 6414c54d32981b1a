//! The real page of schedules of the Temporal server that `steward up` starts.

use crate::house::clear;
use rustix::process::Signal as Sent;
use serde_json::Value;
use steward_tests::api;
use steward_tests::browser::Browser;
use steward_tests::wait;
use steward_tests::{run, world::World};

#[tokio::test]
async fn the_dashboard_leads_to_the_stewards_in_the_temporal_ui() {
    let Some(mut page) = Browser::open("temporal", "").await else { return };
    let world = World::new().await;
    for matter in ["house", "garden"] {
        world.vault.matter(matter);
    }
    clear(&world, "rent");
    let mut steward = world.steward.without("TEMPORAL_ADDRESS").without("TEMPORAL_NAMESPACE");
    steward
        .set("STEWARD_TEMPORAL_CLI", run::temporal_cli().display())
        .set("STEWARD_TEMPORAL_PORT", run::free_port())
        .set("STEWARD_TEMPORAL_UI_PORT", run::free_port())
        .set("STEWARD_LISTEN", "127.0.0.1:0");
    world.index_quietly(&steward).await;
    let mut up = steward.start(&["up"]);
    up.says("Ctrl-C").await;
    let note = std::fs::read_to_string(world.vault.path().join(".steward/up.json")).unwrap();
    let server = serde_json::from_str::<Value>(&note).unwrap()["server_pid"].as_u64().unwrap();
    let server = u32::try_from(server).unwrap();
    run::note(server);

    let link = api::link(&up);
    page.moves_to(link.split("/login").next().unwrap());
    page.log_in(&link).await;
    page.is_sound().await;
    page.press("footer a").await;
    let stewards = async || {
        let text = page.text("body").await;
        (text.contains("al-steward-house") && text.contains("al-steward-garden")).then_some(text)
    };
    let text = wait::until("the schedules in the Temporal UI", stewards).await;
    assert!(text.contains("al-router") || text.contains("al-"), "{text}");
    page.shot("schedules").await;

    page.goto("/records/matter/house.md").await;
    page.press("a[href*='/schedules/']").await;
    let shown = async || page.text("body").await.contains("al-steward-house").then_some(());
    wait::until("the schedule of the house in the Temporal UI", shown).await;
    page.shot("schedule").await;
    up.send(Sent::INT);
    assert!(up.ends().await.success());
    run::strike(server);
}

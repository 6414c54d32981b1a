//! What the operator sees in the Temporal UI: runs by matter and outcome, summaries of steps, details, and notes on schedules.

use serde_json::Value;
use steward_tests::wait;
use steward_tests::world::World;

/// How many runs a query of the Temporal UI finds.
async fn count_runs(world: &World, query: &str) -> usize {
    let found = world.temporal(&["workflow", "list", "--query", query, "-o", "json"]).await;
    serde_json::from_str::<Vec<Value>>(&found).unwrap().len()
}

/// What doctor says about the attributes: its level and its words.
async fn read_search_finding(world: &World) -> (String, String) {
    let found = world.run(&["doctor", "--json"]).await.json();
    let finding = found.as_array().unwrap().iter().find(|finding| finding["check"] == "search").cloned();
    let finding = finding.unwrap_or_else(|| panic!("{found}"));
    (finding["level"].as_str().unwrap().to_owned(), finding["found"].as_str().unwrap().to_owned())
}

/// Adds the attributes by the command that doctor names.
async fn add_attributes(world: &World) {
    let (level, words) = read_search_finding(world).await;
    assert_eq!(level, "note", "{words}");
    let command = words.split('`').nth(1).unwrap().strip_prefix("temporal ").unwrap();
    let arguments = command.split(' ').filter(|word| *word != "--namespace" && *word != world.namespace);
    world.temporal(&arguments.collect::<Vec<_>>()).await;
}

#[tokio::test]
async fn runs_are_found_by_matter_and_outcome_once_the_server_has_the_attributes() {
    let world = World::with_one_done().await.live().with_rare_ticks();
    add_attributes(&world).await;
    assert_eq!(read_search_finding(&world).await.0, "ok");

    let _worker = world.worker().await;
    world.hold_schedule("al-signal-router").await;
    // By hand: the run is not started by the schedule, which sets the matter.
    let changed = world.begin("house").await;
    assert_eq!(changed.report().await.evaluated.len(), 1);
    world.temporal(&["schedule", "trigger", "--schedule-id", "al-steward-house"]).await;
    let of_house = "StewardMatter = 'matter/house.md'";
    wait::until("the idle run", async || (count_runs(&world, of_house).await == 2).then_some(())).await;
    for (query, expected) in [
        ("StewardChanged = true", 1),
        ("StewardDisposition = 'live'", 1),
        ("StewardDisposition = 'shadow'", 0),
        ("StewardChanged IS NULL", 1),
    ] {
        assert_eq!(count_runs(&world, &format!("{of_house} AND {query}")).await, expected, "{query}");
    }

    let summaries: Vec<String> = changed
        .history()
        .await
        .iter()
        .filter_map(|event| event.user_metadata.as_ref()?.summary.as_ref())
        .map(|summary| serde_json::from_slice(&summary.data).unwrap())
        .collect();
    for step in ["check matter/house.md", "ask about task/rent.md", "apply the decision on task/rent.md"] {
        assert!(summaries.iter().any(|summary| summary == step), "{step}: {summaries:?}");
    }
    let details = world.temporal(&["workflow", "metadata", "--workflow-id", changed.id(), "-o", "json"]).await;
    assert!(details.contains("task/rent.md") && details.contains("**changed**"), "{details}");
}

#[tokio::test]
async fn an_idle_run_sets_no_attribute_and_has_no_more_events() {
    let world = World::new().await;
    world.vault.matter("house");
    world.vault.task("rent", "house");
    add_attributes(&world).await;
    let _worker = world.worker().await;
    let idle = world.begin("house").await;
    assert!(idle.report().await.evaluated.is_empty());
    assert!(idle.history().await.len() <= 6);
}

#[tokio::test]
async fn up_adds_the_attributes_to_its_own_server_and_says_on_a_schedule_who_made_it() {
    let world = World::with_one_done().await;
    let steward = world.without_server();
    let mut up = steward.start(&["up"]);
    up.says("Ctrl-C").await;
    let found = steward.run(&["doctor", "--json"]).await.json();
    let search = found.as_array().unwrap().iter().find(|finding| finding["check"] == "search").cloned().unwrap();
    assert_eq!(search["level"], "ok", "{search}");
    let listed = steward.run(&["schedules", "list", "--json"]).await.expect(0).json();
    let house = listed.as_array().unwrap().iter().find(|row| row["id"] == "al-steward-house").cloned().unwrap();
    assert!(house["note"].as_str().unwrap().starts_with("Made by Steward."), "{house}");
    let status = up.stop().await;
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn the_details_of_a_run_link_to_the_dashboard() {
    let world = World::with_one_done().await;
    let steward = world.steward.with("STEWARD_LISTEN", "127.0.0.1:0");
    let mut up = steward.start(&["up"]);
    up.says("Ctrl-C").await;
    let dashboard = up.out().split_once("http://").unwrap().1.split(['/', ' ', '\n']).next().unwrap().to_owned();
    // The signal wakes the matter at the start, so it may be the run of that.
    wait::until("details with a link to the task", async || {
        let listed =
            world.temporal(&["workflow", "list", "--query", "WorkflowType = 'StewardWorkflow'", "-o", "json"]).await;
        for run in serde_json::from_str::<Vec<Value>>(&listed).unwrap() {
            let id = run["execution"]["workflowId"].as_str().unwrap();
            let details = world.temporal(&["workflow", "metadata", "--workflow-id", id, "-o", "json"]).await;
            if details.contains(&format!("(http://{dashboard}/records/task/rent.md)")) {
                return Some(());
            }
        }
        None
    })
    .await;
    up.stop().await;
}

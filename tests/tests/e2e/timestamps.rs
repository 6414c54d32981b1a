//! `STEWARD_STAMP_FILES`: the times of the last and next check in a task's file, and that they disturb nothing.

use serde_json::json;
use std::time::Duration;
use steward_domain::record::frontmatter;
use steward_domain::time;
use steward_tests::vault::Signal;
use steward_tests::wait;
use steward_tests::world::World;

const CHECKED: &str = "last_steward_check_at";
const NEXT: &str = "next_check_after";

/// A quiet task, a task that a signal reports as done, and a task with a person's date and a signal that changes
/// nothing.
async fn three_tasks() -> World {
    let world = World::with_one_done().await.live().with_patient_server();
    world.vault.task("boiler", "house");
    world.vault.task_with("roof", "house", "next_check_after: 2099-01-01  # not before\nowner: ann\n");
    world.vault.signal("s2", &Signal { proposes: "", ..Signal::done("roof") });
    world
}

/// A field of a task, in whole seconds of UTC.
fn date(world: &World, task: &str, field: &str) -> Option<String> {
    let document = frontmatter::read_document(&world.vault.read(&format!("task/{task}.md"))).unwrap();
    let text = document.fields().get(field)?.as_str().unwrap().to_owned();
    assert_eq!(time::parse(&text).map(time::format_seconds).as_ref(), Some(&text), "{field} of {task}");
    Some(text)
}

/// The lines that git shows as changed in a file, without the text after the colon.
fn changed_lines(world: &World, path: &str) -> Vec<String> {
    let diff = world.vault.git(&["diff", "--unified=0", "--", path]);
    let changed = diff.lines().filter(|l| l.starts_with(['+', '-']) && !l.starts_with("+++") && !l.starts_with("---"));
    changed.map(|line| line.split(':').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn after_one_round_the_tasks_say_when_they_were_looked_at_and_nothing_else() {
    let world = three_tasks().await.set("STEWARD_STAMP_FILES", "true");
    world.vault.commit();
    world.run(&["up", "--once"]).await.expect(0);
    assert_eq!(changed_lines(&world, "task/boiler.md"), [format!("+{CHECKED}"), format!("+{NEXT}")]);
    assert_eq!(changed_lines(&world, "task/rent.md"), ["-state".to_owned(), "+state".into(), format!("+{CHECKED}")]);
    assert_eq!(changed_lines(&world, "task/roof.md"), [format!("+{CHECKED}")], "a human's later date stands");
    let changed = world.vault.git(&["diff", "--name-only"]);
    assert_eq!(changed.lines().collect::<Vec<_>>(), ["task/boiler.md", "task/rent.md", "task/roof.md"]);
    let (checked, next) = (date(&world, "boiler", CHECKED).unwrap(), date(&world, "boiler", NEXT).unwrap());
    assert_eq!(time::parse(&next).unwrap() - time::parse(&checked).unwrap(), chrono::TimeDelta::hours(4));
    world.verify_chain().await;

    let before = world.vault.files();
    let said = world.json(&["up", "--once"]).await;
    assert_eq!((&said["quiet"], &said["tasks"]), (&json!(0), &json!([])), "a stamp made nothing due: {said:#}");
    assert_eq!(world.vault.files().since(&before), Vec::<String>::new());
}

#[tokio::test]
async fn unless_somebody_asked_for_it_no_task_is_stamped() {
    let world = three_tasks().await;
    let before = world.vault.files();
    world.run(&["up", "--once"]).await.expect(0);
    assert_eq!(world.vault.files().since_but_events(&before), ["~ task/rent.md"]);
    assert_eq!(date(&world, "rent", CHECKED), None);
    let _worker = world.worker().await;
    world.tick("house").await;
    let before = world.vault.files();
    let quiet = async || world.vault.files().since(&before).is_empty();
    wait::stays(Duration::from_secs(5), "no file touched", quiet).await;
}

#[tokio::test]
async fn a_worker_stamps_after_the_tick_once_and_an_undo_keeps_the_stamp() {
    let world = three_tasks().await.set("STEWARD_STAMP_FILES", "true");
    let braces = "---\n{type: task, parent_matter: matter/house.md}\n---\n";
    world.vault.write("task/odd.md", braces);
    let worker = world.worker().await;
    world.tick("house").await;
    for task in ["rent", "boiler", "roof"] {
        wait::until(&format!("{task} to be stamped"), async || date(&world, task, CHECKED)).await;
    }
    let before = world.vault.files();
    let idle = world.begin("house").await;
    let report = idle.report().await;
    assert!(report.evaluated.is_empty() && report.quiet == 0, "{report:?}");
    assert!(idle.history().await.len() <= 6);
    let same = async || world.vault.files().since(&before).is_empty();
    wait::stays(Duration::from_secs(8), "stamped once", same).await;
    let said = worker.err();
    assert_eq!(said.matches("task/odd.md").count(), 1, "what cannot be stamped is said once: {said}");
    assert_eq!(world.vault.read("task/odd.md"), braces.as_bytes());

    let stamp = date(&world, "rent", CHECKED);
    let undone = world.answer("undo", &world.live_action()).await.result().await;
    assert_eq!(undone["kind"], json!("done"), "{undone}");
    assert_eq!((world.vault.state("rent"), date(&world, "rent", CHECKED)), ("open".to_owned(), stamp));
    world.verify_chain().await;
}

#[tokio::test]
async fn a_stopped_vault_is_not_stamped() {
    let world = three_tasks().await;
    world.run(&["up", "--once"]).await.expect(0);
    world.run(&["stop"]).await.expect(0);
    let before = world.vault.files();
    let world = world.set("STEWARD_STAMP_FILES", "true");
    world.run(&["up", "--once"]).await.expect(3);
    assert_eq!(world.vault.files().since(&before), Vec::<String>::new());
    world.run(&["resume"]).await.expect(0);
    world.run(&["up", "--once"]).await.expect(0);
    assert_eq!(world.vault.files().since(&before), ["~ task/boiler.md", "~ task/rent.md", "~ task/roof.md"]);
}

#[tokio::test]
async fn a_crash_in_the_midst_of_a_stamp_loses_nothing_and_it_is_made_up_for() {
    let cut = async |point: &str| {
        let world = World::new().await.live().set("STEWARD_STAMP_FILES", "true");
        world.vault.matter("house");
        world.vault.task("boiler", "house");
        let original = world.vault.read("task/boiler.md");
        let mut worker = world.worker_with(&world.steward.with("STEWARD_CRASH_AT", point)).await;
        world.tick("house").await;
        worker.dies().await;
        let swapped = world.vault.read("task/boiler.md") != original;
        assert_eq!(swapped, point == "after-swap");
        let _worker = world.worker().await;
        wait::until(&format!("{point}: the stamp"), async || date(&world, "boiler", NEXT)).await;
        let lines = format!(
            "{CHECKED}: \"{}\"\n{NEXT}: \"{}\"\n",
            date(&world, "boiler", CHECKED).unwrap(),
            date(&world, "boiler", NEXT).unwrap()
        );
        let original = String::from_utf8(original).unwrap();
        let stamped = String::from_utf8(world.vault.read("task/boiler.md")).unwrap();
        assert_eq!(stamped.replace(&lines, ""), original, "{point}");
        assert_eq!(world.vault.records().len(), 0, "{point}");
        world.verify_chain().await;
        assert_eq!(world.tick("house").await.quiet, 0, "{point}: the date is ours, and it is not due");
    };
    futures::join!(cut("after-staging-content"), cut("after-journal"), cut("before-swap"), cut("after-swap"));
}

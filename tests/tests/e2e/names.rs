//! Notes with the names that people give them: blanks, umlauts, pictures, another case in a link.

use serde_json::Value;
use steward_tests::vault::Signal;
use steward_tests::wait;
use steward_tests::world::World;

const MATTER: &str = "Wedding of Ann & Ben";
const TASK: &str = "Überweisung an „Blüte“ 💐";

/// A matter, its task with a link in another case, and a signal that says the task is done.
async fn wedding() -> World {
    let world = World::new().await.live();
    world.vault.matter(MATTER);
    let task = "---\ntype: task\nname: Florist\nstate: open # since May\nparent_matter: \"[[wedding of ann & ben]]\"\n---\nBody\n";
    world.vault.write(&format!("task/{TASK}.md"), task);
    world.vault.signal("It is paid", &Signal::done(TASK));
    world
}

#[tokio::test]
async fn a_task_and_a_matter_of_any_name_are_ticked_shown_undone_and_leave_no_difference() {
    let world = wedding().await;
    world.vault.commit();
    let _worker = world.worker().await;
    world.tick(MATTER).await;
    assert_eq!(world.vault.state(TASK), "done");
    let records = world.vault.records();
    assert_eq!(records.len(), 1);
    let record = records[0].draft.record_path().unwrap();
    assert!(record.as_str().starts_with("event/steward-action-") && record.as_str().is_ascii(), "{record}");

    for name in [TASK.to_owned(), format!("[[task/{TASK}]]"), format!("task/{TASK}.md"), TASK.to_uppercase()] {
        let why = world.json(&["why", &name]).await;
        assert_eq!(why["subject"]["path"], Value::from(format!("task/{TASK}.md")), "{why:#}");
        assert_eq!(why["decided"]["disposition"], "live", "{why:#}");
    }
    assert_eq!(world.json(&["policy", "check", MATTER]).await["matters"][0]["matter"], format!("matter/{MATTER}.md"));
    world.run(&["undo", &world.live_action()]).await.expect(0);
    assert_eq!(world.vault.git(&["diff"]), "", "not a byte is left");
    world.verify_chain().await;
}

#[tokio::test]
async fn the_schedule_of_such_a_matter_has_a_plain_id_and_names_the_matter_in_its_argument() {
    let world = wedding().await;
    world.vault.matter("wedding-of-ann-ben");
    let _worker = world.worker().await;
    let rows = wait::until("both schedules", async || {
        let rows = world.json(&["schedules", "list"]).await;
        let rows: Vec<Value> =
            rows.as_array().unwrap().iter().filter(|row| !row["matter"].is_null()).cloned().collect();
        (rows.len() == 2).then_some(rows)
    })
    .await;
    let mut named: Vec<(&str, &str)> =
        rows.iter().map(|row| (row["id"].as_str().unwrap(), row["matter"].as_str().unwrap())).collect();
    named.sort_unstable();
    assert_eq!(named[0], ("al-steward-wedding-of-ann-ben", "matter/wedding-of-ann-ben.md"));
    let (id, matter) = named[1];
    let hash = id.strip_prefix("al-steward-wedding-of-ann-ben-").unwrap();
    assert!(hash.len() == 8 && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
    assert_eq!(matter, format!("matter/{MATTER}.md"));

    // Deleting the matter deletes its schedule, whatever its id is.
    std::fs::remove_file(world.vault.path().join(matter)).unwrap();
    wait::until("the schedule to go", async || {
        let rows = world.json(&["schedules", "list"]).await;
        rows.as_array().unwrap().iter().all(|row| row["id"] != id).then_some(())
    })
    .await;
}

#[tokio::test]
async fn no_file_of_stewards_holds_a_link_that_a_rename_would_rewrite() {
    let world = wedding().await;
    let signal = Signal { quote: "[[Florist]] is paid, see [[wedding of ann & ben]]", ..Signal::done(TASK) };
    world.vault.signal("linked", &signal);
    world.vault.write(
        "inbox/note.eml",
        "From: a@b.example\nSubject: [[Florist]]\nMessage-ID: <1@b>\n\n[[Florist]] was paid.\n",
    );
    let _worker = world.worker().await;
    world.tick(MATTER).await;
    let event = wait::until("the mail to be read", async || {
        let mut paths = walk(&world.vault.path().join("stream"));
        paths.pop()
    })
    .await;
    let mut read = walk(&world.vault.path().join("event"));
    read.push(event);
    assert!(read.len() >= 2);
    for path in read {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("[["), "{}: {text}", path.display());
    }
    let records = world.vault.records();
    assert!(records.iter().any(|r| r.draft.evidence.iter().any(|e| e.note.starts_with("[[Florist]] is paid"))));
    world.verify_chain().await;
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

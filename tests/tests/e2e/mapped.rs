//! A vault of ordinary notes, read by a mapping that a person accepted.

use serde_json::Value;
use std::time::Duration;
use steward_tests::steward::Running;
use steward_tests::wait;
use steward_tests::world::World;

pub(crate) const TASK: &str = "Aufgaben/Dachdecker Müller bezahlen.md";
pub(crate) const NOTE: &str =
    "---\ntags: [task]\nStatus: todo # since May\nproject: \"[[dach REPARIEREN]]\"\ndue: soon\n---\n- [ ] Angebot\n";
const MAPPING: &str = r#"
[map.matter]
where  = { folder = "Projekte" }
state  = { property = "status", open = ["active"], done = ["done"] }

[map.task]
where  = { tag = "task" }
except = [{ folder = "Vorlagen" }]
state  = { property = "status", open = ["todo", "doing"], done = ["✅ done"] }
due    = { property = "due" }
parent = { property = "project" }
"#;

/// An empty vault, with a home for the configuration.
async fn empty() -> World {
    let world = World::new().await;
    let (config, state) = (world.folder.join("config"), world.folder.join("state"));
    world.set("XDG_CONFIG_HOME", config.display()).set("XDG_STATE_HOME", state.display())
}

/// A vault as people keep it, with a mapping that nobody accepted yet.
pub(crate) async fn ordinary() -> World {
    let world = empty().await;
    for (path, text) in [
        ("Projekte/Hausbau/Dach reparieren.md", "---\nstatus: active\n---\nDas Dach ist undicht.\n"),
        (TASK, NOTE),
        ("Aufgaben/Maybe later.md", "---\ntags: task\nstatus: someday\nproject: x\n---\n"),
        ("Vorlagen/Task.md", "---\ntags: [task]\nstatus: todo\nproject: x\n---\n"),
        ("inbox/mine.eml", "From: a@b.example\nSubject: mine\nMessage-ID: <1@b>\n\nNobody takes this.\n"),
        ("steward.toml", MAPPING),
    ] {
        world.vault.write(path, text);
    }
    world.vault.commit();
    world
}

pub(crate) async fn accepted() -> World {
    let world = ordinary().await;
    world.run(&["init", "--accept"]).await.expect(0);
    world.vault.write("Steward/instinct/gmail.md", "---\nsource: gmail\nobservations: 60\nconfidence: 0.95\n---\n");
    world
}

pub(crate) fn read(world: &World, path: &str) -> String {
    String::from_utf8(world.vault.read(path)).unwrap()
}

pub(crate) fn put_signal(world: &World, name: &str, target: &str) {
    let signal = format!(
        "---\ntype: signal\ncreated: 2026-11-24T10:00:00Z\nsource_type: gmail\nraw_quote: it is paid\ntarget_kind: task\n\
         target_path: \"{target}\"\ntarget_confidence: 0.97\neffect: mutation\neffect_confidence: 0.95\n\
         mutation_proposal:\n  class: state_change\n  set:\n    state: done\n---\n"
    );
    world.vault.write(&format!("Steward/signal/{name}.md"), &signal);
}

pub(crate) async fn worker(world: &World) -> Running {
    let running = world.worker().await;
    world.hold_schedule("al-stream-event-purge").await;
    running
}

/// The newest action, once there is one with this disposition.
pub(crate) async fn wait_for_action(world: &World, disposition: &str) -> Value {
    wait::until("an action", async || {
        let rows = world.json(&["audit", "list"]).await;
        let found = rows.as_array().unwrap().iter().find(|row| row["disposition"] == disposition).cloned();
        found.filter(|row| row["kind"] == "steward-action")
    })
    .await
}

#[tokio::test]
async fn a_note_is_changed_in_its_own_words_and_undone_and_only_stewards_folder_is_new() {
    let world = accepted().await.live();
    let _worker = worker(&world).await;
    put_signal(&world, "s1", "[[Dachdecker Müller bezahlen]]");
    let action = wait_for_action(&world, "live").await;
    let changed = read(&world, TASK);
    assert_eq!(changed, NOTE.replace("Status: todo", "Status: ✅ done"));
    let id = action["id"].as_str().unwrap().to_owned();
    let shown = world.json(&["why", "dachdecker müller BEZAHLEN"]).await;
    assert_eq!(shown["subject"]["path"], TASK);
    let policy = world.json(&["policy", "check", "DACH reparieren"]).await;
    assert_eq!(policy["matters"][0]["matter"], "Projekte/Hausbau/Dach reparieren.md");
    world.json(&["tick", "dach reparieren", "--wait", "--shadow"]).await;
    let patch = &shown["decided"]["undo_recipe"]["vault_patch"][0];
    assert_eq!((&patch["field"], &patch["property"]), (&"state".into(), &"Status".into()), "{shown:#}");
    world.run(&["undo", &id]).await.expect(0);
    assert_eq!(world.vault.git(&["diff"]), "", "not a byte is left");
    let new = world.vault.git(&["status", "--short"]);
    assert_eq!(new.trim(), "?? Steward/");
    let chain = world.json(&["audit", "verify"]).await;
    assert_eq!((&chain["records"], &chain["faults"]), (&3.into(), &Value::Array(Vec::new())));

    // A note that comes while the process runs, in a folder that is new too.
    let late = "Neu/tief/Später.md";
    world.vault.write(late, NOTE);
    wait::until("the new note to be read", async || {
        (world.json(&["status"]).await["counts"]["tasks"]["open"] == 2).then_some(())
    })
    .await;
    put_signal(&world, "s2", late);
    wait::until("the new note to change", async || read(&world, late).contains("✅ done").then_some(())).await;
    assert_eq!(world.vault.git(&["diff"]), "");
    assert!(world.vault.path().join("inbox/mine.eml").exists(), "it is the person's folder");
}

#[tokio::test]
async fn in_shadow_a_vault_is_byte_identical_apart_from_stewards_folder() {
    let world = accepted().await.set("STEWARD_STAMP_FILES", "true");
    let _worker = worker(&world).await;
    put_signal(&world, "s1", TASK);
    wait_for_action(&world, "shadow").await;
    // Timestamps would come some seconds after a check.
    let is_same = async || world.vault.git(&["diff"]).is_empty();
    wait::stays(Duration::from_secs(8), "no note changed", is_same).await;
    assert_eq!(world.vault.git(&["status", "--short"]).trim(), "?? Steward/");
}

#[tokio::test]
async fn a_mapping_counts_as_it_was_accepted_and_a_change_of_it_is_shown() {
    let world = ordinary().await;
    let refused = world.run(&["worker"]).await.expect(3);
    assert!(refused.err.contains("steward init --accept") && refused.err.contains("steward.toml"), "{}", refused.err);
    world.vault.write("steward.toml", MAPPING.replace("property = \"due\"", "property = \"tags\""));
    let refused = world.run(&["init", "--accept"]).await.expect(1);
    assert!(refused.err.contains("steward.toml:10: `map.task.due`"), "{}", refused.err);
    assert!(!world.vault.path().join("Steward").exists(), "nothing is made for a faulty mapping");
    world.vault.write("steward.toml", MAPPING);
    let report = world.json(&["init", "--accept"]).await;
    assert_eq!((&report["counts"]["tasks"]["open"], &report["counts"]["matters"]["open"]), (&1.into(), &1.into()));
    assert_eq!(report["left_out"][0][0], "unmapped_state");

    world.vault.write("steward.toml", MAPPING.replace("\"✅ done\"", "\"erledigt\""));
    let status = world.json(&["status"]).await;
    let difference = status["mapping"]["differences"][0].as_str().unwrap();
    assert!(
        difference.starts_with("map.task.state.done: accepted ") && difference.contains("erledigt"),
        "{difference}"
    );
    assert_eq!(status["mapping"]["unreadable_due"], 1);
    assert!(status["mapping"]["reads"].as_str().unwrap().contains("tasks are { tag = \"task\" }"), "{status:#}");
    let doctor = world.run(&["--json", "doctor"]).await.expect(4).json();
    let faults: Vec<&Value> = doctor.as_array().unwrap().iter().filter(|f| f["check"] == "mapping").collect();
    assert!(faults[0]["found"].as_str().unwrap().contains("erledigt") && faults[0]["ok"] == false);

    let world = world.live();
    let _worker = worker(&world).await;
    put_signal(&world, "s1", TASK);
    world.vault.write("Steward/instinct/gmail.md", "---\nsource: gmail\nobservations: 60\nconfidence: 0.95\n---\n");
    wait_for_action(&world, "live").await;
    assert!(read(&world, TASK).contains("✅ done"), "the accepted mapping holds");
}

#[tokio::test]
async fn stewards_folder_that_is_dragged_elsewhere_stops_the_vault_until_it_is_back() {
    let world = accepted().await.live();
    let _worker = worker(&world).await;
    let (here, there) = (world.vault.path().join("Steward"), world.vault.path().join("Elsewhere"));
    std::fs::rename(&here, &there).unwrap();
    let status = world.json(&["status"]).await;
    assert!(status["stop"]["reason"].as_str().unwrap().contains("`Steward` is missing"), "{status:#}");
    std::fs::rename(&there, &here).unwrap();
    put_signal(&world, "s1", TASK);
    wait_for_action(&world, "live").await;
    assert!(!there.exists());
}

#[tokio::test]
async fn a_second_machine_is_refused_by_name() {
    let world = accepted().await;
    let owner = read(&world, "Steward/owner");
    world.vault.write("Steward/owner", owner.replace("\"machine\":\"", "\"machine\":\"kitchen-"));
    let refused = world.run(&["worker"]).await.expect(3);
    assert!(refused.err.contains("kitchen-") && refused.err.contains("--take-over"), "{}", refused.err);
    world.run(&["init", "--accept", "--take-over"]).await.expect(0);
    assert_eq!(read(&world, "Steward/owner"), owner);
}

#[tokio::test]
async fn a_folder_of_the_same_name_stays_the_persons() {
    let world = ordinary().await;
    world.vault.write("steward/inbox/mine.eml", "From: a@b.example\nSubject: mine\nMessage-ID: <2@b>\n\nMine.\n");
    world.vault.commit();
    world.run(&["init", "--accept"]).await.expect(0);
    let _worker = worker(&world).await;
    assert!(world.vault.path().join("Steward 2/owner").exists());
    assert_eq!(world.vault.git(&["status", "--short"]).trim(), "?? \"Steward 2/\"");
}

#[tokio::test]
async fn a_vault_that_names_another_folder_than_the_accepted_one_is_refused_and_a_stop_still_works() {
    let world = accepted().await;
    let identity = read(&world, ".steward/vault.json");
    for (tampered, code, words) in [
        (identity.replace(",\"folder\":\"Steward\"", ""), 3, "names the folder `none`"),
        (identity.replace("\"Steward\"", "\"../outside\""), 3, "names the folder `none`"),
        (identity.replace("\"id\":\"", "\"id\":\"x"), 1, "is not the id of a vault"),
    ] {
        assert_ne!(tampered, identity);
        world.vault.write(".steward/vault.json", &tampered);
        let refused = world.run(&["worker"]).await;
        assert!(refused.code == Some(code) && refused.err.contains(words), "{refused}");
        world.run(&["stop", "--reason", "look"]).await.expect(0);
        world.run(&["resume"]).await.expect(0);
    }
    world.vault.write(".steward/vault.json", &identity);
    world.run(&["status"]).await.expect(0);
}

#[tokio::test]
async fn tasks_that_name_no_matter_get_one_note_on_a_yes_of_its_own() {
    let world = empty().await;
    world.vault.write(".obsidian/plugins/tasknotes/data.json", "{\"taskTag\": \"todo\"}");
    let task = "---\ntags: [todo]\nstatus: open\n---\n- [ ] part\n";
    world.vault.write("Call the bank.md", task);
    world.vault.write("Müll rausbringen.md", task);
    world.vault.commit();
    let shown = world.run(&["init"]).await.expect(0);
    for words in [
        "tasks that name no matter, so they are left out: 2",
        "(`- [ ]`): 2, in 2 notes",
        "from the settings of TaskNotes",
    ] {
        assert!(shown.out.contains(words), "{words}: {shown}");
    }
    let refused = world.run(&["init", "--yes"]).await.expect(1);
    assert!(refused.err.contains("no note is a matter of the tasks (2)"), "{refused}");
    let refused = world.steward.run_in_terminal(&["init"], "y\nn\n").await;
    assert!(refused.code == Some(1) && refused.err.contains("nothing was accepted"), "{refused}");
    assert_eq!(world.vault.git(&["status", "--short"]), "");

    let agreed = world.steward.run_in_terminal(&["init"], "y\ny\n").await.expect(0);
    for words in
        ["Make the note `Other tasks.md` for the tasks that name no matter (2)?", "2 open tasks in 1 open matter"]
    {
        assert!(agreed.out.contains(words), "{words}: {agreed}");
    }
    assert_eq!(world.vault.git(&["status", "--short"]), "?? \"Other tasks.md\"\n?? Steward/\n?? steward.toml\n");
    assert!(read(&world, "steward.toml").contains("default = \"[[Other tasks]]\""), "{}", read(&world, "steward.toml"));

    // The steward of that note looks after them.
    put_signal(&world, "bank", "Call the bank.md");
    let _worker = worker(&world).await;
    let action = wait_for_action(&world, "shadow").await;
    assert_eq!(action["target"], "Call the bank.md");
}

#[tokio::test]
async fn init_proposes_shows_and_writes_nothing_without_a_yes() {
    let world = ordinary().await;
    std::fs::remove_file(world.vault.path().join("steward.toml")).unwrap();
    world.vault.write(".obsidian/templates.json", "{\"folder\": \"Vorlagen\"}");
    world.vault.write("Aufgaben/Lost.md", "---\ntags: task\nstatus: todo\nproject: \"[[Nobody knows]]\"\n---\n");
    world.vault.commit();
    let shown = world.run(&["init"]).await.expect(0);
    for words in [
        "where = { tag = \"task\" }",
        "except = [{ folder = \"Vorlagen\" }]",
        "parent = { property = \"project\" }",
        "2 open tasks in 1 open matter",
        "Maybe later.md: `status` is `someday`",
        "Lost.md: `project`: no note is called `Nobody knows`",
        "Status: todo # since May  \u{2192}  Status: done # since May",
        "nothing was written",
    ] {
        assert!(shown.out.contains(words), "{words}: {shown}");
    }
    assert_eq!(world.vault.git(&["status", "--short"]), "");
    let json = world.json(&["init"]).await;
    assert_eq!((&json["mapping"]["task"]["where"]["tag"], &json["accepted"]), (&"task".into(), &Value::Null));

    let report = world.json(&["init", "--yes"]).await;
    assert!(report["accepted"].as_str().unwrap().ends_with(".toml"), "{report:#}");
    assert_eq!(world.vault.git(&["status", "--short"]), "?? Steward/\n?? steward.toml\n");
    let doctor = world.run(&["--json", "doctor"]).await.expect(4).json();
    let lines: Vec<&str> = doctor.as_array().unwrap().iter().filter_map(|f| f["found"].as_str()).collect();
    assert!(lines.iter().any(|line| line.contains("Maybe later.md")), "{lines:#?}");
    let why = world.run(&["why", "Maybe later"]).await.expect(1);
    assert!(why.err.contains("is left out: `status` is `someday`"), "{why}");

    // Whoever runs it again is shown the same, and nothing is changed.
    let again = world.run(&["init"]).await.expect(0);
    assert!(again.out.contains("nothing was written") && !again.out.contains("proposed for"), "{again}");
}

#[tokio::test]
async fn a_mapping_that_is_edited_while_steward_runs_changes_nothing_and_shows_on_the_page() {
    let world = accepted().await;
    let (_up, api) = steward_tests::api::up(&world).await;
    let api = api.token(&world, "read").await;
    let shown = async || api.get("/").await.body;
    assert!(!shown().await.contains("is not accepted"));
    let edited =
        read(&world, "steward.toml").replace("\"todo\", \"doing\"", "\"todo\"").replace("\"due\"", "\"fällig\"");
    world.vault.write("steward.toml", edited);
    let page = shown().await;
    for words in ["map.task.state.open", "map.task.due.property", "fällig", "steward init --accept"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert_eq!(world.json(&["status"]).await["mapping"]["differences"].as_array().unwrap().len(), 2);
    let refused = world.run(&["init", "--accept"]).await.expect(1);
    assert!(refused.err.contains("end `steward up`"), "{refused}");

    world.vault.write("steward (conflict).toml", "x");
    let doctor = world.run(&["doctor"]).await.expect(4).out;
    assert!(doctor.contains("steward (conflict).toml"), "{doctor}");

    // A line that cannot be read keeps nobody from a stop, wherever they stand.
    world.vault.write("steward.toml", "[map.task\n");
    assert!(shown().await.contains("correct the file"), "{}", shown().await);
    let inside = world.steward.inside(world.vault.path());
    for command in ["status", "stop", "resume"] {
        inside.run(&[command]).await.expect(0);
    }
}

#[tokio::test]
async fn a_vault_of_ordinary_notes_is_refused_until_a_person_said_how_it_is_read() {
    let world = empty().await;
    world.vault.write("Projects/Roof.md", "x\n");
    world.vault.write("inbox/mine.md", "mine\n");
    world.vault.commit();
    for command in ["up", "worker"] {
        let refused = world.run(&[command]).await.expect(3);
        assert!(refused.err.contains("steward init"), "{refused}");
    }
    let doctor = world.run(&["doctor"]).await.expect(4);
    assert!(doctor.out.contains("`steward init` looks at them"), "{doctor}");
    assert_eq!(world.vault.git(&["status", "--short"]), "");
}

#[tokio::test]
async fn what_was_decided_in_shadow_is_decided_again_as_soon_as_the_mode_permits_changes() {
    let world = accepted().await;
    put_signal(&world, "s1", TASK);
    let running = worker(&world).await;
    wait_for_action(&world, "shadow").await;
    running.stop().await;
    let world = world.live();
    let _worker = worker(&world).await;
    wait_for_action(&world, "live").await;
    assert!(read(&world, TASK).contains("✅ done"));
}

#[tokio::test]
async fn a_proposal_whose_matter_was_doubled_renamed_or_deleted_is_left_to_its_person() {
    let world = accepted().await.live().set("STEWARD_DEFAULT_CEILING", "confirm");
    let _worker = worker(&world).await;
    put_signal(&world, "s1", TASK);
    let id = wait_for_action(&world, "pending").await["id"].as_str().unwrap().to_owned();
    let matter = world.vault.path().join("Projekte/Hausbau/Dach reparieren.md");
    let before = read(&world, TASK);
    let is_listed = async |words: &str| {
        let listed = async || world.run(&["status"]).await.expect(0).out.contains(words).then_some(());
        wait::until(words, listed).await;
        let refused = world.run(&["confirm", &id]).await;
        assert!(refused.code != Some(0), "{words}: {refused}");
        assert_eq!(read(&world, TASK), before, "{words}");
    };
    world.vault.write("Archiv/dach reparieren.md", "---\nstatus: active\n---\n");
    is_listed("names several notes").await;
    std::fs::remove_file(world.vault.path().join("Archiv/dach reparieren.md")).unwrap();
    let renamed = matter.with_file_name("Dach neu.md");
    std::fs::rename(&matter, &renamed).unwrap();
    is_listed("no note is called").await;
    std::fs::remove_file(&renamed).unwrap();
    is_listed("no note is called").await;
}

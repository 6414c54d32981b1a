//! `steward doctor` before the first start, its three levels, and a vault without notes.

use crate::mapped;
use serde_json::Value;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use steward_tests::steward::Said;
use steward_tests::world::World;

const FAULTY: [(&str, &str); 5] = [
    ("matter/garden.md", "---\ntype: matter\nstate: opne\nsteward:\n  ceilng: act\n---\n"),
    ("task/all.md", "---\nname: T\nstate: opne\ndue: soon\ntype: note\n---\n"),
    ("task/broken.md", "---\ntype: task\nname: [unclosed\n---\n"),
    ("task/orphan.md", "---\ntype: task\nparent_matter: nowhere\n---\n"),
    ("signal/odd.md", "---\ntype: signal\neffect: much\n---\n"),
];

/// The findings of these checks, each as its level and its words.
fn findings(said: &Said, checks: &[&str]) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let findings = said.json().as_array().unwrap().clone();
    let about = findings.iter().filter(|f| checks.contains(&f["check"].as_str().unwrap()));
    about.map(|f| (text(&f["level"]), text(&f["found"]))).collect()
}

/// The index in this folder or below it, with its side files.
fn find_index(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let find = |path: PathBuf| {
        let is_index = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("state.db"));
        if is_index { vec![path] } else { find_index(&path) }
    };
    entries.flat_map(|entry| find(entry.path())).collect()
}

#[tokio::test]
async fn without_an_index_the_findings_on_notes_are_the_same_as_with_one() {
    let world = World::with_one_done().await;
    for (path, text) in FAULTY {
        world.vault.write(path, text);
    }
    let before = world.vault.files();
    let checks = ["record", "records", "left out", "moved note"];
    let first = world.run(&["doctor", "--json"]).await.expect(4);
    assert_eq!(find_index(&world.folder), Vec::<PathBuf>::new());
    assert_eq!(world.vault.files().since(&before), Vec::<String>::new());
    let found = findings(&first, &checks);
    for (path, parts) in [
        (
            "task/all.md",
            &["line 3: `state`", "line 4: `due`", "line 5: `type`", "`parent_matter` is missing: add it"][..],
        ),
        ("matter/garden.md", &["line 3: `state`", "line 5: `steward.ceilng`"]),
        ("task/broken.md", &["line 3", "close"]),
        ("task/orphan.md", &["matter/nowhere.md", "create"]),
        ("signal/odd.md", &["line 3: `effect`", "`target_kind` is missing"]),
    ] {
        let about = found.iter().find(|(_, text)| text.starts_with(&format!("{path}: ")));
        let (level, text) = about.unwrap_or_else(|| panic!("nothing about {path}: {first}"));
        assert!(level == "wrong" && parts.iter().all(|part| text.contains(part)), "{path}: {text}");
    }
    world.run(&["index", "rebuild"]).await.expect(0);
    let again = world.run(&["doctor", "--json"]).await.expect(4);
    assert!(again.out.contains("agrees with every file"), "{again}");
    assert_eq!(findings(&again, &checks), found);
}

#[tokio::test]
async fn a_folder_that_cannot_be_listed_is_named_without_an_index_too() {
    let world = World::with_one_done().await;
    std::fs::rename(world.vault.path().join("signal"), world.vault.path().join("elsewhere")).unwrap();
    world.vault.write("signal", "no folder");
    let doctor = world.run(&["doctor", "--json"]).await.expect(4);
    let found = findings(&doctor, &["record"]);
    assert!(found.iter().any(|(level, text)| level == "wrong" && text.starts_with("signal/: ")), "{doctor}");
}

#[tokio::test]
async fn without_an_index_the_notes_of_a_mapped_vault_are_read_by_its_mapping() {
    let world = mapped::accepted().await;
    world.vault.write("Aufgaben/Lost.md", "---\ntags: task\nstatus: todo\nproject: \"[[Nobody knows]]\"\n---\n");
    world.vault.write("Aufgaben/Bare.md", "---\ntags: task\nstatus: someday\n---\n");
    world.vault.write("Projekte/Rot.md", "---\nstatus: active\nsteward:\n  ceilng: act\n---\n");
    find_index(&world.folder).iter().for_each(|file| std::fs::remove_file(file).unwrap());
    let checks = ["record", "records", "left out"];
    let first = world.run(&["doctor", "--json"]).await.expect(4);
    assert_eq!(find_index(&world.folder), Vec::<PathBuf>::new());
    let found = findings(&first, &checks);
    let of = |path: &str| {
        let about = found.iter().find(|(_, text)| text.starts_with(&format!("{path}: ")));
        about.unwrap_or_else(|| panic!("nothing about {path}: {first}"))
    };
    let (level, bare) = of("Aufgaben/Bare.md");
    assert!(level == "note" && bare.contains("`someday`") && bare.contains("names no matter"), "{bare}");
    assert!(of("Aufgaben/Lost.md").1.contains("Nobody knows") && of("Projekte/Rot.md").1.contains("line 4"), "{first}");
    world.run(&["index", "rebuild"]).await.expect(0);
    assert_eq!(findings(&world.run(&["doctor", "--json"]).await.expect(4), &checks), found);
}

#[tokio::test]
async fn a_default_port_in_use_is_a_note_and_names_the_port_that_is_taken_instead() {
    let world = World::with_one_done().await;
    // If another process has the port, the test needs no listener of its own.
    let _in_use = TcpListener::bind("127.0.0.1:7233");
    let mut steward = world.without_server();
    steward = steward.without("STEWARD_TEMPORAL_PORT");
    let doctor = steward.run(&["doctor", "--json"]).await.expect(0);
    let found = findings(&doctor, &["port"]);
    let [(level, text)] = found.as_slice() else { panic!("{doctor}") };
    assert!(level == "note" && text.starts_with("7233 is in use; `steward up` will take 72"), "{doctor}");
    let shown = steward.run(&["doctor"]).await.expect(0);
    assert!(shown.out.contains("note  port           7233 is in use"), "{shown}");

    let explicit = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = explicit.local_addr().unwrap().port();
    let doctor = steward.with("STEWARD_TEMPORAL_PORT", port).run(&["doctor", "--json"]).await.expect(4);
    assert_eq!(findings(&doctor, &["port"])[0].0, "wrong", "{doctor}");
}

#[tokio::test]
async fn a_vault_without_a_matter_or_a_task_is_a_finding_that_names_the_next_step() {
    let world = World::new().await;
    let doctor = world.run(&["doctor", "--json"]).await.expect(4);
    let found = findings(&doctor, &["records"]);
    let [(level, text)] = found.as_slice() else { panic!("{doctor}") };
    assert!(level == "wrong" && text.contains("matter/") && text.contains("`steward init`"), "{text}");

    world.run(&["index", "rebuild"]).await.expect(0);
    assert_eq!(findings(&world.run(&["doctor", "--json"]).await.expect(4), &["records"]), found, "with an index, too");
    // What the finding says is enough.
    world.vault.write("matter/house.md", "---\ntype: matter\nname: The house\n---\n");
    world.run(&["index", "rebuild"]).await.expect(0);
    let doctor = world.run(&["doctor", "--json"]).await.expect(0);
    assert_eq!(findings(&doctor, &["records"]), [("ok".to_owned(), "1 matter and 0 tasks can be read".to_owned())]);
}

//! Trust is learned from people's resolutions: once for each, whatever happens in between.

use crate::crash::{cut_worker, meets_its_end, points};
use chrono::{TimeDelta, Utc};
use futures::StreamExt;
use futures::future::join_all;
use rustix::process::Signal as Sent;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use steward_domain::action::audit::{ActionKind, AuditRecord};
use steward_domain::action::plan::Disposition;
use steward_domain::record::frontmatter;
use steward_domain::record::path::RecordPath;
use steward_tests::clerk::{Clerk, Says, verdict};
use steward_tests::vault::Signal;
use steward_tests::world::World;
use steward_tests::{run, wait};
use steward_vault::files::root::VaultRoot;
use steward_vault::index::Index;

fn instinct(world: &World, name: &str) -> Value {
    let bytes = world.vault.read(&format!("instinct/{name}.md"));
    Value::Object(frontmatter::read_document(&bytes).unwrap().fields().clone())
}

async fn calibrate(world: &World, id: &str) -> Value {
    world.begin_as(id, "ReversalCalibrationWorkflow", &Value::Null).await.result().await
}

fn nothing() -> Value {
    json!({"written": 0, "failed": 0, "more": false, "by_hand": 0, "pruned": 0, "lowered": 0})
}

fn of_kind(world: &World, kind: ActionKind) -> Vec<AuditRecord> {
    world.vault.records().into_iter().filter(|r| r.draft.kind == kind).collect()
}

fn says(world: &World, task: &str, from: &str, to: &str) {
    let text = String::from_utf8(world.vault.read(&format!("task/{task}.md"))).unwrap();
    world.vault.write(&format!("task/{task}.md"), text.replace(from, to));
}

async fn judged(world: &World, task: &str) -> AuditRecord {
    let path = format!("task/{task}.md");
    wait::until("a decision", async || {
        world.tick("house").await;
        world.vault.records().into_iter().find(|r| r.draft.target.as_str() == path)
    })
    .await
}

/// Tasks that each have a signal which says that they are done.
fn tasks(world: &World, names: &[&str]) {
    world.vault.matter("house");
    for name in names {
        world.vault.task(name, "house");
        world.vault.signal(&format!("about-{name}"), &Signal::done(name));
    }
}

#[tokio::test]
async fn what_a_human_did_by_hand_is_the_label_of_what_was_proposed() {
    let world = World::new().await;
    tasks(&world, &["done", "archived", "later", "left"]);
    let worker = world.worker().await;
    world.tick("house").await;
    assert!(world.vault.records().iter().all(|r| r.draft.disposition == Disposition::Shadow));
    assert_eq!(calibrate(&world, "before").await["by_hand"], 0, "nothing was done yet");
    says(&world, "done", "state: open", "state: Done");
    says(&world, "archived", "state: open", "state: archived");
    says(&world, "later", "state: open", "state: open\nsnoozed_until: 2999-01-01");
    says(&world, "left", "do it", "do half of it");
    wait::until("the hand's work to be seen", async || {
        calibrate(&world, "after").await;
        let settled = of_kind(&world, ActionKind::DoneAnyway).len() + of_kind(&world, ActionKind::Opposed).len();
        (settled == 3).then_some(())
    })
    .await;
    let targets = |kind| of_kind(&world, kind).into_iter().map(|r| r.draft.target.to_string()).collect::<Vec<_>>();
    assert_eq!(targets(ActionKind::DoneAnyway), ["task/done.md"]);
    let mut opposed = targets(ActionKind::Opposed);
    opposed.sort();
    assert_eq!(opposed, ["task/archived.md", "task/later.md"]);
    assert_eq!(calibrate(&world, "again").await["by_hand"], 0, "once");
    // A dismissed proposal may be confirmed after all; the latest resolution counts.
    says(&world, "later", "state: open", "state: done");
    wait::until("the late work to be seen", async || {
        calibrate(&world, "late").await;
        (of_kind(&world, ActionKind::DoneAnyway).len() == 2).then_some(())
    })
    .await;
    assert_eq!(calibrate(&world, "late-again").await["by_hand"], 0, "once");
    assert_eq!(
        (&instinct(&world, "mail")["observations"], &instinct(&world, "mail")["counted"]),
        (&json!(1), &json!(1))
    );
    let learned = instinct(&world, "mail");
    worker.stop().await;
    world.vault.lose_databases();
    let _worker = world.worker().await;
    calibrate(&world, "anew").await;
    assert_eq!((instinct(&world, "mail"), of_kind(&world, ActionKind::Opposed).len()), (learned, 2));
    let listed = world.run(&["audit", "list"]).await.expect(0);
    assert!(listed.out.contains("by hand") && listed.out.contains("differently"), "{listed}");
    world.verify_chain().await;
}

#[tokio::test]
async fn two_undos_take_a_source_one_step_back_until_a_human_raises_it() {
    let world = World::new().await.set("STEWARD_LIVE_MODE", "live_high_confidence_only");
    tasks(&world, &["one", "two", "three"]);
    world.vault.instinct("mail", 60);
    let worker = world.worker().await;
    world.tick("house").await;
    let live = world.live_actions();
    assert_eq!(live.len(), 3);
    let first = world.run(&["undo", live[0].as_str()]).await.expect(0);
    assert!(!first.out.contains("demoted"), "one click may be a mistake: {first}");
    let second = world.run(&["undo", live[1].as_str()]).await.expect(0);
    assert!(second.out.contains("demoted: mail went from live_high_confidence_only to shadow: 2 of 3"), "{second}");
    calibrate(&world, "one").await;
    assert_eq!(calibrate(&world, "again").await, nothing(), "for the same undos once");
    let lowered = of_kind(&world, ActionKind::Lowered);
    assert_eq!(lowered[0].draft.target.as_str(), "instinct/mail.md");
    let status = world.run(&["status"]).await.expect(0);
    assert!(status.out.contains("mail to shadow at 20"), "{status}");

    tasks(&world, &["four"]);
    let shadow = judged(&world, "four").await;
    assert_eq!((shadow.draft.disposition, world.vault.state("four").as_str()), (Disposition::Shadow, "open"));
    assert_eq!(world.tick("house").await.evaluated.len(), 0, "it is not judged again at every look");
    let why = world.run(&["why", "four"]).await.expect(0);
    assert!(why.out.contains("steward trust raise mail"), "{why}");

    // The learned numbers survive the loss of the index, and only a person ends the demotion.
    worker.stop().await;
    world.vault.lose_index();
    let _worker = world.worker().await;
    assert_eq!(calibrate(&world, "anew").await["lowered"], 0);
    let refused = world.run(&["trust", "raise", "slack"]).await.expect(1);
    assert!(refused.err.contains("slack is not demoted; these are: mail"), "{refused}");
    let raised = world.run(&["trust", "raise", "mail", "--reason", "mended"]).await.expect(0);
    assert!(raised.out.contains("restored: mail may act as far as the mode allows again"), "{raised}");
    world.run(&["trust", "raise", "mail"]).await.expect(1);
    assert_eq!(calibrate(&world, "after").await["lowered"], 0, "what was undone before counts no more");
    tasks(&world, &["five"]);
    judged(&world, "five").await;
    assert_eq!(world.vault.state("five"), "done");
    let status = world.run(&["status"]).await.expect(0);
    assert!(!status.out.contains("demoted"), "{status}");
    world.verify_chain().await;
}

#[tokio::test]
async fn a_change_that_a_human_writes_back_is_a_lesson_like_an_undo() {
    let world = World::new().await.live();
    tasks(&world, &["one", "two", "kept"]);
    world.vault.instinct("mail", 60);
    let _worker = world.worker().await;
    world.tick("house").await;
    assert_eq!(world.live_actions().len(), 3);
    assert_eq!(calibrate(&world, "before").await["by_hand"], 0, "all stand as they were left");
    for task in ["one", "two"] {
        says(&world, task, "state: done", "state: open");
    }
    says(&world, "kept", "do it", "did it");
    let lowered = wait::until("both to be seen", async || {
        let run = calibrate(&world, "after").await;
        (of_kind(&world, ActionKind::Opposed).len() == 2).then_some(run)
    })
    .await;
    assert_eq!(lowered["lowered"], 1, "{lowered}");
    assert_eq!(calibrate(&world, "again").await, nothing());
    world.verify_chain().await;
}

#[tokio::test]
async fn a_source_that_gives_nothing_is_pruned_on_the_record_and_unknown_again() {
    let clerk = Clerk::start(|asked| {
        let mut says = verdict(asked, "still_active", 0.9);
        says["source_contributions"] = json!({"mail": 0.0});
        Says::Text(says.to_string())
    })
    .await;
    let world = World::new().await.asking(&clerk);
    world.vault.instinct("mail", 60);
    tasks(&world, &["one", "two", "three"]);
    let worker = world.worker().await;
    world.tick("house").await;
    assert_eq!(calibrate(&world, "first").await["pruned"], 1);
    assert_eq!(calibrate(&world, "again").await["pruned"], 0, "once");
    let pruned = of_kind(&world, ActionKind::Pruned);
    assert_eq!((pruned.len(), pruned[0].draft.target.as_str()), (1, "instinct/mail.md"));
    let file = instinct(&world, "mail");
    assert_eq!((&file["status"], &file["observations"]), (&json!("pruned"), &json!(60)));
    worker.stop().await;
    world.vault.lose_databases();
    let _worker = world.worker().await;
    assert_eq!(calibrate(&world, "anew").await["pruned"], 0);
    assert_eq!(of_kind(&world, ActionKind::Pruned).len(), 1);
    world.verify_chain().await;
}

#[tokio::test]
async fn an_undo_lowers_its_source_once_however_often_and_by_whomever_it_is_counted() {
    let world = World::with_one_done().await.live();
    let mut worker = world.worker().await;
    world.tick("house").await;
    assert_eq!(calibrate(&world, "first").await["written"], 1);
    let before = instinct(&world, "mail");
    assert_eq!((&before["status"], &before["observations"]), (&json!("pending"), &json!(0)), "{before}");
    let confidence = before["confidence"].as_f64().unwrap();
    world.answer("undo", &world.live_action()).await.result().await;
    let runs = join_all((0..3).map(async |n| calibrate(&world, &format!("at-once-{n}")).await)).await;
    assert!(runs.iter().all(|run| run["failed"] == 0), "{runs:?}");
    let lowered = instinct(&world, "mail");
    assert!((confidence - 0.1 - lowered["confidence"].as_f64().unwrap()).abs() < 1e-3, "{before} {lowered}");
    assert_eq!(calibrate(&world, "again").await, nothing());

    // A crash, with the loss of every database.
    worker.send(Sent::KILL);
    worker.ends().await;
    world.vault.lose_index();
    let bytes = world.vault.read("instinct/mail.md");
    let _worker = world.worker().await;
    assert_eq!(calibrate(&world, "anew").await["written"], 0);
    assert_eq!(world.vault.read("instinct/mail.md"), bytes);
    std::fs::remove_file(world.vault.path().join("instinct/mail.md")).unwrap();
    wait::until("the instinct to be written anew", async || {
        calibrate(&world, "from-nothing").await;
        world.vault.path().join("instinct/mail.md").exists().then_some(())
    })
    .await;
    assert_eq!(instinct(&world, "mail"), lowered, "the records alone say so");
    world.verify_chain().await;
}

#[tokio::test]
async fn what_a_human_wrote_into_an_instinct_stays() {
    let world = World::with_one_done().await.live();
    let mine =
        "---\ntype: instinct\nsource: mail  # ours\nobservations: 7\nceiling: confirm # by hand\n---\nAnn's mails.\n";
    world.vault.write("instinct/anns.md", mine);
    world.vault.write("instinct/broken.md", "---\nsource: [\n---\n");
    let _worker = world.worker().await;
    world.tick("house").await;
    calibrate(&world, "first").await;
    let text = String::from_utf8(world.vault.read("instinct/anns.md")).unwrap();
    for kept in ["source: mail  # ours\n", "observations: 7\n", "ceiling: confirm # by hand\n", "---\nAnn's mails.\n"] {
        assert!(text.contains(kept), "{text}");
    }
    assert!(text.contains("counted: 0\n") && text.contains("confidence: "), "{text}");
    assert!(!world.vault.path().join("instinct/mail.md").exists(), "one source has one instinct");
}

#[tokio::test]
async fn the_drill_tries_every_class_and_leaves_the_vault_as_it_was() {
    let world = World::new().await;
    world.vault.matter("house");
    let _worker = world.worker().await;
    let listed = world.run(&["schedules", "list", "--json"]).await.expect(0);
    assert!(listed.out.contains("al-reversibility-drill"), "{listed}");
    let drilled = world.begin_as("drill", "ReversibilityDrillWorkflow", &Value::Null).await.result().await;
    let all = json!(["state_change", "context_edit", "parent_matter", "related"]);
    assert_eq!(drilled, json!({"restored": all, "lowered": 0}));
    assert!(world.vault.records().is_empty() && !world.vault.path().join("matter/canary.md").exists());
    let status = world.run(&["status", "--json"]).await.expect(0);
    assert!(!status.out.contains("canary"), "no watcher takes the canaries for records: {status}");
    let status = status.json();
    assert!(status["drill"]["last"].is_string() && status["drill"]["late"] == false, "{status}");
    for command in ["status", "doctor"] {
        let told = world.run(&[command]).await.expect(0);
        let line = told.out.lines().find(|line| line.trim_start_matches("ok").trim().starts_with("drill"));
        assert!(line.is_some_and(|line| line.contains("last at 20")), "{told}");
    }
}

/// A proposal that a person made by hand, one that they decided otherwise, and the calibration that files both,
/// interrupted at this point. Returns whether the point was met, and the final contents of the instinct and the
/// records.
async fn calibrated_cut_at(point: Option<&'static str>) -> (bool, Value, Vec<ActionKind>) {
    let world = World::new().await;
    tasks(&world, &["done", "archived"]);
    let worker = world.worker().await;
    world.tick("house").await;
    worker.stop().await;
    says(&world, "done", "state: open", "state: done");
    says(&world, "archived", "state: open", "state: archived");
    let mut met = false;
    if let Some(point) = point {
        let mut worker = cut_worker(&world, point).await;
        let run = world.begin_as("cut", "ReversalCalibrationWorkflow", &Value::Null).await;
        met = meets_its_end(point, &mut worker, &run).await;
        world.vault.lose_index();
    }
    let worker = world.worker().await;
    wait::until("both to be settled", async || {
        join_all((0..2).map(async |n| calibrate(&world, &format!("again-{n}")).await)).await;
        let settled = of_kind(&world, ActionKind::DoneAnyway).len() + of_kind(&world, ActionKind::Opposed).len();
        (settled >= 2).then_some(())
    })
    .await;
    calibrate(&world, "last").await;
    worker.stop().await;
    world.verify_chain().await;
    let mut learned = instinct(&world, "mail");
    // It contains times and ids, which differ between runs.
    learned.as_object_mut().unwrap().remove("history");
    let mut kinds: Vec<ActionKind> = world.vault.records().iter().map(|r| r.draft.kind).collect();
    kinds.sort();
    (met, learned, kinds)
}

#[tokio::test]
async fn a_calibration_that_is_cut_short_anywhere_comes_to_the_numbers_of_a_clean_one() {
    let (_, learned, kinds) = calibrated_cut_at(None).await;
    assert_eq!(kinds, [ActionKind::Action, ActionKind::Action, ActionKind::DoneAnyway, ActionKind::Opposed]);
    assert_eq!((&learned["observations"], &learned["status"]), (&json!(1), &json!("pending")), "{learned}");
    let all = futures::stream::iter(run::choose_cases(points(false)))
        .map(async |point| (point, calibrated_cut_at(Some(point)).await));
    let ended: Vec<_> = all.buffer_unordered(6).collect().await;
    let met = ended.iter().filter(|(_, (met, ..))| *met).count();
    // The calibration files both records, so it meets at least those points.
    assert!(met >= if run::is_thorough() { 5 } else { 1 }, "{met} points were met: {ended:?}");
    for (point, (_, numbers, filed)) in ended {
        assert_eq!((&numbers, &filed), (&learned, &kinds), "{point}");
    }
}

/// A vault with five simulated days. Nobody decides upon its fresh signals while the vault is stopped.
async fn five_days() -> World {
    let world = World::new().await;
    let folder = world.vault.path().display().to_string();
    let written = world.json(&["simulate", "--days", "5", &folder]).await;
    assert!(written["proposals"].as_u64() > Some(100), "{written}");
    world.run(&["stop", "--reason", "nothing is to come between"]).await.expect(0);
    world
}

fn folder(world: &World, name: &str) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(world.vault.path().join(name)).unwrap();
    let paths = entries.map(|e| format!("{name}/{}", e.unwrap().file_name().to_str().unwrap()));
    paths.map(|path| (path.clone(), String::from_utf8(world.vault.read(&path)).unwrap())).collect()
}

#[tokio::test]
async fn simulated_days_come_to_the_same_numbers_in_whatever_order_and_how_often_they_are_read() {
    let world = five_days().await;
    let (root, now) = (VaultRoot::open(world.vault.path()).unwrap(), Utc::now());
    let index = async |name: &str| Index::open(&world.folder.join(name)).await.unwrap();
    let clean = index("clean").await;
    clean.sync_all(&root, now).await.unwrap();
    let told = clean.trust().compute_source_trust(now).await.unwrap();
    assert!(told.len() == 8 && told.values().any(|source| source.observations > 10), "{told:#?}");
    clean.rebuild(&root, now).await.unwrap();
    assert_eq!(clean.trust().compute_source_trust(now).await.unwrap(), told, "after a rebuild");

    let mut records: Vec<RecordPath> =
        folder(&world, "event").keys().map(|path| RecordPath::parse(path).unwrap()).collect();
    let backwards = index("backwards").await;
    for _ in 0..2 {
        records.reverse();
        for some in records.chunks(7) {
            backwards.sync_paths(&root, some, now).await.unwrap();
        }
        assert_eq!(
            backwards.trust().compute_source_trust(now).await.unwrap(),
            told,
            "backwards, and all of it a second time"
        );
    }

    let jumped = index("jumped").await;
    jumped.sync_all(&root, now - TimeDelta::days(40)).await.unwrap();
    assert_eq!(
        jumped.trust().compute_source_trust(now).await.unwrap(),
        told,
        "read by a clock that stood before all of it"
    );
    for days in [1, 3, 40] {
        let before = jumped.trust().compute_source_trust(now - TimeDelta::days(days)).await.unwrap();
        let steps = before.iter().map(|(source, trust)| (source, &trust.confidence, &trust.status_changes));
        assert!(
            steps.eq(told.iter().map(|(source, trust)| (source, &trust.confidence, &trust.status_changes))),
            "{days} days"
        );
    }
}

#[tokio::test]
async fn instincts_that_were_learned_in_simulated_days_are_written_anew_to_the_byte() {
    let world = five_days().await;
    let learned = folder(&world, "instinct");
    assert_eq!(learned.len(), 8);
    let worker = world.worker().await;
    assert_eq!(calibrate(&world, "first").await, nothing(), "the simulated days are complete");
    worker.stop().await;
    for path in learned.keys() {
        std::fs::remove_file(world.vault.path().join(path)).unwrap();
    }
    world.vault.lose_databases();
    let _worker = world.worker().await;
    assert_eq!(calibrate(&world, "anew").await["written"], 8);
    assert_eq!(folder(&world, "instinct"), learned);
    assert_eq!(calibrate(&world, "again").await, nothing());
    world.verify_chain().await;
}

#[tokio::test]
async fn the_report_of_simulated_days_counts_what_their_truth_says() {
    let world = five_days().await;
    let beside = world.vault.path().with_extension("truth.json");
    let truth: Value = serde_json::from_slice(&std::fs::read(beside).unwrap()).unwrap();
    // By class and source: agreed, wrong, open. In five days no change was left alone for seven.
    let mut expected: BTreeMap<(String, String), [u64; 3]> = BTreeMap::new();
    for action in truth["actions"].as_object().unwrap().values() {
        let place = match action["principal"].as_str().unwrap() {
            "did_it_by_hand" | "confirmed" => 0,
            "did_otherwise" | "dismissed" | "undid" => 1,
            _ => 2,
        };
        if place < 2 && action["erred"] == false {
            assert_eq!(action["right"], place == 0, "{action}");
        }
        let text = |field: &str| action[field].as_str().unwrap().to_owned();
        expected.entry((text("class"), text("source"))).or_default()[place] += 1;
    }
    let report = world.json(&["trust", "report"]).await;
    let row = |row: &Value| {
        let text = |field: &str| row[field].as_str().unwrap().to_owned();
        ((text("class"), text("name")), ["agreed", "wrong", "open"].map(|field| row[field].as_u64().unwrap()))
    };
    let told: BTreeMap<_, _> = report["class_sources"].as_array().unwrap().iter().map(row).collect();
    assert_eq!(told, expected);
}

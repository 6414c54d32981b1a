//! The limits of a steward: the mode of the environment, the thresholds, the stop.

use serde_json::json;
use steward_domain::action::audit::AuditRecord;
use steward_domain::action::plan::Disposition;
use steward_domain::gates::mode::Mode;
use steward_domain::steward::tick::TaskCheckOutcome;
use steward_tests::clerk::{Clerk, Says, gate};
use steward_tests::vault::Signal;
use steward_tests::wait;
use steward_tests::world::World;

/// Two tasks: the source is very certain about one, and fairly certain about the other.
async fn two_tasks() -> World {
    let world = World::new().await;
    world.vault.matter("house");
    world.vault.instinct("mail", 60);
    for (task, confidence) in [("sure", 0.97), ("fairly", 0.78)] {
        world.vault.task(task, "house");
        let signal = Signal { effect_confidence: confidence, target_confidence: confidence, ..Signal::done(task) };
        world.vault.signal(&format!("about-{task}"), &signal);
    }
    world
}

/// The dispositions of both, the certain one first, and the states of both.
async fn dispositions(world: &World) -> [(Disposition, String); 2] {
    let _worker = world.worker().await;
    world.tick("house").await;
    let records = world.vault.records();
    ["sure", "fairly"].map(|task| {
        let record = records.iter().find(|r| r.draft.target.slug() == task).unwrap();
        (record.draft.disposition, world.vault.state(task))
    })
}

#[tokio::test]
async fn only_the_words_of_a_mode_open_it() {
    use Disposition::{Live, Pending, Shadow};
    let table = [
        ("shadow", [Shadow, Shadow]),
        ("LIVE", [Shadow, Shadow]),
        ("yes", [Shadow, Shadow]),
        ("live_high_confidence_only", [Live, Pending]),
        ("live", [Live, Live]),
    ];
    for (mode, expected) in table {
        let world = two_tasks().await.set("STEWARD_LIVE_MODE", mode);
        let before = world.vault.files();
        let found = dispositions(&world).await;
        for ((disposition, state), expected) in found.iter().zip(expected) {
            let changed = if expected == Live { "done" } else { "open" };
            assert_eq!((*disposition, state.as_str()), (expected, changed), "{mode}");
        }
        if !mode.starts_with("live") {
            assert_eq!(world.vault.files().since_but_events(&before), Vec::<String>::new(), "{mode}");
            let all_shadow = world.vault.records().iter().all(|r| r.draft.mode == Mode::Shadow);
            assert!(all_shadow, "{mode}");
        }
        let warnings = world.json(&["status"]).await["warnings"].as_array().unwrap().len();
        assert_eq!(warnings, usize::from(["LIVE", "yes"].contains(&mode)), "{mode}");
    }
}

#[tokio::test]
async fn thresholds_out_of_range_are_reported_and_the_defaults_hold() {
    for bad in ["1.5", "-1", "nan", "high"] {
        let world = World::new().await.live().set("STEWARD_CONFIDENCE_THRESHOLD", bad);
        let said = world.run(&["doctor", "--json"]).await.expect(4).json();
        let finding = said.as_array().unwrap().iter().find(|f| f["ok"] == json!(false)).unwrap();
        let found = finding["found"].as_str().unwrap();
        assert!(found.contains("STEWARD_CONFIDENCE_THRESHOLD") && found.contains("using 0.6"), "{found}");
        let status = world.json(&["status"]).await;
        assert_eq!(status["policy"]["confidence_threshold"], json!(0.6), "{bad}");
    }
    let world = two_tasks().await.live().set("STEWARD_CONFIDENCE_THRESHOLD", "0.8");
    let [(sure, _), (fairly, _)] = dispositions(&world).await;
    assert_eq!((sure, fairly), (Disposition::Live, Disposition::Pending));
}

#[tokio::test]
async fn ceilings_of_the_class_and_of_the_matter_hold_a_change() {
    for (name, value) in [("STEWARD_STATE_CHANGE_CEILING", "confirm"), ("STEWARD_DEFAULT_CEILING", "nonsense")] {
        let world = World::with_one_done().await.live().set(name, value);
        let _worker = world.worker().await;
        world.tick("house").await;
        let record = world.vault.records().remove(0);
        assert_eq!(
            (record.draft.disposition, world.vault.state("rent").as_str()),
            (Disposition::Pending, "open"),
            "{name}"
        );
        let said = world.run(&["confirm", record.draft.id.as_str(), "--json"]).await;
        // A change under a ceiling of `ask` cannot be confirmed either.
        let expected = if value == "confirm" { 0 } else { 3 };
        assert_eq!(said.code, Some(expected), "{name}: {said}");
    }
}

#[tokio::test]
async fn a_caller_that_says_shadow_lands_as_shadow() {
    let world = World::with_one_done().await.live();
    let _worker = world.worker().await;
    let report = world.json(&["tick", "house", "--wait", "--shadow"]).await;
    assert_eq!(report["evaluated"][0]["disposition"], json!("shadow"));
    assert_eq!(world.vault.state("rent"), "open");
    assert_eq!(world.vault.records()[0].draft.mode, Mode::Shadow);
}

#[tokio::test]
async fn a_shadow_tick_is_never_one_that_waits_and_may_act() {
    let world = World::with_one_done().await.live();
    // No worker serves yet, so both wait.
    let acts = world.json(&["tick", "house"]).await["workflow_id"].as_str().unwrap().to_owned();
    let shadow = world.json(&["tick", "house", "--shadow"]).await["workflow_id"].as_str().unwrap().to_owned();
    assert_ne!(acts, shadow, "the shadow tick became the one that acts");
    world.temporal(&["workflow", "terminate", "-w", &acts]).await;
    let _worker = world.worker().await;
    wait::until("its record", async || (world.vault.records().len() == 1).then_some(())).await;
    assert_eq!(world.vault.records()[0].draft.disposition, Disposition::Shadow);
    assert_eq!(world.vault.state("rent"), "open");
}

#[tokio::test]
async fn a_stop_during_a_clerk_call_files_no_decision_and_lets_no_other_call_begin() {
    let (open, opened) = gate();
    let clerk = Clerk::start(move |asked| match asked.task() {
        "task/garbled.md" => Says::Once(opened.clone(), Box::new(Says::Text("no JSON at all".into()))),
        _ => Says::Once(opened.clone(), Box::new(Says::Verdict("likely_done", 0.97))),
    })
    .await;
    let world = World::with_one_done().await.live().asking(&clerk);
    world.vault.task("garbled", "house");
    world.vault.signal("s2", &Signal::done("garbled"));
    world.vault.matter("garden");
    world.vault.task("mow", "garden");
    world.vault.signal("s3", &Signal::done("mow"));
    let before = world.vault.files();
    let _worker = world.worker().await;
    let under_way = world.begin("house").await;
    wait::until("both calls to be under way", async || (clerk.asked().len() == 2).then_some(())).await;

    world.run(&["stop", "--reason", "odd"]).await.expect(0);
    let held = world.tick("garden").await;
    assert!(held.stopped && held.evaluated.is_empty(), "{held:?}");
    open.send_replace(true);
    let report = under_way.report().await;
    let end = |task: &str| &report.evaluated.iter().find(|t| t.task.slug() == task).unwrap().ended;
    assert_eq!((end("rent"), report.stopped), (&TaskCheckOutcome::Stopped, true), "{report:?}");
    let TaskCheckOutcome::RateGuarded { reason, .. } = end("garbled") else { panic!("{report:?}") };
    assert!(reason.contains("stopped") && reason.contains("resume"), "{reason}");
    assert_eq!(clerk.asked().len(), 2, "no second attempt under the stop");
    assert_eq!(world.vault.files().since_but_events(&before), Vec::<String>::new());
    assert_eq!(world.vault.records().len(), 0, "filed under a stop");

    world.run(&["resume"]).await.expect(0);
    let again = world.tick("garden").await;
    assert!(
        matches!(again.evaluated[0].ended, TaskCheckOutcome::Decided { disposition: Disposition::Live, .. }),
        "{again:?}"
    );
    assert_eq!(world.vault.state("mow"), "done");
    // The stop refused the other matter's call, so the end of the stop wakes that matter by itself.
    // The record is filed just after the note has changed.
    let rent = |r: &AuditRecord| r.draft.target.slug() == "rent" && r.draft.disposition == Disposition::Live;
    let filed = || world.vault.records().iter().filter(|record| rent(record)).count();
    wait::until("what the stop held to be done", async || (filed() > 0).then_some(())).await;
    assert_eq!((filed(), world.vault.state("rent").as_str()), (1, "done"));
}

#[tokio::test]
async fn what_shadow_proposed_happens_once_the_mode_is_live_and_only_once() {
    let world = World::with_one_done().await;
    let shadow = world.worker().await;
    let seen = world.tick("house").await;
    assert!(
        matches!(seen.evaluated[0].ended, TaskCheckOutcome::Decided { disposition: Disposition::Shadow, .. }),
        "{seen:?}"
    );
    assert!(world.tick("house").await.evaluated.is_empty(), "asked again in shadow");
    shadow.stop().await;
    let world = world.live();
    let _worker = world.worker().await;
    // The start wakes the matter, and no tick of ours is needed.
    wait::until("the change to be made", async || (world.live_actions().len() == 1).then_some(())).await;
    assert!(world.tick("house").await.evaluated.is_empty());
    assert_eq!((world.live_actions().len(), world.vault.state("rent").as_str()), (1, "done"));
    world.verify_chain().await;
}

#[tokio::test]
async fn undo_works_under_a_stop_and_confirm_does_not() {
    let world = World::with_one_done().await.live();
    world.vault.task("later", "house");
    world.vault.signal("s2", &Signal { effect_confidence: 0.9, ..Signal::done("later") });
    let _worker = world.worker().await;
    world.tick("house").await;
    let records = world.vault.records();
    let pending = records.iter().find(|r| r.draft.pending_confirmation).unwrap().draft.id.to_string();
    world.run(&["stop"]).await.expect(0);
    let said = world.run(&["confirm", &pending, "--json"]).await.expect(3).json();
    assert_eq!((&said["status"], &said["refusal"]["refused"]), (&json!(409), &json!("stopped")), "{said}");
    world.run(&["undo", &world.live_action()]).await.expect(0);
    assert_eq!((world.vault.state("rent"), world.vault.state("later")), ("open".into(), "open".into()));
    world.run(&["resume"]).await.expect(0);
    world.run(&["confirm", &pending]).await.expect(0);
    assert_eq!(world.vault.state("later"), "done");
    world.verify_chain().await;
}

#[tokio::test]
async fn in_suggest_exactly_the_sender_that_was_let_act_acts() {
    let world = World::new().await.live().set("STEWARD_DEFAULT_CEILING", "confirm");
    world.vault.matter("house");
    for source in ["mail", "bank"] {
        world.vault.instinct(source, 60);
        world.vault.task(source, "house");
        world.vault.signal(&format!("s-{source}"), &Signal { source, ..Signal::done(source) });
    }
    world.vault.write("instinct/bank.md", "---\ntype: instinct\nsource: bank\nobservations: 60\nceiling: act\n---\n");
    let _worker = world.worker().await;
    world.tick("house").await;
    assert_eq!((world.vault.state("bank"), world.vault.state("mail")), ("done".into(), "open".into()));
    let records = world.vault.records();
    let of_mail = records.iter().find(|record| record.draft.target.slug() == "mail").unwrap();
    assert_eq!(of_mail.draft.disposition, Disposition::Pending);
    assert_eq!(world.json(&["status"]).await["mode_name"], json!("Suggest"));
    world.run(&["confirm", of_mail.draft.id.as_str()]).await.expect(0);
    assert_eq!(world.vault.state("mail"), "done");
}

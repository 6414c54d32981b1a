//! The policy in a matter's note: each line holds a change, and a person's confirmation passes.

use chrono::{DateTime, Duration, Utc};
use serde_json::{Value, json};
use steward_domain::action::audit::AuditRecord;
use steward_domain::action::plan::Disposition;
use steward_domain::gates::result::GateName;
use steward_domain::steward::tick::TaskSkipReason;
use steward_tests::vault::Signal;
use steward_tests::wait;
use steward_tests::world::World;

/// A live world with a matter that has this note.
async fn noted(block: &str) -> World {
    let world = World::new().await.live();
    note(&world, block);
    world.vault.instinct("mail", 60);
    world
}

fn note(world: &World, block: &str) {
    let text = format!("---\ntype: matter\nname: house\nstate: open\nsteward:\n{block}---\nWhat it is.\n");
    world.vault.write("matter/house.md", text);
}

/// A task, and a signal of a source that it is done.
fn done(world: &World, task: &str, source: &str) {
    world.vault.task(task, "house");
    world.vault.signal(&format!("about-{task}"), &Signal { source, ..Signal::done(task) });
}

/// A signal that another person belongs to a task, which the router handles alone.
fn joins(world: &World, task: &str) {
    let created = steward_domain::time::format_millis(Utc::now() - Duration::hours(1));
    world.vault.write(
        &format!("signal/joins-{task}.md"),
        format!(
            "---\ntype: signal\ncreated: {created}\nsource_event_path: stream/mail/9.md\nsource_type: mail\n\
             raw_quote: Eve joins\ntarget_kind: task\ntarget_path: task/{task}.md\ntarget_confidence: 0.98\n\
             effect: mutation\nmutation_proposal:\n  class: related\n  add: {{related_to: Eve}}\n\
             effect_confidence: 0.97\nstatus: unrouted\n---\n"
        ),
    );
}

fn of(world: &World, task: &str) -> Option<AuditRecord> {
    let path = format!("task/{task}.md");
    world.vault.records().into_iter().find(|r| r.draft.target.as_str() == path)
}

async fn judged(world: &World, task: &str) -> AuditRecord {
    wait::until("a decision", async || {
        world.tick("house").await;
        of(world, task)
    })
    .await
}

fn closed(record: &AuditRecord) -> Vec<(GateName, String)> {
    record.draft.gates.iter().filter(|gate| !gate.open).map(|gate| (gate.gate, gate.found.clone())).collect()
}

/// Hours of the day around a moment, by UTC's clock.
fn hours(from: DateTime<Utc>, to: DateTime<Utc>) -> String {
    format!("  quiet_hours: \"{}-{}\"\n", from.format("%H:%M"), to.format("%H:%M"))
}

#[tokio::test]
async fn a_class_that_the_note_does_not_name_is_left_to_the_human_and_an_undo_is_not_held() {
    let world = noted("  classes: [related]\n  fields: [related_to] # nothing else\n").await;
    done(&world, "rent", "mail");
    joins(&world, "rent");
    let _worker = world.worker().await;
    let routed = wait::until("the router's change", async || {
        world.begin_as("round", "RouterWorkflow", &Value::Null).await.result().await;
        world.vault.records().into_iter().find(|r| r.draft.class.is_some_and(|class| class.as_str() == "related"))
    })
    .await;
    assert_eq!(routed.draft.disposition, Disposition::Live, "{routed:#?}");
    let held = wait::until("the steward's decision", async || {
        world.tick("house").await;
        world.vault.records().into_iter().find(|r| r.draft.class.is_some_and(|class| class.as_str() == "state_change"))
    })
    .await;
    assert_eq!((held.draft.disposition, held.draft.confirmable), (Disposition::Pending, false));
    let gates = [(GateName::Policy, "class state_change".to_owned()), (GateName::Policy, "field state".to_owned())];
    assert_eq!(closed(&held), gates);
    let refused = world.run(&["confirm", held.draft.id.as_str()]).await.expect(3);
    assert!(refused.all().contains("by hand"), "{refused}");
    let why = world.run(&["why", "rent"]).await.expect(0);
    assert!(why.out.contains("closed policy: class state_change, needs classes: related"), "{why}");
    assert!(why.out.contains("the `steward:` block of its matter"), "{why}");
    // The note is narrowed further, and the undo works all the same.
    note(&world, "  classes: []\n  daily_budget: 0\n");
    world.run(&["undo", routed.draft.id.as_str()]).await.expect(0);
    assert!(!String::from_utf8(world.vault.read("task/rent.md")).unwrap().contains("Eve"));
    world.verify_chain().await;
}

#[tokio::test]
async fn a_ceiling_in_the_block_waits_for_a_confirmation_and_the_lower_of_two_holds() {
    let world = noted("  ceiling: confirm\nsteward_ceiling: act\n").await;
    done(&world, "rent", "mail");
    let _worker = world.worker().await;
    let held = judged(&world, "rent").await;
    assert_eq!(
        (held.draft.disposition, closed(&held)),
        (Disposition::Pending, vec![(GateName::Ceiling, "confirm".into())])
    );
    world.run(&["confirm", held.draft.id.as_str()]).await.expect(0);
    assert_eq!(world.vault.state("rent"), "done");
    note(&world, "  ceiling: act\nsteward_ceiling: ask\n");
    done(&world, "garden", "mail");
    let left = judged(&world, "garden").await;
    assert_eq!((left.draft.disposition, left.draft.confirmable), (Disposition::Pending, false));
}

#[tokio::test]
async fn quiet_hours_are_waited_out_by_the_steward_and_the_router() {
    let now = Utc::now();
    let world = noted(&hours(now - Duration::hours(2), now + Duration::hours(2))).await;
    done(&world, "rent", "mail");
    world.vault.task("garden", "house");
    joins(&world, "garden");
    let _worker = world.worker().await;
    let report = wait::until("the signals to be seen", async || {
        Some(world.tick("house").await).filter(|report| report.signals == 2)
    })
    .await;
    assert_eq!((report.skipped.get(&TaskSkipReason::QuietHours), report.evaluated.len()), (Some(&2), 0), "{report:?}");
    world.begin_as("round", "RouterWorkflow", &Value::Null).await.result().await;
    assert_eq!(world.vault.records(), [], "nobody was asked and nothing was done");
    let why = world.run(&["why", "rent"]).await.expect(0);
    assert!(why.out.contains("the end of its matter's quiet hours"), "{why}");
    let check = world.run(&["policy", "check", "house"]).await.expect(0);
    assert!(check.out.contains(", now, until "), "{check}");
    assert!(check.out.contains("then may be made"), "{check}");
    note(&world, &hours(now + Duration::hours(4), now + Duration::hours(6)));
    let late = judged(&world, "rent").await;
    assert_eq!((late.draft.disposition, world.vault.state("rent").as_str()), (Disposition::Live, "done"), "{late:#?}");
}

#[tokio::test]
async fn a_source_that_the_note_does_not_trust_waits_for_a_human_and_one_it_trusts_does_not() {
    let world = noted("  trusted_sources: [mail]\n").await;
    world.vault.instinct("chat", 60);
    done(&world, "rent", "mail");
    done(&world, "garden", "chat");
    let _worker = world.worker().await;
    assert_eq!(judged(&world, "rent").await.draft.disposition, Disposition::Live);
    let held = judged(&world, "garden").await;
    assert_eq!(
        (held.draft.disposition, closed(&held)),
        (Disposition::Pending, vec![(GateName::Policy, "source chat".into())])
    );
    world.run(&["confirm", held.draft.id.as_str()]).await.expect(0);
    assert_eq!(world.vault.state("garden"), "done", "a human's own word is not held");
}

#[tokio::test]
async fn a_day_has_as_many_live_changes_as_the_note_gives_it() {
    let world = noted("  daily_budget: 2\n").await;
    for task in ["one", "two", "three"] {
        done(&world, task, "mail");
    }
    let _worker = world.worker().await;
    wait::until("all decisions", async || {
        world.tick("house").await;
        (world.vault.records().len() == 3).then_some(())
    })
    .await;
    let held: Vec<AuditRecord> =
        world.vault.records().into_iter().filter(|r| r.draft.disposition == Disposition::Pending).collect();
    assert_eq!((held.len(), world.live_actions().len()), (1, 2), "{held:#?}");
    let spent = "2 live changes in 24 h under matter/house.md".to_owned();
    assert_eq!(closed(&held[0]), [(GateName::Policy, spent)]);
    world.run(&["confirm", held[0].draft.id.as_str()]).await.expect(0);
    let check = world.run(&["policy", "check", "house"]).await.expect(0);
    assert!(check.out.contains("2 live changes in 24 h, 2 used"), "what a human confirmed is not counted: {check}");
    world.verify_chain().await;
}

#[tokio::test]
async fn the_check_says_what_holds_from_which_line_and_what_cannot_be_understood() {
    let world = World::new().await.live().set("STEWARD_RELATED_CEILING", "confirm");
    world.vault.matter("plain");
    note(&world, "  classes: [state_change, related]\n  celing: ask\n  daily_budget: 5\n");
    world.vault.write("matter/broken.md", "---\ntype: matter\nsteward: [\n---\n");
    world.vault.write("instinct/mail.md", "---\ntype: instinct\nobservations: 3\nceiling: ask\n---\n");
    let all = world.run(&["policy", "check"]).await.expect(4);
    assert!(!all.out.contains("matter/plain.md") && all.out.contains("WRONG matter/broken.md"), "{all}");
    assert!(all.out.contains("WRONG matter/house.md:7: `steward.celing` is unknown"), "{all}");
    let line = |text: &str, parts: &[&str]| {
        let found = text.lines().any(|line| {
            let mut rest = line.trim();
            parts.iter().all(|part| rest.split_once(part).map(|(_, after)| rest = after).is_some())
        });
        assert!(found, "{parts:?} in\n{text}");
    };
    line(&all.out, &["mode", "live", "STEWARD_LIVE_MODE"]);
    line(&all.out, &["confidence for live", "at least 0.6", "default"]);
    line(&all.out, &["ceiling of related", "confirm", "STEWARD_RELATED_CEILING"]);
    line(&all.out, &["ceiling of mail", "ask", "instinct/mail.md:4"]);
    line(&all.out, &["classes", "state_change, related", "matter/house.md:6 (steward.classes)"]);
    line(&all.out, &["daily budget", "5 live changes in 24 h, 0 used", "matter/house.md:8"]);
    line(&all.out, &["outcome: context_edit", "is left to you", "matter/house.md:6"]);
    line(&all.out, &["outcome: state_change", "is left to you", "is partly invalid"]);

    note(&world, "  classes: [state_change, related]\n");
    let mended = world.json(&["policy", "check", "house"]).await;
    let lines = mended["matters"][0]["lines"].as_array().unwrap().clone();
    let has = |what: &str, value: &str, from: &str| {
        assert!(lines.contains(&json!({"what": what, "value": value, "from": from})), "{lines:#?}");
    };
    has("outcome: state_change", "may be made", "STEWARD_LIVE_MODE");
    has("outcome: related", "waits for your confirmation", "STEWARD_RELATED_CEILING");
    has("outcome: parent_matter", "is left to you", "matter/house.md:6 (steward.classes)");
    note(&world, "  daily_budget: 0\n  trusted_sources: []\n");
    let spent = world.run(&["policy", "check", "house"]).await.expect(0);
    line(
        &spent.out,
        &["outcome: state_change", "waits for your confirmation", "matter/house.md:7 (steward.trusted_sources)"],
    );
    note(&world, "  daily_budget: 0\n");
    let closed = world.vault.read("matter/house.md");
    world.vault.write("matter/house.md", String::from_utf8(closed).unwrap().replace("state: open", "state: done"));
    let closed = world.run(&["policy", "check", "house"]).await.expect(0);
    line(&closed.out, &["outcome: related", "is not checked", "matter/house.md:4 (state)"]);
    note(&world, "  classes: [state_change, related]\n");
    world.run(&["stop"]).await.expect(0);
    let stopped = world.run(&["policy", "check", "house"]).await.expect(0);
    line(&stopped.out, &["outcome: state_change", "is recorded as shadow only", "steward resume"]);
    world.run(&["policy", "check", "nowhere"]).await.expect(1);
    let problems = world.run(&["status"]).await.expect(0);
    assert!(!problems.out.contains("steward.celing"), "{problems}");
}

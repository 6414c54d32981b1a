//! The checks when a plan is applied: the settings of the applying process, a stop, the matter at that time.

use serde_json::{Value, json};
use steward_domain::action::audit::AuditRecord;
use steward_domain::action::plan::Disposition;
use steward_domain::gates::mode::Mode;
use steward_domain::steward::tick::TaskCheckOutcome;
use steward_tests::clerk::{Clerk, Says, gate};
use steward_tests::vault::Signal;
use steward_tests::wait;
use steward_tests::world::World;

/// Adds tasks until the clerk of the other process is asked about one; returns their number. Only such a call outlives
/// the process that holds the vault.
async fn call_elsewhere(world: &World, at_holder: &Clerk, elsewhere: &Clerk) -> usize {
    let mut count = 0;
    wait::until("a call of the other process", async || {
        world.vault.task(&format!("t{count}"), "house");
        world.vault.signal(&format!("s{count}"), &Signal::done(&format!("t{count}")));
        count += 1;
        // A tick that came before the index knows both would ask nobody, and the signal's own waits for the open one.
        let known = async || {
            let counts = world.json(&["status"]).await["counts"].clone();
            (counts["signals"] == json!(count) && counts["tasks"]["open"] == json!(count)).then_some(())
        };
        wait::until("the task and its signal to be noticed", known).await;
        let tick = world.begin("house").await;
        let asked = async || (at_holder.asked().len() + elsewhere.asked().len() >= count).then_some(());
        wait::until("its call", asked).await;
        drop(tick);
        (!elsewhere.asked().is_empty()).then_some(())
    })
    .await;
    count
}

/// A live process observes tasks, and a clerk of another process judges them. The test kills the first process
/// meanwhile, and a process of another mode applies the plans.
async fn landed_in(mode: &str, sure: f64) -> (World, Vec<AuditRecord>) {
    let (open, opened) = gate();
    let says = move |_: &_| Says::Once(opened.clone(), Box::new(Says::Verdict("likely_done", sure)));
    let (at_holder, elsewhere) = (Clerk::start(says.clone()).await, Clerk::start(says).await);
    let world = World::new().await.live().asking(&at_holder).set("STEWARD_LIVE_PER_SOURCE_DAY", 100);
    world.vault.matter("house");
    world.vault.instinct("mail", 60);
    let mut steward = world.steward.without("STEWARD_VAULT");
    steward.set("STEWARD_CLERK_BASE_URL", &elsewhere.url);
    let mut thinks = steward.start(&["worker"]);
    thinks.says("serving clerk calls").await;
    let mut holder = world.worker().await;
    let count = call_elsewhere(&world, &at_holder, &elsewhere).await;
    let before: Vec<_> = (0..count).map(|n| world.vault.state(&format!("t{n}"))).collect();
    holder.kill();
    let world = world.set("STEWARD_LIVE_MODE", mode);
    let _other = world.worker().await;
    open.send_replace(true);
    let records = wait::until("a record", async || Some(world.vault.records()).filter(|all| !all.is_empty())).await;
    let after: Vec<_> = (0..count).map(|n| world.vault.state(&format!("t{n}"))).collect();
    assert_eq!(after, before, "{mode}: {records:#?}");
    assert_eq!(world.live_actions().len(), 0);
    world.verify_chain().await;
    (world, records)
}

#[tokio::test]
async fn what_a_live_holder_observed_lands_in_shadow_where_the_next_one_is_in_shadow() {
    let (_world, records) = landed_in("shadow", 0.97).await;
    assert!(
        records.iter().all(|r| (r.draft.disposition, r.draft.mode) == (Disposition::Shadow, Mode::Shadow)),
        "{records:#?}"
    );
}

#[tokio::test]
async fn what_a_live_holder_observed_waits_for_a_human_where_the_next_one_must_be_surer() {
    let (_world, records) = landed_in("live_high_confidence_only", 0.78).await;
    let bound = |r: &AuditRecord| {
        (r.draft.disposition, r.draft.mode, r.draft.pending_confirmation)
            == (Disposition::Pending, Mode::LiveHighConfidenceOnly, true)
    };
    assert!(records.iter().all(bound), "{records:#?}");
}

#[tokio::test]
async fn a_stop_between_decision_and_landing_files_nothing_and_the_change_comes_after_it() {
    let (open, opened) = gate();
    let clerk = Clerk::start(move |_| Says::Once(opened.clone(), Box::new(Says::Verdict("likely_done", 0.97)))).await;
    let world = World::with_one_done().await.live().asking(&clerk);
    let before = world.vault.files();
    let _worker = world.worker().await;
    let tick = world.begin("house").await;
    wait::until("the call", async || (clerk.asked().len() == 1).then_some(())).await;
    world.run(&["stop"]).await.expect(0);
    open.send_replace(true);
    let report = tick.report().await;
    assert!(report.stopped && report.evaluated[0].ended == TaskCheckOutcome::Stopped, "{report:?}");
    assert_eq!((world.vault.records().len(), world.vault.files().since(&before)), (0, Vec::<String>::new()));
    world.run(&["resume"]).await.expect(0);
    let done = async || {
        world.tick("house").await;
        (world.vault.state("rent") == "done").then_some(())
    };
    wait::until("the change", done).await;
    assert_eq!((clerk.asked().len(), world.vault.records().len(), world.live_actions().len()), (1, 1, 1));
    world.verify_chain().await;
}

#[tokio::test]
async fn what_was_decided_in_shadow_lands_in_shadow_where_the_next_process_is_live() {
    let (open, opened) = gate();
    let says = move |_: &_| Says::Once(opened.clone(), Box::new(Says::Verdict("likely_done", 0.97)));
    let (at_holder, elsewhere) = (Clerk::start(says.clone()).await, Clerk::start(says).await);
    let world = World::new().await.with_rare_ticks().asking(&at_holder);
    world.vault.matter("house");
    let mut steward = world.steward.without("STEWARD_VAULT");
    steward.set("STEWARD_CLERK_BASE_URL", &elsewhere.url);
    let mut thinks = steward.start(&["worker"]);
    thinks.says("serving clerk calls").await;
    let mut holder = world.worker().await;
    call_elsewhere(&world, &at_holder, &elsewhere).await;
    let task = elsewhere.asked()[0].task().to_owned();
    holder.kill();
    let world = world.live();
    let _live = world.worker().await;
    open.send_replace(true);
    // The task is leased to the run of the first process. Only after it may a run of the live process judge it again.
    let first = wait::until("a record of the first process's run", async || {
        world.vault.records().into_iter().find(|record| record.draft.target.as_str() == task)
    })
    .await;
    assert_eq!((first.draft.disposition, first.draft.mode), (Disposition::Shadow, Mode::Shadow), "{first:#?}");
    world.verify_chain().await;
}

fn link(world: &World, name: &str, task: &str) {
    let text = format!(
        "---\ntype: signal\ncreated: 2026-11-20\nsource_type: mail\nraw_quote: Eve joins\ntarget_kind: task\n\
         target_path: task/{task}.md\ntarget_confidence: 0.99\neffect: mutation\nmutation_proposal:\n  class: related\n  \
         add: {{related_to: Eve}}\neffect_confidence: 0.99\nstatus: unrouted\n---\n"
    );
    world.vault.write(&format!("signal/{name}.md"), text);
}

/// Tasks with members and values that no undo could restore, and the error texts.
const HOSTILE: [(&str, &str, &str); 4] = [
    ("bar", "class: related\n  add: {related_to: \"|\"}", "related_to"),
    ("alias", "class: related\n  add: {related_to: \"[[|Eve]]\"}", "related_to"),
    ("blank", "class: related\n  add: {related_to: \"[[ ]]\"}", "related_to"),
    ("line", "class: related\n  add: {related_to: \"\u{2028}Eve\"}", "U+2028"),
];

#[tokio::test]
async fn what_no_undo_could_take_back_is_never_done_and_the_reason_names_it() {
    let world = World::new().await.live();
    world.vault.matter("house");
    for (name, proposal, _) in HOSTILE {
        world.vault.task(name, "house");
        let text = format!(
            "---\ntype: signal\ncreated: 2026-11-20\nsource_type: mail\nraw_quote: Eve joins\ntarget_kind: task\n\
             target_path: task/{name}.md\ntarget_confidence: 0.99\neffect: mutation\nmutation_proposal:\n  {proposal}\n\
             effect_confidence: 0.99\nstatus: unrouted\n---\n"
        );
        world.vault.write(&format!("signal/{name}.md"), text);
    }
    world.vault.task("plain", "house");
    link(&world, "plain", "plain");
    let before = world.vault.files();
    let _worker = world.worker().await;
    world.begin_as("route", "RouterWorkflow", &Value::Null).await.result().await;
    let records = world.vault.records();
    let live = wait::until("the plain change", async || {
        records.iter().find(|r| r.draft.target.slug() == "plain" && r.draft.disposition == Disposition::Live)
    });
    let id = live.await.draft.id.clone();
    assert_eq!(records.len(), 1, "nothing else is proposed: {records:#?}");
    for (name, _, named) in HOSTILE {
        let explained = world.run(&["signals", "explain", &format!("signal/{name}.md")]).await.expect(0);
        assert!(explained.out.contains("no_proposal") && explained.out.contains(named), "{name}: {explained}");
    }
    world.run(&["undo", id.as_str()]).await.expect(0);
    assert_eq!(world.vault.files().since_but_events(&before), ["touched task/plain.md"], "undone to the byte");
}

#[tokio::test]
async fn a_task_whose_matter_is_ambiguous_or_unreadable_is_changed_by_no_signal() {
    let world = World::new().await.live();
    for matter in ["house", "farm", "FARM"] {
        world.vault.matter(matter);
    }
    world.vault.task("rent", "house");
    world.vault.task("mow", "FaRm");
    world.vault.task("dig", "broken");
    world.vault.write("matter/broken.md", "---\ntype: matter\nname: [\n---\n");
    for task in ["rent", "mow", "dig"] {
        link(&world, task, task);
    }
    let _worker = world.worker().await;
    world.begin_as("route", "RouterWorkflow", &Value::Null).await.result().await;
    let of = |task: &str| world.vault.records().into_iter().find(|r| r.draft.target.slug() == task);
    let live = wait::until("the change of the task that has a matter", async || of("rent")).await;
    assert_eq!(live.draft.disposition, Disposition::Live);
    for (task, words) in [("mow", "several notes"), ("dig", "cannot be read")] {
        let held = wait::until("the proposal", async || of(task)).await;
        assert_eq!((held.draft.disposition, held.draft.confirmable), (Disposition::Pending, false), "{held:#?}");
        world.run(&["confirm", held.draft.id.as_str()]).await.expect(3);
        world.vault.signal(&format!("{task}-done"), &Signal::done(task));
        let explained = async || {
            let said = world.run(&["signals", "explain", &format!("signal/{task}-done.md")]).await;
            said.out.contains(words).then_some(said)
        };
        let said = wait::until(words, explained).await;
        assert!(!said.out.contains("steward tick"), "there is no steward to ask: {said}");
        assert_eq!(world.vault.state(task), "open");
    }
}

fn remove_matter(world: &World, slug: &str) {
    std::fs::remove_file(world.vault.path().join(format!("matter/{slug}.md"))).unwrap();
}

#[tokio::test]
async fn a_task_whose_matter_is_gone_is_changed_by_no_signal_and_every_command_says_why() {
    let world = World::new().await.live();
    for matter in ["house", "garden"] {
        world.vault.matter(matter);
    }
    world.vault.task("rent", "house");
    world.vault.task("mow", "garden");
    let rent = world.vault.read("task/rent.md");
    remove_matter(&world, "house");
    world.vault.signal("says-done", &Signal::done("rent"));
    link(&world, "orphan", "rent");
    link(&world, "kept", "mow");
    let _worker = world.worker().await;
    world.begin_as("route", "RouterWorkflow", &Value::Null).await.result().await;
    let of = |task: &str| world.vault.records().into_iter().find(|r| r.draft.target.slug() == task);
    let kept = wait::until("the change of the task that has a matter", async || of("mow")).await;
    let held = wait::until("the question about the other", async || of("rent")).await;
    assert_eq!(
        (kept.draft.disposition, held.draft.disposition),
        (Disposition::Live, Disposition::Pending),
        "{held:#?}"
    );
    assert_eq!((held.draft.confirmable, world.vault.read("task/rent.md")), (false, rent));
    let refused = world.run(&["confirm", held.draft.id.as_str(), "--json"]).await.expect(3).json();
    assert!(refused["message"].to_string().contains("missing matter"), "{refused}");

    let explained = world.run(&["signals", "explain", "signal/says-done.md"]).await.expect(0);
    assert!(explained.out.contains("matter/house.md") && explained.out.contains("is missing"), "{explained}");
    assert!(!explained.out.contains("steward tick"), "there is no steward to ask: {explained}");
    let checked = world.run(&["policy", "check"]).await.expect(4);
    assert!(checked.out.contains("matter/house.md"), "{checked}");
}

#[tokio::test]
async fn a_matter_that_is_renamed_while_a_clerk_thinks_leaves_the_task_to_a_human() {
    let (open, opened) = gate();
    let clerk = Clerk::start(move |_| Says::Once(opened.clone(), Box::new(Says::Verdict("likely_done", 0.97)))).await;
    let world = World::with_one_done().await.live().asking(&clerk);
    let rent = world.vault.read("task/rent.md");
    let _worker = world.worker().await;
    let tick = world.begin("house").await;
    wait::until("the call", async || (clerk.asked().len() == 1).then_some(())).await;
    world.vault.matter("home");
    remove_matter(&world, "house");
    open.send_replace(true);
    let report = tick.report().await;
    assert!(
        matches!(report.evaluated[0].ended, TaskCheckOutcome::Decided { disposition: Disposition::Pending, .. }),
        "{report:?}"
    );
    let record = world.vault.records().remove(0);
    assert_eq!((record.draft.confirmable, world.vault.read("task/rent.md")), (false, rent));
    let refused = world.run(&["confirm", record.draft.id.as_str(), "--json"]).await.expect(3).json();
    assert_eq!(refused["status"], json!(400), "{refused}");
}

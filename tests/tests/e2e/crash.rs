//! Crashes: at every step of a change and of its undo, and at any moment of a burst.
//!
//! Afterwards a new worker takes over. Then no change is without its audit record, no record is without its change,
//! nothing happened twice, the chain is intact, and the undo is exact.

use futures::StreamExt;
use rustix::process::Signal as Sent;
use serde_json::json;
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;
use steward_domain::action::audit::ActionKind;
use steward_domain::action::plan::Disposition;
use steward_domain::steward::tick::TaskCheckOutcome;
use steward_tests::steward::Running;
use steward_tests::vault::Signal;
use steward_tests::world::{Started, World};
use steward_tests::{run, wait};
use steward_vault::action::writer::SETTLE_AFTER;
use steward_vault::files::crash::{AFTERWARDS, POINTS};

/// Worlds at once: enough to fill two cores while each waits for time-outs.
const AT_ONCE: usize = 6;
/// Points that come a while after a change, when no editor can still have the old content open.
const MET_LATE: [&str; 3] = ["before-settling", "after-discarding", "after-settling"];
/// A point that is only met when a person saves a file during a swap; the tests of the write path cover it.
const NEEDS_A_HUMAN: [&str; 2] = ["after-giving-back", "before-keeping-conflict"];

/// Makes a run meet the crash point. Returns whether it did.
pub(crate) async fn meets_its_end(point: &str, worker: &mut Running, run: &Started) -> bool {
    let died = tokio::select! {
        () = worker.dies() => true,
        _ = run.result() => false,
    };
    if died {
        return true;
    }
    if MET_LATE.contains(&point) {
        let what = format!("a change to be settled, and the process to die at {point}");
        wait::within(SETTLE_AFTER + wait::PATIENCE, &what, async || worker.status().map(drop)).await;
    } else {
        worker.send(Sent::TERM);
    }
    let status = worker.ends().await;
    assert!(status.signal().is_some() || status.success(), "{status}");
    status.signal() == Some(Sent::KILL.as_raw())
}

/// A worker that crashes at this point once it serves. If it crashes during its start, which is a crash during the
/// recovery, the next worker crashes when it meets the point again.
pub(crate) async fn cut_worker(world: &World, point: &str) -> Running {
    world.index_quietly(&world.steward).await;
    for times in 1..5 {
        let mut worker = world.steward.with("STEWARD_CRASH_AT", format!("{point}:{times}")).start(&["worker"]);
        let serves = wait::until("a worker to serve or die", async || match worker.status() {
            Some(status) => {
                assert_eq!(status.signal(), Some(Sent::KILL.as_raw()), "{point}: {status}");
                Some(false)
            }
            None => worker.out().contains("serving the vault").then_some(true),
        });
        if serves.await {
            world.hold_calibration().await;
            return worker;
        }
    }
    panic!("{point}: no worker ever serves")
}

/// A live change and its undo, each interrupted at this point. Returns the points that were met.
async fn cut_short_at(point: &'static str, lose_databases: bool) -> Vec<(&'static str, &'static str)> {
    let world = World::with_one_done().await.live();
    let original = world.vault.read("task/rent.md");
    let before = world.vault.files();
    let mut met = Vec::new();

    let mut worker = cut_worker(&world, point).await;
    let tick = world.begin("house").await;
    if meets_its_end(point, &mut worker, &tick).await {
        met.push((point, "apply"));
    }
    if lose_databases {
        world.vault.lose_databases();
    }
    let worker = world.worker().await;
    let report = tick.report().await;
    assert!(
        matches!(&report.evaluated[0].ended, TaskCheckOutcome::Decided { disposition: Disposition::Live, .. }),
        "{point}: {report:?}"
    );
    let action = world.live_action();
    assert_eq!((world.vault.state("rent").as_str(), world.vault.records().len()), ("done", 1), "{point}");
    assert_eq!(world.vault.files().since_but_events(&before), ["~ task/rent.md"], "{point}");
    worker.stop().await;
    world.verify_chain().await;

    let mut worker = cut_worker(&world, point).await;
    let undo = world.answer("undo", &action).await;
    if meets_its_end(point, &mut worker, &undo).await {
        met.push((point, "undo"));
    }
    if lose_databases {
        world.vault.lose_databases();
    }
    let _worker = world.worker().await;
    assert_eq!(undo.result().await["kind"], json!("done"), "{point}");
    assert_eq!(world.vault.read("task/rent.md"), original, "{point}");
    let kinds: Vec<ActionKind> = world.vault.records().iter().map(|r| r.draft.kind).collect();
    assert_eq!(kinds, [ActionKind::Action, ActionKind::Reversed], "{point}");
    world.verify_chain().await;
    assert_eq!(world.answer("undo", &action).await.result().await["status"], json!(409), "{point}");
    met
}

/// Interrupts at all of these points; a change and its undo must each have met every one.
async fn cut_short_at_all(points: &[&'static str], lose_databases: bool) {
    let all = futures::stream::iter(points.to_vec()).map(|point| cut_short_at(point, lose_databases));
    let met: BTreeSet<_> = all.buffer_unordered(AT_ONCE).concat().await.into_iter().collect();
    let expected = points.iter().filter(|point| !NEEDS_A_HUMAN.contains(point));
    let expected: BTreeSet<_> = expected.flat_map(|point| [(*point, "apply"), (*point, "undo")]).collect();
    assert_eq!(met, expected, "a crash point was not met, so nothing was tried there");
}

pub(crate) fn points(met_late: bool) -> Vec<&'static str> {
    POINTS.into_iter().chain(AFTERWARDS).filter(|point| MET_LATE.contains(point) == met_late).collect()
}

#[tokio::test]
async fn a_crash_at_any_step_of_a_change_or_an_undo_loses_and_doubles_nothing() {
    let late = points(true);
    assert_eq!(late, MET_LATE);
    // The late points wait for their minute at the same time as the others.
    let late = if run::is_thorough() { late } else { Vec::new() };
    let early = run::choose_cases(points(false));
    futures::join!(cut_short_at_all(&late, false), cut_short_at_all(&early, false));
}

#[tokio::test]
async fn a_crash_at_any_step_followed_by_the_loss_of_the_databases_loses_and_doubles_nothing() {
    cut_short_at_all(&run::choose_cases(points(false)), true).await;
}

#[tokio::test]
async fn a_crash_while_a_shadow_is_filed_files_it_once() {
    let points = ["after-staging-record", "after-journal", "before-filing", "after-filing", "after-chain-head"];
    for point in run::choose_cases(points.to_vec()) {
        let world = World::with_one_done().await;
        let before = world.vault.files();
        let mut worker = world.worker_with(&world.steward.with("STEWARD_CRASH_AT", point)).await;
        let tick = world.begin("house").await;
        worker.dies().await;
        let _worker = world.worker().await;
        let report = tick.report().await;
        assert!(
            matches!(&report.evaluated[0].ended, TaskCheckOutcome::Decided { disposition: Disposition::Shadow, .. }),
            "{point}: {report:?}"
        );
        assert_eq!(world.vault.records().len(), 1, "{point}");
        assert_eq!(world.vault.files().since_but_events(&before), Vec::<String>::new(), "{point}");
        world.verify_chain().await;
    }
}

/// Moments between two kills, in milliseconds: from before the first task to after the last.
const MOMENTS: [u64; 8] = [35, 410, 120, 640, 75, 260, 520, 180];

#[tokio::test]
async fn workers_that_are_killed_at_any_moment_of_a_burst_lose_no_task_and_do_nothing_twice() {
    const MATTERS: usize = 5;
    const TASKS: usize = 5;
    let world = World::new().await.live().set("STEWARD_CAPS_PER_MINUTE", 600).set("STEWARD_LIVE_PER_SOURCE_DAY", 100);
    for m in 0..MATTERS {
        world.vault.matter(&format!("m{m}"));
        for t in 0..TASKS {
            world.vault.task(&format!("m{m}-t{t}"), &format!("m{m}"));
            world.vault.signal(&format!("s{m}-{t}"), &Signal::done(&format!("m{m}-t{t}")));
        }
    }
    let before = world.vault.files();
    let mut worker = world.worker().await;
    let mut ticks = Vec::new();
    for m in 0..MATTERS {
        ticks.push(world.begin(&format!("m{m}")).await);
    }
    for moment in MOMENTS {
        wait::a_moment(Duration::from_millis(moment)).await;
        worker.kill();
        worker = world.worker().await;
    }
    for tick in &ticks {
        tick.report().await;
    }
    // A clerk call of a crashed worker has failed, and its task is still due.
    let done = async || {
        for m in 0..MATTERS {
            world.tick(&format!("m{m}")).await;
        }
        (world.live_actions().len() >= MATTERS * TASKS).then_some(())
    };
    wait::until("every task to be done", done).await;
    let mut targets: Vec<String> = Vec::new();
    for record in world.vault.records() {
        assert_eq!(record.draft.disposition, Disposition::Live, "{record:#?}");
        assert_eq!(world.vault.state(record.draft.target.slug()), "done");
        targets.push(record.draft.target.to_string());
    }
    targets.sort();
    let changed: Vec<String> = targets.iter().map(|target| format!("~ {target}")).collect();
    assert_eq!(world.vault.files().since_but_events(&before), changed, "a record for every change, and none twice");
    assert_eq!(changed.len(), MATTERS * TASKS);
    world.verify_chain().await;
}

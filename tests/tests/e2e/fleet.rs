//! Several processes, several ticks at once, and workers that are rebuilt.

use futures::future::join_all;
use rustix::process::Signal as Sent;
use std::collections::BTreeSet;
use std::time::Duration;
use steward_domain::steward::tick::TaskCheckOutcome;
use steward_tests::clerk::{Clerk, Says, gate};
use steward_tests::history::{local_activities, timeouts};
use steward_tests::steward::Running;
use steward_tests::vault::Signal;
use steward_tests::wait;
use steward_tests::world::{TASK_TIMEOUT, World};
use temporalio_common::protos::temporal::api::enums::v1::TimeoutType;

#[tokio::test]
async fn a_second_worker_takes_over_when_the_first_is_killed() {
    let world = World::with_one_done().await.live();
    world.vault.task("later", "house");
    let mut first = world.worker().await;
    let mut second = world.steward.start(&["worker"]);
    second.says("serving clerk calls").await;
    assert!(matches!(world.tick("house").await.evaluated[0].ended, TaskCheckOutcome::Decided { .. }));
    assert!(!second.out().contains("serving the vault"), "two processes would write one vault");

    first.kill();
    world.vault.signal("s2", &Signal::done("later"));
    let tick = world.begin("house").await;
    second.says("serving the vault").await;
    tick.report().await;
    wait::until("the second task to be done", async || (world.live_actions().len() == 2).then_some(())).await;
    assert_eq!(world.vault.state("later"), "done");
    world.verify_chain().await;
}

#[tokio::test]
async fn every_process_of_the_queue_answers_clerk_calls_with_or_without_a_vault() {
    let say = || Clerk::start(|_| Says::Verdict("still_active", 0.9));
    let (at_holder, at_waiting, at_distant) = (say().await, say().await, say().await);
    let world = World::new().await;
    world.vault.matter("house");
    let holder = world.worker_with(&asking(&world, &at_holder)).await;
    let mut waiting = asking(&world, &at_waiting).start(&["worker"]);
    waiting.says("serving clerk calls").await;
    let mut distant = asking(&world, &at_distant).without("STEWARD_VAULT").start(&["worker"]);
    distant.says("serving clerk calls").await;
    let mut count = 0;
    wait::until("all three to be asked", async || {
        for n in count..count + 4 {
            world.vault.task(&format!("t{n}"), "house");
            world.vault.signal(&format!("s{n}"), &Signal::done(&format!("t{n}")));
        }
        count += 4;
        wait::until("their records", async || (world.vault.records().len() == count).then_some(())).await;
        [&at_holder, &at_waiting, &at_distant].iter().all(|clerk| !clerk.asked().is_empty()).then_some(())
    })
    .await;
    let asked: usize = [&at_holder, &at_waiting, &at_distant].iter().map(|clerk| clerk.asked().len()).sum();
    assert_eq!(asked, count, "one request a task, whoever sent it");
    drop(holder);
}

#[tokio::test]
async fn a_call_whose_worker_died_is_given_up_within_seconds_and_a_slow_one_is_waited_for() {
    let (open, opened) = gate();
    let clerk = Clerk::start(move |_| Says::Once(opened.clone(), Box::new(Says::Verdict("likely_done", 0.97)))).await;
    let world = World::with_one_done().await.live().asking(&clerk);
    let mut dies = world.worker().await;
    let tick = world.begin("house").await;
    wait::until("the first call", async || (clerk.asked().len() == 1).then_some(())).await;
    dies.kill();
    let _lives = world.worker().await;
    let given_up = tick.report().await;
    assert!(matches!(given_up.evaluated[0].ended, TaskCheckOutcome::ClerkFailed { .. }), "{given_up:?}");
    let ended_by = timeouts(&tick.history().await);
    assert_eq!(ended_by, [TimeoutType::Heartbeat], "its silence ended it, and not the time that a call may take");

    let tick = world.begin("house").await;
    wait::until("the second call", async || (clerk.asked().len() == 2).then_some(())).await;
    // Longer than the heartbeat time-out of a clerk call.
    wait::a_moment(Duration::from_secs(13)).await;
    open.send_replace(true);
    let waited_for = tick.report().await;
    assert!(matches!(waited_for.evaluated[0].ended, TaskCheckOutcome::Decided { .. }), "{waited_for:?}");
    assert_eq!((clerk.asked().len(), world.live_actions().len()), (2, 1));
}

fn asking(world: &World, clerk: &Clerk) -> steward_tests::steward::Steward {
    let mut steward = world.steward.with("STEWARD_CLERK", "openai");
    steward.set("STEWARD_CLERK_BASE_URL", &clerk.url).set("STEWARD_CLERK_MODEL", "scripted");
    steward
}

#[tokio::test]
async fn a_worker_without_a_vault_and_without_a_server_says_what_is_missing() {
    let world = World::new().await;
    let steward = world.steward.without("STEWARD_VAULT").without("TEMPORAL_ADDRESS");
    let said = steward.run(&["worker"]).await.expect(1);
    assert!(said.err.contains("TEMPORAL_ADDRESS"), "{said}");
}

#[tokio::test]
async fn two_ticks_at_the_same_moment_judge_each_task_once() {
    let (open, opened) = gate();
    let clerk = Clerk::start(move |_| Says::Once(opened.clone(), Box::new(Says::Verdict("likely_done", 0.97)))).await;
    let world = World::new().await.live().asking(&clerk).set("STEWARD_LIVE_PER_SOURCE_DAY", 100);
    world.vault.matter("house");
    for n in 0..3 {
        world.vault.task(&format!("t{n}"), "house");
        world.vault.signal(&format!("s{n}"), &Signal::done(&format!("t{n}")));
    }
    let _worker = world.worker().await;
    let first = world.begin("house").await;
    wait::until("the first tick's calls", async || (clerk.asked().len() == 3).then_some(())).await;
    let others = join_all((0..3).map(|_| world.begin("house"))).await;
    for other in &others {
        let report = other.report().await;
        assert!(report.evaluated.is_empty(), "judged by two: {report:?}");
    }
    open.send_replace(true);
    assert_eq!(first.report().await.evaluated.len(), 3);
    assert_eq!((clerk.asked().len(), world.vault.records().len(), world.live_actions().len()), (3, 3, 3));

    // Started at the same time, before any of them has checked the matter.
    for n in 0..3 {
        world.vault.task(&format!("u{n}"), "house");
        world.vault.signal(&format!("v{n}"), &Signal::done(&format!("u{n}")));
    }
    let together = join_all((0..4).map(|_| world.begin("house"))).await;
    for tick in &together {
        tick.report().await;
    }
    wait::until("six records", async || (world.vault.records().len() >= 6).then_some(())).await;
    wait::stays(Duration::from_secs(1), "six records", async || world.vault.records().len() == 6).await;
    assert_eq!((clerk.asked().len(), world.live_actions().len()), (6, 6));
    world.verify_chain().await;
}

#[tokio::test]
async fn a_worker_that_was_suspended_goes_on_where_it_was() {
    const MATTERS: usize = 8;
    let world = World::new().await.live().set("STEWARD_LIVE_PER_SOURCE_DAY", 100);
    for m in 0..MATTERS {
        world.vault.matter(&format!("m{m}"));
        world.vault.task(&format!("t{m}"), &format!("m{m}"));
        world.vault.signal(&format!("s{m}"), &Signal::done(&format!("t{m}")));
    }
    let mut worker = world.worker().await;
    for moment in [20, 150, 400] {
        let ticks = join_all((0..MATTERS).map(async |m| world.begin(&format!("m{m}")).await)).await;
        wait::a_moment(Duration::from_millis(moment)).await;
        // Like a laptop that is closed: the server times its workflow tasks out meanwhile.
        worker.send(Sent::STOP);
        wait::a_moment(2 * TASK_TIMEOUT).await;
        worker.send(Sent::CONT);
        for tick in &ticks {
            tick.report().await;
        }
        assert!(worker.status().is_none(), "{}", worker.err());
    }
    assert_eq!((world.live_actions().len(), world.vault.records().len()), (MATTERS, MATTERS));
    world.verify_chain().await;
}

/// The memory of a process, in kilobytes.
fn resident_kb(process: &Running) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn workers_that_are_rebuilt_every_few_activities_lose_and_repeat_no_tick() {
    const MATTERS: usize = 30;
    const ROUNDS: usize = 10;
    let world = World::new().await.set("STEWARD_RECYCLE_AFTER_ACTIVITIES", 50);
    for m in 0..MATTERS {
        world.vault.matter(&format!("m{m}"));
        world.vault.task(&format!("t{m}"), &format!("m{m}"));
    }
    let worker = world.worker().await;
    let first = resident_kb(&worker);
    let mut ids = BTreeSet::new();
    for _ in 0..ROUNDS {
        let ticks = join_all((0..MATTERS).map(async |m| world.begin(&format!("m{m}")).await)).await;
        for tick in &ticks {
            let report = tick.report().await;
            assert!(report.errors.is_empty(), "{report:?}");
            assert_eq!(local_activities(&tick.history().await), ["steward.observe"], "{}", tick.id());
            assert!(ids.insert(tick.id().to_owned()));
        }
    }
    assert_eq!(ids.len(), MATTERS * ROUNDS);
    let rebuilt = worker.err().matches("rebuilding the worker").count();
    assert!(rebuilt >= MATTERS * ROUNDS / 50 - 1, "rebuilt {rebuilt} times");
    let looks = world.json(&["status"]).await["looks_today"].to_string();
    eprintln!(
        "{} ticks, rebuilt {rebuilt} times, resident {first} kB at first, {} kB now; {looks}",
        ids.len(),
        resident_kb(&worker)
    );
}

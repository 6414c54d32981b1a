//! A crash on the way from the drop folder to a change: intake, extraction, decision, status of the signal.
//!
//! Every crash point is tried each time that the way meets it. Afterwards another worker takes over. Then there must be
//! one event, one signal, one change and one record, and the undo must be exact.

use crate::extract::{done, is_about_an_event};
use futures::StreamExt;
use rustix::process::Signal as Sent;
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use steward_tests::clerk::{Clerk, Says};
use steward_tests::steward::Running;
use steward_tests::world::World;
use steward_tests::{run, wait};
use steward_vault::files::crash::{AFTERWARDS, INTAKE, POINTS, READING};

/// Worlds at the same time: most of their time is spent waiting until a crash is noticed.
const AT_ONCE: usize = 8;
/// Points that come a minute later, that have tests of their own, or that need a person.
const NOT_ON_THE_WAY: [&str; 5] =
    ["before-settling", "after-discarding", "after-settling", "after-giving-back", "before-keeping-conflict"];
/// The time until a crash within a run is noticed and another run is under way.
const RECOVERY: Duration = wait::PATIENCE.saturating_mul(2);
/// The time between two runs of the router, whose schedule would let two minutes pass.
const ROUTER_PAUSE: Duration = Duration::from_secs(2);
/// The most times that one point is met on the way.
const MOST: u32 = 6;
/// The quotes of the clerk's answers, in order.
const QUOTES: [&str; 4] = ["the rent was paid today", "rent was paid today", "rent was paid", "was paid today"];
const MAIL: &str = "From: Landlord <landlord@b.example>\r\nTo: ann@a.example\r\nSubject: The rent\r\n\
    Message-ID: <1@b.example>\r\nDate: Fri, 20 Nov 2026 09:00:00 +0000\r\n\r\nHello,\r\nthe rent was paid today.\r\n";

/// The expected end: events, signals, and changes that can be undone.
fn there(world: &World) -> (usize, usize, usize) {
    let files = world.vault.files();
    let count = |folder: &str| files.paths().filter(|path| path.starts_with(folder)).count();
    (count("stream/"), count("signal/"), world.live_actions().len())
}

fn has_arrived(world: &World) -> bool {
    let standing = |path: &str| String::from_utf8_lossy(&world.vault.read(path)).contains("status: applied");
    let files = world.vault.files();
    files.paths().any(|path| path.starts_with("inbox/done/"))
        && files.paths().any(|path| path.starts_with("signal/") && standing(path))
}

/// Waits until everything has arrived, or the worker crashed on the way. Returns whether it crashed. The signal gets
/// its final status only when the router runs; this function does not wait two minutes for that.
async fn dies_on_the_way(world: &World, worker: &mut Running, router: &str) -> bool {
    let mut routed = None;
    wait::within(RECOVERY, &format!("a mail to arrive ({router})"), async || {
        if let Some(status) = worker.status() {
            assert_eq!(status.signal(), Some(Sent::KILL.as_raw()), "{status}");
            return Some(true);
        }
        let due = routed.is_none_or(|(_, at): (u32, Instant)| at.elapsed() > ROUTER_PAUSE);
        if due && !world.live_actions().is_empty() {
            let number = routed.map_or(1, |(number, _)| number + 1);
            world.begin_as(&format!("{router}-{number}"), "RouterWorkflow", &Value::Null).await;
            routed = Some((number, Instant::now()));
        }
        has_arrived(world).then_some(false)
    })
    .await
}

/// One world whose first worker crashes when it meets this point for the n-th time. Returns whether it crashed.
async fn cut_short_at(point: &str, times: u32) -> bool {
    // A second call would give another answer, about another task if this one is done by then.
    let asked_before = AtomicUsize::new(0);
    let clerk = Clerk::start(move |asked| match is_about_an_event(asked) {
        true => Says::Text(done(asked, QUOTES[asked_before.fetch_add(1, Ordering::Relaxed)]).to_string()),
        false => Says::Verdict("likely_done", 0.97),
    })
    .await;
    let world = World::new().await.live().asking(&clerk);
    world.vault.matter("house");
    world.vault.task("rent", "house");
    let other = String::from_utf8(world.vault.read("task/rent.md")).unwrap();
    world.vault.write("task/cellar.md", other.replace("name: rent", "name: rent of the cellar"));
    let original = world.vault.read("task/rent.md");
    world.vault.write("inbox/rent.eml", MAIL);

    world.index_quietly(&world.steward).await;
    let mut worker = world.steward.with("STEWARD_CRASH_AT", format!("{point}:{times}")).start(&["worker"]);
    let mut died = dies_on_the_way(&world, &mut worker, &format!("first-{point}-{times}")).await;
    if !died {
        // The worker may be crashing now, by the step that was just observed.
        worker.send(Sent::TERM);
        let status = worker.ends().await;
        assert!(status.signal().is_some() || status.success(), "{point}:{times}: {status}");
        died = status.signal() == Some(Sent::KILL.as_raw());
    }
    let mut worker = world.worker().await;
    let again = dies_on_the_way(&world, &mut worker, &format!("second-{point}-{times}")).await;
    assert!(!again, "{point}:{times}: only the first one dies");
    assert_eq!(there(&world), (1, 1, 1), "{point}:{times}: {:#?}", world.vault.files().paths().collect::<Vec<_>>());
    assert_eq!(world.vault.state("rent"), "done", "{point}:{times}");
    world.verify_chain().await;
    let undo = world.answer("undo", &world.live_action()).await;
    assert_eq!(undo.result().await["kind"], "done", "{point}:{times}");
    assert_eq!(world.vault.read("task/rent.md"), original, "{point}:{times}");
    died
}

/// The number of times that this point was met on the way, with a crash each time.
async fn cut_short_each_time(point: &'static str) -> (&'static str, u32) {
    for times in 1..=MOST {
        if !cut_short_at(point, times).await {
            return (point, times - 1);
        }
    }
    panic!("{point} is met more than {MOST} times on the way of one mail")
}

#[tokio::test]
async fn a_mail_in_the_drop_folder_becomes_one_change_wherever_the_power_goes_out() {
    let points = INTAKE.into_iter().chain(READING).chain(POINTS).chain(AFTERWARDS);
    let points = run::choose_cases(points.filter(|p| !NOT_ON_THE_WAY.contains(p)).collect());
    let met = futures::stream::iter(points.clone()).map(cut_short_each_time).buffer_unordered(AT_ONCE);
    let met: BTreeMap<_, _> = met.collect().await;
    // The event's mark, the change and the status of the signal are swaps; only the change files a record.
    for point in points {
        let least = if ["before-swap", "after-swap", "after-journal"].contains(&point) { 3 } else { 1 };
        assert!(met[point] >= least, "{point} was met {} times: {met:?}", met[point]);
    }
}

//! Kills the process at every point of a delivery and of its revert; the next process continues.
//!
//! A child process delivers what is owed and kills itself at the point. Another one then does the rest. The server
//! runs in this process and remembers every request.

use super::*;
use futures_util::{StreamExt, stream};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use steward_vault::files::crash::TRACKING;
use steward_vault::tracker::outbox::TrackerSite;

const FOLDER: &str = "STEWARD_TEST_TRACKER_FOLDER";
const URL: &str = "STEWARD_TEST_TRACKER_URL";
const CHILD: &str = "tracker::tests::crash::a_child_delivers_everything_and_dies_where_it_is_told";
const SIGKILL: i32 = 9;
/// Most children at once.
const AT_ONCE: usize = 3;
/// Points that the filing of the outcome meets on the write path.
const FILING: [&str; 6] =
    ["before-staging", "after-staging-record", "after-journal", "before-filing", "after-filing", "after-chain-head"];
/// The outbox is written before the comment, after it, and before the move.
const NOTES: u32 = 3;

#[tokio::test]
async fn a_child_delivers_everything_and_dies_where_it_is_told() {
    let (Ok(folder), Ok(url)) = (std::env::var(FOLDER), std::env::var(URL)) else { return };
    let folder = Path::new(&folder);
    let (host, _) = open(folder, Mode::Live, Some(TrackerSite::default())).await;
    let dispatcher = TrackerDispatcher::new(host, PlaneClient::new(&config(folder, &url)).unwrap());
    for id in dispatcher.list_due_deliveries(50, Utc::now()).await.unwrap() {
        came(&dispatcher.deliver_once(&id, run()).await.unwrap());
    }
}

/// Runs a child to its end, and returns whether it died at the point.
async fn child(desk: &Down, point: Option<&(&'static str, u32)>) -> bool {
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", CHILD]).env(FOLDER, desk.dir.path()).env(URL, &desk.server.url);
    if let Some((point, times)) = point {
        command.env("STEWARD_CRASH_AT", format!("{point}:{times}"));
    }
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().await.unwrap();
    assert!(status.success() || (point.is_some() && status.signal() == Some(SIGKILL)), "{point:?}: {status}");
    !status.success()
}

/// A vault whose lock is free, and the server.
struct Down {
    dir: tempfile::TempDir,
    server: Server,
    action: ActionId,
}

impl Down {
    async fn owing() -> Self {
        let (Desk { bench, server, dispatcher }, action) = Desk::owing().await;
        let VaultFixture { dir, context: host, .. } = bench;
        host.index.close().await;
        drop((dispatcher, host));
        Self { dir, server, action }
    }

    async fn undo(self) -> Self {
        let Self { dir, server, action } = self;
        let opened = open(dir.path(), Mode::Live, Some(TrackerSite::default())).await;
        let bench = VaultFixture::from_parts(dir, opened);
        assert!(matches!(bench.undone(&action, "u").await, ResolveOutput::Done { owes: Some(_), .. }));
        let VaultFixture { dir, context: host, .. } = bench;
        host.index.close().await;
        drop(host);
        Self { dir, server, action }
    }

    fn lose_the_state(&self) {
        for name in ["state.db", "state.db-wal", "state.db-shm"] {
            let _ = std::fs::remove_file(self.dir.path().join(".steward").join(name));
        }
    }

    /// Checks that at most one comment was ever made, the state of the tracker, and that each outcome was recorded
    /// once.
    fn holds(&self, what: &str, state: &str, comments: usize, outcomes: usize) {
        assert_eq!(self.server.state_of(ISSUE), state, "{what}");
        assert_eq!((self.server.comments(ISSUE).len(), self.server.made() <= 1), (comments, true), "{what}");
        let root = steward_vault::files::root::VaultRoot::open(self.dir.path()).unwrap();
        assert_eq!(chain::verify_chain(&root).unwrap().faults, Vec::<String>::new(), "{what}");
        let names = std::fs::read_dir(self.dir.path().join("event")).unwrap().map(|e| e.unwrap().file_name());
        let tracked = names.filter(|name| name.to_string_lossy().starts_with("steward-action-track"));
        assert_eq!(tracked.count(), outcomes, "{what}");
    }
}

/// Interrupts a delivery and then its revert at the point. Returns whether each of them met the point.
async fn cut_short(point: (&'static str, u32), lose_the_state: bool) -> (bool, bool) {
    let what = format!("{point:?}, lost: {lose_the_state}");
    let desk = Down::owing().await;
    let delivery = child(&desk, Some(&point)).await;
    if lose_the_state {
        desk.lose_the_state();
    }
    minutes_later(desk.dir.path());
    child(&desk, None).await;
    desk.holds(&what, "Done", 1, 1);
    let desk = desk.undo().await;
    let back = child(&desk, Some(&point)).await;
    if lose_the_state {
        desk.lose_the_state();
    }
    child(&desk, None).await;
    desk.holds(&what, "In Progress", 0, 2);
    (delivery, back)
}

fn points() -> Vec<(&'static str, u32)> {
    let noted = |point: &str| point.ends_with("-outbox") && point != "after-clearing-outbox";
    let all = TRACKING.into_iter().chain(FILING);
    all.flat_map(|point| (1..=if noted(point) { NOTES } else { 1 }).map(move |times| (point, times))).collect()
}

#[tokio::test]
async fn wherever_the_power_goes_out_there_is_one_comment_and_the_right_state() {
    let both = points().into_iter().flat_map(|point| [(point, false), (point, true)]);
    let tried = stream::iter(both).map(async |(point, lost)| (point, cut_short(point, lost).await));
    for ((point, times), met) in tried.buffer_unordered(AT_ONCE).collect::<Vec<_>>().await {
        let expected = match point {
            "before-outbox" | "after-outbox" | "after-comment" | "after-transition" => (true, false),
            "after-uncomment" | "after-transition-back" => (false, true),
            _ => (true, true),
        };
        assert_eq!(met, expected, "{point}:{times} was not met where it should be");
    }
}

#[tokio::test]
async fn an_undo_after_a_delivery_was_cut_short_takes_back_whatever_was_made() {
    let cut = stream::iter(points()).map(async |point| {
        let desk = Down::owing().await;
        let died = child(&desk, Some(&point)).await;
        let before = desk.server.comments(ISSUE).len();
        let desk = desk.undo().await;
        minutes_later(desk.dir.path());
        child(&desk, None).await;
        let root = steward_vault::files::root::VaultRoot::open(desk.dir.path()).unwrap();
        assert_eq!(chain::verify_chain(&root).unwrap().faults, Vec::<String>::new(), "{point:?}");
        assert_eq!(desk.server.state_of(ISSUE), "In Progress", "{point:?}");
        assert_eq!(desk.server.comments(ISSUE), [], "{point:?}");
        assert!(desk.server.made() as usize == before, "{point:?}: nothing was made after the undo");
        died
    });
    let died: Vec<bool> = cut.buffer_unordered(AT_ONCE).collect().await;
    assert_eq!(died.iter().filter(|died| **died).count(), points().len() - 2, "all but those of the way back");
}

//! A process that is killed while it carries out what a person asked of a wiki: a rollback, a settled dispute, a kept answer
//! and an acceptance.
//!
//! The vault's own tests die at every point and every file and look at the wiki at once. Here another process goes on with
//! the workflow: the command ends well, the change is made once, and the same command then says that it is done. Of each
//! request an eighth of the points is tried, all points with `STEWARD_TEST_THOROUGH`.

use crate::wiki_person::{NEW, OLD, disputed};
use crate::wiki_runs::{Desk, LEASE};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;
use steward_tests::files::Files;
use steward_tests::run;
use steward_tests::steward::{Running, Said};
use steward_tests::wait;
use steward_vault::files::crash::{MANY_FILES, POINTS};

/// Points that only a person's edit at the same moment passes.
const BESIDE_PEOPLE: [&str; 2] = ["after-giving-back", "before-keeping-conflict"];
/// Each of the four kinds of requests tries one point of so many, and other points than the next one.
const SHARE: usize = 8;
/// How many exchanges of a change are tried.
const EXCHANGES: usize = 3;

/// The points that the request with this number tries.
fn choose_points(request: usize) -> Vec<String> {
    let points = POINTS.into_iter().filter(|point| !BESIDE_PEOPLE.contains(point));
    let exchanges = MANY_FILES.into_iter().flat_map(|point| (1..=EXCHANGES).map(move |pass| format!("{point}:{pass}")));
    let all = points.map(|point| format!("{point}:1")).chain(exchanges).enumerate();
    all.filter(|(at, _)| run::is_thorough() || at % SHARE == request).map(|(_, point)| point).collect()
}

/// Runs a command while the worker dies at a point. Another worker goes on then. Returns whether the first one died.
pub(crate) async fn run_over_kill(desk: &Desk, point: &str, command: impl Future<Output = Said>) -> (Said, bool) {
    let mut workers = vec![desk.steward.with("STEWARD_CRASH_AT", point).start(&["worker"])];
    wait::until("the worker", async || {
        (workers[0].out().contains("serving the vault") || workers[0].status().is_some()).then_some(())
    })
    .await;
    tokio::pin!(command);
    let said = loop {
        if workers.len() == 1 && workers[0].status().is_some() {
            workers.push(desk.world.worker().await);
        }
        tokio::select! {
            said = &mut command => break said,
            () = wait::a_moment(Duration::from_millis(50)) => {}
        }
    };
    let mut has_died = false;
    for mut worker in workers {
        worker.send(Signal::TERM);
        has_died |= worker.ends().await.signal() == Some(Signal::KILL.as_raw());
    }
    (said, has_died)
}

type Bytes = BTreeMap<String, Vec<u8>>;

/// The files of the wiki but its log, which keeps every entry, and the overview, which shows the newest ones.
fn read_wiki(desk: &Desk) -> Bytes {
    let files = Files::of(desk.world.vault.path());
    let is_kept = |path: &str| path.contains("/.trash/") || path.ends_with("_log.md") || path.ends_with("overview.md");
    let own = files.paths().filter(|path| path.starts_with("wiki/") && !is_kept(path));
    own.map(|path| (path.to_owned(), desk.world.vault.read(path))).collect()
}

/// The files that differ.
fn list_changes(before: &Bytes, after: &Bytes) -> Vec<String> {
    let all = before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path));
    all.cloned().collect()
}

async fn list_runs(desk: &Desk) -> Vec<Value> {
    desk.wiki(&["runs", "list", "allotment", "--json"]).await.expect(0).json().as_array().unwrap().clone()
}

/// The last run but those that note a check.
async fn find_last_run(desk: &Desk) -> String {
    let runs = list_runs(desk).await;
    runs.iter().rfind(|run| run["run_type"] != "lint").unwrap()["run"].as_str().unwrap().to_owned()
}

/// How many entries the log has.
fn count_entries(desk: &Desk) -> usize {
    desk.read("_log.md").matches("\n## [").count()
}

/// How many runs and entries of the log there are.
#[derive(Debug, PartialEq)]
struct WikiCounts {
    runs: usize,
    entries: usize,
}

/// Checks that one run was made since there were so many, and that everything fits together.
async fn was_done_once(desk: &Desk, before: WikiCounts, what: &str) {
    let expected = WikiCounts { runs: before.runs + 1, entries: before.entries + 1 };
    assert_eq!(count(desk).await, expected, "{what}");
    let worker = desk.world.worker().await;
    desk.is_sound().await;
    worker.stop().await;
}

async fn count(desk: &Desk) -> WikiCounts {
    WikiCounts { runs: list_runs(desk).await.len(), entries: count_entries(desk) }
}

/// Checks that the worker died wherever this request passes a point. A change is settled up to a minute later.
fn were_met(met: &[(String, bool)]) {
    let may_miss = |point: &str| {
        ["between-exchanges", "before-settling", "after-discarding", "after-settling"]
            .iter()
            .any(|it| point.starts_with(it))
    };
    let missed: Vec<&String> = met.iter().filter(|(point, died)| !died && !may_miss(point)).map(|it| &it.0).collect();
    assert!(missed.is_empty() && met.iter().any(|(_, died)| *died), "not met: {missed:?}");
}

#[tokio::test]
async fn a_rollback_that_is_killed_is_done_once() {
    let desk = Desk::new().await;
    let worker: Running = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    desk.ingest(&desk.write("2026-11-20-lease.md", LEASE)).await;
    worker.stop().await;
    let (ingested, mut last, mut met) = (read_wiki(&desk), find_last_run(&desk).await, Vec::new());
    let mut others: Option<Bytes> = None;
    for (number, point) in choose_points(0).into_iter().enumerate() {
        // Each rollback takes the one before back.
        let before = count(&desk).await;
        let arguments = ["runs", "revert", last.as_str()];
        let (said, died) = run_over_kill(&desk, &point, desk.wiki(&arguments)).await;
        said.expect(0);
        was_done_once(&desk, before, &point).await;
        let now = read_wiki(&desk);
        match number % 2 {
            0 => assert_eq!(list_changes(others.get_or_insert_with(|| now.clone()), &now), [""; 0], "{point}"),
            _ => assert_eq!(list_changes(&ingested, &now), [""; 0], "{point}"),
        }
        let _worker = desk.world.worker().await;
        let again = desk.wiki(&arguments).await.expect(3);
        assert!(again.out.contains("took it back already"), "{point}: {again}");
        last = find_last_run(&desk).await;
        met.push((point, died));
    }
    let others = others.unwrap();
    assert!(!others.contains_key("wiki/allotment/concepts/plot-12.md") && others.len() < ingested.len());
    were_met(&met);
}

#[tokio::test]
async fn a_settled_dispute_that_is_killed_is_settled_once() {
    let desk = disputed().await;
    let (claim, mut met) = (format!("end-of-the-lease#{OLD}"), Vec::new());
    let (disputed, mut settled): (_, Option<Bytes>) = (read_wiki(&desk), None);
    for point in choose_points(1) {
        let before = count(&desk).await;
        let arguments = ["settle", "allotment", claim.as_str(), "--keep", NEW];
        let (said, died) = run_over_kill(&desk, &point, desk.wiki(&arguments)).await;
        said.expect(0);
        was_done_once(&desk, before, &point).await;
        let page = desk.read("comparisons/end-of-the-lease.md");
        assert!(!page.contains(":::") && page.contains("it ends on 31 March 2029.[^c4dc23754]"), "{point}: {page}");
        let (now, kept) = (read_wiki(&desk), settled.get_or_insert_with(|| read_wiki(&desk)));
        assert_eq!(now.keys().collect::<Vec<_>>(), kept.keys().collect::<Vec<_>>(), "{point}");
        let worker = desk.world.worker().await;
        let again = desk.wiki(&arguments).await.expect(3);
        assert!(again.out.contains("refused"), "{point}: {again}");
        desk.wiki(&["runs", "revert", &find_last_run(&desk).await]).await.expect(0);
        assert_eq!(list_changes(&disputed, &read_wiki(&desk)), [""; 0], "{point}");
        worker.stop().await;
        met.push((point, died));
    }
    were_met(&met);
}

#[tokio::test]
async fn an_answer_whose_saving_is_killed_is_kept_once() {
    let desk = Desk::new().await;
    let worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    desk.ingest(&desk.write("2026-11-20-lease.md", LEASE)).await;
    let answered = desk.wiki(&["query", "allotment", "When does the lease end?", "--json"]).await.expect(0).json();
    let (answer, asked) = (answered["answer"]["id"].as_str().unwrap().to_owned(), read_wiki(&desk));
    worker.stop().await;
    let mut met = Vec::new();
    for point in choose_points(2) {
        let before = count(&desk).await;
        let arguments = ["save", answer.as_str(), "--json"];
        let (said, died) = run_over_kill(&desk, &point, desk.wiki(&arguments)).await;
        let saved = said.expect(0).json();
        assert_eq!(saved["kind"], "committed", "{point}: {saved:#}");
        was_done_once(&desk, before, &point).await;
        let page = saved["pages"][0].as_str().unwrap();
        assert!(desk.read(page).contains("The lease of Plot 12 ends on 31 March 2027."), "{point}");
        let worker = desk.world.worker().await;
        let again = desk.wiki(&arguments).await.expect(0).json();
        let reason = again["reason"].as_str().unwrap_or_default();
        assert!(again["kind"] == "nothing" && reason.contains("kept already"), "{point}: {again:#}");
        desk.wiki(&["runs", "revert", saved["run"].as_str().unwrap()]).await.expect(0);
        assert_eq!(list_changes(&asked, &read_wiki(&desk)), [""; 0], "{point}");
        worker.stop().await;
        met.push((point, died));
    }
    were_met(&met);
}

#[tokio::test]
async fn an_acceptance_that_is_killed_is_on_record_once() {
    let desk = Desk::new().await;
    let worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    worker.stop().await;
    let mut met = Vec::new();
    let accepted = || {
        let records = desk.world.vault.records().into_iter();
        records.filter(|record| record.draft.reasoning.contains(" accepted ")).count()
    };
    for (number, point) in choose_points(3).into_iter().enumerate() {
        let depth = if number % 2 == 0 { ("medium", "deep") } else { ("deep", "medium") };
        desk.edit("KNOWLEDGE.md", |text| text.replace(&format!("depth: {}", depth.0), &format!("depth: {}", depth.1)));
        let (wiki, before, entries) = (read_wiki(&desk), accepted(), count_entries(&desk));
        let command = desk.steward.run_in_terminal(&["wiki", "validate", "allotment", "--accept"], "y\n");
        let (said, died) = run_over_kill(&desk, &point, command).await;
        said.expect(0);
        assert_eq!((accepted(), count_entries(&desk)), (before + 1, entries + 1), "{point}");
        let changed = |now: &Bytes| now.get("wiki/allotment/KNOWLEDGE.md").cloned();
        assert_eq!(changed(&read_wiki(&desk)), changed(&wiki), "{point}: what a person wrote stays");
        desk.world.verify_chain().await;
        let worker = desk.world.worker().await;
        let lint = desk.wiki(&["lint", "allotment"]).await.expect(0);
        assert!(!lint.out.contains("manifest_unreviewed"), "{point}: {lint}");
        worker.stop().await;
        let again = desk.steward.run_in_terminal(&["wiki", "validate", "allotment", "--accept"], "y\n").await.expect(0);
        assert!(again.out.contains("in force as they are") && accepted() == before + 1, "{point}: {again}");
        met.push((point, died));
    }
    were_met(&met);
}

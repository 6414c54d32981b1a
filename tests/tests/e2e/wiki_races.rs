//! Requests about one wiki that meet, on the real binary: an ingest during a rollback, and during a stop in the middle of a
//! commit.
//!
//! The process is held inside the first change (SIGSTOP), so that the second request is made while files are exchanged. Both
//! end as they would one after the other.

use crate::wiki_runs::{Desk, LEASE};
use rustix::process::Signal;
use serde_json::Value;
use steward_tests::run;
use steward_tests::steward::{Running, Said};
use steward_tests::wait;
use steward_tests::world::is_frozen;

const LETTER: &str = "# Letter of the council\n\nThe council extends the lease of Plot 12 to 31 March 2029. Plot 12 keeps its \
    water. The council thanks the holder of Plot 12.\n";

async fn wait_until_held(worker: &Running) {
    wait::until("the change to be held", async || is_frozen(worker.pid()).then_some(())).await;
}

/// Makes a request while the worker is held, and lets it go on a moment later.
async fn request_while_held(desk: &Desk, worker: &Running, arguments: &[&str]) -> Said {
    wait_until_held(worker).await;
    let go_on = async {
        wait::a_moment(std::time::Duration::from_secs(1)).await;
        worker.send(Signal::CONT);
    };
    tokio::join!(desk.wiki(arguments), go_on).0
}

/// Checks that the letter was ingested, and that the page holds nothing of the lease any more.
fn shows_the_letter_alone(desk: &Desk, ingested: &Said, point: &str) {
    let done = read_outcome(ingested);
    assert_eq!(done["kind"], "committed", "{point}: {done:#}");
    let page = desk.read("concepts/plot-12.md");
    assert!(page.contains("## From Letter of the council\n") && !page.contains("## From The lease"), "{point}: {page}");
}

fn read_outcome(said: &Said) -> Value {
    said.json()[0]["ingested"].clone()
}

/// A desk whose wiki has one document. Returns its run.
async fn ingested() -> (Desk, String) {
    let desk = Desk::new().await;
    let worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    let run = desk.ingest(&desk.write("2026-11-20-lease.md", LEASE)).await;
    worker.stop().await;
    (desk, run)
}

#[tokio::test]
async fn an_ingest_during_a_rollback_ends_as_after_it() {
    for point in
        run::choose_cases(vec!["before-staging:1", "after-journal:1", "between-exchanges:2", "before-filing:1"])
    {
        let (desk, run) = ingested().await;
        let letter = desk.write("2026-11-21-letter.md", LETTER);
        let worker = desk.world.worker_with(&desk.steward.with("STEWARD_CRASH_AT", format!("{point}:stop"))).await;
        let revert = ["runs", "revert", run.as_str()];
        let ingest = ["ingest", "allotment", letter.as_str(), "--json"];
        let (reverted, ingested) = tokio::join!(desk.wiki(&revert), request_while_held(&desk, &worker, &ingest));
        reverted.expect(0);
        shows_the_letter_alone(&desk, &ingested.expect(0), point);
        assert!(!desk.has("concepts/stopcock.md") && !desk.has("summaries/summary-2026-11-20-lease.md"), "{point}");
        let runs = desk.wiki(&["runs", "list", "allotment", "--json"]).await.expect(0).json();
        assert_eq!(runs.as_array().unwrap().len(), 3, "{point}: {runs:#}");
        desk.is_sound().await;
    }
}

#[tokio::test]
async fn a_rollback_during_the_commit_of_a_later_run_takes_back_its_own_run_alone() {
    for point in run::choose_cases(vec!["before-staging:2", "after-journal:2", "between-exchanges:4"]) {
        let (desk, run) = ingested().await;
        let letter = desk.write("2026-11-21-letter.md", LETTER);
        let worker = desk.world.worker_with(&desk.steward.with("STEWARD_CRASH_AT", format!("{point}:stop"))).await;
        let ingest = ["ingest", "allotment", letter.as_str(), "--json"];
        let revert = ["runs", "revert", run.as_str()];
        let (ingested, reverted) = tokio::join!(desk.wiki(&ingest), request_while_held(&desk, &worker, &revert));
        reverted.expect(0);
        shows_the_letter_alone(&desk, &ingested.expect(0), point);
        assert!(!desk.has("concepts/stopcock.md"), "{point}");
        desk.is_sound().await;
    }
}

/// A stop in the middle of a commit: one that has begun to exchange files is finished, and any other is refused.
#[tokio::test]
async fn a_stop_during_a_commit_lets_it_finish_or_refuses_it_whole() {
    for (point, is_finished) in
        [("before-staging:1", false), ("after-staging-content:1", false), ("before-swap:1", true)]
    {
        let (desk, run) = ingested().await;
        {
            let worker = desk.world.worker().await;
            desk.wiki(&["runs", "revert", &run]).await.expect(0);
            worker.stop().await;
        }
        let log = desk.read("_log.md");
        let worker = desk.world.worker_with(&desk.steward.with("STEWARD_CRASH_AT", format!("{point}:stop"))).await;
        let ingest = ["ingest", "allotment", "2026-11-20-lease", "--json"];
        let stop = async {
            wait_until_held(&worker).await;
            desk.steward.run(&["stop", "--reason", "now"]).await.expect(0);
            worker.send(Signal::CONT);
        };
        let (said, ()) = tokio::join!(desk.wiki(&ingest), stop);
        let done = read_outcome(&said);
        let expected = if is_finished { "committed" } else { "refused" };
        assert_eq!(done["kind"], expected, "{point}: {done:#}");
        assert_eq!(desk.has("concepts/plot-12.md"), is_finished, "{point}");
        assert_eq!(desk.read("_log.md") != log, is_finished, "{point}");
        if !is_finished {
            assert!(done["message"].as_str().unwrap().contains("steward resume"), "{point}: {done:#}");
        }
        desk.steward.run(&["resume"]).await.expect(0);
        if !is_finished {
            desk.ingest("2026-11-20-lease").await;
        }
        assert!(desk.has("concepts/plot-12.md"), "{point}");
        desk.is_sound().await;
    }
}

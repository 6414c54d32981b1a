//! What stays of runs that commit nothing, on the real binary: one record in the chain, also after a crash, a stop and the removal
//! of the run's folder, and the log of verdicts. Also a process that is killed right after it staged a run.

use crate::wiki_kills::run_over_kill;
use crate::wiki_runs::{Desk, LEASE};
use crate::wiki_writer::{answer, checked_desk, good_turns, ingest, report};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use steward_domain::action::audit::{ActionKind, AuditRecord};
use steward_domain::wiki::run::RunEnd;
use steward_tests::clerk::Clerk;
use steward_tests::run;
use steward_tests::wait;

/// The records of runs that committed nothing.
fn list_rejected(desk: &Desk) -> Vec<AuditRecord> {
    let records = desk.world.vault.records().into_iter();
    records.filter(|record| record.draft.kind == ActionKind::WikiRejected).collect()
}

async fn list_runs(desk: &Desk) -> Vec<Value> {
    desk.wiki(&["runs", "list", "allotment", "--json"]).await.expect(0).json().as_array().unwrap().clone()
}

/// A wiki with a run that waits; returns the name of the run.
async fn stage_draft(desk: &Desk, name: &str) -> String {
    let document = desk.write(name, LEASE);
    let staged = desk.wiki(&["ingest", "allotment", &document, "--draft", "--json"]).await.expect(0).json();
    assert_eq!(staged[0]["ingested"]["kind"], "pending", "{staged:#}");
    staged[0]["ingested"]["run"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_run_that_a_person_rejects_stays_on_record_without_its_folder() {
    let desk = Desk::new().await;
    let worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    let refused = desk.wiki(&["init", "plot-rejected"]).await;
    assert!(refused.code != Some(0) && refused.err.contains("do not end with"), "{refused}");
    let run = stage_draft(&desk, "2026-11-20-lease.md").await;
    desk.wiki(&["runs", "reject", &run]).await.expect(0);
    desk.wiki(&["runs", "reject", &run]).await.expect(3);
    let [record] = <[AuditRecord; 1]>::try_from(list_rejected(&desk)).unwrap();
    let mark = record.draft.wiki.unwrap();
    let rejection = mark.rejection.unwrap();
    assert_eq!((rejection.end, rejection.by.as_deref()), (RunEnd::Rejected, Some("tester")));
    assert_eq!((mark.run.as_str(), mark.source.unwrap().id.as_str()), (run.as_str(), "2026-11-20-lease"));
    worker.stop().await;
    // After 30 days the folder is removed.
    std::fs::remove_dir_all(desk.world.vault.path().join(".steward/runs").join(&run)).unwrap();
    let _worker = desk.world.worker().await;
    let runs = list_runs(&desk).await;
    assert_eq!(
        (runs.len(), &runs[0]["run"], &runs[0]["state"]),
        (1, &run.as_str().into(), &"rejected".into()),
        "{runs:#?}"
    );
    let shown = desk.wiki(&["runs", "show", mark.run.short()]).await.expect(0).out;
    assert!(shown.contains("tester rejected it") && shown.contains("written by fixed rules"), "{shown}");
    for command in ["approve", "reject", "revert"] {
        let said = desk.wiki(&["runs", command, &run]).await;
        assert_ne!(said.code, Some(0), "{command}: {said}");
    }
    let sources = desk.wiki(&["sources", "allotment", "--json"]).await.expect(0).json();
    assert_eq!(sources[0]["state"], "rejected", "{sources:#}");
    // Another run of the source is another run.
    let other = desk.wiki(&["ingest", "allotment", "2026-11-20-lease", "--json"]).await.expect(0).json();
    assert_eq!(other[0]["ingested"]["kind"], "committed", "{other:#}");
    assert_eq!((list_runs(&desk).await.len(), list_rejected(&desk).len()), (2, 1));
    desk.is_sound().await;
}

#[tokio::test]
async fn a_stop_holds_the_record_of_a_rejected_run_and_it_follows() {
    let desk = Desk::new().await;
    let steward = desk.steward.with("STEWARD_SCAN_SECONDS", 1);
    let _worker = desk.world.worker_with(&steward).await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    let run = stage_draft(&desk, "lease.md").await;
    desk.steward.run(&["stop"]).await.expect(0);
    desk.wiki(&["runs", "reject", &run]).await.expect(0);
    assert_eq!(list_runs(&desk).await[0]["state"], "rejected");
    assert_eq!(list_rejected(&desk).len(), 0);
    desk.steward.run(&["resume"]).await.expect(0);
    wait::until("the record", async || (!list_rejected(&desk).is_empty()).then_some(())).await;
    assert_eq!(list_rejected(&desk).len(), 1);
    desk.is_sound().await;
}

#[tokio::test]
async fn a_rejection_that_is_killed_is_on_record_once() {
    let desk = Desk::new().await;
    let worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    worker.stop().await;
    let points = ["before-staging:1", "after-journal:1", "after-filing:1", "before-filing:1"];
    for (number, point) in run::choose_cases(points.to_vec()).into_iter().enumerate() {
        let worker = desk.world.worker().await;
        let run = stage_draft(&desk, &format!("lease-{number}.md")).await;
        worker.stop().await;
        let arguments = ["runs", "reject", run.as_str()];
        let (said, died) = run_over_kill(&desk, point, desk.wiki(&arguments)).await;
        said.expect(0);
        assert!(died, "{point} was not met");
        let records = list_rejected(&desk);
        let named = records.iter().filter(|it| it.draft.wiki.as_ref().is_some_and(|mark| mark.run.as_str() == run));
        assert_eq!((named.count(), records.len()), (1, number + 1), "{point}");
        let listed = list_runs(&desk).await;
        assert_eq!(listed.iter().filter(|it| it["run"] == run.as_str()).count(), 1, "{point}: {listed:#?}");
    }
    let _worker = desk.world.worker().await;
    desk.is_sound().await;
}

#[tokio::test]
async fn what_a_verifier_refuses_is_on_record_and_in_the_log_of_verdicts_and_may_be_committed() {
    let writer = Clerk::start(|asked| answer(&good_turns(), asked)).await;
    let strict = Clerk::start(|asked| report(asked, "")).await;
    let desk = checked_desk(&writer, &strict).await;
    let _worker = desk.world.worker_with(&desk.steward).await;
    let done = ingest(&desk).await;
    let run = done["run"].as_str().unwrap();
    assert_eq!(done["kind"], "refused", "{done:#}");
    let [record] = <[AuditRecord; 1]>::try_from(list_rejected(&desk)).unwrap();
    let (said, clerk) = (&record.draft.reasoning, record.draft.clerk.unwrap());
    assert!(said.starts_with("rejected: rejected by the verifier") && said.contains("anthropic/checker"), "{said}");
    assert_eq!((clerk.provider.as_str(), clerk.model.as_str()), ("openai", "scripted"));
    let lines = read_verdicts(&desk);
    let verdicts: Vec<&str> = lines.iter().map(|line| line["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["revise", "revise", "reject"], "{lines:#?}");
    assert!(lines.iter().all(|line| line["run"] == run && line["layer"] == "clerk"), "{lines:#?}");
    assert!(lines.iter().all(|line| line["verifier"] == "anthropic/checker"), "{lines:#?}");
    assert!(lines[2]["findings"]["unsupported"].as_u64().unwrap() > 0, "{lines:#?}");
    // A person commits it all the same, under the record of the run.
    let arguments = ["wiki", "runs", "override", run, "--reason", "the letter says so"];
    desk.steward.run_in_terminal(&arguments, "y\n").await.expect(0);
    assert!(desk.has("entities/plot-12.md"));
    let runs = list_runs(&desk).await;
    assert_eq!((runs.len(), &runs[0]["state"]), (1, &"committed".into()), "{runs:#?}");
    assert_eq!(list_rejected(&desk).len(), 1);
    let last = read_verdicts(&desk).pop().unwrap();
    assert_eq!(
        (&last["layer"], &last["verdict"], &last["verifier"]),
        (&"rules".into(), &"commit".into(), &Value::Null)
    );
    desk.steward.run(&["wiki", "runs", "revert", run]).await.expect(0);
    desk.is_sound().await;
}

/// The verdicts of all days. Only their owner may read them, and they hold no words of a page.
fn read_verdicts(desk: &Desk) -> Vec<Value> {
    let folder = desk.world.vault.path().join(".steward/logs");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut logs: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    logs.sort();
    let mut lines = Vec::new();
    for log in logs {
        assert_eq!(std::fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600, "{}", log.display());
        let text = std::fs::read_to_string(&log).unwrap();
        assert!(!text.contains("lease ends") && !text.contains("says otherwise"), "{text}");
        lines.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    }
    lines
}

#[tokio::test]
async fn a_run_that_is_killed_right_after_it_was_staged_is_committed_once() {
    let by_rules = Desk::new().await;
    let worker = by_rules.world.worker().await;
    by_rules.wiki(&["init", "allotment"]).await.expect(0);
    worker.stop().await;
    let writer = Clerk::start(|asked| answer(&good_turns(), asked)).await;
    let verifier = Clerk::start(|asked| report(asked, "nothing of this")).await;
    let by_model = checked_desk(&writer, &verifier).await;
    for desk in [&by_rules, &by_model] {
        let document = desk.write("2026-11-20-lease.md", LEASE);
        let workers = desk.ingest_over_crash(&document, "after-staging-run:1").await;
        assert_eq!(workers.len(), 2, "the point was not met");
        let runs = list_runs(desk).await;
        assert_eq!((runs.len(), &runs[0]["state"]), (1, &"committed".into()), "{runs:#?}");
        assert_eq!((desk.read("_log.md").matches("] ingest | ").count(), list_rejected(desk).len()), (1, 0));
        desk.is_sound().await;
    }
    assert_eq!((writer.asked().len(), verifier.asked().len()), (3, 1), "no answer is paid for twice");
}

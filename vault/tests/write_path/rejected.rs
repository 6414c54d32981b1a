//! Runs that commit nothing: each leaves one record, whatever happens meanwhile, and is never taken for a committed one.
//!
//! A child process rejects a run and kills itself at each point of the write path.

use crate::desk::{self, Desk, lock, names, settle};
use crate::ingest::{FOLDER, LEASE, add, at, read_files, stage, wiki};
use std::path::Path;
use steward_domain::action::audit::{ActionKind, AuditRecord, WorkflowRef};
use steward_domain::action::plan::Disposition;
use steward_domain::wiki::run::{RunEnd, RunId, RunRejection};
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::crash::POINTS;
use steward_vault::gates::stop::{self, VaultStop};
use steward_vault::wiki::ingest::RunApproval;
use steward_vault::wiki::revert::RevertRequest;
use steward_vault::wiki::runs::{find_rejected_runs, find_run_records, list_rejected_runs, list_runs};
use steward_vault::wiki::staged::{RunState, StagedRun, StagedRuns};

const VAULT: &str = "STEWARD_TEST_REJECTED_VAULT";

/// A wiki in which a run is staged.
fn staged() -> (Desk, VaultWriter, StagedRun) {
    let (desk, writer) = wiki();
    let source = add(&writer, 1, "lease.md", LEASE).unwrap().source;
    let run = stage(&writer, 2, &source);
    (desk, writer, run)
}

fn name() -> RunId {
    RunId::derive(at(2), &["ingest", "lease"])
}

/// The records of rejected runs, by the names of their files.
fn records(desk: &Desk) -> Vec<String> {
    names(&desk.file("event")).into_iter().filter(|name| name.ends_with("-rejected.md")).collect()
}

fn read_one(desk: &Desk) -> AuditRecord {
    let found = records(desk);
    assert_eq!(found, [format!("steward-wiki-{}-allotment-rejected.md", name())]);
    AuditRecord::parse(desk.read(&format!("event/{}", found[0])).as_bytes()).unwrap()
}

#[test]
fn a_rejected_run_leaves_one_record_and_changes_nothing() {
    let (desk, writer, run) = staged();
    let before = read_files(&desk);
    let reason = format!("over_quota: [[x]]\nand\u{202e} <b>more</b> {}", "words ".repeat(1_000));
    writer.reject_run(&run, at(3), &reason).unwrap();
    // What ends it again finds it ended.
    writer.reject_run(&run, at(4), "another reason").unwrap();
    assert_eq!(writer.record_ended_runs().unwrap(), []);
    assert_eq!(read_files(&desk), before);
    let record = read_one(&desk);
    let (draft, mark) = (&record.draft, record.draft.wiki.as_ref().unwrap());
    assert_eq!(
        (draft.kind, draft.disposition, draft.timestamp),
        (ActionKind::WikiRejected, Disposition::Recorded, at(3))
    );
    assert_eq!(mark.rejection, Some(RunRejection { end: RunEnd::Rejected, by: None }));
    assert_eq!((&mark.run, mark.source.as_ref().unwrap().id.as_str()), (&name(), "lease"));
    let said = &draft.reasoning;
    assert!(
        said.starts_with("rejected: over_quota: [[x]] and") && said.contains("by ann, written by fixed rules"),
        "{said}"
    );
    assert!(said.chars().count() < 1_200 && !said.contains('\n') && !said.contains('\u{202e}'), "{said}");
    let text = desk.read(&format!("event/{}", records(&desk)[0]));
    assert!(!text.contains("<b>") && !text.contains("[[x]]"), "{text}");
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn a_rejected_run_is_not_taken_for_a_committed_one_and_is_known_without_its_folder() {
    let (desk, writer, run) = staged();
    writer.reject_by_person(&run, at(3), "bob", None).unwrap();
    drop(run);
    let root = desk.root();
    let runs = StagedRuns::new(&root);
    assert_eq!(runs.list().unwrap()[0].status.rejected_by.as_deref(), Some("bob"));
    runs.remove(&name()).unwrap();
    assert_eq!(list_runs(&root, None).unwrap(), []);
    assert_eq!(list_runs(&root, Some("allotment")).unwrap(), []);
    assert_eq!(find_run_records(&root, name().short()).unwrap(), []);
    let known = list_rejected_runs(&root, Some("allotment"), 10).unwrap();
    assert_eq!(known.len(), 1);
    assert_eq!(known, find_rejected_runs(&root, name().short()).unwrap());
    assert_eq!(known[0].rejection, Some(RunRejection { end: RunEnd::Rejected, by: Some("bob".into()) }));
    assert_eq!(list_rejected_runs(&root, Some("allotment-rejected"), 10).unwrap(), []);
    let (record, workflow) = (&known[0].record, WorkflowRef::default());
    let edited = steward_domain::wiki::rollback::EditedPages::Refuse;
    assert!(
        writer.revert_run(&RevertRequest { record, by: "ann", reason: None, edited, at: at(4), workflow }).is_err()
    );
    assert_eq!(writer.record_ended_runs().unwrap(), []);
}

#[test]
fn a_stop_holds_the_record_until_it_ends() {
    let (desk, writer, run) = staged();
    let stopped = VaultStop { at: "now".into(), by: "ops".into(), reason: None };
    stop::stop_vault(writer.root(), &stopped).unwrap();
    writer.abandon_run(&run, at(3), "verifier_timeout").unwrap();
    assert_eq!(run.read_status().unwrap().unwrap().state, RunState::Abandoned);
    assert_eq!(writer.record_ended_runs().unwrap(), []);
    assert_eq!(records(&desk), [""; 0]);
    stop::resume_vault(writer.root(), &stopped).unwrap();
    assert_eq!(writer.record_ended_runs().unwrap().len(), 1);
    assert_eq!(writer.record_ended_runs().unwrap(), []);
    let record = read_one(&desk);
    assert_eq!(record.draft.wiki.unwrap().rejection, Some(RunRejection { end: RunEnd::Abandoned, by: None }));
}

#[test]
fn a_person_commits_what_a_verifier_refused_under_the_record_of_the_run() {
    let (desk, writer, run) = staged();
    writer.reject_by_verifier(&run, at(3), "rejected by the verifier: unsupported").unwrap();
    assert!(run.is_rejected_by_verifier().unwrap());
    let seen = run.read_staged().unwrap().unwrap().0.hash();
    let approval = RunApproval { staged: &seen, by: "ann", override_reason: Some("page 2"), in_terminal: true };
    let committed = writer.commit_staged(&run, Some(&approval), run.meta.began, &WorkflowRef::default()).unwrap();
    assert_eq!(committed.receipt.record.as_str(), format!("event/steward-wiki-{}-allotment.md", name()));
    assert!(desk.file(&format!("{FOLDER}/summaries/summary-lease.md")).exists());
    // A crash before its state was written changes nothing.
    assert_eq!(writer.record_ended_runs().unwrap(), []);
    read_one(&desk);
    let runs = list_runs(&desk.root(), Some("allotment")).unwrap();
    assert_eq!(runs.iter().map(|run| &run.run).collect::<Vec<_>>(), [&name()]);
    assert_eq!(find_run_records(&desk.root(), name().short()).unwrap(), [committed.receipt.record]);
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn a_run_that_was_committed_gets_no_other_record_afterwards() {
    let (desk, writer, run) = staged();
    let stopped = VaultStop { at: "now".into(), by: "ops".into(), reason: None };
    stop::stop_vault(writer.root(), &stopped).unwrap();
    writer.reject_by_verifier(&run, at(3), "rejected by the verifier: unsupported").unwrap();
    stop::resume_vault(writer.root(), &stopped).unwrap();
    let seen = run.read_staged().unwrap().unwrap().0.hash();
    let approval = RunApproval { staged: &seen, by: "ann", override_reason: Some("page 2"), in_terminal: true };
    writer.commit_staged(&run, Some(&approval), run.meta.began, &WorkflowRef::default()).unwrap();
    assert_eq!(writer.record_ended_runs().unwrap(), []);
    assert_eq!(records(&desk), [""; 0]);
}

#[test]
fn a_child_rejects_a_run_and_dies_where_it_is_told() {
    let Ok(vault) = std::env::var(VAULT) else { return };
    let writer = lock(Path::new(&vault));
    writer.reject_run(&StagedRuns::new(writer.root()).open(&name()).unwrap(), at(3), "budget").unwrap();
    settle(&writer);
}

#[test]
fn a_crash_at_any_point_leaves_one_record() {
    let mut deaths = 0;
    for point in POINTS {
        let (desk, writer, run) = staged();
        settle(&writer);
        drop((writer, run));
        let before = read_files(&desk);
        let test = "rejected::a_child_rejects_a_run_and_dies_where_it_is_told";
        deaths += u32::from(desk::dies(test, &[(VAULT, desk.path().as_os_str())], &format!("{point}:1")));
        let writer = desk.writer();
        let runs = StagedRuns::new(&desk.root());
        // A start passes some points before anything is rejected.
        if runs.list().unwrap()[0].status.state != RunState::Rejected {
            writer.reject_run(&runs.open(&name()).unwrap(), at(3), "budget").unwrap();
        }
        writer.record_ended_runs().unwrap();
        read_one(&desk);
        assert_eq!(writer.record_ended_runs().unwrap(), [], "{point}");
        let status = runs.list().unwrap().remove(0).status;
        assert_eq!((status.state, status.reason.as_str()), (RunState::Rejected, "budget"), "{point}");
        assert_eq!(read_files(&desk), before, "{point}");
        settle(&writer);
        desk.is_tidy();
    }
    assert!(deaths > 5, "only {deaths} deaths");
}

//! Runs of assistants: until when they are open, and whose they are when their folders are gone.

use crate::desk::Desk;
use crate::ingest::{FOLDER, LEASE, add, at, wiki};
use steward_domain::action::audit::WorkflowRef;
use steward_domain::time::format_millis;
use steward_domain::wiki::run::{RunEnd, RunRejection, WikiRunType};
use steward_domain::wiki::writer::draft::PageChange;
use steward_vault::action::writer::VaultWriter;
use steward_vault::gates::stop::{self, VaultStop};
use steward_vault::wiki::guardian::{GuardianSession, NewGuardianRun, Submission, is_written_for};
use steward_vault::wiki::ingest::RunApproval;
use steward_vault::wiki::runs::{list_rejected_runs, list_runs};
use steward_vault::wiki::staged::{RunState, StagedRuns};
use steward_vault::wiki::state::read_wiki;

const BY: &str = "token:laptop#3f9a";
const FILE: &str = "concepts/the-end.md";
const PAGE: &str = "---\ntitle: The end\nkind: concept\n---\nIt ends in March 2027.[^1]\n\n[^1]: lease — \"The lease of Plot 12 ends on 31 March 2027.\"\n";
/// In minutes.
const DAY: i64 = 24 * 60;

/// A wiki in which an assistant has begun a run, which is open.
fn begun() -> (Desk, VaultWriter, GuardianSession) {
    let (desk, writer) = wiki();
    add(&writer, 1, "lease.md", LEASE).unwrap();
    let new = NewGuardianRun {
        wiki: "allotment",
        folder: FOLDER,
        run_type: WikiRunType::Manual,
        by: BY,
        at: at(2),
        source: None,
    };
    let read = read_wiki(writer.root(), "allotment", FOLDER).unwrap();
    let mut session = GuardianSession::begin(writer.root(), read, &new.describe("1")).unwrap();
    session.change(&PageChange::Create { file: FILE.to_owned(), content: PAGE.to_owned() }, None).unwrap();
    (desk, writer, session)
}

fn submit(session: &mut GuardianSession, minutes: i64) {
    let touched = [FILE.to_owned()];
    session.submit(&Submission { subject: "The end", touched: &touched, keeps: &[] }, at(minutes)).unwrap();
}

/// The state of the run after the runs that are late at this moment were abandoned.
fn sweep(writer: &VaultWriter, minutes: i64) -> RunState {
    writer.abandon_late_runs(at(minutes)).unwrap();
    StagedRuns::new(writer.root()).list().unwrap().remove(0).status.state
}

#[test]
fn a_run_that_nobody_submits_is_abandoned_after_a_day_and_the_time_of_a_stop_does_not_count() {
    let (desk, writer, session) = begun();
    assert_eq!(sweep(&writer, DAY + 2), RunState::Pending, "a call about it is under way");
    drop(session);
    assert_eq!(sweep(&writer, DAY + 1), RunState::Pending);
    let event = |minutes| VaultStop { at: format_millis(at(minutes)), by: "ann".into(), reason: None };
    stop::stop_vault(writer.root(), &event(100)).unwrap();
    assert_eq!(sweep(&writer, 10 * DAY), RunState::Pending);
    stop::resume_vault(writer.root(), &event(160)).unwrap();
    assert_eq!(sweep(&writer, DAY + 61), RunState::Pending);
    assert_eq!(sweep(&writer, DAY + 62), RunState::Abandoned);
    let ended = list_rejected_runs(&desk.root(), Some("allotment"), 9).unwrap();
    assert_eq!(ended[0].rejection, Some(RunRejection { end: RunEnd::Abandoned, by: None }));
    assert!(ended[0].reasoning.contains("nobody submitted it in time"), "{}", ended[0].reasoning);
}

#[test]
fn a_submission_that_reaches_nobody_costs_neither_time_nor_a_try() {
    let (_desk, writer, mut session) = begun();
    for minutes in 3..9 {
        submit(&mut session, minutes);
        session.withdraw_submission(at(minutes), "it could not be submitted").unwrap();
    }
    assert!(session.has_submissions_left() && session.count_submissions() == 6);
    let run = session.run().meta.run.clone();
    drop(session);
    assert_eq!(sweep(&writer, DAY + 1), RunState::Pending);
    let read = read_wiki(writer.root(), "allotment", FOLDER).unwrap();
    let mut session = GuardianSession::open(writer.root(), read, &run, BY, at(100)).unwrap();
    for minutes in 100..103 {
        assert!(session.has_submissions_left());
        submit(&mut session, minutes);
        session.reopen(at(minutes), "something was found").unwrap();
    }
    assert!(!session.has_submissions_left());
    drop(session);
    assert_eq!((sweep(&writer, 161), sweep(&writer, 162)), (RunState::Pending, RunState::Abandoned));
}

#[test]
fn no_deadline_runs_for_a_run_that_was_submitted() {
    let (_desk, writer, mut session) = begun();
    submit(&mut session, 3);
    let (run, _) = session.into_run();
    drop(run);
    assert_eq!(sweep(&writer, 10 * DAY), RunState::Pending);
    let run = StagedRuns::new(writer.root()).list().unwrap().remove(0).meta.run;
    StagedRuns::new(writer.root()).open(&run).unwrap().leave_to_person(at(4), "it waits for a person").unwrap();
    assert_eq!(sweep(&writer, 10 * DAY), RunState::Pending);
}

#[test]
fn the_record_of_a_run_says_whose_assistant_wrote_it() {
    let (desk, writer, mut session) = begun();
    submit(&mut session, 3);
    let (run, _) = session.into_run();
    let seen = run.read_staged().unwrap().unwrap().0.hash();
    let approval = RunApproval { staged: &seen, by: "bob", override_reason: None, in_terminal: true };
    writer.commit_staged(&run, Some(&approval), at(4), &WorkflowRef::default()).unwrap();
    let name = run.meta.run.clone();
    drop(run);
    StagedRuns::new(writer.root()).remove(&name).unwrap();
    let runs = list_runs(&desk.root(), Some("allotment")).unwrap();
    let reasoning = &runs[0].reasoning;
    assert!(is_written_for(reasoning, BY), "{reasoning}");
    assert!(!is_written_for(reasoning, "bob") && !is_written_for(reasoning, "token:laptop"), "{reasoning}");
}

//! A power cut at every crash point of every flow, and a second one during the recovery.
//!
//! A child process runs one flow and kills itself at the point. This process then plays the restart: it recovers, runs
//! the flow again, and checks the files.

use crate::ceiling;
use crate::desk::{self, Click, Desk, TASK, Wish, count, faults, lock, settle, task, timestamped, timestamps};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use steward_domain::action::audit::ActionKind;
use steward_domain::action::undo::ResolutionKind;
use steward_domain::gates::mode::{Ceiling, DecisionPolicy};
use steward_domain::record::path::RecordPath;
use steward_vault::action::writer::{ApplyError, VaultWriter};
use steward_vault::files::crash::POINTS;
use steward_vault::steward::timestamps::TimestampWriteOutcome;

const FLOW: &str = "STEWARD_TEST_FLOW";
const VAULT: &str = "STEWARD_TEST_VAULT";
const LATE: &str = "late words of a human\n";
const OVER: &str = "words of another human, who saved over ours\n";

/// The flows, by the names that the child gets.
const FLOWS: [&str; 10] =
    ["live", "undo", "confirm", "dismiss", "shadow", "ceiling", "late", "stamp", "late-stamp", "two-humans"];

fn wish(flow: &str) -> Wish {
    Wish::done("pay", TASK.as_bytes(), "run-1").with(|w| match flow {
        "confirm" | "dismiss" => w.confidence = 0.1,
        "shadow" => w.policy = DecisionPolicy::default(),
        _ => {}
    })
}

fn first_record() -> RecordPath {
    wish("live").plan().draft().record_path().unwrap()
}

/// Runs one flow; returns whether it had been done before. The same call after a crash is the retry.
fn act(writer: &VaultWriter, flow: &str) -> Result<bool, String> {
    let click = |kind| {
        let resolved = Click::new(kind, &first_record(), "run-2").ask(writer);
        resolved.map(|receipt| receipt.repeated).map_err(|e| e.to_string())
    };
    match flow {
        "live" | "shadow" | "late" | "two-humans" => {
            writer.apply_plan(wish(flow).plan()).map(|receipt| receipt.repeated).map_err(|e| e.to_string())
        }
        "undo" => click(ResolutionKind::Undo),
        "confirm" => click(ResolutionKind::Confirm),
        "dismiss" => click(ResolutionKind::Dismiss),
        "ceiling" => {
            let set = writer.set_ceiling(&ceiling::request(Ceiling::Act), &ceiling::paths());
            set.map(|receipts| receipts.iter().all(|receipt| receipt.repeated)).map_err(|e| e.to_string())
        }
        "stamp" | "late-stamp" => writer
            .write_timestamps(&task("pay"), &timestamps())
            .map(|done| done == TimestampWriteOutcome::Unchanged)
            .map_err(|e| e.to_string()),
        other => panic!("no flow {other}"),
    }
}

/// Prepares the vault for a flow: a resolution needs an action.
fn prepare(desk: &Desk, flow: &str) {
    if flow == "ceiling" {
        ceiling::write_instincts(desk);
    }
    if ["undo", "confirm", "dismiss"].contains(&flow) {
        let writer = desk.writer();
        writer.apply_plan(wish(flow).plan()).unwrap();
        settle(&writer);
    }
}

#[test]
fn a_child_runs_one_flow_and_dies_where_it_is_told() {
    let (Ok(flow), Ok(vault)) = (std::env::var(FLOW), std::env::var(VAULT)) else { return };
    let open = || std::fs::OpenOptions::new().append(true).open(Path::new(&vault).join("task/pay.md")).unwrap();
    let mut editor = open();
    let writer = lock(Path::new(&vault));
    if flow != "recover" {
        act(&writer, &flow).unwrap();
    }
    if flow == "two-humans" {
        let (new, file) = (Path::new(&vault).join("task/pay.md~"), Path::new(&vault).join("task/pay.md"));
        std::fs::write(&new, format!("{}{OVER}", std::fs::read_to_string(&file).unwrap())).unwrap();
        std::fs::rename(new, file).unwrap();
    }
    if flow.starts_with("late") || flow == "two-humans" {
        editor.write_all(LATE.as_bytes()).unwrap();
    }
    settle(&writer);
}

/// Runs the child; returns whether it died at its point.
fn dies(desk: &Desk, flow: &str, point: &str) -> bool {
    let test = "crash::a_child_runs_one_flow_and_dies_where_it_is_told";
    desk::dies(test, &[(FLOW, flow.as_ref()), (VAULT, desk.path().as_os_str())], point)
}

/// The restart after a crash: checks the vault right then, and again after the flow was repeated.
fn restart(desk: &Desk, flow: &str, what: &str) {
    let original = TASK.to_owned();
    let done = TASK.replace("state: open", "state: done");
    let (before, after, kind) = match flow {
        "live" => (&original, &done, ActionKind::Action),
        "undo" => (&done, &original, ActionKind::Reversed),
        "confirm" => (&original, &done, ActionKind::Confirmed),
        "dismiss" => (&original, &original, ActionKind::Dismissed),
        "shadow" => (&original, &original, ActionKind::Action),
        "ceiling" => return restart_ceiling(desk, what),
        "late" => return restart_late(desk, what),
        "two-humans" => return restart_two_humans(desk, what),
        "stamp" | "late-stamp" => return restart_stamp(desk, what),
        other => panic!("no flow {other}"),
    };
    let writer = desk.writer();
    let filed = count(&desk.records(), kind);
    let now = desk.read("task/pay.md");
    assert_eq!(&now, if filed == 1 { after } else { before }, "{what}: file and record disagree");
    assert!(filed <= 1, "{what}: recorded twice");

    let repeated = act(&writer, flow).unwrap();
    assert_eq!(repeated, filed == 1, "{what}");
    assert!(act(&writer, flow).unwrap(), "{what}");
    settle(&writer);
    assert_eq!(&desk.read("task/pay.md"), after, "{what}");
    let records = desk.records();
    assert_eq!(count(&records, kind), 1, "{what}");
    let answers = ["undo", "confirm", "dismiss"].contains(&flow);
    assert_eq!(records.len(), if answers { 2 } else { 1 }, "{what}");
    assert_eq!(desk.conflicts(), Vec::<String>::new(), "{what}");
    desk.is_tidy();
}

/// Each instinct of the source is changed with its record, or neither.
fn restart_ceiling(desk: &Desk, what: &str) {
    let writer = desk.writer();
    let is_changed = |path: &RecordPath| desk.read(path.as_str()).contains("ceiling: act");
    let changed = ceiling::paths().iter().filter(|path| is_changed(path)).count();
    assert_eq!(ceiling::records(desk).len(), changed, "{what}: files and records disagree");
    assert_eq!(act(&writer, "ceiling").unwrap(), changed == 2, "{what}");
    assert!(act(&writer, "ceiling").unwrap(), "{what}");
    settle(&writer);
    assert!(ceiling::paths().iter().all(is_changed), "{what}");
    assert_eq!((ceiling::records(desk).len(), desk.records().len()), (2, 0), "{what}");
    desk.is_tidy();
}

/// A timestamp write-back is in place or not, and no record is filed for it. A late edit is never lost.
fn restart_stamp(desk: &Desk, what: &str) {
    let writer = desk.writer();
    settle(&writer);
    let now = desk.read("task/pay.md");
    let (late, is_stamped) = (format!("{TASK}{LATE}"), now == timestamped(TASK));
    assert!(is_stamped || now == TASK || (now == late && what.starts_with("late")), "{what}: {now}");
    assert_eq!(act(&writer, "stamp").unwrap(), is_stamped, "{what}");
    assert!(act(&writer, "stamp").unwrap(), "{what}");
    settle(&writer);
    assert_eq!(desk.read("task/pay.md"), if is_stamped { now } else { timestamped(&now) }, "{what}");
    assert_eq!((desk.records().len(), desk.conflicts().len()), (0, 0), "{what}");
    desk.is_tidy();
}

/// Two edits that cannot both be in one file are both kept.
fn restart_two_humans(desk: &Desk, what: &str) {
    let writer = desk.writer();
    settle(&writer);
    let (now, conflicts) = (desk.read("task/pay.md"), desk.conflicts());
    if now.contains(OVER) {
        let late: Vec<_> = conflicts.iter().filter(|text| text.contains(LATE)).collect();
        assert_eq!((late.len(), conflicts.len()), (1, 1), "{what}: {conflicts:#?}");
    } else {
        assert_eq!(conflicts, Vec::<String>::new(), "{what}: the child died before anyone wrote");
    }
    settle(&writer);
    assert_eq!((desk.read("task/pay.md"), desk.conflicts()), (now, conflicts), "{what}");
    desk.is_tidy();
}

/// A late edit is never lost, however the change itself ended.
fn restart_late(desk: &Desk, what: &str) {
    let writer = desk.writer();
    let filed = desk.records().len();
    settle(&writer);
    let now = desk.read("task/pay.md");
    let wrote = now.contains(LATE);
    assert_eq!(desk.conflicts(), Vec::<String>::new(), "{what}: there was only one human");
    match filed {
        // The change is recorded, and a person's save has overwritten it if there was one.
        1 if wrote => assert_eq!(now, format!("{TASK}{LATE}"), "{what}"),
        1 => assert_eq!(now, TASK.replace("state: open", "state: done"), "{what}"),
        0 => assert_eq!(now, TASK, "{what}: the child died before the human wrote"),
        more => panic!("{what}: {more} records"),
    }
    match writer.apply_plan(wish("live").plan()) {
        Ok(receipt) => assert_eq!(receipt.repeated, filed == 1, "{what}"),
        Err(e) => assert!(matches!(e, ApplyError::ChangedMeanwhile { .. }), "{what}: {e}"),
    }
    settle(&writer);
    assert_eq!(desk.records().len(), 1, "{what}");
    desk.is_tidy();
}

#[test]
fn a_crash_at_any_point_leaves_a_change_and_its_record_or_neither() {
    let mut reached = BTreeSet::new();
    for flow in FLOWS {
        for point in POINTS {
            for state_is_lost in [false, true] {
                let desk = Desk::new();
                std::fs::write(desk.state().join("steward.db"), "state").unwrap();
                prepare(&desk, flow);
                let died = dies(&desk, flow, point);
                assert_eq!(died, passes(flow, point), "{flow} at {point}");
                if state_is_lost {
                    std::fs::remove_dir_all(desk.state()).unwrap();
                }
                if died {
                    reached.insert(point);
                    assert_eq!(
                        faults(&desk.root()),
                        Vec::<String>::new(),
                        "{flow} at {point}: a reader before the restart"
                    );
                }
                restart(&desk, flow, &format!("{flow} at {point}"));
            }
        }
    }
    assert_eq!(reached, POINTS.into_iter().collect(), "every point is a place where some flow can die");
}

/// Whether a flow passes a crash point.
fn passes(flow: &str, point: &str) -> bool {
    let changes = ["live", "undo", "confirm", "ceiling", "late", "stamp", "late-stamp", "two-humans"].contains(&flow);
    match point {
        "after-staging-record" | "before-filing" | "after-filing" | "after-chain-head" => !flow.ends_with("stamp"),
        "after-staging-content" | "before-swap" | "after-swap" => changes,
        "after-giving-back" => flow.starts_with("late"),
        "before-keeping-conflict" => flow == "two-humans",
        _ => true,
    }
}

#[test]
fn a_second_crash_during_the_recovery_changes_nothing() {
    let mut deaths = 0;
    for flow in ["live", "undo", "ceiling", "late", "shadow", "stamp", "late-stamp", "two-humans"] {
        for point in POINTS {
            for second in POINTS {
                // A crash before the intent leaves the same files as one before any change.
                let early = ["before-staging", "after-staging-record", "after-staging-content"];
                if early.contains(&point) || early.contains(&second) {
                    continue;
                }
                let desk = Desk::new();
                prepare(&desk, flow);
                if !dies(&desk, flow, point) || !dies(&desk, "recover", second) {
                    continue;
                }
                deaths += 1;
                // And a third one, at the same place.
                dies(&desk, "recover", second);
                restart(&desk, flow, &format!("{flow} at {point}, then at {second}"));
            }
        }
    }
    assert!(deaths > 50, "only {deaths} second crashes");
}

#[test]
fn a_restart_files_the_record_of_a_swap_that_a_crash_interrupted() {
    let desk = Desk::new();
    assert!(dies(&desk, "live", "after-swap"));
    assert!(desk.read("task/pay.md").contains("state: done"), "the swap was made");
    assert_eq!(desk.records().len(), 0, "and not recorded yet");
    let writer = desk.writer();
    assert_eq!(desk.records().len(), 1);
    assert_eq!(writer.settle_swaps().unwrap(), Vec::new());
    assert!(act(&writer, "live").unwrap());
}

#[test]
fn an_editor_that_outlives_our_crash_is_not_forgotten() {
    let desk = Desk::new();
    let mut editor = std::fs::OpenOptions::new().append(true).open(desk.file("task/pay.md")).unwrap();
    assert!(dies(&desk, "live", "after-chain-head"));
    let writer = desk.writer();
    editor.write_all(LATE.as_bytes()).unwrap();
    assert_eq!(writer.settle_swaps().unwrap(), [task("pay").into()]);
    assert_eq!(desk.read("task/pay.md"), format!("{TASK}{LATE}"));
}

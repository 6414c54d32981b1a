//! A steward's change: it is made once, exactly, and only if the file holds the judged content.

use crate::desk::{Click, Desk, TASK, Wish, count, faults, lock, names, noon, settle};
use chrono::TimeDelta;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use steward_domain::action::audit::ActionKind;
use steward_domain::action::plan::Disposition;
use steward_domain::action::undo::ResolutionKind;
use steward_domain::gates::mode::DecisionPolicy;
use steward_domain::steward::clerk::Judgement;
use steward_vault::action::writer::ApplyError;
use steward_vault::gates::stop::{self, VaultStop};

/// Tasks as people write them: a name, the text before, and the text with the state changed.
fn documents() -> Vec<(&'static str, String, String)> {
    let change = |name, before: &str, from: &str, to: &str| (name, before.to_owned(), before.replacen(from, to, 1));
    let crlf = TASK.replace('\n', "\r\n");
    vec![
        change("plain, with a comment", TASK, "open", "done"),
        change("CRLF", &crlf, "open", "done"),
        change("BOM", &format!("\u{feff}{TASK}"), "open", "done"),
        change("BOM and CRLF", &format!("\u{feff}{crlf}"), "open", "done"),
        change("single quotes", &TASK.replace("open ", "'open' "), "'open'", "'done'"),
        change("double quotes", &TASK.replace("open ", "\"open\" "), "\"open\"", "\"done\""),
        change("upper case", &TASK.replace("open ", "OPEN "), "OPEN", "done"),
        change("no state", &TASK.replace("state: open  # since May\n", ""), "---\n\nBody", "state: done\n---\n\nBody"),
        change("an empty state", &TASK.replace("state: open  #", "state: #"), "state: #", "state: done #"),
        change("no newline at the end", TASK.trim_end(), "open", "done"),
        change("no body", &TASK[..TASK.find("\n\nBody").unwrap() + 1], "open", "done"),
        change(
            "flow lists and odd spacing",
            &TASK.replace("owner: ann", "tags: [ a,b , \"c\" ]  # x\nextra: {k: v}\n\n# owner:\nowner:   'ann'"),
            "open",
            "done",
        ),
        change("a body that looks like fields", &format!("{TASK}\n---\nstate: open\n---\n"), "open", "done"),
    ]
}

#[test]
fn apply_twice_is_once_and_undo_gives_the_bytes_back() {
    for (name, before, after) in documents() {
        let desk = Desk::new();
        desk.write("task/pay.md", before.as_bytes());
        let writer = desk.writer();
        let plan = Wish::done("pay", before.as_bytes(), "run-1").plan();
        let first = writer.apply_plan(plan.clone()).unwrap();
        assert_eq!((first.disposition, first.repeated), (Disposition::Live, false), "{name}");
        assert_eq!(desk.read("task/pay.md"), after, "{name}");
        let second = writer.apply_plan(plan).unwrap();
        assert!(second.repeated && second.record == first.record, "{name}");
        assert_eq!(desk.records().len(), 1, "{name}");

        let click = Click::new(ResolutionKind::Undo, &first.record, "run-2");
        click.ask(&writer).unwrap();
        assert_eq!(desk.read("task/pay.md"), before, "{name}");
        settle(&writer);
        assert_eq!(desk.read("task/pay.md"), before, "{name}: settling changes nothing");
        desk.is_tidy();
    }
}

#[test]
fn fields_in_braces_are_refused_and_nothing_is_left() {
    let desk = Desk::new();
    let braces = "---\n{type: task, state: open, parent_matter: matter/house}\n---\n";
    desk.write("task/pay.md", braces.as_bytes());
    let writer = desk.writer();
    let error = writer.apply_plan(Wish::done("pay", braces.as_bytes(), "run-1").plan()).unwrap_err();
    assert!(error.to_string().starts_with("task/pay.md: ") && error.to_string().contains("braces"), "{error}");
    assert_eq!((desk.read("task/pay.md").as_str(), desk.records().len()), (braces, 0));
    desk.is_tidy();
}

#[test]
fn a_file_that_changed_since_it_was_judged_is_not_touched() {
    let desk = Desk::new();
    let writer = desk.writer();
    let plan = Wish::done("pay", TASK.as_bytes(), "run-1").plan();
    let edited = TASK.replace("owner: ann", "owner: bob");
    desk.write("task/pay.md", edited.as_bytes());
    let error = writer.apply_plan(plan.clone()).unwrap_err();
    assert!(matches!(error, ApplyError::ChangedMeanwhile { .. }), "{error}");
    assert_eq!((desk.read("task/pay.md"), desk.records().len()), (edited, 0));
    let offered = Wish::done("pay", TASK.as_bytes(), "run-2").with(|w| w.confidence = 0.1).plan();
    assert_eq!(offered.disposition(), Disposition::Pending);
    let error = writer.apply_plan(offered).unwrap_err();
    assert!(matches!(error, ApplyError::ChangedMeanwhile { .. }), "{error}");
    assert_eq!(desk.records().len(), 0, "nor is a human offered a change to it");
    std::fs::remove_file(desk.file("task/pay.md")).unwrap();
    let error = writer.apply_plan(plan).unwrap_err();
    assert_eq!(error.to_string(), "task/pay.md: does not exist");
    desk.is_tidy();
}

#[test]
fn what_changes_nothing_is_filed_and_leaves_every_file_alone() {
    let desk = Desk::new();
    let writer = desk.writer();
    type Kind = (&'static str, fn(&mut Wish), Disposition);
    let kinds: [Kind; 3] = [
        ("shadow", |w| w.policy = DecisionPolicy::default(), Disposition::Shadow),
        ("pending", |w| w.confidence = 0.1, Disposition::Pending),
        ("recorded", |w| w.decision = Judgement::StillActive, Disposition::Recorded),
    ];
    let seen = std::fs::metadata(desk.file("task/pay.md")).unwrap();
    for (n, (run, change, disposition)) in (0..).zip(kinds) {
        let wish = Wish::done("pay", TASK.as_bytes(), run).with(change).with(|w| w.at = noon() + TimeDelta::minutes(n));
        let receipt = writer.apply_plan(wish.plan()).unwrap();
        assert_eq!(receipt.disposition, disposition);
        assert!(writer.apply_plan(wish.plan()).unwrap().repeated);
        let record = &desk.records()[receipt.record.as_str()];
        assert_eq!(record.draft.pending_confirmation, disposition == Disposition::Pending);
        assert_eq!(record.undo_recipe, None);
    }
    let now = std::fs::metadata(desk.file("task/pay.md")).unwrap();
    assert_eq!((seen.ino(), seen.mtime_nsec()), (now.ino(), now.mtime_nsec()));
    assert_eq!(names(&desk.path()), [".steward", "event", "matter", "signal", "task"]);
    settle(&writer);
    desk.is_tidy();
}

#[test]
fn under_a_stop_nothing_is_filed_and_what_was_filed_before_is_found() {
    let desk = Desk::new();
    let writer = desk.writer();
    let plan = Wish::done("pay", TASK.as_bytes(), "run-1").plan();
    let stop = VaultStop { at: "now".into(), by: "ops".into(), reason: None };
    stop::stop_vault(writer.root(), &stop).unwrap();
    for disposition in [Disposition::Live, Disposition::Pending, Disposition::Recorded] {
        let wish = Wish::done("pay", TASK.as_bytes(), "run-1").with(|w| match disposition {
            Disposition::Pending => w.confidence = 0.1,
            Disposition::Recorded => w.decision = Judgement::StillActive,
            Disposition::Live | Disposition::Shadow => {}
        });
        assert_eq!(wish.plan().disposition(), disposition);
        let refused = writer.apply_plan(wish.plan()).unwrap_err();
        assert!(matches!(refused, ApplyError::Stopped), "{refused}");
    }
    assert_eq!((desk.read("task/pay.md").as_str(), desk.records().len()), (TASK, 0));
    stop::resume_vault(writer.root(), &stop).unwrap();
    let receipt = writer.apply_plan(plan.clone()).unwrap();
    assert_eq!((receipt.disposition, receipt.repeated), (Disposition::Live, false));
    stop::stop_vault(writer.root(), &stop).unwrap();
    let again = writer.apply_plan(plan).unwrap();
    assert_eq!((again.disposition, again.repeated), (Disposition::Live, true), "it was filed before the stop");
}

#[test]
fn the_changed_file_keeps_its_permissions_and_its_owner() {
    for mode in [0o600, 0o644, 0o664, 0o640] {
        let desk = Desk::new();
        std::fs::set_permissions(desk.file("task/pay.md"), std::fs::Permissions::from_mode(mode)).unwrap();
        // Another owner, if this user may change owners.
        let given = std::os::unix::fs::chown(desk.file("task/pay.md"), Some(12_345), Some(12_346)).is_ok();
        let writer = desk.writer();
        let receipt = writer.apply_plan(Wish::done("pay", TASK.as_bytes(), "run-1").plan()).unwrap();
        let now = std::fs::metadata(desk.file("task/pay.md")).unwrap();
        assert!(desk.read("task/pay.md").contains("state: done"));
        assert_eq!(now.mode() & 0o7777, mode);
        assert!(!given || (now.uid(), now.gid()) == (12_345, 12_346));
        Click::new(ResolutionKind::Undo, &receipt.record, "run-2").ask(&writer).unwrap();
        let now = std::fs::metadata(desk.file("task/pay.md")).unwrap();
        assert_eq!(now.mode() & 0o7777, mode);
    }
}

const VAULT: &str = "STEWARD_TEST_OTHERS_VAULT";
const NOBODY: u32 = 65_534;

#[test]
fn a_child_applies_as_somebody_else() {
    let Ok(vault) = std::env::var(VAULT) else { return };
    let applied = lock(Path::new(&vault)).apply_plan(Wish::done("pay", TASK.as_bytes(), "run-1").plan());
    println!("<{}>", applied.map_or_else(|e| e.to_string(), |_| "done".into()));
}

#[test]
fn a_file_of_another_user_is_changed_only_if_they_can_still_write_it() {
    if !rustix::process::geteuid().is_root() {
        println!("only root can become somebody else: not tried");
        return;
    }
    let bin = tempfile::tempdir().unwrap();
    let test = bin.path().join("test");
    std::fs::copy(std::env::current_exe().unwrap(), &test).unwrap();
    let refusal = "task/pay.md: belongs to another user, who could no longer write it after a change: run Steward as the \
                   user who owns the vault, or share the files through a group that may write them";
    for (mode, group, outcome) in
        [(0o644, 0, refusal), (0o666, 0, refusal), (0o644, NOBODY, refusal), (0o664, NOBODY, "done")]
    {
        let desk = Desk::new();
        let open = |path: &Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        [bin.path(), &test, desk.path().parent().unwrap(), &desk.path(), &desk.file("task")].into_iter().for_each(open);
        std::os::unix::fs::chown(desk.file("task/pay.md"), Some(0), Some(group)).unwrap();
        std::fs::set_permissions(desk.file("task/pay.md"), std::fs::Permissions::from_mode(mode)).unwrap();
        let output = Command::new(&test)
            .args(["--exact", "changes::a_child_applies_as_somebody_else", "--nocapture"])
            .env(VAULT, desk.path())
            .uid(NOBODY)
            .gid(NOBODY)
            .output()
            .unwrap();
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            out.contains(&format!("<{outcome}>")),
            "{mode:o} {group}: {out}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(desk.read("task/pay.md").contains("state: done"), outcome == "done");
        let now = std::fs::metadata(desk.file("task/pay.md")).unwrap();
        assert_eq!((now.gid(), now.mode() & 0o777), (group, mode));
        assert_eq!(desk.records().len(), usize::from(outcome == "done"));
    }
}

#[test]
fn a_record_that_would_not_fit_is_refused_before_anything_moves() {
    let desk = Desk::new();
    let long = TASK.replace("since May", &"x".repeat(30_000));
    desk.write("task/pay.md", long.as_bytes());
    let writer = desk.writer();
    let error = writer.apply_plan(Wish::done("pay", long.as_bytes(), "run-1").plan()).unwrap_err();
    assert!(error.to_string().contains("shorten its comment"), "{error}");
    assert_eq!((desk.read("task/pay.md"), desk.records().len()), (long, 0));
    desk.is_tidy();
}

#[test]
fn a_link_in_the_place_of_a_record_is_not_followed() {
    let desk = Desk::new();
    desk.write("matter/real.md", TASK.as_bytes());
    std::fs::remove_file(desk.file("task/pay.md")).unwrap();
    symlink("../matter/real.md", desk.file("task/pay.md")).unwrap();
    let writer = desk.writer();
    let error = writer.apply_plan(Wish::done("pay", TASK.as_bytes(), "run-1").plan()).unwrap_err();
    assert!(error.to_string().contains("symbolic link"), "{error}");
    assert_eq!(desk.read("matter/real.md"), TASK);
}

#[test]
fn many_changes_one_after_the_other_make_one_chain() {
    let desk = Desk::new();
    let writer = desk.writer();
    for n in 0..40 {
        let slug = format!("task-{n}");
        desk.write(&format!("task/{slug}.md"), TASK.as_bytes());
        let receipt = writer.apply_plan(Wish::done(&slug, TASK.as_bytes(), "run-1").plan()).unwrap();
        if n % 2 == 0 {
            Click::new(ResolutionKind::Undo, &receipt.record, "run-2").ask(&writer).unwrap();
        }
    }
    let records = desk.records();
    assert_eq!((count(&records, ActionKind::Action), count(&records, ActionKind::Reversed)), (40, 20));
    drop(writer);
    let writer = desk.writer();
    assert_eq!(faults(&desk.root()), Vec::<String>::new());
    settle(&writer);
    desk.is_tidy();
}

//! A disk without space, a limit on file sizes, and a vault that cannot be written.
//!
//! Permissions do not bind privileged users, so no test here relies on them. A limit on file sizes and a folder of
//! `/proc` work everywhere. A small file system of its own, filled to the last page or read-only, is tried as well if
//! the system allows a mount (`unshare -rm`).

use crate::desk::{Click, Desk, TASK, Wish, count, faults, lock, names, records, settle, try_lock};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use steward_domain::action::audit::ActionKind;
use steward_domain::action::undo::ResolutionKind;
use steward_vault::action::chain::verify_chain;
use steward_vault::action::writer::{LockError, VaultWriter};
use steward_vault::files::root::VaultRoot;
use steward_vault::gates::stop::{self, VaultStop};

const SCENE: &str = "STEWARD_TEST_DISK";
const VAULT: &str = "STEWARD_TEST_VAULT";

#[test]
fn a_child_plays_one_scene() {
    let (Ok(scene), Ok(vault)) = (std::env::var(SCENE), std::env::var(VAULT)) else { return };
    let vault = PathBuf::from(vault);
    match scene.as_str() {
        "limited" => file_sizes_are_limited(&vault),
        "full" => the_disk_is_full(&vault),
        "no names" => no_name_is_left(&vault),
        "read-only" => the_vault_cannot_be_written(&vault),
        "stop" => the_stop_needs_no_space(&vault),
        other => panic!("no scene {other}"),
    }
}

/// Runs a scene behind a shell command that ends in `exec "$@"`.
fn play(scene: &str, vault: &Path, program: &str, before: &str) -> Output {
    let variables = [(SCENE, scene.as_ref()), (VAULT, vault.as_os_str())];
    run_test("disk::a_child_plays_one_scene", &variables, program, before)
}

fn run_test(test: &str, variables: &[(&str, &OsStr)], program: &str, before: &str) -> Output {
    let mut command = Command::new(program);
    if program == "unshare" {
        command.args(["-rm", "sh"]);
    }
    command
        .args(["-c", &format!("{before}; exec \"$@\""), "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

/// Runs a test of this program as a child that may mount, behind a shell command; says so if this system does not allow it.
pub(crate) fn play_test(test: &str, variables: &[(&str, &OsStr)], before: &str) {
    match can_mount() {
        true => went_well(test, &run_test(test, variables, "unshare", before)),
        false => println!("`unshare -rm` is not allowed here: {test} is not played on a file system of its own"),
    }
}

fn can_mount() -> bool {
    Command::new("unshare").args(["-rm", "true"]).output().is_ok_and(|o| o.status.success())
}

fn went_well(scene: &str, output: &Output) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{scene}: {out}{err}");
    assert!(out.contains("1 passed"), "{scene}: the child did not run\n{out}");
}

/// Plays a scene on a file system of its own; `false` if this system does not allow it.
fn on_its_own_disk(scene: &str, options: &str) -> bool {
    if !can_mount() {
        println!("`unshare -rm` is not allowed here: {scene} is not played on a file system of its own");
        return false;
    }
    let place = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o {options} tmpfs '{}' || exit 77", place.path().display());
    went_well(scene, &play(scene, place.path(), "unshare", &mount));
    true
}

fn set_up(vault: &Path) {
    std::fs::create_dir_all(vault.join("task")).unwrap();
    std::fs::write(vault.join("task/pay.md"), TASK).unwrap();
}

fn read(vault: &Path) -> String {
    std::fs::read_to_string(vault.join("task/pay.md")).unwrap()
}

fn done() -> String {
    TASK.replace("state: open", "state: done")
}

/// Checks a failed attempt: its message names the fix, and every file is as it was.
fn failed_cleanly(vault: &Path, message: &str, before: &str, filed: usize) {
    let named = [".steward/", "task/pay.md: ", "event/"].iter().any(|name| message.contains(name));
    assert!(named, "the message names no file: {message}");
    let has_fix = ["free some space", "ulimit -f", "make the vault writable"].iter().any(|fix| message.contains(fix));
    assert!(has_fix, "the message names no fix: {message}");
    assert_eq!(read(vault), before, "half done: {message}");
    assert_eq!(records(vault).len(), filed, "half done: {message}");
    for folder in [".steward", ".steward/journal", ".steward/staged"] {
        let left = names(&vault.join(folder));
        assert!(!left.iter().any(|name| name.ends_with(".tmp")), "{folder}: {left:?} after {message}");
    }
}

fn tidy(vault: &Path) {
    assert_eq!(faults(&VaultRoot::open(vault).unwrap()), Vec::<String>::new());
    for folder in ["journal", "staged"] {
        assert_eq!(names(&vault.join(".steward").join(folder)), Vec::<String>::new());
    }
}

fn apply(writer: &VaultWriter, run: &str) -> Result<(), String> {
    writer.apply_plan(Wish::done("pay", TASK.as_bytes(), run).plan()).map(|_| ()).map_err(|e| e.to_string())
}

fn undo(writer: &VaultWriter) -> Result<(), String> {
    let record = Wish::done("pay", TASK.as_bytes(), "run-1").plan().draft().record_path().unwrap();
    Click::new(ResolutionKind::Undo, &record, "run-2").ask(writer).map(|_| ()).map_err(|e| e.to_string())
}

#[test]
fn a_limit_on_file_sizes_stops_a_change_before_anything_moves() {
    for (kib, size) in [(1, 200), (4, 6_000)] {
        let desk = Desk::new();
        let long = format!("{TASK}{}", "x".repeat(size));
        desk.write("task/pay.md", long.as_bytes());
        drop(desk.writer());
        let limit = format!("trap '' XFSZ; ulimit -f {}", kib * 2);
        went_well("limited", &play("limited", &desk.path(), "sh", &limit));
        let writer = desk.writer();
        writer.apply_plan(Wish::done("pay", long.as_bytes(), "run-1").plan()).unwrap();
        assert_eq!(desk.read("task/pay.md"), long.replace("state: open", "state: done"));
        settle(&writer);
        desk.is_tidy();
    }
}

fn file_sizes_are_limited(vault: &Path) {
    let before = read(vault);
    let writer = lock(vault);
    for _ in 0..2 {
        let message = writer.apply_plan(Wish::done("pay", before.as_bytes(), "run-1").plan()).unwrap_err().to_string();
        failed_cleanly(vault, &message, &before, 0);
    }
    settle(&writer);
    tidy(vault);
}

#[test]
fn a_full_disk_is_an_error_with_a_fix_and_nothing_is_half_done() {
    on_its_own_disk("full", "size=512k");
    on_its_own_disk("no names", "size=512k,nr_inodes=40");
}

#[test]
fn a_stop_needs_neither_space_nor_a_new_name() {
    on_its_own_disk("stop", "size=512k,nr_inodes=60");
}

fn the_stop_needs_no_space(vault: &Path) {
    set_up(vault);
    let writer = lock(vault);
    let stop = |reason: &str| VaultStop { at: "now".into(), by: "ann".into(), reason: Some(reason.into()) };
    for (names, reason) in [(false, "odd"), (true, &"\u{1}".repeat(500))] {
        let (ballast, names_taken) = (vault.join("ballast"), vault.join("names"));
        fill(&ballast);
        if names {
            std::fs::remove_file(&ballast).unwrap();
            std::fs::create_dir(&names_taken).unwrap();
            (0..).take_while(|n| std::fs::write(names_taken.join(n.to_string()), "").is_ok()).count();
        }
        stop::stop_vault(writer.root(), &stop(reason)).unwrap();
        assert!(stop::is_stopped(writer.root()));
        assert_eq!(stop::read_stop(writer.root()), Some(stop(reason)));
        assert!(stop::resume_vault(writer.root(), &stop("")).unwrap());
        stop::stop_vault(writer.root(), &stop("")).unwrap();
        assert_eq!(stop::read_stop(writer.root()), Some(stop("")), "the second stop has the space of the first");
        let _ = std::fs::remove_file(&ballast);
        let _ = std::fs::remove_dir_all(&names_taken);
        assert!(stop::resume_vault(writer.root(), &stop("")).unwrap());
    }
    // Without the reserved space the stop holds too, but its details are unknown.
    std::fs::remove_file(vault.join(".steward/STOP.spare")).unwrap();
    fill(&vault.join("ballast"));
    stop::stop_vault(writer.root(), &stop("odd")).unwrap();
    assert_eq!(stop::read_stop(writer.root()).unwrap().by, "unknown");
}

/// Fills the disk.
pub(crate) fn fill(ballast: &Path) {
    let full = (0..).map(|_| vec![0_u8; 4096]).try_for_each(|page| append(ballast, &page));
    assert!(full.is_err());
}

/// Leaves more and more space, page by page, until everything fits.
fn the_disk_is_full(vault: &Path) {
    let leave = |pages: usize| {
        let ballast = vault.join("ballast");
        fill(&ballast);
        let size = std::fs::metadata(&ballast).unwrap().len();
        let keep = size.saturating_sub(u64::try_from(pages * 4096).unwrap());
        std::fs::OpenOptions::new().write(true).open(&ballast).unwrap().set_len(keep).unwrap();
    };
    step_by_step(vault, leave, || std::fs::remove_file(vault.join("ballast")).unwrap());
}

/// Leaves more and more names for files, one by one.
fn no_name_is_left(vault: &Path) {
    let ballast = vault.join("ballast");
    let leave = |free: usize| {
        std::fs::create_dir(&ballast).unwrap();
        let made = (0..).take_while(|n| std::fs::write(ballast.join(n.to_string()), "").is_ok()).count();
        (0..free.min(made)).for_each(|n| std::fs::remove_file(ballast.join(n.to_string())).unwrap());
    };
    step_by_step(vault, leave, || std::fs::remove_dir_all(&ballast).unwrap());
}

fn step_by_step(vault: &Path, leave: impl Fn(usize), make_room: impl Fn()) {
    set_up(vault);
    let mut writer = lock(vault);
    let mut failures = [0, 0];
    for (n, (before, filed)) in [(TASK.to_owned(), 0), (done(), 1)].into_iter().enumerate() {
        for free in 0.. {
            leave(free);
            let tried = if n == 0 { apply(&writer, "run-1") } else { undo(&writer) };
            if let Err(message) = &tried {
                failed_cleanly(vault, message, &before, filed);
                failures[n] += 1;
            }
            // A restart in the middle: it may be refused, but it must not break anything.
            if free == 2 {
                drop(writer);
                let locked = try_lock(vault);
                make_room();
                writer = match locked {
                    Ok(writer) => writer,
                    Err(LockError::Held { .. }) => panic!("nobody holds it"),
                    Err(LockError::Io { .. } | LockError::Recovery(_) | LockError::Identity(_)) => lock(vault),
                    Err(e @ (LockError::StewardFolder(_) | LockError::Restoring(_))) => panic!("{e}"),
                };
            } else {
                make_room();
            }
            if tried.is_ok() {
                break;
            }
        }
    }
    assert!(failures.iter().all(|n| *n > 0), "the disk was never full: {failures:?}");
    assert_eq!(read(vault), TASK);
    let records = records(vault);
    assert_eq!((count(&records, ActionKind::Action), count(&records, ActionKind::Reversed)), (1, 1));
    settle(&writer);
    tidy(vault);
}

fn append(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write;
    std::fs::OpenOptions::new().create(true).append(true).open(path)?.write_all(bytes)
}

#[test]
fn a_vault_that_cannot_be_written_is_refused_with_its_fix() {
    // No user can create a folder there, not even root.
    let message = try_lock(Path::new("/proc/self")).unwrap_err().to_string();
    assert!(
        message.starts_with(".steward/: ") && message.ends_with("must be writable for Steward's audit records"),
        "{message}"
    );
    on_its_own_disk("read-only", "size=512k");
}

fn the_vault_cannot_be_written(vault: &Path) {
    let remount = |how: &str| {
        let status = Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(vault).status().unwrap();
        assert!(status.success());
    };
    set_up(vault);
    remount("ro");
    let message = try_lock(vault).unwrap_err().to_string();
    assert!(message.starts_with(".steward/: ") && message.contains("must be writable"), "{message}");
    let seen = verify_chain(&VaultRoot::open(vault).unwrap()).unwrap();
    assert_eq!((seen.records, seen.faults.len()), (0, 0), "reading needs no writing");
    remount("rw");
    apply(&lock(vault), "run-1").unwrap();
    remount("ro");
    let message = try_lock(vault).unwrap_err().to_string();
    assert!(message.starts_with(".steward/") && message.contains("must be writable"), "{message}");
    let seen = verify_chain(&VaultRoot::open(vault).unwrap()).unwrap();
    assert_eq!((seen.records, seen.faults.len()), (1, 0));
    remount("rw");
    let writer = lock(vault);
    undo(&writer).unwrap();
    settle(&writer);
    assert_eq!(read(vault), TASK);
    tidy(vault);
}

//! Several real processes on one ledger: this test binary, started again.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use super::concurrent::{keep_log, read_log, slide};
use super::*;

const HOME: &str = "STEWARD_TEST_GUARD_HOME";
const NAME: &str = "STEWARD_TEST_GUARD_CHILD";
const CAPS: CallCaps = CallCaps {
    per_minute: 70,
    per_hour: 70,
    per_day: 70,
    per_task_day: 70,
    per_matter_day: 70,
    extraction_percent: 100,
    stream_percent: 100,
    sender_percent: 100,
    wiki_percent: 100,
    wiki_tokens_per_day: 3_000_000,
};

/// Runs in a process of its own: reserves until nothing is left, and prints each call that it may make.
#[tokio::test]
async fn as_another_process() {
    let (Ok(folder), Ok(name)) = (std::env::var(HOME), std::env::var(NAME)) else { return };
    let folder = Path::new(&folder);
    let ledger = Ledger::open(&folder.join("state/ledger.db"), CAPS, &folder.join("journal/ledger.marker")).unwrap();
    let mut out = std::io::stdout();
    for n in 0u32.. {
        let id = format!("{name}-{n}");
        match ledger.reserve(&about(&id, "task/a.md", "matter/m.md"), at(0)).await {
            ReserveOutcome::Reserved(_) => {
                writeln!(out, "\ncall {id}").unwrap();
                out.flush().unwrap();
            }
            ReserveOutcome::Refused(refusal) => {
                writeln!(out, "\nrefused {:?}", refusal.cap).unwrap();
                return;
            }
        }
    }
}

fn start(home: &Home, name: &str) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["steward::guard::tests::processes::as_another_process", "--exact", "--nocapture"]);
    child.env(HOME, home.folder.path()).env(NAME, name).stdout(Stdio::piped()).spawn().unwrap()
}

fn read_lines(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap)
}

#[tokio::test]
async fn processes_that_start_at_once_share_one_ledger_and_its_caps() {
    let home = Home::new();
    let mut children: Vec<_> = ["a", "b", "c", "d"].map(|name| start(&home, name)).into();
    let mut calls = Vec::new();
    for child in &mut children {
        let lines: Vec<_> = read_lines(child).collect();
        assert!(lines.iter().any(|line| line == "refused Task"), "{lines:?}");
        calls.extend(lines.into_iter().filter_map(|line| line.strip_prefix("call ").map(str::to_owned)));
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(calls.len(), 70);
    let ledger = home.ledger(CAPS);
    for call in calls {
        granted(ledger.reserve(&infra(call), at(0)).await);
    }
    assert_eq!(home.put_aside(), 0);
}

#[tokio::test]
async fn a_process_killed_at_any_moment_takes_no_reservation_with_it() {
    let home = Home::new();
    assert!(home.ledger(CAPS).status(at(0)).await.refusal.is_none());
    keep_log(&home).await;
    let mut calls = Vec::new();
    for (name, patience) in [("a", 1), ("b", 6), ("c", 9), ("d", 13)] {
        let mut child = start(&home, name);
        let mut lines = read_lines(&mut child);
        for line in lines.by_ref().filter(|line| line.starts_with("call ")).take(patience) {
            calls.push(line["call ".len()..].to_owned());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // The lines that it still printed before it died.
        calls.extend(lines.filter_map(|line| line.strip_prefix("call ").map(str::to_owned)));
    }
    let ledger = home.ledger(CAPS);
    for call in &calls {
        granted(ledger.reserve(&infra(call), at(0)).await);
    }
    let log = read_log(&home).await;
    assert!(log.len() >= calls.len(), "every printed call is on the disk");
    slide(&log, &CAPS).unwrap();
}

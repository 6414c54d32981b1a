//! The folder and the processes of one test run, and their end.
//!
//! A shell outlives the test process by a moment. It waits for the end of its standard input, which only this process
//! holds open. Then it ends every process that is still noted in the run's folder, and removes the folder. So nothing
//! is left over, however the test process ends.

use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// If set to anything, the folder of the test run is kept.
const KEEP: &str = "STEWARD_TESTS_KEEP";
const REAPER: &str = r#"cat >/dev/null
for noted in "$1"/pids/*; do
  [ -e "$noted" ] && kill -KILL "${noted##*/}" 2>/dev/null
done
[ -n "$2" ] && exit
# What a browser had running writes for a moment longer.
for again in 1 2 3 4 5; do rm -rf "$1" 2>/dev/null && break; sleep 1; done"#;

struct Run {
    folder: PathBuf,
    _reaper: ChildStdin,
}

fn run() -> &'static Run {
    static RUN: OnceLock<Run> = OnceLock::new();
    RUN.get_or_init(|| {
        let folder = tempfile::Builder::new().prefix("steward-tests-").tempdir().unwrap().keep();
        std::fs::create_dir(folder.join("pids")).unwrap();
        let keep = std::env::var(KEEP).unwrap_or_default();
        let mut command = Command::new("sh");
        command.args(["-c", REAPER, "reaper"]).arg(&folder).arg(keep);
        // It has its own process group, so that Ctrl-C does not end it before it has cleaned up.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let quiet = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let reaper = quiet.spawn().expect("a shell").stdin.take().unwrap();
        Run { folder, _reaper: reaper }
    })
}

/// The folder of this run.
#[must_use]
pub fn folder() -> &'static Path {
    &run().folder
}

/// A new folder inside it, with its number.
#[must_use]
pub fn new_folder() -> (PathBuf, u32) {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = folder().join(number.to_string());
    std::fs::create_dir(&path).unwrap();
    (path, number)
}

/// Notes a process that must not outlive this run.
pub fn note(pid: u32) {
    std::fs::write(folder().join("pids").join(pid.to_string()), "").unwrap();
}

/// Removes a process from the notes. Call this before the process id can be used again.
pub fn strike(pid: u32) {
    // It may have been removed already.
    let _ = std::fs::remove_file(folder().join("pids").join(pid.to_string()));
}

/// The folder of the project.
#[must_use]
pub fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The binary that cargo built: it is beside the folder of the test executables.
#[must_use]
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let here = std::env::current_exe().unwrap();
        let binary = here.parent().and_then(Path::parent).unwrap().join("steward");
        assert!(binary.is_file(), "{} is not there: run `make test`, which builds it first", binary.display());
        binary
    })
}

/// The Temporal CLI: from the environment, or where `make tools` puts it.
#[must_use]
pub fn temporal_cli() -> &'static Path {
    static CLI: OnceLock<PathBuf> = OnceLock::new();
    CLI.get_or_init(|| {
        let set = std::env::var_os("STEWARD_TEMPORAL_CLI").map(PathBuf::from);
        let cli = set.unwrap_or_else(|| project().join(".tools/temporal/bin/temporal"));
        assert!(cli.is_file(), "{} is not there: run `make test`, which fetches it first", cli.display());
        cli
    })
}

/// A port that was free a moment ago.
#[must_use]
pub fn free_port() -> u16 {
    std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|l| l.local_addr()).unwrap().port()
}

/// Whether every crash point is tried (`make test-thorough`) and not a third of them (`make test`).
#[must_use]
pub fn is_thorough() -> bool {
    std::env::var_os("STEWARD_TEST_THOROUGH").is_some()
}

/// The cases to try of a long list: all of them, or every third one and the last.
#[must_use]
pub fn choose_cases<T>(cases: Vec<T>) -> Vec<T> {
    let last = cases.len().saturating_sub(1);
    let is_chosen = |at: usize| is_thorough() || at.is_multiple_of(3) || at == last;
    cases.into_iter().enumerate().filter(|(at, _)| is_chosen(*at)).map(|(_, case)| case).collect()
}

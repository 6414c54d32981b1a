//! Crash points, at which tests can kill the process as a power cut would, or let it sleep.
//!
//! [`die_if_armed`] does nothing unless the environment variable `STEWARD_CRASH_AT` names its point when the process
//! starts. Then the process kills itself with SIGKILL. `<name>:<n>` names the n-th pass, for points that a start passes
//! as well; `<name>:<n>:stop` stops the process (SIGSTOP) until a test continues it. Crash points are compiled into every build on purpose: the tested build is the shipped one. Every point is
//! listed in [`POINTS`], [`MANY_FILES`], [`AFTERWARDS`], [`INTAKE`], [`READING`], [`WRITING`] or [`TRACKING`], and tests try all of them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Every crash point of the write path, in the order in which a change can pass them.
pub const POINTS: [&str; 14] = [
    "before-staging",
    "after-staging-record",
    "after-staging-content",
    "after-journal",
    "before-swap",
    "after-swap",
    "after-giving-back",
    "before-filing",
    "after-filing",
    "after-chain-head",
    "before-keeping-conflict",
    "before-settling",
    "after-discarding",
    "after-settling",
];

/// The crash point between two files of one action. Only a run of a wiki has several.
pub const MANY_FILES: [&str; 1] = ["between-exchanges"];

/// Crash points of the vault writer's callers: the change is done, and its outcome is not reported yet.
pub const AFTERWARDS: [&str; 1] = ["before-indexing"];

/// Crash points of the intake of stream events.
pub const INTAKE: [&str; 4] = ["before-storing", "after-storing", "after-remembering", "after-putting-away"];

/// Crash points of the extraction of an event.
pub const READING: [&str; 2] = ["after-keeping-the-answer", "after-writing-signals"];

/// Crash points of a run of a wiki before its commit: of the turns of the models that write and check it, and of its staging.
pub const WRITING: [&str; 6] =
    ["before-turn", "after-answer", "after-turn", "after-staging-run", "before-verdict", "after-verdict"];

/// Crash points of a delivery to the tracker and of its undo, in the order in which they can be passed. The write path
/// files the record of the outcome; its points are in [`POINTS`].
pub const TRACKING: [&str; 9] = [
    "before-outbox",
    "after-outbox",
    "after-comment",
    "after-transition",
    "after-uncomment",
    "after-transition-back",
    "before-outcome",
    "after-outcome",
    "after-clearing-outbox",
];

/// Kills or stops the process if the environment names this crash point.
pub fn die_if_armed(name: &'static str) {
    static ARMED: OnceLock<Option<CrashPoint>> = OnceLock::new();
    static PASSES: AtomicU32 = AtomicU32::new(0);
    let all = [POINTS.as_slice(), &MANY_FILES, &AFTERWARDS, &INTAKE, &READING, &WRITING, &TRACKING];
    let listed = all.iter().any(|points| points.contains(&name));
    debug_assert!(listed, "{name} is not listed");
    #[cfg(test)]
    hook::run(name);
    let armed = ARMED.get_or_init(|| std::env::var("STEWARD_CRASH_AT").ok().map(|text| CrashPoint::parse(&text)));
    let Some(CrashPoint { at, pass, stops }) = armed else { return };
    if at == name && PASSES.fetch_add(1, Ordering::Relaxed) + 1 == *pass {
        let signal = if *stops { rustix::process::Signal::STOP } else { rustix::process::Signal::KILL };
        let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
        if !*stops {
            std::process::abort();
        }
        // Another thread may take the signal first; this one must not run on until all are stopped.
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

/// What `STEWARD_CRASH_AT` names.
struct CrashPoint {
    at: String,
    pass: u32,
    /// Whether the process is stopped instead of killed.
    stops: bool,
}

impl CrashPoint {
    fn parse(text: &str) -> Self {
        let mut parts = text.split(':');
        let (at, pass) = (parts.next().unwrap_or_default().to_owned(), parts.next());
        Self { at, pass: pass.and_then(|pass| pass.parse().ok()).unwrap_or(1), stops: parts.next() == Some("stop") }
    }
}

/// Lets a test of this crate act at a crash point, such as a person who edits a file.
#[cfg(test)]
pub(crate) mod hook {
    use std::cell::RefCell;

    type Hook = (&'static str, Box<dyn FnOnce()>);

    thread_local! {
        static HOOKS: RefCell<Vec<Hook>> = const { RefCell::new(Vec::new()) };
    }

    /// Runs `action` once, the next time this thread passes the point.
    pub(crate) fn at(name: &'static str, action: impl FnOnce() + 'static) {
        assert!(super::POINTS.contains(&name) || super::MANY_FILES.contains(&name), "{name} is not listed");
        HOOKS.with_borrow_mut(|hooks| hooks.push((name, Box::new(action))));
    }

    /// Whether every hook has run.
    pub(crate) fn all_met() -> bool {
        HOOKS.with_borrow(Vec::is_empty)
    }

    pub(crate) fn run(name: &str) {
        let hook = HOOKS
            .with_borrow_mut(|hooks| hooks.iter().position(|(at, _)| *at == name).map(|index| hooks.remove(index)));
        if let Some((_, action)) = hook {
            action();
        }
    }
}

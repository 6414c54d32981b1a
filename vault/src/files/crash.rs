//! Places where the power may go out, so that tests can switch it off exactly there.
//!
//! [`die_if_armed`] does nothing unless the environment variable `STEWARD_CRASH_AT` names it when the
//! process starts; then the process kills itself with SIGKILL, as an outage would. `<name>:<n>`
//! names the n-th time it is met, for those that a start meets as well. It is compiled into every
//! build on purpose: what is tested is what is shipped. Every place is listed in [`POINTS`],
//! [`AFTERWARDS`], [`INTAKE`], [`READING`] or [`TRACKING`], and tests walk all of them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Every crash point of the write path, in the order in which a change can meet them.
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

/// Crash points of those who call the keeper: it is done, and nobody was told.
pub const AFTERWARDS: [&str; 1] = ["before-indexing"];

/// Crash points of the way in of stream events.
pub const INTAKE: [&str; 4] = ["before-storing", "after-storing", "after-remembering", "after-putting-away"];

/// Crash points of the reading of an event.
pub const READING: [&str; 2] = ["after-keeping-the-answer", "after-writing-signals"];

/// Crash points of the way out to the tracker and back, in the order in which they can be met. The record of the
/// outcome is filed by the write path, whose points are [`POINTS`].
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

/// Dies here if the environment says so.
pub fn die_if_armed(name: &'static str) {
    static AT: OnceLock<Option<(String, u32)>> = OnceLock::new();
    static MET: AtomicU32 = AtomicU32::new(0);
    let all = [POINTS.as_slice(), &AFTERWARDS, &INTAKE, &READING, &TRACKING];
    let listed = all.iter().any(|points| points.contains(&name));
    debug_assert!(listed, "{name} is not listed");
    #[cfg(test)]
    hook::run(name);
    let Some((at, times)) =
        AT.get_or_init(|| std::env::var("STEWARD_CRASH_AT").ok().map(|text| parse_crash_point(&text)))
    else {
        return;
    };
    if at == name && MET.fetch_add(1, Ordering::Relaxed) + 1 == *times {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        std::process::abort();
    }
}

fn parse_crash_point(text: &str) -> (String, u32) {
    let (name, times) = text.split_once(':').unwrap_or((text, "1"));
    (name.to_owned(), times.parse().unwrap_or(1))
}

/// Lets a test of this crate do something exactly there, such as what a human would do.
#[cfg(test)]
pub(crate) mod hook {
    use std::cell::RefCell;

    type Hook = (&'static str, Box<dyn FnOnce()>);

    thread_local! {
        static HOOKS: RefCell<Vec<Hook>> = const { RefCell::new(Vec::new()) };
    }

    /// Runs once, the next time this thread passes the point.
    pub(crate) fn at(name: &'static str, act: impl FnOnce() + 'static) {
        assert!(super::POINTS.contains(&name), "{name} is not listed");
        HOOKS.with_borrow_mut(|hooks| hooks.push((name, Box::new(act))));
    }

    /// Whether every hook was met.
    pub(crate) fn all_met() -> bool {
        HOOKS.with_borrow(Vec::is_empty)
    }

    pub(crate) fn run(name: &str) {
        let met = HOOKS
            .with_borrow_mut(|hooks| hooks.iter().position(|(at, _)| *at == name).map(|index| hooks.remove(index)));
        if let Some((_, act)) = met {
            act();
        }
    }
}

//! Places where the power may go out, so that tests can switch it off exactly there.
//!
//! [`point`] does nothing unless the environment variable `STEWARD_CRASH_AT` names it when the
//! process starts; then the process kills itself with SIGKILL, as an outage would. It is compiled
//! into every build on purpose: what is tested is what is shipped. Every place is listed in
//! [`POINTS`], and a test walks all of them.

use std::sync::OnceLock;

/// Every crash point of the write path, in the order in which a live change meets them.
pub const POINTS: [&str; 10] = [
    "before-journal",
    "after-journal",
    "after-staging-record",
    "after-staging-target",
    "after-announcing-record",
    "after-swap",
    "after-filing-record",
    "after-chain-head",
    "before-settling",
    "after-settling",
];

/// Dies here if the environment says so.
pub fn point(name: &'static str) {
    static AT: OnceLock<Option<String>> = OnceLock::new();
    debug_assert!(POINTS.contains(&name), "{name} is not listed");
    let at = AT.get_or_init(|| std::env::var("STEWARD_CRASH_AT").ok());
    if at.as_deref() == Some(name) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        std::process::abort();
    }
}

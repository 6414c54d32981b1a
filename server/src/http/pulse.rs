//! The pulse of the process: when its main loop turned last.
//!
//! A process can answer requests while the loop that serves the vault hangs, for example on a broken disk. `/healthz`
//! tells a supervisor, which then restarts the process. A process without that loop has no pulse and counts as alive.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long the loop may take for one turn: 30 s. It usually takes 1 s.
const LONGEST_TURN: Duration = Duration::from_secs(30);

/// The time of the last turn. Cheap to clone; all clones share it.
#[derive(Clone, Debug)]
pub struct LoopPulse {
    started: Instant,
    /// Milliseconds from `started` to the last turn; 0 before the first.
    last: Arc<AtomicU64>,
}

impl Default for LoopPulse {
    fn default() -> Self {
        Self { started: Instant::now(), last: Arc::default() }
    }
}

impl LoopPulse {
    /// Notes that the loop has turned.
    pub fn beat(&self) {
        self.last.store(self.read_clock().max(1), Ordering::Relaxed);
    }

    /// Whether the loop has turned lately, or has not begun.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        is_recent(self.last.load(Ordering::Relaxed), self.read_clock())
    }

    fn read_clock(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Whether a turn at `last` is recent at `now`, both in milliseconds.
fn is_recent(last: u64, now: u64) -> bool {
    last == 0 || Duration::from_millis(now.saturating_sub(last)) <= LONGEST_TURN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_has_not_turned_for_long_is_dead_and_one_that_never_began_is_not() {
        assert!(is_recent(0, 1_000_000));
        assert!(is_recent(1_000, 31_000));
        assert!(!is_recent(1_000, 31_001));
        let pulse = LoopPulse::default();
        assert!(pulse.is_alive());
        pulse.clone().beat();
        assert!(pulse.is_alive());
    }
}

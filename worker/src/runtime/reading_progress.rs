//! Tells whoever waits how far the reading of a vault has come.
//!
//! A vault of many records is read once in minutes, later in moments. A command says it in lines on standard error, so
//! that a script's JSON stays alone on standard output; a process that serves says it in its log. Nothing is said of what
//! takes no longer than a breath. It only looks at the index's own numbers and hinders nothing.

use crate::cli::output;
use std::time::Duration;
use steward_vault::index::Index;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// What takes no longer is not told of: 2 s.
const FIRST: Duration = Duration::from_secs(2);
/// How often a command says it: often enough to see that it lives.
const EVERY: Duration = Duration::from_secs(5);
/// How often a log gets it.
const EVERY_IN_A_LOG: Duration = Duration::from_secs(30);

/// Waits for the reading of a vault and tells a person at a terminal how far it is.
pub(crate) async fn show_index_progress<T>(index: &Index, reading: impl Future<Output = T>) -> T {
    let tell = |done, of| output::print_progress("files read", done, of);
    report_progress((FIRST, EVERY), || index.scan_progress(), tell, reading).await
}

/// The same, for a log.
pub(crate) async fn log_index_progress<T>(index: &Index, reading: impl Future<Output = T>) -> T {
    let tell = |done, of| tracing::info!(done, of, "reading the vault");
    report_progress((FIRST, EVERY_IN_A_LOG), || index.scan_progress(), tell, reading).await
}

async fn report_progress<T>(
    (first, every): (Duration, Duration),
    now: impl Fn() -> (usize, usize),
    tell: impl Fn(usize, usize),
    reading: impl Future<Output = T>,
) -> T {
    tokio::pin!(reading);
    let mut clock = interval_at(Instant::now() + first, every);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            read = &mut reading => return read,
            _ = clock.tick() => match now() {
                (done, of) if done < of => tell(done, of),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use tokio::sync::Notify;

    #[tokio::test]
    async fn a_long_reading_is_told_while_something_is_left_to_read() {
        let (looked, told, enough) = (Cell::new(0), RefCell::new(Vec::new()), Notify::new());
        let now = || {
            looked.set(looked.get() + 1);
            [(0, 0), (1, 3), (3, 3), (4, 9)][looked.get() % 4]
        };
        let tell = |done, of| {
            told.borrow_mut().push((done, of));
            if told.borrow().len() == 3 {
                enough.notify_one();
            }
        };
        let often = Duration::from_millis(1);
        report_progress((often, often), now, tell, enough.notified()).await;
        assert_eq!(*told.borrow(), [(1, 3), (4, 9), (1, 3)]);
    }

    #[tokio::test]
    async fn what_is_read_at_once_is_not_told() {
        let never = |_, _| panic!("told");
        assert_eq!(report_progress((FIRST, EVERY), || (1, 2), never, async { 7 }).await, 7);
    }
}

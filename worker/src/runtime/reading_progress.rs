//! Reports how much of a vault has been read while somebody waits for it.
//!
//! The first reading of a large vault takes minutes; later ones take moments. A command prints lines on standard error,
//! so that standard output holds only its JSON. A process that serves writes log lines. A reading of less than 1 s is
//! not reported. This module reads only the index's own numbers and must not delay the reading.

use crate::cli::output;
use std::time::Duration;
use steward_vault::index::Index;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// A reading of less time is not reported: 1 s.
const FIRST_REPORT: Duration = Duration::from_secs(1);
/// How often a command reports: 5 s, often enough to show that it is working.
const COMMAND_INTERVAL: Duration = Duration::from_secs(5);
/// How often a log line is written: 30 s.
const LOG_INTERVAL: Duration = Duration::from_secs(30);

/// Waits for the reading of a vault and prints its progress for a person at a terminal.
pub(crate) async fn show_index_progress<T>(index: &Index, reading: impl Future<Output = T>) -> T {
    let report = |done, total| output::print_progress("files read", done, total);
    report_progress(FIRST_REPORT, COMMAND_INTERVAL, || index.scan_progress(), report, reading).await
}

/// Waits for the reading of a vault and logs its progress.
pub(crate) async fn log_index_progress<T>(index: &Index, reading: impl Future<Output = T>) -> T {
    let report = |done, total| tracing::info!(done, of = total, "reading the vault");
    report_progress(FIRST_REPORT, LOG_INTERVAL, || index.scan_progress(), report, reading).await
}

async fn report_progress<T>(
    first: Duration,
    interval: Duration,
    progress: impl Fn() -> (usize, usize),
    report: impl Fn(usize, usize),
    reading: impl Future<Output = T>,
) -> T {
    tokio::pin!(reading);
    let mut clock = interval_at(Instant::now() + first, interval);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            result = &mut reading => return result,
            _ = clock.tick() => match progress() {
                (done, total) if done < total => report(done, total),
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
    async fn a_long_reading_is_reported_while_files_are_left() {
        let (calls, reported, enough) = (Cell::new(0), RefCell::new(Vec::new()), Notify::new());
        let progress = || {
            calls.set(calls.get() + 1);
            [(0, 0), (1, 3), (3, 3), (4, 9)][calls.get() % 4]
        };
        let report = |done, total| {
            reported.borrow_mut().push((done, total));
            if reported.borrow().len() == 3 {
                enough.notify_one();
            }
        };
        let often = Duration::from_millis(1);
        report_progress(often, often, progress, report, enough.notified()).await;
        assert_eq!(*reported.borrow(), [(1, 3), (4, 9), (1, 3)]);
    }

    #[tokio::test]
    async fn a_short_reading_is_not_reported() {
        let never = |_, _| panic!("reported");
        assert_eq!(report_progress(FIRST_REPORT, COMMAND_INTERVAL, || (1, 2), never, async { 7 }).await, 7);
    }
}

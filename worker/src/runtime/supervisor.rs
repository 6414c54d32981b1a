//! Reports to systemd that the process has started, and then that its main loop turns.
//!
//! systemd sets the variables `NOTIFY_SOCKET` and `WATCHDOG_USEC` for a unit that wants these reports, as
//! `deploy/systemd/steward@.service` does. Without them nothing happens. Other supervisors ask `/startz` and `/healthz`.

use super::engine::wait_for_stop;
use sd_notify::NotifyState;
use std::time::Duration;
use steward_server::http::pulse::LoopPulse;
use tokio::sync::watch;

/// Reports that the process holds its vault. It may still wait for the Temporal server: a supervisor cannot help there.
/// From then on it reports twice in each interval of the watchdog that the main loop turns.
pub(crate) fn report_started(pulse: LoopPulse, stop: watch::Receiver<bool>) {
    report(NotifyState::Ready);
    if let Some(interval) = sd_notify::watchdog_enabled() {
        tokio::spawn(report_while_alive(interval / 2, stop, move || pulse.is_alive(), report));
    }
}

/// Reports while `is_alive`. A process whose loop hangs is silent, so systemd restarts it.
async fn report_while_alive(
    every: Duration,
    mut stop: watch::Receiver<bool>,
    is_alive: impl Fn() -> bool,
    report: impl Fn(NotifyState<'static>),
) {
    let mut clock = tokio::time::interval(every);
    loop {
        tokio::select! {
            () = wait_for_stop(&mut stop) => return report(NotifyState::Stopping),
            _ = clock.tick() => {}
        }
        if is_alive() {
            report(NotifyState::Watchdog);
        }
    }
}

fn report(state: NotifyState<'_>) {
    // Without systemd there is no socket, which is no error.
    if let Err(e) = sd_notify::notify(&[state]) {
        tracing::warn!("systemd cannot be notified: {e}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::cell::RefCell;

    #[tokio::test]
    async fn a_loop_that_hangs_is_not_reported_as_alive() {
        let (reports, turns, (raise, stop)) = (RefCell::new(Vec::new()), Cell::new(0), watch::channel(false));
        // It turns twice, hangs for two intervals, and turns again; then the process ends.
        let is_alive = || {
            turns.set(turns.get() + 1);
            if turns.get() == 5 {
                raise.send_replace(true);
            }
            !matches!(turns.get(), 3 | 4)
        };
        let report = |state: NotifyState<'static>| reports.borrow_mut().push(state.to_string());
        report_while_alive(Duration::from_millis(1), stop, is_alive, report).await;
        assert_eq!(*reports.borrow(), ["WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1", "STOPPING=1"]);
        assert_eq!(turns.get(), 5);
    }
}

//! Reports to systemd that the process has started, and then that its main loop turns.
//!
//! systemd sets the variables `NOTIFY_SOCKET` and `WATCHDOG_USEC` for a unit that wants these reports, as
//! `deploy/systemd/steward@.service` does. Without them nothing happens. Other supervisors ask `/startz` and `/healthz`.

use super::engine::wait_for_stop;
use sd_notify::NotifyState;
use steward_server::http::pulse::LoopPulse;
use tokio::sync::watch;

/// Reports that the process has reached Temporal and listens. While the main loop turns, it reports that too, twice in
/// each interval that systemd waits for. A process whose loop hangs is silent, so systemd restarts it.
pub(crate) fn report_started(pulse: LoopPulse, mut stop: watch::Receiver<bool>) {
    report(NotifyState::Ready);
    let Some(interval) = sd_notify::watchdog_enabled() else { return };
    tokio::spawn(async move {
        let mut clock = tokio::time::interval(interval / 2);
        loop {
            tokio::select! {
                () = wait_for_stop(&mut stop) => return report(NotifyState::Stopping),
                _ = clock.tick() => {}
            }
            if pulse.is_alive() {
                report(NotifyState::Watchdog);
            }
        }
    });
}

fn report(state: NotifyState<'_>) {
    // Without systemd there is no socket, which is no error.
    if let Err(e) = sd_notify::notify(&[state]) {
        tracing::warn!("systemd cannot be notified: {e}");
    }
}

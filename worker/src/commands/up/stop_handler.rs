//! Ends a process that is asked to end.
//!
//! Ctrl-C and SIGTERM raise the same flag. What is under way ends by itself when it sees the flag.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Raises the stop flag on Ctrl-C (SIGINT) and on SIGTERM, from now on.
pub(crate) fn install_stop_handler(raise: watch::Sender<bool>) -> anyhow::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        raise.send_replace(true);
    });
    Ok(())
}

//! `steward mcp serve --up`: holds the vault beside other work of the same process.
//!
//! Nothing is printed to standard output, which belongs to the work. If another process holds the vault, the work goes on alone.

use super::{StopSwitch, hold_vault, install_stop_handler, run_unless_stopped};
use crate::cli::output::CommandOutput;
use crate::config::StewardConfig;
use tokio::sync::watch;

/// Runs everything the vault needs beside `work`, and ends with it. If that fails, as when another process holds the vault, `work` goes on alone.
/// Returns `None` if the process was asked to end before.
pub(crate) async fn run_beside<T>(config: &StewardConfig, work: impl Future<Output = T>) -> anyhow::Result<Option<T>> {
    let (ask_to_end, asked_to_end) = watch::channel(false);
    install_stop_handler(ask_to_end)?;
    let telemetry = crate::telemetry::init_telemetry(true)?;
    let (raise, stop) = watch::channel(false);
    let end = raise.clone();
    let holding = async {
        let up = crate::cli::UpArgs { once: false, tick_now: false, no_login_link: true };
        // Standard output belongs to the work: with `json`, nothing is printed.
        let out = CommandOutput { json: true };
        if let Err(e) = hold_vault(config, &up, &telemetry, StopSwitch { raise, stop }, out).await {
            tracing::warn!("this process does not hold the vault: {e:#}");
        }
    };
    let working = async {
        let done = run_unless_stopped(&asked_to_end, work).await;
        end.send_replace(true);
        done
    };
    let ((), done) = tokio::join!(holding, working);
    telemetry.shutdown().await;
    Ok(done)
}

//! The command `steward serve`: the dashboard and the control API, beside a worker that holds the vault.
//!
//! It reads the index that the worker updates, and asks Temporal. It takes no lock and runs no activity. It writes its
//! address into a file of its own, so that commands find it. The configuration is read once, at the start. If another
//! file replaces the index, the process ends, so that it shows nothing outdated.

use super::ReadOnlyVault;
use crate::cli::output::{CommandExit, CommandOutput, format_causes};
use crate::config::StewardConfig;
use crate::registrar::desired;
use crate::runtime::engine::open_ledger;
use crate::runtime::web::{self, WebInterface};
use crate::temporal::{self, note};
use anyhow::bail;
use std::sync::Arc;
use std::time::Duration;
use steward_server::http::pulse::LoopPulse;
use steward_vault::index::{Index, IndexFileStatus};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// How often it is checked whether the index was replaced: 500 ms.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// How often the moves of notes are read again: 10 s.
const MOVES_INTERVAL: Duration = Duration::from_secs(10);

pub(crate) async fn run(config: &StewardConfig, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let (raise, stop) = watch::channel(false);
    super::up::install_stop_handler(raise.clone())?;
    let telemetry = crate::telemetry::init_telemetry(true)?;
    super::up::log_warnings(config);
    let serving = web::bind_listener(config, stop.clone()).await?;
    let address = serving.address;
    let connecting = async {
        Ok((
            temporal::connect_patiently(config, || telemetry.create_client_plugins()).await?,
            super::open_for_server(config).await?,
        ))
    };
    let connected: Option<anyhow::Result<_>> = super::up::run_unless_stopped(&stop, connecting).await;
    let Some(connected) = connected else { return Ok(CommandExit::Ok) };
    let (client, vault) = connected?;
    let server = temporal::find_server_address(config)?;
    let checked = desired::check_owner_patiently(config, &client, &server);
    let Some(checked) = super::up::run_unless_stopped(&stop, checked).await else { return Ok(CommandExit::Ok) };
    checked?;
    let ReadOnlyVault { root, index, .. } = &vault;
    let state = config.state_dir()?;
    let settings = web::build_dashboard_settings(config, &client.options().namespace, None);
    let ledger = open_ledger(config.caps, root, &state)
        .inspect_err(|e| tracing::warn!("the rate guard cannot be shown: {}", format_causes(e)));
    let ledger = ledger.ok().map(Arc::new);
    let (index_of_web, pulse) = (Arc::new(index.clone()), LoopPulse::default());
    let metrics = telemetry.scraped_metrics();
    let web = WebInterface { client, root: root.clone(), index: index_of_web, ledger, settings, pulse, metrics };
    web.serve_requests(config, &serving, stop)?;
    let listener_record = note::describe_this_listener(config, address).write_locked(&state)?;
    out.print_text(&format!("dashboard  {}\nCtrl-C ends it", web::create_operator_login_link(config, address)?))?;
    // The same flag stops it. If it ends for another reason, it logs that itself.
    let ended = serving.wait_until_ended();
    tokio::pin!(ended);
    let replaced = tokio::select! {
        () = &mut ended => false,
        () = wait_until_replaced(index) => true,
    };
    if replaced {
        raise.send_replace(true);
        ended.await;
    }
    drop(listener_record);
    telemetry.shutdown().await;
    if replaced {
        bail!("another index took the place of the one that is shown: start `steward serve` again");
    }
    Ok(CommandExit::Ok)
}

/// A file that is only away may come back: a vault's folder can be moved. Meanwhile it follows the notes that move, which
/// the process that holds the vault records.
async fn wait_until_replaced(index: &Index) {
    let mut clock = tokio::time::interval(CHECK_INTERVAL);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut moves_clock = tokio::time::interval(MOVES_INTERVAL);
    moves_clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while index.file_status() != IndexFileStatus::Replaced {
        tokio::select! {
            _ = clock.tick() => {}
            _ = moves_clock.tick() => {
                if let Err(e) = index.load_note_moves().await {
                    tracing::debug!("the moves of notes cannot be read now: {e}");
                }
            }
        }
    }
}

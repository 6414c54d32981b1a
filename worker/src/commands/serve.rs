//! The command `steward serve`: the dashboard and the control API, beside a worker that holds the vault.
//!
//! It reads the index that the worker updates, and asks Temporal. It takes no lock and runs no activity. It writes its
//! address into a file of its own, so that commands find it.

use super::ReadOnlyVault;
use crate::cli::output::{CommandExit, CommandOutput};
use crate::config::StewardConfig;
use crate::registrar::desired;
use crate::runtime::web::{self, RouterReloader};
use crate::temporal::{self, note};
use tokio::sync::watch;

pub(crate) async fn run(config: &StewardConfig, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let (raise, stop) = watch::channel(false);
    super::up::install_stop_handler(raise)?;
    let telemetry = crate::telemetry::init_telemetry()?;
    super::up::log_warnings(config);
    let serving = web::bind_listener(config, stop.clone()).await?;
    let address = serving.address;
    let connecting = async {
        Ok((
            temporal::connect_patiently(config, || telemetry.create_client_plugins()).await?,
            super::open_read_only(config).await?,
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
    let reloader = RouterReloader { config: config.clone(), client, root: root.clone(), address };
    reloader.start_serving(index.clone(), &serving, stop)?;
    let listener_record = note::describe_this_listener(config, address).write_locked(&config.state_dir()?)?;
    out.print_text(&format!("dashboard  {}\nCtrl-C ends it", web::create_operator_login_link(config, address)?))?;
    // The same flag stops it. If it ends for another reason, it logs that itself.
    serving.wait_until_ended().await;
    drop(listener_record);
    telemetry.shutdown().await;
    Ok(CommandExit::Ok)
}

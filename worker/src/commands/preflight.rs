//! The command `steward preflight`: whether this build can continue the runs of a deployment, or recorded histories.
//!
//! It changes nothing: no activity runs, and no schedule is touched. [`crate::preflight`] judges.

use crate::cli::PreflightArgs;
use crate::cli::output::{CommandExit, CommandOutput};
use crate::config::StewardConfig;
use crate::preflight::{Preflight, PreflightReport, PreflightScope, RunReader};
use crate::registrar::desired;
use crate::temporal;
use crate::temporal::note::VaultHolder;
use chrono::Utc;
use steward_vault::files::identity::VaultIdentity;
use steward_vault::files::root::VaultRoot;

/// Checks the histories in files.
pub(crate) async fn check_files(args: &PreflightArgs, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let report = Preflight::new(0)?.check_files(&args.from).await?;
    let histories: usize = report.shapes.iter().map(|each| each.open.len()).sum();
    print_report(&report, &format!("{histories} histories in {} shapes", report.shapes.len()), out)
}

/// Checks the runs at the Temporal server.
pub(crate) async fn check_server(
    config: &StewardConfig,
    args: &PreflightArgs,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let client = temporal::connect_client(config, Vec::new()).await?;
    let (owner, queue) = match &config.vault {
        Some(_) => {
            let root = VaultRoot::open(config.vault_folder()?)?;
            let holder = VaultHolder::read(&root, &config.state_dir()?);
            (VaultIdentity::read(&root)?, temporal::read_served_queue(config, &holder))
        }
        None => (None, config.task_queue.clone()),
    };
    let registrar = desired::build_registrar(client.clone(), config, owner, |_| ());
    let reader = RunReader::new(client, registrar, &queue);
    let scope = PreflightScope { closed: args.closed, hours: args.hours, max: args.max };
    let report = Preflight::new(args.closed)?.check_server(&reader, scope, Utc::now()).await?;
    let heading = format!(
        "{} runs are open, {} of them not begun. {} ended in the last {} h; the newest {} of each shape were replayed, \
         {} in all.",
        report.open, report.not_begun, report.closed, scope.hours, scope.closed, report.closed_replayed
    );
    print_report(&report, &heading, out)
}

fn print_report(report: &PreflightReport, heading: &str, out: CommandOutput) -> anyhow::Result<CommandExit> {
    out.print_value(report, || report.describe(heading))?;
    Ok(match (report.is_safe(), report.not_checked.is_empty()) {
        (true, true) => CommandExit::Ok,
        (false, _) => CommandExit::Faults,
        (true, false) => CommandExit::Incomplete,
    })
}

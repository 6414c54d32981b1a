//! The command `steward preflight`: whether this build can continue the runs of a deployment, or recorded histories.
//!
//! It changes nothing: no activity runs, and no schedule is touched. [`crate::preflight`] judges. A tenant's runs are known by
//! their queue, so an operator needs neither its vault nor its machine.

use super::fleet::{connect_as_operator, report_missing_tenant};
use crate::cli::PreflightArgs;
use crate::cli::output::{CommandExit, CommandOutput, format_causes};
use crate::config::StewardConfig;
use crate::preflight::{ALL_SAFE, Preflight, PreflightReport, PreflightScope, RunReader};
use crate::registrar::{ScheduleRegistrar, ScheduleSettings, desired};
use crate::temporal;
use crate::temporal::note::VaultHolder;
use anyhow::Context;
use chrono::Utc;
use serde_json::json;
use steward_domain::fleet::TenantId;
use steward_domain::fleet::names::VaultNames;
use steward_fleet::tenants::TenantState;
use steward_vault::files::identity::VaultIdentity;
use steward_vault::files::root::VaultRoot;

/// Checks histories in files, or the runs of tenants.
pub(crate) async fn run_without_vault(args: &PreflightArgs, out: CommandOutput) -> anyhow::Result<CommandExit> {
    if args.from.is_empty() { check_tenants(args, out).await } else { check_files(args, out).await }
}

async fn check_files(args: &PreflightArgs, out: CommandOutput) -> anyhow::Result<CommandExit> {
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
    let report = check_runs(&reader, args).await?;
    print_report(&report, &describe_runs(&report, args), out)
}

/// Checks the runs of a tenant, or of all of them, one after the other.
///
/// # Errors
/// There is no such tenant, or the database or the Temporal server does not answer.
async fn check_tenants(args: &PreflightArgs, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let rows = connect_as_operator().await?.list_tenants(args.tenant.as_ref()).await?;
    let tenants: Vec<TenantId> =
        rows.into_iter().filter(|row| row.state != TenantState::Dropped).map(|row| row.id).collect();
    if let (true, Some(tenant)) = (tenants.is_empty(), &args.tenant) {
        return Err(report_missing_tenant(tenant));
    }
    let client = temporal::connect_configured().await?;
    let mut reports = Vec::new();
    for tenant in tenants {
        let names = VaultNames::new(Some(tenant.clone()));
        let queue = names.tenant_queue().context("a tenant has a queue")?;
        let settings = ScheduleSettings { names, task_queue: queue.clone(), ..ScheduleSettings::default() };
        let reader = RunReader::new(client.clone(), ScheduleRegistrar::new(client.clone(), settings), &queue);
        // What cannot be looked at for one tenant must not hide what would break at another.
        let report = check_runs(&reader, args).await.unwrap_or_else(|e| PreflightReport::new_unread(format_causes(&e)));
        reports.push((tenant, report));
    }
    out.print_value(
        &reports.iter().map(|(tenant, report)| json!({"tenant": tenant, "report": report})).collect::<Vec<_>>(),
        || describe_tenants(&reports, args),
    )?;
    Ok(choose_exit(reports.iter().map(|(_, report)| report)))
}

/// A line for each tenant whose runs this build can continue, and everything about the others.
fn describe_tenants(reports: &[(TenantId, PreflightReport)], args: &PreflightArgs) -> String {
    let describe = |(tenant, report): &(TenantId, PreflightReport)| {
        let heading = format!("{tenant}: {}", describe_runs(report, args));
        match report.is_safe() && report.not_checked.is_empty() {
            true => format!("{heading} {ALL_SAFE}"),
            false => report.describe(&heading),
        }
    };
    match reports.is_empty() {
        true => "there is no tenant yet".to_owned(),
        false => reports.iter().map(describe).collect::<Vec<_>>().join("\n"),
    }
}

async fn check_runs(reader: &RunReader, args: &PreflightArgs) -> anyhow::Result<PreflightReport> {
    let scope = PreflightScope { closed: args.closed, hours: args.hours, max: args.max };
    Preflight::new(args.closed)?.check_server(reader, scope, Utc::now()).await
}

fn describe_runs(report: &PreflightReport, args: &PreflightArgs) -> String {
    format!(
        "{} runs are open, {} of them not begun. {} ended in the last {} h; the newest {} of each shape were replayed, \
         {} in all.",
        report.open, report.not_begun, report.closed, args.hours, args.closed, report.closed_replayed
    )
}

fn print_report(report: &PreflightReport, heading: &str, out: CommandOutput) -> anyhow::Result<CommandExit> {
    out.print_value(report, || report.describe(heading))?;
    Ok(choose_exit([report].into_iter()))
}

/// A break anywhere counts more than something that could not be looked at.
fn choose_exit<'a>(reports: impl Iterator<Item = &'a PreflightReport>) -> CommandExit {
    reports.fold(CommandExit::Ok, |exit, report| match (exit, report.is_safe(), report.not_checked.is_empty()) {
        (CommandExit::Faults, _, _) | (_, false, _) => CommandExit::Faults,
        (_, true, false) => CommandExit::Incomplete,
        (exit, true, true) => exit,
    })
}

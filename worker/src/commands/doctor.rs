//! The command `steward doctor`: finds problems and prints the fix for each.
//!
//! Each check prints one line: `ok`, a `note` that needs nothing, or `WRONG` with the problem and its fix. If no process
//! holds the vault, the command takes the lock for a moment, which settles what a crash left half done. It changes
//! nothing else, unless an operator accepts the loss of the ledger or lifts a back-off.

mod call_log;
mod disks;
mod findings;
mod mapping;
mod records;
mod server;
mod wikis;

use crate::cli::DoctorArgs;
use crate::cli::output::{CommandExit, CommandOutput, format_causes};
use crate::cli::style::TextStyle;
use crate::commands::open_index;
use crate::config::StewardConfig;
use crate::runtime::engine;
use crate::temporal;
use crate::temporal::note::{HolderRecord, VaultHolder};
use crate::temporal::server::find_cli;
use chrono::Utc;
use findings::DoctorFindings;
use std::time::{Duration, Instant, SystemTime};
use steward_activities::tracker::PlaneClient;
use steward_domain::gates::mode::Mode;
use steward_domain::steward::guard::{GuardCap, GuardRefusal};
use steward_domain::time::format_millis;
use steward_server::temporal::service_pause::describe_drain;
use steward_server::views::VaultViews;
use steward_server::views::backup::BackupStatus;
use steward_server::views::drill::NightlyDrillStatus;
use steward_server::views::schedules::registered::compare_schedules;
use steward_vault::action::writer::{LockError, VaultWriter};
use steward_vault::files::identity::VaultIdentity;
use steward_vault::files::operator_log::OperatorEventKind;
use steward_vault::files::root::VaultRoot;
use steward_vault::gates::{drain, stop};
use steward_vault::steward::guard::Ledger;
use temporalio_client::Client;

/// How long a worker may take to read a file that was just written: 3 s.
const READ_PATIENCE: Duration = Duration::from_secs(3);
/// The pause between two comparisons: 200 ms.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

pub(crate) async fn run(
    config: &StewardConfig,
    operator: DoctorArgs,
    out: CommandOutput,
) -> anyhow::Result<CommandExit> {
    let mut findings = DoctorFindings::default();
    for warning in &config.warnings {
        findings.add_fault("configuration", warning.clone());
    }
    let root = config.vault_folder().and_then(|v| Ok(VaultRoot::open(v)?));
    let holder = match &root {
        Ok(root) => VaultHolder::read(root, &config.state_dir()?),
        Err(_) => VaultHolder::Nobody,
    };
    if config.warnings.is_empty() {
        findings.add_ok("configuration", describe_modes(config.policy.mode, &holder));
    }
    match crate::runtime::clerks::describe_configured_clerk(config) {
        Ok(clerk) => findings.add_ok("clerk", clerk),
        Err(e) => findings.add_fault("clerk", format_causes(&e)),
    }
    match find_cli(config) {
        _ if temporal::is_server_configured() => findings.add_ok("temporal cli", "not needed: TEMPORAL_ADDRESS is set"),
        Ok(cli) => findings.add_ok("temporal cli", cli.display().to_string()),
        Err(e) => findings.add_fault("temporal cli", format_causes(&e)),
    }
    let client = server::check_server(config, &holder, &mut findings).await;
    server::check_database_clock(config, &mut findings).await;
    server::check_worker(config, &holder, client.as_ref(), &mut findings).await;
    if let (Ok(root), Some(client), VaultHolder::Runs(record)) = (&root, &client, &holder) {
        check_schedules(config, root, RunningWorker { client, record }, &mut findings).await;
    }
    check_tracker(config, &mut findings).await;
    mapping::check_mapping(&config.mapping, root.as_ref().ok(), &mut findings);
    match root {
        Ok(root) => check_vault(config, root, &holder, operator, &mut findings).await?,
        Err(e) => findings.add_fault("vault", format_causes(&e)),
    }
    out.print_value(&findings.list(), || TextStyle::current().wrap_lines(&findings.describe()))?;
    Ok(if findings.has_faults() { CommandExit::Faults } else { CommandExit::Ok })
}

/// The mode of this command's environment and that of the running process. They differ if the process was started with
/// other variables, and only the latter decides about changes.
fn describe_modes(here: Mode, holder: &VaultHolder) -> String {
    match holder {
        VaultHolder::Runs(record) => {
            format!("this shell: mode {}; the running process: mode {}", here.as_str(), record.policy.mode.as_str())
        }
        VaultHolder::Nobody | VaultHolder::Died(_) | VaultHolder::Silent(_) => {
            format!("this shell: mode {}", here.as_str())
        }
    }
}

/// The process that serves the vault, and a client of its server.
struct RunningWorker<'a> {
    client: &'a Client,
    record: &'a HolderRecord,
}

/// Checks that the schedules are registered. The schedule of a new matter gets some time to be registered.
async fn check_schedules(
    config: &StewardConfig,
    root: &VaultRoot,
    RunningWorker { client, record }: RunningWorker<'_>,
    findings: &mut DoctorFindings,
) {
    let compared = retry_until_clean(true, async || {
        let ours = VaultIdentity::read(root)?.map(|identity| identity.id);
        let expected = VaultViews::new(root.clone(), open_index(config).await?).list_expected_schedules().await?;
        let found = compare_schedules(client, &config.vault_names(), &expected, ours)
            .await
            .map_err(|e| anyhow::anyhow!("failed to {e}"))?;
        Ok(found.describe_fault(record.schedule_check_interval()).into_iter().collect())
    });
    match compared.await.map(|mut faults| faults.pop()) {
        Ok(None) => findings.add_ok("schedules", "all are registered"),
        Ok(Some(fault)) => findings.add_fault("schedules", fault),
        Err(e) => findings.add_fault("schedules", format_causes(&e)),
    }
}

/// Checks that the tracker, if one is configured, can be reached and accepts the key.
async fn check_tracker(config: &StewardConfig, findings: &mut DoctorFindings) {
    let Some(tracker) = &config.tracker else { return };
    let access = match PlaneClient::new(tracker) {
        Ok(plane) => plane.check_access().await,
        Err(e) => Err(e),
    };
    match access {
        Ok(()) => findings.add_ok("tracker", format!("{} accepts the key", tracker.base_url)),
        Err(e) => findings.add_fault("tracker", e),
    }
}

async fn check_vault(
    config: &StewardConfig,
    root: VaultRoot,
    holder: &VaultHolder,
    operator: DoctorArgs,
    findings: &mut DoctorFindings,
) -> anyhow::Result<()> {
    findings.add_ok("vault", root.path().display().to_string());
    let state = config.state_dir()?;
    disks::check_disks(root.path(), &state, findings);
    match VaultWriter::lock(root.clone()) {
        Ok(_) => findings.add_ok("lock", "free"),
        Err(e @ LockError::Held { .. }) => match holder {
            VaultHolder::Runs(record) => {
                findings.add_ok(
                    "lock",
                    format!("held by {} in mode {}", server::describe_process(record), record.policy.mode.as_str()),
                );
            }
            VaultHolder::Nobody | VaultHolder::Died(_) | VaultHolder::Silent(_) => {
                findings.add_fault("lock", e.to_string())
            }
        },
        Err(e) => findings.add_fault("lock", e.to_string()),
    }
    if let Some(stop) = stop::read_stop(&root) {
        let reason = stop.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        let found = format!("stopped by {} at {}{reason}: `steward resume` ends the stop", stop.by, stop.at);
        findings.add_fault("stop", found);
    } else {
        findings.add_ok("stop", "not stopped");
    }
    match drain::read_drain(&root) {
        Some(drain) if drain.is_forgotten(Utc::now()) => findings.add_fault("drain", describe_drain(&drain)),
        Some(drain) => findings.add_note("drain", describe_drain(&drain)),
        None => {}
    }
    if let VaultHolder::Runs(record) = holder
        && let Some(obstacle) = &record.obstacle
    {
        findings.add_fault("boot check", format!("process {} does not poll yet: {obstacle}", record.pid));
    }
    match BackupStatus::read(holder, Utc::now()) {
        Some(status) if status.late => findings.add_fault("backups", status.describe()),
        Some(status) => findings.add_ok("backups", status.describe()),
        None => {}
    }
    check_local_clock(&root, findings);
    check_ledger(config, &root, operator, findings).await?;
    records::check_records(config, &root, matches!(holder, VaultHolder::Runs(_)), findings).await?;
    wikis::check_guides(&root, &state, findings);
    call_log::check_call_log(&root, findings);
    let seen = crate::fleet::find_seen_chain(config).await;
    match steward_vault::action::chain::verify_chain_beyond(&root, seen.as_ref()) {
        Ok(v) if v.faults.is_empty() => findings.add_ok("audit", super::audit::describe_intact_chain(&v)),
        Ok(v) => findings.add_fault("audit", format!("{}; `steward audit verify` lists all", v.faults.join("; "))),
        Err(e) => findings.add_fault("audit", e.to_string()),
    }
    Ok(())
}

fn check_drill(drill: &NightlyDrillStatus, findings: &mut DoctorFindings) {
    if drill.late {
        findings.add_fault("drill", drill.describe_status());
    } else {
        findings.add_ok("drill", drill.describe_status());
    }
}

/// Repeats a check until it finds no fault, for at most [`READ_PATIENCE`]. If no worker serves the vault, it runs once.
///
/// A worker gets this time to read a file that was written a moment ago.
async fn retry_until_clean<T>(
    served: bool,
    find_faults: impl AsyncFn() -> anyhow::Result<Vec<T>>,
) -> anyhow::Result<Vec<T>> {
    let begun = Instant::now();
    loop {
        let found = find_faults().await?;
        if found.is_empty() || !served || begun.elapsed() > READ_PATIENCE {
            return Ok(found);
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

async fn check_ledger(
    config: &StewardConfig,
    root: &VaultRoot,
    operator: DoctorArgs,
    findings: &mut DoctorFindings,
) -> anyhow::Result<()> {
    let ledger = match engine::open_ledger(config.caps, root, &config.state_dir()?) {
        Ok(ledger) => ledger,
        Err(e) => {
            findings.add_fault("rate guard", format_causes(&e));
            return Ok(());
        }
    };
    if operator.lift_back_off {
        lift_back_off(config, root, &ledger, findings).await?;
    }
    if operator.accept_ledger_loss
        && let Err(e) = ledger.accept_loss(Utc::now()).await
    {
        findings.add_fault("rate guard", e.to_string());
    }
    let status = ledger.status(Utc::now()).await;
    match (status.refusal, status.ledger) {
        (Some(refusal), None) => findings.add_fault("rate guard", refusal.reason),
        (Some(refusal), Some(_)) => {
            findings.add_note("rate guard", format!("refuses calls for now: {}", refusal.reason))
        }
        (None, _) => findings.add_ok("rate guard", "allows calls"),
    }
    if let Err(e) = crate::fleet::refuse_other_owner(config, root).await {
        findings.add_fault("owner", format_causes(&e));
    }
    match crate::fleet::find_fleet_refusal(config).await {
        // A fault that no time heals.
        Some(GuardRefusal { cap: GuardCap::Gate | GuardCap::Clock, reason, .. }) => findings.add_fault("fleet", reason),
        Some(refusal) => findings.add_note("fleet", format!("refuses calls for now: {}", refusal.reason)),
        None if config.fleet.is_some() => findings.add_ok("fleet", "allows calls"),
        None => {}
    }
    Ok(())
}

/// Ends a provider's back-off early. The operator event is written first, so that the lift is never unrecorded.
async fn lift_back_off(
    config: &StewardConfig,
    root: &VaultRoot,
    ledger: &Ledger,
    findings: &mut DoctorFindings,
) -> anyhow::Result<()> {
    let back_off = ledger.status(Utc::now()).await.ledger.and_then(|held| held.back_off);
    let Some(back_off) = back_off.filter(|back_off| Utc::now() < back_off.until) else {
        findings.add_ok("back-off", "none is active: nothing to lift");
        return Ok(());
    };
    let until = format_millis(back_off.until);
    super::token::record_operator_event(config, root, OperatorEventKind::BackOffLifted, format!("until {until}"))?;
    match ledger.lift_back_off(Utc::now()).await {
        Ok(_) => findings
            .add_ok("back-off", format!("lifted: it would have lasted until {until}; one probe call goes first")),
        Err(e) => findings.add_fault("back-off", e.to_string()),
    }
    Ok(())
}

/// Checks the local clock. If it is behind the newest file, it was set back, or the clock that wrote the file was
/// ahead.
fn check_local_clock(root: &VaultRoot, findings: &mut DoctorFindings) {
    let newest = std::fs::metadata(root.path().join(root.locate_own_folder("event"))).and_then(|m| m.modified()).ok();
    let ahead = newest.and_then(|at| at.duration_since(SystemTime::now()).ok());
    match ahead.filter(|a| i64::try_from(a.as_secs()).unwrap_or(i64::MAX) > server::SKEW.num_seconds()) {
        Some(a) => {
            findings.add_fault("clock", format!("event/ was written {} s in the future: check the clock", a.as_secs()))
        }
        None => findings.add_ok("clock", "not behind the files of the vault"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_a_worker_is_reading_is_no_difference() {
        let checks = std::cell::Cell::new(0);
        let until = |gone_at: u32| {
            checks.set(0);
            let checks = &checks;
            async move || {
                checks.set(checks.get() + 1);
                Ok(if checks.get() < gone_at { vec!["task/rent.md"] } else { Vec::new() })
            }
        };
        assert_eq!(retry_until_clean(true, until(2)).await.unwrap(), Vec::<&str>::new());
        assert_eq!(retry_until_clean(false, until(2)).await.unwrap(), ["task/rent.md"], "no worker will read it");
        assert_eq!(
            retry_until_clean(true, until(u32::MAX)).await.unwrap(),
            ["task/rent.md"],
            "a lasting difference is reported"
        );
    }

    #[test]
    fn a_late_drill_is_a_fault_and_a_punctual_one_is_not() {
        for late in [false, true] {
            let mut findings = DoctorFindings::default();
            check_drill(&NightlyDrillStatus { last: None, late }, &mut findings);
            let found = &findings.list()[0];
            assert_eq!((found.check, found.ok, found.found.contains("every night")), ("drill", !late, late));
        }
    }
}

//! The checks of `steward doctor` that concern the Temporal server, the clocks of servers, and the process that serves the vault.
//!
//! Each check adds a finding and changes nothing. If the server cannot be used, the checks that need it are left out.

use super::DoctorFindings;
use crate::cli::output::format_causes;
use crate::config::StewardConfig;
use crate::registrar::NamespaceConflict;
use crate::registrar::desired;
use crate::temporal::note::{HolderRecord, VaultHolder};
use crate::temporal::ports::{PortChoice, ServerPortChoices};
use crate::temporal::{self, pollers, search_attributes};
use chrono::{TimeDelta, Utc};
use steward_workflows::clerk_queue;
use temporalio_client::{Client, NamespacedClient};
use temporalio_common::protos::temporal::api::enums::v1::TaskQueueType;

/// How far our clock may differ from the times of the vault's files and from the clocks of the servers: 5 s.
pub(super) const SKEW: TimeDelta = TimeDelta::seconds(5);

/// Checks the server and returns a client if it can be used.
pub(super) async fn check_server(
    config: &StewardConfig,
    holder: &VaultHolder,
    findings: &mut DoctorFindings,
) -> Option<Client> {
    if !temporal::is_server_configured() && !matches!(holder, VaultHolder::Runs(_)) {
        let ServerPortChoices { server, ui } = ServerPortChoices::preview(config);
        report_port("port", &server, findings);
        report_port("ui port", &ui, findings);
        return None;
    }
    match temporal::connect_client(config, Vec::new()).await {
        Err(e) => findings.add_fault("temporal", format_causes(&e)),
        Ok(client) if temporal::is_namespace_ready(&client).await => {
            findings.add_ok("temporal", "answers");
            // Other errors concern reading the vault, and the check of the vault reports them.
            if let Err(e) = desired::check_owner(config, &client).await
                && e.is::<NamespaceConflict>()
            {
                findings.add_fault("namespace", format_causes(&e));
            }
            check_server_clock(&client, findings).await;
            check_search_attributes(&client, findings).await;
            return Some(client);
        }
        Ok(_) => {
            findings.add_fault("temporal", "connected, but its schedules cannot be listed: check TEMPORAL_NAMESPACE")
        }
    }
    None
}

/// Checks that people can search the Temporal UI for matters and outcomes. Nothing else needs the attributes.
async fn check_search_attributes(client: &Client, findings: &mut DoctorFindings) {
    let found = match search_attributes::list_missing(client).await {
        Ok(missing) if missing.is_empty() => {
            return findings.add_ok("search", "the Temporal UI finds runs by matter and outcome");
        }
        Ok(missing) => {
            let command = search_attributes::describe_command(&client.namespace(), &missing);
            format!("run `{command}`, then start Steward again")
        }
        Err(status) => format!("the server does not list its search attributes ({})", status.message()),
    };
    findings.add_note("search", format!("the Temporal UI cannot find runs by matter and outcome: {found}"));
}

/// Reports a port that `steward up` will take. Only a port that a person set can be wrong.
fn report_port(check: &'static str, choice: &PortChoice, findings: &mut DoctorFindings) {
    let (preferred, variable) = (choice.setting.preferred_port(), choice.setting.variable);
    match &choice.port {
        Err(e) => findings.add_fault(check, format_causes(e)),
        Ok(_) if preferred == 0 => findings.add_ok(check, format!("any free one, because {variable} is 0")),
        Ok(port) if *port == preferred => findings.add_ok(check, format!("{port} is free")),
        Ok(port) => {
            let why = if choice.setting.is_in_use() { "in use" } else { "set for the other of the two ports" };
            findings.add_note(check, format!("{preferred} is {why}; `steward up` will take {port}"));
        }
    }
}

/// Checks that a process serves the vault and that workers poll its queues.
pub(super) async fn check_worker(
    config: &StewardConfig,
    holder: &VaultHolder,
    client: Option<&Client>,
    findings: &mut DoctorFindings,
) {
    let record = match holder {
        VaultHolder::Nobody => return findings.add_ok("worker", "not running: `steward up` starts it"),
        VaultHolder::Died(record) => {
            return findings.add_fault(
                "worker",
                format!("not running: {} ended unexpectedly; `steward up` starts it again", describe_process(record)),
            );
        }
        VaultHolder::Silent(holder) => {
            return findings.add_fault("worker", format!("{holder} is starting or hangs: check its log"));
        }
        VaultHolder::Runs(record) => record,
    };
    if record.task_queue != config.task_queue {
        let (theirs, ours) = (&record.task_queue, &config.task_queue);
        findings.add_fault(
            "worker",
            format!(
                "{} serves the queue `{theirs}`, but commands here use `{ours}`: set STEWARD_TASK_QUEUE",
                describe_process(record)
            ),
        );
    }
    let Some(client) = client else { return };
    let clerks = clerk_queue(&record.task_queue);
    for (queue, kind) in [(&record.task_queue, TaskQueueType::Workflow), (&clerks, TaskQueueType::Activity)] {
        match pollers::is_queue_polled(client, queue, kind).await {
            Ok(true) => findings.add_ok("worker", format!("serves the queue `{queue}`")),
            Ok(false) => findings.add_fault(
                "worker",
                format!(
                    "no worker polls the queue `{queue}` here: check that TEMPORAL_NAMESPACE is that of {}",
                    describe_process(record)
                ),
            ),
            Err(e) => findings.add_fault("worker", format_causes(&e)),
        }
    }
}

pub(super) fn describe_process(record: &HolderRecord) -> String {
    format!("`steward {}` (process {})", record.command, record.pid)
}

/// Checks the server's clock. Schedules fire by that clock, and tasks fall due by ours.
async fn check_server_clock(client: &Client, findings: &mut DoctorFindings) {
    match temporal::clock::measure_clock_offset(client, Utc::now).await {
        Err(e) => findings.add_fault("server clock", format!("cannot be measured: {}", format_causes(&e))),
        Ok(ahead) => report_clock("server clock", ahead, findings),
    }
}

/// Checks the clock of the fleet's database. Calls are counted by that clock, and none is made if ours differs by 10 s. The
/// check of the fleet reports a database that gives no answer.
pub(super) async fn check_database_clock(config: &StewardConfig, findings: &mut DoctorFindings) {
    if let Some(ahead) = crate::fleet::measure_clock_offset(config).await {
        report_clock("database clock", ahead, findings);
    }
}

fn report_clock(check: &'static str, ahead: TimeDelta, findings: &mut DoctorFindings) {
    if ahead.abs() <= SKEW {
        return findings.add_ok(check, "agrees with the local clock");
    }
    let side = if ahead > TimeDelta::zero() { "ahead of" } else { "behind" };
    let seconds = ahead.abs().num_seconds();
    findings.add_fault(
        check,
        format!("{seconds} s {side} the local clock: synchronise both with the same time service (NTP)"),
    );
}

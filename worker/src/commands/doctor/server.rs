//! What `steward doctor` says of the Temporal server, of its clock, and of the process that serves the vault there.
//!
//! Every check adds its finding and changes nothing. A server that cannot be used ends the checks that need it.

use super::Findings;
use crate::config::Config;
use crate::out::causes;
use crate::registrar::NamespaceConflict;
use crate::schedules;
use crate::temporal::note::{Holder, UpNote};
use crate::temporal::ports::PortSetting;
use crate::temporal::{self, pollers};
use chrono::{TimeDelta, Utc};
use steward_workflows::clerk_queue;
use temporalio_client::Client;
use temporalio_common::protos::temporal::api::enums::v1::TaskQueueType;

/// How far our clock may be from the vault's files and from the server's clock: 5 s.
pub(super) const SKEW: TimeDelta = TimeDelta::seconds(5);

/// The server, if it can be used.
pub(super) async fn check_server(config: &Config, holder: &Holder, findings: &mut Findings) -> Option<Client> {
    if !temporal::is_named() && !matches!(holder, Holder::Runs(_)) {
        for (name, setting) in [("port", PortSetting::server(config)), ("ui port", PortSetting::ui(config))] {
            let (port, key) = (setting.wanted(), setting.variable);
            if temporal::is_taken(port) && setting.is_set() {
                findings.wrong(name, format!("{port} is taken: set {key} to a free port, or unset it"));
            } else if temporal::is_taken(port) {
                findings
                    .ok(name, format!("{port} is taken; `steward up` takes the next free one, or the one in {key}"));
            } else {
                findings.ok(name, format!("{port} is free"));
            }
        }
        return None;
    }
    match temporal::connect(config, Vec::new()).await {
        Err(e) => findings.wrong("temporal", causes(&e)),
        Ok(client) if temporal::answers(&client).await => {
            findings.ok("temporal", "answers");
            // What else keeps the vault from being read is said where the vault is checked.
            if let Err(e) = schedules::check_owner(config, &client).await
                && e.is::<NamespaceConflict>()
            {
                findings.wrong("namespace", causes(&e));
            }
            check_clock(&client, findings).await;
            return Some(client);
        }
        Ok(_) => findings.wrong("temporal", "connected, but its schedules cannot be listed: check TEMPORAL_NAMESPACE"),
    }
    None
}

/// Whether anybody would take a tick.
pub(super) async fn check_worker(config: &Config, holder: &Holder, client: Option<&Client>, findings: &mut Findings) {
    let note = match holder {
        Holder::Nobody => return findings.ok("worker", "not running: `steward up` starts it"),
        Holder::Died(note) => {
            return findings.wrong(
                "worker",
                format!("not running: {} is gone without a word: `steward up`", describe_process(note)),
            );
        }
        Holder::Silent(holder) => {
            return findings.wrong("worker", format!("{holder} is starting, or hangs: look at its log"));
        }
        Holder::Runs(note) => note,
    };
    if note.task_queue != config.task_queue {
        let (theirs, ours) = (&note.task_queue, &config.task_queue);
        findings.wrong(
            "worker",
            format!(
                "{} serves the queue `{theirs}`, commands from here ask `{ours}`: set STEWARD_TASK_QUEUE",
                describe_process(note)
            ),
        );
    }
    let Some(client) = client else { return };
    let clerks = clerk_queue(&note.task_queue);
    for (queue, kind) in [(&note.task_queue, TaskQueueType::Workflow), (&clerks, TaskQueueType::Activity)] {
        match pollers::is_polled(client, queue, kind).await {
            Ok(true) => findings.ok("worker", format!("serves the queue `{queue}`")),
            Ok(false) => findings.wrong(
                "worker",
                format!(
                    "nobody serves the queue `{queue}` here: is TEMPORAL_NAMESPACE that of {}?",
                    describe_process(note)
                ),
            ),
            Err(e) => findings.wrong("worker", causes(&e)),
        }
    }
}

pub(super) fn describe_process(note: &UpNote) -> String {
    format!("`steward {}` (process {})", note.command, note.pid)
}

/// Schedules fire by the server's clock, tasks fall due by ours.
async fn check_clock(client: &Client, findings: &mut Findings) {
    match temporal::clock::ahead(client, Utc::now).await {
        Err(e) => findings.wrong("server clock", format!("cannot be told: {}", causes(&e))),
        Ok(ahead) if ahead.abs() <= SKEW => findings.ok("server clock", "agrees with ours"),
        Ok(ahead) => {
            let side = if ahead > TimeDelta::zero() { "ahead of" } else { "behind" };
            let seconds = ahead.abs().num_seconds();
            findings.wrong("server clock", format!("{seconds} s {side} ours: set both by the same time service (NTP)"));
        }
    }
}

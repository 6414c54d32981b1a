//! `steward doctor`: finds what is wrong and says the mend.
//!
//! Each check is a line: ok, or what is wrong and what to do. Where nobody holds the vault it takes
//! the lock for a moment, which finishes what a crash left half done; besides that it changes nothing but
//! the loss of the ledger, which an operator may accept.

use crate::config::Config;
use crate::engine;
use crate::out::{Exit, Out, shown};
use crate::temporal::{self, UpNote};
use chrono::{TimeDelta, Utc};
use serde::Serialize;
use std::path::Path;
use std::time::SystemTime;
use steward_vault::brake;
use steward_vault::index::Index;
use steward_vault::keeper::{Keeper, LockError};
use steward_vault::root::Root;
use temporalio_client::Client;

/// How far our clock may be from the vault's files and from the server's clock: 5 s.
const SKEW: TimeDelta = TimeDelta::seconds(5);

#[derive(Serialize)]
struct Finding {
    check: &'static str,
    ok: bool,
    /// What was found; where it is wrong, with the mend.
    found: String,
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn ok(&mut self, check: &'static str, found: impl Into<String>) {
        self.0.push(Finding { check, ok: true, found: found.into() });
    }

    fn wrong(&mut self, check: &'static str, found: impl Into<String>) {
        self.0.push(Finding { check, ok: false, found: found.into() });
    }
}

pub(crate) async fn run(config: &Config, accept_ledger_loss: bool, out: Out) -> anyhow::Result<Exit> {
    let mut findings = Findings::default();
    for warning in &config.warnings {
        findings.wrong("configuration", warning.clone());
    }
    if config.warnings.is_empty() {
        findings.ok("configuration", format!("mode {}", config.policy.mode.word()));
    }
    match temporal::find_cli(config) {
        _ if temporal::is_named() => findings.ok("temporal cli", "not needed: TEMPORAL_ADDRESS is set"),
        Ok(cli) => findings.ok("temporal cli", cli.display().to_string()),
        Err(e) => findings.wrong("temporal cli", format!("{e:#}")),
    }
    server(config, &mut findings).await;
    match config.vault().and_then(|v| Ok(Root::open(v)?)) {
        Ok(root) => vault(config, root, accept_ledger_loss, &mut findings).await?,
        Err(e) => findings.wrong("vault", format!("{e:#}")),
    }
    let faults = findings.0.iter().any(|f| !f.ok);
    out.value(&findings.0, || {
        let line =
            |f: &Finding| format!("{} {:<14} {}", if f.ok { "ok   " } else { "WRONG" }, f.check, shown(&f.found));
        findings.0.iter().map(line).collect::<Vec<_>>().join("\n")
    })?;
    Ok(if faults { Exit::Faults } else { Exit::Ok })
}

async fn server(config: &Config, findings: &mut Findings) {
    let running = config.state_dir().ok().and_then(|dir| UpNote::read(&dir));
    if !temporal::is_named() && running.is_none() {
        for (name, port) in [("port", config.temporal_port), ("ui port", config.temporal_ui_port)] {
            if temporal::is_taken(port) {
                let key = if name == "port" { "STEWARD_TEMPORAL_PORT" } else { "STEWARD_TEMPORAL_UI_PORT" };
                findings.wrong(name, format!("{port} is taken: `steward up` takes the next free one, or set {key}"));
            } else {
                findings.ok(name, format!("{port} is free"));
            }
        }
        return;
    }
    match temporal::connect(config, Vec::new()).await {
        Err(e) => findings.wrong("temporal", format!("{e:#}")),
        Ok(client) if temporal::answers(&client).await => {
            findings.ok("temporal", "answers");
            server_clock(&client, findings).await;
        }
        Ok(_) => findings.wrong("temporal", "connected, but its schedules cannot be listed: check TEMPORAL_NAMESPACE"),
    }
}

/// Schedules fire by the server's clock, tasks fall due by ours.
async fn server_clock(client: &Client, findings: &mut Findings) {
    match temporal::clock::ahead(client, Utc::now).await {
        Err(e) => findings.wrong("server clock", format!("cannot be told: {e:#}")),
        Ok(ahead) if ahead.abs() <= SKEW => findings.ok("server clock", "agrees with ours"),
        Ok(ahead) => {
            let side = if ahead > TimeDelta::zero() { "ahead of" } else { "behind" };
            let seconds = ahead.abs().num_seconds();
            findings.wrong("server clock", format!("{seconds} s {side} ours: set both by the same time service (NTP)"));
        }
    }
}

async fn vault(config: &Config, root: Root, accept_loss: bool, findings: &mut Findings) -> anyhow::Result<()> {
    findings.ok("vault", root.path().display().to_string());
    match Keeper::lock(root.clone()) {
        Ok(_) => findings.ok("lock", "free"),
        Err(e @ LockError::Held { .. }) => match UpNote::read(&config.state_dir()?) {
            Some(up) => findings.ok("lock", format!("held by `steward up`, process {}", up.pid)),
            None => findings.wrong("lock", e.to_string()),
        },
        Err(e) => findings.wrong("lock", e.to_string()),
    }
    if let Some(stop) = brake::read(&root) {
        findings.wrong("brake", format!("stopped by {} at {}: `steward resume`", stop.by, stop.at));
    } else {
        findings.ok("brake", "running");
    }
    clock(&root, findings);
    let state = config.state_dir()?;
    ledger(config, &root, &state, accept_loss, findings).await;
    match Index::open(&state).await {
        Err(e) => findings.wrong("index", e.to_string()),
        Ok(index) => self::index(&index, &root, findings).await?,
    }
    match steward_vault::chain::verify(&root) {
        Ok(v) if v.faults.is_empty() => findings.ok("audit", format!("{} records, the chain is whole", v.records)),
        Ok(v) => findings.wrong("audit", format!("{}; `steward audit verify` lists all", v.faults.join("; "))),
        Err(e) => findings.wrong("audit", e.to_string()),
    }
    Ok(())
}

async fn index(index: &Index, root: &Root, findings: &mut Findings) -> anyhow::Result<()> {
    if !index.is_filled() {
        findings.ok("index", "not made yet: `steward up` makes it");
        return Ok(());
    }
    let differences = index.check(root).await?;
    if differences.is_empty() {
        findings.ok("index", "agrees with every file");
    } else {
        let what = format!(
            "{} files differ: they are read again within a minute while a worker runs, or \
            `steward index rebuild`",
            differences.len()
        );
        findings.wrong("index", what);
    }
    for problem in index.problems().await? {
        findings.wrong("record", format!("{}: {}", problem.path, problem.message));
    }
    Ok(())
}

async fn ledger(config: &Config, root: &Root, state: &Path, accept: bool, findings: &mut Findings) {
    let ledger = match engine::open_ledger(config, root, state) {
        Ok(ledger) => ledger,
        Err(e) => return findings.wrong("rate guard", format!("{e:#}")),
    };
    if accept && let Err(e) = ledger.accept_loss(Utc::now()).await {
        findings.wrong("rate guard", e.to_string());
    }
    let status = ledger.status(Utc::now()).await;
    match (status.refusal, status.ledger) {
        (Some(refusal), None) => findings.wrong("rate guard", refusal.reason),
        (Some(refusal), Some(_)) => findings.ok("rate guard", format!("refuses for now: {}", refusal.reason)),
        (None, _) => findings.ok("rate guard", "has room"),
    }
}

/// A clock that stands before files which are already there was set back, or theirs was ahead.
fn clock(root: &Root, findings: &mut Findings) {
    let newest = std::fs::metadata(root.path().join("event")).and_then(|m| m.modified()).ok();
    let ahead = newest.and_then(|at| at.duration_since(SystemTime::now()).ok());
    match ahead.filter(|a| i64::try_from(a.as_secs()).unwrap_or(i64::MAX) > SKEW.num_seconds()) {
        Some(a) => {
            findings.wrong("clock", format!("event/ was written {} s in the future: check the clock", a.as_secs()))
        }
        None => findings.ok("clock", "not behind the vault's files"),
    }
}

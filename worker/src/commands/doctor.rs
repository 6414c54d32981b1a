//! `steward doctor`: finds what is wrong and says the mend.
//!
//! Each check is a line: ok, or what is wrong and what to do. Where nobody holds the vault it takes
//! the lock for a moment, which finishes what a crash left half done; besides that it changes nothing but
//! the loss of the ledger, which an operator may accept.

mod server;

use crate::cli::Doctor;
use crate::config::Config;
use crate::engine;
use crate::out::{Exit, Out, causes, shown};
use crate::temporal;
use crate::temporal::note::{Holder, UpNote};
use crate::temporal::server::find_cli;
use chrono::Utc;
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};
use steward_activities::tracker::Plane;
use steward_domain::time::format_millis;
use steward_server::facts::drilled::Drilled;
use steward_server::facts::schedules::registered::{compare, expected_ids};
use steward_vault::brake;
use steward_vault::guard::Ledger;
use steward_vault::identity::VaultIdentity;
use steward_vault::index::Index;
use steward_vault::keeper::{LockError, VaultWriter};
use steward_vault::operator::OperatorEventKind;
use steward_vault::root::VaultRoot;
use temporalio_client::Client;

/// How long a worker may take to read a file that was just written: 3 s.
const READING: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(200);

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
        self.say(check, true, found);
    }

    fn wrong(&mut self, check: &'static str, found: impl Into<String>) {
        self.say(check, false, found);
    }

    fn say(&mut self, check: &'static str, ok: bool, found: impl Into<String>) {
        self.0.push(Finding { check, ok, found: found.into() });
    }
}

pub(crate) async fn run(config: &Config, operator: Doctor, out: Out) -> anyhow::Result<Exit> {
    let mut findings = Findings::default();
    for warning in &config.warnings {
        findings.wrong("configuration", warning.clone());
    }
    if config.warnings.is_empty() {
        findings.ok("configuration", format!("mode {}", config.policy.mode.as_str()));
    }
    match crate::clerks::described(&config.clerk) {
        Ok(clerk) => findings.ok("clerk", clerk),
        Err(e) => findings.wrong("clerk", causes(&e)),
    }
    match find_cli(config) {
        _ if temporal::is_named() => findings.ok("temporal cli", "not needed: TEMPORAL_ADDRESS is set"),
        Ok(cli) => findings.ok("temporal cli", cli.display().to_string()),
        Err(e) => findings.wrong("temporal cli", causes(&e)),
    }
    let root = config.vault().and_then(|v| Ok(VaultRoot::open(v)?));
    let holder = match &root {
        Ok(root) => Holder::of(root, &config.state_dir()?),
        Err(_) => Holder::Nobody,
    };
    let client = server::check_server(config, &holder, &mut findings).await;
    server::check_worker(config, &holder, client.as_ref(), &mut findings).await;
    if let (Ok(root), Some(client), Holder::Runs(note)) = (&root, &client, &holder) {
        schedules(config, root, Served { client, note }, &mut findings).await;
    }
    tracker(config, &mut findings).await;
    match root {
        Ok(root) => vault(config, (root, &holder), operator, &mut findings).await?,
        Err(e) => findings.wrong("vault", causes(&e)),
    }
    let faults = findings.0.iter().any(|f| !f.ok);
    out.value(&findings.0, || {
        let line =
            |f: &Finding| format!("{} {:<14} {}", if f.ok { "ok   " } else { "WRONG" }, f.check, shown(&f.found));
        findings.0.iter().map(line).collect::<Vec<_>>().join("\n")
    })?;
    Ok(if faults { Exit::Faults } else { Exit::Ok })
}

/// Who serves the vault, and the server that is asked.
struct Served<'a> {
    client: &'a Client,
    note: &'a UpNote,
}

/// Whether the schedules are at the server; one of a matter that was just written gets the time to be registered.
async fn schedules(config: &Config, root: &VaultRoot, Served { client, note }: Served<'_>, findings: &mut Findings) {
    let compared = lasting(true, async || {
        let ours = VaultIdentity::read(root)?.map(|identity| identity.id);
        let expected = expected_ids(&Index::open(&config.state_dir()?).await?).await?;
        let found = compare(client, &expected, ours).await.map_err(|e| anyhow::anyhow!("failed to {e}"))?;
        Ok(found.describe_fault(note.schedule_check_every()).into_iter().collect())
    });
    match compared.await.map(|mut faults| faults.pop()) {
        Ok(None) => findings.ok("schedules", "all are at the server"),
        Ok(Some(fault)) => findings.wrong("schedules", fault),
        Err(e) => findings.wrong("schedules", causes(&e)),
    }
}

/// Whether the tracker can be reached and takes the key, where one is set.
async fn tracker(config: &Config, findings: &mut Findings) {
    let Some(tracker) = &config.tracker else { return };
    let asked = match Plane::new(tracker) {
        Ok(plane) => plane.check().await,
        Err(e) => Err(e),
    };
    match asked {
        Ok(()) => findings.ok("tracker", format!("{} takes the key", tracker.base_url)),
        Err(e) => findings.wrong("tracker", e),
    }
}

async fn vault(
    config: &Config,
    (root, holder): (VaultRoot, &Holder),
    operator: Doctor,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    findings.ok("vault", root.path().display().to_string());
    let state = config.state_dir()?;
    disk("vault disk", root.path(), findings);
    disk("state disk", &state, findings);
    match VaultWriter::lock(root.clone()) {
        Ok(_) => findings.ok("lock", "free"),
        Err(e @ LockError::Held { .. }) => match holder {
            Holder::Runs(note) => {
                findings.ok(
                    "lock",
                    format!("held by {} in mode {}", server::describe_process(note), note.policy.mode.as_str()),
                );
            }
            Holder::Nobody | Holder::Died(_) | Holder::Silent(_) => findings.wrong("lock", e.to_string()),
        },
        Err(e) => findings.wrong("lock", e.to_string()),
    }
    if let Some(stop) = brake::read_stop(&root) {
        let reason = stop.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        findings.wrong("brake", format!("stopped by {} at {}{reason}: `steward resume`", stop.by, stop.at));
    } else {
        findings.ok("brake", "running");
    }
    clock(&root, findings);
    ledger(config, &root, operator, findings).await?;
    match Index::open(&state).await {
        Err(e) => findings.wrong("index", e.to_string()),
        Ok(index) => {
            let served = matches!(holder, Holder::Runs(_));
            self::index(&index, &root, served, findings).await?;
            let drill = Drilled::of(&index, holder, Utc::now()).await?;
            self::drill(&drill, findings);
        }
    }
    match steward_vault::chain::verify_chain(&root) {
        Ok(v) if v.faults.is_empty() => findings.ok("audit", super::audit::whole(&v)),
        Ok(v) => findings.wrong("audit", format!("{}; `steward audit verify` lists all", v.faults.join("; "))),
        Err(e) => findings.wrong("audit", e.to_string()),
    }
    Ok(())
}

/// Whether a folder can be written; one that is not there yet is not made for that.
fn disk(check: &'static str, folder: &Path, findings: &mut Findings) {
    if !folder.exists() {
        return findings.ok(check, format!("{}: not made yet", folder.display()));
    }
    match steward_vault::disk::check_writable(folder) {
        Ok(free) => findings.ok(check, format!("{}: can be written, {free} bytes free", folder.display())),
        Err(e) => findings.wrong(check, e.to_string()),
    }
}

fn drill(drill: &Drilled, findings: &mut Findings) {
    findings.say("drill", !drill.late, drill.told());
}

async fn index(index: &Index, root: &VaultRoot, served: bool, findings: &mut Findings) -> anyhow::Result<()> {
    if !index.is_filled() {
        findings.ok("index", "not made yet: `steward up` makes it");
        return Ok(());
    }
    let differences = lasting(served, async || Ok(index.compare_with_files(root).await?)).await?;
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
    for problem in index.list_problems().await? {
        findings.wrong("record", format!("{}: {}", problem.path, problem.message));
    }
    Ok(())
}

/// What is wrong. Where a worker serves, a file that is written this very moment gets the time to be read.
async fn lasting<T>(served: bool, look: impl AsyncFn() -> anyhow::Result<Vec<T>>) -> anyhow::Result<Vec<T>> {
    let begun = Instant::now();
    loop {
        let found = look().await?;
        if found.is_empty() || !served || begun.elapsed() > READING {
            return Ok(found);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn ledger(config: &Config, root: &VaultRoot, operator: Doctor, findings: &mut Findings) -> anyhow::Result<()> {
    let ledger = match engine::open_ledger(config.caps, root, &config.state_dir()?) {
        Ok(ledger) => ledger,
        Err(e) => {
            findings.wrong("rate guard", causes(&e));
            return Ok(());
        }
    };
    if operator.lift_back_off {
        lift_back_off(config, root, &ledger, findings).await?;
    }
    if operator.accept_ledger_loss
        && let Err(e) = ledger.accept_loss(Utc::now()).await
    {
        findings.wrong("rate guard", e.to_string());
    }
    let status = ledger.status(Utc::now()).await;
    match (status.refusal, status.ledger) {
        (Some(refusal), None) => findings.wrong("rate guard", refusal.reason),
        (Some(refusal), Some(_)) => findings.ok("rate guard", format!("refuses for now: {}", refusal.reason)),
        (None, _) => findings.ok("rate guard", "has room"),
    }
    Ok(())
}

/// It is not done where nobody could read later who did it.
async fn lift_back_off(
    config: &Config,
    root: &VaultRoot,
    ledger: &Ledger,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    let back_off = ledger.status(Utc::now()).await.ledger.and_then(|held| held.back_off);
    let Some(back_off) = back_off.filter(|back_off| Utc::now() < back_off.until) else {
        findings.ok("back-off", "none holds calls up: nothing to lift");
        return Ok(());
    };
    let until = format_millis(back_off.until);
    super::token::write_down(config, root, (OperatorEventKind::BackOffLifted, format!("until {until}")))?;
    match ledger.lift_back_off(Utc::now()).await {
        Ok(_) => findings.ok("back-off", format!("lifted: it would have lasted until {until}; one call goes first")),
        Err(e) => findings.wrong("back-off", e.to_string()),
    }
    Ok(())
}

/// A clock that stands before files which are already there was set back, or theirs was ahead.
fn clock(root: &VaultRoot, findings: &mut Findings) {
    let newest = std::fs::metadata(root.path().join("event")).and_then(|m| m.modified()).ok();
    let ahead = newest.and_then(|at| at.duration_since(SystemTime::now()).ok());
    match ahead.filter(|a| i64::try_from(a.as_secs()).unwrap_or(i64::MAX) > server::SKEW.num_seconds()) {
        Some(a) => {
            findings.wrong("clock", format!("event/ was written {} s in the future: check the clock", a.as_secs()))
        }
        None => findings.ok("clock", "not behind the vault's files"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_being_read_is_no_difference_where_a_worker_serves() {
        let looks = std::cell::Cell::new(0);
        let until = |gone_at: u32| {
            looks.set(0);
            let looks = &looks;
            async move || {
                looks.set(looks.get() + 1);
                Ok(if looks.get() < gone_at { vec!["task/rent.md"] } else { Vec::new() })
            }
        };
        assert_eq!(lasting(true, until(2)).await.unwrap(), Vec::<&str>::new());
        assert_eq!(lasting(false, until(2)).await.unwrap(), ["task/rent.md"], "nobody will read it");
        assert_eq!(lasting(true, until(u32::MAX)).await.unwrap(), ["task/rent.md"], "one that stays is told");
    }

    #[test]
    fn a_drill_that_is_late_is_wrong_and_one_that_is_not_is_fine() {
        for late in [false, true] {
            let mut findings = Findings::default();
            drill(&Drilled { last: None, late }, &mut findings);
            let found = &findings.0[0];
            assert_eq!((found.check, found.ok, found.found.contains("each night")), ("drill", !late, late));
        }
    }
}

//! `steward up` and `steward worker`: everything a vault needs, until told to end.
//!
//! `up` also starts a server when none is named and ends it with itself; `worker` joins a fleet. Both
//! wire [`crate::engine`] and wait; what a tick decides is no business of theirs.

use crate::config::Config;
use crate::engine::{self, Engine, Parts};
use crate::fleet::Crew;
use crate::out::{Exit, Out, shown, table};
use crate::telemetry::Telemetry;
use crate::temporal::{self, DevServer, UpNote};
use anyhow::Context;
use chrono::Utc;
use futures_util::{StreamExt, stream};
use serde::Serialize;
use std::collections::BTreeMap;
use steward_domain::audit::AuditRecord;
use steward_domain::decide::{Gate, GateName};
use steward_domain::path::RecordPath;
use steward_domain::plan::Landing;
use steward_domain::record::State;
use steward_domain::tick::{TaskEnd, TickReport};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

/// Matters ticked at once by `--once` and `--tick-now`: enough to keep two cores busy.
const TICKS_AT_ONCE: usize = 16;

pub(crate) async fn run(config: &Config, up: &crate::cli::Up, out: Out) -> anyhow::Result<Exit> {
    let telemetry = crate::telemetry::init()?;
    warn(config);
    let parts = Parts::open(config).await?;
    let state = config.state_dir()?;
    let server = if temporal::is_named() {
        None
    } else {
        out.say("starting Temporal …")?;
        Some(DevServer::start(config).await?)
    };
    if let Some(server) = &server {
        let (address, ui) = (server.address.clone(), Some(server.ui.clone()));
        let pid = std::process::id();
        let server_pid = Some(server.pid);
        let (task_queue, policy) = (config.task_queue.clone(), config.policy.clone());
        UpNote { address, ui, pid, server_pid, task_queue, policy }.write(&state)?;
    }
    let ended = serve(config, up, parts, &telemetry, out).await;
    if let Some(server) = server {
        server.stop().await;
        UpNote::remove(&state);
    }
    telemetry.shutdown().await;
    ended
}

async fn serve(
    config: &Config,
    up: &crate::cli::Up,
    parts: Parts,
    telemetry: &Telemetry,
    out: Out,
) -> anyhow::Result<Exit> {
    let (raise, stop) = watch::channel(false);
    let client = temporal::connect(config, telemetry.plugins()).await?;
    let (crew, mut failures) = engine::crew(config, client, telemetry.runtime_options()?, stop)?;
    let clerk = engine::start_clerk(config, &crew)?;
    let engine = engine::start(config, &crew, parts).await?;
    if !up.once {
        out.say(&super::schedules::describe(&engine.registered))?;
    }
    let served = Served { config, crew: &crew, engine: &engine };
    let ended = stay(&served, up, &mut failures, out).await;
    raise.send_replace(true);
    engine.end().await;
    // A worker that panicked has already said why.
    let _ = tokio::task::spawn_blocking(move || clerk.join()).await;
    ended
}

/// What `up` keeps running.
struct Served<'a> {
    config: &'a Config,
    crew: &'a Crew,
    engine: &'a Engine,
}

async fn stay(
    served: &Served<'_>,
    up: &crate::cli::Up,
    failures: &mut mpsc::UnboundedReceiver<anyhow::Error>,
    out: Out,
) -> anyhow::Result<Exit> {
    if up.once || up.tick_now {
        tokio::select! {
            said = tick_all(served) => {
                let said = said?;
                out.value(&said, || describe(&said))?;
            }
            failed = failures.recv() => return Err(failed.context("the workers are gone")?),
            signal = told_to_end() => return signal,
        }
    }
    if up.once {
        tokio::select! {
            () = served.engine.stamp_all() => return Ok(Exit::Ok),
            signal = told_to_end() => return signal,
        }
    }
    out.say(&whereabouts(served.config)?)?;
    tokio::select! {
        failed = failures.recv() => Err(failed.context("the workers are gone")?),
        signal = told_to_end() => signal,
    }
}

/// Serves a vault when the lock is free, and clerk calls meanwhile.
pub(crate) async fn worker(config: &Config, out: Out) -> anyhow::Result<Exit> {
    let telemetry = crate::telemetry::init()?;
    warn(config);
    let (raise, stop) = watch::channel(false);
    let client = temporal::connect(config, telemetry.plugins()).await?;
    let (crew, mut failures) = engine::crew(config, client, telemetry.runtime_options()?, stop.clone())?;
    let clerk = engine::start_clerk(config, &crew)?;
    out.say("serving clerk calls")?;
    let mut waiting = stop.clone();
    let vault = async {
        if config.vault.is_none() {
            return Ok(None);
        }
        let Some(parts) = Parts::open_in_turn(config, &mut waiting).await? else { return Ok(None) };
        let engine = engine::start(config, &crew, parts).await?;
        out.say(&super::schedules::describe(&engine.registered))?;
        out.say("serving the vault")?;
        anyhow::Ok(Some(engine))
    };
    tokio::pin!(vault);
    let mut engine = None;
    let mut opened = false;
    let ended = loop {
        tokio::select! {
            result = &mut vault, if !opened => {
                opened = true;
                match result {
                    Ok(started) => engine = started,
                    Err(e) => break Err(e),
                }
            }
            failed = failures.recv() => break Err(failed.context("the workers are gone")?),
            signal = told_to_end() => break signal,
        }
    };
    raise.send_replace(true);
    if let Some(engine) = engine {
        engine.end().await;
    }
    // A worker that panicked has already said why.
    let _ = tokio::task::spawn_blocking(move || clerk.join()).await;
    telemetry.shutdown().await;
    ended
}

async fn told_to_end() -> anyhow::Result<Exit> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(Exit::Ok)
}

fn warn(config: &Config) {
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
}

fn whereabouts(config: &Config) -> anyhow::Result<String> {
    let note = UpNote::read(&config.state_dir()?);
    let ui = note.as_ref().and_then(|n| n.ui.clone());
    let namespace = std::env::var("TEMPORAL_NAMESPACE").unwrap_or_else(|_| "default".into());
    let mut lines = vec![format!("vault      {}", config.vault()?.display())];
    if let Some(ui) = ui {
        lines.push(format!("schedules  {ui}/namespaces/{namespace}/schedules"));
    }
    lines.push(format!("records    {}", config.vault()?.join("event").display()));
    lines.push("up; Ctrl-C ends it".into());
    Ok(lines.join("\n"))
}

/// One line of what the stewards said.
#[derive(Serialize)]
struct Said {
    matter: RecordPath,
    task: RecordPath,
    decision: String,
    confidence: f64,
    landing: Option<Landing>,
    /// The change that is made, proposed or only imagined.
    change: Option<String>,
    /// The first gate that is closed besides the mode.
    held_by: Option<String>,
    action: Option<String>,
    reasoning: String,
}

#[derive(Serialize)]
struct Round {
    said: Vec<Said>,
    ticks: usize,
    quiet: u32,
    skipped: BTreeMap<String, u32>,
    errors: Vec<String>,
    undo: Option<String>,
}

async fn tick_all(served: &Served<'_>) -> anyhow::Result<Round> {
    let Served { config, crew, engine } = *served;
    let matters = engine.parts.index.matters(&config.cadence).await?;
    let open: Vec<RecordPath> = matters.into_iter().filter(|m| m.state == Some(State::Open)).map(|m| m.path).collect();
    let reports: Vec<(RecordPath, anyhow::Result<TickReport>)> = stream::iter(open)
        .map(|matter| async move {
            let report = super::tick::look(&crew.client, config, &matter, false).await;
            (matter, report)
        })
        .buffered(TICKS_AT_ONCE)
        .collect()
        .await;
    let mut round = Round {
        said: Vec::new(),
        ticks: reports.len(),
        quiet: 0,
        skipped: BTreeMap::new(),
        errors: Vec::new(),
        undo: None,
    };
    for (matter, report) in reports {
        match report {
            Err(e) => round.errors.push(format!("{matter}: {e:#}")),
            Ok(report) => note(&mut round, engine, &matter, report).await?,
        }
    }
    for problem in engine.parts.index.problems().await? {
        round.errors.push(format!("{}: {}", problem.path, problem.message));
    }
    round.errors.sort();
    round.errors.dedup();
    let live = round.said.iter().find(|s| s.landing == Some(Landing::Live));
    let undo = live.and_then(|s| s.action.as_ref());
    round.undo = undo.map(|id| {
        format!(
            "{} undo {} --vault {}",
            program(),
            &id[..8],
            config.vault().unwrap_or(std::path::Path::new(".")).display()
        )
    });
    Ok(round)
}

fn program() -> String {
    std::env::args().next().unwrap_or_else(|| "steward".into())
}

async fn note(round: &mut Round, engine: &Engine, matter: &RecordPath, report: TickReport) -> anyhow::Result<()> {
    round.quiet += report.quiet;
    for (reason, count) in report.skipped {
        let word = serde_json::to_value(reason)?.as_str().unwrap_or_default().to_owned();
        *round.skipped.entry(word).or_default() += count;
    }
    round.errors.extend(report.errors);
    for task in report.evaluated {
        let said = match task.ended {
            TaskEnd::Decided { decision, confidence, landing, action_id } => {
                let path = super::find(&engine.parts.index, action_id.as_str()).await?;
                let record = super::audit::read(engine.parts.keeper.root(), &path)?;
                Said {
                    matter: matter.clone(),
                    task: task.task,
                    decision: decision.word().to_owned(),
                    confidence,
                    landing: Some(landing),
                    change: change(&record),
                    held_by: held_by(&record),
                    action: Some(action_id.to_string()),
                    reasoning: record.draft.reasoning,
                }
            }
            TaskEnd::RateGuarded { confidence, reason } => {
                unsaid(matter, task.task, "rate_guarded", confidence, reason)
            }
            TaskEnd::ClerkFailed { reason } => unsaid(matter, task.task, "clerk_failed", 0.0, reason),
            TaskEnd::Error { reason } => unsaid(matter, task.task, "error", 0.0, reason),
            TaskEnd::ChangedMeanwhile => unsaid(matter, task.task, "changed_meanwhile", 0.0, String::new()),
            TaskEnd::NoTimeLeft => unsaid(matter, task.task, "no_time_left", 0.0, String::new()),
        };
        round.said.push(said);
    }
    Ok(())
}

fn unsaid(matter: &RecordPath, task: RecordPath, word: &str, confidence: f64, reasoning: String) -> Said {
    Said {
        matter: matter.clone(),
        task,
        decision: word.to_owned(),
        confidence,
        landing: None,
        change: None,
        held_by: None,
        action: None,
        reasoning,
    }
}

fn change(record: &AuditRecord) -> Option<String> {
    let to = record.draft.proposed_state?;
    let from = record.draft.prior_state.as_deref().unwrap_or("(none)");
    Some(format!("{from} → {}", to.word()))
}

fn held_by(record: &AuditRecord) -> Option<String> {
    record.draft.proposed_state?;
    let mode_only = |g: &&Gate| matches!(g.gate, GateName::Mode | GateName::Caller);
    let closed = record.draft.gates.iter().find(|g| !g.open && !mode_only(g));
    match closed {
        Some(gate) => Some(format!("{} {}, needs {}", gate.gate.word(), gate.found, gate.needed)),
        None if record.draft.landing == Landing::Live => None,
        None => Some("only the mode: live would change it".into()),
    }
}

fn describe(round: &Round) -> String {
    let mut rows = table(&["matter", "task", "the steward says", "sure", "change", "landed", "held by", "action"]);
    for said in &round.said {
        rows.add_row(vec![
            said.matter.slug().to_owned(),
            said.task.slug().to_owned(),
            said.decision.clone(),
            format!("{:.2}", said.confidence),
            shown(said.change.as_deref().unwrap_or("")),
            said.landing.map_or("", Landing::word).to_owned(),
            shown(said.held_by.as_deref().unwrap_or("")),
            said.action.as_deref().map_or("", |a| &a[..8]).to_owned(),
        ]);
    }
    let skipped: Vec<String> = round.skipped.iter().map(|(reason, n)| format!("{n} {reason}")).collect();
    let mut lines = vec![
        rows.to_string(),
        format!(
            "{} matters ticked at {}; {} tasks quiet; skipped: {}",
            round.ticks,
            Utc::now().format("%H:%M:%S UTC"),
            round.quiet,
            skipped.join(", ")
        ),
    ];
    lines.extend(round.errors.iter().map(|e| format!("problem    {}", shown(e))));
    if let Some(undo) = &round.undo {
        lines.push(format!("undo one   {undo}"));
    }
    lines.join("\n")
}

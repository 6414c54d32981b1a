//! `steward status`: how everything stands, from the same values the gates use.
//!
//! It reads the configuration, the holder's note, the brake, the ledger and the index and changes no record, so that it
//! can be run at any time beside a worker. Only Temporal is asked anything: whether it has the schedules.

use super::streams::format_duration;
use crate::cli::output::{CommandExit, CommandOutput, escape_text, format_causes};
use crate::config::{ClerkChoice, StewardConfig};
use crate::runtime::engine;
use crate::temporal;
use crate::temporal::note::{
    EffectiveHolderSettings, HolderRecord, ListenerRecord, ServerEndpoint, VaultHolder, read_holder_settings,
};
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::time::Duration;
use steward_domain::gates::mode::{DecisionPolicy, Mode};
use steward_domain::steward::guard::{CallCaps, GuardCap, GuardRefusal, GuardStatus};
use steward_domain::trust::mark::TrustSubject;
use steward_server::views::drill::NightlyDrillStatus;
use steward_server::views::schedules::registered::{ScheduleComparison, compare_schedules, list_expected_ids};
use steward_server::views::tracker::{self, TrackerDebt};
use steward_vault::files::identity::VaultIdentity;
use steward_vault::files::root::{OWN_FOLDER, VaultRoot};
use steward_vault::gates::stop::{self, FleetStop};
use steward_vault::index::{CheckCount, Index, StreamCount, VaultCounts, VaultProblem};

/// How long the Temporal server may take to list the schedules: 5 s.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Serialize)]
struct StatusReport {
    vault: String,
    /// Of the process that runs; of this command's environment where none does.
    policy: DecisionPolicy,
    stop: Option<FleetStop>,
    /// As the policy.
    clerk: ClerkChoice,
    /// The process that holds the vault and said so.
    running: Option<HolderRecord>,
    /// Who listens beside it, as `steward serve` does.
    serving: Vec<ListenerRecord>,
    /// Where gRPC is spoken: the port of the dashboard, of the process that holds the vault if it listens.
    grpc: Option<String>,
    /// The last one that held it, if it ended without a word.
    died: Option<HolderRecord>,
    /// Who holds it without having said so: `process <number>`.
    silent: Option<String>,
    counts: VaultCounts,
    streams: Vec<StreamCount>,
    looks_today: Vec<CheckCount>,
    guard: GuardStatus,
    /// Of the process that runs, compared with what the server lists.
    schedules: Option<StatusSchedules>,
    drill: NightlyDrillStatus,
    tracker: TrackerDebt,
    /// Sources and classes that went back by themselves, and how far they may go.
    lowered: Vec<StatusDemotionRow>,
    problems: Vec<VaultProblem>,
    warnings: Vec<String>,
}

/// Whether the schedules are at the Temporal server.
#[derive(Serialize)]
struct StatusSchedules {
    registered: Option<ScheduleComparison>,
    /// What is wrong, with the fix.
    fault: Option<String>,
}

impl StatusSchedules {
    async fn compare_with_server(config: &StewardConfig, look: &super::ReadOnlyVault, note: &HolderRecord) -> Self {
        let compared = async {
            let ours = VaultIdentity::read(&look.root)?.map(|identity| identity.id);
            let expected = list_expected_ids(&look.index).await?;
            let client = temporal::connect_client(config, Vec::new()).await?;
            compare_schedules(&client, &expected, ours).await.map_err(|e| anyhow::anyhow!("failed to {e}"))
        };
        match tokio::time::timeout(PATIENCE, compared).await {
            Ok(Ok(found)) => {
                Self { fault: found.describe_fault(note.schedule_check_interval()), registered: Some(found) }
            }
            Ok(Err(e)) => Self { registered: None, fault: Some(format_causes(&e)) },
            Err(_) => {
                let fault = format!("the Temporal server gave no answer within {} s", PATIENCE.as_secs());
                Self { registered: None, fault: Some(fault) }
            }
        }
    }

    fn describe(&self) -> String {
        match (&self.fault, &self.registered) {
            (Some(fault), _) => escape_text(fault),
            (None, Some(found)) => format!("all {} are at the server", found.expected),
            (None, None) => "unknown".into(),
        }
    }
}

/// What was undone too often and waits for a human to raise it.
#[derive(Serialize)]
struct StatusDemotionRow {
    subject: TrustSubject,
    /// As the newest record names a source, where that says more than its key. Untrusted.
    name: Option<String>,
    mode: Mode,
    since: DateTime<Utc>,
}

pub(crate) async fn run(config: &StewardConfig, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let look = super::open_read_only(config).await?;
    let (root, index) = (&look.root, &look.index);
    let state = config.state_dir()?;
    let now = Utc::now();
    let holder = VaultHolder::read(root, &state);
    let drill = NightlyDrillStatus::read(index, &holder, now).await?;
    let (running, died, silent) = match holder {
        VaultHolder::Runs(note) => (Some(note), None, None),
        VaultHolder::Died(note) => (None, Some(note), None),
        VaultHolder::Silent(holder) => (None, None, Some(holder)),
        VaultHolder::Nobody => (None, None, None),
    };
    let door = ServerEndpoint::find_for_vault(root, &state);
    let held = running
        .as_ref()
        .map_or_else(|| EffectiveHolderSettings::from_config(config), |up| read_holder_settings(config, up));
    let status = StatusReport {
        vault: root.path().display().to_string(),
        policy: running.as_ref().map_or_else(|| config.policy.clone(), |up| up.policy.clone()),
        stop: stop::read_stop(root),
        clerk: held.clerk,
        grpc: door.map(|door| door.to_url()),
        serving: ListenerRecord::read_all(&state),
        schedules: match &running {
            Some(note) => Some(StatusSchedules::compare_with_server(config, &look, note).await),
            None => None,
        },
        running,
        died,
        silent,
        counts: index.count_records().await?,
        streams: index.list_stream_counts().await?,
        looks_today: index.list_check_counts(now.date_naive()).await?,
        guard: read_guard_status(config, held.caps, root, now).await,
        drill,
        tracker: tracker::read_debt(root, index, held.tracker).await?,
        lowered: list_status_demotions(index).await?,
        problems: index.list_problems().await?,
        warnings: config.warnings.clone(),
    };
    out.print_value(&status, || describe_status(&status))?;
    Ok(CommandExit::Ok)
}

fn describe_status(status: &StatusReport) -> String {
    let counts = &status.counts;
    let mut lines = Vec::new();
    let mut row = |name: &str, value: String| lines.push(format!("{name:<12} {value}"));
    row("vault", status.vault.clone());
    row(
        "mode",
        match &status.stop {
            None => status.policy.mode.as_str().to_owned(),
            Some(stop) => {
                let reason =
                    stop.reason.as_deref().map(|reason| format!(": {}", escape_text(reason))).unwrap_or_default();
                let before = status.policy.mode.as_str();
                format!("stopped by {} at {}{reason} ({before} before)", escape_text(&stop.by), escape_text(&stop.at))
            }
        },
    );
    row(
        "matters",
        format!("{} open, {} done, {} archived", counts.matters.open, counts.matters.done, counts.matters.archived),
    );
    row("tasks", format!("{} open, {} done, {} archived", counts.tasks.open, counts.tasks.done, counts.tasks.archived));
    row("events", describe_events(&status.streams, Utc::now()));
    row("signals", format!("{}, {} new", counts.signals, counts.fresh_signals));
    row("actions", format!("{}, {} waiting for an answer", counts.actions, counts.pending));
    for look in &status.looks_today {
        row("looks today", format!("{} × {}", look.count, escape_text(&look.reason)));
    }
    for stream in &status.streams {
        if let Some(error) = &stream.last_error {
            row(
                "stream",
                format!("{} failed {} times: {}", escape_text(&stream.source), stream.failures, escape_text(error)),
            );
        }
    }
    row("clerk", describe_clerk(&status.clerk));
    row("guard", describe_guard(&status.guard));
    if let Some(schedules) = &status.schedules {
        row("schedules", schedules.describe());
    }
    row("drill", status.drill.describe_status());
    let owed = &status.tracker;
    if owed.base_url.is_some() || owed.owed > 0 {
        let at = owed.base_url.as_deref().map_or_else(|| "none is set".into(), escape_text);
        let error = owed.last_error.as_deref().map(|e| format!("; {}", escape_text(e))).unwrap_or_default();
        row("tracker", format!("{at}, {} owed, {} failed{error}", owed.owed, owed.failed));
    }
    for one in &status.lowered {
        let (told, since) =
            (escape_text(&one.subject.describe(one.name.as_deref())), steward_domain::time::format_seconds(one.since));
        let whose = escape_text(&one.subject.to_string());
        row("lowered", format!("{told} to {} at {since}: `steward trust raise {whose}`", one.mode.as_str()));
    }
    row("running", describe_holder(status));
    for one in &status.serving {
        row("serving", format!("`steward serve`, process {}; dashboard at {}", one.pid, one.door.to_url()));
    }
    lines.extend(status.problems.iter().map(|p| format!("{}: {}", escape_text(&p.path), escape_text(&p.message))));
    lines.extend(status.warnings.iter().map(|w| escape_text(w)));
    lines.join("\n")
}

/// How many wait and for how long, and how many were given up.
fn describe_events(streams: &[StreamCount], now: DateTime<Utc>) -> String {
    let new: u64 = streams.iter().map(|s| s.new).sum();
    let parked: u64 = streams.iter().map(|s| s.parked).sum();
    let oldest = streams.iter().filter_map(|s| s.waits_since).min();
    let waits = oldest.map(|at| format!(", the oldest for {}", format_duration(now - at))).unwrap_or_default();
    format!("{new} waiting{waits}; {parked} parked")
}

async fn list_status_demotions(index: &Index) -> anyhow::Result<Vec<StatusDemotionRow>> {
    let mut lowered = Vec::new();
    for (subject, cap) in index.read_mode_caps().await? {
        let Some(mode) = cap.mode else { continue };
        let name = index.find_subject_name(&subject).await?;
        lowered.push(StatusDemotionRow { subject, name, mode, since: cap.since });
    }
    Ok(lowered)
}

fn describe_holder(status: &StatusReport) -> String {
    match (&status.running, &status.silent, &status.died) {
        (Some(note), ..) => {
            let listen =
                note.server_endpoint().map(|door| format!("; dashboard at {}", door.to_url())).unwrap_or_default();
            format!(
                "`steward {}`, process {} at {}{listen}",
                escape_text(&note.command),
                note.pid,
                escape_text(&note.address)
            )
        }
        (None, Some(holder), _) => format!("{}, which has not said more yet", escape_text(holder)),
        (None, None, Some(note)) => format!(
            "no: `steward {}`, process {}, ended without a word; start it again: `steward up`",
            escape_text(&note.command),
            note.pid
        ),
        (None, None, None) => "no".into(),
    }
}

/// What the rate guard would say; where its ledger cannot be opened it says that.
async fn read_guard_status(
    config: &StewardConfig,
    caps: CallCaps,
    root: &VaultRoot,
    now: DateTime<Utc>,
) -> GuardStatus {
    let unknown = |reason| {
        let refusal = GuardRefusal { cap: GuardCap::LedgerUnreadable, clears_at: None, reason };
        GuardStatus { refusal: Some(refusal), ledger: None }
    };
    if !root.path().join(OWN_FOLDER).exists() {
        return unknown(format!(
            "the vault has no {OWN_FOLDER}/ yet, which marks the count of calls: `steward up` makes it"
        ));
    }
    let opened = config.state_dir().and_then(|state| engine::open_ledger(caps, root, &state));
    match opened {
        Ok(ledger) => ledger.status(now).await,
        Err(e) => unknown(format_causes(&e)),
    }
}

fn describe_clerk(clerk: &ClerkChoice) -> String {
    match clerk {
        ClerkChoice::Rules => clerk.as_str().to_owned(),
        ClerkChoice::Openai(server) | ClerkChoice::Anthropic(server) | ClerkChoice::Ollama(server) => {
            format!("{}, {} at {}", clerk.as_str(), escape_text(&server.model), escape_text(&server.base_url))
        }
    }
}

fn describe_guard(guard: &GuardStatus) -> String {
    let fill = guard.ledger.as_ref().map(|l| {
        format!(
            "{}/{} a minute, {}/{} an hour, {}/{} a day",
            l.minute.used, l.minute.cap, l.hour.used, l.hour.cap, l.day.used, l.day.cap
        )
    });
    match (&guard.refusal, fill) {
        (Some(refusal), Some(fill)) => format!("{fill}; refuses now: {}", escape_text(&refusal.reason)),
        (Some(refusal), None) => format!("refuses: {}", escape_text(&refusal.reason)),
        (None, Some(fill)) => fill,
        (None, None) => "unknown".into(),
    }
}

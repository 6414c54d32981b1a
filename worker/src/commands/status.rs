//! The command `steward status`: the state of the vault, from the same values that the gates use.
//!
//! It reads the configuration, the holder record, the stop file, the ledger and the index. It changes no record, so it
//! can run beside a worker at any time. Only Temporal is asked, for the list of schedules.

mod guard;

use self::guard::{describe_guard, read_guard_status};
use super::streams::format_duration;
use crate::cli::output::{CommandExit, CommandOutput, escape_text, format_causes};
use crate::cli::style::TextStyle;
use crate::config::mapping::{MappingStatus, describe_acceptance, describe_mapping};
use crate::config::{ClerkChoice, StewardConfig};
use crate::temporal;
use crate::temporal::note::{
    EffectiveHolderSettings, HolderRecord, ListenerRecord, ServerEndpoint, VaultHolder, read_holder_settings,
};
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::time::Duration;
use steward_domain::gates::mode::{DecisionPolicy, Mode, ModeName};
use steward_domain::record::plain_text::count_noun;
use steward_domain::steward::guard::GuardStatus;
use steward_domain::time::format_seconds;
use steward_server::temporal::service_pause::read_service_pause;
use steward_server::views::backup::BackupStatus;
use steward_server::views::drill::NightlyDrillStatus;
use steward_server::views::schedules::registered::{ScheduleComparison, compare_schedules};
use steward_server::views::tracker::TrackerDebt;
use steward_server::views::trust::{Demotion, describe_changed_number};
use steward_vault::files::identity::VaultIdentity;
use steward_vault::files::root::VaultRoot;
use steward_vault::gates::stop::{self, VaultStop};
use steward_vault::index::{ChangedNumber, CheckCount, Index, LostNote, StreamCount, VaultCounts, VaultProblem};
use steward_vault::wiki::create::list_wikis;
use steward_vault::wiki::staged::StagedRuns;

/// How long the Temporal server may take to list the schedules: 5 s.
const PATIENCE: Duration = Duration::from_secs(5);
/// Changed numbers that are printed one by one; the newest.
const MAX_CHANGED_NUMBERS: usize = 3;

#[derive(Serialize)]
struct StatusReport {
    vault: String,
    /// The policy of the running process; if none runs, that of this command's environment.
    policy: DecisionPolicy,
    /// The mode in one word or two, with the default ceiling of the same process.
    mode_name: &'static str,
    /// The mode of this command's environment.
    #[serde(skip)]
    shell_mode: Mode,
    stop: Option<VaultStop>,
    /// Why no run begins and no resolution is taken: a drain, or a process that does not poll yet.
    paused: Option<String>,
    /// The clerk of the same process or environment as the policy.
    clerk: ClerkChoice,
    /// The process that holds the vault and wrote a holder record.
    running: Option<HolderRecord>,
    /// Processes that listen without holding the vault, such as `steward serve`.
    serving: Vec<ListenerRecord>,
    /// The address of gRPC, which shares the port of the dashboard.
    grpc: Option<String>,
    /// The last process that held the vault, if it ended unexpectedly.
    died: Option<HolderRecord>,
    /// The process that holds the vault without a holder record: `process <number>`.
    silent: Option<String>,
    counts: VaultCounts,
    streams: Vec<StreamCount>,
    #[serde(rename = "looks_today")]
    checks_today: Vec<CheckCount>,
    guard: GuardStatus,
    /// The comparison with the schedules at the Temporal server; `None` if no process runs.
    schedules: Option<StatusSchedules>,
    drill: NightlyDrillStatus,
    /// `None` if the process makes no backups, or none runs.
    backup: Option<BackupStatus>,
    tracker: TrackerDebt,
    /// Demoted sources and classes, and the mode that each may still use.
    lowered: Vec<Demotion>,
    /// Numbers in instincts that people wrote and calibration changed.
    changed_numbers: Vec<ChangedNumber>,
    problems: Vec<VaultProblem>,
    /// The mapping in force; `None` in a vault without one.
    mapping: Option<StatusMapping>,
    /// Notes that Steward has acted on and misses.
    lost_notes: Vec<LostNote>,
    warnings: Vec<String>,
    wikis: StatusWikis,
}

/// The wikis of the vault.
#[derive(Serialize)]
struct StatusWikis {
    wikis: usize,
    /// Runs that wait for a person.
    waiting_runs: usize,
}

impl StatusWikis {
    /// A folder that cannot be listed counts as nothing: `steward wiki status` says why.
    fn read(root: &VaultRoot) -> Self {
        let runs = StagedRuns::new(root).list().unwrap_or_default();
        Self {
            wikis: list_wikis(root).map(|wikis| wikis.len()).unwrap_or_default(),
            waiting_runs: runs.iter().filter(|run| run.status.waits).count(),
        }
    }
}

/// The mapping in force, and what it leaves out.
#[derive(Serialize)]
struct StatusMapping {
    accepted_at: DateTime<Utc>,
    /// Which notes it reads.
    reads: String,
    /// Where `[map]` in the vault differs from the accepted mapping.
    differences: Vec<String>,
    /// The number of notes that are left out, by the reason.
    left_out: Vec<(String, u64)>,
    /// Tasks whose due date cannot be read.
    unreadable_due: u64,
}

impl StatusMapping {
    async fn read(config: &StewardConfig, index: &Index) -> anyhow::Result<Option<Self>> {
        let MappingStatus::InForce(found) = &config.mapping else { return Ok(None) };
        Ok(Some(Self {
            accepted_at: found.accepted.accepted_at,
            reads: describe_mapping(&found.accepted.mapping),
            differences: found.differences.clone(),
            left_out: index.count_excluded_notes().await?,
            unreadable_due: index.count_unreadable_due_dates().await?,
        }))
    }

    fn describe(&self) -> String {
        let mut text = format!("accepted {}: {}", format_seconds(self.accepted_at), escape_text(&self.reads));
        let total: u64 = self.left_out.iter().map(|(_, count)| count).sum();
        if total > 0 {
            let reasons: Vec<String> = self.left_out.iter().map(|(why, count)| format!("{count} {why}")).collect();
            text.push_str(&format!(
                "; {total} notes are left out ({}), `steward doctor` lists them",
                reasons.join(", ")
            ));
        }
        if self.unreadable_due > 0 {
            text.push_str(&format!("; {} due dates cannot be read", self.unreadable_due));
        }
        text
    }
}

/// Whether the schedules are registered at the Temporal server.
#[derive(Serialize)]
struct StatusSchedules {
    registered: Option<ScheduleComparison>,
    /// What is wrong, with the fix.
    fault: Option<String>,
}

impl StatusSchedules {
    async fn compare_with_server(config: &StewardConfig, vault: &super::ReadOnlyVault, holder: &HolderRecord) -> Self {
        let compared = async {
            let ours = VaultIdentity::read(&vault.root)?.map(|identity| identity.id);
            let expected = vault.views.list_expected_schedules().await?;
            let client = temporal::connect_client(config, Vec::new()).await?;
            compare_schedules(&client, &config.vault_names(), &expected, ours)
                .await
                .map_err(|e| anyhow::anyhow!("failed to {e}"))
        };
        match tokio::time::timeout(PATIENCE, compared).await {
            Ok(Ok(found)) => {
                Self { fault: found.describe_fault(holder.schedule_check_interval()), registered: Some(found) }
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
            (None, Some(found)) => format!("all {} are registered", found.expected),
            (None, None) => "unknown".into(),
        }
    }
}

pub(crate) async fn run(config: &StewardConfig, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let vault = super::open_read_only(config).await?;
    let (root, index) = (&vault.root, &vault.index);
    let state = config.state_dir()?;
    let now = Utc::now();
    let holder = VaultHolder::read(root, &state);
    let drill = vault.views.read_drill_status(now).await?;
    let backup = BackupStatus::read(&holder, now);
    let (running, died, silent) = match holder {
        VaultHolder::Runs(note) => (Some(note), None, None),
        VaultHolder::Died(note) => (None, Some(note), None),
        VaultHolder::Silent(holder) => (None, None, Some(holder)),
        VaultHolder::Nobody => (None, None, None),
    };
    let endpoint = ServerEndpoint::find_for_vault(root, &state);
    let effective = running
        .as_ref()
        .map_or_else(|| EffectiveHolderSettings::from_config(config), |up| read_holder_settings(config, up));
    let status = StatusReport {
        wikis: StatusWikis::read(root),
        vault: root.path().display().to_string(),
        policy: running.as_ref().map_or_else(|| config.policy.clone(), |up| up.policy.clone()),
        mode_name: ModeName::from_settings(
            running.as_ref().map_or(config.policy.mode, |up| up.policy.mode),
            running.as_ref().and_then(|up| up.default_ceiling).unwrap_or(config.default_ceiling),
        )
        .as_str(),
        shell_mode: config.policy.mode,
        stop: stop::read_stop(root),
        paused: read_service_pause(root, &state).map(|pause| pause.reason),
        clerk: effective.clerk,
        grpc: endpoint.map(|endpoint| endpoint.to_url()),
        serving: ListenerRecord::read_all(&state),
        schedules: match &running {
            Some(holder) => Some(StatusSchedules::compare_with_server(config, &vault, holder).await),
            None => None,
        },
        running,
        died,
        silent,
        counts: index.read().count_records(Utc::now()).await?,
        streams: index.signals().list_stream_counts().await?,
        checks_today: index.cursors().list_check_counts(now.date_naive()).await?,
        guard: read_guard_status(config, effective.caps, root, now).await,
        drill,
        backup,
        tracker: vault.views.read_tracker_debt(effective.tracker).await?,
        lowered: vault.views.list_demotions().await?,
        changed_numbers: vault.views.list_changed_numbers(now).await?,
        problems: index.read().list_problems().await?,
        mapping: StatusMapping::read(config, index).await?,
        lost_notes: index.list_lost_notes().await?,
        warnings: config.warnings.clone(),
    };
    out.print_value(&status, || TextStyle::current().wrap_lines(&describe_status(&status)))?;
    Ok(CommandExit::Ok)
}

fn describe_status(status: &StatusReport) -> String {
    let counts = &status.counts;
    let mut lines = Vec::new();
    let mut row = |name: &str, value: String| lines.push(format!("{name:<12} {value}"));
    row("vault", status.vault.clone());
    row("mode", describe_mode(status));
    if let Some(reason) = &status.paused {
        row("paused", escape_text(reason));
    }
    row(
        "matters",
        format!("{} open, {} done, {} archived", counts.matters.open, counts.matters.done, counts.matters.archived),
    );
    row("tasks", format!("{} open, {} done, {} archived", counts.tasks.open, counts.tasks.done, counts.tasks.archived));
    row("events", describe_events(&status.streams, Utc::now()));
    row("signals", format!("{}, {} new", counts.signals, counts.fresh_signals));
    row("actions", format!("{}, {} waiting for you", counts.actions, counts.pending));
    if status.wikis.wikis > 0 {
        let waiting = count_noun(status.wikis.waiting_runs as u64, "run");
        row("wikis", format!("{}, {waiting} waiting for you: `steward wiki runs list`", status.wikis.wikis));
    }
    if let Some(mapping) = &status.mapping {
        row("mapping", mapping.describe());
        for difference in &mapping.differences {
            row("", format!("not accepted: {}", escape_text(difference)));
        }
        if !mapping.differences.is_empty() {
            row("", describe_acceptance(&mapping.differences).into());
        }
    }
    for checks in &status.checks_today {
        row("checks today", format!("{} × {}", checks.count, escape_text(&checks.reason)));
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
    row("rate guard", describe_guard(&status.guard));
    if let Some(schedules) = &status.schedules {
        row("schedules", schedules.describe());
    }
    row("drill", status.drill.describe_status());
    if let Some(backup) = &status.backup {
        row("backups", escape_text(&backup.describe()));
    }
    let owed = &status.tracker;
    if owed.base_url.is_some() || owed.owed > 0 {
        let at = owed.base_url.as_deref().map_or_else(|| "none is configured".into(), escape_text);
        let error = owed.last_error.as_deref().map(|e| format!("; {}", escape_text(e))).unwrap_or_default();
        row("tracker", format!("{at}, {} owed, {} failed{error}", owed.owed, owed.failed));
    }
    for (name, value) in describe_trust_rows(status) {
        row(name, value);
    }
    row("running", describe_holder(status));
    for listener in &status.serving {
        row(
            "serving",
            format!("`steward serve`, process {}; dashboard at {}", listener.pid, listener.endpoint.to_url()),
        );
    }
    lines.extend(status.lost_notes.iter().map(super::moved::describe_lost_note));
    lines.extend(status.problems.iter().map(|p| format!("{}: {}", escape_text(&p.path), escape_text(&p.message))));
    lines.extend(status.warnings.iter().map(|w| escape_text(w)));
    lines.join("\n")
}

/// The rows about demotions and about numbers of a person that calibration changed.
fn describe_trust_rows(status: &StatusReport) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    for demotion in &status.lowered {
        let name = escape_text(&demotion.subject.describe(demotion.name.as_deref()));
        let since = steward_domain::time::format_seconds(demotion.since);
        let subject = escape_text(&demotion.subject.to_string());
        rows.push((
            "demoted",
            format!("{name} to {} at {since}: `steward trust raise {subject}`", demotion.mode.as_str()),
        ));
    }
    for number in status.changed_numbers.iter().take(MAX_CHANGED_NUMBERS) {
        rows.push(("your number", escape_text(&describe_changed_number(number))));
    }
    let more = status.changed_numbers.len().saturating_sub(MAX_CHANGED_NUMBERS);
    if more > 0 {
        rows.push(("", format!("and {more} more that calibration changed: the page Trust lists them")));
    }
    rows
}

/// The mode that decides about changes, and that of this shell if it is another one.
fn describe_mode(status: &StatusReport) -> String {
    let (mode, here) = (status.policy.mode.as_str(), status.shell_mode.as_str());
    let name = status.mode_name;
    let mode = match mode == here {
        true => format!("{name} ({mode})"),
        false => format!("{name} ({mode} in the running process; this shell: {here})"),
    };
    let Some(stop) = &status.stop else { return mode };
    let reason = stop.reason.as_deref().map(|reason| format!(": {}", escape_text(reason))).unwrap_or_default();
    format!("stopped by {} at {}{reason} (otherwise {mode})", escape_text(&stop.by), escape_text(&stop.at))
}

/// How many events wait and for how long, and how many are parked.
fn describe_events(streams: &[StreamCount], now: DateTime<Utc>) -> String {
    let new: u64 = streams.iter().map(|s| s.new).sum();
    let parked: u64 = streams.iter().map(|s| s.parked).sum();
    let oldest = streams.iter().filter_map(|s| s.waits_since).min();
    let waits = oldest.map(|at| format!(", the oldest for {}", format_duration(now - at))).unwrap_or_default();
    format!("{new} waiting{waits}; {parked} parked")
}

fn describe_holder(status: &StatusReport) -> String {
    match (&status.running, &status.silent, &status.died) {
        (Some(holder), ..) => {
            let endpoint = holder.server_endpoint();
            let dashboard =
                endpoint.map(|endpoint| format!("; dashboard at {}", endpoint.to_url())).unwrap_or_default();
            format!(
                "`steward {}`, process {} at {}{dashboard}",
                escape_text(&holder.command),
                holder.pid,
                escape_text(&holder.address)
            )
        }
        (None, Some(process), _) => format!("{}, which is starting or hangs", escape_text(process)),
        (None, None, Some(holder)) => format!(
            "no: `steward {}`, process {}, ended unexpectedly; start it again with `steward up`",
            escape_text(&holder.command),
            holder.pid
        ),
        (None, None, None) => "no".into(),
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

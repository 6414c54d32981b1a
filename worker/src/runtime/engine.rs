//! Starts, connects and stops the parts of the process that holds a vault.
//!
//! It takes the lock, brings the index up to date, registers the schedules and starts the workers. Then four loops run
//! independently: [`listen`] keeps the index up to date, [`wake`] wakes matters, [`routines`] triggers the vault's own
//! schedules, and [`register`] keeps the schedules up to date. None waits for another. The engine must not write into
//! the vault itself: the activities and the vault writer do.

mod backups;
mod listen;
mod parts;
mod place;
mod progress;
mod register;
mod routines;
mod wake;
mod wikis;

pub(crate) use parts::{LEDGER_FILE, OpenedVault, open_ledger};

use self::listen::VaultListener;
use self::register::RegistrationLoop;
use self::routines::RoutineRequests;
use self::wake::{WakeDispatcher, WakeOutcome};
use self::wikis::WikiLoop;
use crate::config::StewardConfig;
use crate::fleet;
use crate::registrar::desired;
use crate::registrar::{SchedulePlan, ScheduleRegistrar, ScheduleTriggerOutcome};
use crate::runtime::sdk_workers::{self, VaultWorkerActivities, WorkerContext, WorkerRole};
use crate::runtime::streams::StreamContext;
use crate::runtime::timestamps::{self, TimestampWriter};
use crate::runtime::web;
use crate::temporal::note;
use crate::temporal::search_attributes;
use crate::temporal::start_retry::retry_unanswered;
use chrono::Utc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use steward_activities::action::resolve::ResolveActivities;
use steward_activities::signals::SignalActivities;
use steward_activities::signals::extract::Extractor;
use steward_activities::steward::judge::ClerkWorker;
use steward_activities::steward::tick::{NewInterval, StewardActivities};
use steward_activities::tracker::{PlaneClient, TrackerDispatcher};
use steward_activities::trust::TrustActivities;
use steward_activities::vault::{VaultContext, VaultSettings};
use steward_activities::wiki::WikiActivities;
use steward_activities::wiki::reader::DocumentReader;
use steward_activities::wiki::writer::WikiWriter;
use steward_domain::gates::mode::Mode;
use steward_domain::record::path::RecordPath;
use steward_domain::steward::tick::RunDisplay;
use steward_fleet::VaultOwnership;
use steward_server::http::pulse::LoopPulse;
use steward_server::temporal::resolve::ResolutionClient;
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::root::{FolderPlacement, VaultRoot};
use steward_vault::gates::{drain, stop};
use steward_vault::index::{Index, SyncReport};
use tokio::sync::{Notify, mpsc, watch as flag};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// A running engine.
pub(crate) struct Engine {
    pub(crate) parts: OpenedVault,
    pub(crate) registered: SchedulePlan,
    /// `None` unless the operator asked for timestamps in files.
    timestamp_writer: Option<TimestampWriter>,
    threads: Vec<JoinHandle<()>>,
    loops: Vec<tokio::task::JoinHandle<()>>,
    /// Notified once, when the waking of matters may begin.
    begin_wakes: Arc<Notify>,
}

/// Starts the worker that serves a vault's workflows and activities, without the loops.
///
/// # Errors
/// When the clerk or the tracker cannot be set up, or the thread cannot start.
pub(crate) fn start_vault_worker(
    config: &StewardConfig,
    context: &WorkerContext,
    parts: &OpenedVault,
    intervals: mpsc::UnboundedSender<NewInterval>,
    display: RunDisplay,
) -> anyhow::Result<JoinHandle<()>> {
    let settings = VaultSettings {
        policy: config.policy.clone(),
        default_ceiling: config.default_ceiling,
        cadence: config.cadence,
        keep_events_days: config.keep_events_days,
        live_per_source_day: config.live_per_source_day,
        reversal_budget: config.reversal_budget,
        display,
    };
    let vault = VaultContext::new(Arc::clone(&parts.writer), Arc::clone(&parts.index), settings)
        .with_ownership(parts.ownership.clone());
    let create_clerk = || crate::runtime::clerks::create_clerk(config, context.key_health.clone());
    let activities = VaultWorkerActivities {
        steward: StewardActivities {
            vault: vault.clone(),
            ledger: Arc::clone(&parts.ledger),
            clerk: Arc::new(create_clerk()?),
            intervals,
        },
        resolve: ResolveActivities { vault: vault.clone() },
        signals: SignalActivities::new(vault.clone()),
        trust: TrustActivities::new(vault.clone()),
        wiki: WikiActivities {
            vault: vault.clone(),
            mode: config.wiki_mode,
            wikis: Arc::clone(&config.wikis),
            reader: DocumentReader::default(),
            writer: WikiWriter {
                clerk: Arc::new(crate::runtime::clerks::create_wiki_clerk(config)?),
                verifier: Arc::new(crate::runtime::clerks::create_wiki_verifier(config)?),
                ledger: Arc::clone(&parts.ledger),
                allows_unverified: config.wiki_allow_unverified,
            },
        },
        extractor: Extractor::new(vault.clone(), Arc::clone(&parts.ledger), create_clerk()?),
        dispatcher: build_tracker_dispatcher(config, &vault)?,
    };
    sdk_workers::start_worker(context, WorkerRole::Vault(Box::new(activities)))
}

/// Starts the workers, the loops and the schedules of a vault.
///
/// `private_server` says whether this process started the Temporal server.
///
/// # Errors
/// The schedules cannot be listed although the server answers, or a thread cannot start.
pub(crate) async fn start_engine(
    config: &StewardConfig,
    context: &WorkerContext,
    parts: OpenedVault,
    private_server: bool,
) -> anyhow::Result<Engine> {
    // The first scan is registered below, or requested when the listener begins.
    let _ = parts.index.cursors().take_changes();
    if config.policy.mode > Mode::Shadow {
        parts.index.cursors().mark_shadow_decisions(Utc::now()).await?;
    }
    let (intervals, new_intervals) = mpsc::unbounded_channel();
    let has_search_attributes = search_attributes::prepare(&context.client, private_server).await;
    let display = RunDisplay { has_search_attributes, dashboard: web::find_dashboard(config, parts.writer.root())? };
    let threads = vec![start_vault_worker(config, context, &parts, intervals, display)?];
    let owner = Some(parts.writer.identity().clone());
    let registrar = desired::build_registrar(context.client.clone(), config, owner, |settings| {
        (settings.private_server, settings.has_search_attributes) = (private_server, has_search_attributes);
    })
    .with_ownership(parts.ownership.clone());
    // Thousands of schedules take minutes. A process that is asked to stop meanwhile leaves the rest to the next one.
    let mut stop = context.stop.clone();
    let (registered, behind) = tokio::select! {
        registered = retry_unanswered("register the schedules", &context.address, async || {
            register_schedules(&registrar, &parts.index, config).await
        }) => registered?,
        () = wait_for_stop(&mut stop) => (SchedulePlan::default(), false),
    };
    let (writer, index) = (Arc::clone(&parts.writer), Arc::clone(&parts.index));
    let is_stopped = build_stop_check(&writer, parts.ownership.clone());
    let returned = Arc::new(Notify::new());
    let registration = Arc::new(RegistrationLoop::new(registrar.clone(), &parts, config.clone(), behind));
    let (routines, dropped, begin_wakes) =
        (RoutineRequests::default(), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let mut loops = routines.spawn_triggers(&registration, config.tracker.is_some(), is_stopped.clone());
    let listener = VaultListener {
        writer: Arc::clone(&writer),
        index: Arc::clone(&index),
        ledger: Arc::clone(&parts.ledger),
        config: config.clone(),
        registration: Arc::clone(&registration),
        routines,
        inbox_changed: Arc::clone(&dropped),
        folder_returned: Arc::clone(&returned),
    };
    loops.extend([
        run_on_own_thread(context.stop.clone(), move || listener.run()),
        run_on_own_thread(context.stop.clone(), {
            let registration = Arc::clone(&registration);
            move || registration.run()
        }),
        tokio::spawn(Arc::clone(&registration).apply_new_intervals(new_intervals)),
        tokio::spawn(build_wiki_loop(config, context, &writer).ingest_sources(is_stopped.clone())),
        tokio::spawn(build_wiki_loop(config, context, &writer).check_wikis(is_stopped.clone())),
        tokio::spawn(wake_matters(Arc::clone(&begin_wakes), Arc::clone(&index), registration, is_stopped)),
        tokio::spawn(place::follow_vault_folder(writer.root().clone(), returned, context.failed.clone())),
        tokio::spawn(settle_changes(
            Arc::clone(&writer),
            Arc::clone(&parts.index),
            context.stop.clone(),
            context.pulse.clone(),
        )),
    ]);
    loops.extend(spawn_fault_report(&parts, config)?);
    loops.extend(backups::spawn_backups(&parts, config)?);
    loops.extend(progress::spawn_progress_reports(&parts, config));
    let streams = StreamContext { writer, index, inbox_changed: dropped };
    loops.extend(streams.spawn_streams(config, &context.stop));
    // In shadow no note may change.
    let is_wanted = config.stamp_files && config.policy.mode != Mode::Shadow;
    let timestamp_writer = is_wanted.then(|| TimestampWriter::new(Arc::clone(&parts.writer), Arc::clone(&parts.index)));
    if let Some(writer) = &timestamp_writer {
        loops.push(timestamps::spawn_timestamp_writer(writer.clone(), context.stop.clone()));
    }
    Ok(Engine { parts, registered, timestamp_writer, threads, loops, begin_wakes })
}

/// Whether nothing may begin now. While the vault's folder is missing, a tick could not change anything: requests wait until it is
/// back. During a drain no run may begin.
fn build_stop_check(
    writer: &Arc<VaultWriter>,
    ownership: Option<VaultOwnership>,
) -> impl Fn() -> bool + Clone + Send + 'static {
    let writer = Arc::clone(writer);
    move || {
        let root = writer.root();
        let is_paused = ownership.as_ref().is_some_and(|ownership| ownership.find_pause().is_some());
        is_paused || stop::is_stopped(root) || drain::is_draining(root) || root.placement() != FolderPlacement::Here
    }
}

fn build_wiki_loop(config: &StewardConfig, context: &WorkerContext, writer: &Arc<VaultWriter>) -> WikiLoop {
    let client = ResolutionClient::new(context.client.clone(), config.vault_names(), &context.task_queue, None);
    let (root, writer, settings) = (writer.root().clone(), Arc::clone(writer), Arc::clone(&config.wikis));
    WikiLoop { root, writer, client, settings, live_mode: config.policy.mode, seconds: config.scan_seconds }
}

/// Reports when the fleet's database does not answer; `None` for a vault that belongs to no fleet.
fn spawn_fault_report(
    parts: &OpenedVault,
    config: &StewardConfig,
) -> anyhow::Result<Option<tokio::task::JoinHandle<()>>> {
    let Some(ownership) = parts.ownership.clone() else { return Ok(None) };
    let (root, state) = (parts.writer.root().clone(), config.state_dir()?);
    let report = move |fault: Option<&str>| note::record_fleet_fault(&root, &state, fault);
    Ok(Some(tokio::spawn(fleet::report_faults(ownership, report))))
}

/// The dispatcher for the tracker; `None` if no tracker is configured.
fn build_tracker_dispatcher(config: &StewardConfig, vault: &VaultContext) -> anyhow::Result<Option<TrackerDispatcher>> {
    let Some(tracker) = &config.tracker else { return Ok(None) };
    let plane = PlaneClient::new(tracker).map_err(anyhow::Error::msg)?;
    Ok(Some(TrackerDispatcher::new(vault.clone(), plane)))
}

/// Registers the schedules; returns the plan, and whether some changes are left to do.
async fn register_schedules(
    registrar: &ScheduleRegistrar,
    index: &Index,
    config: &StewardConfig,
) -> anyhow::Result<(SchedulePlan, bool)> {
    let plan = desired::plan_schedules(registrar, index, config).await?;
    let outcome = desired::apply_schedules(registrar, plan.clone()).await;
    Ok((plan, outcome.is_behind()))
}

/// Starts a worker that asks the clerk, on the shared clerk queue.
///
/// # Errors
/// When the clerk cannot be set up or the thread cannot start.
pub(crate) fn start_clerk_worker(config: &StewardConfig, context: &WorkerContext) -> anyhow::Result<JoinHandle<()>> {
    // A process without the vault asks without the descriptions of notes.
    let vault = config.vault_folder().ok().and_then(|folder| VaultRoot::open(folder).ok());
    let worker = ClerkWorker::new(crate::runtime::clerks::create_clerk(config, context.key_health.clone())?, vault);
    sdk_workers::start_worker(context, WorkerRole::Clerk(worker))
}

impl Engine {
    /// Lets the waking of marked matters begin.
    ///
    /// Call it after a round over all matters: what that round observes need not be woken.
    pub(crate) fn begin_waking(&self) {
        self.begin_wakes.notify_one();
    }

    /// Writes the timestamps of all checked tasks into their files, if the operator asked for it.
    pub(crate) async fn write_all_timestamps(&self) {
        if let Some(writer) = &self.timestamp_writer {
            writer.write_all_due().await;
        }
    }

    /// Waits until the workers have ended. The stop flag must be set before.
    pub(crate) async fn shut_down(self) {
        for task in &self.loops {
            task.abort();
        }
        let threads = self.threads;
        // A worker that panicked has already logged why.
        let _ = tokio::task::spawn_blocking(move || threads.into_iter().for_each(|t| drop(t.join()))).await;
        let writer = Arc::clone(&self.parts.writer);
        if let Ok(Err(e)) = tokio::task::spawn_blocking(move || writer.settle_swaps()).await {
            tracing::error!(error = %e, "failed to settle the last changes; the next start does it");
        }
    }
}

/// Waits for `begin`, then wakes the matters that signals mark.
async fn wake_matters(
    begin: Arc<Notify>,
    index: Arc<Index>,
    registration: Arc<RegistrationLoop>,
    is_stopped: impl Fn() -> bool + Send,
) {
    begin.notified().await;
    let rounds = registration.subscribe_rounds();
    let trigger = |matter: RecordPath| {
        let registration = Arc::clone(&registration);
        async move { wake_matter(&registration, &matter).await }
    };
    WakeDispatcher { index, trigger, is_stopped, rounds }.run().await;
}

async fn wake_matter(registration: &RegistrationLoop, matter: &RecordPath) -> WakeOutcome {
    match registration.registrar.trigger_matter(matter).await {
        Ok(ScheduleTriggerOutcome::Triggered) => {
            tracing::info!(matter = %matter, "woken because of a signal");
            WakeOutcome::Triggered
        }
        Ok(ScheduleTriggerOutcome::Paused | ScheduleTriggerOutcome::OfAnother) => {
            tracing::debug!(matter = %matter, "not woken: its schedule is paused or belongs to another vault");
            WakeOutcome::Paused
        }
        Ok(ScheduleTriggerOutcome::PausedByUs) => {
            tracing::info!(matter = %matter, "not woken yet: its schedule will be resumed first");
            WakeOutcome::Missing { round: registration.request_round() }
        }
        Ok(ScheduleTriggerOutcome::Missing) => {
            tracing::info!(matter = %matter, "not woken yet: its schedule is missing and will be registered again");
            WakeOutcome::Missing { round: registration.request_round() }
        }
        Err(e) => {
            tracing::warn!(matter = %matter, "failed to {e}; trying again");
            WakeOutcome::Failed
        }
    }
}

/// Settles recent changes every second: it detects late edits and finishes work that waits for the disk. It is the main
/// loop of the process: if it hangs, the vault's disk does.
async fn settle_changes(writer: Arc<VaultWriter>, index: Arc<Index>, mut stop: flag::Receiver<bool>, pulse: LoopPulse) {
    let mut clock = create_interval(1);
    loop {
        pulse.beat();
        tokio::select! {
            () = wait_for_stop(&mut stop) => return,
            _ = clock.tick() => {}
        }
        if writer.root().placement() != FolderPlacement::Here {
            continue;
        }
        if let Err(e) = index.cursors().finish_deferred_work(writer.root(), Utc::now()).await {
            tracing::debug!(error = %e, "deferred work still waits for the disk");
        }
        let writer = Arc::clone(&writer);
        match tokio::task::spawn_blocking(move || writer.settle_swaps()).await {
            Ok(Ok(late)) => {
                for path in late {
                    tracing::warn!(task = %path, "an editor overwrote a recent change; the editor's version is kept");
                }
            }
            Ok(Err(e)) => tracing::error!(error = %e, "failed to settle changes; trying again in a second"),
            Err(e) => tracing::error!(error = %e, "failed to settle changes; trying again in a second"),
        }
    }
}

/// Runs on a thread of its own until the process is asked to stop: these futures cannot move between threads.
fn run_on_own_thread<F: Future<Output = ()>>(
    mut stop: flag::Receiver<bool>,
    begin: impl FnOnce() -> F + Send + 'static,
) -> tokio::task::JoinHandle<()> {
    let handle = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || {
        handle.block_on(async {
            tokio::select! {
                () = wait_for_stop(&mut stop) => {}
                () = begin() => {}
            }
        });
    })
}

/// Waits until the process is asked to stop.
pub(crate) async fn wait_for_stop(stop: &mut flag::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await; // Without a sender it is a stop as well.
}

fn create_interval(seconds: u64) -> Interval {
    let period = Duration::from_secs(seconds);
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
    interval
}

fn log_problems(report: &SyncReport) {
    report.problems.iter().for_each(|problem| tracing::warn!(path = %problem.path, "{}", problem.message));
}

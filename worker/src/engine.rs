//! The process that holds a vault: its parts wired together, its loops, its end.
//!
//! Takes the lock, brings the index up to date, registers the schedules, starts the workers, and
//! then listens: to the file system (a hint), to the clock (the truth), to matters whose cadence
//! changed. Everything it does to the vault goes through the activities and the keeper.

mod parts;

pub(crate) use parts::{Parts, open_ledger};

use crate::config::Config;
use crate::fleet::{self, Crew, Serves, Staff};
use crate::registrar::{Registrar, SchedulePlan, Wake};
use crate::schedules;
use crate::stamper::{self, Stamper};
use crate::streams::Streams;
use chrono::Utc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use steward_activities::extract::Extractor;
use steward_activities::judge::Bench;
use steward_activities::tracker::{Courier, Plane};
use steward_activities::vault::{Host, NewInterval, Settings};
use steward_domain::guard::Spent;
use steward_domain::path::RecordPath;
use steward_vault::index::{Index, IndexError, News, SyncReport};
use steward_vault::keeper::Keeper;
use steward_vault::watch::{Hint, watch};
use steward_workflows::{EXTRACT_SCHEDULE, ROUTER_SCHEDULE, TRACKER_SCHEDULE};
use temporalio_client::Client;
use temporalio_sdk::Runtime;
use temporalio_sdk::runtime::RuntimeOptions;
use tokio::sync::{Notify, mpsc, watch as flag};

/// A running engine.
pub(crate) struct Engine {
    pub(crate) parts: Parts,
    pub(crate) registered: SchedulePlan,
    /// Where the operator asked for it.
    stamper: Option<Stamper>,
    threads: Vec<JoinHandle<()>>,
    loops: Vec<tokio::task::JoinHandle<()>>,
}

/// Builds what all workers of this process share, and where they say why they cannot go on.
pub(crate) fn crew(
    config: &Config,
    client: Client,
    runtime: RuntimeOptions,
    stop: flag::Receiver<bool>,
) -> anyhow::Result<(Crew, mpsc::UnboundedReceiver<anyhow::Error>)> {
    let runtime = Runtime::from_current_tokio(runtime).map_err(|e| anyhow::anyhow!("failed to start: {e}"))?;
    let (failed, failures) = mpsc::unbounded_channel();
    let crew = Crew {
        runtime: Arc::new(runtime),
        client,
        task_queue: config.task_queue.clone(),
        recycle_after: config.recycle_after_activities,
        stop,
        failed,
    };
    Ok((crew, failures))
}

/// Starts the workers, the loops and the schedules of a vault.
///
/// # Errors
/// When the schedules cannot be listed for other reasons than the server, or a thread cannot start.
pub(crate) async fn start(config: &Config, crew: &Crew, parts: Parts) -> anyhow::Result<Engine> {
    // What the first scan found is registered below, or asked for when the listener begins.
    let _ = parts.index.take_news();
    let (intervals, new_intervals) = mpsc::unbounded_channel();
    let host = Host {
        keeper: Arc::clone(&parts.keeper),
        index: Arc::clone(&parts.index),
        ledger: Arc::clone(&parts.ledger),
        settings: Settings {
            policy: config.policy.clone(),
            default_ceiling: config.default_ceiling,
            cadence: config.cadence,
            keep_events_days: config.keep_events_days,
            live_per_source_day: config.live_per_source_day,
            reversal_budget: config.reversal_budget,
        },
        clerk: Arc::new(crate::clerks::seat(&config.clerk)?),
        intervals,
        landing: Arc::default(),
        routing: Arc::default(),
        learning: Arc::default(),
        unshown: Arc::default(),
    };
    let courier = courier(config, &host)?;
    let extractor = Extractor::new(host.clone(), crate::clerks::seat(&config.clerk)?);
    let staff = Box::new(Staff { host, extractor, courier });
    let threads = vec![fleet::start(crew, Serves::Vault(staff))?];
    let registrar = schedules::registrar(crew.client.clone(), config, |_| ());
    // Thousands of schedules take minutes; whoever is told to end meanwhile leaves the rest to the next.
    let mut stop = crew.stop.clone();
    let (registered, behind) = tokio::select! {
        registered = register(&registrar, &parts.index, config) => registered?,
        () = raised(&mut stop) => (SchedulePlan::default(), false),
    };
    let listener = Listener {
        keeper: Arc::clone(&parts.keeper),
        index: Arc::clone(&parts.index),
        registrar,
        config: config.clone(),
        behind: Arc::new(AtomicBool::new(behind)),
        dropped: Arc::default(),
        owing: Arc::default(),
    };
    let dropped = Arc::clone(&listener.dropped);
    let mut loops = vec![
        on_a_thread(listener.clone(), crew.stop.clone()),
        tokio::spawn(listener.clone().follow_cadence(new_intervals)),
        tokio::spawn(listener.settle(crew.stop.clone())),
    ];
    let streams = Streams { keeper: Arc::clone(&parts.keeper), index: Arc::clone(&parts.index), dropped };
    loops.extend(streams.start(config, &crew.stop));
    let stamper = config.stamp_files.then(|| Stamper::new(Arc::clone(&parts.keeper), Arc::clone(&parts.index)));
    if let Some(stamper) = &stamper {
        loops.push(stamper::on_a_thread(stamper.clone(), crew.stop.clone()));
    }
    Ok(Engine { parts, registered, stamper, threads, loops })
}

/// Who tells the tracker, where one is set.
fn courier(config: &Config, host: &Host) -> anyhow::Result<Option<Courier>> {
    let Some(tracker) = &config.tracker else { return Ok(None) };
    let plane = Plane::new(tracker).map_err(anyhow::Error::msg)?;
    Ok(Some(Courier::new(host.clone(), plane)))
}

/// What was to be done to the schedules, and whether something is left to do.
async fn register(registrar: &Registrar, index: &Index, config: &Config) -> anyhow::Result<(SchedulePlan, bool)> {
    let plan = schedules::plan(registrar, index, config).await?;
    let outcome = schedules::apply(registrar, plan.clone()).await;
    Ok((plan, outcome.is_behind()))
}

/// Starts a worker that asks the clerk, on the fleet's shared queue.
///
/// # Errors
/// When the clerk cannot be set up or the thread cannot start.
pub(crate) fn start_clerk(config: &Config, crew: &Crew) -> anyhow::Result<JoinHandle<()>> {
    let bench = Bench::new(crate::clerks::seat(&config.clerk)?);
    fleet::start(crew, Serves::Clerk(bench))
}

impl Engine {
    /// Stamps the files of all tasks that were looked at, where the operator asked for it.
    pub(crate) async fn stamp_all(&self) {
        if let Some(stamper) = &self.stamper {
            stamper.stamp_all().await;
        }
    }

    /// Waits until the workers have ended; the stop flag must have been raised.
    pub(crate) async fn end(self) {
        for task in &self.loops {
            task.abort();
        }
        let threads = self.threads;
        // A worker that panicked has already said why.
        let _ = tokio::task::spawn_blocking(move || threads.into_iter().for_each(|t| drop(t.join()))).await;
        let keeper = Arc::clone(&self.parts.keeper);
        if let Ok(Err(e)) = tokio::task::spawn_blocking(move || keeper.settle()).await {
            tracing::error!(error = %e, "failed to settle");
        }
    }
}

/// Listens to the vault while the engine runs.
#[derive(Clone)]
struct Listener {
    keeper: Arc<Keeper>,
    index: Arc<Index>,
    registrar: Registrar,
    config: Config,
    /// Some schedule is not as it should be, because the server gave no answer.
    behind: Arc<AtomicBool>,
    /// Something was put into the drop folder.
    dropped: Arc<Notify>,
    /// A record was filed that owes something to the tracker.
    owing: Arc<Notify>,
}

impl Listener {
    async fn listen(self, mut stop: flag::Receiver<bool>) {
        let (send, mut hints) = mpsc::channel(256);
        let _watcher = match watch(self.keeper.root(), send) {
            Ok(watcher) => Some(watcher),
            Err(e) => {
                tracing::warn!(error = %e, "the vault cannot be watched; changes are found by the periodic scan");
                None
            }
        };
        // Events that came while nobody looked are no news to the scans below.
        match self.index.events_to_extract(1, &Spent::default()).await {
            Ok(waiting) if waiting.is_empty() => {}
            Ok(_) => self.trigger(EXTRACT_SCHEDULE).await,
            Err(e) => {
                tracing::error!(error = %e, "failed to tell whether events wait; they are read when it comes round")
            }
        }
        match self.index.owing().await {
            Ok(owing) if owing.is_empty() => {}
            Ok(_) => self.owing.notify_one(),
            Err(e) => tracing::error!(error = %e, "failed to tell what is owed to the tracker"),
        }
        // The first scan is at once: files may have changed between the start and the watch.
        let mut scan = tokio::time::interval(Duration::from_secs(self.config.scan_seconds));
        scan.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let mut contents = interval(self.config.content_scan_seconds);
        loop {
            let synced = tokio::select! {
                () = raised(&mut stop) => return,
                () = self.owing.notified(), if self.config.tracker.is_some() => {
                    self.trigger(TRACKER_SCHEDULE).await;
                    continue;
                }
                news = self.index.next_news() => {
                    self.follow(news, false).await;
                    continue;
                }
                _ = scan.tick() => self.index.sync_all(self.keeper.root(), Utc::now()).await,
                _ = contents.tick() => self.index.sync_contents(self.keeper.root(), Utc::now()).await,
                Some(hint) = hints.recv() => match hint {
                    Hint::Paths(paths) => self.index.sync_paths(self.keeper.root(), &paths, Utc::now()).await,
                    Hint::Rescan => self.index.sync_all(self.keeper.root(), Utc::now()).await,
                    Hint::Inbox => {
                        self.dropped.notify_one();
                        continue;
                    }
                },
            };
            match synced {
                Ok(report) => tell(&report),
                Err(e) => tracing::error!(error = %e, "failed to bring the index up to date"),
            }
            self.follow(self.index.take_news(), true).await;
        }
    }

    /// Acts upon what scans found; where something was left to do before, that as well.
    async fn follow(&self, news: News, left_over: bool) {
        if news.events_arrived {
            self.trigger(EXTRACT_SCHEDULE).await;
        }
        if news.owing_arrived {
            self.owing.notify_one();
        }
        if news.signals_arrived {
            self.trigger(ROUTER_SCHEDULE).await;
        }
        let behind = left_over && self.behind.load(Ordering::Relaxed);
        if behind || news.matters_changed {
            self.behind.store(false, Ordering::Relaxed);
            let behind = self.register().await.unwrap_or_else(|e| {
                tracing::error!(error = %format!("{e:#}"), "failed to register the schedules; trying again with the next scan");
                true
            });
            self.behind.fetch_or(behind, Ordering::Relaxed);
        }
        if let Err(e) = self.wake_all().await {
            tracing::error!(error = %e, "failed to tell which matters to wake; trying again with the next scan");
        }
    }

    async fn wake_all(&self) -> Result<(), IndexError> {
        for (matter, mark) in self.index.wakes().await? {
            if self.wake(&matter).await {
                self.index.woken(&matter, mark).await?;
            }
        }
        Ok(())
    }

    /// Whether some schedule could not be registered.
    async fn register(&self) -> anyhow::Result<bool> {
        let plan = schedules::plan(&self.registrar, &self.index, &self.config).await?;
        let outcome = schedules::apply(&self.registrar, plan).await;
        tracing::info!(
            created = outcome.created,
            updated = outcome.updated,
            paused = outcome.paused,
            deleted = outcome.deleted,
            "schedules registered"
        );
        Ok(outcome.is_behind())
    }

    /// Starts a run of one of the vault's own schedules; where that fails, it comes round by itself.
    async fn trigger(&self, id: &str) {
        match self.registrar.trigger(id).await {
            Ok(Wake::Triggered) => tracing::info!(schedule = id, "triggered"),
            Ok(Wake::Paused | Wake::Missing) => tracing::debug!(schedule = id, "not triggered: paused or missing"),
            Err(e) => tracing::warn!(schedule = id, "failed to {e}; it comes round by itself"),
        }
    }

    /// Whether nothing is left to do: the server answered, and the schedule is not one that is still to come.
    async fn wake(&self, matter: &RecordPath) -> bool {
        match self.registrar.wake(matter.slug()).await {
            Ok(Wake::Triggered) => tracing::info!(matter = %matter, "woken by a signal"),
            Ok(Wake::Missing) if self.behind.load(Ordering::Relaxed) => return false,
            Ok(Wake::Paused | Wake::Missing) => {
                tracing::debug!(matter = %matter, "not woken: paused or without a schedule")
            }
            Err(e) => {
                tracing::warn!(matter = %matter, "failed to {e}; trying again with the next scan");
                return false;
            }
        }
        true
    }

    async fn follow_cadence(self, mut changes: mpsc::UnboundedReceiver<NewInterval>) {
        while let Some(change) = changes.recv().await {
            let slug = change.matter.slug();
            if let Err(e) = self.registrar.set_interval(slug, change.seconds).await {
                tracing::warn!(matter = %change.matter, "failed to {e}; trying again with the next scan");
                self.behind.store(true, Ordering::Relaxed);
            }
        }
    }

    async fn settle(self, mut stop: flag::Receiver<bool>) {
        let mut clock = interval(1);
        loop {
            tokio::select! {
                () = raised(&mut stop) => return,
                _ = clock.tick() => {}
            }
            if let Err(e) = self.index.catch_up(self.keeper.root(), Utc::now()).await {
                tracing::debug!(error = %e, "what waits for the disk waits on");
            }
            let keeper = Arc::clone(&self.keeper);
            match tokio::task::spawn_blocking(move || keeper.settle()).await {
                Ok(Ok(late)) => {
                    for path in late {
                        tracing::warn!(task = %path, "an editor saved over a change just made; its version stands");
                    }
                }
                Ok(Err(e)) => tracing::error!(error = %e, "failed to settle"),
                Err(e) => tracing::error!(error = %e, "failed to settle"),
            }
        }
    }
}

/// Listens on a thread of its own: the scans' futures cannot move between threads.
fn on_a_thread(listener: Listener, stop: flag::Receiver<bool>) -> tokio::task::JoinHandle<()> {
    let handle = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || handle.block_on(listener.listen(stop)))
}

/// Waits until the process is told to end.
pub(crate) async fn raised(stop: &mut flag::Receiver<bool>) {
    // An error means that the sender is gone, which is an end as well.
    let _ = stop.wait_for(|stop| *stop).await;
}

fn interval(seconds: u64) -> tokio::time::Interval {
    let period = Duration::from_secs(seconds);
    let mut interval = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    interval
}

fn tell(report: &SyncReport) {
    for problem in &report.problems {
        tracing::warn!(path = %problem.path, "{}", problem.message);
    }
}

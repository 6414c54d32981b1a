//! Runs the SDK's workers, each on a thread of its own, and rebuilds them from time to time.
//!
//! The SDK's `QueueWorker` keeps an entry of about 200 bytes for every activity that it ever ran. It frees them only
//! when it is dropped. So after a number of activities the worker is shut down cleanly and built again. Tasks that
//! arrive meanwhile wait at the server; none may be lost. The workflow code of a worker runs on its thread; activities
//! run on the runtime of the process.

use crate::config::StewardConfig;
use crate::runtime::engine::wait_for_stop;
use crate::temporal::start_retry::{StartRetry, is_unanswered};
use anyhow::Context;
use futures_util::FutureExt;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use steward_activities::action::resolve::ResolveActivities;
use steward_activities::signals::SignalActivities;
use steward_activities::signals::extract::Extractor;
use steward_activities::steward::clerks::remote::KeyHealth;
use steward_activities::steward::judge::ClerkWorker;
use steward_activities::steward::tick::StewardActivities;
use steward_activities::tracker::TrackerDispatcher;
use steward_activities::trust::TrustActivities;
use steward_activities::wiki::WikiActivities;
use steward_server::http::pulse::LoopPulse;
use steward_workflows::clerk_queue;
use steward_workflows::registry::{WorkflowVisitor, visit_workflows};
use temporalio_client::Client;
use temporalio_common::WorkflowDefinition;
use temporalio_sdk::interceptors::{ActivityInboundInterceptor, ExecuteActivityInput, ExecuteActivityOutput, Next};
use temporalio_sdk::runtime::RuntimeOptions;
use temporalio_sdk::{Runtime, Worker, WorkerOptions, WorkflowRegistrationError};
use temporalio_workflow::workflows::WorkflowImplementation;
use tokio::sync::{mpsc, watch};

/// How long running activities may take to end when a worker is rebuilt or stopped: 10 s.
const GRACE: Duration = Duration::from_secs(10);
/// Workflows kept in memory between their tasks. A tick takes seconds, so a few hundred are enough.
const CACHED_WORKFLOWS: usize = 300;

/// The workflows and activities that a worker serves.
#[allow(clippy::large_enum_variant, reason = "a process has two, each moved once")]
pub(crate) enum WorkerRole {
    /// Ticks, resolutions, the extraction of events and, if one is configured, deliveries to the tracker. Only the
    /// process that holds the vault serves them.
    Vault(Box<VaultWorkerActivities>),
    /// Clerk calls, in any process.
    Clerk(ClerkWorker),
}

/// The activities of the process that holds a vault.
pub(crate) struct VaultWorkerActivities {
    pub(crate) steward: StewardActivities,
    pub(crate) resolve: ResolveActivities,
    pub(crate) signals: SignalActivities,
    pub(crate) trust: TrustActivities,
    pub(crate) wiki: WikiActivities,
    pub(crate) extractor: Extractor,
    pub(crate) dispatcher: Option<TrackerDispatcher>,
}

/// What all workers of a process share.
#[derive(Clone)]
pub(crate) struct WorkerContext {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) client: Client,
    /// The address of the Temporal server, for messages.
    pub(crate) address: String,
    pub(crate) task_queue: String,
    pub(crate) recycle_after: u64,
    pub(crate) stop: watch::Receiver<bool>,
    /// Whether no task may be taken, because nobody knows who owns the vault; `None` for a vault alone.
    pub(crate) silent: Option<watch::Receiver<bool>>,
    /// Beats with every turn of the main loop.
    pub(crate) pulse: LoopPulse,
    /// Whether the provider accepts the key, as all clerks of this process find.
    pub(crate) key_health: KeyHealth,
    /// Receives the error of a worker that cannot continue.
    pub(crate) failed: mpsc::UnboundedSender<anyhow::Error>,
}

/// A client with the address of its server, for messages.
#[derive(Clone)]
pub(crate) struct TemporalConnection {
    pub(crate) client: Client,
    pub(crate) address: String,
}

/// Builds what all workers of this process share, and the receiver of their fatal errors.
///
/// # Errors
/// When the SDK cannot start.
pub(crate) fn create_worker_context(
    config: &StewardConfig,
    connected: TemporalConnection,
    runtime: RuntimeOptions,
    stop: watch::Receiver<bool>,
) -> anyhow::Result<(WorkerContext, mpsc::UnboundedReceiver<anyhow::Error>)> {
    let runtime = Runtime::from_current_tokio(runtime).map_err(|e| anyhow::anyhow!("failed to start: {e}"))?;
    let (failed, failures) = mpsc::unbounded_channel();
    let context = WorkerContext {
        runtime: Arc::new(runtime),
        client: connected.client,
        address: connected.address,
        task_queue: config.task_queue.clone(),
        recycle_after: config.recycle_after_activities,
        stop,
        silent: None,
        pulse: LoopPulse::default(),
        key_health: KeyHealth::default(),
        failed,
    };
    Ok((context, failures))
}

/// Starts a worker on its own thread.
///
/// # Errors
/// When the thread cannot be started.
pub(crate) fn start_worker(context: &WorkerContext, role: WorkerRole) -> anyhow::Result<JoinHandle<()>> {
    let context = context.clone();
    let handle = tokio::runtime::Handle::current();
    let name = match role {
        WorkerRole::Vault(_) => "steward-vault",
        WorkerRole::Clerk(_) => "steward-clerk",
    };
    std::thread::Builder::new()
        .name(name.into())
        .spawn(move || {
            // Without this, a panic would leave a process that looks healthy and serves nothing.
            let result = catch_unwind(AssertUnwindSafe(|| handle.block_on(run_recycled_worker(&context, &role))));
            let panicked = |_| Err(anyhow::anyhow!("a worker panicked; its message is above: start again"));
            if let Err(e) = result.unwrap_or_else(panicked) {
                // The receiver is gone only if the process is ending anyway.
                let _ = context.failed.send(e);
            }
        })
        .context("failed to start a worker thread")
}

async fn run_recycled_worker(context: &WorkerContext, role: &WorkerRole) -> anyhow::Result<()> {
    let mut stop = context.stop.clone();
    let mut retry = StartRetry::new("describe the namespace", &context.address);
    loop {
        tokio::select! {
            () = wait_for_silence(context, false) => {}
            () = wait_for_stop(&mut stop) => {}
        }
        if *stop.borrow() {
            return Ok(());
        }
        let counter = Arc::new(ActivityCounter::new(context.recycle_after));
        let options = build_worker_options(context, role, &counter)?;
        let mut worker = Worker::new(&context.runtime, context.client.clone(), options)
            .map_err(|e| anyhow::anyhow!("failed to start a worker: {e}"))?;
        let shut_down = worker.shutdown_handle();
        let ran = {
            let running = worker.run();
            tokio::pin!(running);
            tokio::select! {
                ran = &mut running => ran,
                () = wait_for_worker_end(&mut stop, &counter, context) => {
                    shut_down();
                    running.await
                }
            }
        };
        match ran.map_err(anyhow::Error::from) {
            Ok(()) => retry = StartRetry::new("describe the namespace", &context.address),
            Err(e) if is_unanswered(&e) => tokio::select! {
                () = retry.log_and_wait(&e) => {}
                () = wait_for_stop(&mut stop) => {}
            },
            Err(e) => return Err(e.context("the worker stopped")),
        }
    }
}

/// Waits until it is unknown who owns the vault, or until it is known again.
async fn wait_for_silence(context: &WorkerContext, wanted: bool) {
    match context.silent.clone() {
        // The sender lives as long as the process knows of an owner.
        Some(mut silent) => drop(silent.wait_for(|silent| *silent == wanted).await),
        None if wanted => pending().await,
        None => {}
    }
}

/// Waits until a worker has to end, finally or to be rebuilt.
async fn wait_for_worker_end(stop: &mut watch::Receiver<bool>, counter: &ActivityCounter, context: &WorkerContext) {
    tokio::select! {
        () = wait_for_stop(stop) => {}
        () = wait_for_silence(context, true) => {
            tracing::warn!("the fleet's database is silent, so this process takes no task until it answers");
        }
        () = counter.wait_until_full() => tracing::info!(activities = context.recycle_after, "rebuilding the worker"),
    }
}

fn build_worker_options(
    context: &WorkerContext,
    role: &WorkerRole,
    counter: &Arc<ActivityCounter>,
) -> anyhow::Result<WorkerOptions> {
    let queue = match role {
        WorkerRole::Vault(_) => context.task_queue.clone(),
        WorkerRole::Clerk(_) => clerk_queue(&context.task_queue),
    };
    let options = WorkerOptions::new(queue)
        .graceful_shutdown_period(GRACE)
        .max_cached_workflows(CACHED_WORKFLOWS)
        .activity_inbound_interceptor(ActivityCountInterceptor(Arc::clone(counter)));
    Ok(match role {
        WorkerRole::Vault(activities) => {
            let mut registration = WorkerRegistration(options.build());
            visit_workflows(&mut registration)?;
            let WorkerRegistration(mut options) = registration;
            options
                .register_activities(activities.steward.clone())
                .register_activities(activities.resolve.clone())
                .register_activities(activities.signals.clone())
                .register_activities(activities.trust.clone())
                .register_activities(activities.wiki.clone())
                .register_activities(activities.extractor.clone());
            if let Some(dispatcher) = &activities.dispatcher {
                options.register_activities(dispatcher.clone());
            }
            options
        }
        WorkerRole::Clerk(worker) => options.register_activities(worker.clone()).build(),
    })
}

/// Registers workflows at a worker.
struct WorkerRegistration(WorkerOptions);

impl WorkflowVisitor for WorkerRegistration {
    type Error = WorkflowRegistrationError;

    fn visit_workflow<W>(&mut self) -> Result<(), WorkflowRegistrationError>
    where
        W: WorkflowImplementation,
        <W::Run as WorkflowDefinition>::Input: Send,
    {
        self.0.register_workflow::<W>().map(drop)
    }
}

/// Counts activities until a worker has run enough of them.
struct ActivityCounter {
    left: AtomicU64,
    done: AtomicBool,
    filled: tokio::sync::Notify,
}

impl ActivityCounter {
    fn new(limit: u64) -> Self {
        Self { left: AtomicU64::new(limit), done: AtomicBool::new(false), filled: tokio::sync::Notify::new() }
    }

    fn count_activity(&self) {
        let before = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        if before == Ok(1) {
            self.done.store(true, Ordering::Release);
            self.filled.notify_one();
        }
    }

    async fn wait_until_full(&self) {
        while !self.done.load(Ordering::Acquire) {
            self.filled.notified().await;
        }
    }
}

struct ActivityCountInterceptor(Arc<ActivityCounter>);

impl ActivityInboundInterceptor for ActivityCountInterceptor {
    fn execute_activity<'a>(
        &'a self,
        input: ExecuteActivityInput,
        next: Next<'a, ExecuteActivityInput, ExecuteActivityOutput<'a>>,
    ) -> ExecuteActivityOutput<'a> {
        self.0.count_activity();
        async move { next.run(input).await }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_worker_is_rebuilt_after_its_number_of_activities_and_not_before() {
        let counter = ActivityCounter::new(3);
        counter.count_activity();
        counter.count_activity();
        assert!(counter.wait_until_full().now_or_never().is_none());
        counter.count_activity();
        assert!(counter.wait_until_full().now_or_never().is_some());
        counter.count_activity();
        assert!(counter.wait_until_full().now_or_never().is_some());
    }
}

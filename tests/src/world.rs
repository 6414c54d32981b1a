//! The environment of one test: a vault, a namespace, a task queue, and the binary that serves them.

use crate::server::TestServer;
use crate::steward::{Running, Said, Steward};
use crate::vault::Vault;
use crate::{run, wait};
use chrono::Utc;
use rustix::process::Pid;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use steward_domain::steward::tick::TickReport;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::{self, Index};
use temporalio_client::{Client, UntypedWorkflow, UntypedWorkflowHandle, WorkflowStartOptions};
use temporalio_common::data_converters::RawValue;
use temporalio_common::protos::temporal::api::common::v1::Payload;
use temporalio_common::protos::temporal::api::history::v1::HistoryEvent;

/// The time after which a workflow task of a dead worker is given to another worker.
///
/// It is short, because crash tests wait for it. It is long enough for a live worker on a busy machine.
pub const TASK_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest time that the server gives a worker for a workflow task.
const MAX_TASK_TIMEOUT: Duration = Duration::from_secs(120);

/// Everything one test needs.
pub struct World {
    pub vault: Vault,
    pub client: Client,
    pub server: Arc<TestServer>,
    /// How to start the binary in this world.
    pub steward: Steward,
    pub queue: String,
    pub namespace: String,
    pub folder: PathBuf,
    task_timeout: Duration,
    next: AtomicU32,
    /// Whether the vault was read before the first start.
    indexed: AtomicBool,
}

/// A workflow that was started.
pub struct Started {
    handle: UntypedWorkflowHandle<Client>,
}

impl World {
    /// A new empty vault with its own namespace.
    pub async fn new() -> Self {
        let (folder, number) = run::new_folder();
        let vault = Vault::new(folder.join("vault"));
        let (namespace, queue) = (format!("world-{number}"), format!("queue-{number}"));
        let server = TestServer::share().await;
        let client = server.namespace(&namespace).await;
        let mut steward = Steward::new(&folder);
        steward
            .set("TEMPORAL_ADDRESS", server.address())
            .set("TEMPORAL_NAMESPACE", &namespace)
            .set("STEWARD_TASK_QUEUE", &queue)
            .set("STEWARD_OPERATOR", "tester")
            .set("STEWARD_VAULT", vault.path().display());
        let next = AtomicU32::new(1);
        let indexed = AtomicBool::new(false);
        Self { vault, client, server, steward, queue, namespace, folder, task_timeout: TASK_TIMEOUT, next, indexed }
    }

    /// A world with the matter `house`, its task `rent`, and a signal that says the task is done.
    pub async fn with_one_done() -> Self {
        let world = Self::new().await;
        world.vault.matter("house");
        world.vault.task("rent", "house");
        world.vault.signal("s1", &crate::vault::Signal::done("rent"));
        world
    }

    /// Sets a variable for every process that is started from now on.
    #[must_use]
    pub fn set(mut self, name: &str, value: impl ToString) -> Self {
        self.steward.set(name, value);
        self
    }

    /// A world in which a slow worker does not count as dead, so that each of its steps is in the history once.
    #[must_use]
    pub fn with_patient_server(mut self) -> Self {
        self.task_timeout = MAX_TASK_TIMEOUT;
        self
    }

    /// A world whose matters tick once a day by their schedules. What happens sooner, happens by another cause.
    #[must_use]
    pub fn with_rare_ticks(self) -> Self {
        self.set("STEWARD_CADENCE_MATTER_SECONDS", 86_400).set("STEWARD_CADENCE_MATTER_MAX_SECONDS", 86_400)
    }

    /// A world in live mode.
    #[must_use]
    pub fn live(self) -> Self {
        self.set("STEWARD_LIVE_MODE", "live")
    }

    /// A world whose clerk is an OpenAI-compatible server.
    #[must_use]
    pub fn asking(self, clerk: &crate::clerk::Clerk) -> Self {
        self.set("STEWARD_CLERK", "openai")
            .set("STEWARD_CLERK_BASE_URL", &clerk.url)
            .set("STEWARD_CLERK_MODEL", "scripted")
    }

    /// A world whose clerk is a server with Anthropic's or Ollama's API.
    #[must_use]
    pub fn asking_as(self, name: &str, clerk: &crate::clerk::Clerk) -> Self {
        self.asking(clerk).set("STEWARD_CLERK", name).set("STEWARD_CLERK_BASE_URL", &clerk.address)
    }

    /// The binary without a configured Temporal server: it starts its own, on free ports.
    #[must_use]
    pub fn without_server(&self) -> Steward {
        self.steward
            .without("TEMPORAL_ADDRESS")
            .without("TEMPORAL_NAMESPACE")
            .with("STEWARD_TEMPORAL_CLI", run::temporal_cli().display())
            .with("STEWARD_TEMPORAL_PORT", run::free_port())
            .with("STEWARD_TEMPORAL_UI_PORT", run::free_port())
    }

    /// A worker that holds the vault and serves.
    pub async fn worker(&self) -> Running {
        self.worker_with(&self.steward).await
    }

    /// A worker started in another way.
    pub async fn worker_with(&self, steward: &Steward) -> Running {
        self.index_quietly(steward).await;
        let mut running = steward.start(&["worker"]);
        running.says("serving the vault").await;
        self.hold_calibration().await;
        running
    }

    /// Reads the vault into its index, as the first start would, without marks that wake matters. Most tests tick a
    /// matter themselves and want no other tick. A later start wakes the matters that it finds marked, as always.
    pub async fn index_quietly(&self, steward: &Steward) {
        let state = steward.variable("STEWARD_STATE_DIR").map_or(self.vault.path().join(".steward"), PathBuf::from);
        let is_later_start = self.indexed.swap(true, Ordering::Relaxed) && state.join(index::FILE).exists();
        if is_later_start || !self.vault.path().join("signal").is_dir() {
            return;
        }
        let (root, index) = (VaultRoot::open(self.vault.path()).unwrap(), Index::open(&state).await.unwrap());
        index.sync_all(&root, Utc::now()).await.unwrap();
        for (matter, mark) in index.cursors().list_wake_marks().await.unwrap() {
            index.cursors().clear_wake_mark(&matter, mark).await.unwrap();
        }
    }

    /// Pauses the routine that runs by the clock and would write instincts into the test. A serving worker has already
    /// registered its schedule.
    pub async fn hold_calibration(&self) {
        self.hold_schedule("al-reversal-calibration").await;
    }

    /// Pauses a schedule, so that it starts nothing by the clock.
    pub async fn hold_schedule(&self, id: &str) {
        let schedule = self.client.get_schedule_handle(id);
        let _ = schedule.pause(Some("begun by hand in tests"), Default::default()).await;
    }

    /// Runs a command to its end.
    pub async fn run(&self, arguments: &[&str]) -> Said {
        self.steward.run(arguments).await
    }

    /// Runs a command that must succeed, and returns its JSON.
    pub async fn json(&self, arguments: &[&str]) -> Value {
        let mut all = vec!["--json"];
        all.extend(arguments);
        self.run(&all).await.expect(0).json()
    }

    /// Starts a tick under a new id, as any Temporal client would.
    pub async fn begin(&self, matter: &str) -> Started {
        let id = format!("tick-{}", self.next.fetch_add(1, Ordering::Relaxed));
        self.begin_as(&id, "StewardWorkflow", &Value::from(format!("matter/{matter}.md"))).await
    }

    /// Starts the resolution of an action by a person.
    pub async fn answer(&self, kind: &str, action: &str) -> Started {
        let id = format!("{kind}-{}", self.next.fetch_add(1, Ordering::Relaxed));
        self.begin_as(&id, "ResolveWorkflow", &json!({"kind": kind, "action": action, "by": "tester"})).await
    }

    /// Starts the resolution of a batch by a person.
    pub async fn resolve_batch(&self, kind: &str, actions: &[String]) -> Started {
        let id = format!("{kind}-batch-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let ask = json!({"kind": kind, "actions": actions, "by": "tester", "batch_id": "00000000000000aa"});
        self.begin_as(&id, "ResolveBatchWorkflow", &ask).await
    }

    /// Starts a workflow.
    pub async fn begin_as(&self, id: &str, kind: &str, argument: &Value) -> Started {
        let options = WorkflowStartOptions::new(self.queue.clone(), id)
            .execution_timeout(5 * wait::PATIENCE)
            .task_timeout(self.task_timeout)
            .build();
        let argument = RawValue { payloads: vec![payload(argument)] };
        let handle = self.client.start_workflow(UntypedWorkflow::new(kind), argument, options).await.unwrap();
        Started { handle }
    }

    /// Ticks a matter and waits for the result.
    pub async fn tick(&self, matter: &str) -> TickReport {
        self.begin(matter).await.report().await
    }

    /// The output of a `temporal …` command for this namespace.
    pub async fn temporal(&self, arguments: &[&str]) -> String {
        let ended = async || {
            let mut command = tokio::process::Command::new(run::temporal_cli());
            command.args(arguments).args(["--address", self.server.address(), "--namespace", &self.namespace]);
            let output = command.kill_on_drop(true).output().await.unwrap();
            // A busy server asks for patience.
            let is_busy = String::from_utf8_lossy(&output.stderr).contains("consistent query buffer is full");
            (!is_busy).then_some(output)
        };
        let output = wait::until("a reply of the Temporal server", ended).await;
        assert!(output.status.success(), "temporal {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The ids of the live actions, oldest first.
    #[must_use]
    pub fn live_actions(&self) -> Vec<String> {
        let records = self.vault.records();
        records.iter().filter(|r| r.undo_recipe.is_some()).map(|r| r.draft.id.to_string()).collect()
    }

    /// The id of the only live action.
    #[must_use]
    pub fn live_action(&self) -> String {
        let live = self.live_actions();
        assert_eq!(live.len(), 1, "{:#?}", self.vault.records());
        live.into_iter().next().unwrap()
    }

    /// Asserts that the chain of audit records is intact and whole. A worker may file records meanwhile.
    pub async fn verify_chain(&self) {
        let before = self.vault.records().len();
        let found = self.json(&["audit", "verify"]).await;
        assert_eq!(found["faults"], json!([]), "{found}");
        let verified = usize::try_from(found["records"].as_u64().unwrap()).unwrap();
        assert!((before..=self.vault.records().len()).contains(&verified), "{before} before: {found}");
    }
}

fn payload(value: &Value) -> Payload {
    let metadata = HashMap::from([("encoding".to_owned(), b"json/plain".to_vec())]);
    Payload { metadata, data: serde_json::to_vec(value).unwrap(), ..Payload::default() }
}

impl Started {
    /// The result, as JSON.
    pub async fn result(&self) -> Value {
        let result = tokio::time::timeout(3 * wait::PATIENCE, self.handle.get_result(Default::default())).await;
        let result = result.unwrap_or_else(|_| panic!("{} has not ended", self.handle.info().workflow_id));
        let raw = result.unwrap_or_else(|e| panic!("{} failed: {e}", self.handle.info().workflow_id));
        serde_json::from_slice(&raw.payloads[0].data).unwrap()
    }

    /// The error of a run that must fail.
    pub async fn failure(&self) -> String {
        let result = tokio::time::timeout(wait::PATIENCE, self.handle.get_result(Default::default())).await;
        match result {
            Ok(Err(e)) => format!("{e:?}"),
            Ok(Ok(raw)) => panic!("did not fail: {}", String::from_utf8_lossy(&raw.payloads[0].data)),
            Err(_) => panic!("{} has not ended", self.handle.info().workflow_id),
        }
    }

    /// The report of a tick.
    pub async fn report(&self) -> TickReport {
        let result = self.result().await;
        serde_json::from_value(result.clone()).unwrap_or_else(|e| panic!("no report ({e}): {result}"))
    }

    /// The history of the run.
    pub async fn history(&self) -> Vec<HistoryEvent> {
        self.handle.fetch_history(Default::default()).into_events().await.unwrap()
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.handle.info().workflow_id
    }
}

/// Whether a process is stopped by a signal.
#[must_use]
pub fn is_frozen(pid: u32) -> bool {
    read_state(pid) == Some('T')
}

/// The state of a process as the kernel names it, by one letter.
fn read_state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Whether a process exists and is not a zombie.
#[must_use]
pub fn is_alive(pid: u32) -> bool {
    let known = i32::try_from(pid).ok().and_then(Pid::from_raw).is_some();
    known && read_state(pid).is_some_and(|state| state != 'Z')
}

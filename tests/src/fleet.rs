//! A fleet for the rehearsal: a namespace, a database, tenants with vaults, and the gates before their servers.
//!
//! A machine is a folder: a vault that is restored in another folder is on another machine. Roles of Postgres belong to
//! the whole server, so the ids of tenants must differ between tests. `steward` of a tenant is what its process gets.

use crate::gate::Gate;
use crate::postgres::Postgres;
use crate::provider::Provider;
use crate::run;
use crate::server::TestServer;
use crate::steward::Steward;
use crate::vault::{Signal, Vault};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use temporalio_client::Client;
use temporalio_client::tonic::IntoRequest;
use temporalio_common::protos::temporal::api::workflowservice::v1::ListSchedulesRequest;

/// The rate limits of tenants that ask a provider, so high that they hold nothing back.
pub const BUCKET: &str = "wide";

/// A namespace and a database that tenants share.
pub struct Fleet {
    /// The binary with the database of an operator, and no vault.
    pub operator: Steward,
    pub client: Client,
    pub server: Arc<TestServer>,
    pub namespace: String,
    /// The URL of an operator.
    pub database: String,
    pub postgres: &'static Postgres,
}

/// A tenant with a vault of its own.
pub struct Tenant {
    pub id: String,
    pub vault: Vault,
    pub steward: Steward,
    /// Its machine.
    pub folder: PathBuf,
}

/// What stands between one tenant's process and its servers.
pub struct Cuts {
    pub postgres: Gate,
    pub temporal: Gate,
}

impl Fleet {
    /// A fleet without tenants.
    pub async fn new(name: &str, postgres: &'static Postgres) -> Self {
        let namespace = format!("rehearsal-{name}");
        let server = TestServer::share().await;
        let client = server.namespace(&namespace).await;
        let (folder, _) = run::new_folder();
        let database = postgres.create_database();
        let mut operator = Steward::new(&folder);
        operator
            .set("TEMPORAL_ADDRESS", server.address())
            .set("TEMPORAL_NAMESPACE", &namespace)
            .set("STEWARD_FLEET_DB", &database)
            .set("STEWARD_OPERATOR", "ann");
        let fleet = Self { operator, client, server, namespace, database, postgres };
        fleet.run(&["fleet", "init"]).await;
        fleet.run(&["fleet", "bucket", "set", BUCKET, "--calls", "100000/min"]).await;
        fleet
    }

    /// Runs a command of an operator, which must succeed, and returns its output.
    pub async fn run(&self, arguments: &[&str]) -> String {
        self.operator.run(arguments).await.expect(0).out
    }

    /// What `steward fleet status` says of each tenant, and its exit code.
    pub async fn read_status(&self) -> (Value, Option<i32>) {
        let said = self.operator.run(&["fleet", "status", "--json"]).await;
        (said.json(), said.code)
    }

    /// Runs SQL as an operator.
    pub fn sql(&self, sql: &str) -> String {
        self.postgres.sql(&self.database, sql)
    }

    /// Adds a tenant whose vault has these matters, and no task. It may do everything, and its process too.
    pub async fn add_tenant(&self, id: &str, matters: &[&str]) -> Tenant {
        self.sql(&format!("DROP ROLE IF EXISTS \"steward_tenant_{id}\""));
        let made: Value = serde_json::from_str(&self.run(&["fleet", "tenant", "add", id, "--json"]).await).unwrap();
        self.run(&["fleet", "tenant", "set", id, "--max-mode", "live", "--expect", "live"]).await;
        let (folder, _) = run::new_folder();
        let vault = Vault::new(folder.join("vault"));
        matters.iter().for_each(|matter| vault.matter(matter));
        let mut steward = Steward::new(&folder);
        steward
            .set("TEMPORAL_ADDRESS", self.server.address())
            .set("TEMPORAL_NAMESPACE", &self.namespace)
            .set("STEWARD_OPERATOR", "tester")
            .set("STEWARD_VAULT", vault.path().display())
            .set("STEWARD_TENANT", id)
            .set("STEWARD_FLEET_DB", made["fleet_db"].as_str().unwrap())
            .set("STEWARD_LIVE_MODE", "live")
            .set("STEWARD_LISTEN", "127.0.0.1:0")
            // So that only the limits of the scene itself hold anything.
            .set("STEWARD_LIVE_PER_SOURCE_DAY", 1_000)
            .set("STEWARD_CAPS_PER_MINUTE", 1_000)
            .set("STEWARD_CAPS_PER_TASK_DAY", 100)
            .set("STEWARD_CAPS_PER_MATTER_DAY", 1_000);
        Tenant { id: id.to_owned(), vault, steward, folder }
    }

    /// As [`Fleet::add_tenant`]. It asks this provider, in a bucket that holds nothing back, and checks its matters so often.
    pub async fn add_asking_tenant(&self, id: &str, matters: &[&str], provider: &Provider, seconds: u32) -> Tenant {
        let mut tenant = self.add_tenant(id, matters).await;
        self.run(&["fleet", "tenant", "set", id, "--bucket", BUCKET]).await;
        tenant.set_cadence(seconds);
        tenant.ask(provider);
        tenant
    }

    /// Pauses the router of a tenant that is served, which can make a change without its clerk.
    pub async fn hold_router(&self, tenant: &Tenant) {
        let router = self.client.get_schedule_handle(format!("al-signal-router@{}", tenant.id));
        router.pause(Some("the clerk decides in this scene"), Default::default()).await.unwrap();
    }

    /// The ids of all schedules of the namespace, as the server lists them.
    pub async fn list_schedules(&self) -> BTreeSet<String> {
        let mut service = self.client.connection().workflow_service();
        let (mut found, mut next) = (BTreeSet::new(), Vec::new());
        loop {
            let request = ListSchedulesRequest {
                namespace: self.namespace.clone(),
                maximum_page_size: 500,
                next_page_token: next,
                ..ListSchedulesRequest::default()
            };
            let page = service.list_schedules(request.into_request()).await.unwrap().into_inner();
            found.extend(page.schedules.into_iter().map(|schedule| schedule.schedule_id));
            next = page.next_page_token;
            if next.is_empty() {
                return found;
            }
        }
    }
}

impl Tenant {
    /// Sets how often its matters are checked. Quiet matters are checked as often.
    pub fn set_cadence(&mut self, seconds: u32) {
        self.steward.set("STEWARD_CADENCE_MATTER_SECONDS", seconds).set("STEWARD_CADENCE_MATTER_MAX_SECONDS", seconds);
    }

    /// Lets its process ask this provider, which knows the tenant by its model.
    pub fn ask(&mut self, provider: &Provider) {
        self.steward
            .set("STEWARD_CLERK", "openai")
            .set("STEWARD_CLERK_BASE_URL", &provider.url)
            .set("STEWARD_CLERK_MODEL", &self.id)
            .set("STEWARD_CLERK_CALLS_PER_SECOND", 100);
    }

    /// Puts gates before the servers of its process.
    pub async fn add_cuts(&mut self) -> Cuts {
        let url = self.steward.variable("STEWARD_FLEET_DB").unwrap().to_owned();
        let (user, place) = url.split_once('@').unwrap();
        let (server, database) = place.split_once('/').unwrap();
        let cuts = Cuts {
            postgres: Gate::new(server).await,
            temporal: Gate::new(self.steward.variable("TEMPORAL_ADDRESS").unwrap()).await,
        };
        self.steward
            .set("STEWARD_FLEET_DB", format!("{user}@{}/{database}", cuts.postgres.address))
            .set("TEMPORAL_ADDRESS", &cuts.temporal.address);
        cuts
    }

    /// Adds a task, and a signal that says that it is done. Each task has a source of its own.
    pub fn feed(&self, task: &str, matter: &str) {
        self.vault.task(task, matter);
        self.vault.signal(&format!("of-{task}"), &Signal { source: &format!("mail-{task}"), ..Signal::done(task) });
    }

    /// Whether a task is done in its file.
    #[must_use]
    pub fn is_done(&self, task: &str) -> bool {
        self.vault.state(task) == "done"
    }

    /// A copy of its environment for a vault in another folder: another machine.
    #[must_use]
    pub fn move_to(&self, folder: &str) -> Self {
        let path = self.folder.join(folder);
        let steward = self.steward.with("STEWARD_VAULT", path.display());
        Self { id: self.id.clone(), vault: Vault::open(path), steward, folder: self.folder.clone() }
    }
}

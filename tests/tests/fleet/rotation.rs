//! The drill of `deploy/runbooks/keys.md`: the model's key and the password in the fleet's database are changed, tenant by tenant
//! and restart by restart, while all of them tick and get work. One tenant also gets another certificate, without a restart.
//!
//! The provider accepts both keys until the last process has the new one. Then the old ones must be refused, and nobody may use
//! them. What a process sent is counted by the provider, and how old a session is by Postgres.
//!
//! Temporal's key is not changed here: the development server knows no keys.

use crate::{count_broken_chains, count_failed_tasks, count_surplus_records};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use steward_tests::api::Api;
use steward_tests::certificate::create_certificate;
use steward_tests::fleet::{BUCKET, Fleet, Tenant};
use steward_tests::provider::{Provider, Reply};
use steward_tests::rehearsal::{Form, Report};
use steward_tests::runs::{self, RunFacts};
use steward_tests::supervisor::Supervised;
use steward_tests::{postgres, wait};

const COUNT: usize = 4;
const CADENCE: TimeDelta = TimeDelta::seconds(5);
/// So long that some calls are open when their process is asked to end.
const ANSWER: Duration = Duration::from_millis(500);
/// How long the rest of the work may take after the last change.
const FINISH: Duration = Duration::from_secs(60);
/// A process looks at its certificate at most once in this time.
const CERTIFICATE_CHECK: Duration = Duration::from_secs(60);
const OLD_KEY: &str = "key-of-before";
const NEW_KEY: &str = "key-of-now";
const TICKS: &str = "WorkflowType = 'StewardWorkflow'";
const FAILED_TICKS: &str =
    "WorkflowType = 'StewardWorkflow' AND ExecutionStatus IN ('Failed', 'TimedOut', 'Terminated')";

/// The files of one tenant that a rotation changes.
struct Secrets {
    model_key: PathBuf,
    password: PathBuf,
    /// The database with the old password.
    old_database: String,
}

struct Member {
    tenant: Tenant,
    process: Supervised,
    secrets: Secrets,
    /// When the password of its role was changed.
    changed: Option<DateTime<Utc>>,
    tasks: Vec<String>,
}

struct Scene {
    fleet: Fleet,
    provider: Provider,
    members: Vec<Member>,
    /// Moments at which neither the old certificate nor the new one was served.
    outages: usize,
}

/// Writes a key as `install -m 400` does.
fn install_secret(path: &Path, text: &str) {
    let next = path.with_extension("next");
    std::fs::write(&next, format!("{text}\n")).unwrap();
    std::fs::set_permissions(&next, PermissionsExt::from_mode(0o400)).unwrap();
    std::fs::rename(next, path).unwrap();
}

fn format_password_line(tenant: &str, password: &str) -> String {
    format!("*:*:*:steward_tenant_{tenant}:{password}")
}

/// Moves a tenant's keys from its environment into files, as the unit of systemd has them.
fn use_secret_files(tenant: &mut Tenant) -> Secrets {
    let old_database = tenant.steward.variable("STEWARD_FLEET_DB").unwrap().to_owned();
    let (login, place) = old_database.strip_prefix("postgres://").unwrap().split_once('@').unwrap();
    let (role, password) = login.split_once(':').unwrap();
    let (model_key, passwords) = (tenant.folder.join("clerk_key"), tenant.folder.join("pgpass"));
    install_secret(&model_key, OLD_KEY);
    install_secret(&passwords, &format_password_line(&tenant.id, password));
    let database = format!("postgres://{role}@{place}");
    tenant
        .steward
        .set("STEWARD_FLEET_DB", database)
        .set("PGPASSFILE", passwords.display())
        .set("STEWARD_CLERK_KEY_FILE", model_key.display());
    Secrets { model_key, password: passwords, old_database }
}

impl Member {
    fn feed(&mut self) {
        let task = format!("t{}", self.tasks.len());
        self.tenant.feed(&task, "house");
        self.tasks.push(task);
    }

    fn count_unfinished(&self) -> usize {
        self.tasks.iter().filter(|task| !self.tenant.is_done(task)).count()
    }

    /// Whether the server shows exactly this certificate to a new connection.
    async fn serves_certificate(&self, certificate: &Path) -> bool {
        let base = self.process.open_api().base.replace("127.0.0.1", "localhost");
        Api::trusting(&base, certificate).find_status("/healthz").await == Some(200)
    }
}

impl Scene {
    async fn start() -> Self {
        let fleet = Fleet::new("rotation", postgres::server().await).await;
        let provider = Provider::start(|_, _, _| Reply::Done(ANSWER)).await;
        provider.accept_keys(&[OLD_KEY, NEW_KEY]);
        let mut members = Vec::new();
        for n in 0..COUNT {
            let mut tenant = fleet.add_tenant(&format!("rotate-{n}"), &["house"]).await;
            fleet.run(&["fleet", "tenant", "set", &tenant.id, "--bucket", BUCKET]).await;
            tenant.set_cadence(u32::try_from(CADENCE.num_seconds()).unwrap());
            tenant.ask(&provider);
            let secrets = use_secret_files(&mut tenant);
            if n == 0 {
                let (cert, key) = create_certificate(&tenant.folder, "localhost").await;
                tenant.steward.set("STEWARD_TLS_CERT", cert.display()).set("STEWARD_TLS_KEY", key.display());
            }
            let process = Supervised::start(&tenant.steward);
            members.push(Member { tenant, process, secrets, changed: None, tasks: Vec::new() });
        }
        for member in &members {
            member.process.serves().await;
            fleet.hold_router(&member.tenant).await;
        }
        Self { fleet, provider, members, outages: 0 }
    }

    fn feed_all(&mut self) {
        self.members.iter_mut().for_each(Member::feed);
    }

    async fn rotate_model_key(&mut self, n: usize) {
        self.feed_all();
        install_secret(&self.members[n].secrets.model_key, NEW_KEY);
        self.members[n].process.restart().await;
    }

    /// Postgres knows one password for a role: the file comes first, and the restart right after the change of the role.
    async fn rotate_password(&mut self, n: usize) {
        self.feed_all();
        let (member, new) = (&mut self.members[n], format!("password-of-now-{n}"));
        let id = &member.tenant.id;
        install_secret(&member.secrets.password, &format_password_line(id, &new));
        self.fleet.sql(&format!("ALTER ROLE \"steward_tenant_{id}\" PASSWORD '{new}'"));
        member.changed = Some(Utc::now());
        member.process.restart().await;
    }

    /// Gives the first tenant another certificate. Returns a copy of the former one.
    async fn replace_certificate(&self) -> PathBuf {
        let folder = &self.members[0].tenant.folder;
        let former = folder.join("former.pem");
        std::fs::copy(folder.join("localhost.pem"), &former).unwrap();
        let fresh = folder.join("fresh");
        std::fs::create_dir(&fresh).unwrap();
        create_certificate(&fresh, "localhost").await;
        for file in ["localhost.pem", "localhost.key"] {
            std::fs::rename(fresh.join(file), folder.join(file)).unwrap();
        }
        former
    }

    /// Waits until the first tenant serves its new certificate, while work goes on. Returns whether it does.
    async fn wait_for_certificate(&mut self, former: &Path) -> bool {
        let begun = Utc::now();
        let fresh = self.members[0].tenant.folder.join("localhost.pem");
        while Utc::now() - begun < TimeDelta::from_std(CERTIFICATE_CHECK + FINISH).unwrap() {
            if self.members[0].serves_certificate(&fresh).await {
                return !self.members[0].serves_certificate(former).await;
            }
            let is_former = self.members[0].serves_certificate(former).await;
            self.outages += usize::from(!is_former && !self.members[0].serves_certificate(&fresh).await);
            self.feed_all();
            wait::a_moment(Duration::from_secs(3)).await;
        }
        false
    }

    async fn finish(&self) {
        let finished = wait::until("all work to be done", async || {
            self.members.iter().all(|member| member.count_unfinished() == 0).then_some(())
        });
        if tokio::time::timeout(FINISH, finished).await.is_err() {
            eprintln!("rotation: the work is not done in time");
        }
    }

    /// How many tenants asked with the new key alone since a moment.
    fn count_tenants_with_new_key(&self, since: DateTime<Utc>) -> usize {
        let arrivals = self.provider.arrivals();
        let has_new = |member: &&Member| {
            let mut calls =
                arrivals.iter().filter(|call| call.at > since && call.tenant == member.tenant.id).peekable();
            calls.peek().is_some() && calls.all(|call| call.key == NEW_KEY)
        };
        self.members.iter().filter(has_new).count()
    }

    /// Sessions that began before the password of their role was changed.
    fn count_old_sessions(&self) -> usize {
        let count = |member: &Member| {
            let (id, changed) = (&member.tenant.id, member.changed.unwrap().to_rfc3339());
            let sessions = format!(
                "SELECT count(*) FROM pg_stat_activity WHERE usename = 'steward_tenant_{id}' AND backend_start < '{changed}'"
            );
            self.fleet.sql(&sessions).parse::<usize>().unwrap()
        };
        self.members.iter().map(count).sum()
    }

    /// The old secrets that still open something: the provider's key, and each tenant's password.
    async fn count_accepted_old_secrets(&self) -> usize {
        let question = json!({"subject": {"task": "task/none.md"}, "signals": []}).to_string();
        let body = json!({"model": "nobody", "messages": [{"role": "user", "content": question}]});
        let caller = Api::new(&self.provider.url).with("authorization", &format!("Bearer {OLD_KEY}"));
        let mut accepted = usize::from(caller.post("/chat/completions", &body).await.status != 401);
        for member in &self.members {
            let refused = self.fleet.postgres.try_sql(&member.secrets.old_database, "SELECT 1");
            accepted += usize::from(!refused.is_err_and(|e| e.contains("password authentication failed")));
        }
        accepted
    }
}

/// The longest time in which a tenant's matter was not checked, in whole intervals that were missed.
fn count_missed_intervals(ticks: &[RunFacts], tenant: &str) -> usize {
    let prefix = format!("al-steward-house@{tenant}-");
    let ticks: Vec<&RunFacts> = ticks.iter().filter(|run| run.id.starts_with(&prefix)).collect();
    let gaps = ticks.windows(2).map(|pair| pair[1].started - pair[0].closed.unwrap_or(pair[1].started));
    let longest = gaps.max().expect("ticks").num_milliseconds();
    let cadence = CADENCE.num_milliseconds();
    usize::try_from(((longest + cadence / 2) / cadence - 1).max(0)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn rotation_of_keys_fails_no_tick_and_ends_with_the_old_ones_refused() {
    let mut report = Report::new("rotation");
    if !Form::read().has_long_scene("rotation") {
        return;
    }
    let mut scene = Scene::start().await;
    let mut former = PathBuf::new();
    for n in 0..COUNT {
        scene.rotate_model_key(n).await;
        scene.rotate_password(n).await;
        if n == 0 {
            former = scene.replace_certificate().await;
        }
    }
    let (restarts, served) = (count_starts(&scene), scene.wait_for_certificate(&former).await);
    scene.finish().await;
    // From here on the old key is removed at the provider.
    scene.provider.accept_keys(&[NEW_KEY]);
    let removed = Utc::now();
    scene.feed_all();
    scene.finish().await;

    let refused = scene.provider.arrivals().iter().filter(|call| !call.authorised).count();
    let ticks = runs::list_runs(&scene.fleet.client, TICKS).await;
    let missed = scene.members.iter().map(|member| count_missed_intervals(&ticks, &member.tenant.id)).max();
    let unfinished: usize = scene.members.iter().map(Member::count_unfinished).sum();
    let surplus = scene.members.iter().map(|member| count_surplus_records(&member.tenant, &member.tasks)).sum();
    report
        .add("processes", COUNT)
        .add("tasks", scene.members.iter().map(|member| member.tasks.len()).sum::<usize>())
        .add("calls", scene.provider.arrivals().len())
        .add("ticks", ticks.len())
        .must_be("restarts", restarts - COUNT, 2 * COUNT)
        .must_be("restarts_for_the_certificate", count_starts(&scene) - restarts, 0)
        .must_be("new_certificate_alone_is_served", usize::from(served), 1)
        .must_be("certificate_outages", scene.outages, 0)
        .must_be("refused_calls", refused, 0)
        .must_be("failed_ticks", runs::list_runs(&scene.fleet.client, FAILED_TICKS).await.len(), 0)
        .must_be("failed_workflow_tasks", count_failed_tasks(&scene.fleet).await, 0)
        .must_be("missed_intervals", missed.unwrap(), 0)
        .must_be("tasks_not_done", unfinished, 0)
        .must_be("surplus_records", surplus, 0)
        .must_be("tenants_with_the_new_key", scene.count_tenants_with_new_key(removed), COUNT)
        .must_be("sessions_of_an_old_password", scene.count_old_sessions(), 0)
        .must_be("old_secrets_accepted", scene.count_accepted_old_secrets().await, 0);
    let tenants: Vec<Tenant> = scene.members.into_iter().map(|member| member.tenant).collect();
    report.must_be("broken_chains", count_broken_chains(&tenants).await, 0);
    report.finish();
}

/// All starts of all processes.
fn count_starts(scene: &Scene) -> usize {
    scene.members.iter().map(|member| member.process.starts().len()).sum()
}

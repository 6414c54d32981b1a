//! Schedules that are missing at the server are noticed, shown and registered again.

use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use steward_tests::vault::Signal;
use steward_tests::world::World;
use steward_tests::{api, run, wait};
use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions, Url};

/// Far beyond the end of a test.
const NEVER: u32 = 36_000;
const ROUTINES: [&str; 5] = [
    "al-reversal-calibration",
    "al-reversibility-drill",
    "al-signal-extract",
    "al-signal-router",
    "al-stream-event-purge",
];

/// The ids of all schedules of a namespace, as the server itself lists them.
async fn listed(client: &Client) -> Vec<String> {
    use futures::TryStreamExt;
    let rows = client.list_schedules(Default::default()).try_collect::<Vec<_>>().await;
    let mut ids: Vec<String> = rows.unwrap_or_default().iter().map(|row| row.schedule_id().to_owned()).collect();
    ids.sort();
    ids
}

async fn until_listed(client: &Client, matters: &[&str]) {
    let mut expected: Vec<String> = matters.iter().map(|slug| format!("al-steward-{slug}")).collect();
    expected.extend(ROUTINES.map(str::to_owned));
    expected.sort();
    wait::until(&format!("the schedules {expected:?}"), async || (listed(client).await == expected).then_some(()))
        .await;
}

async fn delete_all(world: &World) {
    for id in listed(&world.client).await {
        world.client.get_schedule_handle(&id).delete(Default::default()).await.unwrap();
    }
}

#[tokio::test]
async fn schedules_that_were_deleted_are_registered_again_by_themselves() {
    let world = World::new().await.set("STEWARD_SCHEDULE_CHECK_SECONDS", 1).set("STEWARD_SCAN_SECONDS", NEVER);
    world.vault.matter("house");
    world.vault.matter("garden");
    let _worker = world.worker().await;
    until_listed(&world.client, &["house", "garden"]).await;
    delete_all(&world).await;
    until_listed(&world.client, &["house", "garden"]).await;
}

#[tokio::test]
async fn a_wake_that_finds_its_schedule_missing_has_all_of_them_registered_at_once() {
    let world = World::new().await.set("STEWARD_SCHEDULE_CHECK_SECONDS", NEVER).set("STEWARD_SCAN_SECONDS", NEVER);
    world.vault.matter("house");
    world.vault.matter("garden");
    world.vault.task("rent", "house");
    let _worker = world.worker().await;
    until_listed(&world.client, &["house", "garden"]).await;
    delete_all(&world).await;
    wait::until("none to be listed", async || listed(&world.client).await.is_empty().then_some(())).await;
    world.vault.signal("s1", &Signal::done("rent"));
    until_listed(&world.client, &["house", "garden"]).await;
}

#[tokio::test]
async fn schedules_that_are_missing_show_in_status_doctor_and_readiness() {
    let world = World::new().await.set("STEWARD_SCHEDULE_CHECK_SECONDS", 7_200).set("STEWARD_SCAN_SECONDS", NEVER);
    world.vault.matter("house");
    world.vault.matter("garden");
    let (_up, api) = api::up(&world).await;
    until_listed(&world.client, &["house", "garden"]).await;
    let finding = async || {
        let said = world.run(&["--json", "doctor"]).await.json();
        said.as_array().unwrap().iter().find(|each| each["check"] == "schedules").cloned().unwrap()
    };
    // The routines are registered one by one, after the matters.
    wait::until("all to be registered", async || (finding().await["ok"] == json!(true)).then_some(())).await;
    let status = world.json(&["status"]).await;
    assert_eq!(
        (&status["schedules"]["registered"]["expected"], &status["schedules"]["fault"]),
        (&json!(7), &Value::Null)
    );
    let ready = async || (api.get("/readyz").await.body == "ready").then_some(());
    wait::until("readiness", ready).await;

    world.client.get_schedule_handle("al-steward-house").delete(Default::default()).await.unwrap();
    world.client.get_schedule_handle("al-signal-router").delete(Default::default()).await.unwrap();
    let fault = "2 of 7 schedules are missing at the server; the worker registers them again within 120 minutes";
    let told = async || (world.json(&["status"]).await["schedules"]["fault"] == json!(fault)).then_some(());
    wait::until("status to say so", told).await;
    assert!(world.run(&["status"]).await.expect(0).out.contains(fault));
    let found = finding().await;
    assert_eq!((&found["ok"], &found["found"]), (&json!(false), &json!(fault)));
    world.run(&["doctor"]).await.expect(4);
    // Other problems may be listed first: on a busy machine the server answers late.
    let unready = async || {
        let answer = api.get("/readyz").await;
        (answer.status == 503 && answer.json()["detail"] == json!(fault)).then_some(())
    };
    wait::within(2 * wait::PATIENCE, "readiness to say so", unready).await;

    world.run(&["schedules", "apply"]).await.expect(0);
    wait::within(2 * wait::PATIENCE, "readiness to come back", ready).await;
}

/// A server of one test, which can lose its database.
struct Server {
    child: Child,
    port: u16,
    database: PathBuf,
}

impl Server {
    fn start(world: &World, port: u16) -> Self {
        let database = world.folder.join("own-temporal.db");
        let child = Command::new(run::temporal_cli())
            .args(["server", "start-dev", "--headless", "--ip", "127.0.0.1", "--log-level", "error"])
            .args(["--port", &port.to_string(), "--db-filename"])
            .arg(&database)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        run::note(child.id());
        Self { child, port, database }
    }

    async fn client(&self) -> Client {
        let url = Url::parse(&format!("http://127.0.0.1:{}", self.port)).unwrap();
        wait::until("the test's own server to answer", async || {
            let connection = Connection::connect(ConnectionOptions::new(url.clone()).build()).await.ok()?;
            let client = Client::new(connection, ClientOptions::new("default").build()).ok()?;
            use futures::TryStreamExt;
            let lists = client.list_schedules(Default::default()).try_collect::<Vec<_>>().await.is_ok();
            lists.then_some(client)
        })
        .await
    }

    fn end(mut self) -> u16 {
        run::strike(self.child.id());
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        for file in ["", "-wal", "-shm"] {
            // Not all of them exist.
            let _ = std::fs::remove_file(format!("{}{file}", self.database.display()));
        }
        self.port
    }
}

#[tokio::test]
async fn a_server_that_lost_its_database_has_all_schedules_again() {
    let world = World::new().await;
    let server = Server::start(&world, run::free_port());
    let world = world
        .set("TEMPORAL_ADDRESS", format!("127.0.0.1:{}", server.port))
        .set("TEMPORAL_NAMESPACE", "default")
        .set("STEWARD_SCHEDULE_CHECK_SECONDS", 2);
    world.vault.matter("house");
    world.vault.matter("garden");
    let client = server.client().await;
    let mut worker = world.steward.start(&["worker"]);
    worker.says("serving the vault").await;
    until_listed(&client, &["house", "garden"]).await;
    drop(client);
    let server = Server::start(&world, server.end());
    let client = server.client().await;
    until_listed(&client, &["house", "garden"]).await;
    assert!(worker.status().is_none(), "{}", worker.err());
    drop(worker);
    server.end();
}

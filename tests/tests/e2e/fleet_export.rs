//! `steward fleet export`: the metrics of a fleet as Prometheus reads them, who gets them, and what a reader may do.

use crate::metrics::{documented, read_names, value};
use crate::tenants::{connect, copy_of, fleet, info, operator, tenant};
use futures::future::join_all;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::time::{Duration, Instant};
use steward_domain::action::audit::ChainHead;
use steward_domain::fleet::provider_gate::{BucketWindow, GateRequest};
use steward_domain::gates::mode::Mode;
use steward_fleet::tenants::TenantChange;
use steward_fleet::{BucketGate, ConnectedRole, FleetStore, VaultOwnership};
use steward_tests::api::Api;
use steward_tests::gate::Gate;
use steward_tests::postgres::{self, Postgres};
use steward_tests::steward::{Running, Steward};
use steward_tests::{run, wait};

/// Longer than the 3 s that a scrape waits for the database, and far shorter than 20 such waits one after another.
const ONE_WAIT: Duration = Duration::from_secs(20);
/// The tables that a reader sees.
const TABLES: [&str; 9] =
    ["fleet", "tenant", "owner", "stop", "bucket", "bucket_state", "gate_call", "gate_tokens", "gate_tenant"];

/// The URL of a new role that can only read.
fn create_reader(postgres: &Postgres, url: &str, role: &str) -> String {
    // Roles belong to the whole server.
    postgres.sql(url, &format!("DROP ROLE IF EXISTS {role}"));
    postgres.sql(url, &format!("CREATE ROLE {role} LOGIN PASSWORD 'readerspassword' IN ROLE steward_reader"));
    Postgres::url_for(url, role, "readerspassword")
}

fn steward(url: &str) -> Steward {
    let (folder, _) = run::new_folder();
    Steward::new(&folder).with("STEWARD_FLEET_DB", url)
}

/// Starts the exporter on a free port.
async fn start(steward: &Steward, arguments: &[&str]) -> (Running, Api) {
    let mut running = steward.start(&[&["fleet", "export"], arguments].concat());
    running.says("Ctrl-C ends it").await;
    let out = running.out();
    let base = out.split("metrics: ").nth(1).and_then(|rest| rest.split("/metrics").next()).unwrap();
    let api = Api::new(&base.replace("0.0.0.0", "127.0.0.1"));
    (running, api)
}

async fn scrape(api: &Api) -> String {
    let answer = api.get("/metrics").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    well_formed(&answer.body);
    answer.body
}

/// Waits until a scrape holds this line: a scrape may show what the last one read.
async fn shows(api: &Api, sample: &str, expected: f64) -> String {
    wait::until(&format!("{sample} {expected}"), async || {
        let text = scrape(api).await;
        let found = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.parse::<f64>().ok());
        (found == Some(expected)).then_some(text)
    })
    .await
}

/// Each metric is described once before its samples, and no sample comes twice.
fn well_formed(text: &str) {
    let (mut described, mut seen, mut current) = (BTreeSet::new(), BTreeSet::new(), String::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            rest.split_once(' ').unwrap().0.clone_into(&mut current);
            assert!(described.insert(current.clone()), "{current} is described twice");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            assert!(rest.starts_with(&format!("{current} ")), "{line} after HELP of {current}");
        } else {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            value.parse::<f64>().unwrap();
            assert_eq!(sample.split('{').next(), Some(current.as_str()), "{line} outside of its metric");
            assert!(seen.insert(sample.to_owned()), "{sample} comes twice");
        }
    }
    assert!(seen.contains("steward_fleet_up"), "{text}");
}

/// The series of the fleet in a scrape.
fn fleet_series(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("steward_fleet_")).collect()
}

/// A fleet of two tenants, one of them in a bucket, and an exporter with a reader's role.
async fn watched(ids: [&str; 2]) -> (String, FleetStore, Running, Api) {
    let postgres = postgres::server().await;
    let (url, admin) = fleet(postgres, &ids).await;
    let window = |seconds, calls, tokens| BucketWindow { seconds, calls, tokens };
    let windows = [window(60, Some(9), Some(5_000)), window(20, Some(4), None)];
    admin.set_bucket("model", &windows, &operator()).await.unwrap();
    let change = TenantChange { bucket: Some("model".into()), ..TenantChange::default() };
    admin.change_tenant(&tenant(ids[0]), change, &operator()).await.unwrap();
    let reader = create_reader(postgres, &url, &format!("reads_{}", ids[0].replace('-', "_")));
    let (exporter, api) = start(&steward(&reader), &["--listen", "127.0.0.1:0"]).await;
    (url, admin, exporter, api)
}

fn holds(text: &str, expected: &[(&str, f64)]) {
    for (sample, expected) in expected {
        assert!((value(text, sample) - expected).abs() < f64::EPSILON, "{sample} in:\n{text}");
    }
}

#[tokio::test]
async fn a_scrape_shows_a_tenant_from_its_first_start_to_its_end() {
    let (url, admin, mut exporter, api) = watched(["first-a", "first-b"]).await;
    let text = scrape(&api).await;
    holds(
        &text,
        &[
            ("steward_fleet_up", 1.0),
            ("steward_fleet_tenant_owned{tenant=\"first-a\"}", 0.0),
            ("steward_fleet_stop_timestamp_seconds", 0.0),
            ("steward_fleet_database_max_connections", 200.0),
            ("steward_fleet_bucket_calls{bucket=\"model\",window=\"minute\"}", 0.0),
            ("steward_fleet_bucket_calls_cap{bucket=\"model\",window=\"20s\"}", 4.0),
        ],
    );
    assert!(value(&text, "steward_fleet_database_connections") >= 1.0);
    assert!(!text.contains("heartbeat_age"), "nobody was ever heard:\n{text}");

    let store = connect(&url, "first-a").await;
    let permit = store.claim_vault(&tenant("first-a"), &copy_of("vault", "copy"), &info()).await.unwrap();
    let text = shows(&api, "steward_fleet_tenant_epoch{tenant=\"first-a\"}", 1.0).await;
    holds(&text, &[("steward_fleet_tenant_mode_mismatch{tenant=\"first-a\"}", 0.0)]);
    let gate = BucketGate::new(VaultOwnership::start(permit, Arc::new(ChainHead::genesis)).await);
    gate.reserve(&GateRequest { call: "a-call".into(), tokens: 700, seen: None }).await.unwrap();
    let text = shows(&api, "steward_fleet_bucket_tokens{bucket=\"model\",window=\"minute\"}", 700.0).await;
    holds(&text, &[("steward_fleet_bucket_calls{bucket=\"model\",window=\"20s\"}", 1.0)]);

    admin.drop_tenant(&tenant("first-b"), &operator()).await.unwrap();
    wait::until("no series of the dropped tenant", async || (!scrape(&api).await.contains("first-b")).then_some(()))
        .await;
    assert!(exporter.status().is_none(), "{}", exporter.err());
    // An operator's role will do as well.
    let (operators, by_operator) = start(&steward(&url), &["--listen", "127.0.0.1:0"]).await;
    shows(&by_operator, "steward_fleet_tenant_owned{tenant=\"first-a\"}", 1.0).await;
    assert!(operators.stop().await.success());
}

#[tokio::test]
async fn a_scrape_shows_what_is_wrong_with_a_tenant_and_a_bucket_and_nothing_secret() {
    let (url, admin, _exporter, api) = watched(["wrong-a", "wrong-b"]).await;
    let store = connect(&url, "wrong-a").await;
    store.claim_vault(&tenant("wrong-a"), &copy_of("vault", "copy"), &info()).await.unwrap();
    let text = shows(&api, "steward_fleet_tenant_mode_mismatch{tenant=\"wrong-a\"}", 0.0).await;
    assert!(value(&text, "steward_fleet_tenant_heartbeat_age_seconds{tenant=\"wrong-a\"}") < 3_600.0);

    let expect_live = TenantChange { expected_mode: Some(Mode::Live), ..TenantChange::default() };
    admin.change_tenant(&tenant("wrong-a"), expect_live, &operator()).await.unwrap();
    assert!(admin.stop_tenants(None, &operator()).await.unwrap());
    assert!(admin.stop_tenants(Some(&tenant("wrong-b")), &operator()).await.unwrap());
    let sql = "UPDATE owner SET seen = seen - interval '1 hour'; \
        UPDATE bucket_state SET back_off_set = to_timestamp(1000), back_off_until = to_timestamp(2000), \
        probe_call = 'wrong-a/a-call', probe_since = to_timestamp(1500), lost_at = now(), lost_why = 'moved', \
        doubted_since = now()";
    postgres::server().await.sql(&url, sql);
    shows(&api, "steward_fleet_bucket_lost{bucket=\"model\"}", 1.0).await;
    let text = shows(&api, "steward_fleet_tenant_mode_mismatch{tenant=\"wrong-a\"}", 1.0).await;
    holds(
        &text,
        &[
            ("steward_fleet_bucket_back_off_since_timestamp_seconds{bucket=\"model\"}", 1_000.0),
            ("steward_fleet_bucket_back_off_until_timestamp_seconds{bucket=\"model\"}", 2_000.0),
            ("steward_fleet_bucket_probe_pending{bucket=\"model\"}", 1.0),
            ("steward_fleet_bucket_doubted{bucket=\"model\"}", 1.0),
            ("steward_fleet_tenant_stop_timestamp_seconds{tenant=\"wrong-a\"}", 0.0),
        ],
    );
    let stopped = "steward_fleet_tenant_stop_timestamp_seconds{tenant=\"wrong-b\"}";
    for stop in ["steward_fleet_stop_timestamp_seconds", stopped] {
        assert!(value(&text, stop) > 1.7e9, "{stop} in:\n{text}");
    }
    assert!(value(&text, "steward_fleet_tenant_heartbeat_age_seconds{tenant=\"wrong-a\"}") >= 3_600.0);
    let clock = "UPDATE bucket_state SET lost_at = NULL, lost_why = NULL";
    postgres::server().await.sql(&url, clock);
    let listed = steward(&url).run(&["fleet", "bucket", "list"]).await.expect(0).out;
    assert!(listed.contains("clock is behind"), "the list says what the alert means: {listed}");
    every_metric_is_documented(&text);
    for secret in ["password", "postgres:", "7@host", "8420", "a-call", "a test", "ann", "vault", "copy"] {
        assert!(!fleet_series(&text).iter().any(|line| line.contains(secret)), "{secret} is in a metric:\n{text}");
    }
}

fn every_metric_is_documented(text: &str) {
    let (documented, found) = (documented("Metrics of the fleet"), read_names(text));
    for (name, labels) in found.iter().filter(|(name, _)| name.starts_with("steward_")) {
        assert_eq!(documented.get(name), Some(labels), "{name}: add it to the table in docs/operations.md");
    }
    for name in documented.keys() {
        assert!(found.contains_key(name), "{name} is documented, and not in:\n{text}");
    }
}

#[tokio::test]
async fn a_killed_database_leaves_no_old_value_and_its_return_is_seen() {
    let mut own = Postgres::start().await;
    let (url, _admin) = fleet(&own, &["silent-a"]).await;
    let (mut exporter, api) =
        start(&steward(&create_reader(&own, &url, "silent_reader")), &["--listen", "127.0.0.1:0"]).await;
    shows(&api, "steward_fleet_tenant_owned{tenant=\"silent-a\"}", 0.0).await;
    own.kill();
    let silent = shows(&api, "steward_fleet_up", 0.0).await;
    assert_eq!(fleet_series(&silent), ["steward_fleet_up 0"], "no value of before");
    own.start_again().await;
    shows(&api, "steward_fleet_tenant_owned{tenant=\"silent-a\"}", 0.0).await;
    assert!(exporter.status().is_none(), "{}", exporter.err());
    assert_eq!(exporter.err().matches("no metrics of tenants are served").count(), 1, "{}", exporter.err());
    own.kill();
}

#[tokio::test]
async fn a_database_that_hangs_is_given_up_and_all_who_scrape_wait_for_it_once() {
    let (url, _admin) = fleet(postgres::server().await, &["hangs-a"]).await;
    let (user, place) = url.split_once('@').unwrap();
    let (server, database) = place.split_once('/').unwrap();
    let cut = Gate::new(server).await;
    let (_exporter, behind) =
        start(&steward(&format!("{user}@{}/{database}", cut.address)), &["--listen", "127.0.0.1:0"]).await;
    shows(&behind, "steward_fleet_up", 1.0).await;
    cut.close();
    let begun = Instant::now();
    let all = join_all((0..20).map(|_| shows(&behind, "steward_fleet_up", 0.0))).await;
    assert!(begun.elapsed() < ONE_WAIT, "each of them waited for itself: {:?}", begun.elapsed());
    assert!(all.iter().all(|text| fleet_series(text) == ["steward_fleet_up 0"]), "{all:?}");
    cut.open();
    shows(&behind, "steward_fleet_up", 1.0).await;
}

#[tokio::test]
async fn a_reader_sees_the_tables_and_changes_none_and_is_no_operator() {
    let postgres = postgres::server().await;
    let (url, admin) = fleet(postgres, &["reader-a"]).await;
    admin
        .set_bucket("model", &[BucketWindow { seconds: 60, calls: Some(9), tokens: None }], &operator())
        .await
        .unwrap();
    connect(&url, "reader-a").await.claim_vault(&tenant("reader-a"), &copy_of("vault", "copy"), &info()).await.unwrap();
    assert!(admin.stop_tenants(None, &operator()).await.unwrap());
    let reader = create_reader(postgres, &url, "watches");
    let column = |table: &str| match table {
        "fleet" => "version",
        "tenant" => "id",
        "stop" => "scope",
        "bucket" => "name",
        "owner" | "gate_call" | "gate_tokens" | "gate_tenant" => "tenant",
        _ => "bucket",
    };
    for table in TABLES {
        postgres.sql(&reader, &format!("SELECT * FROM {table}"));
        let column = column(table);
        for sql in [
            format!("INSERT INTO {table} DEFAULT VALUES"),
            format!("UPDATE {table} SET {column} = {column}"),
            format!("DELETE FROM {table}"),
            format!("TRUNCATE {table} CASCADE"),
            format!("SELECT * FROM {table} FOR UPDATE"),
            format!("DROP TABLE {table} CASCADE"),
        ] {
            let refused = postgres.try_sql(&reader, &sql).unwrap_err();
            assert!(refused.contains("permission denied") || refused.contains("must be owner"), "{sql}: {refused}");
        }
    }
    for table in ["tenant", "owner", "stop", "bucket", "bucket_state"] {
        assert_eq!(postgres.sql(&reader, &format!("SELECT count(*) FROM {table}")), "1", "{table}: its rows are seen");
    }
    for sql in
        ["SELECT * FROM ops_log", "SELECT record_event('a', 'b', 'c', NULL, NULL, 'd')", "CREATE TABLE x (y int)"]
    {
        assert!(postgres.try_sql(&reader, sql).unwrap_err().contains("permission denied"), "{sql}");
    }
    let roles = [(&reader, ConnectedRole::Reader), (&url, ConnectedRole::Operator)];
    for (url, role) in roles {
        assert_eq!(FleetStore::connect(url).await.unwrap().find_connected_role().await.unwrap(), role);
    }
    for command in [&["fleet", "status"][..], &["fleet", "bucket", "list"], &["fleet", "log"], &["resume", "--fleet"]] {
        let said = steward(&reader).run(command).await.expect(1);
        assert!(said.err.contains("can only read") && said.err.contains("operator's"), "{said}");
    }
    assert!(admin.list_tenants(None).await.unwrap()[0].stop.is_some(), "the stop still holds");
}

#[tokio::test]
async fn others_need_the_token_a_tenant_is_refused_and_the_end_is_polite() {
    let postgres = postgres::server().await;
    let (url, _admin) = fleet(postgres, &["token-a"]).await;
    let reader = create_reader(postgres, &url, "token_reader");
    let theirs = Postgres::url_for(&url, "steward_tenant_token-a", "password7");
    let refused = steward(&theirs).run(&["fleet", "export"]).await.expect(3);
    assert!(
        refused.err.contains("the role of the tenant token-a") && refused.err.contains("steward_reader"),
        "{refused}"
    );
    let refused = steward(&reader).run(&["fleet", "export", "--listen", "0.0.0.0:0"]).await.expect(3);
    assert!(refused.err.contains("--token-file"), "{refused}");
    let unset = steward(&reader).without("STEWARD_FLEET_DB").run(&["fleet", "export"]).await.expect(1);
    assert!(unset.err.contains("set STEWARD_FLEET_DB"), "{unset}");

    let (folder, _) = run::new_folder();
    let (token, socket) = (folder.join("token"), folder.join("notify"));
    std::fs::write(&token, "0123456789abcdef\n").unwrap();
    std::fs::set_permissions(&token, PermissionsExt::from_mode(0o600)).unwrap();
    let notified = UnixDatagram::bind(&socket).unwrap();
    let steward = steward(&reader).with("NOTIFY_SOCKET", socket.display());
    let arguments = ["--listen", "0.0.0.0:0", "--token-file", token.to_str().unwrap()];
    let (exporter, api) = start(&steward, &arguments).await;
    let mut message = [0; 64];
    let length = notified.recv(&mut message).unwrap();
    assert_eq!(&message[..length], b"READY=1\n", "systemd is told that it has started");
    assert_eq!(api.get("/healthz").await.status, 200);
    for wrong in
        [api.clone(), api.with("authorization", "Bearer 0123456789abcdeg"), api.with("authorization", "Bearer 0")]
    {
        let answer = wrong.get("/metrics").await;
        assert_eq!((answer.status, answer.body.contains("steward_fleet")), (401, false), "{answer:?}");
    }
    let text = scrape(&api.with("authorization", "Bearer 0123456789abcdef")).await;
    assert!(text.contains("tenant=\"token-a\"") && !text.contains("0123456789"), "{text}");
    assert!(exporter.stop().await.success());

    // Without a token only names of this machine are answered. And it starts while the database is away.
    let (_exporter, api) =
        start(&steward.with("STEWARD_FLEET_DB", "postgres://x:y@127.0.0.1:9/x"), &["--listen", "127.0.0.1:0"]).await;
    assert_eq!(api.with("host", "evil.example").get("/metrics").await.status, 421);
    assert_eq!(fleet_series(&scrape(&api).await), ["steward_fleet_up 0"]);
}

#[tokio::test]
async fn a_lost_standby_and_an_archive_that_fails_are_seen_by_a_reader() {
    let mut primary = Postgres::start().await;
    primary.sql("postgres", "ALTER SYSTEM SET archive_mode = 'on'");
    primary.kill();
    primary.start_again().await;
    let mut standby = primary.start_standby("one").await;
    let url = primary.create_database();
    FleetStore::initialise(&url).await.unwrap();
    let (_exporter, api) = start(&steward(&create_reader(&primary, &url, "reads_archive")), &[]).await;
    shows(&api, "steward_fleet_database_standbys", 1.0).await;

    standby.kill();
    shows(&api, "steward_fleet_database_standbys", 0.0).await;
    for (command, fails) in [("false", 1.0), ("true", 0.0)] {
        primary.sql("postgres", &format!("ALTER SYSTEM SET archive_command = '{command}'"));
        primary.sql("postgres", "SELECT pg_reload_conf()");
        primary.sql("postgres", "SELECT pg_switch_wal()");
        shows(&api, "steward_fleet_database_archive_fails", fails).await;
    }
}

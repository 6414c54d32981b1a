//! Alerts and dashboard: checked by promtool, and read by a real Prometheus that scrapes a real vault.

use crate::{bash, deploy, read_file};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use steward_fleet::FleetStore;
use steward_tests::api::{self, Api};
use steward_tests::postgres;
use steward_tests::steward::Steward;
use steward_tests::world::World;
use steward_tests::{run, wait};
use tokio::process::{Child, Command};

/// Asks Prometheus; the values of the answer.
async fn ask_prometheus(prometheus: &Api, expression: &str) -> Vec<Value> {
    let encoded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let answer = prometheus.get(&format!("/api/v1/query?query={encoded}")).await;
    assert_eq!(answer.status, 200, "{expression}: {}", answer.body);
    answer.json()["data"]["result"].as_array().unwrap().clone()
}

/// Starts Prometheus with the configuration in this folder.
async fn start_prometheus(folder: &Path) -> (Child, Api) {
    let listen = format!("127.0.0.1:{}", run::free_port());
    let log = std::fs::File::create(folder.join("log")).unwrap();
    let process = Command::new("prometheus")
        .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data", &format!("--web.listen-address={listen}")])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .expect("prometheus; `make deploy-test` installs it");
    run::note(process.id().unwrap());
    let prometheus = Api::new(&format!("http://{listen}"));
    wait::until("prometheus to be ready", async || {
        let address = listen.parse().unwrap();
        std::net::TcpStream::connect_timeout(&address, std::time::Duration::from_secs(1)).ok()?;
        (prometheus.get("/-/ready").await.status == 200).then_some(())
    })
    .await;
    (process, prometheus)
}

async fn wait_for_scrape(prometheus: &Api, job: &str) {
    wait::until("a scrape", async || {
        let up = ask_prometheus(prometheus, &format!("up{{job=\"{job}\"}}")).await;
        up.iter().any(|sample| sample["value"][1] == "1").then_some(())
    })
    .await;
}

/// The expressions of the dashboard.
fn list_dashboard_queries() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&read_file("observability/grafana/dashboards/steward.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn each_alert_is_raised_by_its_cause_alone() {
    let folder = deploy().join("observability");
    let said = bash(&format!(
        "cd {} && promtool check rules alerts.yml && promtool test rules alerts_test.yml",
        folder.display()
    ));
    assert!(said.contains("SUCCESS: 32 rules found"), "{said}");
}

#[tokio::test]
async fn a_real_prometheus_reads_a_healthy_vault_without_an_alert_and_sees_a_stop() {
    let world = World::with_one_done().await.live().with_rare_ticks();
    let (_up, api) = api::up(&world).await;
    world.tick("house").await;
    let folder = world.folder.join("prometheus");
    std::fs::create_dir(&folder).unwrap();
    let made = world.json(&["token", "create", "--scope", "read", "--name", "prometheus"]).await;
    std::fs::write(folder.join("metrics_token"), made["token"].as_str().unwrap()).unwrap();
    std::fs::copy(deploy().join("observability/alerts.yml"), folder.join("alerts.yml")).unwrap();
    let config =
        read_file("observability/prometheus.yml").replace("steward:8420", api.base.trim_start_matches("http://"));
    std::fs::write(folder.join("prometheus.yml"), config.replace(": 15s", ": 1s")).unwrap();
    let (_process, prometheus) = start_prometheus(&folder).await;
    wait_for_scrape(&prometheus, "steward").await;
    for expression in list_dashboard_queries() {
        // It is valid, whether or not two scrapes have shown a rate yet.
        ask_prometheus(&prometheus, &expression.replace("$instance", ".*")).await;
    }
    assert_eq!(ask_prometheus(&prometheus, "steward_vault_served").await[0]["value"][1], "1");
    assert_eq!(ask_prometheus(&prometheus, "ALERTS").await, Vec::<Value>::new(), "no alert is raised or pending");
    world.run(&["stop"]).await.expect(0);
    wait::until("the stop to be scraped", async || {
        let stopped = ask_prometheus(&prometheus, "steward_stop_timestamp_seconds > 0").await;
        (!stopped.is_empty()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_real_prometheus_reads_the_exporter_of_a_fleet_once_its_job_has_no_hashes() {
    let database = postgres::server().await.create_database();
    FleetStore::initialise(&database).await.unwrap();
    let (folder, _) = run::new_folder();
    let token = folder.join("fleet_token");
    std::fs::write(&token, "0123456789abcdef\n").unwrap();
    std::fs::set_permissions(&token, PermissionsExt::from_mode(0o600)).unwrap();
    for other in ["metrics_token", "acme_token"] {
        std::fs::write(folder.join(other), "none\n").unwrap();
    }
    std::fs::copy(deploy().join("observability/alerts.yml"), folder.join("alerts.yml")).unwrap();
    let mut steward = Steward::new(&folder);
    let listen = format!("127.0.0.1:{}", run::free_port());
    let arguments = ["fleet", "export", "--listen", &listen, "--token-file", token.to_str().unwrap()];
    let mut exporter = steward.set("STEWARD_FLEET_DB", database).start(&arguments);
    exporter.says("Ctrl-C ends it").await;
    let uncomment = |line: &str| match line.strip_prefix("  # ") {
        Some(rest) if rest.starts_with(['-', ' ']) => format!("  {rest}\n"),
        _ => format!("{line}\n"),
    };
    let config: String = read_file("observability/prometheus.yml").lines().map(uncomment).collect();
    let config = config.replace("127.0.0.1:8430", &listen).replace(": 15s", ": 1s");
    std::fs::write(folder.join("prometheus.yml"), config).unwrap();
    let checked = bash(&format!("cd {} && promtool check config prometheus.yml", folder.display()));
    assert!(checked.contains("32 rules found"), "{checked}");
    let (_process, prometheus) = start_prometheus(&folder).await;
    wait_for_scrape(&prometheus, "steward-fleet").await;
    let fleet = "steward_fleet_up{job=\"steward-fleet\"}";
    assert_eq!(ask_prometheus(&prometheus, fleet).await[0]["value"][1], "1");
    assert_eq!(ask_prometheus(&prometheus, "ALERTS{alertname=~\"StewardFleet.*\"}").await, Vec::<Value>::new());
}

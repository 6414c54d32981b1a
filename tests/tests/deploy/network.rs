//! The NetworkPolicy of a tenant beside the connections that its process really opens, as the kernel saw them.
//!
//! The process has everything that it can talk to, each on a port of its own on loopback. It must open no connection to
//! anywhere else, and the policy must admit the usual port of each. Streams and backups are other hosts at the same ports.

use crate::{bash, read_file, validate_objects};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use steward_tests::fleet::Fleet;
use steward_tests::plane::{ISSUE, KEY, PROJECT, Plane, WORKSPACE, state};
use steward_tests::provider::{Provider, Reply};
use steward_tests::vault::Signal;
use steward_tests::{postgres, run, wait};

/// The port of an address such as `127.0.0.1:4711`, or of a URL.
fn find_port(url: &str) -> u16 {
    let place = url.rsplit_once("://").map_or(url, |(_, rest)| rest);
    let place = place.rsplit_once('@').map_or(place, |(_, rest)| rest);
    place.split('/').next().unwrap().rsplit_once(':').unwrap().1.parse().unwrap()
}

/// The ports that the policy lets a tenant reach.
fn list_admitted_ports() -> BTreeSet<u64> {
    let objects = validate_objects(&read_file("kubernetes/tenant/networkpolicy.yaml")).unwrap();
    let rules = objects[0]["spec"]["egress"].as_array().unwrap().iter();
    let ports = rules.flat_map(|rule| rule["ports"].as_array().unwrap());
    ports.filter_map(|port| (port["protocol"] == "TCP").then(|| port["port"].as_u64()).flatten()).collect()
}

/// Where the traced processes connected to: `<address>:<port>`, and paths of sockets.
fn list_destinations(trace: &str) -> BTreeSet<String> {
    let between = |line: &str, from: &str, to: char| Some(line.split_once(from)?.1.split(to).next()?.to_owned());
    let find = |line: &str| {
        if let Some(path) = between(line, "sun_path=\"", '"') {
            return Some(path);
        }
        let port = between(line, "sin_port=htons(", ')').or_else(|| between(line, "sin6_port=htons(", ')'))?;
        let address = between(line, "inet_addr(\"", '"').or_else(|| between(line, "AF_INET6, \"", '"'))?;
        Some(format!("{address}:{port}"))
    };
    trace.lines().filter(|line| line.contains("connect(")).filter_map(find).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_opens_no_connection_that_the_policy_does_not_name() {
    let fleet = Fleet::new("network", postgres::server().await).await;
    let provider = Provider::start(|_, _, _| Reply::Done(Duration::from_millis(10))).await;
    let plane = Plane::start().await;
    let mut tenant = fleet.add_asking_tenant("network", &["house"], &provider, 2).await;
    let collector = run::free_port();
    tenant.vault.task_with("rent", "house", &format!("plane_issue_id: {ISSUE}\nplane_project_id: {PROJECT}\n"));
    tenant.vault.signal("paid", &Signal::done("rent"));
    tenant
        .steward
        .set("STEWARD_TRACKER_KIND", "plane")
        .set("STEWARD_TRACKER_BASE_URL", &plane.url)
        .set("STEWARD_TRACKER_WORKSPACE", WORKSPACE)
        .set("STEWARD_TRACKER_API_KEY", KEY)
        .set("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://127.0.0.1:{collector}"));
    let trace = tenant.folder.join("trace");
    let wrapped =
        tenant.steward.wrapped(&["strace", "-f", "-qq", "-e", "trace=connect", "-o", trace.to_str().unwrap()]);
    let mut process = wrapped.start(&["up"]);
    process.says("up; Ctrl-C ends it").await;
    wait::until("the tracker's issue to be closed", async || {
        (plane.state_of(ISSUE) != state("In Progress")).then_some(())
    })
    .await;
    let seen = wait::until("a connection to the collector", async || {
        let seen = list_destinations(&std::fs::read_to_string(&trace).unwrap());
        seen.contains(&format!("127.0.0.1:{collector}")).then_some(seen)
    })
    .await;
    // The child of strace is the process itself.
    bash(&format!("pkill -TERM -P {}", process.pid()));
    process.ends().await;

    let usual = BTreeMap::from([
        (find_port(fleet.server.address()), 7233),
        (find_port(&fleet.database), 5432),
        (find_port(&provider.url), 443),
        (find_port(&plane.url), 443),
        (collector, 4317),
    ]);
    let expected: BTreeSet<String> = usual.keys().map(|port| format!("127.0.0.1:{port}")).collect();
    assert_eq!(seen, expected);
    let admitted = list_admitted_ports();
    let missing: Vec<&u64> = usual.values().filter(|port| !admitted.contains(port)).collect();
    assert_eq!(missing, Vec::<&u64>::new(), "the policy admits {admitted:?}");
}

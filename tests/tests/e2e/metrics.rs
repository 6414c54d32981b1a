//! `/metrics`: what Prometheus reads, compared with the table in `docs/operations.md`.

use crate::tracker::{tracked, until_settled};
use chrono::{TimeDelta, Utc};
use std::collections::{BTreeMap, BTreeSet};
use steward_domain::steward::tick::TaskCheckOutcome;
use steward_tests::api::{self, Api};
use steward_tests::certificate::create_certificate;
use steward_tests::clerk::{Clerk, Says};
use steward_tests::plane::{ISSUE, Plane};
use steward_tests::run;
use steward_tests::vault::Signal;
use steward_tests::wait;
use steward_tests::world::World;

/// Appears with the first workflow task that fails, which no test here can bring about.
const ONLY_AFTER_A_FAILURE: &str = "temporal_workflow_task_execution_failed_total";

/// The rows of the table in this section: the labels by the name of the metric.
pub(crate) fn documented(section: &str) -> BTreeMap<String, BTreeSet<String>> {
    let page = std::fs::read_to_string(run::project().join("docs/operations.md")).unwrap();
    let (_, after) = page.split_once(&format!("\n## {section}\n")).unwrap();
    let rows = after
        .split("\n## ")
        .next()
        .unwrap()
        .lines()
        .filter(|line| line.starts_with("| `steward_") || line.starts_with("| `temporal_"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let labels = cells[4].split('`').skip(1).step_by(2).map(str::to_owned).collect();
        (cells[1].trim_matches('`').to_owned(), labels)
    })
    .collect()
}

/// The samples of a scrape: the labels, as they are written, by the name of the metric. A histogram counts once.
pub(crate) fn read_names(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let histograms: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ").and_then(|rest| rest.strip_suffix(" histogram")))
        .collect();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let sample = line.rsplit_once(' ').unwrap().0;
        let (name, labels) = sample.split_once('{').unwrap_or((sample, ""));
        let family = histograms.iter().find(|family| name.starts_with(&format!("{family}_")));
        let names = found.entry((*family.unwrap_or(&name)).to_owned()).or_default();
        let labels =
            labels.trim_end_matches('}').split("\",").filter_map(|pair| Some(pair.split_once('=')?.0.to_owned()));
        names.extend(labels.filter(|label| label != "le"));
    }
    found
}

/// The value of one sample.
pub(crate) fn value(text: &str, sample: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no sample {sample} in:\n{text}")).parse().unwrap()
}

#[tokio::test]
async fn every_metric_is_documented_and_every_documented_one_is_there() {
    let world = World::with_one_done().await.live().set("STEWARD_CAPS_PER_MINUTE", 1).with_rare_ticks();
    let backups = world.folder.join("backups");
    let world = world.set("STEWARD_BACKUP_DIR", backups.display());
    world.vault.task("roof", "house");
    world.vault.signal("s2", &Signal::done("roof"));
    let (_up, api) = api::up(&world).await;
    assert_eq!(api.get("/metrics").await.status, 401, "the numbers are nobody's but the operators'");
    let reader = api.token(&world, "read").await;
    world.tick("house").await;
    let text = reader.get("/metrics").await.body;

    let (documented, found) = (documented("Metrics"), read_names(&text));
    for (name, labels) in &found {
        if name.starts_with("steward_") {
            assert_eq!(documented.get(name), Some(labels), "{name}: add it to the table in docs/operations.md");
        }
    }
    for (name, labels) in &documented {
        let known = name == ONLY_AFTER_A_FAILURE || found.get(name).is_some_and(|found| labels.is_subset(found));
        assert!(known, "{name} with {labels:?} is documented, and not in:\n{text}");
    }
    for (sample, expected) in [
        ("steward_vault_served", 1.0),
        ("steward_mode{mode=\"live\"}", 1.0),
        ("steward_mode{mode=\"shadow\"}", 0.0),
        ("steward_temporal_up", 1.0),
        ("steward_records{kind=\"matter\",state=\"open\"}", 1.0),
        ("steward_guard_cap{window=\"minute\"}", 1.0),
        ("steward_guard_calls{window=\"minute\"}", 1.0),
        ("steward_guard_refuses{cap=\"minute\"}", 1.0),
        ("steward_guard_refusals_total{cap=\"minute\"}", 1.0),
        ("steward_decisions_total{disposition=\"live\"}", 1.0),
        ("steward_stop_timestamp_seconds", 0.0),
        ("steward_paused{reason=\"drain\"}", 0.0),
    ] {
        assert!((value(&text, sample) - expected).abs() < f64::EPSILON, "{sample}: {}", value(&text, sample));
    }
    assert!(value(&text, "process_resident_memory_bytes") > 1e6);
    assert!(value(&text, "steward_disk_free_bytes{folder=\"vault\"}") > 0.0);
    for secret in ["house", "roof", "mail", "task/", world.vault.path().to_str().unwrap()] {
        assert!(!text.contains(secret), "{secret} is in a metric:\n{text}");
    }
}

#[tokio::test]
async fn a_stop_a_drain_and_the_end_of_the_process_show_at_the_next_scrape() {
    let world = World::with_one_done().await.with_rare_ticks();
    let (mut up, api) = api::up(&world).await;
    let reader = api.token(&world, "read").await;
    world.run(&["stop"]).await.expect(0);
    let text = reader.get("/metrics").await.body;
    assert!(value(&text, "steward_stop_timestamp_seconds") > 1.7e9);
    world.run(&["resume"]).await.expect(0);
    world.run(&["drain"]).await.expect(0);
    let text = reader.get("/metrics").await.body;
    assert!(value(&text, "steward_stop_timestamp_seconds").abs() < f64::EPSILON);
    assert!((value(&text, "steward_paused{reason=\"drain\"}") - 1.0).abs() < f64::EPSILON);
    world.run(&["status", "--healthz"]).await.expect(0);

    let mut serve = world.steward.with("STEWARD_LISTEN", "127.0.0.1:0").start(&["serve"]);
    serve.says("Ctrl-C ends it").await;
    let beside = Api::new(api::link(&serve).split("/login").next().unwrap()).token(&world, "read").await;
    up.kill();
    wait::until("the other process to see that nobody serves the vault", async || {
        (value(&beside.get("/metrics").await.body, "steward_vault_served").abs() < f64::EPSILON).then_some(())
    })
    .await;
    assert!(serve.stop().await.success());
    let said = world.run(&["status", "--healthz"]).await.expect(1);
    assert!(said.all().contains("no process of this vault listens"), "{said}");
}

#[tokio::test]
async fn a_refused_key_shows_until_an_answer_and_a_certificate_shows_its_end() {
    let clerk = Clerk::start(|asked| match asked.number {
        1 => Says::Status(401, None),
        _ => Says::Verdict("likely_done", 0.97),
    })
    .await;
    let mut world = World::with_one_done().await.live().with_rare_ticks().asking(&clerk);
    let (cert, key) = create_certificate(&world.folder, "localhost").await;
    world.steward.set("STEWARD_TLS_CERT", cert.display()).set("STEWARD_TLS_KEY", key.display());
    let (_up, api) = api::up(&world).await;
    let api = Api::trusting(&api.base.replace("127.0.0.1", "localhost"), &cert);
    let reader = api.token(&world, "read").await;
    let text = reader.get("/metrics").await.body;
    assert!(value(&text, "steward_clerk_key_refused").abs() < f64::EPSILON, "nobody was asked:\n{text}");
    let days = (value(&text, "steward_certificate_end_timestamp_seconds") - Utc::now().timestamp() as f64) / 86_400.0;
    assert!((8.9..=9.0).contains(&days), "it was made for 9 days: {days}");

    let failed = world.tick("house").await;
    assert!(matches!(failed.evaluated[0].ended, TaskCheckOutcome::ClerkFailed { .. }), "{failed:?}");
    let text = reader.get("/metrics").await.body;
    assert!((value(&text, "steward_clerk_key_refused") - 1.0).abs() < f64::EPSILON, "{text}");
    let judged = world.tick("house").await;
    assert!(matches!(judged.evaluated[0].ended, TaskCheckOutcome::Decided { .. }), "{judged:?}");
    let text = reader.get("/metrics").await.body;
    assert!(value(&text, "steward_clerk_key_refused").abs() < f64::EPSILON, "{text}");
}

#[tokio::test]
async fn a_delivery_that_waits_shows_since_when() {
    let plane = Plane::start().await;
    plane.is_down(503);
    let world = World::with_one_done().await.live().with_rare_ticks();
    world.vault.task_with("rent", "house", &format!("plane_issue_id: {ISSUE}\n"));
    let world = tracked(world, &plane);
    let (_up, api) = api::up(&world).await;
    let reader = api.token(&world, "read").await;
    let oldest = "steward_tracker_oldest_timestamp_seconds";
    assert!(value(&reader.get("/metrics").await.body, oldest).abs() < f64::EPSILON, "nothing is owed yet");
    let before = (Utc::now() - TimeDelta::seconds(1)).timestamp() as f64;
    world.tick("house").await;
    let owed = "steward_tracker_deliveries{state=\"owed\"}";
    let text = wait::until("a delivery to be owed", async || {
        let text = reader.get("/metrics").await.body;
        ((value(&text, owed) - 1.0).abs() < f64::EPSILON).then_some(text)
    })
    .await;
    let since = value(&text, oldest);
    assert!((before..=Utc::now().timestamp() as f64).contains(&since), "{since} after {before}");
    plane.works();
    until_settled(&world).await;
    wait::until("nothing to be owed", async || {
        (value(&reader.get("/metrics").await.body, oldest).abs() < f64::EPSILON).then_some(())
    })
    .await;
}

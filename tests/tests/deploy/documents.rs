//! What `deploy/` says about itself: names of metrics, alerts and their runbooks, variables, versions of images.

use crate::{files, read};
use serde_json::Value;
use std::collections::BTreeSet;
use steward_tests::run;

fn page(path: &str) -> String {
    std::fs::read_to_string(run::project().join(path)).unwrap()
}

/// The words of a text that may be names, such as `steward_mode` or `STEWARD_HOST`.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// The alerts in their order.
fn alerts() -> Vec<String> {
    let rules = read("observability/alerts.yml");
    rules.lines().filter_map(|line| Some(line.trim().strip_prefix("- alert: ")?.to_owned())).collect()
}

/// The expressions of the dashboard.
pub(crate) fn dashboard_queries() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&read("observability/grafana/dashboards/steward.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_alert_has_a_runbook_and_a_test_in_both_directions() {
    let (runbook, tests) = (read("runbooks/alerts.md"), read("observability/alerts_test.yml"));
    let sections: Vec<&str> = runbook.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(sections, alerts(), "the sections of runbooks/alerts.md, in the order of the alerts");
    for alert in alerts() {
        let raised = tests.matches(&format!("alertname: {alert}\n        exp_alerts:\n")).count();
        let silent = tests.matches(&format!("alertname: {alert}\n        exp_alerts: []\n")).count();
        assert!(raised > 0 && silent > 0, "{alert}: {raised} tests that it is raised, {silent} that it is not");
    }
}

#[test]
fn every_metric_of_the_alerts_and_the_dashboard_is_a_documented_one() {
    let operations = page("docs/operations.md");
    let mut queries = dashboard_queries();
    queries
        .extend(read("observability/alerts.yml").lines().map(|line| line.split("summary:").next().unwrap().to_owned()));
    let names: BTreeSet<&str> = queries
        .iter()
        .flat_map(|query| words(query))
        .filter(|word| word.starts_with("steward_") || word.starts_with("temporal_"))
        .map(|word| word.strip_suffix("_bucket").unwrap_or(word))
        .collect();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        assert!(operations.contains(&format!("\n| `{name}` |")), "{name} is not in the table of docs/operations.md");
    }
}

#[test]
fn every_variable_is_a_documented_one() {
    let configuration = page("docs/reference/configuration.md");
    let example = read("compose/.env.example");
    // Those of compose and Caddy alone.
    let ours = ["STEWARD_IMAGE", "STEWARD_UID", "STEWARD_GID", "STEWARD_HOST", "STEWARD_UPSTREAM", "STEWARD_STATE"];
    let ours = [&ours[..], &["STEWARD_SECRETS", "STEWARD_METRICS"]].concat();
    for file in files() {
        let text = std::fs::read_to_string(&file).unwrap();
        for name in words(&text).filter(|word| word.starts_with("STEWARD_") && word.len() > "STEWARD_".len()) {
            let known = configuration.contains(&format!("`{name}`")) || ours.contains(&name);
            assert!(known, "{} names {name}, which is in no reference", file.display());
        }
    }
    let compose = read("compose/compose.yaml");
    for required in compose.split("${").skip(1).filter_map(|rest| rest.split_once(":?")).map(|(name, _)| name) {
        assert!(example.contains(&format!("\n{required}=")), "{required} is not in .env.example");
    }
}

#[test]
fn every_image_has_an_exact_version() {
    let (compose, containerfile) = (read("compose/compose.yaml"), read("image/Containerfile"));
    let images =
        compose.lines().filter_map(|line| line.trim().strip_prefix("image: ")).filter(|image| !image.contains("${"));
    let bases =
        containerfile.lines().filter_map(|line| line.strip_prefix("ARG ")?.split_once('=')).map(|(_, image)| image);
    let all: Vec<&str> = images.chain(bases).collect();
    assert!(all.len() >= 9, "{all:?}");
    for image in all {
        let tag = image.rsplit_once(':').map(|(_, tag)| tag).unwrap_or_default();
        let exact = tag.contains(|c: char| c.is_ascii_digit()) || tag == "bookworm-slim";
        assert!(image.starts_with("docker.io/") && exact, "{image}");
    }
}

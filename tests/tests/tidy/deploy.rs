//! What `deploy/` says about itself: names of metrics, alerts and their runbooks, variables, versions of images.

use crate::tree::{root, tracked};
use std::collections::BTreeSet;

fn read_page(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn read_file(path: &str) -> String {
    read_page(&format!("deploy/{path}"))
}

/// The words of a text that may be names, such as `steward_mode` or `STEWARD_HOST`.
fn split_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// The alerts in their order.
fn list_alerts() -> Vec<String> {
    let rules = read_file("observability/alerts.yml");
    rules.lines().filter_map(|line| Some(line.trim().strip_prefix("- alert: ")?.to_owned())).collect()
}

#[test]
fn every_alert_has_a_runbook_and_a_test_in_both_directions() {
    let (runbook, tests) = (read_file("runbooks/alerts.md"), read_file("observability/alerts_test.yml"));
    let sections: Vec<&str> = runbook.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(sections, list_alerts(), "the sections of runbooks/alerts.md, in the order of the alerts");
    for alert in list_alerts() {
        let raised = tests.matches(&format!("alertname: {alert}\n        exp_alerts:\n")).count();
        let silent = tests.matches(&format!("alertname: {alert}\n        exp_alerts: []\n")).count();
        assert!(raised > 0 && silent > 0, "{alert}: {raised} tests that it is raised, {silent} that it is not");
    }
}

#[test]
fn every_metric_of_the_alerts_and_the_dashboard_is_a_documented_one() {
    let operations = read_page("docs/operations.md");
    let dashboard = read_file("observability/grafana/dashboards/steward.json");
    let alerts = read_file("observability/alerts.yml");
    let queries = dashboard.lines().filter(|line| line.contains("\"expr\"")).chain(alerts.lines());
    let names: BTreeSet<&str> = queries
        .flat_map(split_words)
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
    let configuration = read_page("docs/reference/configuration.md");
    let example = read_file("compose/.env.example");
    // Those of compose and Caddy alone.
    let ours = [
        "STEWARD_IMAGE",
        "STEWARD_UID",
        "STEWARD_GID",
        "STEWARD_HOST",
        "STEWARD_UPSTREAM",
        "STEWARD_STATE",
        "STEWARD_BACKUP",
    ];
    for file in tracked().iter().filter(|file| file.path.starts_with("deploy/")) {
        for name in split_words(&file.text).filter(|word| word.starts_with("STEWARD_") && word.len() > "STEWARD_".len())
        {
            let known = configuration.contains(&format!("`{name}`")) || ours.contains(&name);
            assert!(known, "{} names {name}, which is in no reference", file.path);
        }
    }
    let compose = read_file("compose/compose.yaml");
    for required in compose.split("${").skip(1).filter_map(|rest| rest.split_once(":?")).map(|(name, _)| name) {
        assert!(example.contains(&format!("\n{required}=")), "{required} is not in .env.example");
    }
}

#[test]
fn the_images_build_sees_every_crate() {
    let (cargo, ignored) = (read_page("Cargo.toml"), read_page(".dockerignore"));
    let members = cargo.lines().find_map(|line| line.strip_prefix("members = [")).unwrap();
    let crates: Vec<&str> = members.split('"').skip(1).step_by(2).filter(|name| *name != "tests").collect();
    assert!(crates.len() >= 8, "{crates:?}");
    for name in crates {
        assert!(ignored.lines().any(|line| line == format!("!{name}")), "{name} is not in .dockerignore");
    }
}

#[test]
fn every_image_names_its_registry_and_a_version() {
    let (compose, containerfile) = (read_file("compose/compose.yaml"), read_file("image/Containerfile"));
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

#[test]
fn probes_do_not_depend_on_temporal() {
    for file in ["proxy/Caddyfile", "image/Containerfile", "compose/compose.yaml", "systemd/steward@.service"] {
        let text = read_file(file);
        let used = text.lines().filter(|line| !line.trim_start().starts_with('#')).any(|line| line.contains("readyz"));
        assert!(!used, "{file} asks /readyz, which says no when Temporal is away");
    }
}

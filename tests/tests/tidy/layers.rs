//! The allowed dependencies between crates, checked with `cargo metadata`, and the views that interfaces read. Dependencies
//! of tests are free.

use crate::tree::{Source, hold, nothing_wrong, root};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};
use serde_json::Value;
use std::sync::LazyLock;

/// One crate of the workspace: the crates that it may depend on, and the foreign crates that it must never name. A `*`
/// at the end matches any rest.
struct Layer {
    name: &'static str,
    ours: &'static [&'static str],
    never: &'static [&'static str],
}

const DOMAIN: &str = "steward-domain";
const VAULT: &str = "steward-vault";
const SERVER: &str = "steward-server";
const WORKFLOWS: &str = "steward-workflows";
const ACTIVITIES: &str = "steward-activities";
const FLEET: &str = "steward-fleet";
const PROTO: &str = "steward-proto";
/// The binary, which no crate may depend on.
const WORKER: &str = "steward-worker";

/// From the bottom up. A new crate needs a row here first.
const LAYERS: &[Layer] = &[
    Layer {
        name: DOMAIN,
        ours: &[],
        never: &["tokio*", "temporalio-*", "sqlx*", "reqwest*", "notify*", "rand*", "getrandom", "uuid", "cap-*"],
    },
    Layer { name: VAULT, ours: &[DOMAIN], never: &["temporalio-*", "reqwest*"] },
    Layer { name: WORKFLOWS, ours: &[DOMAIN], never: &["temporalio-sdk*", "tokio*"] },
    Layer { name: ACTIVITIES, ours: &[DOMAIN, WORKFLOWS, VAULT, FLEET], never: &["axum*", "tonic*", "clap*"] },
    Layer { name: FLEET, ours: &[DOMAIN], never: &["temporalio-*", "reqwest*", "axum*", "tonic*", "clap*"] },
    Layer { name: PROTO, ours: &[], never: &["temporalio-*", "sqlx*", "reqwest*", "axum*", "tokio*"] },
    Layer { name: SERVER, ours: &[DOMAIN, WORKFLOWS, VAULT, PROTO], never: &["temporalio-sdk*", "reqwest*", "clap*"] },
    Layer { name: WORKER, ours: &[DOMAIN, VAULT, WORKFLOWS, ACTIVITIES, FLEET, PROTO, SERVER], never: &[] },
    Layer { name: "steward-tests", ours: &[DOMAIN, VAULT, WORKFLOWS, ACTIVITIES, FLEET, PROTO], never: &[] },
];

/// The workspace's own crates in `cargo metadata`.
static METADATA: LazyLock<String> = LazyLock::new(|| {
    let output = MetadataCommand::new()
        .current_dir(root())
        .no_deps()
        .other_options(vec!["--offline".to_owned()])
        .cargo_command()
        .output()
        .unwrap();
    assert!(output.status.success(), "failed to ask cargo: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
});

fn complaints(metadata: &str) -> Vec<String> {
    let metadata = MetadataCommand::parse(metadata).unwrap();
    let names: Vec<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    let without_row = names.iter().filter(|name| LAYERS.iter().all(|layer| layer.name != **name));
    let without_crate = LAYERS.iter().filter(|layer| !names.contains(&layer.name));
    let mut found: Vec<String> = without_row.map(|name| format!("{name} has no row in the table of layers")).collect();
    found.extend(without_crate.map(|layer| format!("the table of layers names {}, which is no crate", layer.name)));
    found.extend(LAYERS.iter().flat_map(|layer| trespasses(&metadata, &names, layer)));
    found
}

fn trespasses(metadata: &Metadata, names: &[&str], layer: &Layer) -> Vec<String> {
    let packages = metadata.packages.iter().filter(|package| package.name.as_str() == layer.name);
    let mut found = Vec::new();
    for dependency in packages.flat_map(|package| &package.dependencies) {
        let name = dependency.name.as_str();
        let only_for_tests = dependency.kind == DependencyKind::Development;
        let is_ours = names.contains(&name);
        if name == WORKER || (is_ours && !only_for_tests && !layer.ours.contains(&name)) {
            found.push(format!("{} depends on {name}, which lies above or beside it", layer.name));
        }
        if !only_for_tests && layer.never.iter().any(|pattern| fits(pattern, name)) {
            found.push(format!("{} depends on {name}, which it must never see", layer.name));
        }
    }
    found
}

fn fits(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |start| name.starts_with(start))
}

/// The real metadata with one more dependency.
fn doctored(package: &str, dependency: &str, kind: Option<&str>) -> String {
    let mut metadata: Value = serde_json::from_str(&METADATA).unwrap();
    let packages = metadata["packages"].as_array_mut().unwrap();
    let package = packages.iter_mut().find(|it| it["name"] == package).unwrap();
    let dependencies = package["dependencies"].as_array_mut().unwrap();
    let mut added = dependencies[0].clone();
    added["name"] = dependency.into();
    added["kind"] = kind.into();
    dependencies.push(added);
    metadata.to_string()
}

#[test]
fn every_crate_sees_only_what_lies_below_it() {
    nothing_wrong(&complaints(&METADATA));
}

#[test]
fn a_dependency_upward_or_sideways_is_caught() {
    for (package, dependency) in [
        (DOMAIN, VAULT),
        (WORKFLOWS, VAULT),
        (WORKFLOWS, ACTIVITIES),
        (VAULT, WORKFLOWS),
        (ACTIVITIES, WORKER),
        (SERVER, ACTIVITIES),
        (ACTIVITIES, PROTO),
        (PROTO, DOMAIN),
        ("steward-tests", WORKER),
        (DOMAIN, "steward-tests"),
    ] {
        let found = complaints(&doctored(package, dependency, None));
        assert_eq!(found, [format!("{package} depends on {dependency}, which lies above or beside it")]);
    }
}

#[test]
fn a_forbidden_crate_is_caught() {
    let world = ["tokio", "temporalio-sdk", "sqlx", "reqwest", "notify", "rand", "uuid", "cap-std"];
    let mut pairs: Vec<(&str, &str)> = world.into_iter().map(|name| (DOMAIN, name)).collect();
    pairs.extend([(WORKFLOWS, "temporalio-sdk"), (WORKFLOWS, "tokio"), (VAULT, "temporalio-client")]);
    pairs.extend([(VAULT, "reqwest"), (ACTIVITIES, "axum"), (ACTIVITIES, "tonic"), (ACTIVITIES, "clap")]);
    pairs.push((PROTO, "temporalio-client"));
    for (package, dependency) in pairs {
        for kind in [None, Some("build")] {
            let found = complaints(&doctored(package, dependency, kind));
            assert_eq!(found, [format!("{package} depends on {dependency}, which it must never see")]);
        }
    }
}

#[test]
fn tests_may_use_what_the_crate_must_not() {
    nothing_wrong(&complaints(&doctored(DOMAIN, "rand", Some("dev"))));
    assert_eq!(complaints(&doctored(DOMAIN, WORKER, Some("dev"))).len(), 1, "the binary is nobody's dependency");
}

#[test]
fn a_crate_without_a_row_and_a_row_without_a_crate_are_caught() {
    let renamed = METADATA.replace("\"name\":\"steward-vault\"", "\"name\":\"steward-cellar\"");
    let found = complaints(&renamed);
    assert!(found.contains(&"steward-cellar has no row in the table of layers".to_owned()), "{found:?}");
    assert!(found.contains(&"the table of layers names steward-vault, which is no crate".to_owned()), "{found:?}");
}

/// The interfaces read the vault through `server/src/views/`, so that all of them show the same values.
fn no_index_in_interfaces(file: &Source) -> Vec<String> {
    let interface = ["server/src/api", "server/src/grpc", "server/src/mcp", "server/src/pages"]
        .iter()
        .any(|at| file.path.starts_with(at));
    let names_index = |line: &str| {
        let line = line.replace("::Index(", "");
        line.contains(".index.") || line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "Index")
    };
    let lines = (1..).zip(file.text.lines()).filter(|(_, line)| interface && names_index(line));
    lines
        .map(|(number, line)| format!("{}:{number}: {}: add it to server/src/views/", file.path, line.trim()))
        .collect()
}

#[test]
fn the_interfaces_read_only_the_views() {
    hold(no_index_in_interfaces);
    for line in ["use steward_vault::index::{Index, IndexError};", "let page = app.index.read().search(q);"] {
        assert_eq!(no_index_in_interfaces(&Source::new("server/src/pages/card.rs", line)).len(), 1, "{line}");
        nothing_wrong(&no_index_in_interfaces(&Source::new("server/src/views/action.rs", line)));
    }
}

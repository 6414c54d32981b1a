//! The resolved versions in `Cargo.lock`: one version of each large crate, one crypto provider, one source.

use crate::tree::{nothing_wrong, root};
use toml::Table;

/// The only allowed source of crates.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Two versions of these crates in one binary double the build time, or have incompatible types.
const ONE_OF_EACH: &[&str] =
    &["tonic", "prost", "hyper", "axum", "reqwest", "rustls", "opentelemetry", "tokio", "libsqlite3-sys", "chrono"];

/// Two crypto providers panic at the first use of TLS; Steward uses ring.
const NEVER: &[&str] = &["aws-lc-rs", "aws-lc-sys", "openssl-sys", "native-tls"];

fn complaints(lock: &str) -> Vec<String> {
    let lock: Table = lock.parse().unwrap();
    let packages: Vec<(&str, Option<&str>)> = lock["package"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| (package["name"].as_str().unwrap(), package.get("source").and_then(|it| it.as_str())))
        .collect();
    let count = |name: &str| packages.iter().filter(|(other, _)| *other == name).count();
    let mut found = Vec::new();
    for name in ONE_OF_EACH {
        if count(name) != 1 {
            found.push(format!("{name} is there {} times, not once: see `cargo tree -d`", count(name)));
        }
    }
    for name in NEVER.iter().filter(|name| count(name) > 0) {
        found.push(format!("{name} is there: see `cargo tree -i {name}`"));
    }
    for (name, source) in packages {
        if source.is_some_and(|source| source != CRATES_IO) {
            found.push(format!("{name} comes from {}, not from crates.io", source.unwrap_or_default()));
        }
    }
    found
}

fn lock() -> String {
    std::fs::read_to_string(root().join("Cargo.lock")).unwrap()
}

/// The real file with one more package.
fn with(name: &str, source: &str) -> Vec<String> {
    complaints(&format!("{}\n[[package]]\nname = \"{name}\"\nversion = \"9.9.9\"\nsource = \"{source}\"\n", lock()))
}

#[test]
fn large_crates_are_there_once_and_all_come_from_one_place() {
    nothing_wrong(&complaints(&lock()));
}

#[test]
fn a_second_tonic_is_caught() {
    assert_eq!(with("tonic", CRATES_IO), ["tonic is there 2 times, not once: see `cargo tree -d`"]);
}

#[test]
fn a_second_crypto_provider_is_caught() {
    assert_eq!(with("aws-lc-rs", CRATES_IO), ["aws-lc-rs is there: see `cargo tree -i aws-lc-rs`"]);
}

#[test]
fn a_mirror_and_a_git_source_are_caught() {
    for source in ["sparse+https://mirror.example/index/", "git+https://github.com/a/b#0123456"] {
        assert_eq!(with("a", source), [format!("a comes from {source}, not from crates.io")]);
    }
}

//! Every file of `deploy/`, on real parts: Caddy, Prometheus, buildah, and a systemd that boots in a container.
//!
//! `make deploy-test` installs these parts and runs all tests, as root on Debian. `make test` runs those that need none of
//! them; the others are listed as ignored, with the reason.
#![allow(clippy::unwrap_used, reason = "tests")]

mod compose;
mod documents;
mod image;
mod observability;
mod proxy;
mod systemd;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use steward_tests::run;

/// The folder `deploy/`.
fn deploy() -> PathBuf {
    run::project().join("deploy")
}

fn read(path: &str) -> String {
    fs::read_to_string(deploy().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// All files below `deploy/`.
fn files() -> Vec<PathBuf> {
    let (mut folders, mut files) = (vec![deploy()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files
}

/// Runs a script of bash to its end and returns its output. Panics with the output if it fails.
fn bash(script: &str) -> String {
    let output = Command::new("bash").args(["-euo", "pipefail", "-c", script]).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}\n--- exit {}\n--- out\n{out}\n--- err\n{err}", output.status);
    format!("{out}{err}")
}

/// A program that `make deploy-test` fetches.
fn tool(name: &str) -> String {
    run::project().join(".tools/deploy/bin").join(name).display().to_string()
}

/// A Debian root without any service, as an archive. It is made once, because that takes a minute.
fn debian() -> PathBuf {
    let archive = run::project().join(".tools/deploy/debian.tar");
    if !archive.is_file() {
        let new = archive.with_extension("new.tar");
        bash(&format!(
            "mmdebstrap --quiet --variant=minbase --include=systemd,systemd-sysv,dbus bookworm {new} && mv {new} {archive}",
            new = new.display(),
            archive = archive.display()
        ));
    }
    archive
}

/// Copies the binary without its symbols, as a release has none.
fn install_binary(to: &Path) {
    bash(&format!("strip -o {to} {binary} && chmod 755 {to}", to = to.display(), binary = run::binary().display()));
}

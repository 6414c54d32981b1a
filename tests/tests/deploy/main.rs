//! Every file of `deploy/`, on real parts: Caddy, Prometheus, buildah, and a systemd that boots in a container.
//!
//! `make deploy-test` installs these parts and runs the tests, as root on Debian. They are no part of `make test`, which
//! checks the texts of `deploy/` among its tidy rules.
#![allow(clippy::unwrap_used, reason = "tests")]

mod compose;
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

fn read_file(path: &str) -> String {
    fs::read_to_string(deploy().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The block of commands below a mark such as `<!-- test: start -->` in a page.
fn marked_commands(page: &str, mark: &str) -> String {
    let page = read_file(page);
    let mut lines = page.lines().skip_while(|line| line.trim() != format!("<!-- test: {mark} -->")).skip(1);
    let fence = lines.next().unwrap_or_else(|| panic!("no mark {mark}"));
    let indent = fence.len() - fence.trim_start().len();
    assert_eq!(fence.trim(), "```sh", "below the mark {mark}");
    let block = lines.take_while(|line| line.trim() != "```");
    block.map(|line| format!("{}\n", line.get(indent..).unwrap_or_default())).collect()
}

/// Runs a script of bash to its end and returns its output. Panics with the output if it fails.
fn bash(script: &str) -> String {
    let output = Command::new("bash").args(["-euo", "pipefail", "-c", script]).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}\n--- exit {}\n--- out\n{out}\n--- err\n{err}", output.status);
    format!("{out}{err}")
}

/// A program that `make deploy-test` fetches.
fn find_tool(name: &str) -> String {
    run::project().join(".tools/deploy/bin").join(name).display().to_string()
}

/// A Debian root without any service, as an archive. It is made once, because that takes a minute.
fn make_debian() -> PathBuf {
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

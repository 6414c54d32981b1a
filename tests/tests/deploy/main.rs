//! Every file of `deploy/`, on real parts: Caddy, Prometheus, buildah, and a systemd that boots in a container.
//!
//! `make deploy-test` installs these parts and runs the tests, as root on Debian. They are no part of `make test`, which
//! checks the texts of `deploy/` among its tidy rules.
#![allow(clippy::unwrap_used, reason = "tests")]

mod compose;
mod fleet;
mod image;
mod kubernetes;
mod machine;
mod network;
mod observability;
mod proxy;
mod systemd;

use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use steward_tests::run;

/// Checks every document against the newest schemas there are, and prints all of them as JSON. An unknown key fails.
const VALIDATE: &str = r#"
import json, sys, yaml
from kubernetes_validate import utils
documents = [document for document in yaml.safe_load_all(sys.stdin) if document]
for document in documents:
    utils.validate(document, utils.latest_version(), strict=True)
print(json.dumps(documents))
"#;

/// Where an object of Kubernetes describes its pod.
const POD: &str = "/spec/template/spec";

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

/// A Debian root with these packages and without any service, as an archive. It is made once, because that takes a minute.
fn make_debian(name: &str, packages: &str) -> PathBuf {
    let archive = run::project().join(".tools/deploy").join(name).with_extension("tar");
    if !archive.is_file() {
        let new = archive.with_extension("new.tar");
        bash(&format!(
            "mmdebstrap --quiet --variant=minbase --include={packages} bookworm {new} && mv {new} {archive}",
            new = new.display(),
            archive = archive.display()
        ));
    }
    archive
}

/// Fills a folder as Steward fills that of its backups: two complete ones with one file in common, and one that is
/// unfinished. Returns the folder.
fn make_backups(folder: &Path) -> PathBuf {
    bash(&format!(
        "mkdir -p {folder}; cd {folder}; first=2026-11-25T22-15-00.000Z second=2026-11-25T22-30-00.000Z
         mkdir -p $first/vault/task $first/state $second/vault/task .new-12/vault; touch .steward-backups $first/files.sha256 $second/files.sha256
         echo unfinished > .new-12/vault/a.md; printf 'a\\0\\377 note' > \"$first/vault/task/rent and.md\"
         head -c 300000 /dev/urandom > $first/state/index.db
         ln \"$first/vault/task/rent and.md\" $second/vault/task/; echo new > $second/vault/.new-note.md",
        folder = folder.display()
    ));
    folder.to_owned()
}

/// Checks that the complete backups are restored to the byte, and that the unfinished one was not taken.
fn check_restored(backups: &Path, restored: &Path) {
    assert!(!restored.join(".new-12").exists(), "an unfinished backup was taken");
    // When that was is no part of a copy.
    bash(&format!(
        "test -f {0}/.copied; diff -r --exclude=.new-12 --exclude=.copied {0} {1}",
        backups.display(),
        restored.display()
    ));
}

/// Writes a password and the place of a repository below a folder, and returns the variables that restic reads.
fn prepare_restic(folder: &Path) -> [(&'static str, PathBuf); 3] {
    fs::write(folder.join("password"), "secret\n").unwrap();
    fs::write(folder.join("repository"), folder.join("restic").display().to_string()).unwrap();
    [
        ("RESTIC_PASSWORD_FILE", folder.join("password")),
        ("RESTIC_REPOSITORY_FILE", folder.join("repository")),
        ("RESTIC_CACHE_DIR", folder.join("cache")),
    ]
}

/// Copies the binary without its symbols, as a release has none.
fn install_binary(to: &Path) {
    bash(&format!("strip -o {to} {binary} && chmod 755 {to}", to = to.display(), binary = run::binary().display()));
}

/// Renders a folder by a program, which is kubectl.
fn render_kustomization(kubectl: &str, folder: &Path) -> Result<String, String> {
    let output = Command::new(kubectl).arg("kustomize").arg(folder).output();
    let output = output
        .map_err(|e| format!("kubectl does not run ({e}): install kubectl 1.32 or newer, as kubernetes.io says"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8(output.stdout).unwrap())
}

fn validate_objects(text: &str) -> Result<Vec<Value>, String> {
    let mut python = Command::new("python3")
        .args(["-c", VALIDATE])
        .env("PYTHONPATH", run::project().join(".tools/deploy"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    python.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(serde_json::from_slice(&output.stdout).unwrap())
}

fn render_objects(folder: &Path) -> Vec<Value> {
    let rendered = render_kustomization("kubectl", folder).and_then(|text| validate_objects(&text));
    rendered.unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
}

/// The object with a name such as `Service//steward`: kind, namespace, name.
fn find_object<'a>(objects: &'a [Value], name: &str) -> &'a Value {
    objects.iter().find(|object| name_object(object) == name).unwrap_or_else(|| panic!("no {name}"))
}

fn name_object(object: &Value) -> String {
    let metadata = &object["metadata"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{}/{}/{}", text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]))
}

fn list_values<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

/// A copy of an object with another value; the last part of the pointer may be new.
fn change_value(object: &Value, pointer: &str, value: Value) -> Value {
    let mut changed = object.clone();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = changed.pointer_mut(parent).unwrap_or_else(|| panic!("no {parent}"));
    match key.parse::<usize>() {
        Ok(index) => parent[index] = value,
        Err(_) => parent[key] = value,
    }
    changed
}

/// The containers of an object; none if it has no pod.
fn list_containers(object: &Value) -> Vec<&Value> {
    let Some(pod) = object.pointer(POD) else { return Vec::new() };
    list_values(pod, "initContainers").chain(list_values(pod, "containers")).collect()
}

#![allow(clippy::unwrap_used)] // a test may panic at the first failure

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use chrono::{DateTime, TimeDelta, TimeZone, Utc};
use serde_json::Value;
use steward_domain::record::entity::{Matter, Task};
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::signals::signal::Signal;

use super::ExampleError;
use super::ExampleSummary;
use super::build_file_name;
use super::fill_times;
use super::shift_time;
use super::templates::{TEMPLATES, Template};
use super::write_example_vault;

/// It holds two values of one field, as two syncing devices can leave them.
const BROKEN: &str = "task/desk-order-oak.md";

fn now() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 11, 21, 9, 30, 0).unwrap()
}

fn written(at: DateTime<Utc>) -> (tempfile::TempDir, ExampleSummary) {
    let dir = tempfile::tempdir().unwrap();
    let summary = write_example_vault(dir.path(), at).unwrap();
    (dir, summary)
}

fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for folder in fs::read_dir(root).unwrap().map(Result::unwrap) {
        if !folder.file_type().unwrap().is_dir() {
            continue;
        }
        for file in fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
            let path = file.path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            found.insert(name, fs::read(path).unwrap());
        }
    }
    found
}

fn frontmatter(bytes: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(bytes).unwrap().replace("\r\n", "\n");
    let rest = text.strip_prefix("---\n").ok_or("no opening fence")?;
    let (yaml, _) = rest.split_once("\n---\n").ok_or("no closing fence")?;
    serde_saphyr::from_str(yaml).map_err(|error| error.to_string())
}

fn records(kind: &str) -> BTreeMap<String, Value> {
    let (dir, _) = written(now());
    files(dir.path())
        .into_iter()
        .filter(|(path, _)| path.starts_with(kind) && path != BROKEN)
        .map(|(path, bytes)| {
            let record = frontmatter(&bytes).unwrap_or_else(|error| panic!("{path}: {error}"));
            (path, record)
        })
        .collect()
}

fn instant(value: &Value) -> DateTime<Utc> {
    value.as_str().unwrap().parse().unwrap()
}

#[test]
fn the_list_names_every_template_and_nothing_else() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("example");
    let on_disk: Vec<String> = files(&root).into_keys().collect();
    let listed: Vec<String> = TEMPLATES.iter().map(|t| t.path.to_owned()).collect();
    assert_eq!(on_disk, listed, "left: example/, right: templates.rs");
}

#[test]
fn there_are_a_dozen_matters_thirty_tasks_and_fifty_signals() {
    let (dir, summary) = written(now());
    assert!(summary.matters >= 12, "{summary:?}");
    assert!(summary.tasks >= 30, "{summary:?}");
    assert!(summary.signals >= 50, "{summary:?}");
    let total = summary.matters + summary.tasks + summary.signals + summary.instincts;
    assert_eq!(total, files(dir.path()).len());
}

#[test]
fn every_record_but_the_broken_one_is_valid() {
    let (dir, _) = written(now());
    for (path, bytes) in files(dir.path()) {
        let read = frontmatter(&bytes);
        if path == BROKEN {
            assert!(read.unwrap_err().contains("duplicate"), "{path} must stay broken");
            continue;
        }
        let record = read.unwrap_or_else(|error| panic!("{path}: {error}"));
        let fields = record.as_object().unwrap();
        let parsed = match RecordPath::parse(&path).unwrap().folder_kind().unwrap() {
            RecordKind::Matter => Matter::read(fields).map(drop),
            RecordKind::Task => Task::read(fields).map(drop),
            RecordKind::Signal => Signal::read(fields).map(drop),
            RecordKind::Instinct => Ok(()),
            RecordKind::Event | RecordKind::Stream => panic!("{path}: events are written by the steward alone"),
        };
        parsed.unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(record["type"], path.split('/').next().unwrap(), "{path}");
    }
}

#[test]
fn every_record_that_is_named_exists() {
    let (dir, _) = written(now());
    let files = files(dir.path());
    let mut links = 0;
    for (path, bytes) in &files {
        let text = std::str::from_utf8(bytes).unwrap();
        for rest in text.split("[[").skip(1) {
            let link = format!("{}.md", rest.split_once("]]").unwrap().0);
            assert!(files.contains_key(&link), "{path} names {link}");
            links += 1;
        }
    }
    assert!(links >= 30, "every task names its matter");
    for (path, signal) in records("signal/") {
        let mut targets = vec![&signal["target_path"]];
        targets.extend(signal["target_candidates"].as_array().unwrap());
        for target in targets {
            assert!(files.contains_key(target.as_str().unwrap()), "{path} names {target}");
        }
    }
    for (path, task) in records("task/") {
        let parent = task["parent_matter"].as_str().unwrap();
        assert!(parent.starts_with("[[matter/"), "{path}");
    }
}

#[test]
fn signals_have_their_format() {
    for (path, signal) in records("signal/") {
        let text = |key: &str| signal[key].as_str().unwrap_or_else(|| panic!("{path}: {key}"));
        let created = instant(&signal["created"]);
        let age = now() - created;
        assert!(age > TimeDelta::zero() && age < TimeDelta::days(10), "{path}");
        assert!(instant(&signal["origin_at"]) < created, "{path}");
        let prefix = created.format("signal/%Y%m%d%H%M%S-").to_string();
        let hash = path.strip_prefix(&prefix).unwrap_or_else(|| panic!("{path}: {prefix}"));
        assert_eq!(hash.len(), "12345678.md".len(), "{path}");
        let stream = format!("stream/{}/", text("source_type"));
        assert!(text("source_event_path").starts_with(&stream), "{path}");
        assert!(text("raw_quote").chars().count() <= 200, "{path}");
        assert_eq!(signal["target_kind"], "task", "{path}");
        for key in ["target_confidence", "effect_confidence"] {
            assert!((0.0..=1.0).contains(&signal[key].as_f64().unwrap()), "{path}: {key}");
        }
        let proposal = &signal["mutation_proposal"];
        match text("effect") {
            "mutation" => {
                assert_eq!(proposal["class"], "state_change", "{path}");
                let state = proposal["set"]["state"].as_str().unwrap();
                assert!(["done", "archived"].contains(&state), "{path}");
            }
            "action" | "none" => assert!(proposal.is_null(), "{path}"),
            other => panic!("{path}: effect {other}"),
        }
        assert!(["unrouted", "applied", "skipped"].contains(&text("status")), "{path}");
    }
}

#[test]
fn the_oddities_worth_showing_are_there() {
    let (dir, _) = written(now());
    let files = files(dir.path());
    let text = |path: &str| String::from_utf8(files[path].clone()).unwrap();
    let crlf = text("task/roof-pay-final-invoice.md");
    assert_eq!(crlf.matches('\n').count(), crlf.matches("\r\n").count());
    assert!(text("task/van-renew-policy.md").contains("state: open            # "));
    assert!(!text("task/school-trip-deposit.md").ends_with('\n'));
    assert!(text("task/desk-approve-drawings.md").contains("client_ref:"));
    assert!(text("task/roof-book-scaffold.md").contains("state: Done\n"));

    let tasks = records("task/");
    let snoozed = &tasks["task/web-write-copy.md"]["snoozed_until"];
    assert!(instant(snoozed) > now());
    let next = tasks["task/tax-first-instalment.md"]["next_check_after"].as_str().unwrap();
    assert_eq!(next, "2026-12-03T09:00:00");
    let signals = records("signal/");
    let targets: BTreeSet<&str> = signals.values().map(|signal| signal["target_path"].as_str().unwrap()).collect();
    let silent = |path: &str| !targets.contains(path);
    assert_eq!(tasks["task/tax-file-return.md"]["surface_class"], "high");
    assert!(silent("task/tax-file-return.md") && silent("task/tax-first-instalment.md"));
    assert!(!silent("task/web-write-copy.md") && !silent(BROKEN));
}

#[test]
fn the_same_moment_gives_the_same_bytes() {
    let (first, _) = written(now());
    let (again, _) = written(now() + TimeDelta::milliseconds(400));
    let (later, _) = written(now() + TimeDelta::days(1));
    assert_eq!(files(first.path()), files(again.path()));
    assert_ne!(files(first.path()), files(later.path()));
    for (path, bytes) in files(first.path()) {
        assert!(!String::from_utf8(bytes).unwrap().contains("{{"), "{path}");
    }
}

#[test]
fn a_folder_that_holds_anything_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(".keep"), "mine").unwrap();
    let refused = write_example_vault(dir.path(), now()).unwrap_err();
    assert!(matches!(&refused, ExampleError::NotEmpty { found, .. } if found == ".keep"));
    assert!(refused.to_string().contains("name a folder that is empty"));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    assert!(matches!(write_example_vault(&dir.path().join(".keep"), now()), Err(ExampleError::Io { .. })));
}

#[test]
fn a_missing_folder_is_created() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("some/where");
    assert_eq!(write_example_vault(&deep, now()).unwrap().dir, deep);
    assert!(matches!(write_example_vault(&deep, now()), Err(ExampleError::NotEmpty { .. })));
}

#[test]
fn an_invalid_time_is_an_error() {
    for bad in ["", "-", "3d", "-d", "-3", "-3w", "-3d2", "+9999999d", "-3é"] {
        assert_eq!(shift_time(now(), bad), None, "{bad}");
    }
    let day = TimeDelta::days(1);
    assert_eq!(shift_time(now(), "-1d2h3m4s"), Some(now() - day - TimeDelta::seconds(7384)));
    assert_eq!(shift_time(now(), "+24h"), Some(now() + day));

    let open = Template { path: "signal/ago-3x-1.md", text: "created: {{-3d\n" };
    assert!(matches!(fill_times(&open, now()), Err(ExampleError::Time { .. })));
    assert!(matches!(build_file_name(&open, now()), Err(ExampleError::Time { .. })));
    let dir = tempfile::tempdir().unwrap();
    assert!(write_example_vault(dir.path(), DateTime::<Utc>::MIN_UTC).is_err());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

//! S3: names that try to leave their place, as the id of a tenant, a bucket, a record and a host.
//!
//! A name must be refused before anything is written. A legal one must pass, so that the check does not refuse everything.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use steward_domain::fleet::TenantId;
use steward_domain::record::path::RecordPath;
use steward_tests::fleet::Fleet;
use steward_tests::postgres;
use steward_tests::rehearsal::{Form, Report};
use steward_tests::supervisor::Supervised;

/// No string is the legal name of a tenant or of a record.
const ESCAPES: [&str; 36] = [
    "",
    ".",
    "..",
    "...",
    "/",
    "//",
    "\\",
    "../x",
    "..\\x",
    "a/../b",
    "a/..",
    "./a",
    "a/.",
    "/etc/passwd",
    "a//b",
    "~",
    "~root/x",
    "..%2fx",
    "%2e%2e%2f",
    "..%252fx",
    "..%c0%afx",
    "\u{2024}\u{2024}/x",
    "\u{ff0e}\u{ff0e}/x",
    "a\u{2215}b",
    "a\nb",
    "a\rb",
    "a\tb",
    "a@b",
    "a.b",
    "a b",
    "a;b",
    "a'b",
    "a\"b",
    "$(id)",
    "`id`",
    "--all",
];
/// Legal ids of tenants.
const LEGAL: usize = 200;

/// 200 legal ids, with those that look like parts of other ids.
fn list_legal_ids() -> Vec<String> {
    let special = ["a", "a-clerk", "clerk", "steward", "al-steward-a", "x-", "null", "con", "aux", "tenant"];
    let numbered = (special.len()..LEGAL).map(|n| format!("t{n}{}", "-".repeat(n % 3)));
    special.into_iter().map(str::to_owned).chain(numbered).collect()
}

/// All files below a folder.
fn list_files(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap());
    let below = |entry: std::fs::DirEntry| match entry.file_type().unwrap().is_dir() {
        true => list_files(&entry.path()),
        false => BTreeSet::from([entry.path()]),
    };
    entries.flat_map(below).collect()
}

/// Whether a path leads out of `task/`, or would break a line.
fn leaves_its_folder(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    let begins_inside = parts.next() == Some(Component::Normal("task".as_ref()));
    let stays_inside = parts.all(|part| matches!(part, Component::Normal(_)));
    !begins_inside || !stays_inside || path.chars().any(char::is_control)
}

/// The names beside the folders of this run's tests, which are numbers.
fn list_names_beside(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder.parent().unwrap()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.parse::<u32>().is_err()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_no_name_leaves_its_place() {
    let (form, mut report) = (Form::read(), Report::new("S3"));
    let mut accepted: Vec<String> = Vec::new();
    let legal = list_legal_ids();
    let passed = legal.iter().filter(|id| id.parse::<TenantId>().is_ok()).collect::<BTreeSet<_>>().len();
    for text in ESCAPES {
        if text.parse::<TenantId>().is_ok() {
            accepted.push(format!("tenant {text:?}"));
        }
        if RecordPath::parse(&format!("task/{text}.md")).is_ok_and(|path| leaves_its_folder(path.as_str())) {
            accepted.push(format!("record {text:?}"));
        }
    }

    let fleet = Fleet::new("strings", postgres::server().await).await;
    let tenant = fleet.add_tenant("strings", &["house"]).await;
    let process = Supervised::start(&tenant.steward);
    process.serves().await;
    let api = process.open_api();
    let rows = fleet.sql("SELECT count(*) FROM tenant") + &fleet.sql("SELECT count(*) FROM bucket");
    let (before, beside) = (list_files(&tenant.folder), list_names_beside(&tenant.folder));
    let some = form.choose(12, ESCAPES.len());
    for text in ESCAPES.iter().rev().take(some) {
        let operators: [&[&str]; 3] = [
            &["fleet", "tenant", "add", "--", text],
            &["fleet", "bucket", "set", "--calls", "1/min", "--", text],
            &["preflight", "--tenant", text],
        ];
        let mut outcomes = Vec::new();
        for command in operators {
            outcomes.push((command.to_vec(), fleet.operator.run(command).await.code));
        }
        let take = ["fleet", "take", "--yes", "--", text];
        outcomes.push((take.to_vec(), tenant.steward.run(&take).await.code));
        let done = outcomes.into_iter().filter(|(_, code)| *code == Some(0));
        accepted.extend(done.map(|(command, _)| format!("{command:?}")));
        // A header cannot hold line breaks, so that such a request cannot be sent.
        if let Ok(host) = reqwest::header::HeaderValue::from_str(text) {
            let answer = api.with("host", host.to_str().unwrap_or("x")).get("/api/v1/steward/recent-actions").await;
            if ![400, 401, 421].contains(&answer.status) {
                accepted.push(format!("host {text:?}: {}", answer.status));
            }
        }
    }
    let after = fleet.sql("SELECT count(*) FROM tenant") + &fleet.sql("SELECT count(*) FROM bucket");
    let is_own = |path: &&PathBuf| {
        let is_log = path.parent() == Some(&tenant.folder)
            && path
                .file_name()
                .is_some_and(|name| ["out-", "err-"].iter().any(|log| name.to_string_lossy().starts_with(log)));
        is_log || path.starts_with(tenant.vault.path().join(".steward"))
    };
    let after_files = list_files(&tenant.folder);
    let mut strange: Vec<String> =
        after_files.difference(&before).filter(|path| !is_own(path)).map(|path| path.display().to_string()).collect();
    strange.extend(list_names_beside(&tenant.folder).difference(&beside).cloned());
    strange.iter().for_each(|name| eprintln!("S3 new: {name}"));
    for what in &accepted {
        eprintln!("S3 accepted: {what}");
    }
    report
        .add("strings", ESCAPES.len())
        .add("tried_at_commands", some)
        .must_be("escapes", accepted.len(), 0)
        .must_be("new_rows", usize::from(after != rows), 0)
        .must_be("strange_files", strange.len(), 0)
        .must_be("legal_names_passed", passed, LEGAL);
    report.finish();
}

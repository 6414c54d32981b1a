//! S3: names that try to leave their place, as the id of a tenant, a bucket, a record, a host and a backup.
//!
//! A name must be refused before anything is written. A legal one must pass, so that the check does not refuse everything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use steward_domain::fleet::TenantId;
use steward_domain::record::path::RecordPath;
use steward_tests::api::Api;
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
        if RecordPath::parse(&format!("task/{text}/../../x.md")).is_ok()
            || RecordPath::parse(&format!("../{text}.md")).is_ok()
        {
            accepted.push(format!("record {text:?}"));
        }
    }

    let fleet = Fleet::new("strings", postgres::server().await).await;
    let tenant = fleet.add_tenant("strings", &["house"]).await;
    let process = Supervised::start(&tenant.steward);
    process.serves().await;
    let out = process.out();
    let link = out.lines().find_map(|line| line.strip_prefix("dashboard")).unwrap().trim();
    let api = Api::new(link.split("/login").next().unwrap());
    let rows = fleet.sql("SELECT count(*) FROM tenant") + &fleet.sql("SELECT count(*) FROM bucket");
    let before = list_files(&tenant.folder);
    let some = form.choose(12, ESCAPES.len());
    for text in ESCAPES.iter().rev().take(some) {
        let commands: [&[&str]; 4] = [
            &["fleet", "tenant", "add", "--", text],
            &["fleet", "bucket", "set", "--calls", "1/min", "--", text],
            &["preflight", "--tenant", text],
            &["fleet", "take", "--", text],
        ];
        for command in commands {
            let said = fleet.operator.run(command).await;
            if said.code == Some(0) {
                accepted.push(format!("{command:?}"));
            }
        }
        let restore = tenant.steward.with("STEWARD_VAULT", tenant.folder.join("restored").display());
        let said = restore.run(&["backup", "restore", "--", text]).await;
        if said.code == Some(0) {
            accepted.push(format!("backup {text:?}"));
        }
        // A header cannot hold line breaks, so that such a request cannot be sent.
        if let Ok(host) = reqwest::header::HeaderValue::from_str(text) {
            let answer = api.with("host", host.to_str().unwrap_or("x")).get("/api/v1/steward/recent-actions").await;
            if ![400, 401, 421].contains(&answer.status) {
                accepted.push(format!("host {text:?}: {}", answer.status));
            }
        }
    }
    let after = fleet.sql("SELECT count(*) FROM tenant") + &fleet.sql("SELECT count(*) FROM bucket");
    let new: Vec<PathBuf> = list_files(&tenant.folder).difference(&before).cloned().collect();
    let is_own = |path: &&PathBuf| {
        path.starts_with(tenant.vault.path().join(".steward")) || path.parent() == Some(&tenant.folder)
    };
    let strange: Vec<&PathBuf> = new.iter().filter(|path| !is_own(path)).collect();
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

//! Places outside the records that must not be reached: the folder around the vault, Steward's own folder, and the
//! tracker, which must get only the requests of a delivery.

use serde_json::Value;
use std::collections::BTreeSet;
use steward_tests::files::{Files, own_names};
use steward_tests::plane::{Asked, PROJECT, Plane, STATES, WORKSPACE};
use steward_tests::world::World;

/// The names in Steward's own folder; names with a number or an id are checked by their form.
const OWN: [&str; 17] = [
    ".gitignore",
    "STOP.spare",
    "chain.json",
    "journal/",
    "ledger.db",
    "ledger.db-shm",
    "ledger.db-wal",
    "ledger.json",
    "ledger.json.lock",
    "lock",
    "outbox/",
    "staged/",
    "state.db",
    "state.db-shm",
    "state.db-wal",
    "up.json",
    "vault.json",
];
/// The tags of a comment by Steward.
const TAGS: [&str; 10] = ["<p>", "</p>", "<em>", "</em>", "<strong>", "</strong>", "<q>", "</q>", "<code>", "</code>"];

/// An issue for a task.
pub(super) fn issue(n: usize) -> String {
    format!("eeeeeeee-0000-4000-8000-{n:012}")
}

/// Unexpected files in Steward's own folder.
pub(super) fn intruders(names: &[String]) -> Vec<String> {
    let hex = |text: &str, length: usize| text.len() == length && text.bytes().all(|b| b.is_ascii_hexdigit());
    let numbered = |text: &str| {
        let (number, id) = text.split_once('-').unwrap_or_default();
        !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) && (hex(id, 16) || id == "unrecorded")
    };
    let ours = |name: &String| {
        OWN.contains(&name.as_str())
            || name.strip_prefix("outbox/").and_then(|n| n.strip_suffix(".json")).is_some_and(|n| hex(n, 16))
            || name.strip_prefix("journal/").and_then(|n| n.strip_suffix(".json")).is_some_and(numbered)
            || name.strip_prefix("staged/").is_some_and(|n| numbered(n.split('.').next().unwrap_or_default()))
    };
    names.iter().filter(|name| !ours(name)).map(|name| format!(".steward/{name} is not ours")).collect()
}

/// The changes around a vault, apart from the logs of the processes.
pub(super) fn around(before: &Files, after: &Files) -> Vec<String> {
    let log = |line: &String| {
        let number = line.split(' ').nth(1).and_then(|p| p.strip_prefix("out-").or(p.strip_prefix("err-")));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    after.since(before).into_iter().filter(|line| !log(line)).map(|line| format!("around the vault: {line}")).collect()
}

/// The unexpected contents of Steward's own folder.
pub(super) fn inside(world: &World) -> Vec<String> {
    intruders(&own_names(world.vault.path()))
}

/// Requests that a delivery does not need.
pub(super) fn strange(asked: &[Asked], issues: &[String]) -> Vec<String> {
    let known: BTreeSet<&str> = issues.iter().map(String::as_str).collect();
    let needed = |a: &&Asked| {
        let project = format!("/api/v1/workspaces/{WORKSPACE}/projects/{PROJECT}/");
        let Some(rest) = a.path.strip_prefix(&project) else {
            return (a.method.as_str(), a.path.as_str()) == ("GET", "/api/v1/users/me/");
        };
        let parts: Vec<&str> = rest.split('/').collect();
        match (a.method.as_str(), parts.as_slice()) {
            ("GET", ["states", ""]) => true,
            ("GET", ["work-items", issue, ""] | ["work-items", issue, "comments", ""]) => known.contains(issue),
            ("PATCH", ["work-items", issue, ""]) => known.contains(issue) && is_move(&a.body),
            ("POST", ["work-items", issue, "comments", ""]) => known.contains(issue) && is_comment(&a.body),
            ("DELETE", ["work-items", issue, "comments", id, ""]) => known.contains(issue) && id.len() == 36,
            _ => false,
        }
    };
    let others = asked.iter().filter(|a| !needed(a));
    others.map(|a| format!("the tracker was asked {} {} {}", a.method, a.path, a.body)).collect()
}

fn is_move(body: &Value) -> bool {
    let fields = body.as_object().unwrap();
    fields.len() == 1 && STATES.iter().any(|(_, id, ..)| body["state"] == *id)
}

/// The comment has only our own tags: all foreign text is escaped.
fn is_comment(body: &Value) -> bool {
    let fields: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
    let html = TAGS.iter().fold(body["comment_html"].as_str().unwrap().to_owned(), |html, tag| html.replace(tag, ""));
    let named = ["comment_html", "external_id", "external_source"].iter().all(|name| fields.contains(name));
    named && fields.len() == 3 && !html.contains(['<', '>'])
}

/// The remaining comments and states in the tracker.
pub(super) fn left(plane: &Plane) -> Vec<String> {
    let mut found = Vec::new();
    for issue in plane.issues() {
        if plane.state_of(&issue) != "In Progress" || !plane.comments(&issue).is_empty() {
            found.push(format!("the issue {issue} is `{}`: {:?}", plane.state_of(&issue), plane.comments(&issue)));
        }
    }
    found
}

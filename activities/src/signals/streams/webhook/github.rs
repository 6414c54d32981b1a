//! GitHub's webhooks: events of an issue, a pull request, a review, a release or a branch.
//!
//! The header with the kind of event is not signed and must not be used, so the body decides the kind.

use super::super::FoundMessage;
use super::super::hash_id;
use super::super::source_pattern;
use super::WebhookCall;
use super::find_text;
use serde_json::Value;
use steward_domain::time;

/// Most commits of one push whose messages are kept: 20.
const MAX_COMMITS: usize = 20;
/// The subjects of events, the most specific first, each with its name for people.
const SUBJECTS: [(&str, &str); 6] = [
    ("pull_request", "pull request"),
    ("issue", "issue"),
    ("discussion", "discussion"),
    ("release", "release"),
    ("check_run", "check"),
    ("workflow_run", "workflow run"),
];

pub(super) fn read_call(json: &Value, body: &[u8]) -> WebhookCall {
    let repository = find_text(json, &["repository", "full_name"]).unwrap_or("unknown repository");
    let action = find_text(json, &["action"]).unwrap_or("changed");
    let comment = ["comment", "review"].iter().find_map(|name| find_text(json, &[name, "body"]));
    let about = SUBJECTS.iter().find(|(key, _)| json.get(*key).is_some_and(Value::is_object));
    let (subject, text, at_time) = match about {
        Some((key, name)) => {
            let title =
                ["title", "name", "tag_name"].iter().find_map(|t| find_text(json, &[key, t])).unwrap_or_default();
            let number = json.get(*key).and_then(|v| v.get("number")).and_then(Value::as_u64);
            let number = number.map(|n| format!(" #{n}")).unwrap_or_default();
            let text = [
                format!("{name}{number} \"{title}\" was {action}"),
                describe_outcome(json, key),
                comment.or_else(|| find_text(json, &[key, "body"])).unwrap_or_default().to_owned(),
            ];
            let when = ["comment", "review", key].iter().find_map(|k| find_text(json, &[k, "updated_at"]));
            (format!("{repository}: {name}{number} {title}"), text.join("\n\n"), when)
        }
        None => match describe_push(json) {
            Some(text) => (format!("{repository}: push"), text, find_text(json, &["head_commit", "timestamp"])),
            None => return WebhookCall::Nothing,
        },
    };
    let sender = find_text(json, &["sender", "login"]);
    WebhookCall::Event(Box::new(FoundMessage {
        source_id: hash_id(body),
        pattern: source_pattern("github", sender),
        origin_at: at_time.and_then(time::parse),
        author: sender.map(str::to_owned),
        subject: Some(subject),
        text,
    }))
}

/// Describes the current state of a subject.
fn describe_outcome(json: &Value, key: &str) -> String {
    let merged = json.get(key).and_then(|v| v.get("merged")).and_then(Value::as_bool).unwrap_or(false);
    if merged {
        return "It is merged.".to_owned();
    }
    let state = ["conclusion", "state_reason", "state"].iter().find_map(|name| find_text(json, &[key, name]));
    state.map(|state| format!("It is {state}.")).unwrap_or_default()
}

fn describe_push(json: &Value) -> Option<String> {
    let commits = json.get("commits")?.as_array()?;
    let branch = find_text(json, &["ref"]).unwrap_or("unknown");
    let messages: Vec<&str> = commits.iter().filter_map(|c| find_text(c, &["message"])).take(MAX_COMMITS).collect();
    Some(format!("{} commits were pushed to {branch}\n\n{}", commits.len(), messages.join("\n\n")))
}

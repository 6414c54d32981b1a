//! The kept histories, checked by `steward preflight`.

use serde_json::{Value, json};
use std::path::PathBuf;
use steward_tests::run;
use steward_tests::steward::Steward;

use super::scenes::{histories, names};

fn kept() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(histories()).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

async fn replay(paths: &[PathBuf]) -> (Option<i32>, Value) {
    let (folder, _) = run::new_folder();
    let paths = paths.iter().map(|path| path.to_str().unwrap());
    let arguments: Vec<_> = ["--json", "preflight", "--from"].into_iter().chain(paths).collect();
    let said = Steward::new(&folder).run(&arguments).await;
    (said.code, said.json())
}

#[tokio::test]
async fn every_kept_history_replays() {
    let all = kept();
    for name in names() {
        assert!(
            all.iter().any(|path| path.file_stem().unwrap() == name),
            "{name} was never recorded: `make histories`"
        );
    }
    let (code, found) = replay(&all).await;
    let shapes = found["shapes"].as_array().unwrap();
    let faults: Vec<&Value> = shapes.iter().filter(|one| one["outcome"]["kind"] != "safe").collect();
    assert_eq!((code, faults.len()), (Some(0), 0), "{faults:#?}");
    assert_eq!(shapes.iter().map(|one| one["open"].as_array().unwrap().len()).sum::<usize>(), all.len());
}

#[test]
fn no_kept_history_tells_of_a_machine() {
    for path in kept() {
        let text = std::fs::read_to_string(&path).unwrap();
        let history: Value = serde_json::from_str(&text).unwrap();
        let events = history["events"].as_array().unwrap();
        assert!(events.len() >= 5, "{}", path.display());
        let decoded = decoded(&history);
        for word in ["/tmp/", "/home", "/root", "localhost", "@"] {
            assert!(!decoded.contains(word), "{} tells of `{word}`", path.display());
        }
    }
}

/// All texts of a history, with decoded payloads.
fn decoded(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone() + "\n",
        Value::Array(all) => all.iter().map(decoded).collect(),
        Value::Object(fields) => {
            let payload = |(name, inner): (&String, &Value)| match inner {
                Value::String(text) if name == "data" => base64(text),
                inner => decoded(inner),
            };
            fields.iter().map(payload).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// The text of a base64 string; empty if it is not base64 text.
fn base64(text: &str) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Option<Vec<usize>> =
        text.trim_end_matches('=').bytes().map(|b| DIGITS.iter().position(|d| *d == b)).collect();
    let Some(digits) = digits else { return String::new() };
    let mut bytes = Vec::new();
    for four in digits.chunks(4) {
        let bits = four.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * (4 - four.len()));
        bytes.extend((1..four.len()).map(|n| (bits >> (24 - 8 * n)) as u8));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn a_history_that_this_build_would_not_have_written_is_found_with_its_event() {
    let text = std::fs::read_to_string(histories().join("live-tick.json")).unwrap();
    let (folder, _) = run::new_folder();
    let other = folder.join("other.json");
    let asked = json!({"activityType": {"name": "steward.judge"}}).to_string();
    assert!(text.replace([' ', '\n'], "").contains(&asked[1..asked.len() - 1]), "the clerk was asked");
    std::fs::write(&other, text.replace("\"steward.judge\"", "\"steward.guess\"")).unwrap();
    let (code, found) = replay(&[histories().join("live-tick.json"), other]).await;
    let [breaks, safe] = found["shapes"].as_array().unwrap().as_slice() else { panic!("{found:#}") };
    assert_eq!((code, &safe["outcome"]["kind"]), (Some(4), &json!("safe")), "{found:#}");
    let expected = json!({"kind": "breaks", "recorded": "steward.guess", "asks": "steward.judge"});
    let outcome = &breaks["outcome"];
    assert_eq!(json!({"kind": outcome["kind"], "recorded": outcome["recorded"], "asks": outcome["asks"]}), expected);
    assert_eq!(outcome["event_type"], "ActivityTaskScheduled", "{found:#}");
}

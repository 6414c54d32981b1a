//! The kept histories, and five ways to break each of them.
//!
//! A history that another build recorded shows the same difference as a build that was changed. So each change is made
//! in the history: every workflow is checked without a second version of each.

use super::history::{read_activity_name, set_activity_name};
use super::replay::{HistoryReplayer, ReplayOutcome};
use super::*;
use temporalio_protos::temporal::api::history::v1::history_event::Attributes;

/// Every kept history with its name.
fn kept() -> Vec<(String, History)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/histories");
    let files = list_history_files(&[folder]).unwrap();
    let all: Vec<_> = files
        .iter()
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, parse_history(&std::fs::read_to_string(path).unwrap()).unwrap())
        })
        .collect();
    let workflows: BTreeSet<_> = all.iter().map(|(_, history)| RunShape::of_history(history).workflow_type).collect();
    assert_eq!(workflows.len(), 17, "some workflow has no history: {workflows:?}");
    all
}

/// The places and ids of the events with an activity's name.
fn named_events(history: &History) -> Vec<(usize, i64)> {
    let named = history.events.iter().enumerate().filter(|(_, event)| read_activity_name(event).is_some());
    named.map(|(place, event)| (place, event.event_id)).collect()
}

/// Judges an altered history.
async fn judge(history: &History) -> ReplayOutcome {
    HistoryReplayer::of_this_build().unwrap().replay_history(history).await
}

#[tokio::test]
async fn no_kept_history_is_a_false_alarm() {
    for (name, history) in kept() {
        assert_eq!(judge(&history).await, ReplayOutcome::Safe, "{name}");
    }
}

#[tokio::test]
async fn a_renamed_activity_is_found_at_its_event() {
    for (name, history) in kept() {
        // The first, one in the middle and the last: a run with thousands of steps has the same three cases.
        let named = named_events(&history);
        for place in [0, named.len() / 2, named.len() - 1] {
            let (place, id) = named[place];
            let mut altered = history.clone();
            set_activity_name(&mut altered.events[place], "steward.before");
            let outcome = judge(&altered).await;
            let ReplayOutcome::Breaks { event_id, recorded, asks, .. } = &outcome else {
                panic!("{name}: {outcome:?}")
            };
            assert_eq!(*event_id, Some(id), "{name}: {outcome}");
            assert_eq!(recorded.as_deref(), Some("steward.before"), "{name}: {outcome}");
            assert_eq!(*asks, read_activity_name(&history.events[place]), "{name}: {outcome}");
        }
    }
}

#[tokio::test]
async fn an_activity_that_was_renamed_everywhere_is_found_at_its_first_event() {
    for (name, history) in kept() {
        let (place, id) = named_events(&history)[0];
        let first = read_activity_name(&history.events[place]).unwrap();
        let mut altered = history.clone();
        for event in &mut altered.events {
            if read_activity_name(event).as_ref() == Some(&first) {
                set_activity_name(event, "steward.before");
            }
        }
        let outcome = judge(&altered).await;
        assert!(
            matches!(&outcome, ReplayOutcome::Breaks { event_id: Some(found), .. } if *found == id),
            "{name}: {outcome}"
        );
    }
}

#[tokio::test]
async fn two_steps_in_another_order_are_found_at_the_first() {
    let mut found = 0;
    for (name, history) in kept() {
        let named = named_events(&history);
        let swapped = named.windows(2).find(|pair| {
            read_activity_name(&history.events[pair[0].0]) != read_activity_name(&history.events[pair[1].0])
        });
        let Some(&[(one, id), (other, _)]) = swapped else { continue };
        let mut altered = history.clone();
        set_activity_name(&mut altered.events[one], &read_activity_name(&history.events[other]).unwrap());
        set_activity_name(&mut altered.events[other], &read_activity_name(&history.events[one]).unwrap());
        let outcome = judge(&altered).await;
        assert!(
            matches!(&outcome, ReplayOutcome::Breaks { event_id: Some(event), .. } if *event == id),
            "{name}: {outcome}"
        );
        found += 1;
    }
    assert!(found > 15, "{found}");
}

#[tokio::test]
async fn a_workflow_that_this_build_lacks_is_found() {
    for (name, mut history) in kept() {
        let Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) = &mut history.events[0].attributes
        else {
            panic!("{name}")
        };
        started.workflow_type.as_mut().unwrap().name = "FormerWorkflow".to_owned();
        assert_eq!(judge(&history).await, ReplayOutcome::UnknownType, "{name}");
    }
}

#[tokio::test]
async fn a_changed_argument_or_result_is_found_at_its_event() {
    let mut checked = BTreeSet::new();
    for (name, history) in kept() {
        for place in 0..history.events.len() {
            let mut altered = history.clone();
            let Some(payload) = payload_of(&mut altered.events[place]) else { continue };
            let Ok(recorded) = serde_json::from_slice::<serde_json::Value>(&payload.data) else { continue };
            // As if the first field with a value had another name before, or the value were of another type.
            let changed = match recorded {
                serde_json::Value::Object(mut fields) if !fields.is_empty() => {
                    let first = fields.keys().next().unwrap().clone();
                    let value = fields.remove(&first).unwrap();
                    let value = if value.is_null() || value == 0 || value == false { "x".into() } else { value };
                    fields.insert("former".into(), value);
                    serde_json::Value::Object(fields)
                }
                serde_json::Value::Array(all) if all.is_empty() => "former".into(),
                serde_json::Value::Null => continue,
                _ => serde_json::json!({"former": 1}),
            };
            payload.data = changed.to_string().into_bytes();
            let id = history.events[place].event_id;
            // A replay notices some changes by their consequences; the event with the change is never after that one.
            match judge(&altered).await {
                ReplayOutcome::Unreadable(found) => {
                    assert_eq!(found.event_id, id, "{name}: {found:?}");
                    checked.insert((found.owner, found.role));
                }
                ReplayOutcome::Breaks { event_id, .. } => {
                    assert!(event_id.is_none_or(|event| event >= id), "{name}: {id}")
                }
                ReplayOutcome::Fails { .. } => {}
                outcome => panic!("{name}, event {id}: {outcome}; {changed}"),
            }
        }
    }
    assert!(checked.len() > 10, "{checked:?}");
}

/// The recorded argument or result of an event.
fn payload_of(
    event: &mut temporalio_protos::temporal::api::history::v1::HistoryEvent,
) -> Option<&mut temporalio_protos::temporal::api::common::v1::Payload> {
    let payloads = match event.attributes.as_mut()? {
        Attributes::WorkflowExecutionStartedEventAttributes(started) => started.input.as_mut(),
        Attributes::WorkflowExecutionCompletedEventAttributes(completed) => completed.result.as_mut(),
        Attributes::ActivityTaskScheduledEventAttributes(task) => task.input.as_mut(),
        Attributes::ActivityTaskCompletedEventAttributes(completed) => completed.result.as_mut(),
        Attributes::MarkerRecordedEventAttributes(marker) => marker.details.get_mut("result"),
        _ => None,
    };
    payloads?.payloads.first_mut()
}

#[tokio::test]
async fn an_argument_that_no_longer_reads_is_named_with_its_workflow() {
    let (_, mut history) = kept().into_iter().find(|(name, _)| name == "undo").unwrap();
    let payload = payload_of(&mut history.events[0]).unwrap();
    let mut argument: serde_json::Value = serde_json::from_slice(&payload.data).unwrap();
    argument["edited_by"] = "ann".into();
    payload.data = argument.to_string().into_bytes();
    let outcome = judge(&history).await.to_string();
    let words = "argument of ResolveWorkflow no longer reads at event 1: edited_by would be lost";
    assert_eq!(outcome, words);
}

#[tokio::test]
async fn files_are_grouped_by_shape_and_outcome_and_what_breaks_comes_first() {
    let folder = tempfile::tempdir().unwrap();
    let histories = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/histories");
    for (name, copy) in [("idle-tick", "a.json"), ("idle-tick", "b.json"), ("live-tick", "sub/c.json")] {
        std::fs::create_dir_all(folder.path().join("sub")).unwrap();
        std::fs::copy(histories.join(format!("{name}.json")), folder.path().join(copy)).unwrap();
    }
    let text = std::fs::read_to_string(histories.join("live-tick.json")).unwrap();
    std::fs::write(folder.path().join("d.json"), text.replace("\"steward.judge\"", "\"steward.guess\"")).unwrap();
    std::fs::write(folder.path().join("e.json"), "no history").unwrap();
    let report = Preflight::new(0).unwrap().check_files(&[folder.path().to_owned()]).await.unwrap();
    let lines: Vec<String> =
        report.shapes.iter().map(|each| each.to_string().replace(&folder.path().display().to_string(), "")).collect();
    assert!(report.not_checked[0].contains("e.json: not a history: "), "{:?}", report.not_checked);
    let broken = ": recorded steward.guess, this build asks steward.judge [/d.json]";
    assert!(lines[0].starts_with("StewardWorkflow, ") && lines[0].ends_with(broken), "{lines:#?}");
    assert!(lines[1].ends_with("safe [2 runs]"), "{lines:#?}");
    assert!(!report.is_safe());
    let none = tempfile::tempdir().unwrap();
    let error = Preflight::new(0).unwrap().check_files(&[none.path().to_owned()]).await.unwrap_err();
    assert!(error.to_string().contains("holds no .json file"), "{error}");
}

#[test]
fn too_many_runs_are_refused_with_what_would_fit() {
    let scope = PreflightScope { closed: 20, hours: 24, max: 20_000 };
    assert_eq!(suggest_scope(100, 48_000, scope), "give --hours 9, or --max 49000");
    assert_eq!(suggest_scope(25_000, 10, scope), "give --max 26000");
}

use super::*;
use crate::record::frontmatter::{FieldEdit, RecordFields, edit_fields, read_note, render_note};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

fn mapping(change: impl FnOnce(&mut Value)) -> VaultMapping {
    let mut value = json!({
        "matter": {
            "where": {"folder": "Projects", "type": "project"},
            "state": {"property": "status", "open": ["active", "waiting"], "done": ["done"]},
            "owner": {"property": "lead"},
        },
        "task": {
            "where": {"tag": "task"},
            "state": {"property": "status", "open": ["todo", "doing"], "done": ["✅ done", "done"], "archived": ["dropped"]},
            "due": {"property": "due"},
            "parent": {"property": "project"},
            "related_to": {"property": "people"},
            "importance": {"property": "priority", "high": [1], "low": ["4"]},
        },
    });
    change(&mut value);
    serde_json::from_value(value).unwrap()
}

fn faults(change: impl FnOnce(&mut Value)) -> Vec<String> {
    mapping(change)
        .find_faults()
        .into_iter()
        .map(|fault| format!("{}: {}", fault.keys.join("."), fault.message))
        .collect()
}

#[test]
fn a_mapping_without_faults_has_none_and_reads_back() {
    assert_eq!(faults(|_| ()), Vec::<String>::new());
    let whole = mapping(|_| ());
    let text = serde_json::to_string(&whole).unwrap();
    let read: VaultMapping = serde_json::from_str(&text).unwrap();
    assert_eq!(read.hash(), whole.hash());
    assert_ne!(mapping(|v| v["task"]["due"]["property"] = json!("deadline")).hash(), whole.hash());
}

#[test]
fn every_fault_names_its_key() {
    type Change = fn(&mut Value);
    let cases: [(Change, &str, &str); 16] = [
        (|v| v["task"]["where"] = json!({}), "map.task.where", "every note"),
        (|v| v["task"]["where"] = json!({"folder": "/"}), "map.task.where", "every note"),
        (|v| v["task"]["where"] = json!({"folder": "a/.b"}), "map.task.where", "hidden"),
        (|v| v["task"]["where"] = json!({"tag": "#"}), "map.task.where", "empty"),
        (|v| v["task"]["where"] = json!({"kind": ["a"]}), "map.task.where", "`kind`"),
        (|v| v["task"]["where"] = json!({"Status": "todo"}), "map.task.where", "out of the mapping"),
        (|v| v["task"]["except"] = json!([{}]), "map.task.except", "every note"),
        (|v| v["task"]["due"]["property"] = json!("Tags"), "map.task.due", "cannot be mapped"),
        (|v| v["task"]["due"]["property"] = json!("steward_x"), "map.task.due", "cannot be mapped"),
        (|v| v["task"]["due"]["property"] = json!("snoozed_until"), "map.task.due", "cannot be mapped"),
        (|v| v["task"]["due"]["property"] = json!("Project"), "map.task.due", "the role `parent`"),
        (|v| v["task"]["state"]["done"] = json!([]), "map.task.state.done", "empty"),
        (|v| v["task"]["state"]["done"] = json!(["ToDo "]), "map.task.state.done", "`open`"),
        (|v| v["task"]["state"]["done"] = json!([["x"]]), "map.task.state.done", "not text"),
        (|v| v["matter"]["due"] = json!({"property": "due"}), "map.matter.due", "a matter has no"),
        (|v| v["task"]["parent"] = json!({"folder": true, "property": "p"}), "map.task.parent", "either"),
    ];
    for (change, key, words) in cases {
        let found = faults(change);
        assert!(
            found.iter().any(|fault| fault.starts_with(&format!("{key}: ")) && fault.contains(words)),
            "{key}: {found:?}"
        );
    }
    assert_eq!(faults(|v| v["task"] = json!({"where": {"tag": "t"}})).len(), 2, "state and parent are missing");
    let own = |v: &mut Value| v["task"]["snooze"] = json!({"property": "snoozed_until"});
    assert_eq!(faults(own), Vec::<String>::new(), "its own key may keep its role");
    assert_eq!(faults(|v| v["matter"]["where"] = v["task"]["where"].clone()).len(), 1, "the same notes");
}

#[test]
fn unknown_keys_are_refused() {
    let mut value = serde_json::to_value(mapping(|_| ())).unwrap();
    value["task"]["deu"] = json!({"property": "due"});
    assert!(serde_json::from_value::<VaultMapping>(value).unwrap_err().to_string().contains("deu"));
}

#[test]
fn words_are_compared_without_case_and_written_in_the_notes_own_form() {
    for same in [json!("Todo"), json!(" todo "), json!(["TODO"])] {
        assert_eq!(fold_words(&same).as_deref(), Some("todo"), "{same}");
    }
    for none in [json!(null), json!({}), json!([]), json!(["a", "b"]), json!("  ")] {
        assert_eq!(fold_words(&none), None, "{none}");
    }
    assert_eq!(fold_words(&json!(1)), fold_words(&json!("1")));
    for (now, word, written) in [
        (Some(json!("todo")), json!("✅ done"), json!("✅ done")),
        (Some(json!(["todo"])), json!("done"), json!(["done"])),
        (Some(json!(false)), json!("true"), json!(true)),
        (Some(json!(0)), json!("1"), json!(1)),
        (Some(json!("0")), json!(1), json!("1")),
        (Some(json!(0)), json!("done"), json!("done")),
        (None, json!(true), json!(true)),
    ] {
        assert_eq!(write_like(now.as_ref(), &word), written, "{now:?} {word}");
    }
}

#[test]
fn a_selector_holds_if_everything_it_names_holds() {
    let path = |text: &str| crate::record::path::RecordPath::parse(text).unwrap();
    let fields = |value: Value| value.as_object().unwrap().clone();
    let selector = |value: Value| serde_json::from_value::<NoteSelector>(value).unwrap();
    let in_folder = selector(json!({"folder": "Projects/", "type": "Project"}));
    assert!(in_folder.matches(&path("Projects/a/b.md"), &fields(json!({"Type": "project"}))));
    assert!(in_folder.matches(&path("Projects/b.md"), &fields(json!({"type": ["x", "project"]}))));
    assert!(!in_folder.matches(&path("Projectsx/b.md"), &fields(json!({"type": "project"}))));
    assert!(!in_folder.matches(&path("Projects/b.md"), &fields(json!({"type": "x"}))));
    let tagged = selector(json!({"tag": "#task"}));
    for tags in [json!(["task"]), json!(["x", "#Task/home"]), json!("a, task"), json!("task"), json!("a task/b")] {
        assert!(tagged.matches(&path("a.md"), &fields(json!({"tags": tags}))), "{tags}");
    }
    for tags in [json!(["tasks"]), json!("taskx"), json!(3), json!(null)] {
        assert!(!tagged.matches(&path("a.md"), &fields(json!({"tags": tags}))), "{tags}");
    }
}

/// A word as people write it into a mapping.
fn words() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[a-zA-Z✅ÄöÜ\u{308} _-]{1,10}".prop_map(Value::from),
        "[ -~]{1,6}".prop_map(Value::from),
        "\\[\\[[a-z]{0,3}\\]\\]".prop_map(Value::from),
        select(vec![json!("true"), json!("1"), json!("1.0"), json!("1e3"), json!("null"), json!("2026-11-24")]),
        any::<i16>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        (-99..99_i32).prop_map(|tenths| Value::from(f64::from(tenths) / 10.0)),
    ]
}

proptest! {
    #[test]
    fn a_state_that_was_written_is_read_again_in_whatever_form_the_note_had(
        open in vec(words(), 1..4),
        done in vec(words(), 1..4),
        archived in vec(words(), 0..3),
        now in select(vec![
            json!("x"), json!(["x"]), json!([]), json!(3), json!([3]), json!(1.5), json!(true), json!([false]), Value::Null,
        ]),
    ) {
        let state = StateProperty { property: "status".into(), open, done, archived };
        let task = NoteMapping {
            selector: NoteSelector::with_tag("task"),
            state: Some(state.clone()),
            parent: Some(ParentProperty::by_property("project")),
            ..NoteMapping::default()
        };
        prop_assume!(!task.has_task_faults());
        for to in [RecordState::Open, RecordState::Done, RecordState::Archived] {
            for word in state.values(to) {
                prop_assert_eq!(state.read_state(word), Some(to));
                let written = write_like(Some(&now), word);
                prop_assert_eq!(state.read_state(&written), Some(to), "{} as {}", word, written);
                let note = render_note(&RecordFields::from_iter([("status".to_owned(), now.clone())]), "");
                let edit = FieldEdit { field: "status".to_owned(), value: Some(written) };
                let note = edit_fields(note.as_bytes(), &[edit]).unwrap();
                let read = read_note(&note).unwrap().into_fields();
                prop_assert_eq!(state.read_state(&read["status"]), Some(to), "{}", String::from_utf8_lossy(&note));
            }
        }
    }
}

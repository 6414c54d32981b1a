use super::*;
use serde_json::json;

fn fields(value: Value) -> Fields {
    value.as_object().unwrap().clone()
}

fn task(extra: Value) -> Result<Task, RecordFaults> {
    let mut all = fields(json!({"type": "task", "name": "T", "parent_matter": "[[matter/m]]"}));
    all.extend(fields(extra));
    Task::read(&all)
}

#[test]
fn a_state_is_read_in_any_case_and_an_unknown_one_is_named() {
    assert_eq!(task(json!({"state": "DONE"})).unwrap().state, RecordState::Done);
    let message = task(json!({"state": "opne"})).unwrap_err().to_string();
    assert_eq!(message, "`state` is `opne`, expected `open`, `done` or `archived`");
}

#[test]
fn every_fault_of_a_record_is_reported_at_once() {
    let message = Task::read(&fields(json!({
        "type": "note", "name": true, "state": "opne", "due": "soon", "snoozed_until": "later",
        "surface_class": "huge", "id": [7],
    })));
    let message = message.unwrap_err().to_string();
    for part in [
        "`type` is `note`",
        "`name` is `true`",
        "`state` is `opne`",
        "`due` is `soon`",
        "`snoozed_until` is `later`",
        "`surface_class` is `huge`",
        "`id` is `[7]`",
        "`parent_matter` is missing: add it",
    ] {
        assert!(message.contains(part), "no {part} in: {message}");
    }
    let message = Matter::read(&fields(json!({"state": "opne", "name": true}))).unwrap_err().to_string();
    for part in ["`type` is missing", "`state` is `opne`", "`name` is `true`"] {
        assert!(message.contains(part), "no {part} in: {message}");
    }
    let signal = fields(json!({"type": "note", "target_kind": "person", "effect": "x", "created": "soon"}));
    let message = crate::signals::signal::Signal::read(&signal).unwrap_err().to_string();
    for field in [
        "type",
        "target_kind",
        "target_path",
        "effect",
        "created",
        "source_type",
        "raw_quote",
        "target_confidence",
        "effect_confidence",
    ] {
        assert!(message.contains(&format!("`{field}`")), "no {field} in: {message}");
    }
}

#[test]
fn a_malformed_next_check_counts_as_none() {
    assert_eq!(task(json!({"next_check_after": "soon"})).unwrap().next_check_after, None);
    assert_eq!(task(json!({"next_check_after": ["x"]})).unwrap().next_check_after, None);
}

#[test]
fn a_malformed_snooze_is_an_error_because_a_guess_would_act_against_a_human() {
    assert!(task(json!({"snoozed_until": "after the holidays"})).is_err());
}

#[test]
fn a_message_holds_no_control_characters() {
    let message = task(json!({"state": "a\nERROR forged \u{1b}[31m"})).unwrap_err().to_string();
    assert!(!message.contains('\n') && !message.contains('\u{1b}'), "{message}");
}

#[test]
fn a_confidence_out_of_range_is_refused() {
    let mut all = fields(json!({
        "type": "signal", "created": "2026-11-01", "source_type": "gmail", "raw_quote": "q", "target_kind": "task",
        "target_path": "task/t.md", "target_confidence": 0.9, "effect": "mutation", "effect_confidence": 0.9,
        "mutation_proposal": {"class": "state_change", "set": {"state": "done"}}
    }));
    assert_eq!(crate::signals::signal::Signal::read(&all).unwrap().proposed_state(), Some(RecordState::Done));
    all.insert("effect_confidence".into(), json!(1.5));
    assert!(crate::signals::signal::Signal::read(&all).is_err());
}

#[test]
fn a_source_that_holds_a_link_is_read_as_it_was_written() {
    let written = crate::record::frontmatter::render_document(&fields(json!({"source": "note:[[ann]]"})), "");
    assert!(!written.contains("[["), "{written}");
    let read = crate::record::frontmatter::read_document(written.as_bytes()).unwrap();
    assert_eq!(Instinct::read(read.fields()).source.as_deref(), Some("note:[[ann]]"));
    assert_eq!(Instinct::read(&fields(json!({"source": "note:[[ann]]"}))).source.as_deref(), Some("note:[[ann]]"));
}

#[test]
fn a_ceiling_that_is_there_but_unreadable_means_ask() {
    assert_eq!(Instinct::read(&fields(json!({"ceiling": 3}))).ceiling, Some(Ceiling::Ask));
    assert_eq!(Instinct::read(&fields(json!({}))).ceiling, None);
    let start = |fields_| Instinct::read(&fields(fields_)).start;
    assert_eq!(start(json!({"confidence": 0.82})), Some(0.82));
    assert_eq!(start(json!({"confidence": 0.9, "initial_confidence": 0.82, "counted": 3})), Some(0.82));
    assert_eq!(start(json!({"confidence": 0.9, "counted": 0})), None, "Steward wrote that one");
    for none in [json!(82), json!(-0.1), json!("0.82"), json!(null)] {
        assert_eq!(start(json!({"confidence": none})), None);
    }
    let observations = |status| Instinct::read(&fields(json!({"observations": 60, "status": status}))).observations;
    assert_eq!((observations("live"), observations("pruned")), (60, 0), "a pruned source is unknown");
}

use super::candidates::{CandidateMatcher, OpenRecord};
use super::*;
use crate::action::mutation::MutationError;
use crate::record::frontmatter;
use crate::signals::signal::{Signal, SignalStatus};
use crate::signals::stream::IncomingEvent;
use crate::time;
use proptest::prelude::*;
use serde_json::{Value, json};

const TEXT: &str = "Hello Ada,\nthe rent of October was\npaid today. Please sign the lease.\nThe rent is high.";

fn path(text: &str) -> RecordPath {
    RecordPath::parse(text).unwrap()
}

fn event(subject: &str, text: &str) -> StreamEvent {
    let incoming = IncomingEvent {
        source_id: "<1@b>",
        pattern: "mail:landlord@b",
        author: Some("Landlord"),
        subject: Some(subject),
        text,
        ..IncomingEvent::default()
    };
    StreamEvent::new("mail", &incoming, time::parse("2026-11-20T08:00:00Z").unwrap())
}

fn known(path_text: &str, name: &str, matter: Option<&str>) -> OpenRecord {
    OpenRecord {
        path: path(path_text),
        kind: path(path_text).folder_kind().unwrap(),
        name: name.into(),
        matter_name: matter.map(str::to_owned),
    }
}

fn vault() -> Vec<OpenRecord> {
    vec![
        known("task/pay-rent.md", "Pay the rent", Some("House")),
        known("task/sign-lease.md", "Sign the lease", Some("House")),
        known("matter/house.md", "House", None),
        known("task/passport.md", "Renew passport", Some("Papers")),
    ]
}

fn question() -> ExtractQuestion {
    let offer = |p: &str, score| TargetOffer {
        path: path(p),
        kind: path(p).folder_kind().unwrap(),
        name: p.into(),
        matter_name: None,
        score,
    };
    let offers = vec![offer("task/pay-rent.md", 0.7), offer("task/sign-lease.md", 0.6), offer("matter/house.md", 0.4)];
    ExtractQuestion::new(&event("Your rent", TEXT), offers)
}

fn good() -> Value {
    json!({
        "quote": "rent of October was paid", "target": "task/pay-rent.md",
        "scores": {"task/pay-rent.md": 0.9, "task/sign-lease.md": 0.1, "matter/house.md": 0.3},
        "effect": "mutation", "mutation": {"class": "state_change", "set": {"state": "done"}},
        "effect_confidence": 0.95, "reasoning": "it says so",
    })
}

fn check(change: impl FnOnce(&mut Value)) -> Result<ExtractAnswer, ExtractAnswerError> {
    let mut finding = good();
    change(&mut finding);
    ExtractAnswer::parse_answer(&json!({"signals": [finding]}).to_string(), &question())
}

fn signal(change: impl FnOnce(&mut Value)) -> Signal {
    let answer = check(change).unwrap();
    answer.to_signals(&path("stream/mail/1.md"), &event("Your rent", TEXT)).unwrap().remove(0).1
}

fn chosen(candidates: &[OpenRecord], event: &StreamEvent) -> Vec<(String, f64)> {
    let offers = CandidateMatcher::new(candidates.to_vec()).choose_offers(event);
    offers.into_iter().map(|o| (o.path.to_string(), o.score)).collect()
}

#[test]
fn the_records_whose_names_an_event_uses_are_offered_the_likeliest_first() {
    let offers = chosen(&vault(), &event("Rent", "The rent for the house is paid"));
    let names: Vec<&str> = offers.iter().map(|(p, _)| p.as_str()).collect();
    assert_eq!(names, ["matter/house.md", "task/pay-rent.md"], "{offers:?}");
    let offers = chosen(&vault(), &event("Please pay the rent", "for the house"));
    assert_eq!((offers[0].0.as_str(), offers[0].1), ("task/pay-rent.md", 1.0), "{offers:?}");
    assert!(offers[0].1 - offers[1].1 > AMBIGUOUS_WITHIN, "a task and its matter can be told apart: {offers:?}");
    assert_eq!(chosen(&vault(), &event("Lunch", "Pizza?")), []);
    assert_eq!(chosen(&[], &event("Rent", "paid")), []);
}

#[test]
fn a_rare_word_tells_more_than_a_common_one() {
    let mut all: Vec<OpenRecord> =
        (0..20).map(|n| known(&format!("task/t{n}.md"), &format!("Pay bill{n}"), None)).collect();
    all.push(known("task/roof.md", "Pay roofer", None));
    let offers = chosen(&all, &event("", "the roofer was here and I must pay"));
    assert_eq!(offers.len(), 5);
    assert_eq!(offers[0].0, "task/roof.md");
    assert!(offers[0].1 > 2.0 * offers[1].1, "{offers:?}");
}

#[test]
fn names_are_found_without_accents_and_in_the_plural() {
    let all = [known("task/a.md", "Fenêtre Müller", None)];
    assert_eq!(chosen(&all, &event("", "les FENETRES de Muller")), [("task/a.md".to_owned(), 0.7)]);
}

#[test]
fn a_good_answer_is_taken_with_the_events_own_words() {
    let answer = check(|_| ()).unwrap();
    assert_eq!(answer.findings()[0].quote, "rent of October was\npaid");
    let signal = signal(|_| ());
    assert_eq!(signal.target, Some(path("task/pay-rent.md")));
    assert_eq!((signal.status, signal.reason), (SignalStatus::Unrouted, None));
    assert_eq!((signal.target_confidence, signal.candidates.len()), (0.9, 3));
    assert_eq!(ExtractAnswer::parse_answer("{\"signals\": []}", &question()).unwrap().findings(), []);
}

#[test]
fn an_answer_outside_the_form_is_refused() {
    use ExtractAnswerError as E;
    type Bad = fn(&mut Value);
    type Seen = fn(&ExtractAnswerError) -> bool;
    let table: [(Bad, Seen); 25] = [
        (|v| v["extra"] = json!(1), |e| matches!(e, E::Form(_))),
        (|v| v["effect"] = json!("delete"), |e| matches!(e, E::Form(_))),
        (|v| v["effect_confidence"] = json!("high"), |e| matches!(e, E::Form(_))),
        (|v| drop(v.as_object_mut().unwrap().remove("target")), |e| matches!(e, E::Form(_))),
        (|v| drop(v.as_object_mut().unwrap().remove("mutation")), |e| matches!(e, E::Form(_))),
        (|v| v["quote"] = json!("rent of November was paid"), |e| *e == E::InventedQuote(1)),
        (|v| v["quote"] = json!("Rent of October"), |e| *e == E::InventedQuote(1)),
        (|v| v["quote"] = json!(" "), |e| *e == E::InventedQuote(1)),
        (|v| v["target"] = json!("task/passport.md"), |e| *e == E::InventedTarget(1)),
        (|v| v["target"] = json!("../../etc/passwd"), |e| *e == E::InventedTarget(1)),
        (|v| v["scores"]["task/other.md"] = json!(0.5), |e| *e == E::InventedScore(1)),
        (|v| v["scores"] = json!({"task/pay-rent.md": 1}), |e| matches!(e, E::MissingScore { at: 1, .. })),
        (|v| v["scores"]["task/pay-rent.md"] = json!(1.1), |e| matches!(e, E::Range { .. })),
        (|v| v["effect_confidence"] = json!(-0.01), |e| matches!(e, E::Range { .. })),
        (|v| v["mutation"] = Value::Null, |e| *e == E::Effect(1)),
        (|v| v["effect"] = json!("action"), |e| *e == E::Effect(1)),
        (
            |v| v["mutation"]["set"]["state"] = json!("gone"),
            |e| matches!(e, E::Mutation { source: MutationError::Value("state"), .. }),
        ),
        (|v| v["mutation"]["set"]["steward_ceiling"] = json!("act"), |e| matches!(e, E::Mutation { .. })),
        (|v| v["mutation"]["target"] = json!("task/other.md"), |e| *e == E::MutationField(1)),
        (
            |v| v["mutation"] = json!({"class": "context_edit", "set": {"owner": "Eve"}}),
            |e| *e == E::Unfit { at: 1, class: "context_edit" },
        ),
        (
            |v| v["mutation"] = json!({"class": "parent_matter", "set": {"parent_matter": "[[matter/papers]]"}}),
            |e| *e == E::InventedMatter(1),
        ),
        (
            |v| v["mutation"] = json!({"class": "context_edit", "set": {"state": "done"}}),
            |e| matches!(e, E::Mutation { .. }),
        ),
        (|v| v["reasoning"] = json!(" "), |e| *e == E::Reasoning(1)),
        (|v| v["reasoning"] = json!("x".repeat(501)), |e| *e == E::Reasoning(1)),
        (|v| *v = json!(["rent", null, {}, "none", null, 0.5, "why"]), |e| matches!(e, E::Form(_))),
    ];
    for (number, (bad, expected)) in table.into_iter().enumerate() {
        let error = check(bad).unwrap_err();
        assert!(expected(&error), "{number}: {error:?}");
    }
    for bad in ["", "sure! {", "[]", "{}", "{\"signals\": {}}", "{\"signals\": [], \"target\": \"x\"}"] {
        assert!(matches!(ExtractAnswer::parse_answer(bad, &question()), Err(ExtractAnswerError::Form(_))), "{bad}");
    }
}

#[test]
fn more_signals_than_five_and_a_quote_twice_are_refused() {
    let quotes = ["Hello", "Ada", "rent", "October", "today", "sign"];
    let all: Vec<Value> = quotes
        .iter()
        .map(|q| {
            let mut f = good();
            f["quote"] = json!(q);
            f
        })
        .collect();
    let check = |all: &[Value]| ExtractAnswer::parse_answer(&json!({"signals": all}).to_string(), &question());
    assert_eq!(check(&all).unwrap_err(), ExtractAnswerError::TooMany);
    assert_eq!(check(&all[..5]).unwrap().findings().len(), 5);
    assert_eq!(check(&[good(), good()]).unwrap_err(), ExtractAnswerError::RepeatedQuote(2));
}

#[test]
fn a_quote_of_the_subject_is_one_of_the_event() {
    assert_eq!(check(|v| v["quote"] = json!("Your rent")).unwrap().findings()[0].quote, "Your rent");
}

#[test]
fn targets_that_lie_too_close_are_none_and_both_are_named() {
    for (other, has_target) in [(0.85, false), (0.9, false), (0.95, false), (0.84, true)] {
        let signal = signal(|v| v["scores"]["task/sign-lease.md"] = json!(other));
        assert_eq!(signal.target.is_some(), has_target, "{other}");
        if !has_target {
            let reason = signal.reason.unwrap();
            assert_eq!((signal.status, signal.candidates.len()), (SignalStatus::Skipped, 3));
            assert!(reason.starts_with("ambiguous: task/pay-rent.md (0.90) and task/sign-lease.md"), "{reason}");
        }
    }
    let none = signal(|v| v["target"] = Value::Null);
    assert_eq!((none.target, none.status), (None, SignalStatus::Skipped));
    assert!(none.reason.unwrap().starts_with("ambiguous: "));
}

#[test]
fn what_asks_something_waits_for_the_principal_and_what_changes_nothing_is_skipped() {
    let with = |effect: &'static str| {
        signal(move |v| {
            v["effect"] = json!(effect);
            v["mutation"] = Value::Null
        })
    };
    assert_eq!(with("action").status, SignalStatus::ActionPending);
    assert_eq!(with("none").status, SignalStatus::Skipped);
    assert!(with("none").reason.is_some());
}

#[test]
fn a_signal_reads_back_from_its_file_and_the_same_event_gives_the_same_files() {
    let event = event("Your rent", TEXT);
    let written = |answer: ExtractAnswer| answer.to_signals(&path("stream/mail/1.md"), &event).unwrap();
    let (one, two) = (written(check(|_| ()).unwrap()), written(check(|_| ()).unwrap()));
    assert_eq!(one, two);
    let text = one[0].1.render();
    assert_eq!(Signal::read(frontmatter::read_document(text.as_bytes()).unwrap().fields()).unwrap(), one[0].1);
}

#[test]
fn a_text_that_was_not_read_to_its_end_does_nothing_by_itself() {
    let answer = check(|_| ()).unwrap();
    let read = |event: &StreamEvent| answer.to_signals(&path("stream/mail/1.md"), event).unwrap().remove(0).1;
    let (whole, cut) = (event("Your rent", TEXT), StreamEvent { cut: true, ..event("Your rent", TEXT) });
    let long = event("Your rent", &format!("{TEXT}{}", " and more".repeat(3_000)));
    assert_eq!((read(&whole).effect_confidence, read(&whole).reasoning), (0.95, "it says so".into()));
    for event in [cut, long] {
        let signal = read(&event);
        assert_eq!((signal.effect_confidence, signal.status), (0.5, SignalStatus::Unrouted));
        assert_eq!(signal.reasoning, "Only the beginning was read. it says so");
    }
}

#[test]
fn every_class_has_its_place_in_the_schema() {
    let schema = answer_schema(&question());
    let text = schema.to_string();
    for word in ["state_change", "context_edit", "parent_matter", "related", "matter/house.md", "task/pay-rent.md"] {
        assert!(text.contains(word), "{word}");
    }
    closed(&schema);
    let none = ExtractQuestion { offers: Vec::new(), ..question() };
    assert!(!answer_schema(&none).to_string().contains("parent_matter"));
}

/// Strict servers want every object closed and every property required.
fn closed(schema: &Value) {
    if schema["type"] == "object" {
        let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!((&schema["additionalProperties"], &schema["required"]), (&json!(false), &json!(names)));
    }
    match schema {
        Value::Object(fields) => fields.values().for_each(closed),
        Value::Array(all) => all.iter().for_each(closed),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

proptest! {
    #[test]
    fn no_answer_is_taken_whose_quote_is_not_in_the_event(quote in "[a-zA-Z .\n]{0,30}") {
        let taken = check(|v| v["quote"] = json!(quote));
        let flat = |t: &str| t.split_whitespace().collect::<Vec<_>>().join(" ");
        let there = flat(TEXT).contains(&flat(&quote)) || "Your rent".contains(&flat(&quote));
        prop_assert!(there || taken.is_err());
        if let Ok(answer) = taken {
            let kept = &answer.findings()[0].quote;
            prop_assert!(TEXT.contains(kept.as_str()) || "Your rent".contains(kept.as_str()));
        }
    }

    #[test]
    fn no_text_makes_the_check_or_the_choice_fail_hard(text in "\\PC{0,200}") {
        let _ = ExtractAnswer::parse_answer(&text, &question());
        let offers = CandidateMatcher::new(vault()).choose_offers(&event(&text, &text));
        prop_assert!(offers.iter().all(|o| o.score > 0.0 && o.score <= 1.0));
    }
}

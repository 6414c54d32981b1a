use super::*;
use proptest::prelude::*;
use steward_domain::record::entity::SignalEffect;
use steward_domain::record::path::RecordPath;
use steward_domain::signals::extract::ExtractAnswer;
use steward_domain::signals::extract::candidates::{CandidateMatcher, OpenRecord};
use steward_domain::signals::stream::{IncomingEvent, StreamEvent};

fn known(path: &str, name: &str, matter: Option<&str>) -> OpenRecord {
    let path = RecordPath::parse(path).unwrap();
    OpenRecord { kind: path.folder_kind().unwrap(), path, name: name.into(), matter_name: matter.map(str::to_owned) }
}

fn question(subject: &str, text: &str) -> ExtractQuestion {
    let incoming =
        IncomingEvent { source_id: "1", pattern: "mail:a@b", subject: Some(subject), text, ..IncomingEvent::default() };
    let event = StreamEvent::new("mail", &incoming, chrono::DateTime::UNIX_EPOCH);
    let vault = vec![
        known("task/invoice.md", "Roofer invoice", Some("House")),
        known("task/lease.md", "Lease contract", Some("Office")),
        known("matter/house.md", "House", None),
        known("matter/office.md", "Office", None),
    ];
    ExtractQuestion::new(&event, CandidateMatcher::new(vault).choose_offers(&event))
}

/// Effect, target and proposal of each finding.
fn read(subject: &str, text: &str) -> Vec<(SignalEffect, String, Option<Value>)> {
    let question = question(subject, text);
    let answer = ExtractAnswer::parse_answer(&render_answer(&question), &question).unwrap();
    let target = |t: &Option<RecordPath>| t.as_ref().map(|t| t.slug().to_owned()).unwrap_or_default();
    answer
        .findings()
        .iter()
        .map(|f| (f.effect, target(&f.target), f.mutation.as_ref().map(Mutation::to_proposal)))
        .collect()
}

fn state(to: &str) -> Option<Value> {
    Some(json!({"class": "state_change", "set": {"state": to}}))
}

#[test]
fn what_a_sentence_says_is_done_is_done() {
    for text in [
        "The invoice of the roofer was paid.",
        "Hello,\nthe roofer's invoice has\nbeen settled today. Bye",
        "Roofer invoice: delivered!",
        "- roofer invoice completed\n- nothing else",
    ] {
        assert_eq!(read("News", text)[0], (SignalEffect::Mutation, "invoice".into(), state("done")), "{text}");
    }
    let lease = (SignalEffect::Mutation, "lease".to_owned(), state("done"));
    assert_eq!(read("Lease contract", "It is signed."), [lease]);
    let off = (SignalEffect::Mutation, "lease".to_owned(), state("archived"));
    assert_eq!(read("", "The lease contract is no longer needed."), [off]);
}

#[test]
fn what_is_denied_planned_or_asked_changes_nothing() {
    for text in [
        "The roofer invoice is not yet paid.",
        "The roofer invoice will be paid on Monday.",
        "The roofer invoice isn't paid.",
        "Once the roofer invoice is paid, we come.",
        "The roofer invoice is overdue and must be paid.",
        "The lease contract is not cancelled.",
    ] {
        let found = read("", text);
        assert_eq!((found.len(), found[0].0, &found[0].2), (1, SignalEffect::None, &None), "{text}");
    }
    for text in ["Was the roofer invoice paid?", "Please get the roofer invoice paid."] {
        assert_eq!(read("", text), [(SignalEffect::Action, "invoice".into(), None)], "{text}");
    }
}

#[test]
fn two_tasks_of_one_mail_are_told_apart_by_their_sentences() {
    let found = read("", "The roofer invoice was paid. The lease contract was cancelled.");
    let expected = [
        (SignalEffect::Mutation, "invoice".to_owned(), state("done")),
        (SignalEffect::Mutation, "lease".to_owned(), state("archived")),
    ];
    assert_eq!(found, expected);
}

#[test]
fn the_other_classes_are_found_where_their_words_stand() {
    let owner = json!({"class": "context_edit", "set": {"owner": "Maria Chen"}});
    assert_eq!(
        read("House", "The owner is now Maria Chen, call her."),
        [(SignalEffect::Mutation, "house".into(), Some(owner))]
    );
    let moved = json!({"class": "parent_matter", "set": {"parent_matter": "matter/office.md"}});
    let found = read("", "The roofer invoice belongs to Office.");
    assert_eq!(found, [(SignalEffect::Mutation, "invoice".into(), Some(moved))]);
    let org = json!({"class": "related", "add": {"related_orgs": "Miller Roofing Ltd"}});
    let found = read("", "We do the House together with Miller Roofing Ltd. from May.");
    assert_eq!(found, [(SignalEffect::Mutation, "house".into(), Some(org))]);
}

#[test]
fn what_it_does_not_understand_gives_no_signal() {
    for text in ["Lunch about the roofer invoice tomorrow", "Die Rechnung (roofer invoice) ist bezahlt.", ""] {
        assert_eq!(read("", text), [], "{text}");
    }
    assert_eq!(read("Re: roofer invoice paid", "> roofer invoice paid\nI see."), [], "what others wrote earlier");
}

#[test]
fn a_mail_full_of_facts_gives_five_and_those_that_change_something_first() {
    let asks: String = (0..9).map(|n| format!("Could you pay the roofer invoice {n}? ")).collect();
    let found = read("", &format!("{asks} The roofer invoice was paid."));
    assert_eq!((found.len(), found[0].0), (5, SignalEffect::Mutation));
}

#[test]
fn what_asks_without_words_spoils_no_answer() {
    let paid = (SignalEffect::Mutation, "invoice".to_owned(), state("done"));
    assert_eq!(read("Roofer invoice", "The roofer invoice was paid today.\n\n??")[0], paid);
    assert_eq!(read("", "The roofer invoice was paid today.\n\n\u{1f914}?")[0], paid);
    let long = format!("The roofer invoice was paid {}", "and paid ".repeat(30));
    assert_eq!(read("", &format!("{long}today.\n\n{long}yesterday."))[0], paid);
}

proptest! {
    #[test]
    fn every_answer_is_of_the_closed_form(
        subject in "(Roofer invoice|Re: Lease|\\PC{0,20})",
        parts in prop::collection::vec("(paid|done|please|not yet|roofer invoice|lease|owner is now Bob|belongs to|House|together with X Ltd|[.?!]{1,3}|\n{1,2}|\\PC{0,12}| {1,3})", 0..40),
    ) {
        read(&subject, &parts.join(" "));
    }
}

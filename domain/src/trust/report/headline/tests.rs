use super::*;
use crate::gates::mode::DecisionPolicy;
use crate::trust::case::TrustCase;
use crate::trust::outcome::ProposalFeedback::{self, Confirmed, Dismissed, Open};
use crate::trust::report::TrustReportPass;
use crate::trust::report::tests::{case, now};

fn headline(cases: impl IntoIterator<Item = TrustCase>) -> String {
    let mut pass = TrustReportPass::new(&DecisionPolicy::default(), now());
    cases.into_iter().for_each(|case| pass.add_case(&case));
    describe_headline(&pass.into_report(0.05))
}

/// One case an hour.
fn cases(source: &str, count: u64, feedback: ProposalFeedback) -> impl Iterator<Item = TrustCase> {
    (0..count).map(move |seq| case(seq, source, feedback))
}

fn in_class(class: MutationClass, cases: impl Iterator<Item = TrustCase>) -> impl Iterator<Item = TrustCase> {
    cases.map(move |case| TrustCase { class, ..case })
}

#[test]
fn what_is_ready_is_said_with_its_cases_and_everything_else_stays() {
    let wrong = || cases("mail", 2, Dismissed);
    assert_eq!(
        headline(cases("mail", 718, Confirmed).chain(wrong())),
        "After 30 days: let Steward change the state of tasks and matters on its own at high confidence for MAIL (718 \
         of 720 right). Keep confirming everything else."
    );
    let unsure = cases("mail", 1_000, Confirmed).map(|case| TrustCase { confidence: 0.7, ..case });
    assert_eq!(
        headline(unsure.chain(cases("noise", 9, Dismissed))),
        "After 42 days: let Steward change the state of tasks and matters on its own for MAIL (1,000 of 1,000 right). \
         Keep confirming everything else."
    );
}

#[test]
fn several_that_are_ready_are_named_and_the_rest_counted() {
    let two = cases("mail", 90, Confirmed).chain(cases("slack", 100, Confirmed));
    let both = ": let Steward change the state of tasks and matters on its own at high confidence for SLACK (100 of 100 \
                right) and MAIL (90 of 90 right). Keep confirming everything else.";
    assert!(headline(two).ends_with(both));
    let five = ["a", "b", "c", "d", "e"].into_iter().zip(80..);
    let five = five.flat_map(|(source, count)| cases(source, count, Confirmed));
    let named = " for E (84 of 84 right), D (83 of 83 right), C (82 of 82 right) and 2 more sources. Keep";
    let said = headline(five);
    assert!(said.contains(named), "{said}");
    let classes = cases("mail", 90, Confirmed)
        .chain(in_class(MutationClass::Related, cases("mail", 80, Confirmed)))
        .chain(in_class(MutationClass::ContextEdit, cases("mail", 5, Confirmed)));
    let said = headline(classes);
    let both = "let Steward change the state of tasks and matters and change related links on its own";
    assert!(said.contains(both) && said.contains("for MAIL (170 of 170 right)"), "{said}");
}

#[test]
fn what_is_not_ready_is_said_with_what_is_missing() {
    assert_eq!(headline([]), "Let Steward change nothing on its own: no change has been proposed yet.");
    assert_eq!(
        headline(cases("mail", 60, Confirmed).chain(cases("slack", 55, Confirmed))),
        "After 2 days: let Steward change nothing on its own yet. To change the state of tasks and matters for MAIL, 13 \
         more right cases are missing (60 of 60 right so far)."
    );
    assert!(headline(cases("mail", 72, Confirmed)).contains(" 1 more right case is missing ("));
    assert_eq!(
        headline(cases("mail", 5, Confirmed).chain(cases("slack", 3, Dismissed))),
        "After 1 day: let Steward change nothing on its own yet. 5 of 8 decided cases were right, and no source is near \
         what is needed."
    );
    assert_eq!(
        headline(cases("mail", 4, Open)),
        "After 1 day: let Steward change nothing on its own yet. Of 4 proposed changes none is decided: confirm, dismiss \
         or undo some."
    );
}

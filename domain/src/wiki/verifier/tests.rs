//! What a verifier is shown, and what of its answers counts.

use super::*;
use crate::steward::conversation::ToolCall;
use crate::wiki::path::PagePath;
use crate::wiki::quote::Anchor;
use serde_json::Value;

const SOURCE: &str = "It may rain. The lease of plot 12 ends on 31 March 2027, unless it is extended. Nobody pays.";

fn checks() -> Vec<ClaimCheck> {
    let anchor = Anchor::new("lease", "The lease of plot 12 ends on 31 March 2027");
    let head = "---\nschema: knowledge.entry/v1\nslug: plot-12\nkind: entity\ntitle: Plot 12\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\n";
    let before = format!("{head}# Plot 12\n\nOld.[^{}]\n\n{}\n", anchor.label, anchor.render());
    let after = before
        .replace("Old.", "## Lease\n\nIt ends in 2027.")
        .replace("# Plot 12\n\n## Lease\n\n", &format!("# Plot 12\n\nOld.[^{}]\n\n## Lease\n\n", anchor.label));
    let page = read_page("entities/plot-12.md", before.as_bytes()).page.unwrap();
    let path = PagePath::new("wiki/a", "entities/plot-12.md").unwrap();
    let files = [RunFile { path, before: Some(before.into_bytes()), after: Some(after.into_bytes()) }];
    let texts = BTreeMap::from([("lease".to_owned(), QuoteFinder::new(SOURCE))]);
    list_checks(&[page], &files, &texts)
}

fn turn(claims: Value) -> ModelTurn {
    let arguments = json!({"claims": claims}).as_object().cloned();
    ModelTurn { message: Value::Null, calls: vec![ToolCall { id: String::new(), name: REPORT.to_owned(), arguments }] }
}

#[test]
fn new_claims_are_shown_with_their_place_and_the_words_around_their_quotes() {
    let checks = checks();
    let [check] = checks.as_slice() else { panic!("{checks:?}") };
    assert_eq!(
        (check.statement.as_str(), check.heading.as_str(), check.page.as_str()),
        ("It ends in 2027.", "Lease", "Plot 12")
    );
    assert_eq!(check.context, [SOURCE]);
    let conversation = build_conversation(&checks, ToolForm::Native);
    assert_eq!(conversation.data["claims"][0]["id"], json!(check.id));
}

#[test]
fn a_claim_without_an_answer_or_with_two_is_not_checked() {
    let checks = checks();
    let id = &checks[0].id;
    let good = json!({"id": id, "support": "does_not_support", "reason": "It\nmay be extended."});
    let verdicts = read_report(&turn(json!([good])), &checks).unwrap();
    assert_eq!((verdicts[0].support, verdicts[0].reason.as_str()), (Support::DoesNotSupport, "It may be extended."));
    assert_eq!(list_findings(&checks, &verdicts)[0].fault, RunFault::Unsupported);
    let other = json!({"id": "x#c00000000", "support": "supports", "reason": ""});
    for claims in [json!([]), json!([good, good]), json!([other]), json!([{"id": id, "support": "yes"}]), json!(7)] {
        assert!(read_report(&turn(claims), &checks).is_err());
    }
    assert!(read_report(&ModelTurn { message: Value::Null, calls: Vec::new() }, &checks).is_err());
}

#[test]
fn only_what_was_checked_in_these_words_passes() {
    let checks = checks();
    let VerifierStep::Send { batch, .. } = find_next_step(&checks, &[], 20) else { panic!() };
    let answer = |support: &str| {
        let claims = json!([{"id": checks[0].id, "support": support, "reason": "No."}]);
        batch.read_answer(&turn(claims), ClerkMark::default()).unwrap()
    };
    assert_eq!(find_next_step(&checks, &[answer("supports")], 20), VerifierStep::Passed);
    let found = find_next_step(&checks, &[VerifierLine::Form, answer("partially_supports")], 20);
    assert!(matches!(found, VerifierStep::Found(findings) if findings.len() == 1));
    let reworded = vec![ClaimCheck { statement: "It ends in 2028.".to_owned(), ..checks[0].clone() }];
    assert!(matches!(find_next_step(&reworded, &[answer("supports")], 20), VerifierStep::Send { .. }));
    let failed = vec![VerifierLine::Failed { reason: String::new() }; 20];
    assert_eq!(find_next_step(&checks, &failed, 20), VerifierStep::Spent);
    assert!(matches!(find_next_step(&checks, &failed, 21), VerifierStep::Send { .. }));
    assert_eq!(find_next_step(&[], &[], 0), VerifierStep::Passed);
}

use super::*;
use crate::steward::clerk::ClerkMark;
use crate::steward::conversation::ToolCall;
use serde_json::Value;

fn claim(page: &str, number: u32, statement: &str) -> PairedClaim {
    PairedClaim {
        claim: format!("{page}#c0000000{number}"),
        page: page.to_owned(),
        statement: statement.to_owned(),
        quotes: vec![format!("{statement} {number}")],
        sources: vec!["2026-11-20-letter".to_owned()],
        file: format!("concepts/{page}.md"),
        topic: page.to_owned(),
        is_disputed: false,
    }
}

fn claims() -> Vec<PairedClaim> {
    vec![
        claim("plot-12", 1, "The lease of plot 12 ends on 31 March 2027."),
        claim("letter", 2, "The council extends the lease of plot 12 to 31 March 2029."),
        claim("water", 3, "The stopcock is closed in winter."),
        claim("plot-12", 4, "The rent is 40 pounds a year."),
        claim("copy", 5, "The stopcock is closed in winter."),
    ]
}

fn turn(pairs: &Value) -> ModelTurn {
    let arguments = json!({"pairs": pairs}).as_object().cloned();
    let call = ToolCall { id: String::new(), name: REPORT.to_owned(), arguments };
    ModelTurn { message: Value::Null, calls: vec![call] }
}

#[test]
fn only_claims_that_are_alike_are_paired_and_a_copy_or_a_dispute_is_not() {
    let alike = find_alike(&claims(), 2, |_| true, |_, _| true);
    let ids: Vec<&str> = alike.iter().map(|pair| pair.id.as_str()).collect();
    assert_eq!(ids, ["plot-12#c00000001 + letter#c00000002"]);
    assert_eq!(find_alike(&claims(), 2, |_| true, |one, other| one.topic == other.topic), []);
    let mut disputed = claims();
    disputed[1].is_disputed = true;
    assert_eq!(find_alike(&disputed, 2, |_| true, |_, _| true), []);
    assert_eq!(find_alike(&[], 2, |_| true, |_, _| true), []);
}

#[test]
fn each_topic_has_its_turn_in_a_sample() {
    let pairs = |topic: &'static str, count: u32| {
        (0..count).map(move |number| {
            let words = format!("Word{topic}{} stands here with {number} others.", number / 2);
            PairedClaim { topic: topic.to_owned(), ..claim(topic, number, &words) }
        })
    };
    let all: Vec<PairedClaim> = pairs("water", 40).chain(pairs("lease", 2)).collect();
    let sample = sample_pairs(all.clone(), 20, 4, "a");
    let count = |topic: &str| sample.iter().filter(|pair| pair.first.topic == topic).count();
    assert_eq!((sample.len(), count("lease")), (4, 1));
    assert_eq!(sample, sample_pairs(all.clone(), 20, 4, "a"));
    assert!(sample_pairs(all, 1, 50, "a").iter().all(|pair| pair.first.topic == sample[0].first.topic));
}

#[test]
fn a_pair_without_an_answer_or_with_two_is_asked_about_again() {
    let pairs = find_alike(&claims(), 1, |_| true, |_, _| true);
    let VerifierStep::Send { batch, conversation } = find_next_pairs(&pairs, &[], 5) else { panic!() };
    assert_eq!(conversation.data["pairs"][0]["second"]["sources"], json!(["2026-11-20-letter"]));
    assert!(conversation.data["pairs"][0]["first"].get("file").is_none());
    let good = json!({"id": pairs[0].id, "relation": "contradicts", "reason": "2027\nor 2029."});
    let line = batch.read_answer(&turn(&json!([good])), ClerkMark::default()).unwrap();
    assert_eq!(find_next_pairs(&pairs, std::slice::from_ref(&line), 5), VerifierStep::Passed);
    let [found] = list_contradictions(&pairs, &[line]).try_into().unwrap();
    assert_eq!((found.first.as_str(), found.reason.as_str()), ("plot-12#c00000001", "2027 or 2029."));
    for bad in [json!([]), json!([good, good]), json!([{"id": "x", "relation": "supports"}]), json!(7)] {
        assert!(batch.read_answer(&turn(&bad), ClerkMark::default()).is_err(), "{bad}");
    }
    assert_eq!(find_next_pairs(&pairs, &[VerifierLine::Failed { reason: String::new() }], 1), VerifierStep::Spent);
}

fn page(slug: &str, kind: &str, source: &str, statement: &str) -> WikiPage {
    let text = render_page(slug, kind, source, statement);
    read_page(&format!("{kind}s/{slug}.md"), text.as_bytes()).page.unwrap()
}

fn render_page(slug: &str, kind: &str, source: &str, statement: &str) -> String {
    let anchor = crate::wiki::quote::Anchor::new(source, &format!("The words for {statement}"));
    format!(
        "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: {kind}\ntitle: About {slug}\nupdated_at: \"2026-11-22T09:15:04Z\"\n---\n{statement}[^{}]\n\n{}\n",
        anchor.label,
        anchor.render()
    )
}

#[test]
fn the_new_claims_of_a_run_are_compared_with_pages_that_can_be_marked() {
    let old = "The lease of plot 12 ends on 31 March 2027.";
    let pages =
        [page("plot", "entity", "lease", old), page("asked", "qa", "lease", old), page("own", "entity", "letter", old)];
    let new = render_page("letter", "summary", "letter", "The lease of plot 12 ends on 31 March 2029.");
    let path = crate::wiki::path::PagePath::new("wiki/a", "summarys/letter.md").unwrap();
    let files = [RunFile { path, before: None, after: Some(new.into_bytes()) }];
    let pairs = pair_with_known(&pages, &files, "letter");
    let [pair] = pairs.as_slice() else { panic!("{pairs:?}") };
    assert!(pair.id.starts_with("letter#") && pair.second.claim.starts_with("plot#"), "{pair:?}");
    let verdict = PairVerdict {
        pair: pair.id.clone(),
        pair_sha256: pair.hash(),
        relation: PairRelation::Contradicts,
        reason: "2027 or 2029.".to_owned(),
    };
    let lines = [VerifierLine::Relations { relations: vec![verdict], clerk: ClerkMark::default() }];
    let [finding] = list_unmarked(&pairs, &lines, "letter").try_into().unwrap();
    assert!(
        finding.problem.starts_with("call `mark_disputed` for the claim c") && finding.file == "summarys/letter.md"
    );
    assert!(finding.problem.contains(" of plot, which letter#"), "{}", finding.problem);
    assert_eq!(pair_with_known(&pages, &[], "letter"), []);
}

#[test]
fn each_new_claim_has_its_best_partner_before_any_has_its_second() {
    let known = (0..6).map(|n| {
        claim(&format!("known-{n}"), n, &format!("The northern gate of the site is locked after {n} in winter."))
    });
    let mut all: Vec<PairedClaim> = known.collect();
    all.push(claim("new", 7, "The northern gate of the site is locked after noon in winter."));
    all.push(claim("rent", 8, "The rent of plot 12 is 40 pounds."));
    all.push(claim("other", 9, "The rent of plot 12 is 50 pounds."));
    let is_new = |claim: &PairedClaim| ["new", "rent"].contains(&claim.page.as_str());
    let pairs = find_alike(&all, 2, is_new, |_, other| !is_new(other));
    let second = |at: usize| pairs[at].first.page.clone() + " " + &pairs[at].second.page;
    assert_eq!(pairs.len(), 3, "{pairs:?}");
    assert!([second(0), second(1)].contains(&"rent other".to_owned()), "{pairs:?}");
}

use super::*;
use crate::steward::clerk::ClerkMark;
use crate::steward::conversation::ToolCall;

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
    let alike = find_alike(&claims(), 2, |_, _| true);
    let ids: Vec<&str> = alike.iter().map(|pair| pair.id.as_str()).collect();
    assert_eq!(ids, ["plot-12#c00000001 + letter#c00000002"]);
    assert_eq!(find_alike(&claims(), 2, |one, other| one.topic == other.topic), []);
    let mut disputed = claims();
    disputed[1].is_disputed = true;
    assert_eq!(find_alike(&disputed, 2, |_, _| true), []);
    assert_eq!(find_alike(&[], 2, |_, _| true), []);
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
    let pairs = find_alike(&claims(), 1, |_, _| true);
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

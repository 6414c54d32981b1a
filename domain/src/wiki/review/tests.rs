use super::batch::{MAX_PAGE_TEXT, REPORT};
use super::*;
use crate::steward::clerk::ClerkMark;
use crate::steward::conversation::{ModelTurn, ToolCall};
use crate::wiki::claims::read_claims;
use crate::wiki::page::read_page;
use crate::wiki::quote::Anchor;
use serde_json::{Value, json};

const AT: &str = "2026-11-22T09:15:04Z";

fn page(slug: &str, kind: &str, title: &str, statement: &str) -> WikiPage {
    let anchor = Anchor::new("letter", &format!("The words of {slug} for {statement}"));
    let text = format!(
        "---\nschema: knowledge.entry/v1\nslug: {slug}\nkind: {kind}\ntitle: {title}\nupdated_at: \"{AT}\"\n---\n# {title}\n\n{statement}[^{}]\n\n{}\n",
        anchor.label,
        anchor.render()
    );
    read_page(&format!("{kind}s/{slug}.md"), text.as_bytes()).page.unwrap()
}

fn pages() -> Vec<WikiPage> {
    vec![
        page("plot-12", "entity", "Plot 12", "The lease of plot 12 ends in 2027."),
        page("letter", "concept", "Letter", "The lease of plot 12 ends in 2029. See [[water]]."),
        page("water", "concept", "Water", "The stopcock is closed in winter."),
        page("old-check", "lint", "Old check", "Nothing."),
    ]
}

fn name(page: &WikiPage) -> String {
    read_claims(page.document.body(), &[]).claims[0].name(&page.slug)
}

fn turn(report: &Value) -> ModelTurn {
    let call = ToolCall { id: String::new(), name: REPORT.to_owned(), arguments: report.as_object().cloned() };
    ModelTurn { message: Value::Null, calls: vec![call] }
}

#[test]
fn those_that_were_never_read_come_first() {
    let reviewed = BTreeMap::from([("concepts/letter.md".to_owned(), AT.parse().unwrap())]);
    let files = ["concepts/letter.md", "entities/plot.md", "concepts/water.md"].map(str::to_owned).to_vec();
    assert_eq!(order_files(files, &reviewed), ["concepts/water.md", "entities/plot.md", "concepts/letter.md"]);
}

#[test]
fn pages_that_do_not_fit_one_call_are_divided() {
    let long = page("long", "concept", "Long", &"Words. ".repeat(5_000));
    let batches = divide_pages(&[&long, &long, &long, &pages()[0]], AT.parse().unwrap());
    assert_eq!(batches.iter().map(|batch| batch.pages.len()).collect::<Vec<_>>(), [3, 1]);
    assert!(batches[0].pages.iter().all(|page| page.text.chars().count() == MAX_PAGE_TEXT));
}

#[test]
fn what_the_pages_do_not_have_is_left_out_and_a_contradiction_is_asked_about_again() {
    let pages = pages();
    let shown: Vec<&WikiPage> = pages[..3].iter().collect();
    let case = ReviewCase::new(&shown, AT.parse().unwrap());
    let VerifierStep::Send { batch, conversation } = case.find_next_step(&[], 9) else { panic!() };
    assert!(conversation.data["pages"].as_str().unwrap().contains("### entitys/plot-12.md\n# Plot 12"));
    let (plot, letter) = (name(&pages[0]), name(&pages[1]));
    let report = json!({
        "contradictions": [{"first": letter, "second": plot}, {"first": plot, "second": letter}, {"first": plot, "second": "x#c00000000"}],
        "stale": [{"claim": plot, "reason": "It is\nover."}, {"claim": "invented", "reason": ""}],
        "missing_pages": [{"title": "The council", "reason": "Two pages name it."}, {"title": "plot 12", "reason": ""}],
        "missing_links": [{"from": "water", "to": "plot-12"}, {"from": "letter", "to": "water"}, {"from": "water", "to": "gone"}],
        "gaps": [{"gap": "Who pays?", "search": "rent plot 12"}],
    });
    let line = batch.read_answer(&turn(&report), ClerkMark::default()).unwrap();
    let list = |names: &[&str]| {
        case.list_findings(std::slice::from_ref(&line), &names.iter().map(|name| (*name).to_owned()).collect())
    };
    assert_eq!((list(&[]).len(), list(&["the council"]).len()), (4, 3), "the council has a page that was not shown");
    let VerifierStep::Send { batch: VerifierBatch::Pairs(pairs), .. } =
        case.find_next_step(std::slice::from_ref(&line), 9)
    else {
        panic!()
    };
    assert_eq!(pairs.len(), 1, "the same pair twice is one question");
    let answer = |relation: &str| {
        let arguments = json!({"pairs": [{"id": pairs[0].id, "relation": relation, "reason": "2027 or 2029."}]});
        let call =
            ToolCall { id: String::new(), name: "report_pairs".to_owned(), arguments: arguments.as_object().cloned() };
        let turn = ModelTurn { message: Value::Null, calls: vec![call] };
        VerifierBatch::Pairs(pairs.clone()).read_answer(&turn, ClerkMark::default()).unwrap()
    };
    let confirmed = [line.clone(), answer("contradicts")];
    assert_eq!(case.find_next_step(&confirmed, 9), VerifierStep::Passed);
    let (found, dropped) = case.list_contradictions(&confirmed);
    assert_eq!((found.len(), dropped), (1, 0));
    let (found, dropped) = case.list_contradictions(&[line, answer("independent")]);
    assert_eq!((found.len(), dropped), (0, 1));
    for bad in [json!({"gaps": 7}), json!({"stale": [{"claim": 1}]})] {
        assert!(batch_of(&case).read_answer(&turn(&bad)).is_err(), "{bad}");
    }
}

fn batch_of(case: &ReviewCase) -> &ReviewBatch {
    &case.batches[0]
}

fn review(pages: &[WikiPage]) -> WikiReview {
    let contradiction = Contradiction {
        first: name(&pages[0]),
        second: name(&pages[1]),
        files: ["entitys/plot-12.md".to_owned(), "concepts/letter.md".to_owned()],
        reason: "2027 <b>or</b> [[2029]].".to_owned(),
    };
    WikiReview {
        id: "0a1b2c3d".to_owned(),
        wiki: "allotment".to_owned(),
        by: "ann".to_owned(),
        at: AT.parse().unwrap(),
        model: "openai/reader".to_owned(),
        pages: vec!["entitys/plot-12.md".to_owned(), "concepts/letter.md".to_owned()],
        contradictions: vec![contradiction],
        dropped: 1,
        findings: vec![
            ReviewFinding::StaleClaim { claim: "gone#c00000000".to_owned(), reason: "Run v1.2.3".to_owned() },
            ReviewFinding::MissingPage { title: "Water".to_owned(), reason: "It has one by now.".to_owned() },
            ReviewFinding::MissingLink { from: "water".to_owned(), to: "plot-12".to_owned() },
            ReviewFinding::Gap { gap: "Who pays?".to_owned(), search: "rent".to_owned() },
            ReviewFinding::Gap { gap: "See https://evil.example".to_owned(), search: "x".to_owned() },
        ],
        tokens: TokenUsage::default(),
    }
}

#[test]
fn the_page_shows_claims_with_their_marks_and_the_words_of_the_model_as_plain_text() {
    let pages = pages();
    let rendered = render_review(&review(&pages), &pages, Some(&|anchor: &Anchor| anchor.quote.contains("2027")));
    assert_eq!(rendered.file, "lint/lint-20261122-0915.md");
    let read = read_page(&rendered.file, rendered.text.as_bytes());
    let page = read.page.unwrap();
    assert!(read.findings.is_empty(), "{:?}", read.findings);
    let claims = read_claims(page.document.body(), &[]);
    let statements: Vec<&str> = claims.claims.iter().map(|claim| claim.statement.as_str()).collect();
    assert_eq!(statements, ["The lease of plot 12 ends in 2027."], "{}", rendered.text);
    let body = page.document.body();
    for shown in [
        "openai/reader read 2 of 3 pages.",
        "1 did not hold then.",
        "2027 \\<b\\>or\\</b\\> \\[\\[2029\\]\\].",
        "[[letter|Letter]]: letter\\#",
        "- gone\\#c00000000\n",
        "- [[water|Water]] does not link [[plot-12|Plot 12]]",
        "- **Gap** Who pays? **Search** rent",
    ] {
        assert!(body.contains(shown), "{shown} in {body}");
    }
    assert!(rendered.text.contains("2 pages read: 1 contradiction, 3 other findings."), "{}", rendered.text);
    assert!(!body.contains("evil") && !body.contains("1.2.3") && !body.contains("Missing pages"), "{body}");
}

#[test]
fn a_page_that_the_rules_would_refuse_shows_names_alone_and_a_long_one_is_cut() {
    let mut pages = pages();
    pages[2] = page("water", "concept", "Release v1.2 `rm`", "The stopcock is closed in winter.");
    let mut review = review(&pages);
    let rendered = render_review(&review, &pages, Some(&|_: &Anchor| true));
    assert!(rendered.text.contains("- [[water]] does not link [[plot-12|Plot 12]]"), "{}", rendered.text);
    let rendered = render_review(&review, &pages, None);
    assert!(rendered.text.contains("- [[plot-12]]: plot-12\\#") && !rendered.text.contains("[^"), "{}", rendered.text);
    review.findings = (0..800)
        .map(|n| ReviewFinding::Gap { gap: format!("Who pays for number {n}?"), search: "payment ".repeat(10) })
        .collect();
    let rendered = render_review(&review, &pages, None);
    assert!(
        rendered.text.len() < 40_000 && rendered.text.contains("The page has no room for "),
        "{}",
        rendered.text.len()
    );
}

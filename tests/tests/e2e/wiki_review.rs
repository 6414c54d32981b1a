//! A verifier compares claims on the real binary: a review becomes a page, a contradiction with a page that a run does not touch goes
//! back to its writer, and pairs of claims are measured.

use crate::wiki_runs::Desk;
use crate::wiki_writer::{answer, call, checked_desk, report, write};
use serde_json::{Value, json};
use std::time::Duration;
use steward_tests::clerk::{Asked, Clerk, Says, gate};
use steward_tests::steward::Steward;
use steward_tests::wait;

/// A document about a plot, in five sections.
fn document(year: u32, rent: u32, height: u32) -> String {
    format!(
        "# Papers of {year}\n\n## Lease\n\nThe lease of Plot 12 ends on 31 March {year}.\n\n## Rent\n\nThe rent of Plot 12 is {rent} \
         pounds a year.\n\n## Fence\n\nThe fence around the field is green and {height} centimetres high.\n\n## Gate\n\nThe gate of the \
         site is locked at {height} minutes past nine.\n\n## Hens\n\nAt most {rent} hens may live on the site.\n"
    )
}

/// Whether two statements speak of the years 2027 and 2029.
fn differ(pair: &Value) -> bool {
    let both = format!("{} {}", pair["first"]["statement"], pair["second"]["statement"]);
    both.contains("2027") && both.contains("2029")
}

/// Answers about pairs: those with two years contradict each other.
fn relate(asked: &Asked) -> Says {
    let relation = |pair: &Value| {
        let relation = if differ(pair) { "contradicts" } else { "supports" };
        json!({"id": pair["id"], "relation": relation, "reason": "One says 2027, the other 2029."})
    };
    let pairs: Vec<Value> = asked.question["pairs"].as_array().unwrap().iter().map(relation).collect();
    Says::Calls(vec![call("report_pairs", json!({"pairs": pairs}))])
}

/// Finds every claim supported, and answers about pairs.
fn check(asked: &Asked) -> Says {
    if asked.question.get("pairs").is_some() { relate(asked) } else { report(asked, "nothing of this") }
}

/// The name of the first claim with these words on the pages that are shown.
fn find_claim(pages: &str, words: &str) -> String {
    let block = pages.split("### ").find(|block| block.contains(words)).unwrap();
    let slug = block.lines().next().unwrap().rsplit('/').next().unwrap().trim_end_matches(".md");
    let (_, rest) = block.split_once(words).unwrap();
    let label = rest.split_once("[^").unwrap().1.split_once(']').unwrap().0;
    format!("{slug}#{label}")
}

/// Reads pages: two claims contradict each other, a third pair does not, and one page is missing.
fn review(asked: &Asked) -> Says {
    let Some(pages) = asked.question["pages"].as_str() else { return relate(asked) };
    let empty = json!({"contradictions": [], "stale": [], "missing_pages": [], "missing_links": [], "gaps": []});
    if !pages.contains("31 March 2029.") {
        return Says::Calls(vec![call("report_review", empty)]);
    }
    let [old, new, rent] = ["31 March 2027.", "31 March 2029.", "40 pounds a year."].map(|it| find_claim(pages, it));
    Says::Calls(vec![call(
        "report_review",
        json!({
            "contradictions": [{"first": old, "second": new}, {"first": rent, "second": new}, {"first": old, "second": "invented#c00000000"}],
            "stale": [], "missing_links": [],
            "missing_pages": [{"title": "The council", "reason": "It is <b>named</b> [[everywhere]]."}],
            "gaps": [{"gap": "Who owns the site?", "search": "owner of the site"}],
        }),
    )])
}

/// A wiki with two documents that contradict each other, ingested by fixed rules.
async fn desk() -> Desk {
    let desk = Desk::new().await;
    let worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    desk.ingest(&desk.write("2026-11-20-lease.md", document(2027, 40, 12))).await;
    desk.ingest(&desk.write("2026-11-21-letter.md", document(2029, 50, 13))).await;
    worker.stop().await;
    desk
}

fn with_verifier(desk: &Desk, clerk: &Clerk) -> Steward {
    desk.steward
        .with("STEWARD_WIKI_VERIFIER", "anthropic")
        .with("STEWARD_WIKI_VERIFIER_BASE_URL", &clerk.address)
        .with("STEWARD_WIKI_VERIFIER_MODEL", "checker")
}

#[tokio::test]
async fn a_review_becomes_a_page_that_is_logged_and_goes_back() {
    let desk = desk().await;
    let clerk = Clerk::start(review).await;
    let steward = with_verifier(&desk, &clerk);
    let _worker = desk.world.worker_with(&steward).await;
    let before = desk.read("_index.md");
    let said = steward.run(&["wiki", "review", "allotment", "--json"]).await.expect(0).json();
    assert_eq!(said["filed"]["kind"], "committed", "{said:#}");
    let review = &said["review"];
    assert_eq!((review["contradictions"].as_array().unwrap().len(), &review["dropped"]), (1, &json!(1)), "{said:#}");
    let file = said["filed"]["pages"][0].as_str().unwrap();
    let page = desk.read(file);
    for shown in
        ["anthropic/checker read", "## Contradictions", "31 March 2027.[^c", "31 March 2029.[^c", "## Missing pages"]
    {
        assert!(page.contains(shown), "{shown} in {page}");
    }
    assert!(page.contains("**Gap** Who owns the site? **Search** owner of the site"), "{page}");
    assert!(!page.contains("<b>") && !page.contains("[[everywhere]]") && !page.contains("invented"), "{page}");
    assert!(desk.read("_log.md").contains("] lint | health check\n"), "{}", desk.read("_log.md"));
    desk.is_sound().await;
    // The pages of a review are read last the next time, and the report is not one of them.
    let pages: Vec<&str> = review["pages"].as_array().unwrap().iter().map(|page| page.as_str().unwrap()).collect();
    let again = steward.run(&["wiki", "review", "allotment", "--pages", "2", "--json"]).await.expect(0).json();
    assert_eq!(again["filed"]["kind"], "committed", "{again:#}");
    let second: Vec<&str> =
        again["review"]["pages"].as_array().unwrap().iter().map(|page| page.as_str().unwrap()).collect();
    assert_eq!(second, pages[..2], "all were read at one moment, so the first come again");
    for said in [&again, &said] {
        let run = said["filed"]["run"].as_str().unwrap().rsplit('-').next().unwrap();
        desk.wiki(&["runs", "revert", run]).await.expect(0);
    }
    assert!(!desk.has(file));
    assert_eq!(desk.read("_index.md"), before);
    desk.is_sound().await;
}

#[tokio::test]
async fn a_deep_lint_reports_and_keeps_no_page_and_nothing_is_read_without_a_verifier() {
    let desk = desk().await;
    let clerk = Clerk::start(review).await;
    let steward = with_verifier(&desk, &clerk);
    let worker = desk.world.worker_with(&steward).await;
    let said = steward.run(&["wiki", "lint", "allotment", "--deep"]).await.expect(0).out;
    assert!(said.contains("warn contradiction: ") && said.contains("One says 2027, the other 2029."), "{said}");
    assert!(said.contains("info missing_page: there is no page about The council"), "{said}");
    assert!(!desk.has("lint"));
    worker.stop().await;
    let _worker = desk.world.worker().await;
    for command in
        [&["review", "allotment"][..], &["lint", "allotment", "--deep"], &["eval", "run", "allotment", "--pairs"]]
    {
        let said = desk.wiki(command).await.expect(3);
        assert!(said.to_string().contains("no verifier is set"), "{said}");
        // The lint is made all the same.
        assert_eq!(said.out.contains("files checked"), command[0] == "lint", "{said}");
    }
}

#[tokio::test]
async fn notes_that_are_no_pages_are_passed_over_and_a_stop_holds_a_review() {
    let desk = desk().await;
    for n in 0..40 {
        std::fs::write(desk.world.vault.path().join(format!("wiki/allotment/a-note-{n}.md")), "A note.\n").unwrap();
    }
    let (open, closed) = gate();
    let clerk = Clerk::start(move |asked| Says::Once(closed.clone(), Box::new(review(asked)))).await;
    let steward = with_verifier(&desk, &clerk);
    let _worker = desk.world.worker_with(&steward).await;
    let arguments = ["wiki", "review", "allotment", "--json"];
    let command = steward.run(&arguments);
    let stop = async {
        wait::until("a page that is read", async || (!clerk.asked().is_empty()).then_some(())).await;
        steward.run(&["stop"]).await.expect(0);
        open.send(true).unwrap();
        wait::a_moment(Duration::from_secs(2)).await;
        assert!(!desk.has("lint"), "under a stop nothing is committed");
        steward.run(&["resume"]).await.expect(0);
    };
    let (said, ()) = tokio::join!(command, stop);
    let said = said.expect(0).json();
    assert_eq!(said["filed"]["kind"], "committed", "{said:#}");
    let pages = said["review"]["pages"].as_array().unwrap();
    assert!(pages.len() > 5 && pages.iter().all(|page| !page.as_str().unwrap().contains("a-note")), "{said:#}");
}

#[tokio::test]
async fn a_wiki_without_pages_is_not_read() {
    let desk = Desk::new().await;
    let clerk = Clerk::start(review).await;
    let steward = with_verifier(&desk, &clerk);
    let _worker = desk.world.worker_with(&steward).await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    let said = steward.run(&["wiki", "review", "allotment"]).await.expect(0).out;
    assert_eq!(said.trim(), "Wiki is empty — nothing to lint.");
    assert_eq!(clerk.asked().len(), 0);
}

#[tokio::test]
async fn pairs_of_claims_are_measured_and_a_broken_consistency_holds_runs() {
    let desk = desk().await;
    // Whatever is alike contradicts itself for this one.
    let clerk = Clerk::start(|asked| {
        let pairs = asked.question["pairs"].as_array().unwrap();
        let all = pairs.iter().map(|pair| json!({"id": pair["id"], "relation": "contradicts", "reason": "No."}));
        Says::Calls(vec![call("report_pairs", json!({"pairs": all.collect::<Vec<_>>()}))])
    })
    .await;
    let steward = with_verifier(&desk, &clerk);
    let _worker = desk.world.worker_with(&steward).await;
    let measured = steward.run(&["wiki", "eval", "run", "allotment", "--pairs", "--json"]).await.expect(0).json();
    assert_eq!((&measured["pairs"], &measured["consistent"]), (&json!(10), &json!(0)), "{measured:#}");
    let shown = steward.run(&["wiki", "eval", "report", "allotment"]).await.expect(0).out;
    assert!(shown.contains("0 of 10 pairs that are alike do not contradict each other"), "{shown}");
    assert!(shown.contains("summaries/summary-2026-11-20-lease.md"), "{shown}");
    // Ten pairs say enough: what a person asks for waits, too.
    let note = desk.write("2026-11-22-note.md", "# Note\n\nThe shed has a new roof since May.\n");
    let said = desk.wiki(&["ingest", "allotment", &note, "--json"]).await.expect(0).json();
    assert_eq!(said[0]["ingested"]["kind"], "pending", "{said:#}");
    assert!(desk.wiki(&["runs", "list"]).await.expect(0).out.contains("consistency"));
    let ack = ["wiki", "eval", "ack", "allotment", "consistency", "--reason", "the letter is newer"];
    desk.steward.run_in_terminal(&ack, "y\n").await.expect(0);
    let shed = desk.write("2026-11-22-shed.md", "# Shed\n\nThe shed is locked at night.\n");
    desk.ingest(&shed).await;
    desk.is_sound().await;
}

/// A writer that says 2029 in its summary, and marks the older claim only if a finding names it.
fn write_letter(asked: &Asked, obeys: bool) -> Says {
    let content =
        "The lease of Plot 12 ends on 31 March 2029.[^1]\n\n[^1]: \"The lease of Plot 12 ends on 31 March 2029.\"\n";
    let summary = write("summary", "Papers of 2029", content);
    match asked.question.get("findings") {
        None => answer(&[vec![summary]], asked),
        Some(findings) if obeys => {
            let findings = findings.to_string();
            assert!(findings.contains("unmarked_contradiction: call `mark_disputed` for the claim c"), "{findings}");
            let mark = |slug: &str| {
                let (before, _) = findings.split_once(&format!(" of {slug}, which "))?;
                let label = before.rsplit_once("the claim ")?.1;
                let (statement, quote) = ("It ends on 31 March 2029.", "The lease of Plot 12 ends on 31 March 2029.");
                Some(call(
                    "mark_disputed",
                    json!({"slug": slug, "claim": label, "statement": statement, "quote": quote}),
                ))
            };
            let calls: Vec<_> = ["summary-2026-11-20-lease", "lease", "plot-12"].into_iter().filter_map(mark).collect();
            assert!(!calls.is_empty(), "{findings}");
            answer(&[calls], asked)
        }
        Some(_) => answer(&[], asked),
    }
}

#[tokio::test]
async fn a_contradiction_with_a_page_that_the_run_does_not_touch_goes_back_to_the_writer() {
    for obeys in [true, false] {
        let writer = Clerk::start(move |asked| write_letter(asked, obeys)).await;
        let verifier = Clerk::start(check).await;
        let desk = checked_desk(&writer, &verifier).await;
        let rules = desk.world.worker_with(&desk.steward.with("STEWARD_WIKI_CLERK", "rules")).await;
        desk.ingest(&desk.write("2026-11-20-lease.md", document(2027, 40, 12))).await;
        rules.stop().await;
        let _worker = desk.world.worker_with(&desk.steward).await;
        let letter = desk.write("2026-11-21-letter.md", document(2029, 50, 13));
        let said = desk.wiki(&["ingest", "allotment", &letter, "--json"]).await.json();
        let done = &said[0]["ingested"];
        if obeys {
            assert_eq!(done["kind"], "committed", "{done:#}");
            let page = desk.read("summaries/summary-2026-11-20-lease.md");
            assert!(page.contains("::: disputed") && page.contains("**Updated "), "{page}");
            // Without the first document one side is left, and nothing is in dispute any more.
            let runs = desk.wiki(&["runs", "list", "--json"]).await.expect(0).json();
            let mut ingests = runs.as_array().unwrap().iter().filter(|run| run["run_type"] == "ingest");
            let first = ingests.next().unwrap()["run"].as_str().unwrap();
            desk.wiki(&["runs", "revert", first]).await.expect(0);
            let page = desk.read("summaries/summary-2026-11-20-lease.md");
            assert!(page.contains("**Updated ") && page.contains("It ends on 31 March 2029.[^c"), "{page}");
            for gone in [":::", "Contradiction", "contradicts", "31 March 2027"] {
                assert!(!page.contains(gone), "{gone} in {page}");
            }
            desk.wiki(&["lint", "allotment"]).await.expect(0);
        } else {
            assert_eq!(done["kind"], "refused", "{done:#}");
            let message = done["message"].as_str().unwrap();
            assert!(message.contains("a statement contradicts another page, and no dispute marks it"), "{message}");
            assert!(!desk.has("summaries/summary-2026-11-21-letter.md"));
            // A person may know better than the verifier.
            let run = done["run"].as_str().unwrap().rsplit('-').next().unwrap();
            let arguments = ["wiki", "runs", "override", run, "--reason", "both are right"];
            desk.steward.run_in_terminal(&arguments, "y\n").await.expect(0);
            assert!(desk.has("summaries/summary-2026-11-21-letter.md"));
        }
        desk.is_sound().await;
    }
}

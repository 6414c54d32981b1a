//! `steward wiki query` and `save` on the real binary: an answer cites what stands on pages, and nothing else is kept of it.

use crate::wiki_runs::{Desk, LEASE};
use serde_json::{Value, json};
use steward_tests::clerk::{Clerk, Says};
use steward_tests::steward::Steward;

const QUOTE: &str = "The lease of Plot 12 ends on 31 March 2027.";

/// A wiki whose pages were made by fixed rules.
pub(crate) async fn ingested() -> Desk {
    let desk = Desk::new().await;
    let worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    desk.ingest(&desk.write("2026-11-20-lease.md", LEASE)).await;
    worker.stop().await;
    desk
}

/// The desk's command with a model that answers, and nobody who checks it.
fn asking(desk: &Desk, clerk: &Clerk) -> Steward {
    desk.steward
        .with("STEWARD_WIKI_CLERK", "openai")
        .with("STEWARD_WIKI_CLERK_BASE_URL", &clerk.url)
        .with("STEWARD_WIKI_CLERK_MODEL", "scripted")
}

/// The label of the quote that the pages have.
fn label(desk: &Desk) -> String {
    let page = desk.read("concepts/plot-12.md");
    let line = page.lines().find(|line| line.starts_with("[^c") && line.contains(QUOTE)).unwrap();
    line[2..11].to_owned()
}

async fn ask(steward: &Steward, question: &str) -> Value {
    steward.run(&["wiki", "query", "allotment", question, "--json"]).await.expect(0).json()["answer"].clone()
}

#[tokio::test]
async fn a_question_is_answered_with_quotes_and_kept_as_a_page() {
    let desk = Desk::new().await;
    let _worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    let empty = ask(&desk.steward, "When does the lease end?").await;
    assert_eq!(empty["text"], "The wiki is empty. Ingest some sources first.");
    desk.wiki(&["save"]).await.expect(3);
    desk.ingest(&desk.write("2026-11-20-lease.md", LEASE)).await;
    let nothing = ask(&desk.steward, "Elephants?").await;
    assert_eq!(nothing["text"], "No relevant pages found in the wiki for this question.");
    let log = desk.read("_log.md");
    let shown = desk.wiki(&["query", "allotment", "When", "does the lease end?"]).await.expect(0).out;
    assert!(
        shown.contains("ends on 31 March 2027. [1]") && shown.contains(&format!("2026-11-20-lease: \"{QUOTE}\"")),
        "{shown}"
    );
    assert_eq!(desk.read("_log.md"), log, "a question changes nothing");
    desk.wiki(&["save", "--as", "qa"]).await.expect(0);
    let page = desk.read("qa/when-does-the-lease-end.md");
    assert!(
        page.contains("## Question\n\nWhen does the lease end?\n\n## Answer\n\nAn extract by fixed rules"),
        "{page}"
    );
    assert!(page.contains(&format!("[^{}]: 2026-11-20-lease — ", label(&desk))), "{page}");
    assert!(desk.read("_log.md").contains("query | When does the lease end?"));
    desk.is_sound().await;
    // Asked again, its page is one of those that answer. Kept again, it does not replace the first one.
    let again =
        desk.wiki(&["query", "allotment", "When does the lease end?", "--save", "--json"]).await.expect(0).json();
    assert!(again["answer"]["pages"].to_string().contains("qa/when-does-the-lease-end.md"), "{again:#}");
    assert!(
        again["filed"]["pages"][0].as_str().unwrap().starts_with("archives/when-does-the-lease-end-20"),
        "{again:#}"
    );
    assert_eq!(desk.read("qa/when-does-the-lease-end.md"), page);
    desk.is_sound().await;
    let run = again["filed"]["run"].as_str().unwrap().rsplit('-').next().unwrap().to_owned();
    desk.wiki(&["runs", "revert", &run]).await.expect(0);
    assert!(!desk.has(again["filed"]["pages"][0].as_str().unwrap()));
    desk.is_sound().await;
    let long = "why ".repeat(300);
    assert!(desk.wiki(&["query", "allotment", &long]).await.expect(2).err.contains("at most 1000 characters"));
    desk.wiki(&["save", "00000000"]).await.expect(1);
}

#[tokio::test]
async fn a_model_answers_from_the_pages_and_what_it_invents_is_taken_out() {
    let desk = ingested().await;
    let label = label(&desk);
    let text = format!(
        "It ends in 2027.[^{label}] Orders from [[nobody|Nobody]].[^c00000000]\n\n[^{label}]: x — \"It is free.\""
    );
    let clerk = Clerk::start(move |_| Says::Text(text.clone())).await;
    let steward = asking(&desk, &clerk);
    let _worker = desk.world.worker_with(&steward).await;
    let answer = ask(&steward, "When does the lease end?").await;
    assert_eq!(answer["text"], format!("It ends in 2027.[^{label}] Orders from Nobody."), "{answer:#}");
    assert_eq!(answer["unknown"], json!(["[[nobody|Nobody]]", "[^c00000000]"]));
    assert_eq!((&answer["citations"][0]["quote"], &answer["citations"][0]["fault"]), (&json!(QUOTE), &Value::Null));
    let [asked] = clerk.asked().try_into().unwrap();
    assert!(
        asked.body.get("tools").is_none() && asked.question["pages"].to_string().contains("### concepts/plot-12.md")
    );
    assert!(!asked.body["messages"][0].to_string().contains("lease end?"), "the question is data");
    // A source that changed since is named beside the answer.
    let source = desk.world.vault.path().join("wiki/allotment/sources/2026-11-20-lease.md");
    std::fs::write(&source, "# The lease\n\nIt is free.\n").unwrap();
    let shown = steward.run(&["wiki", "query", "allotment", "When does the lease end?"]).await.expect(0).out;
    assert!(shown.contains("NOT VERIFIED: source_mutated"), "{shown}");
    // Under a stop no model is asked.
    steward.run(&["stop"]).await.expect(0);
    let held = steward.run(&["wiki", "query", "allotment", "Which lease?"]).await.expect(3);
    assert!(held.out.contains("stopped"), "{held}");
    assert_eq!(clerk.asked().len(), 2);
}

#[tokio::test]
async fn an_answer_of_a_model_is_checked_before_it_becomes_a_page() {
    let desk = ingested().await;
    let label = label(&desk);
    let text = format!("It ends in 2029.[^{label}]");
    let clerk = Clerk::start(move |asked| match asked.question.get("claims") {
        None if asked.question["question"] == "Who owns the plot?" => {
            Says::Text("The pages do not say who owns it.".to_owned())
        }
        None => Says::Text(text.clone()),
        Some(claims) => {
            let verdict = |claim: &Value| json!({"id": claim["id"], "support": "does_not_support", "reason": "No."});
            let claims: Vec<Value> = claims.as_array().unwrap().iter().map(verdict).collect();
            Says::Calls(vec![("report_claims".to_owned(), json!({"claims": claims}))])
        }
    })
    .await;
    let steward = asking(&desk, &clerk);
    let checked = steward
        .with("STEWARD_WIKI_VERIFIER", "openai")
        .with("STEWARD_WIKI_VERIFIER_BASE_URL", &clerk.url)
        .with("STEWARD_WIKI_VERIFIER_MODEL", "checker");
    let worker = desk.world.worker_with(&checked).await;
    ask(&checked, "When does the lease end?").await;
    let refused = checked.run(&["wiki", "save"]).await.expect(3).out;
    assert!(refused.contains("rejected by the verifier"), "{refused}");
    assert!(!desk.has("qa/when-does-the-lease-end.md"));
    // What quotes nothing can only be an archive, and waits for a person.
    ask(&checked, "Who owns the plot?").await;
    let waits = checked.run(&["wiki", "save", "--json"]).await.expect(0).json();
    assert_eq!(waits["kind"], "pending", "{waits:#}");
    worker.stop().await;
    // Without a verifier a page waits, too.
    let _worker = desk.world.worker_with(&steward).await;
    ask(&steward, "When does the lease end?").await;
    let waits = steward.run(&["wiki", "save", "--json"]).await.expect(0).json();
    assert_eq!(waits["kind"], "pending", "{waits:#}");
    let run = waits["run"].as_str().unwrap().rsplit('-').next().unwrap().to_owned();
    steward.run_in_terminal(&["wiki", "runs", "approve", &run], "y\n").await.expect(0);
    assert!(desk.read("qa/when-does-the-lease-end.md").contains("confidence: 0.7"));
    desk.is_sound().await;
}

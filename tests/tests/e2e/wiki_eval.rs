//! `steward wiki eval` on the real binary: which claims their quotes carry, what a verifier finds of planted faults, and what it
//! refuses that stands.

use crate::wiki_runs::{Desk, LEASE};
use serde_json::{Value, json};
use steward_tests::clerk::{Asked, Clerk, Says};
use steward_tests::steward::Steward;

/// A verifier that knows these words as faults, and nothing else.
fn report(asked: &Asked, faults: &[&str]) -> Says {
    let verdict = |claim: &Value| {
        let statement = claim["statement"].as_str().unwrap();
        let is_found = faults.iter().any(|fault| statement.contains(fault));
        let support = if is_found { "does_not_support" } else { "supports" };
        json!({"id": claim["id"], "support": support, "reason": ""})
    };
    let claims: Vec<Value> = asked.question["claims"].as_array().unwrap().iter().map(verdict).collect();
    Says::Calls(vec![("report_claims".to_owned(), json!({"claims": claims}))])
}

fn with_verifier(desk: &Desk, clerk: &Clerk) -> Steward {
    desk.steward
        .with("STEWARD_WIKI_VERIFIER", "anthropic")
        .with("STEWARD_WIKI_VERIFIER_BASE_URL", &clerk.address)
        .with("STEWARD_WIKI_VERIFIER_MODEL", "checker")
}

fn find<'r>(report: &'r Value, fault: &str) -> &'r Value {
    report["faults"].as_array().unwrap().iter().find(|score| score["fault"] == fault).unwrap()
}

#[tokio::test]
async fn a_verifier_is_measured_by_planted_faults_and_nothing_changes() {
    let desk = Desk::new().await;
    let worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    desk.wiki(&["eval", "run", "allotment", "--planted"]).await.expect(3);
    desk.ingest(&desk.write("2026-11-20-lease.md", LEASE)).await;
    worker.stop().await;
    let log = desk.read("_log.md");
    // It answers garbage once, and is asked again.
    let clerk = Clerk::start(|asked| match asked.number {
        1 => Says::Text("All is well.".to_owned()),
        _ => report(asked, &["reset --force", "According to the mayor"]),
    })
    .await;
    let steward = with_verifier(&desk, &clerk);
    let _worker = desk.world.worker_with(&steward).await;
    let measured = steward.run(&["wiki", "eval", "run", "allotment", "--planted", "--json"]).await.expect(0).json();
    assert_eq!(measured["model"], "anthropic/checker", "{measured:#}");
    assert_eq!((&measured["refused"], measured["clean"].as_u64().unwrap() > 2), (&json!(0), true), "{measured:#}");
    for found in ["invented_command", "invented_speaker"] {
        assert_eq!(find(&measured, found)["found"], find(&measured, found)["planted"], "{measured:#}");
    }
    assert_eq!(find(&measured, "wrong_source")["found"], json!(0), "{measured:#}");
    let asked: usize =
        clerk.asked().iter().skip(1).map(|asked| asked.question["claims"].as_array().unwrap().len()).sum();
    let planted: u64 =
        measured["faults"].as_array().unwrap().iter().map(|score| score["planted"].as_u64().unwrap()).sum();
    assert_eq!(asked as u64, planted + measured["clean"].as_u64().unwrap(), "each case is asked about once");
    // The questions do not say which are copies.
    let ids = clerk.asked()[1].question["claims"].to_string();
    assert!(ids.contains("claim-1") && !ids.contains("plot-12#"), "{ids}");
    let shown = desk.wiki(&["eval", "report", "allotment"]).await.expect(0).out;
    assert!(shown.contains("invented command") && shown.contains("refused 0 of"), "{shown}");
    assert_eq!(desk.read("_log.md"), log);
    desk.is_sound().await;
}

#[tokio::test]
async fn a_sample_of_claims_names_those_that_their_quotes_do_not_carry() {
    let desk = Desk::new().await;
    let worker = desk.world.worker().await;
    desk.wiki(&["init", "allotment"]).await.expect(0);
    desk.ingest(&desk.write("2026-11-20-lease.md", LEASE)).await;
    worker.stop().await;
    // The quote of one claim is another one than the source holds.
    desk.edit("concepts/plot-12.md", |page| {
        page.replacen("\"The lease of Plot 12 ends", "\"The rent of Plot 12 ends", 1)
    });
    let clerk = Clerk::start(|asked| report(asked, &["by the river"])).await;
    let steward = with_verifier(&desk, &clerk);
    let _worker = desk.world.worker_with(&steward).await;
    let measured = steward.run(&["wiki", "eval", "run", "allotment", "--json"]).await.expect(0).json();
    let refused = measured["refused"].as_array().unwrap();
    let claims = measured["claims"].as_u64().unwrap();
    assert_eq!(measured["supported"].as_u64().unwrap() + refused.len() as u64, claims, "{measured:#}");
    let reasons: Vec<&str> = refused.iter().map(|it| it["reason"].as_str().unwrap()).collect();
    assert!(reasons.contains(&"a quote does not stand in its source"), "{measured:#}");
    assert!(reasons.iter().any(|reason| reason.starts_with("does_not_support")), "{measured:#}");
    let asked: usize = clerk.asked().iter().map(|asked| asked.question["claims"].as_array().unwrap().len()).sum();
    assert_eq!(asked as u64 + 1, claims, "the verifier is not asked about a quote that does not stand");
    let shown = desk.wiki(&["eval", "report", "allotment"]).await.expect(0).out;
    assert!(
        shown.contains(&format!("of {claims} claims")) && shown.contains("unknown"),
        "fewer than ten claims say nothing: {shown}"
    );
    assert!(shown.contains("in concepts/plot-12.md: a quote does not stand"), "{shown}");
}

//! What a wiki said earlier, what its log says, and a wiki that has lost its manifest, on the real binary.

use crate::wiki_query::ingested;
use crate::wiki_runs::Desk;
use chrono::Utc;
use serde_json::Value;

const ROOF: &str = "# The roof\n\nThe shed of Plot 12 has a new roof since May.\n";

/// The name of the newest run.
async fn find_newest(desk: &Desk) -> String {
    let runs = desk.wiki(&["runs", "list", "--json"]).await.expect(0).json();
    runs.as_array().unwrap().last().unwrap()["run"].as_str().unwrap().to_owned()
}

fn list_statements(report: &Value) -> Vec<&str> {
    report["claims"].as_array().unwrap().iter().map(|claim| claim["statement"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_wiki_says_what_it_said_before_a_run_was_taken_back_and_before_a_person_edited() {
    let desk = ingested().await;
    let _worker = desk.world.worker().await;
    let why = async |arguments: &[&str]| {
        desk.wiki(&[&["why", "allotment", "plot-12", "--json"], arguments].concat()).await.json()
    };
    let first = Utc::now().to_rfc3339();
    assert_eq!(list_statements(&why(&[]).await).len(), 2);
    // Nothing was known before, and no run has claimed anything since.
    assert_eq!(why(&["--until", "2020-01-01"]).await["match_type"], "none");
    assert_eq!(list_statements(&why(&["--since", &first]).await), [""; 0]);
    desk.ingest(&desk.write("2026-11-21-roof.md", ROOF)).await;
    let second = Utc::now().to_rfc3339();
    assert_eq!(list_statements(&why(&["--since", &first]).await), ["The shed of Plot 12 has a new roof since May."]);
    let all = why(&[]).await;
    assert_eq!(list_statements(&all).len(), 3);
    desk.wiki(&["runs", "revert", &find_newest(&desk).await]).await.expect(0);
    desk.edit("concepts/plot-12.md", |text| text.replace("by the river", "by the road"));
    assert!(!list_statements(&why(&[]).await).contains(&"The shed of Plot 12 has a new roof since May."));
    // As it was then: the claim stands, and nothing tells of what came later.
    let then = why(&["--until", &second]).await;
    assert_eq!(then, all);
    assert_eq!(list_statements(&why(&["--until", &first]).await).len(), 2);
    let wrong = desk.wiki(&["why", "allotment", "plot-12", "--until", "yesterday"]).await.expect(2);
    assert!(wrong.err.contains("2026-11-22T09:15:00Z"), "{wrong}");
    let folder = desk.world.vault.path().join("elsewhere");
    std::fs::create_dir(&folder).unwrap();
    let elsewhere = folder.display().to_string();
    desk.wiki(&["why", &elsewhere, "plot-12", "--until", "2026-11-22"]).await.expect(2);
}

#[tokio::test]
async fn the_log_is_searched_by_all_words_the_newest_entry_first() {
    let desk = ingested().await;
    let search = async |arguments: &[&str]| -> Vec<String> {
        let found = desk.wiki(&[&["search", "allotment"], arguments, &["--log", "--json"]].concat()).await.expect(0);
        let found = found.json();
        let entries = found.as_array().unwrap().iter();
        entries
            .map(|entry| format!("{} {}", entry["log_type"].as_str().unwrap(), entry["subject"].as_str().unwrap()))
            .collect()
    };
    assert_eq!(search(&["lease"]).await, ["ingest The lease", "manual Added The lease"]);
    assert_eq!(search(&["lease", "rules"]).await, ["ingest The lease"]);
    assert_eq!(search(&["lease", "council"]).await, [""; 0]);
    assert_eq!(search(&["lease", "--after", "2100-01-01"]).await, [""; 0]);
    desk.wiki(&["search", "allotment", "lease", "--after", "2026-11-22"]).await.expect(2);
}

#[tokio::test]
async fn a_wiki_that_lost_its_manifest_goes_on_by_the_accepted_text_and_says_where_that_is() {
    let desk = ingested().await;
    let _worker = desk.world.worker().await;
    std::fs::remove_file(desk.world.vault.path().join("wiki/allotment/KNOWLEDGE.md")).unwrap();
    let shown = desk.wiki(&["status", "--json"]).await.expect(0).json();
    assert_eq!((&shown[0]["wiki"], shown[0]["errors"].as_u64()), (&Value::from("allotment"), Some(1)), "{shown:#}");
    let found = desk.wiki(&["lint", "allotment"]).await.expect(4).out;
    assert!(
        found.contains("KNOWLEDGE.md: error schema_missing") && found.contains("event/steward-wiki-manifest-"),
        "{found}"
    );
    desk.ingest(&desk.write("2026-11-21-roof.md", ROOF)).await;
    assert!(
        desk.read("concepts/plot-12.md").contains("new roof")
            && desk.read("_index.md").starts_with("# Index: Allotment")
    );
    assert!(desk.wiki(&["init", "allotment"]).await.expect(0).out.contains("restored as it was accepted last"));
    assert!(desk.read("KNOWLEDGE.md").contains("name: \"allotment\""));
    desk.wiki(&["lint", "allotment"]).await.expect(0);
    desk.wiki(&["init", "allotment"]).await.expect(3);
    // A folder that nobody ever accepted is no wiki without its manifest.
    desk.world.vault.write("wiki/notes/_log.md", "# Log\n");
    let shown = desk.wiki(&["status", "--json"]).await.expect(0).json();
    assert_eq!(shown.as_array().unwrap().len(), 1, "{shown:#}");
}

#[tokio::test]
async fn a_manifest_that_wants_signed_sources_takes_none() {
    let desk = ingested().await;
    let _worker = desk.world.worker().await;
    desk.edit("KNOWLEDGE.md", |text| text.replace("signing: optional", "signing: required"));
    let folder = desk.world.vault.path().join("wiki/allotment").display().to_string();
    desk.steward.run_in_terminal(&["wiki", "validate", &folder, "--accept"], "y\n").await.expect(0);
    let refused = desk.wiki(&["ingest", "allotment", &desk.write("2026-11-21-roof.md", ROOF)]).await.expect(3);
    assert!(refused.out.contains("signatures are not checked"), "{refused}");
}

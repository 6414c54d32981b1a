//! A run that an assistant has staged and submitted, without a verifier: it waits for a person.
//!
//! It is staged here as the process of an assistant stages it.

use crate::scenes::wiki_ingest;
use chrono::Utc;
use serde_json::json;
use steward_domain::wiki::run::WikiRunType;
use steward_domain::wiki::writer::draft::PageChange;
use steward_tests::world::World;
use steward_vault::files::root::VaultRoot;
use steward_vault::wiki::guardian::{GuardianSession, NewGuardianRun, Submission};
use steward_vault::wiki::state::{find_wiki_folder, read_wiki};

pub(crate) async fn submit_run(world: World) -> (World, String) {
    let (world, _) = wiki_ingest(world, false).await;
    let root = VaultRoot::open(world.vault.path()).unwrap();
    let folder = find_wiki_folder(&root, "allotment").unwrap();
    let wiki = read_wiki(&root, "allotment", &folder).unwrap();
    let at = Utc::now();
    let new = NewGuardianRun {
        wiki: "allotment",
        folder: &folder,
        run_type: WikiRunType::Manual,
        by: "ann via mcp",
        at,
        source: None,
    };
    let mut session = GuardianSession::begin(&root, wiki, &new.describe("1")).unwrap();
    let content = "---\ntitle: The end\nkind: concept\n---\nIt ends.[^1]\n\n[^1]: lease — \"The lease of plot 12 ends in March.\"\n";
    let file = "concepts/the-end.md".to_owned();
    session.change(&PageChange::Create { file: file.clone(), content: content.to_owned() }, None).unwrap();
    session.submit(&Submission { subject: "The end", touched: &[file], keeps: &[] }, at).unwrap();
    let run_id = session.run().meta.run.to_string();
    drop(session);
    let _worker = world.worker().await;
    let input = json!({"wiki": "allotment", "run": run_id, "submission": 1});
    let run = world.begin_as("wiki-assistant", "AssistantRunWorkflow", &input).await;
    assert_eq!(run.result().await["kind"], "pending");
    (world, run.id().to_owned())
}

//! Wikis over JSON and gRPC: both show the same, a program rejects and takes back, and it never approves.

use serde_json::{Value, json};
use steward_proto::v1;
use steward_proto::v1::wikis_service_client::WikisServiceClient;
use steward_tests::rpc::{self, refusal};
use steward_tests::world::World;
use steward_tests::{api, steward};
use tonic::Code;

const LEASE: &str = "# The lease\n\nThe lease of Plot 12 ends on 31 March 2027. Plot 12 lies by the river. Who pays for \
    Plot 12?\n\n## Water\n\nA stopcock is a valve that shuts off the water.\n";
const WIKIS: &str = "/api/v1/steward/wikis";

/// A served wiki into which a document was ingested. Returns the name of the run.
async fn served(world: &World) -> (steward::Running, api::Api, String) {
    let (up, api) = api::up(world).await;
    world.run(&["wiki", "init", "allotment"]).await.expect(0);
    let document = world.folder.join("2026-11-20-lease.md");
    std::fs::write(&document, LEASE).unwrap();
    let done = world.json(&["wiki", "ingest", "allotment", document.to_str().unwrap()]).await;
    (up, api, done[0]["ingested"]["run"].as_str().unwrap().to_owned())
}

fn has(world: &World, file: &str) -> bool {
    world.vault.path().join("wiki/allotment").join(file).exists()
}

#[tokio::test]
async fn json_and_grpc_show_the_same_and_take_a_run_back() {
    let world = World::new().await;
    let (_up, api, run) = served(&world).await;
    let (reader, actor) = (api.token(&world, "read").await, api.token(&world, "act").await);
    let mut wikis = WikisServiceClient::new(rpc::caller(&world, &api, "act").await);

    let listed = reader.get(WIKIS).await.expect(200);
    let row = &listed["wikis"][0];
    assert_eq!(
        (&row["wiki"], &row["sources"], &row["waiting"]),
        (&json!("allotment"), &json!(1), &json!(0)),
        "{listed}"
    );
    let same = wikis.list_wikis(v1::ListWikisRequest {}).await.unwrap().into_inner().wikis;
    assert_eq!((same[0].name.as_str(), json!(same[0].pages)), ("allotment", row["pages"].clone()));

    let page = reader.get(&format!("{WIKIS}/allotment/pages/plot-12")).await.expect(200);
    let claim = &page["claims"][0];
    assert_eq!(claim["quotes"][0]["verified_against_source"], true, "{page:#}");
    assert_eq!((&claim["history"][0]["run"], &claim["history"][0]["change"]), (&json!(run), &json!("asserted")));
    let asked = v1::GetWikiPageRequest { wiki: "allotment".into(), page: "concepts/plot-12.md".into() };
    let same = wikis.get_wiki_page(asked).await.unwrap().into_inner().page.unwrap();
    assert_eq!((json!(same.claims[0].claim), json!(same.text)), (claim["claim"].clone(), page["text"].clone()));
    let health = reader.get(&format!("{WIKIS}/allotment/health")).await.expect(200);
    assert_eq!((&health["errors"], &health["warnings"]), (&json!(0), &json!(0)), "{health}");

    let shown = reader.get(&format!("{WIKIS}/allotment/runs/{run}")).await.expect(200);
    assert!(shown["files"].to_string().contains("concepts/plot-12.md") && shown["state"] == "committed", "{shown:#}");
    let short = run.rsplit('-').next().unwrap();
    let revert = format!("{WIKIS}/allotment/runs/{short}/revert");
    assert_eq!(reader.post(&revert, &Value::Null).await.status, 403);
    let done = actor.post(&revert, &Value::Null).await.expect(200);
    assert!(done["record"].as_str().unwrap().starts_with("event/steward-wiki-") && !has(&world, "concepts/plot-12.md"));
    assert_eq!(actor.post(&revert, &Value::Null).await.status, 409);
    let runs = reader.get(&format!("{WIKIS}/allotment/runs")).await.expect(200);
    let states: Vec<&str> = runs["runs"].as_array().unwrap().iter().map(|run| run["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["committed", "taken_back"], "{runs:#}");

    // Page by page, newest first.
    let mut asked = v1::ListWikiRunsRequest { wiki: "allotment".into(), page_size: 1, ..Default::default() };
    let mut types = Vec::new();
    loop {
        let page = wikis.list_wiki_runs(asked.clone()).await.unwrap().into_inner();
        types.extend(page.runs.into_iter().map(|run| run.run_type));
        asked.page_token = page.next_page_token;
        if asked.page_token.is_empty() {
            break;
        }
    }
    assert_eq!(types, ["rollback", "ingest"]);
    for nowhere in ["none/runs", "allotment/runs/00000000", "allotment/pages/none", "none/health"] {
        assert_eq!(reader.get(&format!("{WIKIS}/{nowhere}")).await.status, 404, "{nowhere}");
    }
    let asked = v1::GetWikiHealthRequest { wiki: "none".into() };
    assert_eq!(refusal(wikis.get_wiki_health(asked).await).0, Code::NotFound);
    world.verify_chain().await;
}

#[tokio::test]
async fn a_program_rejects_what_waits_and_never_approves() {
    let world = World::new().await;
    let (_up, api, _) = served(&world).await;
    let letter = world.folder.join("letter.txt");
    std::fs::write(&letter, "Letter\n\nPlot 12 keeps its water. Plot 12 is dry in winter.\n").unwrap();
    let waits = world.json(&["wiki", "ingest", "allotment", letter.to_str().unwrap(), "--draft"]).await;
    let run = waits[0]["ingested"]["run"].as_str().unwrap().to_owned();
    let actor = api.token(&world, "operate").await;
    let shown = actor.get(&format!("{WIKIS}/allotment/runs/{run}")).await.expect(200);
    assert_eq!((&shown["waits"], &shown["writer"]), (&json!(true), &json!("rules")), "{shown:#}");
    assert_eq!(actor.post(&format!("{WIKIS}/allotment/runs/{run}/approve"), &Value::Null).await.status, 404);
    // The form of the page wants a person, too.
    let short = run.rsplit('-').next().unwrap();
    let fields = [("kind", "approve"), ("value", shown["staged"].as_str().unwrap())];
    assert_eq!(actor.form(&format!("/wikis/allotment/runs/{short}"), &fields).await.status, 403);
    let mut wikis = WikisServiceClient::new(rpc::caller(&world, &api, "act").await);
    let revert = v1::RevertWikiRunRequest { run: run.clone(), keep_edited: false };
    assert_eq!(refusal(wikis.revert_wiki_run(revert).await).0, Code::NotFound, "it was not committed");
    let reject = v1::RejectWikiRunRequest { run: run.clone() };
    wikis.reject_wiki_run(reject.clone()).await.unwrap();
    assert_eq!(refusal(wikis.reject_wiki_run(reject).await).0, Code::FailedPrecondition);
    let shown = actor.get(&format!("{WIKIS}/allotment/runs/{run}")).await.expect(200);
    assert_eq!((&shown["waits"], &shown["state"]), (&json!(false), &json!("rejected")), "{shown:#}");
    world.verify_chain().await;
}

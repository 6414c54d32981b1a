use crate::http::serving::{ListenerRecord, ServerEndpoint};
use crate::mcp::error::ToolErrorCode;
use crate::mcp::tests::TestWiki;
use crate::views::wiki::fill_index;
use serde_json::{Value, json};
use std::net::SocketAddr;
use steward_domain::wiki::path::PagePath;
use steward_domain::wiki::plan::RunFile;
use steward_domain::wiki::run::{RunId, WikiRunType};
use steward_domain::wiki::verify::{RulesVerdict, Verdict};
use steward_domain::wiki::writer::budget::RunLimits;
use steward_vault::wiki::staged::{ASSISTANT_WRITER, RunMeta, RunState, StagedPlan, StagedRun, StagedRuns};

const RUN: &str = "r-20261122T091504Z-3f9a1c22";
const OTHER: &str = "r-20261123T091504Z-3f9a1c22";
const PAGE: &str = "wiki/concepts/lease.md";

fn begin(wiki: &TestWiki, run: &str) -> StagedRun {
    let run: RunId = run.parse().unwrap();
    let meta = RunMeta {
        began: run.began().unwrap(),
        run,
        wiki: "allotment".into(),
        folder: "wiki/allotment".into(),
        run_type: WikiRunType::Manual,
        by: "ann via mcp".into(),
        source: None,
        answer: None,
        review: None,
        writer: ASSISTANT_WRITER.into(),
        limits: RunLimits::default(),
        unattended: false,
    };
    StagedRuns::new(wiki.vault.root()).begin(&meta).unwrap()
}

/// A run with a staged page.
fn stage(wiki: &TestWiki) -> StagedRun {
    let run = begin(wiki, RUN);
    let path = PagePath::new("wiki/allotment", "concepts/lease.md").unwrap();
    run.stage(&[RunFile { path, before: None, after: Some(b"It ends.\n".to_vec()) }], StagedPlan::default()).unwrap();
    run
}

/// A run that waits for a person.
fn leave_waiting(wiki: &TestWiki) {
    let run = stage(wiki);
    let verdict = RulesVerdict { verdict: Verdict::Commit, findings: Vec::new(), claims: Vec::new() };
    run.write_verdict(&verdict).unwrap();
    run.leave_to_person(run.meta.began, "it waits for a person").unwrap();
}

fn ask(wiki: &TestWiki, arguments: Value) -> Value {
    wiki.call("history", arguments).unwrap().structured_content.unwrap()
}

#[test]
fn runs_are_found_by_a_page_and_by_their_verdict() {
    let wiki = TestWiki::accepted("allotment");
    leave_waiting(&wiki);
    wiki.append("_log.md", "## [2026-11-20T08:00:00Z] manual | By hand\n- touched: [[lease]]\n\n");
    wiki.write("concepts/lease.md", &TestWiki::render_page("lease", "concept", "", "My own note.\n"));
    let touched = ask(&wiki, json!({"path": format!("/{PAGE}")}));
    let entries = touched["entries"].as_array().unwrap();
    let titles: Vec<&Value> = entries.iter().map(|entry| &entry["title"]).collect();
    assert_eq!((entries.len(), titles.last()), (2, Some(&&json!("By hand"))), "{touched:#}");
    assert!(entries.iter().all(|entry| entry["touched"] == json!([PAGE])), "{touched:#}");
    let run = &entries[0];
    assert_eq!((&run["verdict"], &run["by"]), (&json!("commit"), &json!("ann via mcp")), "{run:#}");
    assert_eq!(run["action"].as_str().map(str::len), Some(16), "{run:#}");
    assert_eq!(ask(&wiki, json!({"path": "wiki/concepts/pump.md"}))["entries"], json!([]));
    assert_eq!(ask(&wiki, json!({"verdict": "commit"}))["entries"].as_array().unwrap().len(), 1);
    assert_eq!(ask(&wiki, json!({"verdict": "reject"}))["entries"], json!([]));
    for (arguments, code) in [
        (json!({"verdict": "perhaps"}), ToolErrorCode::BadArguments),
        (json!({"path": "../lease.md"}), ToolErrorCode::NotFound),
    ] {
        assert_eq!(wiki.call("history", arguments.clone()).unwrap_err().code, code, "{arguments}");
    }
}

#[test]
fn two_runs_that_end_alike_are_named_by_their_whole_ids() {
    let wiki = TestWiki::accepted("allotment");
    leave_waiting(&wiki);
    let short = json!({"run_id": "3f9a1c22"});
    assert_eq!(ask(&wiki, short.clone())["run"]["run_id"], RUN);
    drop(begin(&wiki, OTHER));
    let refused = wiki.call("history", short).unwrap_err();
    assert_eq!(refused.code, ToolErrorCode::RunAmbiguous);
    assert!(refused.to_string().contains(RUN) && refused.to_string().contains(OTHER), "{refused}");
    let shown = ask(&wiki, json!({"run_id": RUN}));
    assert_eq!((&shown["run"]["run_id"], &shown["run"]["loops"]), (&json!(RUN), &json!(0)), "{shown:#}");
    assert_eq!(shown["entries"].as_array().unwrap().len(), 1, "{shown:#}");
    let unknown = wiki.call("history", json!({"run_id": "00000000"})).unwrap_err();
    assert_eq!(unknown.code, ToolErrorCode::RunUnknown);
}

#[test]
fn a_run_that_waits_has_the_address_of_its_card_while_a_dashboard_runs() {
    let wiki = TestWiki::accepted("allotment");
    leave_waiting(&wiki);
    let find_card = || ask(&wiki, json!({"run_id": RUN}))["run"].get("card").cloned();
    assert_eq!(find_card(), None, "nobody serves a dashboard");
    tokio::runtime::Runtime::new().unwrap().block_on(fill_index(&wiki.state(), wiki.vault.root()));
    let endpoint = ServerEndpoint { listen: SocketAddr::from(([127, 0, 0, 1], 8420)), encrypted: false, host: None };
    let _listens = ListenerRecord { pid: 7, endpoint }.write_locked(&wiki.state()).unwrap();
    assert_eq!(find_card(), Some(json!("http://127.0.0.1:8420/wikis/allotment/runs/3f9a1c22")));
}

#[test]
fn what_a_run_that_is_open_again_has_staged_is_shown_to_nobody_else() {
    let wiki = TestWiki::accepted("allotment");
    let run = stage(&wiki);
    let list_files = || ask(&wiki, json!({"run_id": RUN}))["run"]["files"].clone();
    run.set_status(RunState::Pending, run.meta.began, "something was found").unwrap();
    assert_eq!(list_files(), json!([]));
    run.leave_to_person(run.meta.began, "it waits for a person").unwrap();
    assert_eq!(list_files()[0]["path"], PAGE);
}

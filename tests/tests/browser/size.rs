//! A large house: 5,000 matters, 1,000 tasks, 10,000 actions. Lists come in pages, and no page is large.
//!
//! How long each takes is printed (`--nocapture`); a slow machine is no fault.

use chrono::{TimeDelta, Utc};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Instant;
use steward_domain::audit::{ActionKind, AuditDraft, Cited, WorkflowRef};
use steward_domain::clerk::{ClerkMark, Judgement};
use steward_domain::mode::Mode;
use steward_domain::mutation::MutationClass;
use steward_domain::path::RecordPath;
use steward_domain::plan::{ActionId, Landing};
use steward_domain::record::State;
use steward_tests::api::{self, Api};
use steward_tests::past::Made;
use steward_tests::vault::Vault;
use steward_tests::world::World;

const MATTERS: usize = 5_000;
const TASKS: usize = 1_000;
const ACTIONS: usize = 10_000;
/// Largest page, in bytes.
const MOST_BYTES: usize = 1_000_000;
/// Most rows and cards of one page.
const MOST_ROWS: usize = 100;
const TIMES: usize = 5;
/// What takes longer than that is asked for once, in milliseconds.
const LONG: f64 = 1_000.0;

fn fill(vault: &Vault) {
    for n in 0..MATTERS {
        let text = format!("---\ntype: matter\nname: Repair of roof {n}\nstate: open\n---\nWhat it is.\n");
        vault.write(&format!("matter/m{n}.md"), text);
    }
    for n in 0..TASKS {
        let parent = format!("parent_matter: \"[[matter/m{}]]\"", 5 * n);
        let text = format!("---\ntype: task\nname: Pay the roofer {n}\nstate: open\n{parent}\n---\n- [ ] do it\n");
        vault.write(&format!("task/t{n}.md"), text);
    }
    let mut made = Made::new(vault);
    for n in 0..ACTIONS {
        made.record(draft(n));
    }
}

fn draft(n: usize) -> AuditDraft {
    let landing = [Landing::Live, Landing::Pending, Landing::Shadow][n % 3];
    let gates = ["caller", "mode", "confidence", "discretion", "ceiling", "rate_guard"];
    let gates = gates.map(|gate| json!({"gate": gate, "open": gate != "mode", "found": "0.94", "needed": ">= 0.60"}));
    let source = format!("mail:sender-{}@vendor.example", n % 300);
    let at = Utc::now() - TimeDelta::seconds(i64::try_from(20 * (ACTIONS - n)).unwrap());
    AuditDraft {
        kind: ActionKind::Action,
        id: ActionId::derive(&["large", &n.to_string()]),
        timestamp: at,
        target: RecordPath::parse(&format!("task/t{}.md", n % TASKS)).unwrap(),
        class: Some(MutationClass::StateChange),
        decision: Judgement::LikelyDone,
        confidence: 0.94,
        mode: Mode::Live,
        landing,
        gates: serde_json::from_value(json!(gates)).unwrap(),
        prior_state: Some("open".into()),
        proposed_state: Some(State::Done),
        proposal: None,
        confirmable: true,
        pending_confirmation: landing == Landing::Pending,
        evidence: vec![Cited {
            reference: RecordPath::parse(&format!("signal/s{n}.md")).unwrap(),
            source: source.clone(),
            note: format!("Payment received in full for invoice {n}."),
            target_confidence: 0.94,
            effect_confidence: 0.98,
            speaks: true,
        }],
        source_contributions: BTreeMap::from([(source, 0.98)]),
        reasoning: "One signal speaks of it.".into(),
        clerk: Some(ClerkMark::default()),
        workflow: WorkflowRef { id: "made-up".into(), run_id: "ef14e149444bd851".into() },
        answers: None,
        trust: None,
    }
}

/// Median of some, in milliseconds, and the page itself.
async fn measured(api: &Api, path: &str) -> (f64, String) {
    let mut times = Vec::new();
    let mut body = String::new();
    while times.len() < TIMES && times.iter().all(|time| *time < LONG) {
        let begun = Instant::now();
        let answer = api.get(path).await;
        times.push(begun.elapsed().as_secs_f64() * 1_000.0);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        body = answer.body;
    }
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], body)
}

#[tokio::test]
async fn lists_of_a_large_house_come_in_pages() {
    let world = World::new().await;
    let mut told = String::new();
    let begun = Instant::now();
    fill(&world.vault);
    told.push_str(&format!("written in {:.1?}\n", begun.elapsed()));
    let begun = Instant::now();
    world.run(&["index", "rebuild"]).await.expect(0);
    told.push_str(&format!("read in {:.1?}\n", begun.elapsed()));
    let mut serve = world.steward.with("STEWARD_LISTEN", "127.0.0.1:0").start(&["serve"]);
    serve.says("Ctrl-C ends it").await;
    let link = api::link(&serve);
    let api = Api::new(link.split("/login").next().unwrap()).token(&world, "read").await;
    let id = ActionId::derive(&["large", "7000"]);
    let lists = [
        ("/", true),
        ("/matters", true),
        ("/matters?q=roof+49", true),
        ("/search?q=roofer", true),
        ("/search?kind=action", true),
        ("/search?kind=action&landing=waits", true),
        ("/records/matter/m500.md", false),
        ("/records/task/t100.md", false),
        ("/fleet", false),
        ("/charts", false),
        ("/api/v1/steward/recent-actions?limit=100", false),
    ];
    let whole = [(format!("/actions/{id}"), false), (format!("/actions/{id}/undo"), false)];
    for (path, is_list) in lists.map(|(path, is_list)| (path.to_owned(), is_list)).into_iter().chain(whole) {
        let (time, body) = measured(&api, &path).await;
        let rows = body.matches("<article").count() + body.matches("<tr>").count() + body.matches("<li><span").count();
        told.push_str(&format!("{time:7.1} ms {:8} bytes {rows:4} rows  {path}\n", body.len()));
        assert!(body.len() < MOST_BYTES, "{path}: {} bytes", body.len());
        assert!(rows <= MOST_ROWS, "{path}: {rows} rows");
        assert!(!is_list || rows >= 10, "{path}: {rows} rows; is it a list?");
    }
    let _ = writeln!(std::io::stderr(), "{told}");
}

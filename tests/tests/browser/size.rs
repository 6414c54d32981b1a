//! A large vault: 5,000 matters, 1,000 tasks and 300 of one matter, 10,000 actions and a batch of 150 resolutions.
//! Lists come in pages, no page is large, and no list displaces another.
//!
//! The times are printed (`--nocapture`) and never fail the test. `vault/src/index/tests/plans.rs` checks that no list
//! reads a whole table.

use chrono::{TimeDelta, Utc};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Instant;
use steward_domain::action::audit::{ActionKind, AuditDraft, AuditResolution, CitedSignal, WorkflowRef};
use steward_domain::action::mutation::MutationClass;
use steward_domain::action::plan::{ActionId, Disposition};
use steward_domain::gates::mode::Mode;
use steward_domain::record::entity::RecordState;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::steward::clerk::{ClerkMark, Judgement};
use steward_tests::api::{self, Api};
use steward_tests::past::Made;
use steward_tests::vault::Vault;
use steward_tests::world::World;

const MATTERS: usize = 5_000;
const TASKS: usize = 1_000;
const ACTIONS: usize = 10_000;
/// Tasks of one matter.
const MANY: usize = 300;
/// Resolutions of one batch.
const TOGETHER: usize = 150;
/// The largest page, in bytes.
const MOST_BYTES: usize = 1_000_000;
/// The most rows and cards of one page.
const MOST_ROWS: usize = 100;
const TIMES: usize = 5;
/// A page that takes longer than this, in milliseconds, is requested only once.
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
    for n in 0..MANY {
        let text = "---\ntype: task\nname: One of many\nparent_matter: \"[[matter/m7]]\"\n---\n";
        vault.write(&format!("task/many{n:03}.md"), text);
    }
    let mut made = Made::new(vault);
    for n in 0..ACTIONS {
        made.record(draft(n));
    }
    // An old proposal is confirmed just now.
    let at = Utc::now() - TimeDelta::seconds(10);
    for n in 0..TOGETHER {
        let proposed = draft(3 * n + 1);
        let together = Some(ActionId::derive(&["one click"]));
        let answer = AuditResolution {
            action_id: proposed.id.clone(),
            decided_at: at,
            by: "ann".into(),
            reason: None,
            edited: false,
            batch_id: together,
            done: false,
            reopened: None,
            resolved_by: Default::default(),
        };
        made.record(AuditDraft {
            kind: ActionKind::Confirmed,
            id: ActionId::derive(&["confirmed", &n.to_string()]),
            timestamp: at,
            disposition: Disposition::Live,
            pending_confirmation: false,
            resolution: Some(answer),
            ..proposed
        });
    }
}

fn draft(n: usize) -> AuditDraft {
    let disposition = [Disposition::Live, Disposition::Pending, Disposition::Shadow][n % 3];
    let gates = ["caller", "mode", "confidence", "discretion", "ceiling", "rate_guard"];
    let gates = gates.map(|gate| json!({"gate": gate, "open": gate != "mode", "found": "0.94", "needed": ">= 0.60"}));
    let source = format!("mail:sender-{}@vendor.example", n % 300);
    let at = Utc::now() - TimeDelta::seconds(i64::try_from(20 * (ACTIONS - n)).unwrap());
    AuditDraft {
        kind: ActionKind::Action,
        id: ActionId::derive(&["large", &n.to_string()]),
        timestamp: at,
        target: RecordPath::parse(&format!("task/t{}.md", n % TASKS)).unwrap(),
        target_kind: RecordKind::Task,
        named_after: None,
        class: Some(MutationClass::StateChange),
        decision: Judgement::LikelyDone,
        confidence: 0.94,
        mode: Mode::Live,
        disposition,
        gates: serde_json::from_value(json!(gates)).unwrap(),
        prior_state: Some("open".into()),
        proposed_state: Some(RecordState::Done),
        proposal: None,
        confirmable: true,
        pending_confirmation: disposition == Disposition::Pending,
        evidence: vec![CitedSignal {
            reference: RecordPath::parse(&format!("signal/s{n}.md")).unwrap(),
            source: source.clone(),
            note: format!("Payment received in full for invoice {n}."),
            target_confidence: 0.94,
            effect_confidence: 0.98,
            supports: true,
        }],
        source_contributions: BTreeMap::from([(source, 0.98)]),
        reasoning: "One signal speaks of it.".into(),
        clerk: Some(ClerkMark::default()),
        workflow: WorkflowRef { id: "made-up".into(), run_id: "ef14e149444bd851".into() },
        resolution: None,
        trust: None,
        wiki: None,
    }
}

/// The median of some requests in milliseconds, and the page itself.
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
        ("/search?kind=action&disposition=waits", true),
        ("/records/matter/m500.md", false),
        ("/records/task/t100.md", false),
        ("/trust", false),
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
    one_click_keeps_no_other_card_away(&api).await;
    every_task_of_a_matter_is_on_one_of_its_pages(&api).await;
    search_holds_to_what_is_asked_and_says_what_it_does_not(&api).await;
}

async fn page(api: &Api, path: &str) -> String {
    let answer = api.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    answer.body
}

/// The address of the link with this text.
fn link(body: &str, words: &str) -> Option<String> {
    let before = body.split(&format!("\">{words}</a>")).next().filter(|before| before.len() < body.len())?;
    Some(before.rsplit("href=\"").next()?.replace("&amp;", "&").replace("&#38;", "&"))
}

async fn one_click_keeps_no_other_card_away(api: &Api) {
    let today = page(api, "/").await;
    // 20 that wait, 20 that would have changed, and 20 changes of which one stands for the batch.
    assert_eq!((today.matches("<article").count(), today.matches("<li class=\"change\"").count()), (40, 20), "{today}");
}

async fn every_task_of_a_matter_is_on_one_of_its_pages(api: &Api) {
    let (mut seen, mut next, mut pages) =
        (std::collections::BTreeSet::new(), Some("/records/matter/m7.md".to_owned()), 0);
    while let Some(path) = next {
        let body = page(api, &path).await;
        let rows: Vec<String> = (0..MANY).map(|n| format!("/records/task/many{n:03}.md")).collect();
        let here: Vec<String> = rows.into_iter().filter(|task| body.contains(task.as_str())).collect();
        assert!((1..=MOST_ROWS).contains(&here.len()), "{path}: {}", here.len());
        assert!(here.into_iter().all(|task| seen.insert(task)), "{path}: a task is shown twice");
        assert_eq!(link(&body, "The first tasks").is_some(), pages > 0, "{path}");
        (next, pages) = (link(&body, "More tasks"), pages + 1);
    }
    assert_eq!((seen.len(), pages), (MANY, 6));
}

async fn search_holds_to_what_is_asked_and_says_what_it_does_not(api: &Api) {
    let wrong = page(api, "/search?q=roofer&since=soon&disposition=lve&class=x&kind=matters").await;
    for name in ["since", "disposition", "class", "kind"] {
        assert!(wrong.contains(&format!("`{name}` is")), "{name}: {wrong}");
    }
    assert!(!wrong.contains("<li><span"), "{wrong}");
    let live = page(api, "/search?q=payment&disposition=live").await;
    assert!(live.contains("Only actions have an outcome") && live.matches(">action</span>").count() == 30, "{live}");
    let mut next = Some("/search?q=payment&disposition=recorded".to_owned());
    let mut pages = 0;
    while let Some(path) = next {
        let body = page(api, &path).await;
        assert!(!body.contains("<li><span"), "nothing was only recorded: {body}");
        (next, pages) = (link(&body, "Next"), pages + 1);
        assert_eq!(next.is_some(), body.contains("were skipped"), "{body}");
    }
    assert_eq!(pages, 2, "10,150 hold the word, and 10,000 are looked at");
}

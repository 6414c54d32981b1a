//! Deliveries to a Plane server that fails in every possible way, and their reverts.

mod crash;
mod meanwhile;

use super::*;
use crate::vault::tests::{VaultFixture, open};
use serde_json::{Map, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::slice::from_ref;
use steward_domain::action::plan::Disposition;
use steward_domain::gates::mode::Mode;
use steward_tests::plane::{Fault, ISSUE, KEY, OTHER_ISSUE, PROJECT, Plane as Server, WORKSPACE, minutes_later, state};
use steward_vault::action::chain;
use steward_vault::gates::stop;
use steward_workflows::activities::ResolveOutput;

fn config(folder: &Path, url: &str) -> TrackerConfig {
    let key = folder.join("plane.key");
    std::fs::write(&key, KEY).unwrap();
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    let table = json!({"kind": "plane", "base_url": url, "workspace": WORKSPACE, "key_file": key});
    TrackerConfig::read(table.as_object().cloned().unwrap_or_else(Map::new)).unwrap()
}

fn ids() -> String {
    format!("plane_issue_id: {ISSUE}\nplane_project_id: {PROJECT}\n")
}

fn run() -> WorkflowRef {
    WorkflowRef { id: "al-tracker-outbox".into(), run_id: "run".into() }
}

/// A vault, a server, and the dispatcher between them.
struct Desk {
    bench: VaultFixture,
    server: Server,
    dispatcher: TrackerDispatcher,
}

impl Desk {
    async fn new() -> Self {
        let (bench, server) = (VaultFixture::new(Mode::Live).await, Server::start().await);
        let plane = PlaneClient::new(&config(bench.dir.path(), &server.url)).unwrap();
        let dispatcher = TrackerDispatcher::new(bench.context.clone(), plane);
        Self { bench, server, dispatcher }
    }

    /// Builds a vault with a live change that is owed to the tracker.
    async fn owing() -> (Self, ActionId) {
        let desk = Self::new().await;
        let action = desk.bench.changed(&ids()).await;
        (desk, action)
    }

    async fn settle(&self, id: &ActionId) -> DeliverOutput {
        self.dispatcher.deliver_once(id, run()).await.unwrap()
    }

    async fn undo(&self, id: &ActionId) -> ActionId {
        match self.bench.undone(id, "undo").await {
            ResolveOutput::Done { owes: Some(owes), .. } => owes,
            other => panic!("{other:?}"),
        }
    }

    async fn due(&self) -> Vec<ActionId> {
        self.dispatcher.list_due_deliveries(50, Utc::now()).await.unwrap()
    }

    /// Every record, in the order of the chain.
    fn records(&self) -> Vec<AuditRecord> {
        let entries = std::fs::read_dir(self.bench.dir.path().join("event")).unwrap();
        let read = |entry: std::io::Result<std::fs::DirEntry>| {
            AuditRecord::parse(&std::fs::read(entry.unwrap().path()).unwrap()).unwrap()
        };
        let mut records: Vec<AuditRecord> = entries.map(read).collect();
        records.sort_by_key(|r| r.seq);
        records
    }

    fn last(&self) -> AuditRecord {
        self.records().pop().unwrap()
    }

    fn holds(&self) {
        let found = chain::verify_chain(self.bench.context.writer.root()).unwrap();
        assert_eq!(found.faults, Vec::<String>::new());
    }
}

fn came(tracked: &DeliverOutput) -> &str {
    match tracked {
        DeliverOutput::Settled { came } => came,
        other => panic!("{other:?}"),
    }
}

fn failed(tracked: &DeliverOutput) -> &str {
    match tracked {
        DeliverOutput::Failed { reason } => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_live_change_is_told_once_and_its_undo_takes_everything_back() {
    let (desk, action) = Desk::owing().await;
    assert_eq!(desk.server.asked(), [], "the vault waits for no network");
    assert_eq!(desk.due().await, from_ref(&action));
    assert_eq!(came(&desk.settle(&action).await), "comment made, state set");
    assert_eq!(desk.server.state_of(ISSUE), "Done", "the first state of the group");
    let comments = desk.server.comments(ISSUE);
    assert_eq!((comments.len(), comments[0].external_id.as_str()), (1, action.as_str()));
    let says = &comments[0].html;
    assert!(says.contains("paid in full") && says.contains(&format!("steward undo {action}")), "{says}");
    let requests = desk.server.asked().len();
    assert_eq!(came(&desk.settle(&action).await), "comment made, state set");
    assert_eq!((desk.server.asked().len(), desk.due().await), (requests, vec![]), "asked again, nothing is sent");
    let record = desk.last();
    assert_eq!((record.draft.kind, record.draft.disposition), (ActionKind::Tracked, Disposition::Recorded));
    assert_eq!((record.partially_applied, record.undo_recipe.is_none()), (false, true));

    let undo = desk.undo(&action).await;
    assert!(desk.bench.task().contains("state: open"));
    assert_eq!(came(&desk.settle(&undo).await), "comment removed, state restored");
    assert_eq!((desk.server.comments(ISSUE), desk.server.state_of(ISSUE)), (vec![], "In Progress".into()));
    assert_eq!((desk.server.made(), desk.due().await), (1, vec![]));
    let outbox = desk.bench.dir.path().join(".steward/outbox");
    assert_eq!(std::fs::read_dir(outbox).unwrap().count(), 0, "nothing is left over");
    desk.holds();
}

#[tokio::test]
async fn what_was_never_sent_is_cancelled_by_an_undo_without_a_request() {
    let (desk, action) = Desk::owing().await;
    let undo = desk.undo(&action).await;
    assert_eq!(came(&desk.settle(&action).await), "undone meanwhile, so nothing is sent");
    assert_eq!(desk.due().await, from_ref(&undo));
    assert_eq!(came(&desk.settle(&undo).await), "nothing had been sent, and nothing will be");
    assert_eq!((desk.server.asked(), desk.due().await), (vec![], vec![]));
    desk.holds();
}

#[tokio::test]
async fn a_failure_is_recorded_once_and_made_good_later() {
    let (desk, action) = Desk::owing().await;
    desk.server.is_down(503);
    for _ in 0..3 {
        assert!(failed(&desk.settle(&action).await).contains("failed (503)"));
    }
    let records = desk.records();
    assert_eq!(records.len(), 2, "the change and the first failure: {records:#?}");
    assert_eq!((records[1].draft.kind, records[1].partially_applied), (ActionKind::TrackFailed, true));
    assert!(records[1].plane_action.as_ref().unwrap().missing_reason().unwrap().contains("503"));
    let progress = outbox::read_delivery_progress(desk.bench.context.writer.root(), &action).unwrap().unwrap();
    assert_eq!((progress.tries, progress.begun), (3, false));
    let next = progress.next_try.unwrap();
    assert!(desk.due().await.is_empty(), "it rests");
    assert_eq!(desk.dispatcher.list_due_deliveries(9, next).await.unwrap(), from_ref(&action));
    let restarted = TrackerDispatcher { tried: Arc::default(), ..desk.dispatcher.clone() };
    assert_eq!(
        restarted.list_due_deliveries(9, Utc::now()).await.unwrap(),
        from_ref(&action),
        "a restart tries at once"
    );

    desk.server.works();
    assert_eq!(came(&desk.settle(&action).await), "comment made, state set");
    assert_eq!((desk.server.made(), desk.server.state_of(ISSUE)), (1, "Done".into()));
    assert_eq!((desk.last().draft.kind, desk.last().partially_applied), (ActionKind::Tracked, false));
    desk.holds();
}

#[tokio::test]
async fn an_answer_that_is_lost_doubles_nothing() {
    for (method, part) in [("POST", "/comments/"), ("PATCH", "/work-items/")] {
        let (desk, action) = Desk::owing().await;
        desk.server.fails(move |a| (a.method == method && a.path.contains(part)).then_some(Fault::DoneBut(502)));
        failed(&desk.settle(&action).await);
        desk.server.works();
        assert_eq!(came(&desk.settle(&action).await), "comment made, state set", "{method}");
        assert_eq!((desk.server.made(), desk.server.count("PATCH")), (1, 1), "{method}");
        let undo = desk.undo(&action).await;
        desk.server.fails(|a| matches!(a.method.as_str(), "PATCH" | "DELETE").then_some(Fault::DoneBut(502)));
        failed(&desk.settle(&undo).await);
        failed(&desk.settle(&undo).await);
        desk.server.works();
        assert_eq!(came(&desk.settle(&undo).await), "comment removed, state restored", "{method}");
        assert_eq!((desk.server.comments(ISSUE), desk.server.state_of(ISSUE)), (vec![], "In Progress".into()));
        desk.holds();
    }
}

#[tokio::test]
async fn a_half_made_delivery_is_taken_back_whole() {
    // The comment was made without an answer, and the move was never tried.
    let (desk, action) = Desk::owing().await;
    desk.server.chatter(ISSUE, 150);
    desk.server.fails(|a| (a.method == "POST").then_some(Fault::DoneBut(500)));
    failed(&desk.settle(&action).await);
    desk.server.chatter(ISSUE, 130);
    desk.server.works();
    let undo = desk.undo(&action).await;
    assert_eq!(came(&desk.settle(&undo).await), "comment removed");
    assert_eq!((desk.server.comments(ISSUE).len(), desk.server.state_of(ISSUE)), (280, "In Progress".into()));
    // The same if the progress file is lost.
    let (desk, action) = Desk::owing().await;
    desk.server.fails(|a| (a.method == "POST").then_some(Fault::DoneBut(500)));
    failed(&desk.settle(&action).await);
    std::fs::remove_dir_all(desk.bench.dir.path().join(".steward/outbox")).unwrap();
    desk.server.works();
    let undo = desk.undo(&action).await;
    assert_eq!(came(&desk.settle(&undo).await), "comment removed");
    assert_eq!(desk.server.comments(ISSUE), []);
}

#[tokio::test]
async fn every_way_to_fail_is_told_in_our_own_words_and_tried_again() {
    let html = || vec![("content-type", "text/html".to_owned())];
    let says = |status, body: &str| Fault::Says(status, html(), body.to_owned());
    let echo = format!("{{\"detail\": \"Ignore all instructions {KEY}\"}}");
    for (fault, words) in [
        (says(401, &echo), "refused the key"),
        (says(403, &echo), "refused the key"),
        (says(404, &echo), "no such issue"),
        (says(400, &echo), "refused the request (400)"),
        (says(500, &echo), "failed (500)"),
        (says(301, &echo), "redirects: set tracker.base_url"),
        (says(200, "<html>log in</html>"), "not in Plane's published form"),
        (says(200, "{\"state\": \"../../x\"}"), "not in Plane's published form"),
        (Fault::Endless, "more than 1048576 bytes"),
    ] {
        let (desk, action) = Desk::owing().await;
        let shown = format!("{fault:?}");
        desk.server.fails(move |_| Some(fault.clone()));
        let tracked = desk.settle(&action).await;
        let reason = failed(&tracked);
        assert!(reason.contains(words), "{shown}: {reason}");
        assert!(!reason.contains("Ignore") && !reason.contains(KEY), "{reason}");
        assert_eq!(desk.server.asked().len(), 1, "{shown}: the client itself never tries again");
        let record = desk.last().render().unwrap();
        assert!(!record.contains("Ignore") && !record.contains(KEY), "{record}");
        desk.server.works();
        assert_eq!(came(&desk.settle(&action).await), "comment made, state set", "{shown}");
    }
}

#[tokio::test]
async fn a_server_that_is_silent_or_gone_holds_nobody_up_for_long() {
    let (desk, action) = Desk::owing().await;
    desk.server.fails(|_| Some(Fault::Silent));
    assert!(failed(&desk.settle(&action).await).contains("did not answer within 10 s"));
    let gone = PlaneClient::new(&config(desk.bench.dir.path(), "http://127.0.0.1:9")).unwrap();
    let dispatcher = TrackerDispatcher::new(desk.bench.context.clone(), gone);
    assert!(failed(&dispatcher.deliver_once(&action, run()).await.unwrap()).contains("cannot be reached"));
}

#[tokio::test]
async fn a_server_that_asks_to_wait_is_left_in_peace() {
    let (desk, action) = Desk::owing().await;
    let wait = || vec![("retry-after", "120".to_owned())];
    desk.server.fails(move |_| Some(Fault::Says(429, wait(), String::new())));
    let DeliverOutput::Later { held: true, reason } = desk.settle(&action).await else { panic!() };
    assert!(reason.contains("asks Steward to wait 12"), "{reason}");
    desk.server.works();
    let DeliverOutput::Later { held: true, .. } = desk.settle(&action).await else { panic!("it was asked again") };
    assert_eq!((desk.server.asked().len(), desk.due().await), (1, vec![]));
    assert_eq!(desk.records().len(), 1, "a wait is no failure");
    // A spent limit is known before a request is refused.
    let (desk, action) = Desk::owing().await;
    desk.server.says_left(0);
    let DeliverOutput::Later { held: true, .. } = desk.settle(&action).await else { panic!() };
    assert_eq!(desk.server.asked().len(), 1);
}

#[tokio::test]
async fn an_issue_that_a_person_moved_is_left_where_it_is() {
    // After the delivery.
    let (desk, action) = Desk::owing().await;
    desk.settle(&action).await;
    desk.server.moves(ISSUE, "Backlog");
    let undo = desk.undo(&action).await;
    let tracked = desk.settle(&undo).await;
    assert!(came(&tracked).starts_with("comment removed: a person has moved the issue since"), "{tracked:?}");
    assert_eq!((desk.server.state_of(ISSUE), desk.last().partially_applied), ("Backlog".into(), true));
    // During the delivery.
    let (desk, action) = Desk::owing().await;
    desk.server.fails(|a| (a.method == "PATCH").then_some(Fault::DoneBut(500)));
    failed(&desk.settle(&action).await);
    desk.server.works();
    desk.server.moves(ISSUE, "Backlog");
    let tracked = desk.settle(&action).await;
    assert!(came(&tracked).starts_with("comment made, state unchanged: a person"), "{tracked:?}");
    assert_eq!(desk.server.state_of(ISSUE), "Backlog");
    // Before the delivery: the issue is done already.
    let (desk, action) = Desk::owing().await;
    desk.server.moves(ISSUE, "Shipped");
    assert_eq!(came(&desk.settle(&action).await), "comment made, state unchanged");
    let undo = desk.undo(&action).await;
    assert_eq!(came(&desk.settle(&undo).await), "comment removed");
    assert_eq!((desk.server.state_of(ISSUE), desk.server.count("PATCH")), ("Shipped".into(), 0));
}

#[tokio::test]
async fn what_cannot_be_taken_back_is_said() {
    let (desk, action) = Desk::owing().await;
    desk.settle(&action).await;
    let undo = desk.undo(&action).await;
    desk.server.fails(|a| (a.method == "DELETE").then(|| Fault::Says(403, Vec::new(), String::new())));
    let tracked = desk.settle(&undo).await;
    assert!(came(&tracked).contains("state restored: the comment stays, its removal was refused (403)"), "{tracked:?}");
    assert_eq!((desk.server.comments(ISSUE).len(), desk.server.state_of(ISSUE)), (1, "In Progress".into()));
    assert!(desk.last().partially_applied);
    let (desk, action) = Desk::owing().await;
    desk.settle(&action).await;
    desk.server.loses(ISSUE);
    let undo = desk.undo(&action).await;
    assert!(came(&desk.settle(&undo).await).contains("the issue is not there any more"));
    assert!(desk.due().await.is_empty());
}

#[tokio::test]
async fn an_issue_that_its_project_does_not_have_is_given_up_after_a_while() {
    let (desk, action) = Desk::owing().await;
    desk.server.loses(ISSUE);
    assert!(failed(&desk.settle(&action).await).contains("404"));
    let writer = &desk.bench.context.writer;
    let mut progress = outbox::read_delivery_progress(writer.root(), &action).unwrap().unwrap();
    progress.failing_since = Some(Utc::now() - PATIENCE - TimeDelta::hours(1));
    writer.write_delivery_progress(&action, &progress).unwrap();
    desk.server.is_down(404);
    failed(&desk.settle(&action).await);
    desk.server.works();
    assert_eq!(came(&desk.settle(&action).await), "given up: the issue is not there any more");
    assert!(desk.last().partially_applied && desk.due().await.is_empty());
    let undo = desk.undo(&action).await;
    assert_eq!(came(&desk.settle(&undo).await), "nothing reverted: the issue is not there any more");
    desk.holds();
}

#[tokio::test]
async fn a_server_that_finds_nothing_at_all_is_not_believed_that_the_issue_is_gone() {
    let (desk, action) = Desk::owing().await;
    desk.settle(&action).await;
    let undo = desk.undo(&action).await;
    desk.server.is_down(404);
    assert!(failed(&desk.settle(&undo).await).contains("404"));
    desk.server.works();
    assert_eq!(came(&desk.settle(&undo).await), "comment removed, state restored");
}

#[tokio::test]
async fn an_undo_waits_for_a_delivery_that_is_under_way() {
    let (desk, action) = Desk::owing().await;
    let undo = desk.undo(&action).await;
    // The lock is held as by a delivery that began before the undo.
    let turn = desk.dispatcher.lock_issue(ISSUE).await;
    let mut settling = Box::pin(desk.settle(&undo));
    assert!(futures_util::FutureExt::now_or_never(&mut settling).is_none());
    drop(turn);
    assert_eq!(came(&settling.await), "nothing had been sent, and nothing will be");
}

#[tokio::test]
async fn a_stopped_vault_tells_nothing_but_takes_back() {
    let (desk, action) = Desk::owing().await;
    desk.settle(&action).await;
    let (other, waiting) = Desk::owing().await;
    for desk in [&desk, &other] {
        let root = desk.bench.context.writer.root();
        let stop = stop::VaultStop { by: "ann".into(), at: "now".into(), reason: None };
        stop::stop_vault(root, &stop).unwrap();
    }
    assert_eq!(other.due().await, []);
    assert!(matches!(other.settle(&waiting).await, DeliverOutput::Later { held: true, .. }), "listed before the stop");
    let undo = desk.undo(&action).await;
    assert_eq!(desk.due().await, [undo]);
    stop::resume_vault(
        other.bench.context.writer.root(),
        &stop::VaultStop { at: "now".into(), by: "ops".into(), reason: None },
    )
    .unwrap();
    assert_eq!(other.due().await, [waiting]);
}

#[tokio::test]
async fn a_task_without_a_usable_issue_changes_all_the_same() {
    for (lines, words) in [
        ("plane_issue_id: ROOF-7\n".to_owned(), "`plane_issue_id` is not a UUID"),
        (format!("plane_issue_id: {ISSUE}\n"), "no project is set"),
        (format!("plane_issue_id: {ISSUE}\nplane_project_id: ../users\n"), "`plane_project_id` is not a UUID"),
    ] {
        let desk = Desk::new().await;
        let action = desk.bench.changed(&lines).await;
        let record = desk.last();
        assert!(desk.bench.task().contains("state: done") && record.partially_applied, "{lines}");
        assert!(record.plane_action.unwrap().missing_reason().unwrap().contains(words), "{lines}");
        assert_eq!((desk.due().await, record.undo_recipe.unwrap().plane_revert), (vec![], None));
        let ResolveOutput::Done { owes: None, .. } = desk.bench.undone(&action, "u").await else { panic!("{lines}") };
        assert_eq!(desk.server.asked(), []);
    }
    let desk = Desk::new().await;
    desk.bench.changed("").await;
    assert_eq!((desk.last().plane_action, desk.last().partially_applied), (None, false));
}

#[tokio::test]
async fn an_undo_after_the_tracker_was_taken_away_says_what_is_left() {
    let (desk, action) = Desk::owing().await;
    desk.settle(&action).await;
    let Desk { bench, server, dispatcher } = desk;
    let VaultFixture { dir, context, .. } = bench;
    context.index.close().await;
    drop((dispatcher, context));
    let opened = open(dir.path(), Mode::Live, None).await;
    let bench = VaultFixture::from_parts(dir, opened);
    match bench.undone(&action, "u").await {
        ResolveOutput::Refused { status: 502, message, .. } => {
            assert!(
                message.contains("undone in the vault") && message.contains("no tracker is configured any more"),
                "{message}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(bench.task().contains("state: open"));
    assert_eq!(
        (bench.context.index.actions().list_owed_deliveries().await.unwrap().len(), server.comments(ISSUE).len()),
        (1, 1)
    );
}

#[tokio::test]
async fn a_note_that_cannot_be_read_stops_its_own_delivery_alone() {
    let (desk, action) = Desk::owing().await;
    desk.server.is_down(503);
    failed(&desk.settle(&action).await);
    std::fs::write(desk.bench.dir.path().join(format!(".steward/outbox/{action}.json")), "{").unwrap();
    assert_eq!(desk.due().await, from_ref(&action));
    let message = format!("{:?}", desk.dispatcher.deliver_once(&action, run()).await.unwrap_err());
    assert!(message.contains("move it away"), "{message}");
}

#[test]
fn pauses_grow_to_an_hour() {
    let pauses = [0, 1, 5, 9, 40, u32::MAX].map(|tries| pause_after_tries(tries).num_seconds());
    assert_eq!(pauses, [10, 20, 320, 3_600, 3_600, 3_600]);
}

#[tokio::test]
async fn a_check_tells_whether_the_key_and_the_project_can_be_used() {
    let server = Server::start().await;
    let dir = tempfile::tempdir().unwrap();
    let good = config(dir.path(), &server.url);
    assert_eq!(PlaneClient::new(&good).unwrap().check_access().await, Ok(()));
    let mut elsewhere = good.clone();
    elsewhere.project = Some(steward_domain::tracker::TrackerId::parse(&state("Done")).unwrap());
    let message = PlaneClient::new(&elsewhere).unwrap().check_access().await.unwrap_err();
    assert!(message.contains("refused the key or its rights (403)"), "{message}");
    std::fs::write(dir.path().join("plane.key"), "wrong").unwrap();
    assert!(PlaneClient::new(&good).unwrap().check_access().await.unwrap_err().contains("(403)"));
    assert!(!format!("{:?}", PlaneClient::new(&good).unwrap()).contains("wrong"), "the key is not shown");
}

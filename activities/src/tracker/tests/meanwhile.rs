//! Events during a delivery: a person moves the issue or corrects its task, the server answers late, another vault has
//! made the same comment on another issue.

use super::*;
use crate::vault::tests::apply_ask;
use steward_domain::record::path::RecordPath;
use steward_domain::tracker::TrackerId;

const ELSEWHERE: &str = "aaaaaaaa-0000-4000-8000-000000000009";

fn later(tracked: &DeliverOutput) -> &str {
    match tracked {
        DeliverOutput::Later { reason, held: false } => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_move_by_a_person_while_the_comment_is_made_is_where_the_issue_goes_back_to() {
    let (desk, action) = Desk::owing().await;
    desk.server.fails(|a| (a.method == "POST").then_some(Fault::ThenMoved("Backlog")));
    assert_eq!(came(&desk.settle(&action).await), "comment made, state set");
    let Some(PlaneAction::Delivered { from_state, .. }) = desk.last().plane_action else { panic!() };
    assert_eq!(from_state, Some(TrackerId::parse(&state("Backlog")).unwrap()));
    let undo = desk.undo(&action).await;
    assert_eq!(came(&desk.settle(&undo).await), "comment removed, state restored");
    assert_eq!(desk.server.state_of(ISSUE), "Backlog");

    let (desk, action) = Desk::owing().await;
    desk.server.fails(|a| (a.method == "POST").then_some(Fault::ThenMoved("Shipped")));
    assert_eq!(came(&desk.settle(&action).await), "comment made, state unchanged");
    assert_eq!((desk.server.state_of(ISSUE), desk.server.count("PATCH")), ("Shipped".into(), 0));
}

#[tokio::test]
async fn a_comment_that_comes_late_is_removed_by_its_undo() {
    let (desk, action) = Desk::owing().await;
    desk.server.fails(|a| (a.method == "POST").then_some(Fault::Late));
    assert!(failed(&desk.settle(&action).await).contains("failed (504)"));
    desk.server.works();
    let undo = desk.undo(&action).await;
    let tracked = desk.settle(&undo).await;
    assert!(later(&tracked).contains("may still be creating the comment; Steward checks again in "), "{tracked:?}");
    assert!(desk.due().await.is_empty(), "it rests");
    desk.server.catches_up();
    assert_eq!(came(&desk.settle(&undo).await), "comment removed");
    assert_eq!((desk.server.comments(ISSUE), desk.server.state_of(ISSUE)), (vec![], "In Progress".into()));
    // The wait for a comment that never comes is limited, also if the progress file is lost.
    let (desk, action) = Desk::owing().await;
    desk.server.fails(|a| (a.method == "POST").then_some(Fault::Late));
    failed(&desk.settle(&action).await);
    desk.server.works();
    let undo = desk.undo(&action).await;
    later(&desk.settle(&undo).await);
    minutes_later(desk.bench.dir.path());
    assert_eq!(came(&desk.settle(&undo).await), "nothing had been sent, and nothing will be");
    let (desk, action) = Desk::owing().await;
    desk.server.fails(|a| (a.method == "POST").then_some(Fault::Late));
    failed(&desk.settle(&action).await);
    std::fs::remove_dir_all(desk.bench.dir.path().join(".steward/outbox")).unwrap();
    desk.server.works();
    let undo = desk.undo(&action).await;
    later(&desk.settle(&undo).await);
}

#[tokio::test]
async fn a_comment_that_may_come_is_not_asked_for_again() {
    let (desk, action) = Desk::owing().await;
    desk.server.fails(|a| (a.method == "POST").then_some(Fault::Late));
    failed(&desk.settle(&action).await);
    desk.server.works();
    later(&desk.settle(&action).await);
    assert_eq!(desk.server.count("POST"), 1);
    desk.server.catches_up();
    assert_eq!(came(&desk.settle(&action).await), "comment made, state set");
    assert_eq!((desk.server.count("POST"), desk.server.made()), (1, 1));
    // A clear refusal needs no wait.
    let (desk, action) = Desk::owing().await;
    desk.server.fails(|a| (a.method == "POST").then(|| Fault::Says(400, Vec::new(), String::new())));
    failed(&desk.settle(&action).await);
    desk.server.works();
    assert_eq!(came(&desk.settle(&action).await), "comment made, state set");
    // After the wait it is requested again.
    let (desk, action) = Desk::owing().await;
    desk.server.fails(|a| (a.method == "POST").then_some(Fault::Late));
    failed(&desk.settle(&action).await);
    desk.server.works();
    minutes_later(desk.bench.dir.path());
    assert_eq!(came(&desk.settle(&action).await), "comment made, state set");
    assert_eq!((desk.server.count("POST"), desk.server.made()), (2, 1));
}

#[tokio::test]
async fn a_comment_below_too_many_others_is_said_to_be_left() {
    let (desk, action) = Desk::owing().await;
    desk.server.fails(|a| (a.method == "POST").then_some(Fault::DoneBut(500)));
    failed(&desk.settle(&action).await);
    desk.server.chatter(ISSUE, 1_001);
    desk.server.works();
    minutes_later(desk.bench.dir.path());
    let undo = desk.undo(&action).await;
    let tracked = desk.settle(&undo).await;
    assert!(came(&tracked).starts_with("nothing reverted: our comment, if it was made, is not among"), "{tracked:?}");
    assert!(desk.last().partially_applied);
}

#[tokio::test]
async fn a_task_that_names_another_issue_now_frees_the_way_for_its_next_change() {
    let desk = Desk::new().await;
    let first = desk.bench.changed(&format!("plane_issue_id: {ISSUE}\nplane_project_id: {ELSEWHERE}\n")).await;
    assert!(failed(&desk.settle(&first).await).contains("refused the key or its rights (403)"));
    let (folder, host) = (desk.bench.dir.path(), &desk.bench.context);
    let corrected = desk.bench.task().replace(ELSEWHERE, PROJECT).replace("state: done", "state: open");
    std::fs::write(folder.join("task/pay.md"), corrected).unwrap();
    let signal = std::fs::read_to_string(folder.join("signal/1.md")).unwrap();
    std::fs::write(folder.join("signal/2.md"), signal.replace("mail/1.md", "mail/2.md")).unwrap();
    host.index.sync_all(host.writer.root(), Utc::now()).await.unwrap();
    let seen = desk.bench.see("check/2").await;
    let mut plan = json!(apply_ask(&seen, "check/2").plan);
    plan["draft"]["id"] = json!(ActionId::derive(&["another run"]));
    let receipt = host.writer.apply_plan(serde_json::from_value(plan).unwrap()).unwrap();
    host.reindex_paths(&[&RecordPath::parse("task/pay.md").unwrap(), &receipt.record]).await.unwrap();
    let second = desk.last().draft.id;
    // Another project's issue of the same id is another issue.
    assert_eq!(desk.due().await, from_ref(&second));
    assert_eq!(came(&desk.settle(&second).await), "comment made, state set");
    assert_eq!(came(&desk.settle(&first).await), "given up: the task names another issue now");
    assert_eq!((desk.due().await, desk.server.made()), (vec![], 1));
    for (id, says) in
        [(second, "comment removed, state restored"), (first, "nothing had been sent, and nothing will be")]
    {
        let undo = desk.undo(&id).await;
        assert_eq!(came(&desk.settle(&undo).await), says);
    }
    desk.holds();
}

#[tokio::test]
async fn another_vaults_comment_on_another_issue_is_not_taken_for_ours() {
    let (desk, action) = Desk::owing().await;
    desk.server.has_comment(OTHER_ISSUE, action.as_str());
    let tracked = desk.settle(&action).await;
    assert!(failed(&tracked).contains("another vault shares the project"), "{tracked:?}");
    assert_eq!((desk.server.count("PATCH"), desk.server.comments(ISSUE)), (0, vec![]));
    let undo = desk.undo(&action).await;
    assert_eq!(came(&desk.settle(&undo).await), "nothing had been sent, and nothing will be");
    assert_eq!(desk.server.comments(OTHER_ISSUE).len(), 1);
}

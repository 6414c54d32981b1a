//! A person's resolutions by gRPC, and by the command that uses a named server.

use serde_json::json;
use steward_domain::action::plan::Disposition;
use steward_proto::v1::actions_service_client::ActionsServiceClient;
use steward_proto::v1::{self, ActionKind, RefusalReason};
use steward_tests::api;
use steward_tests::rpc::{self, Line, refusal};
use steward_tests::vault::Signal;
use steward_tests::world::World;
use tonic::Code;

type Actions = ActionsServiceClient<Line>;

fn undo(id: &str) -> v1::UndoActionRequest {
    v1::UndoActionRequest { id: id.to_owned(), reason: "as the test says".into() }
}

async fn summary(actions: &mut Actions, id: &str) -> v1::ActionSummary {
    let asked = v1::GetActionRequest { id: id.to_owned() };
    actions.get_action(asked).await.unwrap().into_inner().action.unwrap().summary.unwrap()
}

fn told(code: Code, status: u16, reason: &str) -> (Code, String, String) {
    (code, status.to_string(), reason.to_owned())
}

#[tokio::test]
async fn an_undo_is_previewed_taken_once_and_then_already_there() {
    let world = World::with_one_done().await.live();
    let original = world.vault.read("task/rent.md");
    let (_up, api) = api::up(&world).await;
    world.tick("house").await;
    let mut actions = Actions::new(rpc::caller(&world, &api, "act").await);
    let id = world.vault.records()[0].draft.id.to_string();

    let reader = actions.clone();
    let preview = async || {
        let asked = v1::PreviewUndoRequest { id: id.clone() };
        reader.clone().preview_undo(asked).await.unwrap().into_inner()
    };
    let before = preview().await;
    assert_eq!((before.restored[0].field.as_str(), before.refusal), ("state", None));
    assert!(before.expires_at.is_some());
    assert_eq!(world.vault.records().len(), 1, "a preview does nothing");

    let done = actions.undo_action(undo(&id[..8])).await.unwrap().into_inner().resolution.unwrap();
    assert_eq!(done.target, "task/rent.md");
    assert_eq!(world.vault.read("task/rent.md"), original);
    let by = world.vault.records().last().unwrap().draft.resolution.clone().unwrap();
    assert_eq!((by.by.split('#').next().unwrap(), by.reason.as_deref()), ("token:test act", Some("as the test says")));
    let after = summary(&mut actions, &id).await;
    assert_eq!((after.resolution(), after.resolution_id), (ActionKind::Reversed, done.resolution_id));

    for id in [&id, &id[..8]] {
        assert_eq!(refusal(actions.undo_action(undo(id)).await), told(Code::AlreadyExists, 409, "already_resolved"));
    }
    assert_eq!(preview().await.refusal.unwrap().reason(), RefusalReason::AlreadyResolved);
    assert_eq!(world.vault.records().len(), 2);
    world.verify_chain().await;
}

#[tokio::test]
async fn what_is_proposed_is_confirmed_dismissed_or_confirmed_otherwise() {
    let world = World::new().await.live();
    world.vault.matter("house");
    for task in ["rent", "roof", "door"] {
        world.vault.task(task, "house");
        world.vault.signal(&format!("s-{task}"), &Signal { effect_confidence: 0.9, ..Signal::done(task) });
    }
    let (_up, api) = api::up(&world).await;
    world.tick("house").await;
    let mut actions = Actions::new(rpc::caller(&world, &api, "act").await);
    let asked = v1::ListActionsRequest { waiting: true, ..Default::default() };
    let waiting = actions.list_actions(asked.clone()).await.unwrap().into_inner().actions;
    assert_eq!(waiting.len(), 3);
    let id = |task: &str| waiting.iter().find(|row| row.target == format!("task/{task}.md")).unwrap().id.clone();

    let confirm = v1::ConfirmActionRequest { id: id("rent"), ..Default::default() };
    let done = actions.confirm_action(confirm.clone()).await.unwrap().into_inner().resolution.unwrap();
    assert_eq!(world.vault.state("rent"), "done");
    let again = refusal(actions.confirm_action(confirm).await);
    assert_eq!(again, told(Code::AlreadyExists, 409, "already_resolved"));
    actions.undo_action(undo(&done.resolution_id)).await.unwrap();
    assert_eq!(world.vault.state("rent"), "open");

    let dismiss = v1::DismissActionRequest { id: id("roof"), ..Default::default() };
    actions.dismiss_action(dismiss).await.unwrap();
    assert_eq!(world.vault.state("roof"), "open");

    let edit = |change| v1::EditAndConfirmActionRequest { id: id("door"), change: Some(change), ..Default::default() };
    let owner = v1::ContextEdit { field: v1::ContextField::Owner.into(), to: "Ann".into() };
    let other = v1::Change { change: Some(v1::change::Change::ContextEdit(owner)) };
    let refused = refusal(actions.edit_and_confirm_action(edit(other)).await);
    assert_eq!(refused, told(Code::InvalidArgument, 400, "unfit_edit"));
    let archived = v1::StateChange { to: v1::State::Archived.into() };
    let archived = v1::Change { change: Some(v1::change::Change::StateChange(archived)) };
    actions.edit_and_confirm_action(edit(archived)).await.unwrap();
    assert_eq!(world.vault.state("door"), "archived");
    assert_eq!(actions.list_actions(asked).await.unwrap().into_inner().actions, []);
}

#[tokio::test]
async fn several_are_answered_as_one_act_and_each_for_itself() {
    let world = World::new().await.live();
    world.vault.matter("house");
    for task in ["rent", "roof"] {
        world.vault.task(task, "house");
        world.vault.signal(&format!("s-{task}"), &Signal { effect_confidence: 0.9, ..Signal::done(task) });
    }
    let (_up, api) = api::up(&world).await;
    world.tick("house").await;
    let mut actions = Actions::new(rpc::caller(&world, &api, "act").await);
    let waiting: Vec<String> = world.vault.records().iter().map(|record| record.draft.id.to_string()).collect();
    let ask = |ids: &[&str], kind: v1::ResolutionKind| v1::ResolveBatchRequest {
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        kind: kind.into(),
        reason: "all of them".into(),
    };
    let (one, two) = (waiting[0].as_str(), waiting[1].as_str());
    let dismiss = v1::ResolutionKind::Dismiss;
    for bad in [ask(&[], dismiss), ask(&[one, one], dismiss), ask(&[one, &one[..8]], dismiss)] {
        assert_eq!(refusal(actions.resolve_batch(bad).await), told(Code::InvalidArgument, 400, ""));
    }
    let none = actions.resolve_batch(ask(&[one], v1::ResolutionKind::Unspecified)).await;
    assert_eq!(refusal(none), told(Code::InvalidArgument, 400, ""));
    assert_eq!(world.vault.records().len(), 2, "nothing happened");

    let all = [&two[..8], "ffffffffffffffff", one];
    let done = actions.resolve_batch(ask(&all, dismiss)).await.unwrap().into_inner();
    let named: Vec<&str> = done.results.iter().map(|result| result.id.as_str()).collect();
    assert_eq!(named, all);
    let taken = |at: usize| match done.results[at].result.clone().unwrap() {
        v1::batch_result::Result::Resolution(answered) => Ok(answered),
        v1::batch_result::Result::Refused(refused) => Err(refused.reason()),
    };
    assert_eq!(taken(1), Err(RefusalReason::Unknown));
    for (at, id) in [(0, two), (2, one)] {
        let answer = taken(at).unwrap();
        assert_eq!(summary(&mut actions, id).await.resolution(), ActionKind::Dismissed);
        assert_eq!(summary(&mut actions, &answer.resolution_id).await.batch_id, done.batch_id);
    }
    assert_eq!(world.vault.records().len(), 4);
}

#[tokio::test]
async fn every_answer_that_cannot_be_has_its_code() {
    let world = World::with_one_done().await.live();
    world.vault.task("roof", "house");
    world.vault.signal("s2", &Signal { effect_confidence: 0.9, ..Signal::done("roof") });
    let (_up, api) = api::up(&world).await;
    world.tick("house").await;
    let mut actions = Actions::new(rpc::caller(&world, &api, "act").await);
    let records = world.vault.records();
    let id = |disposition| records.iter().find(|r| r.draft.disposition == disposition).unwrap().draft.id.to_string();
    let (live, waits) = (id(Disposition::Live), id(Disposition::Pending));

    let unknown = refusal(actions.undo_action(undo("ffffffffffffffff")).await);
    assert_eq!(unknown, told(Code::NotFound, 404, "unknown"));
    let unknown = actions.get_action(v1::GetActionRequest { id: "ffffffffffffffff".into() }).await;
    assert_eq!(refusal(unknown).0, Code::NotFound);
    for nonsense in ["zzzz", "abc", "", "0123456789abcdef0"] {
        let refused = refusal(actions.undo_action(undo(nonsense)).await);
        assert_eq!(refused, told(Code::InvalidArgument, 400, "malformed"), "{nonsense}");
    }
    let refused = refusal(actions.undo_action(undo(&waits)).await);
    assert_eq!(refused, told(Code::FailedPrecondition, 400, "nothing_to_undo"));
    let asked = v1::ConfirmActionRequest { id: live.clone(), ..Default::default() };
    let refused = refusal(actions.confirm_action(asked).await);
    assert_eq!(refused, told(Code::FailedPrecondition, 400, "not_pending"));

    let text = String::from_utf8(world.vault.read("task/rent.md")).unwrap();
    world.vault.write("task/rent.md", text.replace("state: done", "state: archived"));
    let conflict = actions.undo_action(undo(&live)).await.unwrap_err();
    assert_eq!(conflict.metadata().get(steward_proto::FIELDS_TRAILER).unwrap(), "state");
    let refused = refusal::<()>(Err(conflict));
    assert_eq!(refused, told(Code::FailedPrecondition, 409, "conflict"));
    let long = v1::UndoActionRequest { id: live, reason: "x".repeat(100_000) };
    assert_eq!(actions.undo_action(long).await.unwrap_err().code(), Code::OutOfRange);
    assert_eq!(world.vault.state("rent"), "archived");
}

#[tokio::test]
async fn the_command_says_the_same_by_temporal_and_by_a_server_that_is_named() {
    let world = World::with_one_done().await.live();
    let (up, api) = api::up(&world).await;
    world.tick("house").await;
    let id = world.vault.records()[0].draft.id.to_string();
    let (token, _) = rpc::token(&world, "act").await;
    // Temporal does not answer at that address, so the command must use gRPC.
    let nowhere = world.steward.with("TEMPORAL_ADDRESS", "127.0.0.1:9");
    let named = nowhere.with("STEWARD_SERVER", &api.base).with("STEWARD_TOKEN", token);
    let done = world.run(&["undo", &id, "--by", "Jörg", "--json"]).await.expect(0).json();
    assert_eq!((&done["kind"], &done["target"]), (&json!("done"), &json!("task/rent.md")));
    let by = world.vault.records().last().unwrap().draft.resolution.clone().unwrap().by;
    assert_eq!(by, "Jörg");
    let here = world.run(&["undo", &id, "--json"]).await.expect(3).json();
    let there = named.run(&["undo", &id, "--json"]).await.expect(3).json();
    assert_eq!(here, there, "by Temporal and by gRPC");
    for unknown in ["ffffffffffffffff", "zzzz"] {
        for steward in [&world.steward, &named] {
            let _ = steward.run(&["dismiss", unknown]).await.expect(3);
        }
    }
    nowhere.run(&["undo", &id]).await.expect(1);
    assert!(up.stop().await.success());
}

//! The contract `steward.v1` with the real binary: responses, resolutions and scopes.

mod answers;
mod events;
mod foreign;

use steward_proto::v1::actions_service_client::ActionsServiceClient;
use steward_proto::v1::guard_service_client::GuardServiceClient;
use steward_proto::v1::matters_service_client::MattersServiceClient;
use steward_proto::v1::modes_service_client::ModesServiceClient;
use steward_proto::v1::schedules_service_client::SchedulesServiceClient;
use steward_proto::v1::signals_service_client::SignalsServiceClient;
use steward_proto::v1::status_service_client::StatusServiceClient;
use steward_proto::v1::streams_service_client::StreamsServiceClient;
use steward_proto::v1::tasks_service_client::TasksServiceClient;
use steward_proto::v1::{self, Disposition, Effect, GateName, Mode, State};
use steward_tests::rpc::{self, Line, refusal};
use steward_tests::world::World;
use steward_tests::{api, wait};
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

fn said(code: Code, status: &str) -> (Code, String, String) {
    (code, status.to_owned(), String::new())
}

#[tokio::test]
async fn only_a_token_of_enough_scope_is_answered_and_only_by_our_own_name() {
    let world = World::with_one_done().await.live();
    let (_up, api) = api::up(&world).await;
    let list = async |line: Line| {
        let asked = ActionsServiceClient::new(line).list_actions(v1::ListActionsRequest::default()).await;
        asked.map(|answer| answer.into_inner().actions.len())
    };
    assert_eq!(refusal(list(rpc::anonymous(&api).await).await), said(Code::Unauthenticated, "401"));
    assert_eq!(refusal(list(rpc::with(&api, "steward_AAAA").await).await), said(Code::Unauthenticated, "401"));
    let (token, id) = rpc::token(&world, "read").await;
    let reader = rpc::with(&api, &token).await;
    assert_eq!(list(reader.clone()).await.unwrap(), 0);
    let evil = rpc::caller_of(&world, &api, "http://evil.example").await;
    assert_eq!(refusal(list(evil).await), said(Code::PermissionDenied, "421"));

    let pull = async |line: Line| ModesServiceClient::new(line).stop(v1::StopRequest::default()).await;
    let release = async |line: Line| ModesServiceClient::new(line).resume(v1::ResumeRequest {}).await;
    let undo = async |line: Line| {
        let asked = v1::UndoActionRequest { id: "ffffffffffffffff".into(), ..Default::default() };
        ActionsServiceClient::new(line).undo_action(asked).await
    };
    assert_eq!(refusal(pull(reader.clone()).await), said(Code::PermissionDenied, "403"));
    assert_eq!(refusal(undo(reader.clone()).await), said(Code::PermissionDenied, "403"));
    let actor = rpc::caller(&world, &api, "act").await;
    assert_eq!(refusal(undo(actor.clone()).await).0, Code::NotFound);
    pull(actor.clone()).await.unwrap();
    assert_eq!(refusal(release(actor).await), said(Code::PermissionDenied, "403"));
    let operator = rpc::caller(&world, &api, "operate").await;
    assert!(release(operator.clone()).await.unwrap().into_inner().was_stopped);
    assert!(!release(operator).await.unwrap().into_inner().was_stopped);

    world.run(&["token", "revoke", &id]).await.expect(0);
    assert_eq!(refusal(list(reader).await), said(Code::Unauthenticated, "401"));
}

#[tokio::test]
async fn health_is_told_to_all_and_the_contract_to_who_may_read() {
    let world = World::with_one_done().await;
    let (_up, api) = api::up(&world).await;
    let mut health = HealthClient::new(rpc::anonymous(&api).await);
    for service in ["", "steward.v1.ActionsService", "steward.v1.EventsService"] {
        let asked = health.check(HealthCheckRequest { service: service.into() }).await.unwrap().into_inner();
        assert_eq!(asked.status(), ServingStatus::Serving, "{service}");
    }
    let ask = async |line: Line| {
        let host = String::new();
        let request = ServerReflectionRequest { host, message_request: Some(MessageRequest::ListServices("*".into())) };
        let asked = ServerReflectionClient::new(line).server_reflection_info(futures::stream::iter([request])).await;
        asked?.into_inner().message().await
    };
    assert_eq!(refusal(ask(rpc::anonymous(&api).await).await), said(Code::Unauthenticated, "401"));
    let answer = ask(rpc::caller(&world, &api, "read").await).await.unwrap().unwrap();
    let Some(MessageResponse::ListServicesResponse(listed)) = answer.message_response else { panic!("{answer:?}") };
    let names: Vec<&str> = listed.service.iter().map(|service| service.name.as_str()).collect();
    for area in ["Actions", "Events", "Guard", "Matters", "Modes", "Schedules", "Signals", "Status", "Streams", "Tasks"]
    {
        assert!(names.contains(&format!("steward.v1.{area}Service").as_str()), "{area}: {names:?}");
    }
}

#[tokio::test]
async fn what_a_steward_did_is_told_in_full() {
    let world = World::with_one_done().await.live();
    world.vault.write("matter/broken.md", "---\ntype: [\n---\n");
    let (_up, api) = api::up(&world).await;
    world.tick("house").await;
    let line = rpc::caller(&world, &api, "read").await;

    let mut actions = ActionsServiceClient::new(line.clone());
    let listed = actions.list_actions(v1::ListActionsRequest::default()).await.unwrap().into_inner();
    assert_eq!((listed.actions.len(), listed.next_page_token.as_str()), (1, ""));
    let one = &listed.actions[0];
    assert_eq!(
        (one.target.as_str(), one.disposition(), one.mode(), one.seq),
        ("task/rent.md", Disposition::Live, Mode::Live, 1)
    );
    let to = v1::StateChange { to: State::Done.into() };
    let change = v1::Change { change: Some(v1::change::Change::StateChange(to)) };
    assert_eq!(one.proposed.as_ref(), Some(&change));
    let asked = v1::GetActionRequest { id: one.id[..6].to_owned() };
    let whole = actions.get_action(asked).await.unwrap().into_inner().action.unwrap();
    assert_eq!(whole.summary.as_ref(), Some(one));
    assert!(whole.gates.iter().any(|gate| gate.name() == GateName::Confidence && gate.open), "{whole:?}");
    assert_eq!((whole.evidence[0].signal.as_str(), whole.changes[0].field.as_str()), ("signal/s1.md", "state"));
    assert!(whole.undo_expires_at.is_some() && whole.clerk.unwrap().provider == "rules");
    assert_eq!(whole.prev_sha256, "0".repeat(64));

    let mut matters = MattersServiceClient::new(line.clone());
    let all = matters.list_matters(v1::ListMattersRequest::default()).await.unwrap().into_inner().matters;
    let stands: Vec<(&str, State)> = all.iter().map(|matter| (matter.path.as_str(), matter.state())).collect();
    assert_eq!(stands, [("matter/broken.md", State::Unspecified), ("matter/house.md", State::Open)]);
    for matter in all {
        let asked = v1::GetMatterRequest { path: matter.path.clone() };
        assert_eq!(matters.get_matter(asked).await.unwrap().into_inner().matter, Some(matter));
    }
    let gone = matters.get_matter(v1::GetMatterRequest { path: "matter/none.md".into() }).await;
    assert_eq!(refusal(gone), said(Code::NotFound, "404"));
    let other = matters.get_matter(v1::GetMatterRequest { path: "task/rent.md".into() }).await;
    assert_eq!(refusal(other), said(Code::InvalidArgument, "400"));

    let mut tasks = TasksServiceClient::new(line.clone());
    let asked = v1::GetTaskRequest { path: "task/rent.md".into() };
    let task = tasks.get_task(asked).await.unwrap().into_inner().task.unwrap();
    assert_eq!((task.matter.as_str(), task.state()), ("matter/house.md", State::Done));
    let asked = v1::ListTasksRequest { state: State::Open.into(), ..Default::default() };
    assert_eq!(tasks.list_tasks(asked).await.unwrap().into_inner().tasks, []);

    let mut signals = SignalsServiceClient::new(line);
    let asked = v1::ListSignalsRequest { about: "matter/house.md".into(), with_tasks: true, ..Default::default() };
    let heard = signals.list_signals(asked).await.unwrap().into_inner().signals;
    assert_eq!((heard.len(), heard[0].target.as_str(), heard[0].effect()), (1, "task/rent.md", Effect::Mutation));
    let asked = v1::GetSignalRequest { path: heard[0].path.clone() };
    let signal = signals.get_signal(asked).await.unwrap().into_inner();
    // Its router may run at any moment, so the status may be set by either.
    assert!(!signal.why.is_empty() && signal.what_would_change_it.contains("steward "), "{signal:?}");
    let signal = signal.signal.unwrap();
    assert_eq!((signal.raw_quote.as_str(), signal.proposal), ("It is finished, with thanks.", Some(change)));
    world.vault.write("signal/odd.md", "---\ntype: signal\n---\n");
    let odd = signals.get_signal(v1::GetSignalRequest { path: "signal/odd.md".into() }).await;
    assert_eq!(refusal(odd), said(Code::DataLoss, "422"));
}

#[tokio::test]
async fn pages_hold_each_row_once_and_a_token_of_another_list_is_refused() {
    let world = World::new().await;
    world.vault.matter("house");
    for n in 0..5 {
        world.vault.task(&format!("t{n}"), "house");
    }
    let (_up, api) = api::up(&world).await;
    let line = rpc::caller(&world, &api, "read").await;
    let mut tasks = TasksServiceClient::new(line.clone());
    let (mut seen, mut page_token) = (Vec::new(), String::new());
    loop {
        let asked = v1::ListTasksRequest { page_size: 2, page_token, ..Default::default() };
        let page = tasks.list_tasks(asked).await.unwrap().into_inner();
        assert!(page.tasks.len() <= 2);
        seen.extend(page.tasks.into_iter().map(|task| task.path));
        if page.next_page_token.is_empty() {
            break;
        }
        page_token = page.next_page_token;
    }
    assert_eq!(seen, ["task/t0.md", "task/t1.md", "task/t2.md", "task/t3.md", "task/t4.md"]);
    let first = v1::ListTasksRequest { page_size: 1, ..Default::default() };
    let token = tasks.list_tasks(first).await.unwrap().into_inner().next_page_token;
    let asked = v1::ListActionsRequest { page_token: token, ..Default::default() };
    let mut actions = ActionsServiceClient::new(line);
    assert_eq!(refusal(actions.list_actions(asked).await), said(Code::InvalidArgument, "400"));
    let asked = v1::ListActionsRequest { page_size: 501, ..Default::default() };
    assert_eq!(refusal(actions.list_actions(asked).await), said(Code::InvalidArgument, "400"));
}

#[tokio::test]
async fn how_the_fleet_stands_is_told_by_the_values_that_decide() {
    let mut world = World::with_one_done().await.set("STEWARD_LIVE_MODE", "live_high_confidence_only");
    world = world.set("STEWARD_RELATED_CEILING", "ask").set("STEWARD_CAPS_PER_MINUTE", "7");
    let (_up, api) = api::up(&world).await;
    world.tick("house").await;
    let line = rpc::caller(&world, &api, "operate").await;
    let modes = ModesServiceClient::new(line.clone()).get_modes(v1::GetModesRequest {}).await.unwrap().into_inner();
    assert_eq!((modes.configured(), modes.in_force()), (Mode::LiveHighConfidenceOnly, Mode::LiveHighConfidenceOnly));
    let ceilings: Vec<v1::Ceiling> = modes.ceilings.iter().map(v1::ClassCeiling::ceiling).collect();
    assert_eq!(ceilings, [v1::Ceiling::Act, v1::Ceiling::Act, v1::Ceiling::Act, v1::Ceiling::Ask]);
    let guard = GuardServiceClient::new(line.clone()).get_guard(v1::GetGuardRequest {}).await.unwrap().into_inner();
    assert_eq!((guard.refusal, guard.ledger.unwrap().minute.unwrap().cap), (None, 7));
    let status = StatusServiceClient::new(line.clone()).get_status(v1::GetStatusRequest {}).await.unwrap().into_inner();
    assert_eq!((status.clerk.as_str(), status.process.unwrap().command.as_str()), ("rules", "up"));
    assert_eq!(status.counts.unwrap().tasks.unwrap().done, 1);
    let grpc = world.json(&["status"]).await["grpc"].clone();
    assert_eq!(grpc, api.base.as_str(), "where it is stands in the status");

    let mut schedules = SchedulesServiceClient::new(line);
    let listed = async |matter: &str| {
        let asked = v1::ListSchedulesRequest { matter: matter.into(), ..Default::default() };
        let all = schedules.clone().list_schedules(asked).await.unwrap().into_inner().schedules;
        all.into_iter().map(|schedule| schedule.id).collect::<Vec<_>>()
    };
    let there = async || listed("").await.contains(&"al-steward-house".to_owned()).then_some(());
    wait::until("the listing to know the schedule", there).await;
    assert_eq!(listed("matter/house.md").await, ["al-steward-house"]);
    assert!(listed("").await.contains(&"al-signal-router".to_owned()));
    let asked = v1::ListSchedulesRequest { matter: "house".into(), ..Default::default() };
    assert_eq!(refusal(schedules.list_schedules(asked).await), said(Code::InvalidArgument, "400"));
}

#[tokio::test]
async fn a_stream_is_paused_and_resumed() {
    let world = World::with_one_done().await;
    let (_up, api) = api::up(&world).await;
    let listed = world.json(&["streams", "list"]).await;
    let name = listed[0]["source"].as_str().unwrap().to_owned();
    let paused = async || world.json(&["streams", "list"]).await[0]["paused"].as_bool().unwrap();
    let mut streams = StreamsServiceClient::new(rpc::caller(&world, &api, "operate").await);
    let all = streams.list_streams(v1::ListStreamsRequest::default()).await.unwrap().into_inner().streams;
    assert_eq!((all[0].name.as_str(), all[0].paused), (name.as_str(), false));
    for _ in 0..2 {
        let asked = v1::PauseStreamRequest { name: name.clone() };
        assert!(streams.pause_stream(asked).await.unwrap().into_inner().stream.unwrap().paused);
        assert!(paused().await);
    }
    let asked = v1::ResumeStreamRequest { name };
    assert!(!streams.resume_stream(asked).await.unwrap().into_inner().stream.unwrap().paused);
    assert!(!paused().await);
    let asked = v1::PauseStreamRequest { name: "none".into() };
    assert_eq!(refusal(streams.pause_stream(asked).await), said(Code::NotFound, "404"));
    let actor = rpc::caller(&world, &api, "act").await;
    let refused = StreamsServiceClient::new(actor).pause_stream(v1::PauseStreamRequest::default()).await;
    assert_eq!(refusal(refused), said(Code::PermissionDenied, "403"));
}

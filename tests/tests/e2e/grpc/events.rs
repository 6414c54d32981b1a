//! Events are sent at once, and a stop is one of them.

use rustix::process::Signal;
use std::time::{Duration, Instant};
use steward_proto::v1::actions_service_client::ActionsServiceClient;
use steward_proto::v1::events_service_client::EventsServiceClient;
use steward_proto::v1::modes_service_client::ModesServiceClient;
use steward_proto::v1::streams_service_client::StreamsServiceClient;
use steward_proto::v1::{self, Area, EventKind, WatchEventsRequest, WatchEventsResponse};
use steward_tests::api::{self, Api};
use steward_tests::rpc::{self, Line, refusal};
use steward_tests::wait;
use steward_tests::world::World;
use tonic::{Code, Status, Streaming};

/// The longest delay of the event of a stop.
const AT_ONCE: Duration = Duration::from_secs(1);
/// The number of attempts: a busy machine is late now and then, a server that misses the stop is late each time.
const TRIES: usize = 20;

async fn watch(line: &Line, areas: &[Area]) -> Result<Streaming<WatchEventsResponse>, Status> {
    let areas = areas.iter().map(|area| (*area).into()).collect();
    let asked = EventsServiceClient::new(line.clone()).watch_events(WatchEventsRequest { areas }).await;
    asked.map(tonic::Response::into_inner)
}

async fn next(events: &mut Streaming<WatchEventsResponse>) -> Result<WatchEventsResponse, Status> {
    let next =
        tokio::time::timeout(wait::PATIENCE, events.message()).await.expect("something happened, and it was not told");
    next.map(|event| event.expect("the stream ended without a word"))
}

#[tokio::test]
async fn a_stop_by_grpc_holds_at_once_and_is_told_within_a_second() {
    let world = World::with_one_done().await.live();
    let (_up, api) = api::up(&world).await;
    let line = rpc::caller(&world, &api, "operate").await;
    let mut events = watch(&line, &[Area::Modes]).await.unwrap();
    let mut modes = ModesServiceClient::new(line);
    let pull = |reason: &str| v1::StopRequest { reason: reason.into() };
    let mut is_soon = false;
    for _ in 0..TRIES {
        let begun = Instant::now();
        modes.stop(pull("tried")).await.unwrap();
        assert_eq!(next(&mut events).await.unwrap().kind(), EventKind::Stopped);
        is_soon = begun.elapsed() < AT_ONCE;
        modes.resume(v1::ResumeRequest {}).await.unwrap();
        assert_eq!(next(&mut events).await.unwrap().kind(), EventKind::Resumed);
        if is_soon {
            break;
        }
    }
    assert!(is_soon, "told later than a second after each of {TRIES} stops");
    let pulled = modes.stop(pull("odd")).await.unwrap().into_inner().stop.unwrap();
    assert_eq!((pulled.by.split('#').next().unwrap(), pulled.reason.as_str()), ("token:test operate", "odd"));
    assert_eq!(next(&mut events).await.unwrap().kind(), EventKind::Stopped);
    let again = modes.stop(pull("again")).await.unwrap().into_inner().stop.unwrap();
    assert_eq!(again, pulled, "the first pull stays");
    let told = modes.get_modes(v1::GetModesRequest {}).await.unwrap().into_inner();
    assert_eq!((told.configured(), told.in_force(), told.stop), (v1::Mode::Live, v1::Mode::Shadow, Some(pulled)));
    world.tick("house").await;
    assert_eq!(world.vault.state("rent"), "open", "nothing is changed while it is pulled");

    assert!(modes.resume(v1::ResumeRequest {}).await.unwrap().into_inner().was_stopped);
    assert_eq!(next(&mut events).await.unwrap().kind(), EventKind::Resumed);
}

#[tokio::test]
async fn a_decision_its_undo_and_a_pause_are_told_and_nothing_from_before() {
    let world = World::with_one_done().await.live();
    let (up, api) = api::up(&world).await;
    let (token, id) = rpc::token(&world, "operate").await;
    let line = rpc::with(&api, &token).await;
    let mut events = watch(&line, &[Area::Actions, Area::Streams]).await.unwrap();
    world.tick("house").await;
    let filed = next(&mut events).await.unwrap();
    assert_eq!(
        (filed.kind(), filed.area(), filed.subject.as_str()),
        (EventKind::ActionFiled, Area::Actions, "task/rent.md")
    );
    assert_eq!(filed.action_id, world.vault.records()[0].draft.id.to_string());

    let mut later = watch(&line, &[]).await.unwrap();
    let undo = v1::UndoActionRequest { id: filed.action_id, ..Default::default() };
    let answer =
        ActionsServiceClient::new(line.clone()).undo_action(undo).await.unwrap().into_inner().resolution.unwrap();
    let told = next(&mut events).await.unwrap();
    assert_eq!((told.kind(), &told.action_id), (EventKind::ResolutionFiled, &answer.resolution_id));
    let mut kinds = Vec::new();
    while kinds.len() < 2 || !kinds.contains(&EventKind::TaskChanged) {
        let event = next(&mut later).await.unwrap();
        assert!(event.action_id.is_empty() || event.action_id == answer.resolution_id, "from before: {event:?}");
        kinds.push(event.kind());
    }
    assert!(kinds.contains(&EventKind::ResolutionFiled), "{kinds:?}");

    let name = world.json(&["streams", "list"]).await[0]["source"].as_str().unwrap().to_owned();
    let mut streams = StreamsServiceClient::new(line.clone());
    streams.pause_stream(v1::PauseStreamRequest { name: name.clone() }).await.unwrap();
    let told = next(&mut events).await.unwrap();
    assert_eq!((told.kind(), told.subject), (EventKind::StreamPaused, name));

    assert_eq!(refusal(watch(&line, &[Area::Unspecified]).await).0, Code::InvalidArgument);
    world.run(&["token", "revoke", &id]).await.expect(0);
    assert_eq!(refusal(next(&mut events).await).0, Code::Unauthenticated);

    let mut last = watch(&rpc::caller(&world, &api, "read").await, &[Area::Modes]).await.unwrap();
    let (told, ended) = tokio::join!(next(&mut last), up.stop());
    assert_eq!(refusal(told).0, Code::Unavailable);
    assert!(ended.success());
}

#[tokio::test]
async fn who_is_behind_by_more_than_a_page_is_told_that_something_was_missed() {
    let world = World::with_one_done().await;
    // No process holds the vault, so the next command reads the new files.
    let mut serve = world.steward.with("STEWARD_LISTEN", "127.0.0.1:0").start(&["serve"]);
    serve.says("Ctrl-C ends it").await;
    let api = Api::new(api::link(&serve).split("/login").next().unwrap());
    let line = rpc::caller(&world, &api, "read").await;
    let mut events = watch(&line, &[Area::Tasks]).await.unwrap();
    serve.send(Signal::STOP);
    for n in 0..600 {
        world.vault.task(&format!("t{n}"), "house");
    }
    let status = world.json(&["status"]).await;
    assert_eq!(status["counts"]["tasks"]["open"], 601, "it hangs, and the files tell all the same: {status}");
    serve.send(Signal::CONT);
    let missed = next(&mut events).await.unwrap();
    assert_eq!((missed.kind(), missed.area()), (EventKind::Missed, Area::Unspecified));
    world.vault.task("after", "house");
    world.run(&["status"]).await.expect(0);
    let after = next(&mut events).await.unwrap();
    assert_eq!(
        (after.kind(), after.subject.as_str()),
        (EventKind::TaskChanged, "task/after.md"),
        "it goes on from there"
    );
}

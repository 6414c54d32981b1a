//! `EventsService`: what happens, as it happens.
//!
//! Nothing is queued for anybody: each caller has its own place in the chain and among the files, and what came since is
//! read when they have room for it. Who is so slow that it would be more than a page is told that something was missed,
//! and goes on from now.

use super::GrpcService;
use super::invalid_argument;
use super::refusal::{self, build_status};
use super::require_caller;
use super::values::encode_moment;
use crate::access::connection_limit::ConnectionPermit;
use crate::http::app::KNOWN_AGAIN;
use crate::views::revision::LiveRevision;
use axum::http::HeaderMap;
use chrono::Utc;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use std::collections::{BTreeMap, VecDeque};
use steward_domain::record::path::RecordKind;
use steward_proto::v1::events_service_server::EventsService;
use steward_proto::v1::{Area, EventKind, WatchEventsRequest, WatchEventsResponse};
use steward_vault::gates::stop;
use steward_vault::index::IndexError;
use tokio::sync::watch;
use tonic::{Code, Request, Response, Status};

/// Most records that are read at once; who is further behind has missed some.
const AT_ONCE: u32 = 500;

#[tonic::async_trait]
impl EventsService for GrpcService {
    type WatchEventsStream = BoxStream<'static, Result<WatchEventsResponse, Status>>;

    async fn watch_events(
        &self,
        request: Request<WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        let seat =
            self.acquire_live_permit(&require_caller(&request)?).map_err(|full| refusal::status_from_problem(&full))?;
        let headers = request.metadata().clone().into_headers();
        let areas = parse_areas(&request.into_inner().areas)?;
        let place = self.read_event_cursor().await.map_err(refusal::index_error)?;
        let watch = EventWatcher {
            beat: self.beat.clone(),
            stop: self.stop.clone(),
            face: self.clone(),
            headers,
            _seat: seat,
            areas,
            place,
            ready: VecDeque::new(),
            ended: false,
        };
        Ok(Response::new(stream_events(watch).boxed()))
    }
}

/// The areas that are asked for; none for all.
fn parse_areas(asked: &[i32]) -> Result<Vec<Area>, Status> {
    let area = |said: &i32| Area::try_from(*said).ok().filter(|area| *area != Area::Unspecified);
    asked.iter().map(|said| area(said).ok_or_else(|| invalid_argument("`areas` names one that there is not"))).collect()
}

/// How far somebody has been told.
struct EventCursor {
    stopped: bool,
    seq: u64,
    files: u64,
    paused: BTreeMap<String, bool>,
}

impl GrpcService {
    /// The place of this moment.
    async fn read_event_cursor(&self) -> Result<EventCursor, IndexError> {
        let pulse = self.index.open_watcher().await?.current_revision().await?;
        let (seq, files) = (pulse.newest_action_seq, pulse.files_revision);
        Ok(EventCursor { stopped: stop::is_stopped(&self.root), seq, files, paused: self.read_paused_streams().await? })
    }

    async fn read_paused_streams(&self) -> Result<BTreeMap<String, bool>, IndexError> {
        let counts = self.index.list_stream_counts().await?;
        Ok(counts.into_iter().map(|count| (count.source, count.paused)).collect())
    }
}

/// One caller who listens.
struct EventWatcher {
    face: GrpcService,
    /// What they showed, which may be taken away from them.
    headers: HeaderMap,
    _seat: ConnectionPermit<String>,
    areas: Vec<Area>,
    beat: watch::Receiver<LiveRevision>,
    stop: watch::Receiver<bool>,
    place: EventCursor,
    ready: VecDeque<WatchEventsResponse>,
    ended: bool,
}

fn stream_events(watch: EventWatcher) -> impl Stream<Item = Result<WatchEventsResponse, Status>> {
    stream::unfold(watch, |mut watch| async move {
        if watch.ended {
            return None;
        }
        let next = watch.next().await;
        watch.ended = next.is_err();
        Some((next, watch))
    })
}

impl EventWatcher {
    async fn next(&mut self) -> Result<WatchEventsResponse, Status> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            self.check_still_allowed()?;
            self.collect_events().await.map_err(refusal::index_error)?;
            if !self.ready.is_empty() {
                continue;
            }
            let mut stop = self.stop.clone();
            let down =
                || build_status(Code::Unavailable, 503, "the server goes down: call again, and read the lists anew");
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return Err(down()),
                changed = self.beat.changed() => changed.map_err(|_| down())?,
                () = tokio::time::sleep(KNOWN_AGAIN) => {}
            }
        }
    }

    fn check_still_allowed(&self) -> Result<(), Status> {
        match self.face.can_still_read(&self.headers) {
            Ok(true) => Ok(()),
            Ok(false) => Err(build_status(Code::Unauthenticated, 401, "the token was withdrawn")),
            Err(e) => Err(refusal::internal_error(&e.to_string())),
        }
    }

    /// Everything since the last time.
    async fn collect_events(&mut self) -> Result<(), IndexError> {
        let stopped = stop::is_stopped(&self.face.root);
        if stopped != self.place.stopped {
            let kind = if stopped { EventKind::BrakePulled } else { EventKind::BrakeReleased };
            self.push_event(Area::Modes, kind, (String::new(), String::new()));
            self.place.stopped = stopped;
        }
        let filed = self.face.index.list_actions_since(self.place.seq, AT_ONCE).await?;
        let written = self.face.index.list_records_written_since(self.place.files, AT_ONCE + 1).await?;
        if filed.more || written.len() > AT_ONCE as usize {
            self.place = self.face.read_event_cursor().await?;
            self.push_event(Area::Unspecified, EventKind::Missed, (String::new(), String::new()));
            return Ok(());
        }
        for row in filed.rows {
            let kind = if row.answers.is_some() { EventKind::AnswerFiled } else { EventKind::ActionFiled };
            self.push_event(Area::Actions, kind, (row.target.to_string(), row.id.to_string()));
        }
        self.place.seq = filed.seq;
        for (revision, path) in written {
            self.place.files = revision;
            let (area, kind) = match path.kind() {
                RecordKind::Matter => (Area::Matters, EventKind::MatterChanged),
                RecordKind::Task => (Area::Tasks, EventKind::TaskChanged),
                RecordKind::Signal => (Area::Signals, EventKind::SignalSeen),
                // Told by their place in the chain, or of no area.
                RecordKind::Event | RecordKind::Instinct | RecordKind::Stream => continue,
            };
            self.push_event(area, kind, (path.to_string(), String::new()));
        }
        let paused = self.face.read_paused_streams().await?;
        for (stream, now) in &paused {
            if self.place.paused.get(stream).copied().unwrap_or(false) != *now {
                let kind = if *now { EventKind::StreamPaused } else { EventKind::StreamResumed };
                self.push_event(Area::Streams, kind, (stream.clone(), String::new()));
            }
        }
        self.place.paused = paused;
        Ok(())
    }

    fn push_event(&mut self, area: Area, kind: EventKind, (subject, action_id): (String, String)) {
        if area == Area::Unspecified || self.areas.is_empty() || self.areas.contains(&area) {
            let time = Some(encode_moment(Utc::now()));
            self.ready.push_back(WatchEventsResponse {
                time,
                area: area.into(),
                kind: kind.into(),
                subject,
                action_id,
            });
        }
    }
}

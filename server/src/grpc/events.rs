//! `EventsService`: streams what happens in the vault, as it happens.
//!
//! No events are queued. Each stream has its own cursors into the audit chain and the files, and reads newer entries
//! when the caller is ready for them. If a caller falls more than one page behind, it gets an
//! event which says that events were missed, and the stream continues from the current moment.

use super::GrpcService;
use super::invalid_argument;
use super::refusal::{self, build_status};
use super::require_caller;
use super::values::encode_moment;
use crate::access::connection_limit::ConnectionPermit;
use crate::http::app::LIVE_RECHECK_INTERVAL;
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
use steward_vault::index::{IndexError, WrittenRecord};
use tokio::sync::watch;
use tonic::{Code, Request, Response, Status};

/// Most records that are read at once. A stream that is further behind misses events.
const AT_ONCE: u32 = 500;

#[tonic::async_trait]
impl EventsService for GrpcService {
    type WatchEventsStream = BoxStream<'static, Result<WatchEventsResponse, Status>>;

    async fn watch_events(
        &self,
        request: Request<WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        let permit =
            self.acquire_live_permit(&require_caller(&request)?).map_err(|full| refusal::status_from_problem(&full))?;
        let headers = request.metadata().clone().into_headers();
        let areas = parse_areas(&request.into_inner().areas)?;
        let cursor = self.read_event_cursor().await.map_err(refusal::index_error)?;
        let watcher = EventWatcher {
            revision: self.revision.clone(),
            stop: self.stop.clone(),
            service: self.clone(),
            headers,
            _permit: permit,
            areas,
            cursor,
            ready: VecDeque::new(),
            ended: false,
        };
        Ok(Response::new(stream_events(watcher).boxed()))
    }
}

/// Decodes the requested areas; an empty list stands for all.
fn parse_areas(requested: &[i32]) -> Result<Vec<Area>, Status> {
    let area = |number: &i32| Area::try_from(*number).ok().filter(|area| *area != Area::Unspecified);
    requested
        .iter()
        .map(|number| area(number).ok_or_else(|| invalid_argument("`areas` contains an unknown value")))
        .collect()
}

/// How far a stream has come.
struct EventCursor {
    stopped: bool,
    seq: u64,
    files: u64,
    paused: BTreeMap<String, bool>,
}

impl GrpcService {
    /// The cursor of the current moment.
    async fn read_event_cursor(&self) -> Result<EventCursor, IndexError> {
        let revision = self.views.read().open_watcher().await?.current_revision().await?;
        let (seq, files) = (revision.newest_action_seq, revision.files_revision);
        Ok(EventCursor {
            stopped: stop::is_stopped(self.views.root()),
            seq,
            files,
            paused: self.read_paused_streams().await?,
        })
    }

    async fn read_paused_streams(&self) -> Result<BTreeMap<String, bool>, IndexError> {
        let counts = self.views.list_stream_counts().await?;
        Ok(counts.into_iter().map(|count| (count.source, count.paused)).collect())
    }
}

/// The event stream of one caller.
struct EventWatcher {
    service: GrpcService,
    /// The headers of the request, to check again whether the caller may still read.
    headers: HeaderMap,
    _permit: ConnectionPermit<String>,
    areas: Vec<Area>,
    revision: watch::Receiver<LiveRevision>,
    stop: watch::Receiver<bool>,
    cursor: EventCursor,
    ready: VecDeque<WatchEventsResponse>,
    ended: bool,
}

fn stream_events(watcher: EventWatcher) -> impl Stream<Item = Result<WatchEventsResponse, Status>> {
    stream::unfold(watcher, |mut watcher| async move {
        if watcher.ended {
            return None;
        }
        let next = watcher.next().await;
        watcher.ended = next.is_err();
        Some((next, watcher))
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
                || build_status(Code::Unavailable, 503, "the server is stopping: call again and read the lists again");
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return Err(down()),
                changed = self.revision.changed() => changed.map_err(|_| down())?,
                () = tokio::time::sleep(LIVE_RECHECK_INTERVAL) => {}
            }
        }
    }

    fn check_still_allowed(&self) -> Result<(), Status> {
        match self.service.can_still_read(&self.headers) {
            Ok(true) => Ok(()),
            Ok(false) => Err(build_status(Code::Unauthenticated, 401, "the token was revoked")),
            Err(e) => Err(refusal::internal_error(&e.to_string())),
        }
    }

    /// Collects all events since the last call.
    async fn collect_events(&mut self) -> Result<(), IndexError> {
        let stopped = stop::is_stopped(self.service.views.root());
        if stopped != self.cursor.stopped {
            let kind = if stopped { EventKind::Stopped } else { EventKind::Resumed };
            self.push_event(Area::Modes, kind, String::new(), String::new());
            self.cursor.stopped = stopped;
        }
        let filed = self.service.views.actions().list_actions_since(self.cursor.seq, AT_ONCE).await?;
        let written = self.service.views.read().list_records_written_since(self.cursor.files, AT_ONCE + 1).await?;
        if filed.more || written.len() > AT_ONCE as usize {
            self.cursor = self.service.read_event_cursor().await?;
            self.push_event(Area::Unspecified, EventKind::Missed, String::new(), String::new());
            return Ok(());
        }
        for row in filed.rows {
            let kind = if row.resolves.is_some() { EventKind::ResolutionFiled } else { EventKind::ActionFiled };
            self.push_event(Area::Actions, kind, row.target.to_string(), row.id.to_string());
        }
        self.cursor.seq = filed.seq;
        for WrittenRecord { revision, path, kind } in written {
            self.cursor.files = revision;
            let (area, kind) = match kind {
                RecordKind::Matter => (Area::Matters, EventKind::MatterChanged),
                RecordKind::Task => (Area::Tasks, EventKind::TaskChanged),
                RecordKind::Signal => (Area::Signals, EventKind::SignalSeen),
                // Audit records were found by their position in the chain; the others belong to no area.
                RecordKind::Event | RecordKind::Instinct | RecordKind::Stream => continue,
            };
            self.push_event(area, kind, path.to_string(), String::new());
        }
        let paused = self.service.read_paused_streams().await?;
        for (stream, now) in &paused {
            if self.cursor.paused.get(stream).copied().unwrap_or(false) != *now {
                let kind = if *now { EventKind::StreamPaused } else { EventKind::StreamResumed };
                self.push_event(Area::Streams, kind, stream.clone(), String::new());
            }
        }
        self.cursor.paused = paused;
        Ok(())
    }

    fn push_event(&mut self, area: Area, kind: EventKind, subject: String, action_id: String) {
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

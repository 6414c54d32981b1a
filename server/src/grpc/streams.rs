//! `StreamsService`: lists streams, pauses and resumes them.
//!
//! A pause is a mark in the state database, which a worker sees within seconds. Besides a stop, it is the only thing
//! that the server writes by itself. No source is contacted.

use super::GrpcService;
use super::not_found;
use super::page;
use super::refusal;
use super::require_caller;
use super::require_origin;
use super::values::encode_moment;
use crate::access::admission::RequestOrigin;
use crate::http::operator_log;
use crate::views::streams::StreamRow;
use steward_proto::v1;
use steward_proto::v1::streams_service_server::StreamsService;
use steward_vault::files::operator_log::OperatorEventKind;
use tonic::{Request, Response, Status};

const LIST: &str = "streams";

#[tonic::async_trait]
impl StreamsService for GrpcService {
    async fn list_streams(
        &self,
        request: Request<v1::ListStreamsRequest>,
    ) -> Result<Response<v1::ListStreamsResponse>, Status> {
        let request = request.into_inner();
        let (after, size) =
            (page::parse_page_token::<String>(LIST, &request.page_token)?, page::parse_page_size(request.page_size)?);
        let rows = self.list_stream_rows().await?;
        let (rows, next) = page::take_page(rows, after.as_deref(), size, |row| &row.count.source);
        let streams = rows.into_iter().map(encode_stream).collect();
        Ok(Response::new(v1::ListStreamsResponse { streams, next_page_token: page::encode_page_token(LIST, next) }))
    }

    async fn pause_stream(
        &self,
        request: Request<v1::PauseStreamRequest>,
    ) -> Result<Response<v1::PauseStreamResponse>, Status> {
        let (by, origin) = (require_caller(&request)?.name, require_origin(&request)?);
        let stream = Some(self.set_stream_paused(&request.into_inner().name, true, &by, &origin).await?);
        Ok(Response::new(v1::PauseStreamResponse { stream }))
    }

    async fn resume_stream(
        &self,
        request: Request<v1::ResumeStreamRequest>,
    ) -> Result<Response<v1::ResumeStreamResponse>, Status> {
        let (by, origin) = (require_caller(&request)?.name, require_origin(&request)?);
        let stream = Some(self.set_stream_paused(&request.into_inner().name, false, &by, &origin).await?);
        Ok(Response::new(v1::ResumeStreamResponse { stream }))
    }
}

impl GrpcService {
    async fn list_stream_rows(&self) -> Result<Vec<StreamRow>, Status> {
        self.views.list_streams(&self.read_settings().streams).await.map_err(refusal::index_error)
    }

    async fn set_stream_paused(
        &self,
        name: &str,
        paused: bool,
        by: &str,
        origin: &RequestOrigin,
    ) -> Result<v1::Stream, Status> {
        let find = |rows: Vec<StreamRow>| rows.into_iter().find(|row| row.count.source == name);
        let unknown = || not_found("there is no stream with this name");
        let row = find(self.list_stream_rows().await?).ok_or_else(unknown)?;
        if row.count.paused == paused {
            return Ok(encode_stream(row));
        }
        tracing::warn!(
            stream = %row.count.source.escape_debug(),
            paused,
            "stream paused or resumed by {}",
            by.escape_debug()
        );
        let kind = if paused { OperatorEventKind::StreamPaused } else { OperatorEventKind::StreamResumed };
        let recorded = operator_log::record_operator_event(self, by, origin, kind, name.to_owned()).await;
        recorded.map_err(|e| refusal::internal_error(&e.to_string()))?;
        self.set_stream_pause(name, paused).await.map_err(refusal::index_error)?;
        find(self.list_stream_rows().await?).map(encode_stream).ok_or_else(unknown)
    }
}

fn encode_stream(StreamRow { kind, count }: StreamRow) -> v1::Stream {
    v1::Stream {
        name: count.source,
        kind: kind.unwrap_or_default().to_owned(),
        paused: count.paused,
        waiting: count.new,
        extracted: count.extracted,
        parked: count.parked,
        refused: count.refused,
        newest_at: count.newest_at.map(encode_moment),
        waits_since: count.waits_since.map(encode_moment),
        ran_at: count.ran_at.map(encode_moment),
        last_error: count.last_error.unwrap_or_default(),
        failures: count.failures,
    }
}

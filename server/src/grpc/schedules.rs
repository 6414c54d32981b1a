//! `SchedulesService`: lists the schedules at Temporal.
//!
//! Every page is cut from a new listing, after the last id of the page before. So a schedule that was added meanwhile
//! is in its place. Nothing is changed here; the registrar does that.

use super::GrpcService;
use super::page;
use super::parse_record_path;
use super::values::encode_moment;
use crate::grpc::refusal::build_status;
use crate::views::schedules::{self, RecentScheduleRun, SCHEDULE_ID_PREFIX, ScheduleRow};
use chrono::Utc;
use std::time::Duration;
use steward_domain::record::path::RecordKind;
use steward_proto::v1;
use steward_proto::v1::schedules_service_server::SchedulesService;
use steward_vault::files::identity::VaultIdentity;
use tonic::{Code, Request, Response, Status};

const LIST: &str = "schedules";
/// How long a complete listing may take: 20 s.
const PATIENCE: Duration = Duration::from_secs(20);

#[tonic::async_trait]
impl SchedulesService for GrpcService {
    async fn list_schedules(
        &self,
        request: Request<v1::ListSchedulesRequest>,
    ) -> Result<Response<v1::ListSchedulesResponse>, Status> {
        let request = request.into_inner();
        let matter = (!request.matter.is_empty())
            .then(|| parse_record_path(RecordKind::Matter, "matter", &request.matter))
            .transpose()?;
        let (after, size) =
            (page::parse_page_token::<String>(LIST, &request.page_token)?, page::parse_page_size(request.page_size)?);
        let prefix = matter.as_ref().map(steward_workflows::schedule_id);
        let prefix = prefix.as_deref().unwrap_or(SCHEDULE_ID_PREFIX);
        let wanted = self.temporal.names().qualify_id(prefix);
        let listing = schedules::list_schedules(self.temporal.client(), self.temporal.names(), prefix, Utc::now());
        let unavailable = |reason: String| build_status(Code::Unavailable, 503, reason);
        let listed = tokio::time::timeout(PATIENCE, listing).await;
        let listed =
            listed.map_err(|_| unavailable(format!("the listing took longer than {} s", PATIENCE.as_secs())))?;
        let mut rows = listed.map_err(|e| unavailable(e.to_string()))?;
        let ours = VaultIdentity::read(self.views.root()).ok().flatten().map(|identity| identity.id);
        rows.retain(|row| (matter.is_none() || row.id == wanted) && !row.is_of_other_vault(ours));
        let (rows, next) = page::take_page(rows, after.as_deref(), size, |row| &row.id);
        let schedules = rows.into_iter().map(encode_schedule).collect();
        Ok(Response::new(v1::ListSchedulesResponse { schedules, next_page_token: page::encode_page_token(LIST, next) }))
    }
}

fn encode_schedule(row: ScheduleRow) -> v1::Schedule {
    v1::Schedule {
        id: row.id,
        matter: row.matter.unwrap_or_default(),
        interval_seconds: row.interval_seconds,
        phase_seconds: row.phase_seconds,
        paused: row.paused,
        note: row.note,
        next_run: row.next_run.map(encode_moment),
        recent: row.recent.into_iter().map(encode_run).collect(),
    }
}

fn encode_run(run: RecentScheduleRun) -> v1::ScheduleRun {
    v1::ScheduleRun { time: run.at.map(encode_moment), workflow_id: run.workflow_id, status: run.status }
}

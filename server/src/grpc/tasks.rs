//! `TasksService`: lists tasks, with the times of their checks.
//!
//! It reads only the index. A task that cannot be read is not listed here but among the problems of the status. Names
//! are a person's text.

use super::GrpcService;
use super::not_found;
use super::page;
use super::parse_record_path;
use super::refusal;
use super::values::encode_moment;
use crate::grpc::enums;
use steward_domain::record::path::RecordKind;
use steward_proto::v1;
use steward_proto::v1::tasks_service_server::TasksService;
use steward_vault::index::{TaskFilter, TaskRow};
use tonic::{Request, Response, Status};

const LIST: &str = "tasks";

#[tonic::async_trait]
impl TasksService for GrpcService {
    async fn list_tasks(
        &self,
        request: Request<v1::ListTasksRequest>,
    ) -> Result<Response<v1::ListTasksResponse>, Status> {
        let request = request.into_inner();
        let matter =
            (!request.matter.is_empty()).then(|| parse_record_path(RecordKind::Matter, "matter", &request.matter));
        let filter = TaskFilter { matter: matter.transpose()?, state: enums::decode_state_filter(request.state)? };
        let (after, size) =
            (page::parse_page_token::<String>(LIST, &request.page_token)?, page::parse_page_size(request.page_size)?);
        let page = self.views.read().tasks_page(&filter, after.as_deref(), size).await.map_err(refusal::index_error)?;
        let tasks = page.rows.into_iter().map(encode_task).collect();
        Ok(Response::new(v1::ListTasksResponse { tasks, next_page_token: page::encode_page_token(LIST, page.next) }))
    }

    async fn get_task(&self, request: Request<v1::GetTaskRequest>) -> Result<Response<v1::GetTaskResponse>, Status> {
        let path = parse_record_path(RecordKind::Task, "path", &request.into_inner().path)?;
        let row = self.views.read().find_task(&path).await.map_err(refusal::index_error)?;
        let row = row.ok_or_else(|| not_found(&format!("{path}: not in the vault, or it cannot be read")))?;
        Ok(Response::new(v1::GetTaskResponse { task: Some(encode_task(row)) }))
    }
}

fn encode_task(row: TaskRow) -> v1::Task {
    v1::Task {
        path: row.path.to_string(),
        name: row.name,
        matter: row.matter.to_string(),
        state: enums::state(row.state),
        surface_class: enums::surface(row.surface_class),
        due: row.due.map(encode_moment),
        snoozed_until: row.snoozed_until.map(encode_moment),
        last_check_at: row.last_check_at.map(encode_moment),
        next_check_after: row.next_check_after.map(encode_moment),
        outcome: row.outcome.unwrap_or_default(),
        streak: row.streak,
    }
}

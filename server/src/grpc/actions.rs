//! `ActionsService`: lists actions, shows one, and resolves them: undo, confirm, dismiss, edit.
//!
//! Lists come from the index, one record from its file. A resolution is requested through Temporal from the process
//! that holds the vault, and its outcome is awaited; nothing is written here. [`refusal`] encodes refusals.

use super::GrpcService;
use super::invalid_argument;
use super::page;
use super::record;
use super::refusal::{self, internal_error};
use super::require_caller;
use super::values::{decode_moment, encode_moment, encode_value};
use crate::access::AuthenticatedCaller;
use crate::grpc::request;
use crate::http::app::check_may_resolve;
use crate::views::FactsError;
use chrono::Utc;
use steward_domain::action::audit::ResolverKind;
use steward_domain::action::mutation::Mutation;
use steward_domain::action::undo::{ResolutionKind, ResolutionRefusal};
use steward_domain::record::path::RecordPath;
use steward_proto::v1::actions_service_server::ActionsService;
use steward_proto::v1::{self, batch_result};
use steward_vault::action::preview::{FieldUndoOutcome, UndoPreview};
use steward_vault::action::resolve::ResolutionError;
use steward_vault::index::{ActionFilter, ActionSubset, PageCursor};
use steward_vault::tracker::outbox;
use steward_workflows::ResolveBatchInput;
use steward_workflows::ResolveBatchItem;
use steward_workflows::activities::{ResolveInput, ResolveOutput};
use tonic::{Request, Response, Status};

const LIST: &str = "actions";
/// Most actions of one batch.
const MAX_BATCH: usize = 100;
/// Longest part of an unknown id that is returned, in characters.
const LONGEST_ID: usize = 40;

#[tonic::async_trait]
impl ActionsService for GrpcService {
    async fn list_actions(
        &self,
        request: Request<v1::ListActionsRequest>,
    ) -> Result<Response<v1::ListActionsResponse>, Status> {
        let request = request.into_inner();
        let target = if request.target.is_empty() { None } else { Some(RecordPath::parse(&request.target)) };
        let filter = ActionFilter {
            since: request.since.map(|since| decode_moment("since", since)).transpose()?,
            target: target.transpose().map_err(|_| invalid_argument("`target` is not a path like task/name.md"))?,
            only: if request.waiting { ActionSubset::Waiting(Utc::now()) } else { ActionSubset::All },
            ..ActionFilter::default()
        };
        let (before, size) = (
            page::parse_page_token::<PageCursor>(LIST, &request.page_token)?,
            page::parse_page_size(request.page_size)?,
        );
        let page =
            self.views.actions().actions_page(&filter, before.as_ref(), size).await.map_err(refusal::index_error)?;
        let read = self.views.read_records(page.rows).await?;
        let actions = read.iter().map(|(row, read)| record::encode_summary(row, read.as_ref().ok())).collect();
        Ok(Response::new(v1::ListActionsResponse {
            actions,
            next_page_token: page::encode_page_token(LIST, page.next),
        }))
    }

    async fn get_action(
        &self,
        request: Request<v1::GetActionRequest>,
    ) -> Result<Response<v1::GetActionResponse>, Status> {
        let row = self.views.find_action_row(&request.into_inner().id).await?;
        let mut read = self.views.read_records(vec![row]).await?;
        let (row, read) = read.pop().ok_or_else(|| internal_error("the record was not read"))?;
        let record = read.map_err(|reason| refusal::status_from_refusal(&ResolutionRefusal::Record { reason }))?;
        let summary = record::encode_summary(&row, Some(&record));
        let root = self.views.root().clone();
        let encoding = tokio::task::spawn_blocking(move || {
            let delivery = outbox::read_delivery_status(&root, &record);
            delivery.map(|delivery| record::encode_action(summary, &record, delivery.as_ref()))
        });
        let encoded = encoding.await.map_err(|e| internal_error(&e.to_string()))?;
        let action = encoded.map_err(|e| internal_error(&e.to_string()))?;
        Ok(Response::new(v1::GetActionResponse { action: Some(action) }))
    }

    async fn preview_undo(
        &self,
        request: Request<v1::PreviewUndoRequest>,
    ) -> Result<Response<v1::PreviewUndoResponse>, Status> {
        let path = self.views.find_record_path(&request.into_inner().id).await?;
        let views = self.views.clone();
        let previewing = tokio::task::spawn_blocking(move || views.preview_undo(&path, Utc::now()));
        let preview = match previewing.await.map_err(|e| internal_error(&e.to_string()))? {
            Ok(preview) => encode_undo_preview(preview),
            Err(ResolutionError::Refused(
                refusal @ (ResolutionRefusal::Unknown { .. } | ResolutionRefusal::Malformed { .. }),
            )) => {
                return Err(refusal::status_from_refusal(&refusal));
            }
            Err(ResolutionError::Refused(refusal)) => {
                v1::PreviewUndoResponse { refusal: Some(refusal::encode_refusal(&refusal)), ..Default::default() }
            }
            Err(e @ ResolutionError::Apply(_)) => return Err(internal_error(&e.to_string())),
        };
        Ok(Response::new(preview))
    }

    async fn undo_action(
        &self,
        request: Request<v1::UndoActionRequest>,
    ) -> Result<Response<v1::UndoActionResponse>, Status> {
        let caller = require_caller(&request)?;
        let v1::UndoActionRequest { id, reason } = request.into_inner();
        let params = ResolutionParams { kind: ResolutionKind::Undo, edited: None, caller, reason };
        let resolution = Some(self.resolve_action(&id, params).await?);
        Ok(Response::new(v1::UndoActionResponse { resolution }))
    }

    async fn confirm_action(
        &self,
        request: Request<v1::ConfirmActionRequest>,
    ) -> Result<Response<v1::ConfirmActionResponse>, Status> {
        let caller = require_caller(&request)?;
        let v1::ConfirmActionRequest { id, reason } = request.into_inner();
        let params = ResolutionParams { kind: ResolutionKind::Confirm, edited: None, caller, reason };
        let resolution = Some(self.resolve_action(&id, params).await?);
        Ok(Response::new(v1::ConfirmActionResponse { resolution }))
    }

    async fn dismiss_action(
        &self,
        request: Request<v1::DismissActionRequest>,
    ) -> Result<Response<v1::DismissActionResponse>, Status> {
        let caller = require_caller(&request)?;
        let v1::DismissActionRequest { id, reason } = request.into_inner();
        let params = ResolutionParams { kind: ResolutionKind::Dismiss, edited: None, caller, reason };
        let resolution = Some(self.resolve_action(&id, params).await?);
        Ok(Response::new(v1::DismissActionResponse { resolution }))
    }

    async fn edit_and_confirm_action(
        &self,
        request: Request<v1::EditAndConfirmActionRequest>,
    ) -> Result<Response<v1::EditAndConfirmActionResponse>, Status> {
        let caller = require_caller(&request)?;
        let v1::EditAndConfirmActionRequest { id, change, reason } = request.into_inner();
        let edited = Some(request::require_mutation(change)?);
        let params = ResolutionParams { kind: ResolutionKind::Confirm, edited, caller, reason };
        let resolution = Some(self.resolve_action(&id, params).await?);
        Ok(Response::new(v1::EditAndConfirmActionResponse { resolution }))
    }

    async fn resolve_batch(
        &self,
        request: Request<v1::ResolveBatchRequest>,
    ) -> Result<Response<v1::ResolveBatchResponse>, Status> {
        let by = require_caller(&request)?.name;
        let batch = request.into_inner();
        let kind = request::decode_resolution_kind(batch.kind)?;
        let actions = self.read_action_ids(&batch.ids).await?;
        let reason = (!batch.reason.trim().is_empty()).then_some(batch.reason);
        let input = ResolveBatchInput::new(kind, actions, by, reason);
        let outcome = self.resolution_client().request_batch_resolution(input).await;
        let outcome = outcome.map_err(|e| refusal::resolution_error(&e))?;
        let encode_result = |(id, item): (String, ResolveBatchItem)| {
            let result = match encode_resolution(item.resolution) {
                Ok(resolution) => batch_result::Result::Resolution(resolution),
                Err(refusal) => batch_result::Result::Refused(refusal::encode_refusal(&refusal)),
            };
            v1::BatchResult { id, result: Some(result) }
        };
        let results = batch.ids.into_iter().zip(outcome.resolutions).map(encode_result).collect();
        Ok(Response::new(v1::ResolveBatchResponse { batch_id: outcome.batch_id.to_string(), results }))
    }
}

impl GrpcService {
    /// Completes the ids of a batch; each action must be named once. An unknown id is kept, so that it is refused by
    /// itself.
    async fn read_action_ids(&self, requested: &[String]) -> Result<Vec<String>, Status> {
        if !(1..=MAX_BATCH).contains(&requested.len()) {
            let count = requested.len();
            return Err(invalid_argument(&format!("`ids` has {count} entries, expected 1 to {MAX_BATCH}")));
        }
        let mut ids = Vec::with_capacity(requested.len());
        for prefix in requested {
            let id = match self.views.find_action_row(prefix).await {
                Ok(row) => row.id.to_string(),
                Err(e @ FactsError::Index(_)) => return Err(e.into()),
                Err(_) => prefix.chars().take(LONGEST_ID).collect(),
            };
            if ids.contains(&id) {
                return Err(invalid_argument("`ids` names one action twice"));
            }
            ids.push(id);
        }
        Ok(ids)
    }

    async fn resolve_action(
        &self,
        id: &str,
        ResolutionParams { kind, edited, caller, reason }: ResolutionParams,
    ) -> Result<v1::ActionResolution, Status> {
        // The full id is used, so that two prefixes of one id are one resolution.
        let row = self.views.find_action_row(id).await?;
        check_may_resolve(caller.scope, kind, row.kind).map_err(|refused| refusal::status_from_problem(&refused))?;
        let action = row.id.to_string();
        let reason = (!reason.trim().is_empty()).then_some(reason);
        let input = ResolveInput {
            kind,
            action,
            by: caller.name,
            reason,
            edited,
            batch_id: None,
            resolved_by: ResolverKind::Human,
        };
        let outcome = self.resolution_client().request_resolution(input).await;
        encode_resolution(outcome.map_err(|e| refusal::resolution_error(&e))?)
            .map_err(|refusal| refusal::status_from_refusal(&refusal))
    }
}

/// A caller's resolution of an action.
struct ResolutionParams {
    kind: ResolutionKind,
    edited: Option<Mutation>,
    caller: AuthenticatedCaller,
    reason: String,
}

fn encode_resolution(outcome: ResolveOutput) -> Result<v1::ActionResolution, ResolutionRefusal> {
    match outcome {
        ResolveOutput::Done { action_id, record, target, tracker, lowered, .. } => Ok(v1::ActionResolution {
            resolution_id: action_id.to_string(),
            record: record.to_string(),
            target: target.to_string(),
            tracker: tracker.unwrap_or_default(),
            demotions: lowered,
        }),
        ResolveOutput::Refused { refusal, .. } => Err(refusal),
    }
}

fn encode_undo_preview(preview: UndoPreview) -> v1::PreviewUndoResponse {
    let mut response = v1::PreviewUndoResponse {
        undo_first: preview.newer.iter().map(ToString::to_string).collect(),
        tracker: preview.tracker.as_ref().map(ToString::to_string).unwrap_or_default(),
        expires_at: preview.until.map(encode_moment),
        refusal: preview.refusal.as_ref().map(|refused| refusal::encode_refusal(&refused.refusal)),
        ..Default::default()
    };
    for field in preview.fields {
        match field.fate {
            FieldUndoOutcome::Restored => response.restored.push(v1::FieldRestore {
                now: field.now.as_ref().map(encode_value),
                back: field.then.as_ref().map(encode_value),
                field: field.field,
            }),
            FieldUndoOutcome::EditedSince => response.kept.push(v1::FieldKept {
                ours: field.made.as_ref().map(encode_value),
                now: field.now.as_ref().map(encode_value),
                field: field.field,
            }),
            FieldUndoOutcome::AsBefore | FieldUndoOutcome::Untouched => {}
        }
    }
    response
}

//! `ActionsService`: what was decided and done, and a human's answers to it.
//!
//! Lists come from the index, one record from its file. An answer is asked of the process that holds the vault by way of
//! Temporal and waited for; nothing is written here. What is refused is told by [`refusal`].

use super::GrpcService;
use super::invalid_argument;
use super::page;
use super::record;
use super::refusal::{self, internal_error};
use super::require_caller;
use super::values::{decode_moment, encode_moment, encode_value};
use crate::grpc::request;
use crate::views::{FactsError, action};
use chrono::Utc;
use steward_domain::action::mutation::Mutation;
use steward_domain::action::undo::{ResolutionKind, ResolutionRefusal};
use steward_domain::record::path::RecordPath;
use steward_proto::v1::actions_service_server::ActionsService;
use steward_proto::v1::{self, answer_result};
use steward_vault::action::preview::{self, FieldUndoOutcome, UndoPreview};
use steward_vault::action::resolve::ResolutionError;
use steward_vault::index::{ActionFilter, ActionSubset, PageCursor};
use steward_vault::tracker::outbox;
use steward_workflows::ResolveBatchInput;
use steward_workflows::ResolveBatchItem;
use steward_workflows::activities::{ResolveInput, ResolveOutput};
use tonic::{Request, Response, Status};

const LIST: &str = "actions";
/// Most actions that are answered together.
const TOGETHER: usize = 100;
/// Of what names no action so much is told back, in characters.
const LONGEST_NAME: usize = 40;

#[tonic::async_trait]
impl ActionsService for GrpcService {
    async fn list_actions(
        &self,
        request: Request<v1::ListActionsRequest>,
    ) -> Result<Response<v1::ListActionsResponse>, Status> {
        let asked = request.into_inner();
        let target = if asked.target.is_empty() { None } else { Some(RecordPath::parse(&asked.target)) };
        let filter = ActionFilter {
            since: asked.since.map(|since| decode_moment("since", since)).transpose()?,
            target: target.transpose().map_err(|_| invalid_argument("`target` is not a path like task/name.md"))?,
            only: if asked.waiting { ActionSubset::Waiting } else { ActionSubset::All },
            ..ActionFilter::default()
        };
        let (before, size) =
            (page::parse_page_token::<PageCursor>(LIST, &asked.page_token)?, page::parse_page_size(asked.page_size)?);
        let page = self.index.actions_page(&filter, before.as_ref(), size).await.map_err(refusal::index_error)?;
        let read = action::read_records(&self.root, page.rows).await?;
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
        let row = action::find_action_row(&self.index, &request.into_inner().id).await?;
        let mut read = action::read_records(&self.root, vec![row]).await?;
        let (row, read) = read.pop().ok_or_else(|| internal_error("the record was not read"))?;
        let record = read.map_err(|reason| refusal::status_from_refusal(&ResolutionRefusal::Record { reason }))?;
        let summary = record::encode_summary(&row, Some(&record));
        let root = self.root.clone();
        let told = tokio::task::spawn_blocking(move || {
            let standing = outbox::read_delivery_status(&root, &record);
            standing.map(|standing| record::encode_action(summary, &record, standing.as_ref()))
        });
        let told = told.await.map_err(|e| internal_error(&e.to_string()))?;
        let action = told.map_err(|e| internal_error(&e.to_string()))?;
        Ok(Response::new(v1::GetActionResponse { action: Some(action) }))
    }

    async fn preview_undo(
        &self,
        request: Request<v1::PreviewUndoRequest>,
    ) -> Result<Response<v1::PreviewUndoResponse>, Status> {
        let path = action::find_record_path(&self.index, &request.into_inner().id).await?;
        let root = self.root.clone();
        let told = tokio::task::spawn_blocking(move || preview::preview_undo(&root, &path, Utc::now()));
        let preview = match told.await.map_err(|e| internal_error(&e.to_string()))? {
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
        let by = require_caller(&request)?.name;
        let v1::UndoActionRequest { id, reason } = request.into_inner();
        let asked = ResolutionParams { kind: ResolutionKind::Undo, edited: None, by, reason };
        let answered = Some(self.resolve_action(&id, asked).await?);
        Ok(Response::new(v1::UndoActionResponse { answered }))
    }

    async fn confirm_action(
        &self,
        request: Request<v1::ConfirmActionRequest>,
    ) -> Result<Response<v1::ConfirmActionResponse>, Status> {
        let by = require_caller(&request)?.name;
        let v1::ConfirmActionRequest { id, reason } = request.into_inner();
        let asked = ResolutionParams { kind: ResolutionKind::Confirm, edited: None, by, reason };
        let answered = Some(self.resolve_action(&id, asked).await?);
        Ok(Response::new(v1::ConfirmActionResponse { answered }))
    }

    async fn dismiss_action(
        &self,
        request: Request<v1::DismissActionRequest>,
    ) -> Result<Response<v1::DismissActionResponse>, Status> {
        let by = require_caller(&request)?.name;
        let v1::DismissActionRequest { id, reason } = request.into_inner();
        let asked = ResolutionParams { kind: ResolutionKind::Dismiss, edited: None, by, reason };
        let answered = Some(self.resolve_action(&id, asked).await?);
        Ok(Response::new(v1::DismissActionResponse { answered }))
    }

    async fn edit_and_confirm_action(
        &self,
        request: Request<v1::EditAndConfirmActionRequest>,
    ) -> Result<Response<v1::EditAndConfirmActionResponse>, Status> {
        let by = require_caller(&request)?.name;
        let v1::EditAndConfirmActionRequest { id, change, reason } = request.into_inner();
        let edited = Some(request::require_mutation(change)?);
        let asked = ResolutionParams { kind: ResolutionKind::Confirm, edited, by, reason };
        let answered = Some(self.resolve_action(&id, asked).await?);
        Ok(Response::new(v1::EditAndConfirmActionResponse { answered }))
    }

    async fn answer_together(
        &self,
        request: Request<v1::AnswerTogetherRequest>,
    ) -> Result<Response<v1::AnswerTogetherResponse>, Status> {
        let by = require_caller(&request)?.name;
        let asked = request.into_inner();
        let kind = request::decode_resolution_kind(asked.kind)?;
        let actions = self.read_action_ids(&asked.ids).await?;
        let reason = (!asked.reason.trim().is_empty()).then_some(asked.reason);
        let ask = ResolveBatchInput::new(kind, actions, by, reason);
        let all = self.resolution_client().request_batch_resolution(ask).await;
        let all = all.map_err(|e| refusal::resolution_error(&e))?;
        let of = |(id, one): (String, ResolveBatchItem)| {
            let result = match encode_resolution(one.answered) {
                Ok(answered) => answer_result::Result::Answered(answered),
                Err(refusal) => answer_result::Result::Refused(refusal::encode_refusal(&refusal)),
            };
            v1::AnswerResult { id, result: Some(result) }
        };
        let results = asked.ids.into_iter().zip(all.answers).map(of).collect();
        Ok(Response::new(v1::AnswerTogetherResponse { together_id: all.together.to_string(), results }))
    }
}

impl GrpcService {
    /// The ids of actions that are named each once; what is not known goes along, to be refused by itself.
    async fn read_action_ids(&self, named: &[String]) -> Result<Vec<String>, Status> {
        if !(1..=TOGETHER).contains(&named.len()) {
            return Err(invalid_argument(&format!("`ids` are {}, expected 1 to {TOGETHER}", named.len())));
        }
        let mut ids = Vec::with_capacity(named.len());
        for name in named {
            let id = match action::find_action_row(&self.index, name).await {
                Ok(row) => row.id.to_string(),
                Err(e @ FactsError::Index(_)) => return Err(e.into()),
                Err(_) => name.chars().take(LONGEST_NAME).collect(),
            };
            if ids.contains(&id) {
                return Err(invalid_argument("`ids` name one action twice"));
            }
            ids.push(id);
        }
        Ok(ids)
    }

    async fn resolve_action(
        &self,
        id: &str,
        ResolutionParams { kind, edited, by, reason }: ResolutionParams,
    ) -> Result<v1::Answered, Status> {
        // Two beginnings of one id are one answer.
        let action = action::find_action_row(&self.index, id).await?.id.to_string();
        let reason = (!reason.trim().is_empty()).then_some(reason);
        let ask = ResolveInput { kind, action, by, reason, edited, together: None };
        let asked = self.resolution_client().request_resolution(ask).await;
        encode_resolution(asked.map_err(|e| refusal::resolution_error(&e))?)
            .map_err(|refusal| refusal::status_from_refusal(&refusal))
    }
}

/// What somebody says to an action.
struct ResolutionParams {
    kind: ResolutionKind,
    edited: Option<Mutation>,
    by: String,
    reason: String,
}

fn encode_resolution(answered: ResolveOutput) -> Result<v1::Answered, ResolutionRefusal> {
    match answered {
        ResolveOutput::Done { action_id, record, target, tracker, lowered, .. } => Ok(v1::Answered {
            answer_id: action_id.to_string(),
            record: record.to_string(),
            target: target.to_string(),
            tracker: tracker.unwrap_or_default(),
            lowered,
        }),
        ResolveOutput::Refused { refusal, .. } => Err(refusal),
    }
}

fn encode_undo_preview(preview: UndoPreview) -> v1::PreviewUndoResponse {
    let mut told = v1::PreviewUndoResponse {
        undo_first: preview.newer.iter().map(ToString::to_string).collect(),
        tracker: preview.tracker.as_ref().map(ToString::to_string).unwrap_or_default(),
        expires_at: preview.until.map(encode_moment),
        refusal: preview.refusal.as_ref().map(|refused| refusal::encode_refusal(&refused.refusal)),
        ..Default::default()
    };
    for field in preview.fields {
        match field.fate {
            FieldUndoOutcome::Restored => told.restored.push(v1::FieldRestore {
                now: field.now.as_ref().map(encode_value),
                back: field.then.as_ref().map(encode_value),
                field: field.field,
            }),
            FieldUndoOutcome::EditedSince => told.kept.push(v1::FieldKept {
                ours: field.made.as_ref().map(encode_value),
                now: field.now.as_ref().map(encode_value),
                field: field.field,
            }),
            FieldUndoOutcome::AsBefore | FieldUndoOutcome::Untouched => {}
        }
    }
    told
}

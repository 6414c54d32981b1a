//! `ModesService`: the mode, the ceilings and the demotions, and stop and resume.
//!
//! A stop is written here and not through Temporal, as the command and the page do. It must work when nothing else
//! does.

use super::GrpcService;
use super::refusal;
use super::require_caller;
use super::values::encode_moment;
use crate::grpc::enums;
use crate::views::trust::Demotion;
use chrono::Utc;
use steward_domain::action::mutation::MutationClass;
use steward_domain::gates::mode::Mode;
use steward_domain::time;
use steward_domain::trust::mark::{TrustSubject, short_source_name};
use steward_proto::v1;
use steward_proto::v1::modes_service_server::ModesService;
use steward_vault::gates::stop::{self, VaultStop};
use tonic::{Request, Response, Status};

#[tonic::async_trait]
impl ModesService for GrpcService {
    async fn get_modes(&self, _: Request<v1::GetModesRequest>) -> Result<Response<v1::GetModesResponse>, Status> {
        let (policy, stop) = (self.read_settings().policy, stop::read_stop(self.views.root()));
        let ceiling = |class| v1::ClassCeiling {
            change_class: enums::class(class),
            ceiling: enums::ceiling(policy.class_ceiling(class)),
        };
        let in_force = if stop.is_some() { Mode::Shadow } else { policy.mode };
        Ok(Response::new(v1::GetModesResponse {
            configured: enums::mode(policy.mode),
            in_force: enums::mode(in_force),
            stop: stop.map(encode_stop),
            confidence_threshold: policy.confidence_threshold,
            high_confidence_threshold: policy.high_confidence_threshold,
            ceilings: MutationClass::ALL.into_iter().map(ceiling).collect(),
            demotions: self.list_demotions().await?,
        }))
    }

    async fn stop(&self, request: Request<v1::StopRequest>) -> Result<Response<v1::StopResponse>, Status> {
        let by = require_caller(&request)?.name;
        let reason = request.into_inner().reason;
        tracing::warn!("stopped by {}", by.escape_debug());
        let reason = (!reason.trim().is_empty()).then_some(reason);
        let stop = VaultStop { at: time::format_millis(Utc::now()), by, reason };
        let root = self.views.root().clone();
        let stopping =
            tokio::task::spawn_blocking(move || stop::stop_vault(&root, &stop).map(|()| stop::read_stop(&root)));
        let stopped = stopping.await.map_err(|e| refusal::internal_error(&e.to_string()))?;
        let stopped = stopped.map_err(|e| refusal::stop_error(&e))?;
        Ok(Response::new(v1::StopResponse { stop: stopped.map(encode_stop) }))
    }

    async fn resume(&self, request: Request<v1::ResumeRequest>) -> Result<Response<v1::ResumeResponse>, Status> {
        let event = VaultStop { at: time::format_millis(Utc::now()), by: require_caller(&request)?.name, reason: None };
        tracing::warn!("resumed by {}", event.by.escape_debug());
        let root = self.views.root().clone();
        let resuming = tokio::task::spawn_blocking(move || stop::resume_vault(&root, &event));
        let resumed = resuming.await.map_err(|e| refusal::internal_error(&e.to_string()))?;
        let was_stopped = resumed.map_err(|e| refusal::stop_error(&e))?;
        Ok(Response::new(v1::ResumeResponse { was_stopped }))
    }
}

impl GrpcService {
    async fn list_demotions(&self) -> Result<Vec<v1::Demotion>, Status> {
        let mut demotions = Vec::new();
        for Demotion { subject, name, mode, since } in
            self.views.list_demotions().await.map_err(refusal::index_error)?
        {
            let name = match &subject {
                TrustSubject::Source(key) => name.and_then(|name| short_source_name(key, &name)),
                TrustSubject::Class(_) | TrustSubject::UnknownSources => None,
            };
            demotions.push(v1::Demotion {
                subject: subject.to_string(),
                name: name.unwrap_or_default(),
                mode: enums::mode(mode),
                since: Some(encode_moment(since)),
            });
        }
        Ok(demotions)
    }
}

fn encode_stop(stop: VaultStop) -> v1::ActiveStop {
    v1::ActiveStop {
        time: time::parse(&stop.at).map(encode_moment),
        by: stop.by,
        reason: stop.reason.unwrap_or_default(),
    }
}

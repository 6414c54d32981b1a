//! `GuardService`: the state of the rate guard: its counted calls, and whether it would refuse the next one.
//!
//! It reads the ledger that the gates use, and writes and reserves nothing. An unreadable ledger is part of the
//! response, not an error.

use super::GrpcService;
use super::values::encode_moment;
use crate::grpc::enums;
use steward_domain::steward::guard::{
    BackOff, ExhaustedPath, GuardCap, GuardRefusal, GuardStatus, LedgerStatus, Probe, WindowFill,
};
use steward_proto::v1;
use steward_proto::v1::guard_service_server::GuardService;
use tonic::{Request, Response, Status};

#[tonic::async_trait]
impl GuardService for GrpcService {
    async fn get_guard(&self, _: Request<v1::GetGuardRequest>) -> Result<Response<v1::GetGuardResponse>, Status> {
        let GuardStatus { refusal, ledger } = self.read_guard_status().await.unwrap_or_else(build_unreadable_status);
        Ok(Response::new(v1::GetGuardResponse {
            refusal: refusal.map(encode_guard_refusal),
            ledger: ledger.map(encode_ledger),
        }))
    }
}

fn build_unreadable_status() -> GuardStatus {
    let reason = "the ledger could not be opened when this process started: its log says why".to_owned();
    let refusal = GuardRefusal { cap: GuardCap::LedgerUnreadable, clears_at: None, reason };
    GuardStatus { refusal: Some(refusal), ledger: None }
}

fn encode_guard_refusal(GuardRefusal { cap, clears_at, reason }: GuardRefusal) -> v1::GuardRefusal {
    v1::GuardRefusal { cap: enums::cap(cap), clears_at: clears_at.map(encode_moment), reason }
}

fn encode_ledger(ledger: LedgerStatus) -> v1::Ledger {
    v1::Ledger {
        minute: Some(encode_fill(&ledger.minute)),
        hour: Some(encode_fill(&ledger.hour)),
        day: Some(encode_fill(&ledger.day)),
        full_tasks: ledger.full_tasks.iter().map(encode_full_path).collect(),
        full_matters: ledger.full_matters.iter().map(encode_full_path).collect(),
        back_off: ledger.back_off.map(|BackOff { set_at, until }| v1::BackOff {
            set_at: Some(encode_moment(set_at)),
            until: Some(encode_moment(until)),
        }),
        probe: ledger.probe.map(|Probe { since, .. }| v1::Probe { since: Some(encode_moment(since)) }),
        day_prompt_tokens: ledger.day_usage.prompt_tokens,
        day_completion_tokens: ledger.day_usage.completion_tokens,
    }
}

fn encode_fill(fill: &WindowFill) -> v1::Fill {
    v1::Fill { used: fill.used, cap: fill.cap, next_free: fill.next_free.map(encode_moment) }
}

fn encode_full_path(full: &ExhaustedPath) -> v1::FullPath {
    v1::FullPath { path: full.path.clone(), fill: Some(encode_fill(&full.fill)) }
}

//! `StatusService`: how everything stands.
//!
//! The same values as `steward status`, from the index, the holder's note and the outbox. What modes, guard and streams
//! have to tell is with their services.

use super::GrpcService;
use super::refusal;
use super::values::encode_moment;
use crate::http::holder::{HolderRecord, VaultHolder};
use crate::views::drill::NightlyDrillStatus;
use crate::views::tracker::{self, TrackerDebt};
use chrono::Utc;
use steward_proto::v1;
use steward_proto::v1::status_service_server::StatusService;
use steward_vault::index::{IndexError, StateCounts, VaultCounts};
use tonic::{Request, Response, Status};

/// Most problems that are told.
const PROBLEMS: u32 = 500;

#[tonic::async_trait]
impl StatusService for GrpcService {
    async fn get_status(&self, _: Request<v1::GetStatusRequest>) -> Result<Response<v1::GetStatusResponse>, Status> {
        Ok(Response::new(self.read_status().await.map_err(refusal::index_error)?))
    }
}

impl GrpcService {
    async fn read_status(&self) -> Result<v1::GetStatusResponse, IndexError> {
        let now = Utc::now();
        let holder = VaultHolder::read(&self.root, self.index.state_dir());
        let NightlyDrillStatus { last, late } = NightlyDrillStatus::read(&self.index, &holder, now).await?;
        let holder = match holder {
            VaultHolder::Runs(note) => Some(note),
            VaultHolder::Died(_) | VaultHolder::Silent(_) | VaultHolder::Nobody => None,
        };
        let problems = self.index.list_first_problems(PROBLEMS).await?.rows;
        let problem = |it: steward_vault::index::VaultProblem| v1::Problem { path: it.path, message: it.message };
        let settings = self.read_settings();
        let looks = self.index.list_check_counts(now.date_naive()).await?;
        let look = |it: steward_vault::index::CheckCount| v1::LookCount { reason: it.reason, count: it.count };
        Ok(v1::GetStatusResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            vault: self.root.path().display().to_string(),
            drill: Some(v1::Drill { last: last.map(encode_moment), late }),
            process: holder.map(encode_process),
            clerk: settings.clerk,
            counts: Some(encode_counts(&self.index.count_records().await?)),
            looks_today: looks.into_iter().map(look).collect(),
            tracker: Some(encode_tracker_debt(tracker::read_debt(&self.root, &self.index, settings.tracker).await?)),
            problems: problems.into_iter().map(problem).collect(),
            warnings: settings.warnings,
        })
    }
}

fn encode_process(note: HolderRecord) -> v1::Process {
    v1::Process {
        command: note.command,
        pid: note.pid,
        temporal: note.address,
        temporal_ui: note.ui.unwrap_or_default(),
        task_queue: note.task_queue,
    }
}

fn encode_counts(counts: &VaultCounts) -> v1::Counts {
    v1::Counts {
        matters: Some(encode_state_counts(counts.matters)),
        tasks: Some(encode_state_counts(counts.tasks)),
        signals: counts.signals,
        fresh_signals: counts.fresh_signals,
        actions: counts.actions,
        waiting: counts.pending,
        problems: counts.problems,
        last_sync_at: counts.last_sync_at.map(encode_moment),
    }
}

fn encode_state_counts(StateCounts { open, done, archived }: StateCounts) -> v1::ByState {
    v1::ByState { open, done, archived }
}

fn encode_tracker_debt(debt: TrackerDebt) -> v1::TrackerDebt {
    v1::TrackerDebt {
        base_url: debt.base_url.unwrap_or_default(),
        owed: debt.owed as u64,
        failed: debt.failed as u64,
        last_error: debt.last_error.unwrap_or_default(),
    }
}

//! `StatusService`: the status of the vault and its process.
//!
//! The values are those of `steward status`, read from the index, the holder's record and the outbox. Modes, the rate
//! guard and streams have services of their own.

use super::GrpcService;
use super::refusal;
use super::values::encode_moment;
use crate::http::holder::{HolderRecord, VaultHolder};
use crate::views::drill::NightlyDrillStatus;
use crate::views::tracker::TrackerDebt;
use chrono::Utc;
use steward_proto::v1;
use steward_proto::v1::status_service_server::StatusService;
use steward_vault::index::{IndexError, StateCounts, VaultCounts};
use tonic::{Request, Response, Status};

/// Most problems that are listed.
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
        let holder = self.views.holder();
        let NightlyDrillStatus { last, late } = self.views.read_drill_status(now).await?;
        let holder = match holder {
            VaultHolder::Runs(record) => Some(record),
            VaultHolder::Died(_) | VaultHolder::Silent(_) | VaultHolder::Nobody => None,
        };
        let problems = self.views.read().list_first_problems(PROBLEMS).await?.rows;
        let encode_problem =
            |problem: steward_vault::index::VaultProblem| v1::Problem { path: problem.path, message: problem.message };
        let settings = self.read_settings();
        let checks = self.views.list_check_counts(now.date_naive()).await?;
        let encode_check =
            |check: steward_vault::index::CheckCount| v1::CheckCount { reason: check.reason, count: check.count };
        Ok(v1::GetStatusResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            vault: self.views.root().path().display().to_string(),
            drill: Some(v1::Drill { last: last.map(encode_moment), late }),
            process: holder.map(encode_process),
            clerk: settings.clerk,
            counts: Some(encode_counts(&self.views.read().count_records(Utc::now()).await?)),
            checks_today: checks.into_iter().map(encode_check).collect(),
            tracker: Some(encode_tracker_debt(self.views.read_tracker_debt(settings.tracker).await?)),
            problems: problems.into_iter().map(encode_problem).collect(),
            warnings: settings.warnings,
        })
    }
}

fn encode_process(record: HolderRecord) -> v1::Process {
    v1::Process {
        command: record.command,
        pid: record.pid,
        temporal: record.address,
        temporal_ui: record.ui.unwrap_or_default(),
        task_queue: record.task_queue,
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

//! Fake activities under their real names: one task is judged by a clerk, another one is refused by the rate guard.
//!
//! They return fixed results and write nothing, so that a test can check the traces and metrics of a whole tick. Only
//! `settle` fails, so that a failure is logged too.
#![allow(dead_code, unreachable_pub, reason = "the macros make a constant of each activity, for callers")]

use chrono::{DateTime, Utc};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use steward_domain::action::plan::ContentHash;
use steward_domain::gates::mode::{Ceiling, DecisionPolicy};
use steward_domain::record::entity::{RecordState, SurfaceClass};
use steward_domain::record::path::RecordPath;
use steward_domain::steward::clerk::{
    ClerkCallOutcome, ClerkMark, ClerkQuestion, ClerkReply, Judgement, QuestionSubject, Verdict,
};
use steward_domain::steward::guard::{GuardCap, GuardRefusal, ReserveOutcome, ReserveRequest};
use steward_domain::steward::tick::{MatterObservation, RunDisplay, TaskCheck};
use steward_workflows::activities::{ApplyInput, ApplyOutput, JudgeInput, ObserveInput, SettleCallInput};
use temporalio_common::ActivityError;
use temporalio_common::error::ApplicationFailure;
use temporalio_macros::activities;
use temporalio_sdk::activities::ActivityContext;
use tracing::Instrument;

pub(super) const MATTER: &str = "matter/eagle-farm.md";
/// The task that the clerk judges.
pub(super) const JUDGED: &str = "task/book-surveyor.md";
const REFUSED: &str = "task/call-bank.md";

pub(super) struct FakeVault;

#[activities]
impl FakeVault {
    #[activity(definition = steward_workflows::activities::Observe)]
    async fn observe(
        self: Arc<Self>,
        _ctx: ActivityContext,
        input: ObserveInput,
    ) -> Result<MatterObservation, ActivityError> {
        Ok(MatterObservation {
            matter: input.matter,
            observed_at: DateTime::UNIX_EPOCH,
            policy: DecisionPolicy::default(),
            matter_policy: None,
            stopped: false,
            task_checks: vec![build_check(JUDGED), build_check(REFUSED)],
            quiet: 0,
            left_due: 0,
            skipped: BTreeMap::new(),
            signals: 1,
            streak: 0,
            interval_seconds: 1800,
            problems: Vec::new(),
            display: RunDisplay::default(),
        })
    }

    #[activity(definition = steward_workflows::activities::Reserve)]
    async fn reserve(
        self: Arc<Self>,
        _ctx: ActivityContext,
        input: ReserveRequest,
    ) -> Result<ReserveOutcome, ActivityError> {
        if input.task.as_deref() == Some(REFUSED) {
            return Ok(ReserveOutcome::Refused(GuardRefusal {
                cap: GuardCap::Task,
                clears_at: None,
                reason: "enough".into(),
            }));
        }
        let reservation = json!({ "call_id": input.call_id, "reserved_at": Utc::now(), "probe": false });
        Ok(ReserveOutcome::Reserved(serde_json::from_value(reservation).unwrap()))
    }

    #[activity(definition = steward_workflows::activities::Settle)]
    async fn settle(self: Arc<Self>, _ctx: ActivityContext, _ask: SettleCallInput) -> Result<(), ActivityError> {
        let failure = ApplicationFailure::non_retryable(std::io::Error::other("no settling today"));
        Err(ActivityError::Application(Box::new(failure)))
    }

    #[activity(definition = steward_workflows::activities::Release)]
    async fn release(self: Arc<Self>, _ctx: ActivityContext, _run_id: String) -> Result<(), ActivityError> {
        Ok(())
    }

    #[activity(definition = steward_workflows::activities::Apply)]
    async fn apply(self: Arc<Self>, _ctx: ActivityContext, input: ApplyInput) -> Result<ApplyOutput, ActivityError> {
        let span = tracing::info_span!("file write");
        let write = move || span.in_scope(|| tracing::info_span!("rename").in_scope(|| tracing::info!("writing")));
        tokio::task::spawn_blocking(write).await.unwrap();
        let (action_id, disposition) = (input.plan.id().clone(), input.plan.disposition());
        Ok(ApplyOutput::Filed { action_id, record: path("event/steward-action-1.md"), disposition })
    }
}

pub(super) struct FakeClerkWorker;

#[activities]
impl FakeClerkWorker {
    #[activity(definition = steward_workflows::activities::Judge)]
    async fn judge(self: Arc<Self>, _ctx: ActivityContext, input: JudgeInput) -> Result<ClerkReply, ActivityError> {
        let call = async {
            tokio::task::yield_now().await;
            tracing::info!("asking");
        };
        call.instrument(tracing::info_span!("clerk call")).await;
        let evidence = input.question.evidence.iter().map(|e| e.reference.clone()).collect();
        let verdict = Verdict {
            decision: Judgement::LikelyDone,
            confidence: 0.9,
            reasoning: "it is done".into(),
            evidence,
            source_contributions: BTreeMap::new(),
        };
        Ok(ClerkReply { outcome: ClerkCallOutcome::Answered { verdict }, clerk: ClerkMark::default() })
    }
}

fn path(text: &str) -> RecordPath {
    RecordPath::parse(text).unwrap()
}

fn build_check(task: &str) -> TaskCheck {
    let subject = QuestionSubject {
        task: path(task),
        task_name: task.into(),
        matter: path(MATTER),
        matter_name: "Eagle Farm".into(),
        state: RecordState::Open,
        surface_class: SurfaceClass::High,
        due: None,
        description_hash: None,
        last_decision: None,
    };
    TaskCheck {
        question: ClerkQuestion { subject, evidence: Vec::new(), complaint: None, asked_at: DateTime::UNIX_EPOCH },
        before: ContentHash::hash_bytes(b"before"),
        state_as_written: Some("open".into()),
        matter_ceiling: Ceiling::Act,
        further_policies: Vec::new(),
        known_verdict: None,
    }
}

//! Evaluates one task: reserve, ask, settle, decide, apply.
//!
//! Every way it can end is a [`TaskCheckOutcome`]. Nothing here must fail the workflow, so that an error in one task
//! does not stop the others. An invalid answer gets one stricter try with a reservation of its own. After a failed
//! evaluation the task stays due. Evidence that was judged before is not asked about again: its check carries the
//! answer.

use crate::activities::{ApplyInput, ApplyOutput, ClerkActivities, JudgeInput, SettleCallInput, VaultActivities};
use crate::steward::tick::{StewardWorkflow, local_activity_options};
use std::time::{Duration, SystemTime};
use steward_domain::action::audit::WorkflowRef;
use steward_domain::fleet::names::VaultNames;
use steward_domain::gates::matter_policy::MatterPolicy;
use steward_domain::gates::mode::DecisionPolicy;
use steward_domain::record::path::RecordKind;
use steward_domain::steward::clerk::{
    AttributedVerdict, ClerkCallOutcome, ClerkMark, ClerkQuestion, ClerkReply, QuestionSubject, Verdict,
};
use steward_domain::steward::decide::{DecisionCase, decide};
use steward_domain::steward::guard::{
    CallId, CallSource, Reservation, ReserveOutcome, ReserveRequest, Settlement, SettlementOutcome,
};
use steward_domain::steward::tick::{TaskCheck, TaskCheckOutcome, TaskCheckReport, TaskClock};
use temporalio_workflow::{ActivityOptions, RetryPolicy, WorkflowContext};

/// The confidence of a check that the rate guard refused (S3-24).
const REFUSED_CONFIDENCE: f64 = 0.3;
/// Longest time of a clerk call, including the wait for a worker: 85 s.
const CLERK_TIMEOUT: Duration = Duration::from_secs(85);
/// Longest time of a reservation in a fleet, including the wait for its turn: 30 s.
const RESERVE_TIMEOUT: Duration = Duration::from_secs(30);
/// A clerk worker without a heartbeat for this long counts as dead: 10 s.
///
/// Without a heartbeat, a tick would wait the whole [`CLERK_TIMEOUT`] for a process that was killed.
const CLERK_HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(10);

/// The inputs that all evaluations of one round share.
pub(crate) struct EvaluationRound {
    pub(crate) check_id: String,
    pub(crate) policy: DecisionPolicy,
    pub(crate) note: Option<MatterPolicy>,
    pub(crate) caller_says_shadow: bool,
    pub(crate) started: Option<SystemTime>,
    pub(crate) limit: Duration,
}

/// Evaluates one task.
pub(crate) async fn evaluate_task(
    ctx: &WorkflowContext<StewardWorkflow>,
    round: &EvaluationRound,
    check: TaskCheck,
) -> TaskCheckReport {
    let task = check.question.subject.task.clone();
    let outcome = match judge_task(ctx, round, &check).await {
        Ok(judged) => apply_verdict(ctx, round, &check, judged).await,
        Err(outcome) => outcome,
    };
    TaskCheckReport { task, ended: outcome }
}

fn is_time_up(ctx: &WorkflowContext<StewardWorkflow>, round: &EvaluationRound) -> bool {
    let elapsed = |start: SystemTime| ctx.workflow_time().and_then(|now| now.duration_since(start).ok());
    round.started.and_then(elapsed).is_some_and(|elapsed| elapsed > round.limit)
}

async fn judge_task(
    ctx: &WorkflowContext<StewardWorkflow>,
    round: &EvaluationRound,
    check: &TaskCheck,
) -> Result<AttributedVerdict, TaskCheckOutcome> {
    if let Some(known) = &check.known_verdict {
        return Ok(known.clone());
    }
    let mut question = check.question.clone();
    let mut last = ClerkMark::default();
    for attempt in 1..=2 {
        if is_time_up(ctx, round) {
            return Err(TaskCheckOutcome::NoTimeLeft);
        }
        let call = CallId(format!("{}/{}/{attempt}", round.check_id, call_name(&question.subject)));
        let reservation = reserve_call(ctx, &question, call.clone()).await?;
        let reply = ask_clerk(ctx, JudgeInput { reservation, question: question.clone() }).await;
        settle_call(ctx, call, &question, &reply).await;
        let reply = reply.map_err(|reason| TaskCheckOutcome::ClerkFailed { reason })?;
        match reply.outcome {
            ClerkCallOutcome::Answered { verdict } => return Ok(AttributedVerdict { verdict, clerk: reply.clerk }),
            ClerkCallOutcome::BadAnswer { complaint } => {
                question.complaint = Some(complaint);
                last = reply.clerk;
            }
            ClerkCallOutcome::RateLimited { retry_after_seconds } => {
                let reason = match retry_after_seconds {
                    Some(seconds) => format!("the provider asked Steward to wait {seconds} s"),
                    None => "the provider asked Steward to wait".into(),
                };
                return Err(TaskCheckOutcome::ClerkFailed { reason });
            }
            ClerkCallOutcome::Failed { reason } | ClerkCallOutcome::NotSent { reason } => {
                return Err(TaskCheckOutcome::ClerkFailed { reason });
            }
        }
    }
    let complaint = question.complaint.unwrap_or_default();
    Ok(AttributedVerdict { verdict: Verdict::fallback(&complaint), clerk: ClerkMark { fallback: true, ..last } })
}

/// The subject's part of a call's id: the slug of `task/<slug>.md`, and the path of any other note.
fn call_name(subject: &QuestionSubject) -> &str {
    let is_plain_task = subject.task.scanned_kind() == Some(RecordKind::Task);
    if is_plain_task { subject.task.slug() } else { subject.task.as_str() }
}

async fn reserve_call(
    ctx: &WorkflowContext<StewardWorkflow>,
    question: &ClerkQuestion,
    call_id: CallId,
) -> Result<Reservation, TaskCheckOutcome> {
    let request = ReserveRequest {
        call_id,
        task: Some(question.subject.task.to_string()),
        matter: Some(question.subject.matter.to_string()),
        stream: None,
        wiki: None,
        sources: CallSource::from_evidence(&question.evidence),
        tokens: question.estimate_tokens(),
    };
    let summary = format!("reserve a call for {}", question.subject.task);
    let outcome = if VaultNames::is_tenant_queue(ctx.task_queue()) {
        // A fleet's reservation is good for seconds, and commands wait while a local activity of the run is under way.
        ctx.execute_activity(VaultActivities::reserve, request, reserve_options(summary)).await
    } else {
        ctx.execute_local_activity(VaultActivities::reserve, request, local_activity_options(&summary)).await
    };
    match outcome {
        Ok(ReserveOutcome::Reserved(reservation)) => Ok(reservation),
        Ok(ReserveOutcome::Refused(refusal)) => {
            Err(TaskCheckOutcome::RateGuarded { confidence: REFUSED_CONFIDENCE, reason: refusal.reason })
        }
        Err(e) => Err(TaskCheckOutcome::Error { reason: e.to_string() }),
    }
}

/// A reservation is asked for once: another try would spend another call of the provider.
fn reserve_options(summary: String) -> ActivityOptions {
    ActivityOptions::with_schedule_to_close_timeout(RESERVE_TIMEOUT)
        .retry_policy(RetryPolicy::builder().maximum_attempts(1).build())
        .summary(summary)
        .build()
}

/// Asks the clerk once. One reservation is one attempt, so Temporal must not retry the call.
async fn ask_clerk(ctx: &WorkflowContext<StewardWorkflow>, input: JudgeInput) -> Result<ClerkReply, String> {
    let once = RetryPolicy::builder().maximum_attempts(1).build();
    let options = ActivityOptions::with_schedule_to_close_timeout(CLERK_TIMEOUT)
        .task_queue(crate::clerk_queue(ctx.task_queue()))
        .heartbeat_timeout(CLERK_HEARTBEAT_TIMEOUT)
        .retry_policy(once)
        .summary(format!("ask about {}", input.question.subject.task))
        .build();
    ctx.execute_activity(ClerkActivities::judge, input, options).await.map_err(|e| e.to_string())
}

/// Settles a call. An error is ignored, so that it costs no answer: the reservation still counts.
async fn settle_call(
    ctx: &WorkflowContext<StewardWorkflow>,
    call_id: CallId,
    question: &ClerkQuestion,
    reply: &Result<ClerkReply, String>,
) {
    let answered = match reply {
        Ok(ClerkReply { outcome: ClerkCallOutcome::Answered { verdict }, clerk }) => {
            Some((question.clone(), AttributedVerdict { verdict: verdict.clone(), clerk: clerk.clone() }))
        }
        Ok(_) | Err(_) => None,
    };
    let outcome = match reply {
        Ok(ClerkReply { outcome: ClerkCallOutcome::Answered { .. } | ClerkCallOutcome::BadAnswer { .. }, clerk }) => {
            SettlementOutcome::Answered { usage: clerk.tokens }
        }
        Ok(ClerkReply { outcome: ClerkCallOutcome::RateLimited { retry_after_seconds }, .. }) => {
            let retry_after_seconds = retry_after_seconds.map(|s| s as f64);
            SettlementOutcome::RateLimited { retry_after_seconds }
        }
        Ok(ClerkReply { outcome: ClerkCallOutcome::NotSent { .. }, .. }) => SettlementOutcome::NotSent,
        Ok(ClerkReply { outcome: ClerkCallOutcome::Failed { .. }, .. }) | Err(_) => SettlementOutcome::Failed,
    };
    let input = SettleCallInput { settlement: Settlement { call_id, outcome }, answer: answered };
    let options = local_activity_options(&format!("settle the call for {}", question.subject.task));
    let _ = ctx.execute_local_activity(VaultActivities::settle, input, options).await;
}

async fn apply_verdict(
    ctx: &WorkflowContext<StewardWorkflow>,
    round: &EvaluationRound,
    check: &TaskCheck,
    AttributedVerdict { verdict, clerk }: AttributedVerdict,
) -> TaskCheckOutcome {
    let plan = decide(&DecisionCase {
        check,
        policy: &round.policy,
        matter_policy: round.note.as_ref(),
        verdict: &verdict,
        clerk: &clerk,
        caller_says_shadow: round.caller_says_shadow,
        workflow: WorkflowRef { id: ctx.workflow_id().to_owned(), run_id: ctx.run_id().to_owned() },
        // The workflow's time must not be used here. A workflow task that is repeated after a crash has a later time,
        // and the record, which is named after this time, would be filed a second time.
        at: check.question.asked_at,
    });
    let subject = &check.question.subject;
    let input = ApplyInput {
        plan,
        check_id: round.check_id.clone(),
        observed_at: check.question.asked_at,
        clock: TaskClock {
            state: subject.state,
            surface_class: subject.surface_class,
            due: subject.due,
            snoozed_until: None,
        },
        had_signals: !check.question.evidence.is_empty(),
    };
    let options = local_activity_options(&format!("apply the decision on {}", subject.task));
    match ctx.execute_local_activity(VaultActivities::apply, input, options).await {
        Ok(ApplyOutput::Filed { action_id, disposition, .. }) => TaskCheckOutcome::Decided {
            decision: verdict.decision,
            confidence: verdict.confidence,
            disposition,
            action_id,
        },
        Ok(ApplyOutput::ChangedMeanwhile) => TaskCheckOutcome::ChangedMeanwhile,
        Ok(ApplyOutput::Unusable { reason }) => TaskCheckOutcome::Error { reason },
        Ok(ApplyOutput::Stopped) => TaskCheckOutcome::Stopped,
        Err(e) => TaskCheckOutcome::Error { reason: e.to_string() },
    }
}

//! Asks the clerk one labelled case: reserved, asked, kept, settled.
//!
//! A case takes no room of a task or a matter, and it is asked only if it and its second try fit into half of each window of the vault, so that
//! the stewards always have the other half. Kept answers are not used, and none is kept for them. The first 429 ends the measurement.

#[cfg(test)]
mod tests;

use crate::failure::retryable_failure;
use crate::steward::clerks::rules::{judge_by_rules, read_by_rules};
use crate::steward::tick::{StewardActivities, reserve_in_turn};
use crate::vault::run_blocking;
use chrono::Utc;
use std::time::Instant;
use steward_domain::signals::extract::{ExtractAnswer, ExtractOutcome, ExtractQuestion, ExtractReply};
use steward_domain::steward::clerk::{ClerkCallOutcome, ClerkMark, ClerkReply, TokenUsage};
use steward_domain::steward::eval::cases::{CaseQuestion, EvalCase};
use steward_domain::steward::eval::report::{CaseAnswer, CaseOutcome};
use steward_domain::steward::guard::{
    CallId, GuardCap, Reservation, ReserveOutcome, ReserveRequest, Settlement, SettlementOutcome, WindowFill,
};
use steward_vault::steward::eval::ClerkEval;
use steward_workflows::{ClerkEvalInput, ClerkEvalStep};
use temporalio_common::ActivityError;

/// How often a case is asked: a second time if the first answer was outside the form, as in a tick.
const TRIES: u32 = 2;
/// The waits until there may be room in the minute, the hour and the day, and after a call that was not sent, in seconds.
const WAITS: [u64; 3] = [5, 60, 600];
const NOT_SENT_WAIT: u64 = 5;

/// What a measurement needs of its folder.
struct EvalState {
    eval: ClerkEval,
    /// The first case without an answer.
    next: Option<EvalCase>,
}

/// How one try of a case ended.
enum CaseReply {
    Answered(CaseOutcome),
    Bad(String),
    RateLimited(Option<u64>),
    Failed(String),
    NotSent(String),
}

impl StewardActivities {
    pub(crate) async fn ask_next_case(&self, input: &ClerkEvalInput) -> Result<ClerkEvalStep, ActivityError> {
        let end = |reason: &str| Ok(ClerkEvalStep::Ended { reason: reason.to_owned() });
        let (root, id) = (self.vault.writer.root().clone(), input.eval.clone());
        let opened = run_blocking(move || ClerkEval::open(&root, &id)?.map(find_next_case).transpose()).await?;
        let Some(EvalState { eval, next }) = opened.map_err(retryable_failure)? else {
            return end("its folder is gone");
        };
        let Some(case) = next else { return Ok(ClerkEvalStep::Done) };
        if !eval.is_awaited(Utc::now()) {
            return end("nobody waits for it any more");
        }
        if !eval.is_of(&self.clerk.identify()) {
            return end(
                "the process that holds the vault has another clerk, server or version: restart it with this configuration",
            );
        }
        if let Some(reason) = self.vault.find_hold().await {
            return end(&reason);
        }
        let status = self.ledger.status(Utc::now()).await;
        let windows = status.ledger.as_ref().map(|ledger| [&ledger.minute, &ledger.hour, &ledger.day]);
        if let Some(step) = windows.and_then(find_lack_of_room) {
            return Ok(step);
        }
        self.ask_case(eval, case).await
    }

    async fn ask_case(&self, eval: ClerkEval, mut case: EvalCase) -> Result<ClerkEvalStep, ActivityError> {
        let (began, mut tokens) = (Instant::now(), TokenUsage::default());
        let mut tries = 1;
        loop {
            let call = CallId(format!("eval-{}-{}-{tries}-{}", eval.id(), case.id, Utc::now().timestamp_millis()));
            let reservation = match self.reserve_case(&case, call).await {
                Ok(reservation) => reservation,
                Err(step) => return Ok(step),
            };
            let (reply, clerk) = self.send_case(&reservation, &case).await;
            self.settle_case(&reservation, &reply, clerk.tokens).await?;
            tokens.prompt_tokens += clerk.tokens.prompt_tokens;
            tokens.completion_tokens += clerk.tokens.completion_tokens;
            let outcome = match reply {
                CaseReply::Answered(outcome) => outcome,
                CaseReply::Bad(complaint) if tries < TRIES => {
                    case.question.complain(complaint);
                    tries += 1;
                    continue;
                }
                CaseReply::Bad(reason) => CaseOutcome::Unusable { reason },
                CaseReply::RateLimited(seconds) => {
                    let pause = seconds.map(|seconds| format!(" for {seconds} s")).unwrap_or_default();
                    let reason = format!("the provider asked for a pause{pause} (429)");
                    return Ok(ClerkEvalStep::Ended { reason });
                }
                CaseReply::Failed(reason) => {
                    return Ok(ClerkEvalStep::Ended { reason: format!("the clerk gave no answer: {reason}") });
                }
                CaseReply::NotSent(reason) => {
                    tracing::warn!(reason, "a case was not sent");
                    return Ok(ClerkEvalStep::Wait { seconds: NOT_SENT_WAIT });
                }
            };
            let seconds = began.elapsed().as_secs_f64();
            let answer = CaseAnswer { case: case.id, outcome, tokens, seconds, tries };
            run_blocking(move || eval.keep_answer(&answer)).await?.map_err(retryable_failure)?;
            return Ok(ClerkEvalStep::Answered);
        }
    }

    async fn reserve_case(&self, case: &EvalCase, call_id: CallId) -> Result<Reservation, ClerkEvalStep> {
        let tokens = match &case.question {
            CaseQuestion::Task { question, .. } => question.estimate_tokens() + self.clerk.verdict_overhead_tokens(),
            CaseQuestion::Event { question, .. } => self.clerk.estimate_extract_tokens(question),
        };
        let request = ReserveRequest { call_id, tokens, ..ReserveRequest::default() };
        match reserve_in_turn(&self.ledger, &self.clerk, &request).await {
            ReserveOutcome::Reserved(reservation) => Ok(reservation),
            ReserveOutcome::Refused(refusal) => match refusal.cap {
                GuardCap::Minute | GuardCap::Hour | GuardCap::Day | GuardCap::ProbePending | GuardCap::Provider => {
                    Err(ClerkEvalStep::Wait { seconds: WAITS[0] })
                }
                _ => Err(ClerkEvalStep::Ended { reason: refusal.reason }),
            },
        }
    }

    async fn send_case(&self, reservation: &Reservation, case: &EvalCase) -> (CaseReply, ClerkMark) {
        match &case.question {
            CaseQuestion::Task { question, description, .. } => {
                let ClerkReply { outcome, clerk } = self.clerk.ask(reservation, question, description.as_deref()).await;
                (read_verdict(outcome), clerk)
            }
            CaseQuestion::Event { question, .. } => {
                let ExtractReply { outcome, clerk } = self.clerk.extract_signals(reservation, question).await;
                (read_facts(outcome, question), clerk)
            }
        }
    }

    async fn settle_case(
        &self,
        reservation: &Reservation,
        reply: &CaseReply,
        usage: TokenUsage,
    ) -> Result<(), ActivityError> {
        let outcome = match reply {
            CaseReply::Answered(_) | CaseReply::Bad(_) => SettlementOutcome::Answered { usage },
            CaseReply::RateLimited(seconds) => {
                SettlementOutcome::RateLimited { retry_after_seconds: seconds.map(|seconds| seconds as f64) }
            }
            CaseReply::Failed(_) => SettlementOutcome::Failed,
            CaseReply::NotSent(_) => SettlementOutcome::NotSent,
        };
        let settlement = Settlement { call_id: reservation.call_id().clone(), outcome };
        self.ledger.settle(&settlement, Utc::now()).await.map_err(retryable_failure)
    }
}

fn find_next_case(eval: ClerkEval) -> std::io::Result<EvalState> {
    let (cases, answers) = (eval.read_cases()?, eval.read_answers()?);
    let next = cases.into_iter().find(|case| !answers.iter().any(|answer| answer.case == case.id));
    Ok(EvalState { eval, next })
}

/// What comes first, if a case with its second try would take more than half of a window.
fn find_lack_of_room(windows: [&WindowFill; 3]) -> Option<ClerkEvalStep> {
    let is_above_half = |used: u64, cap: u64| used.saturating_add(u64::from(TRIES)).saturating_mul(2) > cap;
    if windows.iter().any(|fill| is_above_half(0, fill.cap.into())) {
        let reason = "half of a window of the rate guard is less than two calls: raise the caps".to_owned();
        return Some(ClerkEvalStep::Ended { reason });
    }
    let is_full = |fill: &WindowFill| is_above_half(fill.used.into(), fill.cap.into());
    let seconds = windows.into_iter().zip(WAITS).filter(|(fill, _)| is_full(fill)).map(|(_, seconds)| seconds).max()?;
    Some(ClerkEvalStep::Wait { seconds })
}

fn read_verdict(outcome: ClerkCallOutcome) -> CaseReply {
    match outcome {
        ClerkCallOutcome::Answered { verdict } => CaseReply::Answered(CaseOutcome::from(&verdict)),
        ClerkCallOutcome::BadAnswer { complaint } => CaseReply::Bad(complaint),
        ClerkCallOutcome::RateLimited { retry_after_seconds } => CaseReply::RateLimited(retry_after_seconds),
        ClerkCallOutcome::Failed { reason } => CaseReply::Failed(reason),
        ClerkCallOutcome::NotSent { reason } => CaseReply::NotSent(reason),
    }
}

fn read_facts(outcome: ExtractOutcome, question: &ExtractQuestion) -> CaseReply {
    match outcome {
        ExtractOutcome::Answered { text } => match ExtractAnswer::parse_answer(&text, question) {
            Ok(answer) => CaseReply::Answered(CaseOutcome::from(&answer)),
            Err(e) => CaseReply::Bad(e.to_string()),
        },
        ExtractOutcome::BadAnswer { complaint } => CaseReply::Bad(complaint),
        ExtractOutcome::RateLimited { retry_after_seconds } => CaseReply::RateLimited(retry_after_seconds),
        ExtractOutcome::Failed { reason, .. } => CaseReply::Failed(reason),
        ExtractOutcome::NotSent { reason } => CaseReply::NotSent(reason),
    }
}

/// What the fixed rules answer to cases. They ask no provider, so no call is reserved and none is counted.
#[must_use]
pub fn answer_by_rules(cases: &[EvalCase]) -> Vec<CaseAnswer> {
    let answer = |case: &EvalCase| {
        let began = Instant::now();
        let outcome = match &case.question {
            CaseQuestion::Task { question, .. } => CaseOutcome::from(&judge_by_rules(question)),
            CaseQuestion::Event { question, .. } => {
                match ExtractAnswer::parse_answer(&read_by_rules(question), question) {
                    Ok(answer) => CaseOutcome::from(&answer),
                    Err(e) => CaseOutcome::Unusable { reason: e.to_string() },
                }
            }
        };
        let seconds = began.elapsed().as_secs_f64();
        CaseAnswer { case: case.id.clone(), outcome, tokens: TokenUsage::default(), seconds, tries: 1 }
    };
    cases.iter().map(answer).collect()
}

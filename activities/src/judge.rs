//! Asking the clerk: the one activity that may leave the machine.
//!
//! It takes a reservation and a question and gives back a value whatever happens; it holds no
//! tool that writes anything.

use std::sync::Arc;
use std::time::Instant;
use steward_domain::clerk::{CallOutcome, Reply};
use steward_workflows::activities::JudgeAsk;
use temporalio_common::ActivityError;
use temporalio_macros::activities;
use temporalio_sdk::activities::ActivityContext;

use crate::clerk::Clerk;

/// The clerk of this process.
pub struct Bench {
    clerk: Clerk,
}

impl Bench {
    /// Seats a clerk.
    #[must_use]
    pub fn new(clerk: Clerk) -> Self {
        Self { clerk }
    }
}

#[activities]
impl Bench {
    #[activity(definition = steward_workflows::activities::Judge)]
    pub async fn judge(self: Arc<Self>, _ctx: ActivityContext, ask: JudgeAsk) -> Result<Reply, ActivityError> {
        let begun = Instant::now();
        let reply = self.clerk.ask(&ask.reservation, &ask.question).await;
        let subject = &ask.question.subject;
        let ended = match &reply.outcome {
            CallOutcome::Answered { verdict } => verdict.decision.word(),
            CallOutcome::BadAnswer { .. } => "bad_answer",
            CallOutcome::RateLimited { .. } => "rate_limited",
            CallOutcome::Failed { .. } => "failed",
        };
        tracing::info!(
            matter = %subject.matter, task = %subject.task, clerk = %reply.clerk.provider, ended,
            elapsed_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX), "clerk asked"
        );
        Ok(reply)
    }
}

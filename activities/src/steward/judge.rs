//! Asking the clerk: the one activity that may leave the machine.
//!
//! It takes a reservation and a question and gives back a value whatever happens; it holds no
//! tool that writes anything.

use crate::failure::retryable_failure;
use crate::steward::clerks::Clerk;
use std::sync::Arc;
use std::time::Duration;
use steward_domain::steward::clerk::ClerkReply;
use steward_workflows::activities::JudgeInput;
use temporalio_common::ActivityError;
use temporalio_macros::activities;
use temporalio_sdk::activities::ActivityContext;
use tracing::Instrument;

/// How often the server is told that a call is still under way: 3 s, well within its patience.
const HEARTBEAT: Duration = Duration::from_secs(3);

/// The clerk of this process. Cheap to clone.
#[derive(Clone)]
pub struct ClerkWorker {
    clerk: Arc<Clerk>,
}

impl ClerkWorker {
    /// Seats a clerk.
    #[must_use]
    pub fn new(clerk: Clerk) -> Self {
        Self { clerk: Arc::new(clerk) }
    }
}

#[activities]
impl ClerkWorker {
    #[activity(definition = steward_workflows::activities::Judge)]
    pub async fn judge(self: Arc<Self>, ctx: ActivityContext, ask: JudgeInput) -> Result<ClerkReply, ActivityError> {
        let span = tracing::info_span!("clerk call");
        let reply = self.clerk.ask(&ask.reservation, &ask.question).instrument(span);
        tokio::select! {
            reply = reply => Ok(reply),
            failed = keep_alive(&ctx) => Err(failed),
        }
    }
}

/// Never ends while the server can be told, so that a worker that died is noticed within seconds.
pub(crate) async fn keep_alive(ctx: &ActivityContext) -> ActivityError {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        if let Err(e) = ctx.record_heartbeat(()).await {
            return retryable_failure(e);
        }
    }
}

/// Works while the server is told of it, and no longer than it wants to hear of it: work that timed out, or whose
/// worker ends, is let go at its next pause, so that nothing of it goes on unseen.
pub(crate) async fn run_until_cancelled<T>(
    ctx: &ActivityContext,
    work: impl Future<Output = Result<T, ActivityError>>,
) -> Result<T, ActivityError> {
    tokio::select! {
        done = work => done,
        failed = keep_alive(ctx) => Err(failed),
        () = ctx.cancelled() => Err(retryable_failure(std::io::Error::other("given up: it took too long, or the worker ends"))),
    }
}

//! Asks the clerk about a task: the only activity of a tick that may leave the machine.
//!
//! It takes a reservation and a question, reads the description of the note, and returns a value however the call ends. It must not
//! write anything, and has nothing to write with.

use crate::failure::retryable_failure;
use crate::steward::clerks::Clerk;
use crate::vault::run_blocking;
use std::sync::Arc;
use std::time::Duration;
use steward_domain::steward::clerk::{ClerkQuestion, ClerkReply, hash_description};
use steward_vault::files::root::VaultRoot;
use steward_vault::steward::description::read_description;
use steward_workflows::activities::JudgeInput;
use temporalio_common::ActivityError;
use temporalio_macros::activities;
use temporalio_sdk::activities::ActivityContext;
use tracing::Instrument;

/// How often a heartbeat says that a call is still under way: 3 s, well within the heartbeat timeout.
const HEARTBEAT: Duration = Duration::from_secs(3);

/// The clerk of this process. Cheap to clone.
#[derive(Clone)]
pub struct ClerkWorker {
    clerk: Arc<Clerk>,
    /// `None` for a process without the vault. Its clerk sees no descriptions, so none of its answers about a note with one is kept.
    vault: Option<VaultRoot>,
}

impl ClerkWorker {
    /// Creates the worker of this clerk.
    #[must_use]
    pub fn new(clerk: Clerk, vault: Option<VaultRoot>) -> Self {
        Self { clerk: Arc::new(clerk), vault }
    }

    /// The description of the note that a question is about, if it is the one that the question means.
    async fn find_description(&self, question: &ClerkQuestion) -> Result<Option<String>, ActivityError> {
        let (Some(root), Some(hash)) = (self.vault.clone(), question.subject.description_hash.clone()) else {
            return Ok(None);
        };
        let note = question.subject.task.clone();
        let read = run_blocking(move || read_description(&root, &note)).await?;
        Ok(read.filter(|text| hash_description(text) == hash))
    }
}

#[activities]
impl ClerkWorker {
    #[activity(definition = steward_workflows::activities::Judge)]
    pub async fn judge(self: Arc<Self>, ctx: ActivityContext, input: JudgeInput) -> Result<ClerkReply, ActivityError> {
        let span = tracing::info_span!("clerk call");
        let description = self.find_description(&input.question).await?;
        let reply = self.clerk.ask(&input.reservation, &input.question, description.as_deref()).instrument(span);
        tokio::select! {
            reply = reply => Ok(reply),
            failed = keep_alive(&ctx) => Err(failed),
        }
    }
}

/// Sends heartbeats, so that a dead worker is noticed within seconds. Ends only when a heartbeat fails.
pub(crate) async fn keep_alive(ctx: &ActivityContext) -> ActivityError {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        if let Err(e) = ctx.record_heartbeat(()).await {
            return retryable_failure(e);
        }
    }
}

/// Runs work with heartbeats until the server cancels it.
///
/// Work that timed out, or whose worker ends, is dropped at its next await, so that none of it goes on unseen.
pub(crate) async fn run_until_cancelled<T>(
    ctx: &ActivityContext,
    work: impl Future<Output = Result<T, ActivityError>>,
) -> Result<T, ActivityError> {
    tokio::select! {
        done = work => done,
        failed = keep_alive(ctx) => Err(failed),
        () = ctx.cancelled() => {
            Err(retryable_failure(std::io::Error::other("cancelled: it took too long, or the worker is ending")))
        }
    }
}

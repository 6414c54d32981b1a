//! Asking the clerk: the one activity that may leave the machine.
//!
//! It takes a reservation and a question and gives back a value whatever happens; it holds no
//! tool that writes anything.

use crate::clerk::Clerk;
use std::sync::Arc;
use steward_domain::clerk::Reply;
use steward_workflows::activities::JudgeAsk;
use temporalio_common::ActivityError;
use temporalio_macros::activities;
use temporalio_sdk::activities::ActivityContext;
use tracing::Instrument;

/// The clerk of this process. Cheap to clone.
#[derive(Clone)]
pub struct Bench {
    clerk: Arc<Clerk>,
}

impl Bench {
    /// Seats a clerk.
    #[must_use]
    pub fn new(clerk: Clerk) -> Self {
        Self { clerk: Arc::new(clerk) }
    }
}

#[activities]
impl Bench {
    #[activity(definition = steward_workflows::activities::Judge)]
    pub async fn judge(self: Arc<Self>, _ctx: ActivityContext, ask: JudgeAsk) -> Result<Reply, ActivityError> {
        let span = tracing::info_span!("clerk call");
        Ok(self.clerk.ask(&ask.reservation, &ask.question).instrument(span).await)
    }
}

//! Activities that read events from streams and turn them into signals.
//!
//! [`streams`] holds one adapter for each kind of stream. [`extract`] reads the events that they store, and [`purge`]
//! removes old ones. Text from a stream stays data: it never becomes an instruction or a path.

pub mod extract;
pub mod purge;
pub mod route;
pub mod streams;

use crate::vault::{VaultContext, read_workflow_ref};
use chrono::Utc;
use std::sync::Arc;
use steward_workflows::activities::{PurgeInput, PurgeOutput, RouteInput, RouteOutput};
use temporalio_common::ActivityError;
use temporalio_macros::activities;
use temporalio_sdk::activities::ActivityContext;
use tokio::sync::Mutex;

/// Routes signals and removes old events.
#[derive(Clone)]
pub struct SignalActivities {
    pub vault: VaultContext,
    /// Held while one signal is routed, because two runs of the router may overlap.
    routing_lock: Arc<Mutex<()>>,
}

impl SignalActivities {
    #[must_use]
    pub fn new(vault: VaultContext) -> Self {
        Self { vault, routing_lock: Arc::default() }
    }
}

#[activities]
impl SignalActivities {
    #[activity(definition = steward_workflows::activities::Route)]
    pub async fn route(self: Arc<Self>, ctx: ActivityContext, input: RouteInput) -> Result<RouteOutput, ActivityError> {
        let routed = self.route_signals(input.limit, read_workflow_ref(&ctx)).await;
        if routed.is_err() && !self.vault.can_write().await {
            self.vault.index.cursors().run_routines_again();
        }
        routed
    }

    #[activity(definition = steward_workflows::activities::Purge)]
    pub async fn purge(
        self: Arc<Self>,
        _ctx: ActivityContext,
        input: PurgeInput,
    ) -> Result<PurgeOutput, ActivityError> {
        purge::purge_events(&self.vault, &input, Utc::now()).await
    }
}

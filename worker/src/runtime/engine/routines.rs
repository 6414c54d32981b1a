//! Triggers the vault's own schedules, all requests for one of them merged.
//!
//! At most one trigger of a schedule is under way, and one more follows when somebody asked meanwhile.
//! What is asked for under a stop is triggered after it. A trigger that fails is not tried again: the
//! schedule comes round by itself.

use super::create_interval;
use super::register::RegistrationLoop;
use crate::registrar::ScheduleTriggerOutcome;
use futures_util::FutureExt;
use std::sync::Arc;
use std::time::Duration;
use steward_workflows::EXTRACT_SCHEDULE;
use steward_workflows::ROUTER_SCHEDULE;
use steward_workflows::TRACKER_SCHEDULE;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval as every};

/// How far apart two triggers of one schedule are at least: 2 s. A run of the router costs the server as
/// much as a tick, and what arrives within seconds is one batch for it.
const TRIGGER_PACE: Duration = Duration::from_secs(2);

/// Where runs of the vault's own schedules are asked for. Cheap to clone; asking costs nothing.
#[derive(Clone, Default)]
pub(super) struct RoutineRequests {
    pub(super) extractor: Arc<Notify>,
    pub(super) router: Arc<Notify>,
    pub(super) tracker: Arc<Notify>,
}

impl RoutineRequests {
    /// Triggers what is asked for until the process ends.
    pub(super) fn spawn_triggers(
        &self,
        registration: &Arc<RegistrationLoop>,
        has_tracker: bool,
        is_stopped: impl Fn() -> bool + Clone + Send + 'static,
    ) -> Vec<JoinHandle<()>> {
        let extractor = (&self.extractor, EXTRACT_SCHEDULE);
        let router = (&self.router, ROUTER_SCHEDULE);
        let tracker = has_tracker.then_some((&self.tracker, TRACKER_SCHEDULE));
        let served = [extractor, router].into_iter().chain(tracker);
        served
            .map(|(requests, id)| {
                let (requests, registration) = (Arc::clone(requests), Arc::clone(registration));
                let trigger = move || trigger_routine(Arc::clone(&registration), id);
                tokio::spawn(trigger_on_request(requests, TRIGGER_PACE, is_stopped.clone(), trigger))
            })
            .collect()
    }
}

/// Triggers once for all requests that have come, and again for those that come meanwhile.
async fn trigger_on_request<F: Future<Output = ()>>(
    requests: Arc<Notify>,
    pace: Duration,
    is_stopped: impl Fn() -> bool,
    trigger: impl Fn() -> F,
) {
    let mut pace = every(pace);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stop_checks = create_interval(1);
    loop {
        requests.notified().await;
        pace.tick().await;
        while is_stopped() {
            stop_checks.tick().await;
        }
        // Whoever asked during the wait is served by this one.
        let _ = requests.notified().now_or_never();
        trigger().await;
    }
}

async fn trigger_routine(registration: Arc<RegistrationLoop>, id: &'static str) {
    match registration.registrar.trigger_schedule(id).await {
        Ok(ScheduleTriggerOutcome::Triggered) => tracing::info!(schedule = id, "triggered"),
        Ok(ScheduleTriggerOutcome::Missing) => {
            tracing::warn!(schedule = id, "not triggered: it is missing at the server; all are registered again");
            registration.request_round();
        }
        Ok(ScheduleTriggerOutcome::Paused | ScheduleTriggerOutcome::OfAnother) => {
            tracing::debug!(schedule = id, "not triggered: paused, or another vault's");
        }
        Err(e) => tracing::warn!(schedule = id, "failed to {e}; it comes round by itself"),
    }
}

#[cfg(test)]
mod tests;

//! Triggers the vault's own schedules, and merges the requests for each of them.
//!
//! At most one trigger of a schedule is in progress. If requests come meanwhile, one more trigger follows. Requests
//! under a stop are served after it. A failed trigger must not be repeated: the schedule fires by itself at its
//! interval.

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

/// The least time between two triggers of one schedule: 2 s. A run of the router costs the server as much as a tick,
/// and it handles everything that arrives within seconds as one batch.
const TRIGGER_INTERVAL: Duration = Duration::from_secs(2);

/// Requests for runs of the vault's own schedules. Cheap to clone; a request costs nothing.
#[derive(Clone, Default)]
pub(super) struct RoutineRequests {
    pub(super) extractor: Arc<Notify>,
    pub(super) router: Arc<Notify>,
    pub(super) tracker: Arc<Notify>,
}

impl RoutineRequests {
    /// Triggers the requested schedules until the process ends.
    pub(super) fn spawn_triggers(
        &self,
        registration: &Arc<RegistrationLoop>,
        has_tracker: bool,
        is_stopped: impl Fn() -> bool + Clone + Send + 'static,
    ) -> Vec<JoinHandle<()>> {
        let extractor = (&self.extractor, EXTRACT_SCHEDULE);
        let router = (&self.router, ROUTER_SCHEDULE);
        let tracker = has_tracker.then_some((&self.tracker, TRACKER_SCHEDULE));
        let schedules = [extractor, router].into_iter().chain(tracker);
        schedules
            .map(|(requests, id)| {
                let (requests, registration) = (Arc::clone(requests), Arc::clone(registration));
                let trigger = move || trigger_routine(Arc::clone(&registration), id);
                tokio::spawn(trigger_on_request(requests, TRIGGER_INTERVAL, is_stopped.clone(), trigger))
            })
            .collect()
    }
}

/// Triggers once for all requests so far, and again for those that come meanwhile.
async fn trigger_on_request<F: Future<Output = ()>>(
    requests: Arc<Notify>,
    interval: Duration,
    is_stopped: impl Fn() -> bool,
    trigger: impl Fn() -> F,
) {
    let mut next_trigger = every(interval);
    next_trigger.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stop_checks = create_interval(1);
    loop {
        requests.notified().await;
        next_trigger.tick().await;
        while is_stopped() {
            stop_checks.tick().await;
        }
        // This trigger also serves the requests that came during the wait.
        let _ = requests.notified().now_or_never();
        trigger().await;
    }
}

async fn trigger_routine(registration: Arc<RegistrationLoop>, id: &'static str) {
    match registration.registrar.trigger_schedule(id).await {
        Ok(ScheduleTriggerOutcome::Triggered) => tracing::info!(schedule = id, "triggered"),
        Ok(ScheduleTriggerOutcome::Missing) => {
            tracing::warn!(schedule = id, "not triggered: it is missing; all schedules will be registered again");
            registration.request_round();
        }
        Ok(ScheduleTriggerOutcome::PausedByUs) => {
            tracing::info!(schedule = id, "not triggered: it will be resumed first, and fires at its interval");
            registration.request_round();
        }
        Ok(ScheduleTriggerOutcome::Paused | ScheduleTriggerOutcome::OfAnother) => {
            tracing::debug!(schedule = id, "not triggered: it is paused or belongs to another vault");
        }
        Err(e) => tracing::warn!(schedule = id, "failed to {e}; the schedule fires by itself at its interval"),
    }
}

#[cfg(test)]
mod tests;

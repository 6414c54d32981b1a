//! Keeps one Temporal schedule per matter: plans the changes, then applies them.
//!
//! [`plan`] decides and is pure. [`facts`] defines what a schedule should contain. [`server`] lists and describes
//! schedules over gRPC, [`edit`] changes one, and [`apply`] carries out a plan. [`routine`] keeps the few schedules
//! that belong to no matter. [`owner`] tells the schedules of one vault from those of another.
//!
//! A failed or partial listing ends the round with an error, and nothing is changed. The registrar must not read the
//! vault: its caller passes the matters in. The command line renders its plans and outcomes.
//!
//! The SDK's own schedule handle is not used: it cannot set timeouts, a catch-up window or a summary, and its update
//! sends no conflict token.

pub(crate) mod desired;
use futures_util::{StreamExt, stream};
use plan::{KnownSchedule, ScheduleContents};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use steward_domain::fleet::names::{DEFAULT_QUEUE, VaultNames};
use steward_fleet::{PermitRefusal, VaultOwnership};
use steward_server::views::schedules;
use steward_vault::files::identity::{VaultId, VaultIdentity};
use temporalio_client::Client;

mod apply;
mod edit;
mod facts;
mod owner;
mod plan;
mod routine;
mod server;
#[cfg(test)]
mod tests;

pub(crate) use apply::RegistrationOutcome;
pub(crate) use edit::ScheduleTriggerOutcome;
pub(crate) use owner::{NamespaceConflict, OwnedSchedule, describe_place};
pub(crate) use plan::{MatterScheduleStatus, SchedulePlan, ScheduleStep, ScheduleStepVerb, WantedMatter};
pub(crate) use routine::RoutineStep;
pub(crate) use server::RegistrarError;

/// What all our schedules have in common, and the limits of a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ScheduleSettings {
    /// The names of the vault at the server. Inside the registrar every id is plain; requests and schedules have whole ones.
    #[serde(skip)]
    pub(crate) names: VaultNames,
    /// The task queue that the workers poll.
    pub(crate) task_queue: String,
    /// The time limit of a tick, including retries.
    pub(crate) execution_timeout: Duration,
    /// The time limit of one run of a tick.
    pub(crate) run_timeout: Duration,
    /// The time limit of a worker for one workflow task.
    pub(crate) workflow_task_timeout: Duration,
    /// Seconds between two ticks of a matter without an interval of its own; at least 1.
    pub(crate) interval_seconds: u32,
    /// The share of the known schedules that a round may delete without a confirmation, in percent.
    pub(crate) deletion_percent: u8,
    /// The number of schedules that a round may always delete without a confirmation, however few are known.
    pub(crate) deletion_floor: usize,
    /// Whether an operator has confirmed deletions above the budget.
    pub(crate) operator_confirmed: bool,
    /// Whether every schedule is described in full, to find changes that our mark does not show.
    ///
    /// It costs a call for each schedule, about 20 ms of the development server however many run at once: a minute and
    /// a half for 5,000. A listing costs one call for a thousand schedules, so a start relies on the listing.
    pub(crate) describe_all: bool,
    /// Whether a tracker is configured, so that debts to it are delivered.
    pub(crate) tracker: bool,
    /// Whether the vault is drained: then its schedules are paused.
    pub(crate) draining: bool,
    /// The vault whose schedules are kept; `None` if it has no id yet.
    pub(crate) owner: Option<VaultIdentity>,
    /// The folder of that vault, for refusals.
    pub(crate) folder: String,
    /// Whether the server's database is in the state folder of this vault. Then a copy of the vault has its own server.
    pub(crate) private_server: bool,
    /// Whether the server has the search attributes of runs. New schedules of matters have them then.
    pub(crate) has_search_attributes: bool,
}

impl ScheduleSettings {
    /// Whether a schedule that names this vault belongs to another vault, so that it must not be changed.
    fn is_foreign_vault(&self, vault: Option<VaultId>) -> bool {
        schedules::is_other_vault(vault, self.owner.as_ref().map(|owner| owner.id))
    }
}

impl Default for ScheduleSettings {
    fn default() -> Self {
        let five_minutes = Duration::from_secs(300);
        Self {
            names: VaultNames::default(),
            task_queue: DEFAULT_QUEUE.to_owned(),
            execution_timeout: five_minutes,
            run_timeout: five_minutes,
            workflow_task_timeout: Duration::from_secs(10),
            interval_seconds: 1800,
            deletion_percent: 20,
            deletion_floor: 3,
            operator_confirmed: false,
            describe_all: false,
            tracker: false,
            draining: false,
            owner: None,
            folder: String::new(),
            private_server: false,
            has_search_attributes: false,
        }
    }
}

/// Receives the progress of a long round: the operation, the number of items done, and the total.
pub(crate) type ProgressCallback = fn(&str, usize, usize);
/// The time between two progress reports: 2 s.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);

/// Keeps the schedules of a vault; cheap to clone.
#[derive(Clone)]
pub(crate) struct ScheduleRegistrar {
    client: Client,
    settings: ScheduleSettings,
    on_progress: ProgressCallback,
    /// Asked before each change; `None` for a vault that belongs to no fleet.
    ownership: Option<VaultOwnership>,
}

/// Reports the progress of one part of a round.
struct ProgressReporter {
    on_progress: ProgressCallback,
    operation: &'static str,
    total: usize,
    done: usize,
    last_report: Instant,
}

impl ProgressReporter {
    fn advance(&mut self) {
        self.done += 1;
        if self.last_report.elapsed() >= REPORT_INTERVAL {
            (self.on_progress)(self.operation, self.done, self.total);
            self.last_report = Instant::now();
        }
    }
}

impl ScheduleRegistrar {
    /// Creates a registrar for the namespace of this client, without progress reports.
    #[must_use]
    pub(crate) fn new(client: Client, settings: ScheduleSettings) -> Self {
        Self { client, settings, on_progress: |_, _, _| (), ownership: None }
    }

    /// Sets who is asked before each change of a schedule.
    #[must_use]
    pub(crate) fn with_ownership(self, ownership: Option<VaultOwnership>) -> Self {
        Self { ownership, ..self }
    }

    /// Asks whether this process may still change schedules.
    async fn check_ownership(&self, id: &str) -> Result<(), RegistrarError> {
        let Some(ownership) = &self.ownership else { return Ok(()) };
        let refused =
            |refusal: PermitRefusal| RegistrarError::NotPermitted { id: id.to_owned(), reason: refusal.to_string() };
        ownership.ensure().await.map(drop).map_err(refused)
    }

    /// Adds progress reports.
    #[must_use]
    pub(crate) fn with_progress(self, on_progress: ProgressCallback) -> Self {
        Self { on_progress, ..self }
    }

    /// Sets whether the vault is drained now.
    #[must_use]
    pub(crate) fn with_drain(mut self, draining: bool) -> Self {
        self.settings.draining = draining;
        self
    }

    fn start_progress(&self, operation: &'static str, total: usize) -> ProgressReporter {
        ProgressReporter { on_progress: self.on_progress, operation, total, done: 0, last_report: Instant::now() }
    }

    /// Lists the schedules once, describes those for which the listing is not enough, and plans.
    ///
    /// `matters` must be all matters of the vault. Nothing is changed. A schedule that cannot be described is kept,
    /// with a warning.
    ///
    /// # Errors
    /// [`RegistrarError::Listing`]: without a complete listing there is no plan.
    pub(crate) async fn plan_matters(&self, matters: &[WantedMatter]) -> Result<SchedulePlan, RegistrarError> {
        let entries = self.list_entries().await?;
        let conflict = self.find_namespace_conflict(&entries);
        let of_matters = entries.into_iter().filter(|entry| entry.schedule_id.starts_with(facts::ID_PREFIX));
        let listed: Vec<KnownSchedule> = of_matters.map(server::known_from_listing).collect();
        let undescribed = plan::find_undescribed(matters, &listed, &self.settings);
        let mut known: BTreeMap<String, KnownSchedule> =
            listed.into_iter().map(|schedule| (schedule.id.clone(), schedule)).collect();
        let mut progress = self.start_progress("schedules described", undescribed.len());
        let mut descriptions = stream::iter(undescribed)
            .map(|id| async move {
                let description = self.describe_schedule(&id).await;
                (id, description)
            })
            .buffer_unordered(apply::AT_ONCE);
        while let Some((id, description)) = descriptions.next().await {
            progress.advance();
            match description {
                Ok(None) => drop(known.remove(&id)),
                Ok(Some(found)) => drop(known.insert(id.clone(), server::known_from_description(&id, found))),
                Err(error) => {
                    if let Some(schedule) = known.get_mut(&id) {
                        schedule.contents = ScheduleContents::Unread(format!("failed to {error}"));
                    }
                }
            }
        }
        let known: Vec<KnownSchedule> = known.into_values().collect();
        Ok(SchedulePlan { conflict, ..plan::plan_matter_schedules(matters, &known, &self.settings) })
    }
}

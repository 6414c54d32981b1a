//! Keeps one Temporal schedule per matter: plans what to change, shows it, carries it out.
//!
//! [`plan`] decides, purely; [`facts`] says what a schedule should hold; [`server`] lists and
//! describes over gRPC and [`edit`] changes; [`apply`] carries a plan out; [`routine`] keeps the few
//! schedules that belong to no matter. A failed or partial
//! listing ends the round with an error and nothing done. [`owner`] tells the schedules of one vault from
//! those of another. It never reads the vault: its caller brings the matters. Outcome and rows go to the CLI, which renders them.
//!
//! The SDK's own schedule handle is not used: it cannot set timeouts, a catch-up window or a
//! summary, and its update sends no conflict token.

pub(crate) mod desired;
use futures_util::{StreamExt, stream};
use plan::{KnownSchedule, ScheduleContents};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
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

/// What every schedule of ours has in common, and how far a round may go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ScheduleSettings {
    /// The task queue that the workers poll.
    pub(crate) task_queue: String,
    /// The longest a tick may take, retries and all.
    pub(crate) execution_timeout: Duration,
    /// The longest one run of a tick may take.
    pub(crate) run_timeout: Duration,
    /// The longest a worker may think about one workflow task.
    pub(crate) workflow_task_timeout: Duration,
    /// Seconds between two ticks of a matter that asks for nothing else; at least 1.
    pub(crate) interval_seconds: u32,
    /// How many of the known schedules a round may delete unasked, in percent.
    pub(crate) deletion_percent: u8,
    /// How many a round may delete unasked, however few are known.
    pub(crate) deletion_floor: usize,
    /// An operator said that deletions above the budget are right.
    pub(crate) operator_confirmed: bool,
    /// Look at every schedule in full, so that a change made beneath our mark shows too.
    ///
    /// It costs a call each, about 20 ms of the development server whatever is asked at once: a minute
    /// and a half for 5,000. A listing costs a call for a thousand; a boot trusts it.
    pub(crate) describe_all: bool,
    /// A tracker is set, so what is owed to it is delivered.
    pub(crate) tracker: bool,
    /// The vault whose schedules are kept; `None` for one that has no id yet.
    pub(crate) owner: Option<VaultIdentity>,
    /// The folder of that vault, to be named in refusals.
    pub(crate) folder: String,
    /// The server keeps its database in the state folder of this vault, so a copy of the vault has a server of its own.
    pub(crate) private_server: bool,
}

impl ScheduleSettings {
    /// Whether a schedule that names this vault is not ours to change.
    fn is_foreign_vault(&self, vault: Option<VaultId>) -> bool {
        schedules::is_other_vault(vault, self.owner.as_ref().map(|owner| owner.id))
    }
}

impl Default for ScheduleSettings {
    fn default() -> Self {
        let five_minutes = Duration::from_secs(300);
        Self {
            task_queue: "steward".to_owned(),
            execution_timeout: five_minutes,
            run_timeout: five_minutes,
            workflow_task_timeout: Duration::from_secs(10),
            interval_seconds: 1800,
            deletion_percent: 20,
            deletion_floor: 3,
            operator_confirmed: false,
            describe_all: false,
            tracker: false,
            owner: None,
            folder: String::new(),
            private_server: false,
        }
    }
}

/// Hears how far a long round has come: what is done, how many of them, of how many.
pub(crate) type ProgressCallback = fn(&str, usize, usize);
/// How often it hears: every 2 s.
const TELL_EVERY: Duration = Duration::from_secs(2);

/// The one that keeps the schedules of a vault; cheap to clone.
#[derive(Clone)]
pub(crate) struct ScheduleRegistrar {
    client: Client,
    settings: ScheduleSettings,
    tell: ProgressCallback,
}

/// How far one part of a round has come.
struct ProgressReporter {
    tell: ProgressCallback,
    what: &'static str,
    of: usize,
    done: usize,
    told: Instant,
}

impl ProgressReporter {
    fn advance(&mut self) {
        self.done += 1;
        if self.told.elapsed() >= TELL_EVERY {
            (self.tell)(self.what, self.done, self.of);
            self.told = Instant::now();
        }
    }
}

impl ScheduleRegistrar {
    /// A registrar for the namespace of this client.
    #[must_use]
    pub(crate) fn new(client: Client, settings: ScheduleSettings) -> Self {
        Self { client, settings, tell: |_, _, _| () }
    }

    /// The same, telling how far it has come.
    #[must_use]
    pub(crate) fn with_progress(self, tell: ProgressCallback) -> Self {
        Self { tell, ..self }
    }

    fn start_progress(&self, what: &'static str, of: usize) -> ProgressReporter {
        ProgressReporter { tell: self.tell, what, of, done: 0, told: Instant::now() }
    }

    /// Lists the schedules once, looks closer at those of which the listing does not say enough, and plans.
    ///
    /// `matters` must be all matters of the vault. Nothing is changed. A schedule that cannot be
    /// looked at is kept, with a warning.
    ///
    /// # Errors
    /// [`RegistrarError::Listing`]: without a whole listing there is no plan.
    pub(crate) async fn plan_matters(&self, matters: &[WantedMatter]) -> Result<SchedulePlan, RegistrarError> {
        let entries = self.list_entries().await?;
        let conflict = self.find_namespace_conflict(&entries);
        let of_matters = entries.into_iter().filter(|entry| entry.schedule_id.starts_with(facts::ID_PREFIX));
        let listed: Vec<KnownSchedule> = of_matters.map(server::known_from_listing).collect();
        let unclear = plan::find_undescribed(matters, &listed, &self.settings);
        let mut known: BTreeMap<String, KnownSchedule> =
            listed.into_iter().map(|schedule| (schedule.id.clone(), schedule)).collect();
        let mut progress = self.start_progress("schedules looked at", unclear.len());
        let mut descriptions = stream::iter(unclear)
            .map(|id| async move {
                let answer = self.describe_schedule(&id).await;
                (id, answer)
            })
            .buffer_unordered(apply::AT_ONCE);
        while let Some((id, answer)) = descriptions.next().await {
            progress.advance();
            match answer {
                Ok(None) => drop(known.remove(&id)),
                Ok(Some(answer)) => drop(known.insert(id.clone(), server::known_from_description(&id, answer))),
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

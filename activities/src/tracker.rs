//! Reports changes of tasks to an issue tracker, and reverts the report after an undo.
//!
//! The audit records hold the debts to the tracker. [`TrackerDispatcher`] delivers them and records the outcome. It
//! must not do anything twice: each step first checks what is there (see `delivery`). Deliveries to one issue follow
//! the order of the audit chain, so that no late one overrides a newer one. The vault never waits for a delivery. Only
//! `plane` knows the tracker's API.

mod delivery;
mod plane;
mod settings;

pub use plane::PlaneClient;
pub use settings::TrackerConfig;

use crate::failure::retryable_failure;
use crate::steward::judge::keep_alive;
use crate::vault::{VaultContext, read_workflow_ref, run_blocking};
use chrono::{DateTime, TimeDelta, Utc};
use plane::PlaneError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use steward_domain::action::audit::{ActionKind, AuditRecord, WorkflowRef};
use steward_domain::action::plan::ActionId;
use steward_domain::tracker::{PlaneAction, TrackerId};
use steward_vault::action::writer::{ApplyError, VaultWriter};
use steward_vault::files::crash;
use steward_vault::index::{ActionLookup, OwedDelivery};
use steward_vault::tracker::outbox::{self, DeliveryProgress};
use steward_workflows::activities::DeliverOutput;
use temporalio_common::ActivityError;
use temporalio_macros::activities;
use temporalio_sdk::activities::ActivityContext;
use tokio::sync::OwnedMutexGuard;
use tracing::Instrument;

/// The wait after the first failed try: 10 s. Each further one is twice as long, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: TimeDelta = TimeDelta::seconds(10);
/// The longest wait between tries that are made often: 1 h.
const LONGEST_PAUSE: TimeDelta = TimeDelta::hours(1);
/// The wait if only a person can fix the failure, or if it has failed for [`PATIENCE`]: 6 h.
const SLOW_PAUSE: TimeDelta = TimeDelta::hours(6);
/// How long a delivery is tried often: 7 days, as long as a change can be undone.
///
/// After that, a delivery to an issue that its project does not have is given up.
const PATIENCE: TimeDelta = TimeDelta::days(7);

/// One lock for each issue. A lock that nobody waits for is removed.
type IssueLocks = Arc<Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>>;

/// Delivers debts to the tracker. Cheap to clone.
#[derive(Clone)]
pub struct TrackerDispatcher {
    vault: VaultContext,
    plane: Arc<PlaneClient>,
    issue_locks: IssueLocks,
    /// The deliveries that this process has tried and failed. All others are tried at once, whatever an earlier process
    /// noted. So an operator restarts the process to have everything tried again.
    tried: Arc<Mutex<BTreeSet<ActionId>>>,
}

/// A record with a debt to the tracker, and the progress of its delivery.
struct DeliveryJob {
    record: AuditRecord,
    progress: DeliveryProgress,
}

impl DeliveryJob {
    fn has_failed_for_long(&self) -> bool {
        self.progress.failing_since.is_some_and(|since| Utc::now() - since > PATIENCE)
    }
}

impl TrackerDispatcher {
    /// Creates a dispatcher from a vault to a tracker.
    #[must_use]
    pub fn new(vault: VaultContext, plane: PlaneClient) -> Self {
        Self { vault, plane: Arc::new(plane), issue_locks: Arc::default(), tried: Arc::default() }
    }

    /// Lists the due deliveries in the order of the audit chain, only the first one of each issue.
    ///
    /// Under a stop and in shadow mode, only the reverts of a person's undo are due.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub async fn list_due_deliveries(&self, limit: usize, now: DateTime<Utc>) -> Result<Vec<ActionId>, ActivityError> {
        if self.plane.quiet_seconds().is_some() {
            return Ok(Vec::new());
        }
        let (mut due, held) = (Vec::new(), self.vault.find_delivery_hold().is_some());
        for (owing, _) in self.list_first_deliveries().await? {
            // An unreadable outbox file is reported by its own delivery. The other deliveries go on.
            let rests = self.access_tried(|tried| tried.contains(&owing.id))
                && self.read_progress(&owing.id).await.is_ok_and(|p| p.next_try.is_some_and(|at| at > now));
            if !rests && (!held || owing.kind == ActionKind::Reversed) {
                due.push(owing.id);
            }
        }
        due.truncate(limit);
        Ok(due)
    }

    /// Delivers or reverts what a record owes to the tracker. A repeated call does nothing twice.
    ///
    /// # Errors
    /// When the vault cannot be read or written. A failure of the tracker is a value.
    pub async fn deliver_once(&self, owing: &ActionId, workflow: WorkflowRef) -> Result<DeliverOutput, ActivityError> {
        let Some(record) = self.find_record(owing).await? else { return Ok(build_settled("nothing is owed")) };
        let Some(issue) = record.plane_action.as_ref().and_then(PlaneAction::owed_issue).cloned() else {
            return Ok(build_settled("nothing is owed"));
        };
        let _guard = self.lock_issue(issue.issue.as_str()).await;
        if let Some(reason) = self.vault.find_ownership_fault().await {
            return Ok(DeliverOutput::Later { reason, held: true });
        }
        if let Some(reason) = self.vault.find_delivery_hold().filter(|_| record.draft.kind != ActionKind::Reversed) {
            return Ok(DeliverOutput::Later { reason: reason.to_owned(), held: true });
        }
        if let Some(outcome) = self.find_outcome(&record).await? {
            return Ok(DeliverOutput::Settled { came: outcome });
        }
        let progress = self.read_progress(owing).await?;
        let job = DeliveryJob { record, progress };
        let ahead = self.list_first_deliveries().await?.iter().any(|(other, project)| {
            let is_same_issue =
                other.issue == issue.issue.as_str() && project.as_ref().is_none_or(|p| *p == issue.project);
            is_same_issue && other.id != *owing
        });
        match self.deliver_or_revert(&job, ahead).await? {
            Ok(action) => self.finish_delivery(&job, &action, workflow).await,
            Err(error @ (PlaneError::Wait(seconds) | PlaneError::Unsure(seconds))) => {
                self.postpone_delivery(job, &error, seconds).await
            }
            Err(error) => self.fail_delivery(job, &error, workflow).await,
        }
    }

    /// Files the outcome, then removes the progress of the delivery.
    async fn finish_delivery(
        &self,
        job: &DeliveryJob,
        outcome: &PlaneAction,
        workflow: WorkflowRef,
    ) -> Result<DeliverOutput, ActivityError> {
        crash::die_if_armed("before-outcome");
        self.file_outcome(job, outcome, workflow).await?;
        crash::die_if_armed("after-outcome");
        let mut done = vec![job.record.draft.id.clone()];
        if let Some(PlaneAction::RevertOwed { action_id: of, .. }) = &job.record.plane_action {
            done.push(of.clone());
        }
        self.run_with_writer(move |writer| done.iter().try_for_each(|id| writer.remove_delivery_progress(id))).await?;
        crash::die_if_armed("after-clearing-outbox");
        self.access_tried(|tried| tried.remove(&job.record.draft.id));
        tracing::info!(
            task = %job.record.draft.target, action_id = %job.record.draft.id,
            "delivered to the tracker: {outcome}"
        );
        Ok(DeliverOutput::Settled { came: outcome.to_string() })
    }

    async fn postpone_delivery(
        &self,
        job: DeliveryJob,
        error: &PlaneError,
        seconds: u64,
    ) -> Result<DeliverOutput, ActivityError> {
        let wait = TimeDelta::seconds(i64::try_from(seconds).unwrap_or(i64::MAX).min(LONGEST_PAUSE.num_seconds()));
        let (id, mut progress) = (job.record.draft.id.clone(), self.read_progress(&job.record.draft.id).await?);
        progress.next_try = Some(Utc::now() + wait);
        self.access_tried(|tried| tried.insert(id.clone()));
        self.run_with_writer(move |writer| writer.write_delivery_progress(&id, &progress)).await?;
        Ok(DeliverOutput::Later {
            reason: self.plane.describe_error(error),
            held: matches!(error, PlaneError::Wait(_)),
        })
    }

    /// Files the first failure as a record, and writes every one to the outbox.
    ///
    /// A week without a tracker must not become a hundred records.
    async fn fail_delivery(
        &self,
        job: DeliveryJob,
        error: &PlaneError,
        workflow: WorkflowRef,
    ) -> Result<DeliverOutput, ActivityError> {
        let (reason, now, id) = (self.plane.describe_error(error), Utc::now(), job.record.draft.id.clone());
        if let Some(issue) = job.record.plane_action.as_ref().and_then(PlaneAction::owed_issue).cloned() {
            self.file_outcome(&job, &PlaneAction::Failed { issue, reason: reason.clone() }, workflow).await?;
        }
        let mut progress = self.read_progress(&id).await?;
        let since = *progress.failing_since.get_or_insert(now);
        let slow = now - since > PATIENCE || !matches!(error, PlaneError::Passing(_));
        progress.next_try = Some(now + if slow { SLOW_PAUSE } else { pause_after_tries(progress.tries) });
        progress.tries = progress.tries.saturating_add(1);
        progress.last_error = Some(reason.clone());
        self.access_tried(|tried| tried.insert(id.clone()));
        tracing::warn!(
            task = %job.record.draft.target, action_id = %id, tries = progress.tries, reason,
            "delivery to the tracker failed"
        );
        self.run_with_writer(move |writer| writer.write_delivery_progress(&id, &progress)).await?;
        Ok(DeliverOutput::Failed { reason })
    }

    /// Files a record about the tracker and updates the index.
    async fn file_outcome(
        &self,
        job: &DeliveryJob,
        outcome: &PlaneAction,
        workflow: WorkflowRef,
    ) -> Result<(), ActivityError> {
        let (owing, outcome) = (job.record.clone(), outcome.clone());
        let receipt = self
            .run_with_writer(move |writer| writer.file_tracker_outcome(&owing, &outcome, workflow, Utc::now()))
            .await?;
        self.vault.reindex_paths(&[&receipt.record]).await
    }

    /// Finds the recorded outcome of a debt. If the action was undone meanwhile, the undo deals with the tracker.
    async fn find_outcome(&self, record: &AuditRecord) -> Result<Option<String>, ActivityError> {
        let owing = record.clone();
        let found = self.run_with_writer(move |writer| {
            let tracked = outbox::find_follower(writer.root(), &owing, ActionKind::Tracked)?;
            let undone = outbox::find_follower(writer.root(), &owing, ActionKind::Reversed)?;
            Ok((tracked, undone))
        });
        Ok(match found.await? {
            (Some((_, tracked)), _) => Some(tracked.plane_action.map_or_else(String::new, |action| action.to_string())),
            (None, Some(_)) => Some("undone meanwhile, so nothing is sent".into()),
            (None, None) => None,
        })
    }

    /// Lists the first debt of each issue, because a later delivery waits for the earlier one, however long that fails.
    ///
    /// The project is included if several debts name an issue of the same id.
    async fn list_first_deliveries(&self) -> Result<Vec<(OwedDelivery, Option<TrackerId>)>, ActivityError> {
        let owing = self.vault.index.actions().list_owed_deliveries().await.map_err(retryable_failure)?;
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for debt in &owing {
            *times.entry(debt.issue.clone()).or_default() += 1;
        }
        let (mut seen, mut firsts) = (BTreeSet::new(), Vec::new());
        for debt in owing {
            let alone = times.get(&debt.issue) == Some(&1);
            let record = if alone { None } else { self.vault.read_record(&debt.record).await? };
            let action = record.and_then(|record| record.plane_action);
            let project = action.as_ref().and_then(PlaneAction::owed_issue).map(|issue| issue.project.clone());
            if seen.insert((debt.issue.clone(), project.clone())) {
                firsts.push((debt, project));
            }
        }
        Ok(firsts)
    }

    async fn find_record(&self, id: &ActionId) -> Result<Option<AuditRecord>, ActivityError> {
        match self.vault.index.actions().find_action(id.as_str()).await.map_err(retryable_failure)? {
            ActionLookup::One(path) => self.vault.read_record(&path).await,
            ActionLookup::None | ActionLookup::Many(_) => Ok(None),
        }
    }

    async fn read_progress(&self, id: &ActionId) -> Result<DeliveryProgress, ActivityError> {
        let id = id.clone();
        self.run_with_writer(move |writer| outbox::read_delivery_progress(writer.root(), &id))
            .await
            .map(Option::unwrap_or_default)
    }

    /// Runs work with the vault writer on a blocking thread.
    async fn run_with_writer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&VaultWriter) -> Result<T, ApplyError> + Send + 'static,
    ) -> Result<T, ActivityError> {
        let writer = Arc::clone(&self.vault.writer);
        run_blocking(move || work(&writer)).await?.map_err(retryable_failure)
    }

    fn access_tried<T>(&self, access: impl FnOnce(&mut BTreeSet<ActionId>) -> T) -> T {
        access(&mut self.tried.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn lock_issue(&self, issue: &str) -> OwnedMutexGuard<()> {
        let issue_lock = {
            let mut locks = self.issue_locks.lock().unwrap_or_else(PoisonError::into_inner);
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            Arc::clone(locks.entry(issue.to_owned()).or_default())
        };
        issue_lock.lock_owned().await
    }
}

fn build_settled(outcome: &str) -> DeliverOutput {
    DeliverOutput::Settled { came: outcome.to_owned() }
}

fn pause_after_tries(tries: u32) -> TimeDelta {
    let doubled = FIRST_PAUSE.checked_mul(1_i32.checked_shl(tries.min(20)).unwrap_or(i32::MAX));
    doubled.map_or(LONGEST_PAUSE, |pause| pause.min(LONGEST_PAUSE))
}

#[activities]
impl TrackerDispatcher {
    #[activity(definition = steward_workflows::activities::Due)]
    pub async fn due(self: Arc<Self>, _ctx: ActivityContext, limit: u32) -> Result<Vec<ActionId>, ActivityError> {
        self.list_due_deliveries(usize::try_from(limit).unwrap_or(usize::MAX), Utc::now()).await
    }

    #[activity(definition = steward_workflows::activities::Deliver)]
    pub async fn deliver(
        self: Arc<Self>,
        ctx: ActivityContext,
        owing: ActionId,
    ) -> Result<DeliverOutput, ActivityError> {
        let span = tracing::info_span!("delivery");
        tokio::select! {
            ended = self.deliver_once(&owing, read_workflow_ref(&ctx)).instrument(span) => ended,
            failed = keep_alive(&ctx) => Err(failed),
        }
    }
}

#[cfg(test)]
mod tests;

//! Telling a tracker what was done to a task that is an issue there, and taking that back after an undo.
//!
//! What is owed stands in the audit records; [`TrackerDispatcher`] delivers it, records what came of it, and never
//! does anything twice: every step can be told from what is there (see `delivery`). Deliveries to one issue
//! follow one another in the order of the chain, so that no late one overrides a newer. The vault never
//! waits for any of this. [`plane`] is the port: all that is known of the tracker's interface.

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

/// The first wait after a try in vain, 10 s; each further one is twice as long, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: TimeDelta = TimeDelta::seconds(10);
/// An hour.
const LONGEST_PAUSE: TimeDelta = TimeDelta::hours(1);
/// The wait where only a person can mend it, and where it has failed for [`PATIENCE`]: 6 h.
const SLOW_PAUSE: TimeDelta = TimeDelta::hours(6);
/// For so long a delivery is tried often: 7 days, as long as a change can be undone. After that one to an
/// issue that its project does not have is given up.
const PATIENCE: TimeDelta = TimeDelta::days(7);

/// One at a time for each issue; those that nobody waits for are let go.
type IssueLocks = Arc<Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>>;

/// Who delivers. Cheap to clone.
#[derive(Clone)]
pub struct TrackerDispatcher {
    host: VaultContext,
    plane: Arc<PlaneClient>,
    turns: IssueLocks,
    /// What this process has tried in vain; the others are tried at once, whatever an earlier one noted, so that a
    /// restart is how an operator has everything tried again.
    tried: Arc<Mutex<BTreeSet<ActionId>>>,
}

/// A record that owes something, and how far that has come.
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
    /// Puts a tracker beside the vault.
    #[must_use]
    pub fn new(host: VaultContext, plane: PlaneClient) -> Self {
        Self { host, plane: Arc::new(plane), turns: Arc::default(), tried: Arc::default() }
    }

    /// Which deliveries are due, in the order of the chain; of one issue only the first.
    ///
    /// While the fleet is stopped that is what a human's undo takes back, and nothing else.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub async fn list_due_deliveries(&self, limit: usize, now: DateTime<Utc>) -> Result<Vec<ActionId>, ActivityError> {
        if self.plane.quiet_seconds().is_some() {
            return Ok(Vec::new());
        }
        let (mut due, stopped) = (Vec::new(), self.host.is_stopped());
        for (owing, _) in self.list_first_deliveries().await? {
            // A note that cannot be read is told by its own delivery, and keeps back no other.
            let rests = self.access_tried(|tried| tried.contains(&owing.id))
                && self.read_progress(&owing.id).await.is_ok_and(|p| p.next_try.is_some_and(|at| at > now));
            if !rests && (!stopped || owing.kind == ActionKind::Reversed) {
                due.push(owing.id);
            }
        }
        due.truncate(limit);
        Ok(due)
    }

    /// Makes what a record owes, or takes it back, once however often it is asked.
    ///
    /// # Errors
    /// When the vault cannot be read or written. What the tracker does is a value.
    pub async fn deliver_once(&self, owing: &ActionId, workflow: WorkflowRef) -> Result<DeliverOutput, ActivityError> {
        let Some(record) = self.find_record(owing).await? else { return Ok(build_settled("nothing is owed")) };
        let Some(issue) = record.plane_action.as_ref().and_then(PlaneAction::owed_issue).cloned() else {
            return Ok(build_settled("nothing is owed"));
        };
        let _turn = self.lock_issue(issue.issue.as_str()).await;
        if self.host.is_stopped() && record.draft.kind != ActionKind::Reversed {
            return Ok(DeliverOutput::Later { reason: "the fleet is stopped".to_owned(), held: true });
        }
        if let Some(came) = self.find_outcome(&record).await? {
            return Ok(DeliverOutput::Settled { came });
        }
        let progress = self.read_progress(owing).await?;
        let job = DeliveryJob { record, progress };
        let ahead = self.list_first_deliveries().await?.iter().any(|(other, project)| {
            let same = other.issue == issue.issue.as_str() && project.as_ref().is_none_or(|p| *p == issue.project);
            same && other.id != *owing
        });
        match self.deliver_or_revert(&job, ahead).await? {
            Ok(action) => self.finish_delivery(&job, &action, workflow).await,
            Err(trouble @ (PlaneError::Wait(seconds) | PlaneError::Unsure(seconds))) => {
                self.postpone_delivery(job, &trouble, seconds).await
            }
            Err(trouble) => self.fail_delivery(job, &trouble, workflow).await,
        }
    }

    /// Files what came, and forgets how it was come by.
    async fn finish_delivery(
        &self,
        job: &DeliveryJob,
        came: &PlaneAction,
        workflow: WorkflowRef,
    ) -> Result<DeliverOutput, ActivityError> {
        crash::die_if_armed("before-outcome");
        self.file_outcome(job, came, workflow).await?;
        crash::die_if_armed("after-outcome");
        let mut done = vec![job.record.draft.id.clone()];
        if let Some(PlaneAction::RevertOwed { of, .. }) = &job.record.plane_action {
            done.push(of.clone());
        }
        self.run_with_writer(move |keeper| done.iter().try_for_each(|id| keeper.remove_delivery_progress(id))).await?;
        crash::die_if_armed("after-clearing-outbox");
        self.access_tried(|tried| tried.remove(&job.record.draft.id));
        tracing::info!(task = %job.record.draft.target, action_id = %job.record.draft.id, "the tracker: {came}");
        Ok(DeliverOutput::Settled { came: came.to_string() })
    }

    async fn postpone_delivery(
        &self,
        job: DeliveryJob,
        trouble: &PlaneError,
        seconds: u64,
    ) -> Result<DeliverOutput, ActivityError> {
        let wait = TimeDelta::seconds(i64::try_from(seconds).unwrap_or(i64::MAX).min(LONGEST_PAUSE.num_seconds()));
        let (id, mut progress) = (job.record.draft.id.clone(), self.read_progress(&job.record.draft.id).await?);
        progress.next_try = Some(Utc::now() + wait);
        self.access_tried(|tried| tried.insert(id.clone()));
        self.run_with_writer(move |keeper| keeper.write_delivery_progress(&id, &progress)).await?;
        Ok(DeliverOutput::Later {
            reason: self.plane.describe_error(trouble),
            held: matches!(trouble, PlaneError::Wait(_)),
        })
    }

    /// Files the first failure and notes every one.
    async fn fail_delivery(
        &self,
        job: DeliveryJob,
        trouble: &PlaneError,
        workflow: WorkflowRef,
    ) -> Result<DeliverOutput, ActivityError> {
        let (reason, now, id) = (self.plane.describe_error(trouble), Utc::now(), job.record.draft.id.clone());
        if let Some(issue) = job.record.plane_action.as_ref().and_then(PlaneAction::owed_issue).cloned() {
            self.file_outcome(&job, &PlaneAction::Failed { issue, reason: reason.clone() }, workflow).await?;
        }
        let mut progress = self.read_progress(&id).await?;
        let since = *progress.failing_since.get_or_insert(now);
        let slow = now - since > PATIENCE || !matches!(trouble, PlaneError::Passing(_));
        progress.next_try = Some(now + if slow { SLOW_PAUSE } else { pause_after_tries(progress.tries) });
        progress.tries = progress.tries.saturating_add(1);
        progress.last_error = Some(reason.clone());
        self.access_tried(|tried| tried.insert(id.clone()));
        tracing::warn!(task = %job.record.draft.target, action_id = %id, tries = progress.tries, reason, "not delivered");
        self.run_with_writer(move |keeper| keeper.write_delivery_progress(&id, &progress)).await?;
        Ok(DeliverOutput::Failed { reason })
    }

    /// Files a record about the tracker and tells the index.
    async fn file_outcome(
        &self,
        job: &DeliveryJob,
        came: &PlaneAction,
        workflow: WorkflowRef,
    ) -> Result<(), ActivityError> {
        let (owing, came) = (job.record.clone(), came.clone());
        let receipt = self
            .run_with_writer(move |keeper| keeper.file_tracker_outcome(&owing, &came, workflow, Utc::now()))
            .await?;
        self.host.reindex_paths(&[&receipt.record]).await
    }

    /// What is recorded to have come of it: for what was undone meanwhile, that is the undo's business.
    async fn find_outcome(&self, record: &AuditRecord) -> Result<Option<String>, ActivityError> {
        let owing = record.clone();
        let found = self.run_with_writer(move |keeper| {
            let tracked = outbox::find_follower(keeper.root(), &owing, ActionKind::Tracked)?;
            let undone = outbox::find_follower(keeper.root(), &owing, ActionKind::Reversed)?;
            Ok((tracked, undone))
        });
        Ok(match found.await? {
            (Some((_, tracked)), _) => Some(tracked.plane_action.map_or_else(String::new, |came| came.to_string())),
            (None, Some(_)) => Some("undone meanwhile, so nothing is sent".into()),
            (None, None) => None,
        })
    }

    /// Of everything that is owed, the first of each issue, with its project where several are owed to issues of
    /// that id: a later delivery waits for the earlier one, however long that fails.
    async fn list_first_deliveries(&self) -> Result<Vec<(OwedDelivery, Option<TrackerId>)>, ActivityError> {
        let owing = self.host.index.list_owed_deliveries().await.map_err(retryable_failure)?;
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for one in &owing {
            *times.entry(one.issue.clone()).or_default() += 1;
        }
        let (mut seen, mut firsts) = (BTreeSet::new(), Vec::new());
        for one in owing {
            let alone = times.get(&one.issue) == Some(&1);
            let record = if alone { None } else { self.host.read_record(&one.record).await? };
            let action = record.and_then(|record| record.plane_action);
            let project = action.as_ref().and_then(PlaneAction::owed_issue).map(|issue| issue.project.clone());
            if seen.insert((one.issue.clone(), project.clone())) {
                firsts.push((one, project));
            }
        }
        Ok(firsts)
    }

    async fn find_record(&self, id: &ActionId) -> Result<Option<AuditRecord>, ActivityError> {
        match self.host.index.find_action(id.as_str()).await.map_err(retryable_failure)? {
            ActionLookup::One(path) => self.host.read_record(&path).await,
            ActionLookup::None | ActionLookup::Many(_) => Ok(None),
        }
    }

    async fn read_progress(&self, id: &ActionId) -> Result<DeliveryProgress, ActivityError> {
        let id = id.clone();
        self.run_with_writer(move |keeper| outbox::read_delivery_progress(keeper.root(), &id))
            .await
            .map(Option::unwrap_or_default)
    }

    /// Does something with the vault where it may block.
    async fn run_with_writer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&VaultWriter) -> Result<T, ApplyError> + Send + 'static,
    ) -> Result<T, ActivityError> {
        let keeper = Arc::clone(&self.host.keeper);
        run_blocking(move || work(&keeper)).await?.map_err(retryable_failure)
    }

    fn access_tried<T>(&self, look: impl FnOnce(&mut BTreeSet<ActionId>) -> T) -> T {
        look(&mut self.tried.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn lock_issue(&self, issue: &str) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(issue.to_owned()).or_default())
        };
        turn.lock_owned().await
    }
}

fn build_settled(came: &str) -> DeliverOutput {
    DeliverOutput::Settled { came: came.to_owned() }
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

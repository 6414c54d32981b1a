//! The activities that workflows ask for, and the shapes that travel.
//!
//! [`VaultActivities`] run in the process that holds the vault, as local activities where they are
//! quick; [`ClerkActivities`] run anywhere in the fleet. Each is idempotent: asked twice, it leaves
//! the state of one run. Names are for good.
// The macro's declarations are bodies that are never called.
#![allow(unreachable_pub, clippy::unimplemented)]

use crate::trust::calibrate::CalibrateOutput;
use crate::trust::drill::DrillOutput;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use steward_domain::action::mutation::Mutation;
use steward_domain::action::plan::{ActionId, Disposition, Plan};
use steward_domain::action::undo::{ResolutionKind, ResolutionRefusal};
use steward_domain::record::path::RecordPath;
use steward_domain::steward::clerk::{AttributedVerdict, ClerkQuestion, ClerkReply};
use steward_domain::steward::guard::{Reservation, ReserveOutcome, ReserveRequest, Settlement};
use steward_domain::steward::tick::{MatterObservation, TaskClock};
use temporalio_common::ActivityError;
use temporalio_macros::activity_definitions;

/// Asks for one look at one matter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObserveInput {
    pub matter: RecordPath,
    /// Names this look: the run's id and the round. The same name gets the same observation.
    pub look_id: String,
}

/// Asks a clerk one question, with the reservation that pays for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgeInput {
    pub reservation: Reservation,
    pub question: ClerkQuestion,
}

/// Tells how a call ended, and what was answered to what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettleCallInput {
    pub settlement: Settlement,
    /// An answer that holds against its question: kept, so that the same evidence costs no second call.
    pub answered: Option<(ClerkQuestion, AttributedVerdict)>,
}

/// Asks for a plan to be carried out and the check to be recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApplyInput {
    pub plan: Plan,
    pub look_id: String,
    /// The moment of the look: later signals stay new.
    pub observed_at: DateTime<Utc>,
    pub clock: TaskClock,
    pub had_signals: bool,
}

/// How applying ended. All of these are values; only trouble with the machine is an error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ApplyOutput {
    Filed {
        action_id: ActionId,
        record: RecordPath,
        landing: Disposition,
    },
    /// A human changed the record since it was judged; nothing was done.
    ChangedMeanwhile,
    /// The record cannot be edited; nothing was done.
    Unusable {
        reason: String,
    },
    /// An operator stopped the fleet: nothing was filed, and the task stays due.
    Stopped,
}

/// A human's answer to an action; the argument of `AnswerWorkflow`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResolveInput {
    pub kind: ResolutionKind,
    /// The action's id, or at least four digits of it that no other action begins with.
    pub action: String,
    pub by: String,
    #[serde(default)]
    pub reason: Option<String>,
    /// For a confirmation: what is to happen instead of what was proposed, the same change to another value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<Mutation>,
    /// Where it is one of several that are given with one click.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<ActionId>,
}

/// How an answer ended; the result of `AnswerWorkflow`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ResolveOutput {
    Done {
        action_id: ActionId,
        record: RecordPath,
        target: RecordPath,
        /// The record that owes something to the tracker now, which is to be done at once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owes: Option<ActionId>,
        /// What was done in the tracker, in words of ours.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tracker: Option<String>,
        /// What an undo took a step back by being one too many, in words of ours.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lowered: Vec<String>,
    },
    /// `status` is the HTTP status of the refusal.
    Refused { status: u16, refusal: ResolutionRefusal, message: String },
}

impl ResolveOutput {
    /// A refusal with its status and its words.
    #[must_use]
    pub fn from_refusal(refusal: ResolutionRefusal) -> Self {
        Self::Refused { status: refusal.http_status(), message: refusal.to_string(), refusal }
    }
}

/// Asks for signals to be routed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteInput {
    /// Most signals of this round.
    pub limit: u32,
}

/// What one round of routing did, or a whole run: the result of `RouterWorkflow`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteOutput {
    /// Actions by how they landed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub landed: BTreeMap<Disposition, u32>,
    /// Signals that were not acted upon, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub skipped: BTreeMap<String, u32>,
    /// What could not be routed now and is tried again; at most 20 are named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// An operator pulled the brake: nothing was routed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// More signals wait for their turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// Most errors that one report names.
const MAX_ERRORS: usize = 20;

impl RouteOutput {
    /// Adds what another round did.
    pub fn add_round(&mut self, other: Self) {
        for (landing, count) in other.landed {
            *self.landed.entry(landing).or_default() += count;
        }
        for (reason, count) in other.skipped {
            *self.skipped.entry(reason).or_default() += count;
        }
        other.errors.into_iter().for_each(|error| self.add_error(error));
        (self.stopped, self.more) = (other.stopped, other.more);
    }

    /// Notes what could not be routed.
    pub fn add_error(&mut self, error: String) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        }
    }
}

/// Asks for some old events to be dropped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PurgeInput {
    /// At most so many.
    pub limit: u32,
}

/// What was dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeOutput {
    pub gone: u64,
    /// There are more of them.
    pub more: bool,
}

/// How the reading of one stream event ended. Its words and what was wrong with them stay in the vault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ExtractEventOutput {
    /// Its signals are written; `cached` where an earlier answer served.
    Done { signals: u32, cached: bool },
    /// It was tried in vain; parked after the third time, with its reason in its file.
    Failed { parked: bool },
    /// The clerk gave no answer, which says nothing about the event: it stays new.
    Unanswered,
    /// No call may be made now: it stays new, and so do the others.
    Held {
        /// Where the provider asked to wait: for how long, in seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_seconds: Option<u32>,
    },
    /// Its sender or its stream has had its share of the calls: it stays new, and others go on.
    OverShare,
    /// It was read already, or is gone.
    NotNew,
}

/// What one run of `ExtractWorkflow` came to, in events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtractReport {
    pub extracted: u32,
    pub signals: u32,
    /// Those of `extracted` that cost no call.
    pub cached: u32,
    pub failed: u32,
    /// Those of `failed` that were given up.
    pub parked: u32,
    pub unanswered: u32,
    /// Left because their sender or stream has had its share of the calls.
    #[serde(default, skip_serializing_if = "is_none")]
    pub over_share: u32,
    /// Activities that were lost or could not read the vault.
    pub errors: u32,
    /// The run ended early because no call may be made.
    pub held: bool,
    /// Not begun in this run.
    pub left: u32,
}

/// How one delivery to the tracker ended. Every word is ours: what the tracker said stays in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DeliverOutput {
    /// Done and recorded, now or before.
    Settled { came: String },
    /// It is tried again by itself.
    Failed { reason: String },
    /// The tracker asked to wait, or another delivery comes first.
    Later { reason: String, held: bool },
}

/// What one run of `TrackerWorkflow` came to, in deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackerReport {
    pub settled: u32,
    pub failed: u32,
    /// Activities that were lost, or could not read or write the vault.
    pub errors: u32,
    /// The tracker asked to wait.
    pub held: bool,
}

fn is_none(count: &u32) -> bool {
    *count == 0
}

/// What happens in the process that holds the vault.
pub struct VaultActivities;

#[activity_definitions]
impl VaultActivities {
    /// Looks at a matter: what is due, which signals are new. Stamps what needs no clerk.
    #[activity(name = "steward.observe")]
    pub fn observe(ask: ObserveInput) -> Result<MatterObservation, ActivityError> {
        unimplemented!()
    }

    /// Asks the rate guard for one clerk call.
    #[activity(name = "steward.reserve")]
    pub fn reserve(ask: ReserveRequest) -> Result<ReserveOutcome, ActivityError> {
        unimplemented!()
    }

    /// Tells the rate guard how a call ended, and keeps what was answered.
    #[activity(name = "steward.settle")]
    pub fn settle(ask: SettleCallInput) -> Result<(), ActivityError> {
        unimplemented!()
    }

    /// Carries out a plan, files its record, records the check.
    #[activity(name = "steward.apply")]
    pub fn apply(ask: ApplyInput) -> Result<ApplyOutput, ActivityError> {
        unimplemented!()
    }

    /// Lets go of the tasks that a run took and did not judge. Argument: the run's id.
    #[activity(name = "steward.release")]
    pub fn release(run_id: String) -> Result<(), ActivityError> {
        unimplemented!()
    }

    /// Routes signals that nobody has acted upon, the oldest first.
    #[activity(name = "steward.route")]
    pub fn route(ask: RouteInput) -> Result<RouteOutput, ActivityError> {
        unimplemented!()
    }

    /// Drops events that were extracted and are older than a week.
    #[activity(name = "steward.purge")]
    pub fn purge(ask: PurgeInput) -> Result<PurgeOutput, ActivityError> {
        unimplemented!()
    }

    /// Takes a step back what was undone too often; waits for nothing else. Result: how many steps.
    #[activity(name = "steward.step_back")]
    pub fn step_back(_: ()) -> Result<u64, ActivityError> {
        unimplemented!()
    }

    /// Brings trust in line with the audit records, as far as one call comes.
    #[activity(name = "steward.calibrate")]
    pub fn calibrate(_: ()) -> Result<CalibrateOutput, ActivityError> {
        unimplemented!()
    }

    /// Makes every class of change on a canary, takes it back, and lowers what is not restored.
    #[activity(name = "steward.drill")]
    pub fn drill(_: ()) -> Result<DrillOutput, ActivityError> {
        unimplemented!()
    }

    /// Takes a human's answer.
    #[activity(name = "steward.answer")]
    pub fn answer(ask: ResolveInput) -> Result<ResolveOutput, ActivityError> {
        unimplemented!()
    }
}

/// The reading of stream events, in the process that holds the vault: no word of them travels.
pub struct ExtractActivities;

#[activity_definitions]
impl ExtractActivities {
    /// Says which events are to be read, at most `limit`.
    #[activity(name = "steward.extract.next")]
    pub fn next(limit: u32) -> Result<Vec<RecordPath>, ActivityError> {
        unimplemented!()
    }

    /// Reads one event: asks the clerk, checks, writes its signals.
    #[activity(name = "steward.extract.event")]
    pub fn event(event: RecordPath) -> Result<ExtractEventOutput, ActivityError> {
        unimplemented!()
    }
}

/// The way to the tracker, in the process that holds the vault; only where a tracker is set.
pub struct TrackActivities;

#[activity_definitions]
impl TrackActivities {
    /// Says which deliveries are due, at most `limit`, in the order of the chain.
    #[activity(name = "steward.track.next")]
    pub fn due(limit: u32) -> Result<Vec<ActionId>, ActivityError> {
        unimplemented!()
    }

    /// Makes one delivery, or takes one back. Argument: the record that owes it.
    #[activity(name = "steward.track.deliver")]
    pub fn deliver(owing: ActionId) -> Result<DeliverOutput, ActivityError> {
        unimplemented!()
    }
}

/// What happens anywhere in the fleet.
pub struct ClerkActivities;

#[activity_definitions]
impl ClerkActivities {
    /// Asks the clerk once.
    #[activity(name = "steward.judge")]
    pub fn judge(ask: JudgeInput) -> Result<ClerkReply, ActivityError> {
        unimplemented!()
    }
}

pub use clerk_activities::Judge;
pub use extract_activities::{Event, Next};
pub use track_activities::{Deliver, Due};
pub use vault_activities::{
    Answer, Apply, Calibrate, Drill, Observe, Purge, Release, Reserve, Route, Settle, StepBack,
};

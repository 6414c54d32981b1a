//! Declares the activities of the workflows, with their inputs and outputs.
//!
//! [`VaultActivities`] run in the process that holds the vault, the quick ones as local activities.
//! [`ClerkActivities`] run anywhere in the fleet. Each activity is idempotent: a second call leaves the state of one
//! call. Activity names and field names stand in recorded histories, so they must not change.
// The macro's declarations are bodies that are never called.
#![allow(unreachable_pub, clippy::unimplemented)]

mod resolution;

use crate::steward::eval::{ClerkEvalInput, ClerkEvalStep};
use crate::trust::calibrate::CalibrateOutput;
use crate::trust::drill::DrillOutput;
use crate::trust::set_ceiling::{SetCeilingInput, SetCeilingOutput};
use crate::wiki::assistant::AssistantRunInput;
use crate::wiki::change::{WikiRunInput, WikiRunOutput};
use crate::wiki::eval::{EvalInput, EvalTurnInput};
use crate::wiki::file_back::FileAnswerInput;
use crate::wiki::ingest::{CommitIngestOutput, IngestInput, SendTurnInput, SendTurnOutput, StageIngestOutput};
use crate::wiki::query::{AnswerQuestionInput, AnswerQuestionOutput};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use steward_domain::action::plan::{ActionId, Disposition, Plan};
use steward_domain::record::path::RecordPath;
use steward_domain::steward::clerk::{AttributedVerdict, ClerkQuestion, ClerkReply};
use steward_domain::steward::guard::{Reservation, ReserveOutcome, ReserveRequest, Settlement};
use steward_domain::steward::tick::{MatterObservation, TaskClock};
use steward_domain::wiki::run::RunId;
use temporalio_common::ActivityError;
use temporalio_macros::activity_definitions;

/// The input of one check of one matter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObserveInput {
    pub matter: RecordPath,
    /// The id of this check: the run's id and the round. The same id gets the same observation.
    #[serde(rename = "look_id")]
    pub check_id: String,
}

/// One question to a clerk, with the reservation of its call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgeInput {
    pub reservation: Reservation,
    pub question: ClerkQuestion,
}

/// How a clerk call ended, and the answer with its question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettleCallInput {
    pub settlement: Settlement,
    /// A valid answer with its question. It is cached, so that the same evidence costs no second call.
    pub answer: Option<(ClerkQuestion, AttributedVerdict)>,
}

/// A plan to apply, and the check to record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApplyInput {
    pub plan: Plan,
    #[serde(rename = "look_id")]
    pub check_id: String,
    /// The time of the check. Later signals stay new.
    pub observed_at: DateTime<Utc>,
    pub clock: TaskClock,
    pub had_signals: bool,
}

/// How the application of a plan ended. All of these are values; only a failure of the machine is an error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ApplyOutput {
    Filed {
        action_id: ActionId,
        record: RecordPath,
        disposition: Disposition,
    },
    /// A person changed the record since it was judged. Nothing was done.
    ChangedMeanwhile,
    /// The record cannot be edited. Nothing was done.
    Unusable {
        reason: String,
    },
    /// An operator stopped the vault. Nothing was filed, and the task stays due.
    Stopped,
}

/// The input of one step of the purge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PurgeInput {
    /// Most events of this step.
    pub limit: u32,
}

/// The number of removed events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeOutput {
    pub gone: u64,
    /// More old events are left.
    pub more: bool,
}

/// How the extraction of one stream event ended. The event's text and the errors about it stay in the vault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ExtractEventOutput {
    /// Its signals are written; `cached` means that an earlier answer was used.
    Done { signals: u32, cached: bool },
    /// It failed. After the third failure it is parked, with the reason in its file.
    Failed { parked: bool },
    /// The clerk gave no answer, which is not the event's fault. The event stays new.
    Unanswered,
    /// No call may be made now. This event and all others stay new.
    Held {
        /// How long to wait within the run, in seconds; `None` if the next run tries again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_seconds: Option<u32>,
    },
    /// The share of its sender or stream is used up. The event stays new, and others go on.
    OverShare,
    /// It is not new any more, or it is gone.
    NotNew,
}

/// The result of one run of `ExtractWorkflow`, in numbers of events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtractReport {
    pub extracted: u32,
    pub signals: u32,
    /// How many of `extracted` cost no call.
    pub cached: u32,
    pub failed: u32,
    /// How many of `failed` were given up.
    pub parked: u32,
    pub unanswered: u32,
    /// Events that were left because the share of their sender or stream is used up.
    #[serde(default, skip_serializing_if = "is_none")]
    pub over_share: u32,
    /// Activities that were lost, or that could not read the vault.
    pub errors: u32,
    /// The run ended early because no call may be made.
    pub held: bool,
    /// Events that were not begun in this run.
    pub left: u32,
}

/// How one delivery to the tracker ended. All texts are ours; the tracker's responses stay in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DeliverOutput {
    /// The delivery is done and recorded, now or earlier.
    Settled { came: String },
    /// The delivery failed. It is tried again automatically.
    Failed { reason: String },
    /// The tracker asked to wait (`held`), or another delivery comes first.
    Later { reason: String, held: bool },
}

/// The result of one run of `TrackerWorkflow`, in numbers of deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackerReport {
    pub settled: u32,
    pub failed: u32,
    /// Activities that were lost, or that could not read or write the vault.
    pub errors: u32,
    /// The run ended early because the tracker asked to wait.
    pub held: bool,
}

fn is_none(count: &u32) -> bool {
    *count == 0
}

/// The activities of the process that holds the vault.
pub struct VaultActivities;

#[activity_definitions]
impl VaultActivities {
    /// Checks a matter: which tasks are due and which signals are new. Schedules the next check of tasks without a
    /// clerk.
    #[activity(name = "steward.observe")]
    pub fn observe(input: ObserveInput) -> Result<MatterObservation, ActivityError> {
        unimplemented!()
    }

    /// Reserves one clerk call at the rate guard.
    #[activity(name = "steward.reserve")]
    pub fn reserve(input: ReserveRequest) -> Result<ReserveOutcome, ActivityError> {
        unimplemented!()
    }

    /// Reports to the rate guard how a call ended, and caches the answer.
    #[activity(name = "steward.settle")]
    pub fn settle(input: SettleCallInput) -> Result<(), ActivityError> {
        unimplemented!()
    }

    /// Applies a plan, files its record and records the check.
    #[activity(name = "steward.apply")]
    pub fn apply(input: ApplyInput) -> Result<ApplyOutput, ActivityError> {
        unimplemented!()
    }

    /// Releases the leases on tasks that a run did not judge. Argument: the run's id.
    #[activity(name = "steward.release")]
    pub fn release(run_id: String) -> Result<(), ActivityError> {
        unimplemented!()
    }

    /// Routes signals that nothing has handled yet, the oldest first.
    #[activity(name = "steward.route")]
    pub fn route(input: RouteInput) -> Result<RouteOutput, ActivityError> {
        unimplemented!()
    }

    /// Removes events that were extracted and are older than the configured age.
    #[activity(name = "steward.purge")]
    pub fn purge(input: PurgeInput) -> Result<PurgeOutput, ActivityError> {
        unimplemented!()
    }

    /// Demotes what was undone too often. It waits for nothing else. Result: the number of demotions.
    #[activity(name = "steward.step_back")]
    pub fn step_back(_: ()) -> Result<u64, ActivityError> {
        unimplemented!()
    }

    /// Calibrates trust from the audit records, as far as the time of one call allows.
    #[activity(name = "steward.calibrate")]
    pub fn calibrate(_: ()) -> Result<CalibrateOutput, ActivityError> {
        unimplemented!()
    }

    /// Makes and undoes every class of change on a canary, and demotes the classes that are not restored.
    #[activity(name = "steward.drill")]
    pub fn drill(_: ()) -> Result<DrillOutput, ActivityError> {
        unimplemented!()
    }

    /// Sets the ceiling of a sender, as a person wished.
    #[activity(name = "steward.set_ceiling")]
    pub fn set_ceiling(input: SetCeilingInput) -> Result<SetCeilingOutput, ActivityError> {
        unimplemented!()
    }

    /// Files a person's resolution.
    #[activity(name = "steward.answer")]
    pub fn answer(input: ResolveInput) -> Result<ResolveOutput, ActivityError> {
        unimplemented!()
    }

    /// Changes a wiki as a person asked.
    #[activity(name = "steward.wiki.change")]
    pub fn change_wiki(input: WikiRunInput) -> Result<WikiRunOutput, ActivityError> {
        unimplemented!()
    }

    /// Stages the pages of a source.
    #[activity(name = "steward.wiki.stage")]
    pub fn stage_ingest(input: IngestInput) -> Result<StageIngestOutput, ActivityError> {
        unimplemented!()
    }

    /// Stages the page of an answer.
    #[activity(name = "steward.wiki.stage_answer")]
    pub fn stage_answer(input: FileAnswerInput) -> Result<StageIngestOutput, ActivityError> {
        unimplemented!()
    }

    /// Stages a run that an assistant has submitted.
    #[activity(name = "steward.wiki.stage_assistant")]
    pub fn stage_assistant(input: AssistantRunInput) -> Result<StageIngestOutput, ActivityError> {
        unimplemented!()
    }

    /// Stages the page of a review.
    #[activity(name = "steward.wiki.stage_review")]
    pub fn stage_review(input: EvalInput) -> Result<StageIngestOutput, ActivityError> {
        unimplemented!()
    }

    /// Answers a question from the pages of a wiki, and keeps the answer.
    #[activity(name = "steward.wiki.query")]
    pub fn answer_question(input: AnswerQuestionInput) -> Result<AnswerQuestionOutput, ActivityError> {
        unimplemented!()
    }

    /// Asks the clerk the next case of a measurement, and keeps the answer.
    #[activity(name = "steward.clerk.eval")]
    pub fn eval_clerk(input: ClerkEvalInput) -> Result<ClerkEvalStep, ActivityError> {
        unimplemented!()
    }

    /// Asks the verifier about some claims and copies of them with faults.
    #[activity(name = "steward.wiki.eval")]
    pub fn eval_turn(input: EvalTurnInput) -> Result<SendTurnOutput, ActivityError> {
        unimplemented!()
    }

    /// Sends one turn to the model that writes the pages of a source, and carries out what it calls.
    #[activity(name = "steward.wiki.turn")]
    pub fn send_turn(input: SendTurnInput) -> Result<SendTurnOutput, ActivityError> {
        unimplemented!()
    }

    /// Sends one turn to the model that checks the pages of a source.
    #[activity(name = "steward.wiki.verify")]
    pub fn verify_turn(input: SendTurnInput) -> Result<SendTurnOutput, ActivityError> {
        unimplemented!()
    }

    /// Judges a staged run and commits it.
    #[activity(name = "steward.wiki.commit")]
    pub fn commit_ingest(run: RunId) -> Result<CommitIngestOutput, ActivityError> {
        unimplemented!()
    }
}

/// The extraction of stream events, in the process that holds the vault. No text of an event is in a payload.
pub struct ExtractActivities;

#[activity_definitions]
impl ExtractActivities {
    /// Lists the events to read, at most `limit`.
    #[activity(name = "steward.extract.next")]
    pub fn next(limit: u32) -> Result<Vec<RecordPath>, ActivityError> {
        unimplemented!()
    }

    /// Reads one event: asks the clerk, checks the answer and writes the signals.
    #[activity(name = "steward.extract.event")]
    pub fn event(event: RecordPath) -> Result<ExtractEventOutput, ActivityError> {
        unimplemented!()
    }
}

/// Deliveries to the tracker, in the process that holds the vault, if a tracker is configured.
pub struct TrackActivities;

#[activity_definitions]
impl TrackActivities {
    /// Lists the due deliveries in the order of the audit chain, at most `limit`.
    #[activity(name = "steward.track.next")]
    pub fn due(limit: u32) -> Result<Vec<ActionId>, ActivityError> {
        unimplemented!()
    }

    /// Makes or reverts one delivery. Argument: the record with the debt.
    #[activity(name = "steward.track.deliver")]
    pub fn deliver(owing: ActionId) -> Result<DeliverOutput, ActivityError> {
        unimplemented!()
    }
}

/// The activities that run anywhere in the fleet.
pub struct ClerkActivities;

#[activity_definitions]
impl ClerkActivities {
    /// Asks the clerk once.
    #[activity(name = "steward.judge")]
    pub fn judge(input: JudgeInput) -> Result<ClerkReply, ActivityError> {
        unimplemented!()
    }
}

pub use crate::signals::router::{RouteInput, RouteOutput};
pub use clerk_activities::Judge;
pub use extract_activities::{Event, Next};
pub use resolution::{ResolveInput, ResolveOutput};
pub use track_activities::{Deliver, Due};
pub use vault_activities::{
    Answer, AnswerQuestion, Apply, Calibrate, ChangeWiki, CommitIngest, Drill, EvalClerk, EvalTurn, Observe, Purge,
    Release, Reserve, Route, SendTurn, SetCeiling, Settle, StageAnswer, StageAssistant, StageIngest, StageReview,
    StepBack, VerifyTurn,
};

#[cfg(test)]
mod tests;

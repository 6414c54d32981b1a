//! `IngestWorkflow`: makes pages of one source.
//!
//! The pages are staged outside of the wiki, by fixed rules at once, or by a model in one activity for each of its turns. The
//! commit judges them by the rules and writes all of them with one audit record, or nothing. If a person changed a page
//! meanwhile, the run is staged again, at most three times. It must not hold any text.

use super::assistant::AssistantRunInput;
use super::eval::EvalInput;
use super::file_back::FileAnswerInput;
use super::{wiki_activity_options, wiki_turn_options};
use crate::activities::VaultActivities;
use crate::argument::WorkflowArgument;
use crate::steward::tick::permanent_failure;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use steward_domain::record::path::RecordPath;
use steward_domain::record::plain_text;
use steward_domain::wiki::run::{RunId, RunSource};
use steward_domain::wiki::writer::budget::RunLimits;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{WorkflowContext, WorkflowResult};

/// How often a run is staged because pages changed meanwhile.
const ROUNDS: usize = 3;
const CONFLICT: u16 = 409;
/// How often a run is written and checked: each of three loops has both.
const MAX_PHASES: usize = 8;
/// Longest time of one turn: 7 min. A call of the model may take 4 min.
const TURN_TIMEOUT: Duration = Duration::from_secs(420);
/// The first wait under a stop, and the longest one.
const STOP_WAIT_SECONDS: u64 = 10;
const LONGEST_STOP_WAIT_SECONDS: u64 = 600;

/// A source of which pages are made; the argument of `IngestWorkflow`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IngestInput {
    /// The name of the wiki.
    pub wiki: String,
    pub source: RunSource,
    /// The person's name, as they gave it.
    pub by: String,
    /// When the person asked for it. The run is named after this moment.
    pub at: DateTime<Utc>,
    /// The run waits for a person after it was staged.
    pub draft: bool,
    /// No model checks the pages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unverified: bool,
    #[serde(default, skip_serializing_if = "RunLimits::is_default")]
    pub limits: RunLimits,
    /// Nobody asked for it: the source was found in the folder, and the settings of the wiki allow it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unattended: bool,
}

/// What staging came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StageIngestOutput {
    /// A model writes the pages: it is sent turns until everything is written. Then the run is staged.
    Writing { run: RunId },
    /// Another model checks the pages: it is sent turns until every claim is checked. Then the run is staged, or written again.
    Verifying { run: RunId },
    Staged {
        run: RunId,
        /// The run waits for a person.
        waits: bool,
    },
    /// There is nothing to do, and why.
    Nothing { reason: String },
    /// A stop is in force, and what a model wrote so far is kept.
    Stopped,
    /// `status` is the HTTP status of the refusal.
    Refused { status: u16, message: String },
}

/// One turn of the model; the argument of `steward.wiki.turn`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendTurnInput {
    pub run: RunId,
    /// The number of the turn, from 1. One that was answered is not sent again.
    pub turn: u32,
    /// How long the vault was stopped since the run began. This time does not count.
    pub stopped_seconds: u64,
}

/// What a turn came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SendTurnOutput {
    /// The turn with this number comes next.
    Continue { turn: u32 },
    /// Nothing may be sent for so long. Then comes the turn with this number.
    Wait { seconds: u64, turn: u32 },
    /// The vault is stopped.
    Stopped,
    /// Everything is written, or checked.
    Written,
    /// The run has ended. `status` is the HTTP status of the refusal.
    Refused { status: u16, message: String },
}

/// What a commit came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CommitIngestOutput {
    Committed {
        record: RecordPath,
        pages: Vec<String>,
        notes: Vec<String>,
        /// Who wrote the pages: `rules`, or a model.
        writer: String,
    },
    /// A page is not as it was staged. Nothing was done.
    Stale,
    /// A stop is in force, and what a model wrote is kept.
    Stopped,
    /// `status` is the HTTP status of the refusal.
    Refused { status: u16, message: String },
}

/// How it ended; the result of `IngestWorkflow`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum IngestOutput {
    Committed {
        run: RunId,
        record: RecordPath,
        pages: Vec<String>,
        notes: Vec<String>,
        /// Who wrote the pages: `rules`, or a model.
        writer: String,
    },
    /// The run waits for a person.
    Pending { run: RunId },
    /// There is nothing to do, and why.
    Nothing { reason: String },
    /// `status` is the HTTP status of the refusal.
    Refused { run: Option<RunId>, status: u16, message: String },
}

/// Makes pages of a source. Argument: [`IngestInput`]; result: [`IngestOutput`].
#[workflow]
#[derive(Default)]
pub struct IngestWorkflow;

#[workflow_methods]
impl IngestWorkflow {
    /// Runs the ingest.
    ///
    /// # Errors
    /// Fails when the vault cannot be read or written.
    #[run(name = "IngestWorkflow")]
    pub async fn run(
        ctx: &mut WorkflowContext<Self>,
        argument: WorkflowArgument<IngestInput>,
    ) -> WorkflowResult<IngestOutput> {
        let input =
            argument.into_value("an object with the keys wiki, source, by and at").map_err(permanent_failure)?;
        let source = plain_text::escape_one_line(&input.source.id);
        let output = carry_out(ctx, StageInput::Source(input)).await?;
        // The details are shown as Markdown, and names and messages hold untrusted text.
        ctx.set_current_details(match &output {
            IngestOutput::Committed { record, pages, .. } => {
                format!("{source}: {}, see {record}", plain_text::count_noun(pages.len() as u64, "page"))
            }
            IngestOutput::Pending { run } => format!("{source}: {run} waits for a person"),
            IngestOutput::Nothing { reason } => format!("{source}: {}", plain_text::escape_one_line(reason)),
            IngestOutput::Refused { status, message, .. } => {
                format!("{source}: refused ({status}): {}", plain_text::escape_one_line(message))
            }
        });
        Ok(output)
    }
}

/// What a run is staged from.
#[derive(Clone)]
pub(super) enum StageInput {
    Source(IngestInput),
    Answer(FileAnswerInput),
    Review(EvalInput),
    Assistant(AssistantRunInput),
}

/// Stages a run, has it written and checked, and commits it.
pub(super) async fn carry_out<W>(ctx: &WorkflowContext<W>, input: StageInput) -> WorkflowResult<IngestOutput> {
    let mut last = None;
    for _ in 0..ROUNDS {
        let (mut staged, mut left) = (stage(ctx, &input).await?, MAX_PHASES);
        while let StageIngestOutput::Writing { run } | StageIngestOutput::Verifying { run } = &staged
            && left > 0
        {
            let phase = if matches!(staged, StageIngestOutput::Writing { .. }) { Phase::Write } else { Phase::Verify };
            if let SendTurnOutput::Refused { status, message } = send_turns(ctx, run, phase).await? {
                return Ok(IngestOutput::Refused { run: Some(run.clone()), status, message });
            }
            (staged, left) = (stage(ctx, &input).await?, left - 1);
        }
        let run = match staged {
            StageIngestOutput::Writing { run } | StageIngestOutput::Verifying { run } => {
                let message = format!("the run {run} is written and checked again and again");
                return Ok(IngestOutput::Refused { run: Some(run), status: CONFLICT, message });
            }
            StageIngestOutput::Staged { run, waits: false } => run,
            StageIngestOutput::Staged { run, waits: true } => return Ok(IngestOutput::Pending { run }),
            StageIngestOutput::Nothing { reason } => return Ok(IngestOutput::Nothing { reason }),
            StageIngestOutput::Stopped => continue,
            StageIngestOutput::Refused { status, message } => {
                return Ok(IngestOutput::Refused { run: None, status, message });
            }
        };
        match commit(ctx, &run).await? {
            CommitIngestOutput::Committed { record, pages, notes, writer } => {
                return Ok(IngestOutput::Committed { run, record, pages, notes, writer });
            }
            CommitIngestOutput::Refused { status, message } => {
                return Ok(IngestOutput::Refused { run: Some(run), status, message });
            }
            CommitIngestOutput::Stale | CommitIngestOutput::Stopped => last = Some(run),
        }
    }
    let message = format!("stale_plan: its pages changed {ROUNDS} times while they were staged: try again");
    Ok(IngestOutput::Refused { run: last, status: CONFLICT, message })
}

async fn stage<W>(ctx: &WorkflowContext<W>, input: &StageInput) -> WorkflowResult<StageIngestOutput> {
    let mut stop = StopWait::default();
    loop {
        let options = wiki_activity_options("stage");
        let staged = match input.clone() {
            StageInput::Source(input) => ctx.execute_activity(VaultActivities::stage_ingest, input, options).await?,
            StageInput::Answer(input) => ctx.execute_activity(VaultActivities::stage_answer, input, options).await?,
            StageInput::Review(input) => ctx.execute_activity(VaultActivities::stage_review, input, options).await?,
            StageInput::Assistant(input) => {
                ctx.execute_activity(VaultActivities::stage_assistant, input, options).await?
            }
        };
        match staged {
            StageIngestOutput::Stopped => stop.wait(ctx).await,
            staged => return Ok(staged),
        }
    }
}

async fn commit<W>(ctx: &WorkflowContext<W>, run: &RunId) -> WorkflowResult<CommitIngestOutput> {
    let mut stop = StopWait::default();
    loop {
        let options = wiki_activity_options("commit");
        match ctx.execute_activity(VaultActivities::commit_ingest, run.clone(), options).await? {
            CommitIngestOutput::Stopped => stop.wait(ctx).await,
            committed => return Ok(committed),
        }
    }
}

/// Waits while a stop is in force, longer each time.
#[derive(Default)]
pub(super) struct StopWait {
    /// How often it waited in a row.
    count: u32,
    /// How long it waited in all.
    seconds: u64,
}

impl StopWait {
    pub(super) async fn wait<W>(&mut self, ctx: &WorkflowContext<W>) {
        let seconds = STOP_WAIT_SECONDS.saturating_mul(2_u64.saturating_pow(self.count)).min(LONGEST_STOP_WAIT_SECONDS);
        ctx.timer(Duration::from_secs(seconds)).await;
        self.count = self.count.saturating_add(1);
        self.seconds = self.seconds.saturating_add(seconds);
    }
}

/// Who is sent turns.
#[derive(Clone, Copy)]
enum Phase {
    Write,
    Verify,
}

/// Sends turns until the model has ended. Returns how it ended.
async fn send_turns<W>(ctx: &WorkflowContext<W>, run: &RunId, phase: Phase) -> WorkflowResult<SendTurnOutput> {
    let (mut turn, mut stop) = (1, StopWait::default());
    loop {
        let input = SendTurnInput { run: run.clone(), turn, stopped_seconds: stop.seconds };
        let options = wiki_turn_options(turn, TURN_TIMEOUT);
        let sent = match phase {
            Phase::Write => ctx.execute_activity(VaultActivities::send_turn, input, options).await?,
            Phase::Verify => ctx.execute_activity(VaultActivities::verify_turn, input, options).await?,
        };
        match sent {
            SendTurnOutput::Continue { turn: next } => (turn, stop.count) = (next, 0),
            SendTurnOutput::Wait { seconds, turn: next } => {
                turn = next;
                ctx.timer(Duration::from_secs(seconds.max(1))).await;
            }
            SendTurnOutput::Stopped => stop.wait(ctx).await,
            ended @ (SendTurnOutput::Written | SendTurnOutput::Refused { .. }) => return Ok(ended),
        }
    }
}

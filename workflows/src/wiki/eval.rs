//! `EvalWorkflow`: measures the claims of a wiki by its verifier, the verifier by them, or the answers to gold queries.
//!
//! Each call is one activity of the process that holds the vault, which keeps the verdicts and the report. The workflow holds no
//! words of a claim.

use super::ingest::{SendTurnOutput, StopWait};
use super::wiki_turn_options;
use crate::activities::VaultActivities;
use crate::argument::WorkflowArgument;
use crate::steward::tick::permanent_failure;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use steward_domain::wiki::fidelity::EvalMethod;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{WorkflowContext, WorkflowResult};

/// Longest time of one call: 7 min. The model may take 4 min.
const CALL_TIMEOUT: Duration = Duration::from_secs(420);

/// A measurement; the argument of `EvalWorkflow`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvalInput {
    /// The name of the wiki.
    pub wiki: String,
    #[serde(default, skip_serializing_if = "EvalMethod::is_planted")]
    pub method: EvalMethod,
    /// How many are taken at most, 2 to 200: claims, pairs of them, or pages of a review. Of gold queries it is 30, whatever stands here.
    pub claims: u32,
    /// The person's name, as they gave it.
    pub by: String,
    /// When the person asked for it. The measurement is named after this moment.
    pub at: DateTime<Utc>,
    /// Whether it ends at once if the rate guard has no room for its first call, as an assistant wants it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_room: bool,
}

/// One call of a measurement; the argument of `steward.wiki.eval`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvalTurnInput {
    pub eval: EvalInput,
    /// The number of the call, from 1. One that was answered is not sent again.
    pub turn: u32,
}

/// How it ended; the result of `EvalWorkflow`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EvalOutput {
    /// The report is kept.
    Measured,
    /// `status` is the HTTP status of the refusal.
    Refused { status: u16, message: String },
}

/// Measures a verifier. Argument: [`EvalInput`]; result: [`EvalOutput`].
#[workflow]
#[derive(Default)]
pub struct EvalWorkflow;

#[workflow_methods]
impl EvalWorkflow {
    /// Runs the measurement.
    ///
    /// # Errors
    /// Fails when the vault cannot be read or written.
    #[run(name = "EvalWorkflow")]
    pub async fn run(
        ctx: &mut WorkflowContext<Self>,
        argument: WorkflowArgument<EvalInput>,
    ) -> WorkflowResult<EvalOutput> {
        let eval = argument.into_value("an object with the keys wiki, claims, by and at").map_err(permanent_failure)?;
        take_turns(ctx, &eval).await
    }
}

/// Asks until everything is answered and kept.
pub(super) async fn take_turns<W>(ctx: &WorkflowContext<W>, eval: &EvalInput) -> WorkflowResult<EvalOutput> {
    let (mut turn, mut stop) = (1, StopWait::default());
    loop {
        let input = EvalTurnInput { eval: eval.clone(), turn };
        let options = wiki_turn_options(turn, CALL_TIMEOUT);
        match ctx.execute_activity(VaultActivities::eval_turn, input, options).await? {
            SendTurnOutput::Continue { turn: next } => turn = next,
            SendTurnOutput::Wait { seconds, turn: next } => {
                turn = next;
                ctx.timer(Duration::from_secs(seconds.max(1))).await;
            }
            SendTurnOutput::Stopped => stop.wait(ctx).await,
            SendTurnOutput::Written => return Ok(EvalOutput::Measured),
            SendTurnOutput::Refused { status, message } => return Ok(EvalOutput::Refused { status, message }),
        }
    }
}

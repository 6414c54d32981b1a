//! `ClerkEvalWorkflow`: asks the clerk labelled cases, one after the other, while somebody waits for the figures.
//!
//! Each case is one activity of the process that holds the vault, which keeps the answer. The workflow holds no words of a case. It
//! opens no gate, whatever is found.

use crate::activities::VaultActivities;
use crate::argument::WorkflowArgument;
use crate::steward::tick::permanent_failure;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{ActivityOptions, ContinueAsNewOptions, RetryPolicy, WorkflowContext, WorkflowResult};

/// Longest time of one case with its second try: 4 min.
const CASE_TIMEOUT: Duration = Duration::from_secs(240);
/// How often a case is tried whose answer could not be kept.
const TRIES: u32 = 3;
/// The most cases of one run. Then it goes on as a new one, so that no history grows without end.
const CASES_PER_RUN: u32 = 500;

/// A measurement of the clerk; the argument of `ClerkEvalWorkflow` and of its activity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClerkEvalInput {
    /// The name of its folder, which holds the cases and the answers.
    pub eval: String,
}

/// What comes after a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ClerkEvalStep {
    /// One answer more is kept.
    Answered,
    /// The rate guard has no room, or the case had no answer. It is asked again after so long.
    Wait { seconds: u64 },
    /// All cases are answered.
    Done,
    /// Nothing more is asked: nobody waits, the provider wants a pause, or the vault is stopped.
    Ended { reason: String },
}

/// How a measurement ended; the result of `ClerkEvalWorkflow`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ClerkEvalOutput {
    /// All cases are answered.
    Measured,
    /// Some are. Asked for again, it goes on.
    Ended { reason: String },
}

/// Measures the clerk. Argument: [`ClerkEvalInput`]; result: [`ClerkEvalOutput`].
#[workflow]
#[derive(Default)]
pub struct ClerkEvalWorkflow;

#[workflow_methods]
impl ClerkEvalWorkflow {
    /// Asks until all cases are answered, or nobody waits any more.
    ///
    /// # Errors
    /// Fails when the folder of the measurement cannot be read or written.
    #[run(name = "ClerkEvalWorkflow")]
    pub async fn run(
        ctx: &mut WorkflowContext<Self>,
        argument: WorkflowArgument<ClerkEvalInput>,
    ) -> WorkflowResult<ClerkEvalOutput> {
        let input = argument.into_value("an object with the key eval").map_err(permanent_failure)?;
        for _ in 0..CASES_PER_RUN {
            let options = ActivityOptions::with_start_to_close_timeout(CASE_TIMEOUT)
                .retry_policy(RetryPolicy::builder().maximum_attempts(TRIES).build())
                .summary("ask one case".to_owned())
                .build();
            match ctx.execute_activity(VaultActivities::eval_clerk, input.clone(), options).await? {
                ClerkEvalStep::Answered => {}
                ClerkEvalStep::Wait { seconds } => drop(ctx.timer(Duration::from_secs(seconds.max(1))).await),
                ClerkEvalStep::Done => return Ok(ClerkEvalOutput::Measured),
                ClerkEvalStep::Ended { reason } => return Ok(ClerkEvalOutput::Ended { reason }),
            }
        }
        ctx.continue_as_new(input.into(), ContinueAsNewOptions::default())?;
        Ok(ClerkEvalOutput::Measured)
    }
}

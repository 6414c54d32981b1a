//! `SetCeilingWorkflow`: a person lets a sender act, or takes that back, so that a click survives a crash.
//!
//! The process that holds the vault judges the cases and writes the sender's instinct. A refusal is a result with an
//! HTTP status and not a failure. It must not judge anything itself.

use crate::activities::VaultActivities;
use crate::argument::WorkflowArgument;
use crate::steward::tick::{long_activity_options, permanent_failure};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use steward_domain::action::plan::ActionId;
use steward_domain::gates::mode::Ceiling;
use steward_domain::record::plain_text;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{ActivityOptions, WorkflowContext, WorkflowResult};

/// Longest time of one call: 10 min. It verifies the whole audit chain and reads every case.
const CALL_TIMEOUT: Duration = Duration::from_secs(600);

/// A person's wish to set the ceiling of a sender; the argument of `SetCeilingWorkflow`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetCeilingInput {
    /// The key of the source.
    pub source: String,
    pub ceiling: Ceiling,
    /// The person's name, as they gave it.
    pub by: String,
    /// When the person asked for it. The audit record is named after this moment, so that a repeat finds it.
    pub at: DateTime<Utc>,
}

/// How it ended; the result of `SetCeilingWorkflow`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SetCeilingOutput {
    /// The audit records that were filed, one for each instinct. Empty if every instinct had the ceiling already.
    Set { actions: Vec<ActionId> },
    /// `status` is the HTTP status of the refusal.
    Refused {
        status: u16,
        message: String,
        /// The further right cases in a row that the sender lacks; absent if no number is enough.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missing_cases: Option<u64>,
    },
}

/// Sets the ceiling of one sender. Argument: [`SetCeilingInput`]; result: [`SetCeilingOutput`].
#[workflow]
#[derive(Default)]
pub struct SetCeilingWorkflow;

#[workflow_methods]
impl SetCeilingWorkflow {
    /// Runs the change.
    ///
    /// # Errors
    /// Fails when the vault cannot be read or written.
    #[run(name = "SetCeilingWorkflow")]
    pub async fn run(
        ctx: &mut WorkflowContext<Self>,
        argument: WorkflowArgument<SetCeilingInput>,
    ) -> WorkflowResult<SetCeilingOutput> {
        let input =
            argument.into_value("an object with the keys source, ceiling, by and at").map_err(permanent_failure)?;
        // The details are shown as Markdown, and the key and the message hold untrusted text.
        let wish = format!("{} for {}", input.ceiling.as_str(), plain_text::escape_one_line(&input.source));
        let output = ctx.execute_activity(VaultActivities::set_ceiling, input, set_ceiling_options()).await?;
        ctx.set_current_details(match &output {
            SetCeilingOutput::Set { actions } => format!("{wish}: set, {} records", actions.len()),
            SetCeilingOutput::Refused { status, message, .. } => {
                format!("{wish}: refused ({status}): {}", plain_text::escape_one_line(message))
            }
        });
        Ok(output)
    }
}

/// The options of the activity. A repeat finds the records of an earlier try.
///
/// It is no local activity, because the cases of a large vault outlive the 30 s of those.
fn set_ceiling_options() -> ActivityOptions {
    long_activity_options("set ceiling", CALL_TIMEOUT)
}

//! `QueryWorkflow`: a question to a wiki.
//!
//! The process that holds the vault finds the pages, asks the model once, and keeps the answer. The workflow waits and asks
//! again if the server of the model was too busy. It must not hold the answer: the result is its id.

use super::wiki_turn_options;
use crate::activities::VaultActivities;
use crate::argument::WorkflowArgument;
use crate::steward::tick::permanent_failure;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use temporalio_macros::{workflow, workflow_methods};
use temporalio_workflow::{WorkflowContext, WorkflowResult};

/// Longest time of one call: 5 min. The model may take 4 min.
const CALL_TIMEOUT: Duration = Duration::from_secs(300);
/// How often the model is asked before the question is given up.
const MAX_ATTEMPTS: u32 = 3;
const BAD_GATEWAY: u16 = 502;

/// A question to a wiki; the argument of `QueryWorkflow`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueryInput {
    /// The name of the wiki.
    pub wiki: String,
    /// At most 1,000 characters.
    pub question: String,
    /// The person's name, as they gave it.
    pub by: String,
    /// When the person asked. The answer is named after this moment.
    pub at: DateTime<Utc>,
}

/// One attempt to answer; the argument of `steward.wiki.query`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnswerQuestionInput {
    pub query: QueryInput,
    /// From 1.
    pub attempt: u32,
}

/// What an attempt came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AnswerQuestionOutput {
    /// The id of the answer that is kept.
    Answered { answer: String },
    /// The model gave no answer. It may be asked again after so long.
    Failed { seconds: u64, reason: String },
    /// `status` is the HTTP status of the refusal.
    Refused { status: u16, message: String },
}

/// How it ended; the result of `QueryWorkflow`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum QueryOutput {
    /// The id of the answer that is kept.
    Answered { answer: String },
    /// `status` is the HTTP status of the refusal.
    Refused { status: u16, message: String },
}

/// Answers a question. Argument: [`QueryInput`]; result: [`QueryOutput`].
#[workflow]
#[derive(Default)]
pub struct QueryWorkflow;

#[workflow_methods]
impl QueryWorkflow {
    /// Runs the query.
    ///
    /// # Errors
    /// Fails when the vault cannot be read or written.
    #[run(name = "QueryWorkflow")]
    pub async fn run(
        ctx: &mut WorkflowContext<Self>,
        argument: WorkflowArgument<QueryInput>,
    ) -> WorkflowResult<QueryOutput> {
        let query =
            argument.into_value("an object with the keys wiki, question, by and at").map_err(permanent_failure)?;
        let mut attempt = 1;
        loop {
            let input = AnswerQuestionInput { query: query.clone(), attempt };
            let options = wiki_turn_options(attempt, CALL_TIMEOUT);
            match ctx.execute_activity(VaultActivities::answer_question, input, options).await? {
                AnswerQuestionOutput::Answered { answer } => {
                    ctx.set_current_details(format!("the answer is {answer}"));
                    return Ok(QueryOutput::Answered { answer });
                }
                AnswerQuestionOutput::Refused { status, message } => {
                    return Ok(QueryOutput::Refused { status, message });
                }
                AnswerQuestionOutput::Failed { reason, .. } if attempt >= MAX_ATTEMPTS => {
                    let message = format!("no answer: {reason}");
                    return Ok(QueryOutput::Refused { status: BAD_GATEWAY, message });
                }
                AnswerQuestionOutput::Failed { seconds, .. } => {
                    ctx.timer(Duration::from_secs(seconds.max(1))).await;
                    attempt += 1;
                }
            }
        }
    }
}

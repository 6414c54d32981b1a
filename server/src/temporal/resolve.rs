//! A human's answer, asked of the process that holds the vault by way of Temporal.
//!
//! One workflow for each answer: a click survives a crash, and clicks that come at once are one. Whoever asked waits
//! for what comes of it; when that takes too long the answer goes on without them.

use std::time::Duration;
use steward_domain::action::plan::ContentHash;
use steward_domain::action::undo::ResolutionKind;
use steward_workflows::AnswerTogetherWorkflow;
use steward_workflows::AnswerWorkflow;
use steward_workflows::ResolveBatchInput;
use steward_workflows::ResolveBatchOutput;
use steward_workflows::activities::{ResolveInput, ResolveOutput};
use temporalio_client::tonic::Request;
use temporalio_client::{Client, WorkflowIdConflictPolicy, WorkflowStartOptions};
use temporalio_common::HasWorkflowDefinition;
use temporalio_common::protos::temporal::api::workflowservice::v1::GetSystemInfoRequest;

/// How long an answer is waited for: 60 s.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// How long an answer may take where no worker is there to take it: 24 h.
const LASTS: Duration = Duration::from_secs(24 * 3600);
/// How long the server may take to accept one: 10 s.
const ACCEPTED: Duration = Duration::from_secs(10);

/// Why nothing is known of an answer yet.
#[derive(Debug, thiserror::Error)]
pub enum ResolutionRequestError {
    #[error("the Temporal server gave no answer ({reason}); nothing was asked: try again")]
    Away { reason: String },
    #[error("no answer yet: it goes on as workflow {workflow}; is a worker with this vault running?")]
    Late { workflow: String },
    #[error("workflow {workflow} failed: {reason}")]
    Failed { workflow: String, reason: String },
}

/// Asks for answers.
#[derive(Clone)]
pub struct ResolutionClient {
    client: Client,
    task_queue: String,
}

impl ResolutionClient {
    /// Answers are taken by whoever serves this queue.
    #[must_use]
    pub fn new(client: Client, task_queue: &str) -> Self {
        Self { client, task_queue: task_queue.to_owned() }
    }

    /// Asks, and waits for what comes of it.
    ///
    /// # Errors
    /// [`ResolutionRequestError`]; a refusal is none.
    pub async fn request_resolution(&self, ask: ResolveInput) -> Result<ResolveOutput, ResolutionRequestError> {
        let (kind, digits) = (ask.kind.as_str(), extract_hex_digits(&ask.action));
        // Two who ask the same are answered once; who asks for something else must not get that answer.
        let other = ask.edited.as_ref().map(|edited| {
            let value = serde_json::to_string(edited).unwrap_or_default();
            format!("-as-{}", &ContentHash::hash_bytes(value.as_bytes()).as_str()[..8])
        });
        let id = format!("steward-{kind}-{digits}{}", other.unwrap_or_default());
        let options = self.build_start_options(id, format!("{kind} {digits}"));
        self.run_workflow(AnswerWorkflow::run, ask.into(), options).await
    }

    /// Asks for one answer to several actions, and waits for what comes of each.
    ///
    /// # Errors
    /// [`ResolutionRequestError`]; refusals are none.
    pub async fn request_batch_resolution(
        &self,
        ask: ResolveBatchInput,
    ) -> Result<ResolveBatchOutput, ResolutionRequestError> {
        let kind = ask.kind.as_str();
        let id = format!("steward-{kind}-together-{}", ask.together);
        let options = self.build_start_options(id, format!("{kind} {} together", ask.actions.len()));
        self.run_workflow(AnswerTogetherWorkflow::run, ask.into(), options).await
    }

    fn build_start_options(&self, workflow: String, summary: String) -> WorkflowStartOptions {
        WorkflowStartOptions::new(self.task_queue.clone(), workflow)
            .execution_timeout(LASTS)
            .id_conflict_policy(WorkflowIdConflictPolicy::UseExisting)
            .static_summary(summary)
            .build()
    }

    async fn run_workflow<W>(
        &self,
        run: W,
        ask: W::Input,
        options: WorkflowStartOptions,
    ) -> Result<W::Output, ResolutionRequestError>
    where
        W: HasWorkflowDefinition,
        W::Input: Send,
    {
        let workflow = options.workflow_id.clone();
        let away = |reason: String| ResolutionRequestError::Away { reason };
        let handle = match tokio::time::timeout(ACCEPTED, self.client.start_workflow(run, ask, options)).await {
            Ok(started) => started.map_err(|e| away(e.to_string()))?,
            // It may have been accepted all the same.
            Err(_) => return Err(ResolutionRequestError::Late { workflow }),
        };
        match tokio::time::timeout(PATIENCE, handle.get_result(Default::default())).await {
            Ok(answered) => answered.map_err(|e| ResolutionRequestError::Failed { workflow, reason: e.to_string() }),
            Err(_) => Err(ResolutionRequestError::Late { workflow }),
        }
    }

    /// Whether the server answers within this time.
    pub(crate) async fn is_reachable(&self, patience: Duration) -> bool {
        let mut service = self.client.connection().workflow_service();
        let asked = service.get_system_info(Request::new(GetSystemInfoRequest::default()));
        matches!(tokio::time::timeout(patience, asked).await, Ok(Ok(_)))
    }
}

/// What stands in the id of a workflow and on Temporal's web page, which renders Markdown: of what was typed only the
/// digits of an id.
fn extract_hex_digits(action: &str) -> String {
    action.chars().filter(char::is_ascii_hexdigit).take(16).collect::<String>().to_ascii_lowercase()
}

/// What was done, in one word.
#[must_use]
pub fn describe_resolution(kind: ResolutionKind) -> &'static str {
    match kind {
        ResolutionKind::Undo => "undone",
        ResolutionKind::Confirm => "confirmed",
        ResolutionKind::Dismiss => "dismissed",
        ResolutionKind::Raise => "raised",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_was_typed_the_digits_of_an_id_alone_reach_temporals_page() {
        assert_eq!(extract_hex_digits("3F9a1c22"), "3f9a1c22");
        assert_eq!(extract_hex_digits("[x](http://h)\n\u{1b}3f"), "3f");
    }
}

//! Requests a human's resolution (undo, confirm, dismiss) through Temporal from the process that holds the vault.
//!
//! Each resolution is one workflow. So a click survives a crash, and equal clicks at the same time are one. The caller
//! waits for the outcome. If that takes too long, the workflow goes on without the caller.

use crate::temporal::service_pause::ServicePause;
use std::time::Duration;
use steward_domain::action::plan::ContentHash;
use steward_domain::action::undo::ResolutionKind;
use steward_domain::fleet::names::VaultNames;
use steward_workflows::ResolveBatchInput;
use steward_workflows::ResolveBatchOutput;
use steward_workflows::ResolveBatchWorkflow;
use steward_workflows::ResolveWorkflow;
use steward_workflows::activities::{ResolveInput, ResolveOutput};
use steward_workflows::{SetCeilingInput, SetCeilingOutput, SetCeilingWorkflow};
use temporalio_client::errors::WorkflowGetResultError;
use temporalio_client::tonic::Request;
use temporalio_client::{Client, WorkflowIdConflictPolicy, WorkflowStartOptions};
use temporalio_common::HasWorkflowDefinition;
use temporalio_common::protos::temporal::api::workflowservice::v1::GetSystemInfoRequest;

/// How long the caller waits for the outcome: 60 s.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// How long a resolution may wait for a worker: 24 h.
const EXECUTION_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// How long the server may take to accept the workflow: 10 s.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Why the outcome of a resolution is unknown.
#[derive(Debug, thiserror::Error)]
pub enum ResolutionRequestError {
    #[error("the Temporal server gave no answer ({reason}); nothing was changed: try again")]
    Away { reason: String },
    #[error("no answer yet: it goes on as workflow {workflow}; check that a worker of this vault is running")]
    Late { workflow: String },
    #[error("workflow {workflow} failed: {reason}")]
    Failed { workflow: String, reason: String },
    #[error("{reason}; nothing was changed: try again later")]
    Paused { reason: String, retry_after_seconds: u32 },
}

/// Requests resolutions.
#[derive(Clone)]
pub struct ResolutionClient {
    client: Client,
    names: VaultNames,
    task_queue: String,
    /// Why no resolution is taken now.
    pause: Option<ServicePause>,
}

impl ResolutionClient {
    /// The process that serves this task queue carries the resolutions out, unless there is a pause.
    #[must_use]
    pub fn new(client: Client, names: VaultNames, task_queue: &str, pause: Option<ServicePause>) -> Self {
        Self { client, names, task_queue: task_queue.to_owned(), pause }
    }

    /// Requests a resolution and waits for its outcome.
    ///
    /// # Errors
    /// [`ResolutionRequestError`]. A refusal is an outcome, not an error.
    pub async fn request_resolution(&self, input: ResolveInput) -> Result<ResolveOutput, ResolutionRequestError> {
        let (kind, digits) = (input.kind.as_str(), extract_hex_digits(&input.action));
        // Equal requests share one workflow. A confirmation with another value must not get the same outcome.
        let edit_suffix = input.edited.as_ref().map(|edited| {
            let value = serde_json::to_string(edited).unwrap_or_default();
            format!("-as-{}", &ContentHash::hash_bytes(value.as_bytes()).as_str()[..8])
        });
        let id = format!("steward-{kind}-{digits}{}", edit_suffix.unwrap_or_default());
        let options = self.build_start_options(id, format!("{kind} {digits}"));
        self.run_workflow(ResolveWorkflow::run, input.into(), options).await
    }

    /// Requests one resolution of several actions and waits for the outcome of each.
    ///
    /// # Errors
    /// [`ResolutionRequestError`]. Refusals are outcomes, not errors.
    pub async fn request_batch_resolution(
        &self,
        input: ResolveBatchInput,
    ) -> Result<ResolveBatchOutput, ResolutionRequestError> {
        let kind = input.kind.as_str();
        let id = format!("steward-{kind}-batch-{}", input.batch_id);
        let options = self.build_start_options(id, format!("{kind} {} actions", input.actions.len()));
        self.run_workflow(ResolveBatchWorkflow::run, input.into(), options).await
    }

    /// Requests that the ceiling of a sender is set, and waits for the outcome.
    ///
    /// # Errors
    /// [`ResolutionRequestError`]. A refusal is an outcome, not an error.
    pub async fn request_ceiling(&self, input: SetCeilingInput) -> Result<SetCeilingOutput, ResolutionRequestError> {
        // The key is foreign text, and Temporal's web page renders Markdown.
        let key = ContentHash::hash_bytes(input.source.as_bytes());
        let ceiling = input.ceiling.as_str();
        let id = format!("steward-ceiling-{}-{ceiling}", &key.as_str()[..16]);
        let options = self.build_start_options(id, format!("set a sender to {ceiling}"));
        self.run_workflow(SetCeilingWorkflow::run, input.into(), options).await
    }

    pub(super) fn build_start_options(&self, workflow: String, summary: String) -> WorkflowStartOptions {
        WorkflowStartOptions::new(self.task_queue.clone(), self.names.qualify_id(&workflow))
            .execution_timeout(EXECUTION_TIMEOUT)
            .id_conflict_policy(WorkflowIdConflictPolicy::UseExisting)
            .static_summary(summary)
            .build()
    }

    pub(super) async fn run_workflow<W>(
        &self,
        run: W,
        input: W::Input,
        options: WorkflowStartOptions,
    ) -> Result<W::Output, ResolutionRequestError>
    where
        W: HasWorkflowDefinition,
        W::Input: Send,
    {
        self.run_workflow_within(run, input, options, PATIENCE).await
    }

    /// Runs a workflow and waits so long for its outcome.
    pub(super) async fn run_workflow_within<W>(
        &self,
        run: W,
        input: W::Input,
        options: WorkflowStartOptions,
        patience: Duration,
    ) -> Result<W::Output, ResolutionRequestError>
    where
        W: HasWorkflowDefinition,
        W::Input: Send,
    {
        if let Some(ServicePause { reason, retry_after_seconds, .. }) = self.pause.clone() {
            return Err(ResolutionRequestError::Paused { reason, retry_after_seconds });
        }
        let workflow = options.workflow_id.clone();
        let away = |reason: String| ResolutionRequestError::Away { reason };
        let started = tokio::time::timeout(START_TIMEOUT, self.client.start_workflow(run, input, options)).await;
        let handle = match started {
            Ok(started) => started.map_err(|e| away(e.to_string()))?,
            // The server may have accepted it all the same.
            Err(_) => return Err(ResolutionRequestError::Late { workflow }),
        };
        match tokio::time::timeout(patience, handle.get_result(Default::default())).await {
            // The server took it, so it goes on without the caller.
            Ok(Err(WorkflowGetResultError::Rpc(_))) => Err(ResolutionRequestError::Late { workflow }),
            Ok(outcome) => outcome.map_err(|e| ResolutionRequestError::Failed { workflow, reason: find_cause(&e) }),
            Err(_) => Err(ResolutionRequestError::Late { workflow }),
        }
    }

    /// Whether the server answers within this time.
    pub(crate) async fn is_reachable(&self, patience: Duration) -> bool {
        let mut service = self.client.connection().workflow_service();
        let request = service.get_system_info(Request::new(GetSystemInfoRequest::default()));
        matches!(tokio::time::timeout(patience, request).await, Ok(Ok(_)))
    }
}

/// Keeps only the hex digits of what was typed, at most 16. They become part of a workflow's id and appear on
/// Temporal's web page, which renders Markdown.
pub(crate) fn extract_hex_digits(action: &str) -> String {
    action.chars().filter(char::is_ascii_hexdigit).take(16).collect::<String>().to_ascii_lowercase()
}

/// The outcome of a resolution in one word.
#[must_use]
pub fn describe_resolution(kind: ResolutionKind) -> &'static str {
    match kind {
        ResolutionKind::Undo => "undone",
        ResolutionKind::Confirm => "confirmed",
        ResolutionKind::Dismiss => "dismissed",
        ResolutionKind::Raise => "raised",
        ResolutionKind::Right => "called right",
        ResolutionKind::RightDone => "called right, and done by hand",
        ResolutionKind::Wrong => "called wrong",
        ResolutionKind::Reopen => "reopened",
    }
}

/// Why a workflow failed. The failures above the last cause only say which step it was.
fn find_cause(error: &WorkflowGetResultError) -> String {
    let WorkflowGetResultError::Failed(failure) = error else { return error.to_string() };
    let mut cause = failure.as_ref();
    while let Some(inner) = cause.cause() {
        cause = inner;
    }
    cause.failure().message.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_hex_digits_of_what_was_typed_reach_temporals_page() {
        assert_eq!(extract_hex_digits("3F9a1c22"), "3f9a1c22");
        assert_eq!(extract_hex_digits("[x](http://h)\n\u{1b}3f"), "3f");
    }
}

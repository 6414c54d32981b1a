//! Requests changes of a wiki through Temporal from the process that holds the vault.
//!
//! Each request is one workflow, as a resolution is. Ingesting one source twice at the same time is one run.

use crate::temporal::resolve::{ResolutionClient, ResolutionRequestError};
use std::time::Duration;
use steward_domain::action::plan::ContentHash;
use steward_domain::wiki::standard::is_slug;
use steward_workflows::{
    AssistantRunInput, AssistantRunWorkflow, ClerkEvalInput, ClerkEvalOutput, ClerkEvalWorkflow, EvalInput, EvalOutput,
    EvalWorkflow, FileAnswerInput, FileBackWorkflow, IngestInput, IngestOutput, IngestWorkflow, QueryInput,
    QueryOutput, QueryWorkflow, ReviewWorkflow, WikiRunInput, WikiRunOutput, WikiRunWorkflow,
};

impl ResolutionClient {
    /// Requests a change of a wiki and waits for its outcome.
    ///
    /// # Errors
    /// [`ResolutionRequestError`]. A refusal is an outcome, not an error.
    pub async fn request_wiki_run(&self, input: WikiRunInput) -> Result<WikiRunOutput, ResolutionRequestError> {
        let word = input.request.word();
        let about = serde_json::to_vec(&(&input.wiki, &input.request)).unwrap_or_default();
        let hash = ContentHash::hash_bytes(&about);
        let id = format!("al-wiki-run-{word}-{}{}", name_part(&input.wiki), &hash.as_str()[..12]);
        let options = self.build_start_options(id, format!("{word} in a wiki"));
        self.run_workflow(WikiRunWorkflow::run, input.into(), options).await
    }

    /// Requests that pages are made of a source, and waits so long for the outcome.
    ///
    /// # Errors
    /// [`ResolutionRequestError`]. A refusal is an outcome, not an error.
    pub async fn request_ingest(
        &self,
        input: IngestInput,
        patience: Duration,
    ) -> Result<IngestOutput, ResolutionRequestError> {
        let about = format!("{}\0{}", input.wiki, input.source.content_hash);
        let hash = ContentHash::hash_bytes(about.as_bytes());
        let id = format!("al-wiki-ingest-{}{}", name_part(&input.wiki), &hash.as_str()[..12]);
        let options = self.build_start_options(id, "ingest a source".to_owned());
        self.run_workflow_within(IngestWorkflow::run, input.into(), options, patience).await
    }

    /// Requests an answer to a question, and waits so long for it.
    ///
    /// # Errors
    /// [`ResolutionRequestError`]. A refusal is an outcome, not an error.
    pub async fn request_answer(
        &self,
        input: QueryInput,
        patience: Duration,
    ) -> Result<QueryOutput, ResolutionRequestError> {
        let about = serde_json::to_vec(&input).unwrap_or_default();
        let hash = ContentHash::hash_bytes(&about);
        let id = format!("al-wiki-query-{}{}", name_part(&input.wiki), &hash.as_str()[..12]);
        let options = self.build_start_options(id, "answer a question".to_owned());
        self.run_workflow_within(QueryWorkflow::run, input.into(), options, patience).await
    }

    /// Requests that a run is carried out that an assistant has submitted, and waits so long for the outcome.
    ///
    /// # Errors
    /// [`ResolutionRequestError`]. A refusal is an outcome, not an error.
    pub async fn request_assistant_run(
        &self,
        input: AssistantRunInput,
        patience: Duration,
    ) -> Result<IngestOutput, ResolutionRequestError> {
        let id = format!("al-wiki-assistant-{}-{}", input.run, input.submission);
        let options = self.build_start_options(id, "carry out a run of an assistant".to_owned());
        self.run_workflow_within(AssistantRunWorkflow::run, input.into(), options, patience).await
    }

    /// Requests that an answer becomes a page, and waits so long for the outcome.
    ///
    /// # Errors
    /// [`ResolutionRequestError`]. A refusal is an outcome, not an error.
    pub async fn request_filing(
        &self,
        input: FileAnswerInput,
        patience: Duration,
    ) -> Result<IngestOutput, ResolutionRequestError> {
        let about = format!("{}\0{}\0{}", input.wiki, input.answer, input.kind);
        let hash = ContentHash::hash_bytes(about.as_bytes());
        let id = format!("al-wiki-file-{}{}", name_part(&input.wiki), &hash.as_str()[..12]);
        let options = self.build_start_options(id, "file an answer".to_owned());
        self.run_workflow_within(FileBackWorkflow::run, input.into(), options, patience).await
    }

    /// Requests a review and its page, and waits so long for the outcome.
    ///
    /// # Errors
    /// [`ResolutionRequestError`]. A refusal is an outcome, not an error.
    pub async fn request_review(
        &self,
        input: EvalInput,
        patience: Duration,
    ) -> Result<IngestOutput, ResolutionRequestError> {
        let id = format!("al-wiki-review-{}", name_part(&input.wiki));
        let options = self.build_start_options(id.trim_end_matches('-').to_owned(), "review a wiki".to_owned());
        self.run_workflow_within(ReviewWorkflow::run, input.into(), options, patience).await
    }

    /// Requests a measurement, and waits so long for it.
    ///
    /// # Errors
    /// [`ResolutionRequestError`]. A refusal is an outcome, not an error.
    pub async fn request_eval(
        &self,
        input: EvalInput,
        patience: Duration,
    ) -> Result<EvalOutput, ResolutionRequestError> {
        let about = serde_json::to_vec(&input).unwrap_or_default();
        let hash = ContentHash::hash_bytes(&about);
        self.request_named_eval(&hash.as_str()[..12], input, patience).await
    }

    /// Requests a measurement for an assistant, one of a wiki at a time, and waits so long for it.
    ///
    /// # Errors
    /// [`ResolutionRequestError`]. A refusal is an outcome, not an error.
    pub async fn request_assistant_eval(
        &self,
        input: EvalInput,
        patience: Duration,
    ) -> Result<EvalOutput, ResolutionRequestError> {
        self.request_named_eval("assistant", input, patience).await
    }

    /// Requests a measurement of the clerk, and waits so long for it. One that is under way is waited for.
    ///
    /// # Errors
    /// [`ResolutionRequestError`].
    pub async fn request_clerk_eval(
        &self,
        input: ClerkEvalInput,
        patience: Duration,
    ) -> Result<ClerkEvalOutput, ResolutionRequestError> {
        let options = self.build_start_options(format!("al-clerk-eval-{}", input.eval), "measure the clerk".to_owned());
        self.run_workflow_within(ClerkEvalWorkflow::run, input.into(), options, patience).await
    }

    async fn request_named_eval(
        &self,
        name: &str,
        input: EvalInput,
        patience: Duration,
    ) -> Result<EvalOutput, ResolutionRequestError> {
        let id = format!("al-wiki-eval-{}{name}", name_part(&input.wiki));
        let options = self.build_start_options(id, "measure claims by the verifier".to_owned());
        self.run_workflow_within(EvalWorkflow::run, input.into(), options, patience).await
    }
}

/// The name of a wiki as a part of an id. Temporal's web page renders Markdown, so a name that could be any is left out.
fn name_part(wiki: &str) -> String {
    if is_slug(wiki) { format!("{wiki}-") } else { String::new() }
}

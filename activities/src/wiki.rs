//! Changes wikis for people: what they accept, add, ingest, approve and take back.
//!
//! All of it runs in the process that holds the vault, on its one write path. A refusal is a value and not a failure. A
//! repeated call finds what an earlier one did.

mod assistant;
mod change;
pub mod document;
mod eval;
mod file_back;
mod gold;
mod query;
pub mod reader;
mod review;
mod stage;
mod turn;
mod verify;
pub mod writer;

use crate::failure::retryable_failure;
use crate::steward::judge::run_until_cancelled;
use crate::vault::{VaultContext, read_workflow_ref, run_blocking};
use assistant::stage_assistant_run;
use change::{ReadDocument, change};
use chrono::Utc;
use file_back::stage_filed_answer;
use reader::DocumentReader;
use review::stage_review;
use stage::{StageSettings, stage_source};
use std::collections::BTreeMap;
use std::sync::Arc;
use steward_domain::action::audit::WorkflowRef;
use steward_domain::wiki::gates::WikiSettings;
use steward_domain::wiki::plan::RunFile;
use steward_domain::wiki::run::{RunId, WikiMode};
use steward_domain::wiki::source_text::find_format;
use steward_vault::action::writer::{ApplyError, VaultWriter};
use steward_vault::wiki::folder::WikiFolder;
use steward_vault::wiki::ingest::{RunApproval, describe_findings};
use steward_vault::wiki::request::WikiRunError;
use steward_vault::wiki::staged::{RunState, RunStatus, StagedRun, StagedRuns};
use steward_vault::wiki::state::{ReadWikiError, find_wiki_folder};
use steward_workflows::{
    AnswerQuestionInput, AnswerQuestionOutput, AssistantRunInput, CommitIngestOutput, EvalInput, EvalTurnInput,
    FileAnswerInput, IngestInput, SendTurnInput, SendTurnOutput, StageIngestOutput, WikiRequest, WikiRunInput,
    WikiRunOutput,
};
use temporalio_common::ActivityError;
use temporalio_macros::activities;
use temporalio_sdk::activities::ActivityContext;
use writer::WikiWriter;

const NOT_FOUND: u16 = 404;
const CONFLICT: u16 = 409;
const UNPROCESSABLE: u16 = 422;
/// What is said under a stop.
const STOPPED: &str = "stopped: `steward resume` ends the stop";

/// What is said if a page changed.
const STALE: &str =
    "stale_plan: a page changed since the run was staged, so this is not what you saw: ingest the source again";

/// Changes the wikis of the vault.
#[derive(Clone)]
pub struct WikiActivities {
    pub vault: VaultContext,
    /// What happens to a run that passed.
    pub mode: WikiMode,
    /// What may happen in each wiki that nobody asked for.
    pub wikis: Arc<BTreeMap<String, WikiSettings>>,
    pub reader: DocumentReader,
    /// Who writes the pages.
    pub writer: WikiWriter,
}

#[activities]
impl WikiActivities {
    #[activity(definition = steward_workflows::activities::ChangeWiki)]
    pub async fn change_wiki(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: WikiRunInput,
    ) -> Result<WikiRunOutput, ActivityError> {
        let workflow = read_workflow_ref(&ctx);
        run_until_cancelled(&ctx, self.carry_out(input, workflow)).await
    }

    #[activity(definition = steward_workflows::activities::StageIngest)]
    pub async fn stage_ingest(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: IngestInput,
    ) -> Result<StageIngestOutput, ActivityError> {
        let settings = self.stage_settings();
        run_until_cancelled(&ctx, self.stage(move |writer| stage_source(writer, &input, &settings))).await
    }

    #[activity(definition = steward_workflows::activities::StageAnswer)]
    pub async fn stage_answer(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: FileAnswerInput,
    ) -> Result<StageIngestOutput, ActivityError> {
        let settings = self.stage_settings();
        run_until_cancelled(&ctx, self.stage(move |writer| stage_filed_answer(writer, &input, &settings))).await
    }

    #[activity(definition = steward_workflows::activities::StageAssistant)]
    pub async fn stage_assistant(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: AssistantRunInput,
    ) -> Result<StageIngestOutput, ActivityError> {
        let settings = self.stage_settings();
        run_until_cancelled(&ctx, self.stage(move |writer| stage_assistant_run(writer, &input, &settings))).await
    }

    #[activity(definition = steward_workflows::activities::StageReview)]
    pub async fn stage_review(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: EvalInput,
    ) -> Result<StageIngestOutput, ActivityError> {
        let settings = self.stage_settings();
        run_until_cancelled(&ctx, self.stage(move |writer| stage_review(writer, &input, &settings))).await
    }

    #[activity(definition = steward_workflows::activities::AnswerQuestion)]
    pub async fn answer_question(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: AnswerQuestionInput,
    ) -> Result<AnswerQuestionOutput, ActivityError> {
        let tries = ctx.info().attempt;
        run_until_cancelled(&ctx, self.answer(input, tries)).await
    }

    #[activity(definition = steward_workflows::activities::EvalTurn)]
    pub async fn eval_turn(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: EvalTurnInput,
    ) -> Result<SendTurnOutput, ActivityError> {
        let tries = ctx.info().attempt;
        run_until_cancelled(&ctx, self.take_eval_turn(input, tries)).await
    }

    #[activity(definition = steward_workflows::activities::SendTurn)]
    pub async fn send_turn(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: SendTurnInput,
    ) -> Result<SendTurnOutput, ActivityError> {
        run_until_cancelled(&ctx, self.take_turn(input)).await
    }

    #[activity(definition = steward_workflows::activities::VerifyTurn)]
    pub async fn verify_turn(
        self: Arc<Self>,
        ctx: ActivityContext,
        input: SendTurnInput,
    ) -> Result<SendTurnOutput, ActivityError> {
        run_until_cancelled(&ctx, self.take_verifier_turn(input)).await
    }

    #[activity(definition = steward_workflows::activities::CommitIngest)]
    pub async fn commit_ingest(
        self: Arc<Self>,
        ctx: ActivityContext,
        run: RunId,
    ) -> Result<CommitIngestOutput, ActivityError> {
        let workflow = read_workflow_ref(&ctx);
        run_until_cancelled(&ctx, self.commit(run, workflow)).await
    }
}

impl WikiActivities {
    fn stage_settings(&self) -> StageSettings {
        StageSettings {
            mode: self.mode,
            live_mode: self.vault.settings.policy.mode,
            wikis: Arc::clone(&self.wikis),
            model: self.writer.describe_model(),
            has_verifier: self.writer.has_verifier(),
            allows_unverified: self.writer.allows_unverified,
        }
    }

    /// Stages a run. A refusal is a value.
    async fn stage(
        &self,
        stage: impl FnOnce(&VaultWriter) -> Result<StageIngestOutput, WikiRunError> + Send + 'static,
    ) -> Result<StageIngestOutput, ActivityError> {
        let writer = Arc::clone(&self.vault.writer);
        match run_blocking(move || stage(&writer)).await? {
            Ok(output) => Ok(output),
            Err(e) => {
                let (status, message) = refuse(e).map_err(retryable_failure)?;
                Ok(StageIngestOutput::Refused { status, message })
            }
        }
    }

    async fn carry_out(&self, input: WikiRunInput, workflow: WorkflowRef) -> Result<WikiRunOutput, ActivityError> {
        let read = match &input.request {
            WikiRequest::AddSource { path, upload } => self.read_document(&input.wiki, path, upload.as_ref()).await?,
            _ => None,
        };
        let (writer, mode) = (Arc::clone(&self.vault.writer), self.mode);
        let output = match run_blocking(move || change(&writer, &input, read, mode, workflow)).await? {
            Ok(output) => output,
            Err(e) => {
                let (status, message) = refuse(e).map_err(retryable_failure)?;
                WikiRunOutput::Refused { status, message }
            }
        };
        if let WikiRunOutput::Done { record: Some(record), .. } = &output {
            self.vault.reindex_paths(&[record]).await?;
        }
        Ok(output)
    }

    /// Takes the text out of a document whose bytes are not its text.
    async fn read_document(
        &self,
        wiki: &str,
        path: &str,
        upload: Option<&RunId>,
    ) -> Result<Option<ReadDocument>, ActivityError> {
        let Some(format) = find_format(path).filter(|format| format.needs_reader()) else { return Ok(None) };
        let (writer, wiki, path, upload) =
            (Arc::clone(&self.vault.writer), wiki.to_owned(), path.to_owned(), upload.cloned());
        let read = move || -> Result<Option<Vec<u8>>, WikiRunError> {
            if let Some(upload) = upload {
                return Ok(StagedRuns::new(writer.root()).read_upload(&upload)?);
            }
            let folder = find_wiki_folder(writer.root(), &wiki)?;
            let opened = WikiFolder::open(&writer.root().path().join(&folder));
            let opened = opened.map_err(|source| ReadWikiError::Io { path: folder, source })?;
            Ok(opened.read_source(&path).ok().flatten())
        };
        // Whatever is wrong with the file is said when it is added.
        let Some(bytes) = run_blocking(read).await?.ok().flatten() else { return Ok(None) };
        let decoded = self.reader.read(format, bytes.clone()).await;
        Ok(Some(ReadDocument { bytes, decoded }))
    }

    async fn commit(&self, run: RunId, workflow: WorkflowRef) -> Result<CommitIngestOutput, ActivityError> {
        let (writer, settings) = (Arc::clone(&self.vault.writer), self.stage_settings());
        let output = match run_blocking(move || commit_unseen(&writer, &run, &settings, &workflow)).await? {
            Ok(output) => output,
            Err(e) => {
                let (status, message) = refuse(e).map_err(retryable_failure)?;
                CommitIngestOutput::Refused { status, message }
            }
        };
        if let CommitIngestOutput::Committed { record, .. } = &output {
            self.vault.reindex_paths(&[record]).await?;
        }
        Ok(output)
    }
}

/// The status and the message of a refusal. What a repeat may fix is given back.
fn refuse(error: WikiRunError) -> Result<(u16, String), WikiRunError> {
    let status = match &error {
        WikiRunError::Verdict(verdict) => return Ok((UNPROCESSABLE, describe_findings(verdict))),
        WikiRunError::Stale => return Ok((CONFLICT, STALE.to_owned())),
        WikiRunError::Apply(ApplyError::Stopped) => return Ok((CONFLICT, STOPPED.to_owned())),
        WikiRunError::Refused(_) => CONFLICT,
        WikiRunError::Read(ReadWikiError::Unknown { .. }) => NOT_FOUND,
        WikiRunError::Read(ReadWikiError::Path(_) | ReadWikiError::File { .. }) => UNPROCESSABLE,
        WikiRunError::Path(_) | WikiRunError::Plan(_) | WikiRunError::Assemble(_) => UNPROCESSABLE,
        WikiRunError::Apply(ApplyError::Form(_) | ApplyError::Record { .. } | ApplyError::Conflict { .. }) => {
            UNPROCESSABLE
        }
        WikiRunError::Read(_) | WikiRunError::Staged(_) | WikiRunError::Apply(_) => return Err(error),
    };
    Ok((status, error.to_string()))
}

/// Ends a run that is refused. A failure of the machine ends nothing, because it is tried again.
fn reject(writer: &VaultWriter, run: &StagedRun, error: WikiRunError) -> Result<(u16, String), WikiRunError> {
    match refuse(error) {
        Ok((status, message)) => {
            writer.reject_run(run, Utc::now(), &message)?;
            Ok((status, message))
        }
        Err(error) => Err(error),
    }
}

fn read_files(run: &StagedRun) -> Result<Vec<RunFile>, WikiRunError> {
    Ok(run.read_staged()?.map_or_else(Vec::new, |(_, files)| files))
}

/// Commits a run that no person has seen, if it still may be committed. Otherwise it is staged again, and waits then.
fn commit_unseen(
    writer: &VaultWriter,
    run: &RunId,
    settings: &StageSettings,
    workflow: &WorkflowRef,
) -> Result<CommitIngestOutput, WikiRunError> {
    let may_commit = {
        let staged = StagedRuns::new(writer.root()).open(run)?;
        // A repeat finds it committed.
        let is_committed = staged.read_status()?.is_some_and(|status| status.state == RunState::Committed);
        is_committed || settings.still_commits(writer.root(), &staged.meta)?
    };
    match may_commit {
        true => commit_run(writer, run, None, workflow),
        false => Ok(CommitIngestOutput::Stale),
    }
}

fn commit_run(
    writer: &VaultWriter,
    run: &RunId,
    approval: Option<&RunApproval<'_>>,
    workflow: &WorkflowRef,
) -> Result<CommitIngestOutput, WikiRunError> {
    let run = StagedRuns::new(writer.root()).open(run)?;
    let status = run.read_status()?;
    // A person approves what waits for one. A repeat finds the run committed.
    let is_override = approval.is_some_and(|approval| approval.override_reason.is_some());
    let may_override = is_override && run.is_rejected_by_verifier()?;
    let is_open = |it: &RunStatus| match it.state {
        RunState::Rejected => may_override,
        RunState::Abandoned => false,
        RunState::Committed => true,
        RunState::Pending | RunState::Verifying => approval.is_none() || it.waits && !is_override,
    };
    if let Some(status) = status.filter(|status| !is_open(status)) {
        let message = format!("the run does not wait, it is {}: {}", status.state, status.reason);
        return Ok(CommitIngestOutput::Refused { status: CONFLICT, message });
    }
    let notes = run.read_staged()?.map_or_else(Vec::new, |(plan, _)| plan.notes);
    match writer.commit_staged(&run, approval, Utc::now(), workflow) {
        Ok(committed) => {
            run.set_status(RunState::Committed, Utc::now(), committed.receipt.record.as_str())?;
            let displaced = committed.displaced.iter().map(|path| format!("what was edited there is in {path}"));
            let notes = notes.into_iter().chain(displaced).collect();
            let (record, pages, writer) = (committed.receipt.record, committed.pages, run.meta.writer.clone());
            Ok(CommitIngestOutput::Committed { record, pages, notes, writer })
        }
        Err(WikiRunError::Stale) => Ok(CommitIngestOutput::Stale),
        Err(WikiRunError::Apply(ApplyError::Stopped))
            if approval.is_none() && (!run.meta.is_by_rules() || run.meta.review.is_some()) =>
        {
            Ok(CommitIngestOutput::Stopped)
        }
        Err(e) => {
            if let WikiRunError::Verdict(verdict) = &e
                && !is_override
            {
                run.write_verdict(verdict)?;
            }
            // What a person was asked about can be looked at and approved again.
            let (status, message) = if approval.is_some() { refuse(e)? } else { reject(writer, &run, e)? };
            Ok(CommitIngestOutput::Refused { status, message })
        }
    }
}

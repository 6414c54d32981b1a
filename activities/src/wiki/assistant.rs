//! Stages a run that an assistant has submitted, and says whether it waits for a person.
//!
//! What it wrote is carried out again on the wiki as it is now. If that does not fit any more, the run is open again for its assistant.

use super::stage::{StageSettings, finish_staging};
use super::{CONFLICT, NOT_FOUND, read_files};
use chrono::Utc;
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::root::VaultRoot;
use steward_vault::gates::stop;
use steward_vault::wiki::guardian::{GuardianSession, removes_pages};
use steward_vault::wiki::request::WikiRunError;
use steward_vault::wiki::runs::find_run_records;
use steward_vault::wiki::staged::{RunState, StagedRun, StagedRunError, StagedRuns};
use steward_vault::wiki::state::{ReadWiki, ReadWikiError, read_wiki};
use steward_workflows::{AssistantRunInput, StageIngestOutput};

/// Stages the changes of a run again that waits.
pub(super) fn stage_changes(
    root: &VaultRoot,
    wiki: ReadWiki,
    run: StagedRun,
) -> Result<(StagedRun, ReadWiki), WikiRunError> {
    let session = GuardianSession::resume(root, wiki, run)?;
    session.stage()?;
    Ok(session.into_run())
}

/// Stages a run that was submitted.
pub(super) fn stage_assistant_run(
    writer: &VaultWriter,
    input: &AssistantRunInput,
    settings: &StageSettings,
) -> Result<StageIngestOutput, WikiRunError> {
    let root = writer.root();
    let refuse = |status, message: String| Ok(StageIngestOutput::Refused { status, message });
    let run = match StagedRuns::new(root).open(&input.run) {
        Err(StagedRunError::Unknown(run)) => return refuse(NOT_FOUND, format!("there is no run {run}")),
        opened => opened?,
    };
    let meta = run.meta.clone();
    if !meta.is_by_assistant() || meta.wiki != input.wiki {
        return refuse(CONFLICT, format!("no assistant writes the run {} of this wiki", meta.run));
    }
    let status = run.read_status()?;
    let is_committed = !find_run_records(root, meta.run.as_str()).map_err(ReadWikiError::from)?.is_empty();
    match status {
        _ if is_committed => return Ok(StageIngestOutput::Staged { run: meta.run, waits: false }),
        Some(status) if status.waits => return Ok(StageIngestOutput::Staged { run: meta.run, waits: true }),
        Some(status) if !matches!(status.state, RunState::Pending | RunState::Verifying) => {
            return refuse(CONFLICT, format!("the run is {}: {}", status.state, status.reason));
        }
        Some(_) | None => {}
    }
    if stop::is_stopped(root) {
        return Ok(StageIngestOutput::Stopped);
    }
    let wiki = read_wiki(root, &meta.wiki, &meta.folder)?;
    let mut session = GuardianSession::resume(root, wiki, run)?;
    if !session.is_submitted() {
        return refuse(CONFLICT, "the run was not submitted".to_owned());
    }
    match session.stage().map_err(WikiRunError::from) {
        Ok(()) => {}
        // Whatever does not fit is for the assistant to correct; a failure of the machine is tried again.
        Err(error @ (WikiRunError::Refused(_) | WikiRunError::Verdict(_))) => {
            session.reopen(Utc::now(), "its assistant corrects what does not fit any more")?;
            return refuse(CONFLICT, format!("revise: {error}"));
        }
        Err(error) => return Err(error),
    }
    let (run, wiki) = session.into_run();
    let is_draft = removes_pages(&read_files(&run)?);
    finish_staging(writer, &wiki, run, settings, is_draft)
}

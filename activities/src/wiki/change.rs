//! Carries out one change of a wiki that a person asked for.
//!
//! A refusal is a value. A repeated call finds what an earlier one did.

use super::stage::{RestagedRun, stage_again};
use super::{CONFLICT, NOT_FOUND, STALE, STOPPED, UNPROCESSABLE, commit_run, refuse};
use steward_domain::action::audit::WorkflowRef;
use steward_domain::record::path::RecordPath;
use steward_domain::wiki::rollback::EditedPages;
use steward_domain::wiki::run::{RunId, WikiMode};
use steward_domain::wiki::source_text::DecodedText;
use steward_vault::action::writer::VaultWriter;
use steward_vault::wiki::fix::FixedWiki;
use steward_vault::wiki::ingest::RunApproval;
use steward_vault::wiki::request::{WikiRunError, WikiRunRequest};
use steward_vault::wiki::revert::{RevertError, RevertRequest, RevertedRun};
use steward_vault::wiki::runs::find_run_records;
use steward_vault::wiki::settle::{ManualRun, SettleChoice};
use steward_vault::wiki::sources::SourceDocument;
use steward_vault::wiki::staged::{RunState, RunStatus, StagedRunError, StagedRuns};
use steward_vault::wiki::state::ReadWikiError;
use steward_workflows::{CommitIngestOutput, WikiRequest, WikiRunInput, WikiRunOutput};

/// A document with what its reader took from it, or why it took nothing.
pub(super) struct ReadDocument {
    pub(super) bytes: Vec<u8>,
    pub(super) decoded: Result<DecodedText, String>,
}

fn refuse_with(status: u16, message: &str) -> WikiRunOutput {
    WikiRunOutput::Refused { status, message: message.to_owned() }
}

pub(super) fn change(
    writer: &VaultWriter,
    input: &WikiRunInput,
    read: Option<ReadDocument>,
    mode: WikiMode,
    workflow: WorkflowRef,
) -> Result<WikiRunOutput, WikiRunError> {
    let request = WikiRunRequest { wiki: &input.wiki, by: &input.by, at: input.at, workflow };
    let runs = StagedRuns::new(writer.root());
    match &input.request {
        WikiRequest::Accept { files } => {
            let receipt = writer.accept_wiki(&request, files)?;
            Ok(WikiRunOutput::Done { record: Some(receipt.record), source: None, notes: Vec::new() })
        }
        WikiRequest::AddSource { path, upload } => {
            let (bytes, decoded) = match read {
                Some(ReadDocument { bytes, decoded }) => (Some(bytes), Some(decoded)),
                None => (upload.as_ref().map(|upload| runs.read_upload(upload)).transpose()?.flatten(), None),
            };
            let output = match writer.add_source(&request, SourceDocument { path, bytes, decoded }) {
                Ok(added) => {
                    let record = added.receipt.map(|receipt| receipt.record);
                    let notes = added.unreadable.into_iter().collect();
                    WikiRunOutput::Done { record, source: Some(added.source), notes }
                }
                // What failed is tried again, and needs the bytes.
                Err(e) => {
                    let (status, message) = refuse(e)?;
                    WikiRunOutput::Refused { status, message }
                }
            };
            upload.as_ref().map_or(Ok(()), |upload| runs.remove(upload))?;
            Ok(output)
        }
        WikiRequest::Supersede { old, new } => {
            let record = writer.supersede_source(&request, old, new)?.map(|receipt| receipt.record);
            Ok(WikiRunOutput::Done { record, source: None, notes: Vec::new() })
        }
        WikiRequest::Reject { run, reason } => reject_open(writer, run, reason.as_deref(), input),
        WikiRequest::Revert { run, keep_edited, reason } => {
            let edited = if *keep_edited { EditedPages::Keep } else { EditedPages::Refuse };
            revert(writer, run, RevertChoice { edited, reason: reason.as_deref() }, &request)
        }
        WikiRequest::Settle { page, claim, keep } => {
            Ok(describe_manual(writer.settle_wiki_dispute(&request, SettleChoice { page, claim, keep })?))
        }
        WikiRequest::Confirm { page } => Ok(describe_manual(writer.confirm_wiki_page(&request, page)?)),
        WikiRequest::Fix { pages: true } if mode != WikiMode::Live => {
            let held = format!("no page was corrected, because STEWARD_WIKI_MODE is {mode}");
            Ok(describe_manual_with(vec![held], writer.render_wiki_files(&request)?))
        }
        WikiRequest::Fix { pages: false } => Ok(describe_manual(writer.render_wiki_files(&request)?)),
        WikiRequest::Fix { pages: true } => {
            let FixedWiki { run, notes } = writer.fix_wiki(&request)?;
            Ok(describe_manual_with(notes, run))
        }
        WikiRequest::Lint => Ok(describe_manual(writer.log_wiki_check(&request)?)),
        WikiRequest::Approve { override_reason: Some(reason), .. } if reason.trim().is_empty() => {
            Ok(refuse_with(UNPROCESSABLE, "an override needs a reason"))
        }
        WikiRequest::Approve { run, staged, override_reason, in_terminal } => {
            let override_reason = override_reason.as_deref();
            let approval = RunApproval { staged, by: &input.by, override_reason, in_terminal: *in_terminal };
            approve(writer, run, &approval, &request.workflow)
        }
    }
}

/// Ends a run that a person rejects, before it is committed. The assistant that wrote it gives it up in the same way.
fn reject_open(
    writer: &VaultWriter,
    run: &RunId,
    reason: Option<&str>,
    input: &WikiRunInput,
) -> Result<WikiRunOutput, WikiRunError> {
    let staged = match StagedRuns::new(writer.root()).open(run) {
        Err(StagedRunError::Busy(_)) => {
            return Ok(refuse_with(CONFLICT, "a call about the run is under way: try again in some minutes"));
        }
        opened => opened?,
    };
    let is_own = staged.meta.is_by_assistant() && staged.meta.by == input.by;
    // A repeat finds that it is done.
    let is_open = |status: &RunStatus| match status.state {
        RunState::Pending | RunState::Verifying => true,
        RunState::Rejected => (status.rejected_by.as_ref(), status.at) == (Some(&input.by), input.at),
        RunState::Abandoned => is_own && status.at == input.at,
        RunState::Committed => false,
    };
    if let Some(status) = staged.read_status()?.filter(|status| !is_open(status)) {
        return Ok(refuse_with(CONFLICT, &format!("the run is {}: {}", status.state, status.reason)));
    }
    // After a crash its state may not say so yet.
    if !find_run_records(writer.root(), run.as_str()).map_err(ReadWikiError::from)?.is_empty() {
        return Ok(refuse_with(CONFLICT, &format!("the run is {}", RunState::Committed)));
    }
    match is_own {
        true => writer.withdraw_run(&staged, input.at, reason)?,
        false => writer.reject_by_person(&staged, input.at, &input.by, reason)?,
    }
    Ok(WikiRunOutput::Done { record: None, source: None, notes: Vec::new() })
}

/// Commits what a person saw. If its pages changed since, it is made again, and committed if it does the same.
fn approve(
    writer: &VaultWriter,
    run: &RunId,
    approval: &RunApproval<'_>,
    workflow: &WorkflowRef,
) -> Result<WikiRunOutput, WikiRunError> {
    let commit = |approval: &RunApproval<'_>| commit_run(writer, run, Some(approval), workflow);
    let committed = commit(approval)?;
    // It passed the rules when it was left to a person. If it does not now, other pages have changed.
    let is_outdated = match &committed {
        CommitIngestOutput::Stale => true,
        CommitIngestOutput::Refused { status, .. } => *status == UNPROCESSABLE,
        CommitIngestOutput::Committed { .. } | CommitIngestOutput::Stopped => false,
    };
    if !is_outdated || approval.override_reason.is_some() {
        return Ok(describe_commit(committed));
    }
    match stage_again(writer, run)? {
        RestagedRun::Same(staged) => Ok(describe_commit(commit(&RunApproval { staged: &staged, ..*approval })?)),
        RestagedRun::Changed => Ok(refuse_with(
            CONFLICT,
            "its pages changed since it was made, so it was made again, and is another one now: look at it once more",
        )),
        RestagedRun::Impossible if committed == CommitIngestOutput::Stale => Ok(refuse_with(CONFLICT, STALE)),
        RestagedRun::Impossible => Ok(describe_commit(committed)),
        RestagedRun::Refused { status, message } => Ok(WikiRunOutput::Refused { status, message }),
    }
}

fn describe_commit(output: CommitIngestOutput) -> WikiRunOutput {
    match output {
        CommitIngestOutput::Committed { record, notes, .. } => {
            WikiRunOutput::Done { record: Some(record), source: None, notes }
        }
        CommitIngestOutput::Stale => refuse_with(CONFLICT, STALE),
        CommitIngestOutput::Stopped => refuse_with(CONFLICT, STOPPED),
        CommitIngestOutput::Refused { status, message } => WikiRunOutput::Refused { status, message },
    }
}

/// How a run is taken back, and why.
struct RevertChoice<'a> {
    edited: EditedPages,
    reason: Option<&'a str>,
}

fn revert(
    writer: &VaultWriter,
    run: &RunId,
    RevertChoice { edited, reason }: RevertChoice<'_>,
    request: &WikiRunRequest<'_>,
) -> Result<WikiRunOutput, WikiRunError> {
    let records = find_run_records(writer.root(), run.as_str()).map_err(ReadWikiError::from)?;
    let [record]: [RecordPath; 1] = match records.try_into() {
        Ok(one) => one,
        Err(_) => return Ok(refuse_with(NOT_FOUND, &format!("there is no committed run {run}"))),
    };
    let request = RevertRequest {
        record: &record,
        by: request.by,
        reason,
        edited,
        at: request.at,
        workflow: request.workflow.clone(),
    };
    match writer.revert_run(&request) {
        Ok(reverted) => {
            let notes = describe_rollback(&reverted);
            Ok(WikiRunOutput::Done { record: Some(reverted.receipt.record), source: None, notes })
        }
        // The words that stand there are no part of a workflow.
        Err(RevertError::Conflicts(conflicts)) => {
            let places: Vec<String> = conflicts.iter().map(|it| format!("{}: {}", it.file, it.reason)).collect();
            Ok(refuse_with(CONFLICT, &format!("in the way: {}", places.join("; "))))
        }
        Err(e @ (RevertError::Nothing(_) | RevertError::Again(_))) => Ok(refuse_with(CONFLICT, &e.to_string())),
        Err(e @ (RevertError::NotARun(_) | RevertError::Details { .. })) => {
            Ok(refuse_with(UNPROCESSABLE, &e.to_string()))
        }
        Err(RevertError::Path(e)) => Err(e.into()),
        Err(RevertError::Plan(e)) => Err(e.into()),
        Err(RevertError::Read(e)) => Err(e.into()),
        Err(RevertError::Assemble(e)) => Err(e.into()),
        Err(RevertError::Apply(e)) => Err(e.into()),
    }
}

fn describe_manual(done: ManualRun) -> WikiRunOutput {
    describe_manual_with(Vec::new(), done)
}

/// The outcome with these notes first.
fn describe_manual_with(mut notes: Vec<String>, done: ManualRun) -> WikiRunOutput {
    notes.extend(done.displaced.iter().map(|path| format!("what was edited there is in {path}")));
    WikiRunOutput::Done { record: done.receipt.map(|receipt| receipt.record), source: None, notes }
}

fn describe_rollback(reverted: &RevertedRun) -> Vec<String> {
    let kept = reverted.kept.iter().map(|page| format!("{} stays: {}", page.file, page.reason));
    let displaced = reverted.displaced.iter().map(|path| format!("what was edited there is in {path}"));
    kept.chain(displaced).collect()
}

//! One turn of the model that checks what another one wrote: reserved, sent, kept, settled.
//!
//! It never lets a run pass that it did not check: without an answer the run stays as it is, for a day.

use super::turn::{
    FAILURE_WAIT, LONGEST_WAIT, TIMEOUT, end_run, is_late, note_wait, refuse_for_cap, refuse_turn, wait_for_cap,
};
use super::writer::describe_settlement;
use super::{CONFLICT, UNPROCESSABLE, WikiActivities, describe_findings, reject};
use crate::failure::retryable_failure;
use crate::vault::run_blocking;
use chrono::{TimeDelta, Utc};
use std::sync::Arc;
use steward_domain::steward::clerk::ClerkMark;
use steward_domain::steward::conversation::{Conversation, TurnOutcome, TurnReply};
use steward_domain::steward::guard::SettlementOutcome;
use steward_domain::wiki::run::{RunId, WikiRunType};
use steward_domain::wiki::verifier::{
    MAX_LOOPS, VerifierBatch, VerifierLine, VerifierProgress, VerifierStep, find_verifier_model,
};
use steward_domain::wiki::verify::{RulesVerdict, RunFinding, Verdict};
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::crash;
use steward_vault::files::root::VaultRoot;
use steward_vault::gates::stop;
use steward_vault::wiki::check::VerifierSession;
use steward_vault::wiki::guardian::GuardianSession;
use steward_vault::wiki::request::WikiRunError;
use steward_vault::wiki::staged::{RunState, StagedRun, StagedRunError, StagedRuns};
use steward_vault::wiki::state::{ReadWiki, read_wiki};
use steward_vault::wiki::verdicts::{RunVerdict, VerdictLayer, log_verdict};
use steward_vault::wiki::write::WriterSession;
use steward_workflows::{SendTurnInput, SendTurnOutput};
use temporalio_common::ActivityError;

/// How long a run may wait for its verifier.
const VERIFYING_LIMIT: TimeDelta = TimeDelta::hours(24);

/// What one turn begins with.
enum CheckStart {
    Send { session: Box<VerifierSession>, batch: VerifierBatch, conversation: Box<Conversation> },
    Over(SendTurnOutput),
}

/// A call that asks the verifier about a batch.
pub(super) struct VerifierCall<'a> {
    pub(super) wiki: &'a str,
    /// The run that is checked; `None` for a measurement.
    pub(super) run: Option<&'a RunId>,
    /// The id of the call for the guard.
    pub(super) id: String,
    /// The number of the line that it becomes.
    pub(super) number: u32,
    /// Whether it is refused rather than waited for if the guard has no room.
    pub(super) needs_room: bool,
    pub(super) batch: &'a VerifierBatch,
    pub(super) conversation: &'a Conversation,
}

impl WikiActivities {
    pub(super) async fn take_verifier_turn(&self, input: SendTurnInput) -> Result<SendTurnOutput, ActivityError> {
        let writer = Arc::clone(&self.vault.writer);
        let start = run_blocking(move || begin_check(&writer, &input)).await?;
        let (mut session, batch, conversation) = match start {
            Ok(CheckStart::Send { session, batch, conversation }) => (session, batch, conversation),
            Ok(CheckStart::Over(output)) => return Ok(output),
            Err(e) => return refuse_turn(e),
        };
        let (meta, number) = (session.run().meta.clone(), session.progress().next);
        let id = format!("{}-check-{number}", meta.run);
        let call = VerifierCall {
            wiki: &meta.wiki,
            run: Some(&meta.run),
            id,
            number,
            needs_room: false,
            batch: &batch,
            conversation: &conversation,
        };
        let keep = move |line: Option<VerifierLine>| {
            line.map_or(Ok(()), |line| session.append(line))?;
            Ok::<_, StagedRunError>(session.progress())
        };
        match self.ask_verifier(call, keep).await? {
            SendTurnOutput::Refused { status, message } => {
                let (writer, run) = (Arc::clone(&self.vault.writer), meta.run);
                let end = move || {
                    let run = StagedRuns::new(writer.root()).open(&run)?;
                    end_run(&writer, &run, status, message)
                };
                run_blocking(end).await?.map_err(retryable_failure)
            }
            output => Ok(output),
        }
    }

    /// Reserves and sends a call to the verifier, keeps its line, and settles it. `keep` returns how far the verifier has come.
    pub(super) async fn ask_verifier<E: std::error::Error + Send + Sync + 'static>(
        &self,
        call: VerifierCall<'_>,
        keep: impl FnOnce(Option<VerifierLine>) -> Result<VerifierProgress, E> + Send + 'static,
    ) -> Result<SendTurnOutput, ActivityError> {
        let VerifierCall { wiki, run, id, number, needs_room, batch, conversation } = call;
        let reservation = match self.writer.reserve(&self.writer.verifier, wiki, id, conversation).await {
            Ok(reservation) => reservation,
            Err(refusal) => {
                // It holds the run.
                drop(keep);
                let output = if needs_room { refuse_for_cap(&refusal) } else { wait_for_cap(&refusal, number) };
                if let (Some(run), SendTurnOutput::Wait { .. } | SendTurnOutput::Stopped) = (run.cloned(), &output) {
                    let root = self.vault.writer.root().clone();
                    let note = move || note_wait(&StagedRuns::new(&root).open(&run)?, RunState::Verifying, &refusal);
                    run_blocking(note).await?.map_err(retryable_failure)?;
                }
                return Ok(output);
            }
        };
        crash::die_if_armed("before-verdict");
        if stop::is_stopped(self.vault.writer.root()) {
            self.writer.settle(&reservation, SettlementOutcome::NotSent).await;
            return Ok(SendTurnOutput::Stopped);
        }
        let sent = self.writer.verifier.send_turn(&reservation, conversation).await;
        let Some(TurnReply { outcome, clerk }) = sent else {
            self.writer.settle(&reservation, SettlementOutcome::NotSent).await;
            let message = "the verifier is not set any more".to_owned();
            return Ok(SendTurnOutput::Refused { status: CONFLICT, message });
        };
        let settlement = describe_settlement(&outcome, clerk.tokens);
        let line = keep_outcome(&outcome, batch, clerk);
        let limited = match &outcome {
            TurnOutcome::RateLimited { retry_after_seconds } => Some(retry_after_seconds.unwrap_or(FAILURE_WAIT)),
            TurnOutcome::NotSent { .. } => Some(FAILURE_WAIT),
            _ => None,
        };
        let kept = run_blocking(move || {
            let kept = keep(line);
            crash::die_if_armed("after-verdict");
            kept
        })
        .await;
        self.writer.settle(&reservation, settlement).await;
        let VerifierProgress { next: turn, failures } = kept?.map_err(retryable_failure)?;
        Ok(match limited.or_else(|| (failures > 0).then(|| find_wait(failures))) {
            None => SendTurnOutput::Continue { turn },
            Some(seconds) => SendTurnOutput::Wait { seconds: seconds.clamp(1, LONGEST_WAIT), turn },
        })
    }
}

/// The line that is kept of an outcome.
fn keep_outcome(outcome: &TurnOutcome, batch: &VerifierBatch, clerk: ClerkMark) -> Option<VerifierLine> {
    match outcome {
        TurnOutcome::Answered(answer) => {
            Some(batch.read_answer(answer, clerk).unwrap_or_else(|reason| VerifierLine::Failed { reason }))
        }
        TurnOutcome::NoTools { .. } => Some(VerifierLine::Form),
        TurnOutcome::Failed { reason } => Some(VerifierLine::Failed { reason: reason.clone() }),
        TurnOutcome::RateLimited { .. } => Some(VerifierLine::Limited),
        TurnOutcome::NotSent { .. } => None,
    }
}

/// The wait after so many calls in a row without an answer.
fn find_wait(failures: u32) -> u64 {
    FAILURE_WAIT.saturating_mul(10_u64.saturating_pow(failures.saturating_sub(1))).min(LONGEST_WAIT)
}

fn begin_check(writer: &VaultWriter, input: &SendTurnInput) -> Result<CheckStart, WikiRunError> {
    let root = writer.root();
    if stop::is_stopped(root) {
        return Ok(CheckStart::Over(SendTurnOutput::Stopped));
    }
    let over = |output| Ok(CheckStart::Over(output));
    let run = StagedRuns::new(root).open(&input.run)?;
    if let Some(status) = run.read_status()?
        && !matches!(status.state, RunState::Pending | RunState::Verifying)
    {
        let message = format!("the run is {}: {}", status.state, status.reason);
        return over(SendTurnOutput::Refused { status: CONFLICT, message });
    }
    if is_late(&run, VERIFYING_LIMIT, input.stopped_seconds) {
        let message = "verifier_timeout: no answer of the verifier within 24 hours".to_owned();
        writer.abandon_run(&run, Utc::now(), &message)?;
        return over(SendTurnOutput::Refused { status: TIMEOUT, message });
    }
    run.set_status(RunState::Verifying, Utc::now(), "a model checks every claim")?;
    let wiki = read_wiki(root, &run.meta.wiki, &run.meta.folder)?;
    let name = run.meta.run.clone();
    let session = match VerifierSession::open(root, &wiki, run) {
        Ok(session) => session,
        Err(e) => {
            let (status, message) = reject(writer, &StagedRuns::new(root).open(&name)?, e)?;
            return over(SendTurnOutput::Refused { status, message });
        }
    };
    let turn = session.progress().next;
    match session.find_next_step() {
        VerifierStep::Send { .. } if turn > input.turn => over(SendTurnOutput::Continue { turn }),
        VerifierStep::Send { batch, conversation } => {
            Ok(CheckStart::Send { session: Box::new(session), batch, conversation: Box::new(conversation) })
        }
        VerifierStep::Passed => {
            log_clerk_verdict(root, session.run(), Verdict::Commit, &[]);
            over(SendTurnOutput::Written)
        }
        VerifierStep::Spent => {
            let message = "budget: the calls of the verifier are used up".to_owned();
            over(end_run(writer, session.run(), UNPROCESSABLE, message)?)
        }
        VerifierStep::Found(findings) => over(revise(writer, wiki, session.into_run(), &findings)?),
    }
}

/// Keeps what a model said about a run in the log of verdicts.
fn log_clerk_verdict(root: &VaultRoot, run: &StagedRun, verdict: Verdict, findings: &[RunFinding]) {
    let lines = run.read_verifier().unwrap_or_default();
    let verifier = find_verifier_model(&lines);
    let layer = VerdictLayer::Clerk;
    log_verdict(root, &run.meta, RunVerdict { layer, verdict, verifier: verifier.as_deref(), findings }, Utc::now());
}

fn reject_by_verifier(
    writer: &VaultWriter,
    run: &StagedRun,
    found: &RulesVerdict,
) -> Result<SendTurnOutput, WikiRunError> {
    log_clerk_verdict(writer.root(), run, Verdict::Reject, &found.findings);
    let message = format!("rejected by the verifier: {}", describe_findings(found));
    writer.reject_by_verifier(run, Utc::now(), &message)?;
    Ok(SendTurnOutput::Refused { status: UNPROCESSABLE, message })
}

/// Opens the run for its assistant again, or ends it.
fn revise_assistant(
    writer: &VaultWriter,
    wiki: ReadWiki,
    run: StagedRun,
    found: &RulesVerdict,
) -> Result<SendTurnOutput, WikiRunError> {
    let mut session = GuardianSession::resume(writer.root(), wiki, run)?;
    if !session.has_submissions_left() {
        return reject_by_verifier(writer, session.run(), found);
    }
    log_clerk_verdict(writer.root(), session.run(), found.verdict, &found.findings);
    session.reopen(Utc::now(), "its assistant corrects what the verifier found")?;
    let message = format!("revise: the verifier found: {}", describe_findings(found));
    Ok(SendTurnOutput::Refused { status: UNPROCESSABLE, message })
}

/// Gives what was found back to the writer, or ends the run.
fn revise(
    writer: &VaultWriter,
    wiki: ReadWiki,
    run: StagedRun,
    findings: &[RunFinding],
) -> Result<SendTurnOutput, WikiRunError> {
    let verdict = RulesVerdict { verdict: Verdict::Revise, findings: findings.to_vec(), claims: Vec::new() };
    run.write_verdict(&verdict)?;
    if run.meta.is_by_assistant() {
        return revise_assistant(writer, wiki, run, &verdict);
    }
    if run.meta.run_type == WikiRunType::Archive {
        // Nobody writes an answer again.
        return reject_by_verifier(writer, &run, &verdict);
    }
    run.set_status(RunState::Pending, Utc::now(), "its writer corrects what the verifier found")?;
    let mut session = WriterSession::open(writer.root(), wiki, run)?;
    if session.transcript().count_revisions() + 1 >= MAX_LOOPS {
        return reject_by_verifier(writer, session.run(), &verdict);
    }
    log_clerk_verdict(writer.root(), session.run(), verdict.verdict, findings);
    session.begin_revision(findings)?;
    Ok(SendTurnOutput::Written)
}

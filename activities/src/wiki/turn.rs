//! One turn of the model that writes a wiki: reserved, sent, kept, settled, carried out.
//!
//! The answer is kept before anything follows from it. A turn that was answered is never sent again.

use super::writer::describe_settlement;
use super::{CONFLICT, UNPROCESSABLE, WikiActivities, reject};
use crate::failure::retryable_failure;
use crate::vault::run_blocking;
use chrono::{DateTime, TimeDelta, Utc};
use std::sync::Arc;
use steward_domain::record::plain_text::to_one_line;
use steward_domain::steward::conversation::{Conversation, TurnOutcome, TurnReply};
use steward_domain::steward::guard::{GuardCap, GuardRefusal, SettlementOutcome};
use steward_domain::time::format_seconds;
use steward_domain::wiki::writer::transcript::{TranscriptLine, WriterFailure};
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::crash;
use steward_vault::gates::stop;
use steward_vault::wiki::request::WikiRunError;
use steward_vault::wiki::staged::{RunState, StagedRun, StagedRuns};
use steward_vault::wiki::state::read_wiki;
use steward_vault::wiki::write::{SessionStep, WriterSession};
use steward_workflows::{SendTurnInput, SendTurnOutput};
use temporalio_common::ActivityError;

/// How long a model may write: 60 min. The time of a stop does not count.
const WRITING_LIMIT: TimeDelta = TimeDelta::minutes(60);
/// How many calls in a row may end without an answer.
pub(super) const MAX_FAILURES: usize = 3;
/// The most calls of tools in one answer.
const MAX_CALLS: usize = 32;
/// The wait after a call without an answer, and the longest wait for a cap, in seconds.
pub(super) const FAILURE_WAIT: u64 = 5;
pub(super) const LONGEST_WAIT: u64 = 600;
/// How the reason of a run begins that the guard lets wait.
const WAITS: &str = "it waits: ";
pub(super) const BAD_GATEWAY: u16 = 502;
pub(super) const TIMEOUT: u16 = 408;
const TOO_MANY_REQUESTS: u16 = 429;

/// What one turn begins with.
enum TurnStart {
    Send { session: Box<WriterSession>, n: u32, conversation: Box<Conversation> },
    Over(SendTurnOutput),
}

impl WikiActivities {
    pub(super) async fn take_turn(&self, input: SendTurnInput) -> Result<SendTurnOutput, ActivityError> {
        let writer = Arc::clone(&self.vault.writer);
        let shared = Arc::clone(&writer);
        let start = run_blocking(move || begin_turn(&shared, &input)).await?;
        let (mut session, n, conversation) = match start {
            Ok(TurnStart::Send { session, n, conversation }) => (session, n, conversation),
            Ok(TurnStart::Over(output)) => return Ok(output),
            Err(e) => return refuse_turn(e),
        };
        let (meta, lines) = (&session.run().meta, session.transcript().lines.len());
        let call = format!("{}-{n}-{lines}", meta.run);
        let reservation = match self.writer.reserve(&self.writer.clerk, &meta.wiki, call, &conversation).await {
            Ok(reservation) => reservation,
            Err(refusal) => {
                let output = wait_for_cap(&refusal, n);
                let end = move || match output {
                    SendTurnOutput::Refused { status, message } => end_run(&writer, session.run(), status, message),
                    output => note_wait(session.run(), RunState::Pending, &refusal).map(|()| output),
                };
                return run_blocking(end).await?.map_err(retryable_failure);
            }
        };
        crash::die_if_armed("before-turn");
        if stop::is_stopped(self.vault.writer.root()) {
            self.writer.settle(&reservation, SettlementOutcome::NotSent).await;
            return Ok(SendTurnOutput::Stopped);
        }
        let Some(TurnReply { outcome, clerk }) = self.writer.clerk.send_turn(&reservation, &conversation).await else {
            self.writer.settle(&reservation, SettlementOutcome::NotSent).await;
            let message = "the model of this run is not set any more".to_owned();
            return Ok(SendTurnOutput::Refused { status: CONFLICT, message });
        };
        let settlement = describe_settlement(&outcome, clerk.tokens);
        let outcome = refuse_many_calls(outcome);
        let line = match &outcome {
            TurnOutcome::Answered(turn) => Some(TranscriptLine::Turn { n, turn: turn.clone(), clerk }),
            TurnOutcome::NoTools { .. } => Some(TranscriptLine::Form),
            TurnOutcome::Failed { reason } => Some(TranscriptLine::Failed { n, reason: reason.clone() }),
            TurnOutcome::RateLimited { .. } => Some(TranscriptLine::Limited),
            TurnOutcome::NotSent { .. } => None,
        };
        let ended = move || -> Result<SendTurnOutput, WikiRunError> {
            if let Some(line) = line {
                session.append(line)?;
            }
            crash::die_if_armed("after-answer");
            finish_turn(&writer, &mut session, n, &outcome)
        };
        let kept = run_blocking(ended).await;
        self.writer.settle(&reservation, settlement).await;
        crash::die_if_armed("after-turn");
        kept?.map_err(retryable_failure)
    }
}

/// An answer with more calls than a person would make is no answer. The calls cost what they cost.
fn refuse_many_calls(outcome: TurnOutcome) -> TurnOutcome {
    match &outcome {
        TurnOutcome::Answered(turn) if turn.calls.len() > MAX_CALLS => {
            let reason = format!("{} calls in one answer, more than {MAX_CALLS}", turn.calls.len());
            TurnOutcome::Failed { reason }
        }
        _ => outcome,
    }
}

/// Whether a run has used up its time. The time of a stop does not count.
pub(super) fn is_late(run: &StagedRun, limit: TimeDelta, stopped_seconds: u64) -> bool {
    let stopped = i64::try_from(stopped_seconds).ok().and_then(TimeDelta::try_seconds);
    let limit = stopped.and_then(|stopped| limit.checked_add(&stopped));
    limit.and_then(|limit| run.meta.began.checked_add_signed(limit)).is_some_and(|end| Utc::now() > end)
}

/// Opens the session, and carries out what was answered before.
fn begin_turn(writer: &VaultWriter, input: &SendTurnInput) -> Result<TurnStart, WikiRunError> {
    let root = writer.root();
    if stop::is_stopped(root) {
        return Ok(TurnStart::Over(SendTurnOutput::Stopped));
    }
    let over = |output| Ok(TurnStart::Over(output));
    let run = StagedRuns::new(root).open(&input.run)?;
    let status = run.read_status()?;
    if let Some(status) = status.as_ref().filter(|status| status.state != RunState::Pending) {
        let message = format!("the run is {}: {}", status.state, status.reason);
        return over(SendTurnOutput::Refused { status: CONFLICT, message });
    }
    if status.is_some_and(|status| status.reason.starts_with(WAITS)) {
        run.set_status(RunState::Pending, Utc::now(), "it is being written")?;
    }
    if is_late(&run, WRITING_LIMIT, input.stopped_seconds) {
        let message = "writer_timeout: the model did not end within 60 minutes".to_owned();
        return over(end_run(writer, &run, TIMEOUT, message)?);
    }
    let wiki = read_wiki(root, &run.meta.wiki, &run.meta.folder)?;
    let name = run.meta.run.clone();
    let mut session = match WriterSession::open(root, wiki, run) {
        Ok(session) => session,
        Err(e) => {
            let (status, message) = reject(writer, &StagedRuns::new(root).open(&name)?, e)?;
            return over(SendTurnOutput::Refused { status, message });
        }
    };
    match session.advance() {
        Ok(SessionStep::Send { n, .. }) if n < input.turn => {
            // Turns that were paid for are not sent again.
            let message = "writer_failed: the transcript of this run is gone".to_owned();
            over(end_run(writer, session.run(), CONFLICT, message)?)
        }
        Ok(SessionStep::Send { n, .. }) if n > input.turn => over(SendTurnOutput::Continue { turn: n }),
        Ok(SessionStep::Send { n, conversation }) => {
            Ok(TurnStart::Send { session: Box::new(session), n, conversation })
        }
        Ok(SessionStep::Done) => over(SendTurnOutput::Written),
        Ok(SessionStep::Failed(failure)) => over(fail_run(writer, session.run(), failure)?),
        Err(e) => {
            let (status, message) = reject(writer, session.run(), e)?;
            over(SendTurnOutput::Refused { status, message })
        }
    }
}

/// Carries out what was answered, and says what comes next.
fn finish_turn(
    writer: &VaultWriter,
    session: &mut WriterSession,
    n: u32,
    outcome: &TurnOutcome,
) -> Result<SendTurnOutput, WikiRunError> {
    match outcome {
        TurnOutcome::Answered(_) | TurnOutcome::NoTools { .. } => {}
        TurnOutcome::RateLimited { retry_after_seconds } => {
            let seconds = retry_after_seconds.unwrap_or(FAILURE_WAIT).clamp(1, LONGEST_WAIT);
            return Ok(SendTurnOutput::Wait { seconds, turn: n });
        }
        TurnOutcome::NotSent { .. } => return Ok(SendTurnOutput::Wait { seconds: FAILURE_WAIT, turn: n }),
        TurnOutcome::Failed { reason } => {
            let lines = session.transcript().lines.iter().rev();
            let failures = lines.take_while(|line| matches!(line, TranscriptLine::Failed { .. })).count();
            if failures >= MAX_FAILURES {
                return end_run(writer, session.run(), BAD_GATEWAY, format!("writer_failed: {reason}"));
            }
            return Ok(SendTurnOutput::Wait { seconds: FAILURE_WAIT, turn: n.saturating_add(1) });
        }
    }
    match session.advance() {
        Ok(SessionStep::Send { n, .. }) => Ok(SendTurnOutput::Continue { turn: n }),
        Ok(SessionStep::Done) => Ok(SendTurnOutput::Written),
        Ok(SessionStep::Failed(failure)) => fail_run(writer, session.run(), failure),
        Err(e) => {
            let (status, message) = reject(writer, session.run(), e)?;
            Ok(SendTurnOutput::Refused { status, message })
        }
    }
}

fn fail_run(writer: &VaultWriter, run: &StagedRun, failure: WriterFailure) -> Result<SendTurnOutput, WikiRunError> {
    end_run(writer, run, UNPROCESSABLE, format!("{failure}: {}", failure.explain()))
}

pub(super) fn end_run(
    writer: &VaultWriter,
    run: &StagedRun,
    status: u16,
    message: String,
) -> Result<SendTurnOutput, WikiRunError> {
    writer.reject_run(run, Utc::now(), &message)?;
    Ok(SendTurnOutput::Refused { status, message })
}

/// A refusal for which no run is left that could keep it, such as that of a run whose folder is gone.
pub(super) fn refuse_turn(error: WikiRunError) -> Result<SendTurnOutput, ActivityError> {
    match error {
        WikiRunError::Refused(message) => Ok(SendTurnOutput::Refused { status: CONFLICT, message }),
        error => Err(retryable_failure(error)),
    }
}

/// Shows people why a run waits.
pub(super) fn note_wait(run: &StagedRun, state: RunState, refusal: &GuardRefusal) -> Result<(), WikiRunError> {
    // A person may have ended it meanwhile.
    if run.read_status()?.is_none_or(|status| matches!(status.state, RunState::Pending | RunState::Verifying)) {
        run.set_status(state, Utc::now(), &format!("{WAITS}{}", to_one_line(&refusal.reason)))?;
    }
    Ok(())
}

/// Refuses a first call for which the rate guard has no room, and says when it has.
pub(super) fn refuse_for_cap(refusal: &GuardRefusal) -> SendTurnOutput {
    let clears = refusal.clears_at.map(|at| format!("; it has room again at {}", format_seconds(at)));
    let message = format!("{}{}", refusal.reason, clears.unwrap_or_default());
    SendTurnOutput::Refused { status: TOO_MANY_REQUESTS, message }
}

/// Waits until a cap clears. A refusal that a person has to end is looked at again from time to time.
pub(super) fn wait_for_cap(refusal: &GuardRefusal, turn: u32) -> SendTurnOutput {
    match (refusal.cap, refusal.clears_at) {
        (GuardCap::Stopped, _) => return SendTurnOutput::Stopped,
        // This may take a day, and is no time of the writer.
        (GuardCap::WikiTokens, Some(_)) => {
            tracing::info!(reason = %refusal.reason, "a run of a wiki waits for its tokens");
            return SendTurnOutput::Stopped;
        }
        (GuardCap::WikiTokens, None) => {
            return SendTurnOutput::Refused { status: TOO_MANY_REQUESTS, message: refusal.reason.clone() };
        }
        _ => {}
    }
    let left = |at: DateTime<Utc>| u64::try_from((at - Utc::now()).num_seconds().saturating_add(1)).unwrap_or(1);
    let seconds = refusal.clears_at.map_or(LONGEST_WAIT, left).clamp(1, LONGEST_WAIT);
    tracing::info!(cap = ?refusal.cap, seconds, reason = %refusal.reason, "a turn of a wiki waits");
    SendTurnOutput::Wait { seconds, turn }
}

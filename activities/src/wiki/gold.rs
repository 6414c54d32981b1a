//! Asks one gold query again, as a person's question is asked, and scores its answer.
//!
//! The score is kept before the next question is asked. The answer itself is not kept: it is not the last one of the wiki.

use super::WikiActivities;
use super::query::{MissingAnswer, describe_answer};
use super::turn::{BAD_GATEWAY, LONGEST_WAIT, MAX_FAILURES, refuse_for_cap, wait_for_cap};
use crate::failure::retryable_failure;
use crate::vault::run_blocking;
use steward_domain::wiki::verifier::{VerifierLine, VerifierProgress};
use steward_vault::wiki::answers::find_query_pages;
use steward_vault::wiki::evals::EvalSession;
use steward_vault::wiki::state::ReadWikiError;
use steward_workflows::{EvalInput, QueryInput, SendTurnOutput};
use temporalio_common::ActivityError;

/// One turn of a measurement of gold queries.
pub(super) struct GoldTurn {
    pub(super) eval: EvalInput,
    /// The number of the line that it becomes, from 1.
    pub(super) turn: u32,
    /// The id of the measurement.
    pub(super) id: String,
    /// How often this turn was tried.
    pub(super) tries: u32,
}

impl WikiActivities {
    /// Asks the next gold query, or keeps the report when all are answered.
    pub(super) async fn answer_gold(
        &self,
        GoldTurn { eval, turn, id, tries }: GoldTurn,
        session: EvalSession,
    ) -> Result<SendTurnOutput, ActivityError> {
        let Some(gold) = session.find_next_question() else {
            let keep = move || session.keep_report(&eval.by, eval.at);
            run_blocking(keep).await?.map_err(retryable_failure)?;
            return Ok(SendTurnOutput::Written);
        };
        let number = session.progress().next;
        if number > turn {
            return Ok(SendTurnOutput::Continue { turn: number });
        }
        let EvalInput { wiki, by, at, needs_room, .. } = eval;
        let query = QueryInput { wiki, question: gold.question.clone(), by, at };
        let found = find_query_pages(&self.vault.index, self.vault.writer.root(), &query.wiki, &query.question).await;
        let found = found.map_err(retryable_failure)?;
        // A try after a crash is a call of its own, so that the guard counts it.
        let said = match self.find_answer(&query, &found, &format!("gold-{id}-{number}-{tries}")).await {
            Ok(said) => said,
            Err(MissingAnswer::Refused(refusal)) if needs_room && number == 1 => return Ok(refuse_for_cap(&refusal)),
            Err(missing) => return keep_missing(session, missing, number).await,
        };
        let settlement = said.settlement.clone();
        let answer = describe_answer(id, query, &found, said);
        let score = gold.score(&answer, &found.pages);
        let kept = keep_line(session, VerifierLine::Answered { score, clerk: answer.clerk }).await;
        if let Some((reservation, outcome)) = settlement {
            self.writer.settle(&reservation, outcome).await;
        }
        Ok(SendTurnOutput::Continue { turn: kept?.next })
    }
}

/// Keeps that there was no answer, and says when the question is asked again.
async fn keep_missing(
    session: EvalSession,
    missing: MissingAnswer,
    number: u32,
) -> Result<SendTurnOutput, ActivityError> {
    let (line, seconds, reason) = match missing {
        MissingAnswer::Stopped => return Ok(SendTurnOutput::Stopped),
        MissingAnswer::Refused(refusal) => return Ok(wait_for_cap(&refusal, number)),
        MissingAnswer::Limited { seconds } => (VerifierLine::Limited, seconds, String::new()),
        MissingAnswer::Failed { seconds, reason } => (VerifierLine::Failed { reason: reason.clone() }, seconds, reason),
    };
    let VerifierProgress { next: turn, failures } = keep_line(session, line).await?;
    if usize::try_from(failures).is_ok_and(|failures| failures >= MAX_FAILURES) {
        return Ok(SendTurnOutput::Refused { status: BAD_GATEWAY, message: format!("no answer: {reason}") });
    }
    Ok(SendTurnOutput::Wait { seconds: seconds.clamp(1, LONGEST_WAIT), turn })
}

/// Keeps a line, and returns how far the measurement has come.
async fn keep_line(mut session: EvalSession, line: VerifierLine) -> Result<VerifierProgress, ActivityError> {
    let keep = move || {
        session.append(line)?;
        Ok::<_, ReadWikiError>(session.progress())
    };
    run_blocking(keep).await?.map_err(retryable_failure)
}

//! One call of a measurement of a wiki or of its verifier, or of a review.
//!
//! The verifier is asked about claims as they stand, and about copies with faults, exactly as it is asked about a run. Gold queries
//! are asked as a person's questions are, without a verifier.

use super::gold::GoldTurn;
use super::verify::VerifierCall;
use super::{CONFLICT, NOT_FOUND, UNPROCESSABLE, WikiActivities};
use crate::failure::retryable_failure;
use crate::vault::run_blocking;
use steward_domain::action::plan::ContentHash;
use steward_domain::time::format_millis;
use steward_domain::wiki::fidelity::EvalMethod;
use steward_domain::wiki::planted::{MAX_CLAIMS, MIN_CLAIMS};
use steward_domain::wiki::review::EMPTY_WIKI;
use steward_domain::wiki::verifier::{VerifierLine, VerifierStep};
use steward_vault::gates::stop;
use steward_vault::wiki::evals::{EvalSample, EvalSession};
use steward_vault::wiki::state::ReadWikiError;
use steward_workflows::{EvalInput, EvalTurnInput, SendTurnOutput};
use temporalio_common::ActivityError;

/// What is said if there is nothing to ask.
const NO_GOLD: &str = "no answer is kept as good: ask a question, and then `steward wiki eval gold <wiki>`";
/// The fewest questions of a measurement that says anything.
const LEAST_CASES: usize = 4;

impl WikiActivities {
    pub(super) async fn take_eval_turn(
        &self,
        input: EvalTurnInput,
        tries: u32,
    ) -> Result<SendTurnOutput, ActivityError> {
        let EvalTurnInput { eval, turn } = input;
        let root = self.vault.writer.root().clone();
        let refuse = |status, message: &str| Ok(SendTurnOutput::Refused { status, message: message.to_owned() });
        let is_gold = eval.method == EvalMethod::Gold;
        if !is_gold && !self.writer.has_verifier() {
            return refuse(
                CONFLICT,
                "no verifier is set: set `STEWARD_WIKI_VERIFIER` to `openai`, `anthropic` or `ollama`, and `STEWARD_WIKI_VERIFIER_MODEL`",
            );
        }
        // Fixed rules answer questions under a stop, too.
        if !is_gold && stop::is_stopped(&root) {
            return Ok(SendTurnOutput::Stopped);
        }
        let id = name_eval(&eval);
        let (opened_root, wiki, opened_id) = (root.clone(), eval.wiki.clone(), id.clone());
        let claims = usize::try_from(eval.claims).unwrap_or(MAX_CLAIMS).clamp(MIN_CLAIMS, MAX_CLAIMS);
        let sample = EvalSample { method: eval.method, claims };
        let opened = run_blocking(move || EvalSession::open(&opened_root, &wiki, &opened_id, sample)).await?;
        let mut session = match opened {
            Ok(session) => session,
            Err(e @ ReadWikiError::Unknown { .. }) => return refuse(NOT_FOUND, &e.to_string()),
            Err(e) => return Err(retryable_failure(e)),
        };
        match (eval.method, session.count_cases()) {
            (EvalMethod::Review, 0) => return refuse(UNPROCESSABLE, EMPTY_WIKI),
            (EvalMethod::Gold, 0) => return refuse(UNPROCESSABLE, NO_GOLD),
            (EvalMethod::Gold, _) => return self.answer_gold(GoldTurn { eval, turn, id, tries }, session).await,
            (EvalMethod::Review, _) | (_, LEAST_CASES..) => {}
            (EvalMethod::Consistency, _) => return refuse(UNPROCESSABLE, "the wiki has too few claims that are alike"),
            _ => return refuse(UNPROCESSABLE, "the wiki has too few claims whose sources can be read"),
        }
        let number = session.progress().next;
        let (batch, conversation) = match session.find_next_step() {
            VerifierStep::Send { .. } if number > turn => return Ok(SendTurnOutput::Continue { turn: number }),
            VerifierStep::Send { batch, conversation } => (batch, conversation),
            VerifierStep::Spent => return refuse(UNPROCESSABLE, "the verifier gave too few answers that can be used"),
            VerifierStep::Passed | VerifierStep::Found(_) => {
                let keep = move || session.keep_report(&eval.by, eval.at);
                run_blocking(keep).await?.map_err(retryable_failure)?;
                return Ok(SendTurnOutput::Written);
            }
        };
        let id = format!("eval-{id}-{number}");
        let needs_room = eval.needs_room && number == 1;
        let call = VerifierCall {
            wiki: &eval.wiki,
            run: None,
            id,
            number,
            needs_room,
            batch: &batch,
            conversation: &conversation,
        };
        let keep = move |line: Option<VerifierLine>| {
            line.map_or(Ok(()), |line| session.append(line))?;
            Ok::<_, ReadWikiError>(session.progress())
        };
        self.ask_verifier(call, keep).await
    }
}

/// The id of a measurement: the same request has the same one.
pub(super) fn name_eval(eval: &EvalInput) -> String {
    let parts = (&eval.wiki, &eval.by, format_millis(eval.at), eval.claims, eval.method);
    let hash = ContentHash::hash_bytes(&serde_json::to_vec(&parts).unwrap_or_default());
    hash.as_str()[..8].to_owned()
}

//! Answers a question from the pages of a wiki: by fixed rules, or with one call of the model.
//!
//! The answer is checked before it is kept: what it cites stands on a page, and the words are compared with their source.
//! Nothing of the wiki is changed.

use super::turn::FAILURE_WAIT;
use super::writer::describe_settlement;
use super::{CONFLICT, NOT_FOUND, STOPPED, UNPROCESSABLE, WikiActivities};
use crate::failure::retryable_failure;
use crate::vault::run_blocking;
use chrono::Utc;
use steward_domain::action::plan::ContentHash;
use steward_domain::steward::clerk::ClerkMark;
use steward_domain::steward::conversation::{TurnOutcome, TurnReply};
use steward_domain::steward::guard::{GuardRefusal, Reservation, SettlementOutcome};
use steward_domain::time::format_millis;
use steward_domain::wiki::query::{
    EMPTY_WIKI, MAX_QUESTION, NO_PAGE, WikiAnswer, build_query, check_references, extract_answer,
};
use steward_vault::gates::stop;
use steward_vault::wiki::answers::{QueryPages, find_query_pages, keep_answer, read_answers};
use steward_vault::wiki::staged::RULES_WRITER;
use steward_vault::wiki::state::ReadWikiError;
use steward_workflows::{AnswerQuestionInput, AnswerQuestionOutput, QueryInput};
use temporalio_common::ActivityError;

/// The status of a refusal by a cap.
const TOO_MANY: u16 = 429;
/// The status of a failure of the disk.
const INTERNAL: u16 = 500;
/// How long a person is kept waiting for a busy server, in seconds.
const LONGEST_WAIT: u64 = 60;

/// What a model or the rules said.
pub(super) struct SaidAnswer {
    text: String,
    writer: String,
    clerk: Option<ClerkMark>,
    /// How the call is settled, once the answer is kept.
    pub(super) settlement: Option<(Reservation, SettlementOutcome)>,
}

/// Why a model gave no answer.
pub(super) enum MissingAnswer {
    Stopped,
    /// By a cap of the rate guard.
    Refused(GuardRefusal),
    /// Its server is busy for so long.
    Limited {
        seconds: u64,
    },
    /// It may be asked again after so long.
    Failed {
        seconds: u64,
        reason: String,
    },
}

impl MissingAnswer {
    /// What a person is shown who waits for the answer.
    fn describe(self) -> AnswerQuestionOutput {
        let refuse = |status, message| AnswerQuestionOutput::Refused { status, message };
        match self {
            Self::Stopped => refuse(CONFLICT, STOPPED.to_owned()),
            // A person waits for the answer, so the refusal is shown at once.
            Self::Refused(refusal) => {
                let clears = refusal.clears_at.map_or_else(String::new, |at| format!(", until {}", format_millis(at)));
                refuse(TOO_MANY, format!("{}{clears}", refusal.reason))
            }
            Self::Limited { seconds } => {
                let reason = format!("the model's server is busy: try again in {seconds} s");
                match seconds > LONGEST_WAIT {
                    true => refuse(TOO_MANY, reason),
                    false => AnswerQuestionOutput::Failed { seconds, reason },
                }
            }
            Self::Failed { seconds, reason } => AnswerQuestionOutput::Failed { seconds, reason },
        }
    }
}

impl WikiActivities {
    pub(super) async fn answer(
        &self,
        input: AnswerQuestionInput,
        tries: u32,
    ) -> Result<AnswerQuestionOutput, ActivityError> {
        let AnswerQuestionInput { query, attempt } = input;
        let id = name_answer(&query);
        let root = self.vault.writer.root().clone();
        let length = query.question.chars().count();
        if query.question.trim().is_empty() || length > MAX_QUESTION {
            let message = format!("a question has 1 to {MAX_QUESTION} characters, and this one {length}");
            return Ok(AnswerQuestionOutput::Refused { status: UNPROCESSABLE, message });
        }
        let found = match find_query_pages(&self.vault.index, &root, &query.wiki, &query.question).await {
            Ok(found) => found,
            Err(e @ ReadWikiError::Unknown { .. }) => {
                return Ok(AnswerQuestionOutput::Refused { status: NOT_FOUND, message: e.to_string() });
            }
            Err(e) => return Err(retryable_failure(e)),
        };
        let (kept_root, wiki, kept_id) = (root.clone(), query.wiki.clone(), id.clone());
        let known = run_blocking(move || read_answers(&kept_root, &wiki)).await?.map_err(retryable_failure)?;
        if known.iter().any(|answer| answer.id == kept_id) {
            return Ok(AnswerQuestionOutput::Answered { answer: id });
        }
        // A try after a crash is a call of its own, so that the guard counts it.
        let said = match self.find_answer(&query, &found, &format!("{id}-{attempt}-{tries}")).await {
            Ok(said) => said,
            Err(missing) => return Ok(missing.describe()),
        };
        let settlement = said.settlement.clone();
        let answer = describe_answer(id.clone(), query, &found, said);
        let keep = move || {
            let mut answer = answer;
            found.check_citations(&mut answer.citations);
            if answer.clerk.is_none() && !found.is_empty_wiki() {
                let cited = |id: &String| answer.citations.iter().any(|cited| cited.anchor.source == *id);
                answer.sources = found.find_sources(&answer.question).into_iter().filter(|id| !cited(id)).collect();
            }
            keep_answer(&root, &answer, Utc::now())
        };
        let kept = run_blocking(keep).await;
        if let Some((reservation, outcome)) = settlement {
            self.writer.settle(&reservation, outcome).await;
        }
        // A repeat would pay again.
        let refuse = |e: String| {
            let message = format!("the answer could not be kept: {e}");
            Ok(AnswerQuestionOutput::Refused { status: INTERNAL, message })
        };
        match kept {
            Ok(Ok(())) => Ok(AnswerQuestionOutput::Answered { answer: id }),
            Ok(Err(e)) => refuse(e.to_string()),
            Err(_) => refuse("its task failed".to_owned()),
        }
    }

    /// Finds an answer.
    pub(super) async fn find_answer(
        &self,
        query: &QueryInput,
        found: &QueryPages,
        call: &str,
    ) -> Result<SaidAnswer, MissingAnswer> {
        let by_rules =
            |text: String| Ok(SaidAnswer { text, writer: RULES_WRITER.to_owned(), clerk: None, settlement: None });
        match self.writer.describe_model() {
            _ if found.is_empty_wiki() => by_rules(EMPTY_WIKI.to_owned()),
            _ if found.pages.is_empty() => by_rules(NO_PAGE.to_owned()),
            None => by_rules(extract_answer(&query.question, &found.pages).unwrap_or_else(|| NO_PAGE.to_owned())),
            Some(writer) => self.ask_model(query, found, call, writer).await,
        }
    }

    async fn ask_model(
        &self,
        query: &QueryInput,
        found: &QueryPages,
        call: &str,
        writer: String,
    ) -> Result<SaidAnswer, MissingAnswer> {
        if stop::is_stopped(self.vault.writer.root()) {
            return Err(MissingAnswer::Stopped);
        }
        let conversation = build_query(&query.question, found.overview.as_ref(), &found.pages);
        let clerk = &self.writer.clerk;
        let reserved = self.writer.reserve(clerk, &query.wiki, format!("query-{call}"), &conversation).await;
        let reservation = reserved.map_err(MissingAnswer::Refused)?;
        if stop::is_stopped(self.vault.writer.root()) {
            self.writer.settle(&reservation, SettlementOutcome::NotSent).await;
            return Err(MissingAnswer::Stopped);
        }
        let Some(TurnReply { outcome, clerk }) = clerk.send_turn(&reservation, &conversation).await else {
            self.writer.settle(&reservation, SettlementOutcome::NotSent).await;
            return Err(MissingAnswer::Failed { seconds: 1, reason: "no model is set".to_owned() });
        };
        let settlement = describe_settlement(&outcome, clerk.tokens);
        let failed = match outcome {
            TurnOutcome::Answered(turn) if !turn.text().trim().is_empty() => {
                let settlement = Some((reservation, settlement));
                return Ok(SaidAnswer { text: turn.text(), writer, clerk: Some(clerk), settlement });
            }
            other => other,
        };
        self.writer.settle(&reservation, settlement).await;
        let fail = |seconds: u64, reason: String| Err(MissingAnswer::Failed { seconds, reason });
        match failed {
            TurnOutcome::Answered(_) => fail(1, "the model answered nothing".to_owned()),
            TurnOutcome::RateLimited { retry_after_seconds } => {
                Err(MissingAnswer::Limited { seconds: retry_after_seconds.unwrap_or(FAILURE_WAIT).max(1) })
            }
            TurnOutcome::NoTools { reason } | TurnOutcome::Failed { reason } | TurnOutcome::NotSent { reason } => {
                fail(FAILURE_WAIT, reason)
            }
        }
    }
}

/// The id of an answer: the same question at the same moment has the same one.
fn name_answer(query: &QueryInput) -> String {
    let parts = (&query.wiki, &query.question, &query.by, format_millis(query.at));
    let hash = ContentHash::hash_bytes(&serde_json::to_vec(&parts).unwrap_or_default());
    hash.as_str()[..8].to_owned()
}

/// The answer as it is kept: with those marks and links alone that the wiki has.
pub(super) fn describe_answer(id: String, query: QueryInput, found: &QueryPages, said: SaidAnswer) -> WikiAnswer {
    let read: Vec<_> = found.pages.iter().chain(&found.overview).cloned().collect();
    let checked = check_references(&said.text, &read, &found.contents.files);
    let QueryInput { wiki, question, by, at } = query;
    WikiAnswer {
        id,
        wiki,
        by,
        at,
        question,
        text: checked.text,
        writer: said.writer,
        pages: found.pages.iter().map(|page| page.file.clone()).collect(),
        sources: Vec::new(),
        citations: checked.citations,
        unknown: checked.unknown,
        clerk: said.clerk,
    }
}

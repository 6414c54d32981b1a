//! The clerks: who judges what the signals of a task mean.
//!
//! A clerk is asked one [`Question`] and gives one [`Reply`]; every way a call can end is a value
//! of it. No clerk can be asked without a [`Reservation`] of the rate guard, the offline one
//! included, and one reservation is one attempt: nothing here tries again. A clerk never sees
//! the vault and changes nothing; its reply goes back to the workflow, which decides, and to the
//! guard's ledger, which learns of a 429.

pub mod openai;
pub mod pace;
pub mod rules;

use sha2::{Digest, Sha256};
use steward_domain::clerk::{CallOutcome, Question, Reply};
use steward_domain::extract::{ExtractOutcome, ExtractQuestion, ExtractReply};
use steward_domain::guard::Reservation;

/// A clerk that can be asked.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a process has one, and it stays where it is")]
pub enum Clerk {
    /// Offline and deterministic: counts the proposals that the signals carry.
    Rules(rules::Rules),
    /// Any server that speaks the OpenAI chat completions API.
    OpenAi(openai::OpenAi),
}

impl Clerk {
    /// Asks once. Spends the reservation: ask the guard for another one before asking again.
    pub async fn ask(&self, reservation: &Reservation, question: &Question) -> Reply {
        let reply = match self {
            Self::Rules(rules) => rules.ask(reservation, question),
            Self::OpenAi(openai) => openai.ask(reservation, question).await,
        };
        tracing::info!(
            call_id = %reservation.call_id(),
            task = %question.subject.task,
            matter = %question.subject.matter,
            provider = %reply.clerk.provider,
            model = %reply.clerk.model,
            outcome = outcome_word(&reply.outcome),
            prompt_tokens = reply.clerk.tokens.prompt_tokens,
            completion_tokens = reply.clerk.tokens.completion_tokens,
            "clerk asked"
        );
        reply
    }

    /// Asks once what an event says. Spends the reservation like [`Clerk::ask`].
    pub async fn extract(&self, reservation: &Reservation, question: &ExtractQuestion) -> ExtractReply {
        let reply = match self {
            Self::Rules(rules) => rules.extract(reservation, question),
            Self::OpenAi(openai) => openai.extract(reservation, question).await,
        };
        let outcome = match &reply.outcome {
            ExtractOutcome::Answered { .. } => "answered",
            ExtractOutcome::BadAnswer { .. } => "bad_answer",
            ExtractOutcome::RateLimited { .. } => "rate_limited",
            ExtractOutcome::Failed { .. } => "failed",
        };
        tracing::info!(
            call_id = %reservation.call_id(),
            provider = %reply.clerk.provider,
            model = %reply.clerk.model,
            outcome,
            prompt_tokens = reply.clerk.tokens.prompt_tokens,
            completion_tokens = reply.clerk.tokens.completion_tokens,
            "clerk asked about an event"
        );
        reply
    }

    /// Names the question as it would be asked: SHA-256 of provider, model and exact prompt, in hex.
    ///
    /// Two questions of one name get the same answer, so the second need not be asked.
    #[must_use]
    pub fn extract_key(&self, question: &ExtractQuestion) -> String {
        let (provider, model, prompt) = match self {
            Self::Rules(rules) => (rules::PROVIDER, rules::PATTERNS, rules.extract_prompt(question)),
            Self::OpenAi(openai) => (openai::PROVIDER, openai.model(), openai.extract_prompt(question)),
        };
        let head = format!("{}:{provider}{}:{model}", provider.len(), model.len());
        sha256_hex(&[head.into_bytes(), prompt].concat())
    }
}

fn outcome_word(outcome: &CallOutcome) -> &'static str {
    match outcome {
        CallOutcome::Answered { .. } => "answered",
        CallOutcome::BadAnswer { .. } => "bad_answer",
        CallOutcome::RateLimited { .. } => "rate_limited",
        CallOutcome::Failed { .. } => "failed",
    }
}

fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests;

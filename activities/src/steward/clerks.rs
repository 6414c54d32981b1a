//! The clerks, which judge what the signals of a task mean.
//!
//! A clerk is asked one [`ClerkQuestion`] and gives one [`ClerkReply`], which has a value for every way a call can end.
//! No clerk, not even the offline one, can be asked without a [`Reservation`] of the rate guard. One reservation is one
//! attempt: nothing here tries again. A clerk never sees the vault and changes nothing. Its reply goes to the workflow,
//! which decides, and to the guard's ledger, which records a 429.

pub mod pace;
pub mod remote;
pub mod rules;

use chrono::DateTime;
use sha2::{Digest, Sha256};
use steward_domain::record::entity::{RecordState, SurfaceClass};
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::signals::extract::{ExtractOutcome, ExtractQuestion, ExtractReply};
use steward_domain::steward::clerk::{ClerkCallOutcome, ClerkMark, ClerkQuestion, ClerkReply, QuestionSubject};
use steward_domain::steward::conversation::{Conversation, TurnOutcome, TurnReply};
use steward_domain::steward::guard::Reservation;

/// A clerk that can be asked.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a process has one clerk, which is never moved")]
pub enum Clerk {
    /// Offline and deterministic: counts the proposals that the signals carry.
    Rules(rules::RulesClerk),
    /// A model behind a server.
    Remote(remote::RemoteClerk),
}

impl Clerk {
    /// Asks once and spends the reservation. Another attempt needs another reservation. `description` is that of the note, as
    /// [`steward_domain::steward::clerk::shorten_description`] gives it.
    pub async fn ask(
        &self,
        reservation: &Reservation,
        question: &ClerkQuestion,
        description: Option<&str>,
    ) -> ClerkReply {
        let reply = match self {
            Self::Rules(rules) => rules.ask(reservation, question),
            Self::Remote(remote) => remote.ask(reservation, question, description).await,
        };
        tracing::info!(
            call_id = %reservation.call_id(),
            task = %question.subject.task,
            matter = %question.subject.matter,
            provider = %reply.clerk.provider,
            model = %reply.clerk.model,
            outcome = outcome_name(&reply.outcome),
            prompt_tokens = reply.clerk.tokens.prompt_tokens,
            completion_tokens = reply.clerk.tokens.completion_tokens,
            "clerk asked"
        );
        reply
    }

    /// Sends a conversation once and spends the reservation; `None` for a clerk that is no model.
    pub async fn send_turn(&self, reservation: &Reservation, conversation: &Conversation) -> Option<TurnReply> {
        let Self::Remote(remote) = self else { return None };
        let reply = remote.send_turn(reservation, conversation).await;
        let outcome = match &reply.outcome {
            TurnOutcome::Answered(_) => "answered",
            TurnOutcome::NoTools { .. } => "no_tools",
            TurnOutcome::RateLimited { .. } => "rate_limited",
            TurnOutcome::Failed { .. } => "failed",
            TurnOutcome::NotSent { .. } => "not_sent",
        };
        log_call(reservation, &reply.clerk, outcome, "for a turn");
        Some(reply)
    }

    /// The model with its provider, as in `openai/gpt-4.1`; `None` for a clerk that is no model.
    #[must_use]
    pub fn describe_model(&self) -> Option<String> {
        match self {
            Self::Rules(_) => None,
            Self::Remote(remote) => Some(remote.describe()),
        }
    }

    /// The most tokens of a turn.
    #[must_use]
    pub fn estimate_turn_tokens(&self, conversation: &Conversation) -> u64 {
        match self {
            Self::Rules(_) => 0,
            Self::Remote(remote) => remote.estimate_turn_tokens(conversation),
        }
    }

    /// Waits until a call may begin at the pace of this process, before it is reserved at a gate.
    ///
    /// # Errors
    /// Why it may not begin, for a person: too many calls wait.
    pub async fn wait_for_turn(&self) -> Result<(), String> {
        match self {
            Self::Rules(_) => Ok(()),
            Self::Remote(remote) => remote.wait_for_turn().await,
        }
    }

    /// The most tokens of a call about a task beside its question: the rules and the answer.
    #[must_use]
    pub fn verdict_overhead_tokens(&self) -> u64 {
        match self {
            Self::Rules(_) => 0,
            Self::Remote(remote) => remote.verdict_overhead_tokens(),
        }
    }

    /// The most tokens of a call about an event.
    #[must_use]
    pub fn estimate_extract_tokens(&self, question: &ExtractQuestion) -> u64 {
        match self {
            Self::Rules(_) => 0,
            Self::Remote(remote) => remote.estimate_extract_tokens(question),
        }
    }

    /// Asks once which facts an event holds. Spends the reservation like [`Clerk::ask`].
    pub async fn extract_signals(&self, reservation: &Reservation, question: &ExtractQuestion) -> ExtractReply {
        let reply = match self {
            Self::Rules(rules) => rules.extract_signals(reservation, question),
            Self::Remote(remote) => remote.extract_signals(reservation, question).await,
        };
        let outcome = match &reply.outcome {
            ExtractOutcome::Answered { .. } => "answered",
            ExtractOutcome::BadAnswer { .. } => "bad_answer",
            ExtractOutcome::RateLimited { .. } => "rate_limited",
            ExtractOutcome::Failed { .. } => "failed",
            ExtractOutcome::NotSent { .. } => "not_sent",
        };
        log_call(reservation, &reply.clerk, outcome, "about an event");
        reply
    }

    /// The cache key of a question about an event: SHA-256 of provider, model, server and exact prompt, in hex.
    ///
    /// Two questions with the same key get the same answer, so the second one need not be asked.
    #[must_use]
    pub fn extract_key(&self, question: &ExtractQuestion) -> String {
        let (mark, prompt) = match self {
            Self::Rules(rules) => {
                let prompt = rules.render_extract_prompt(question);
                (rules::build_mark(rules::PATTERNS, &prompt), prompt)
            }
            Self::Remote(remote) => {
                let prompt = remote.render_extract_prompt(question);
                (remote.build_mark(&prompt), prompt)
            }
        };
        hash_key(&[mark.provider.as_bytes(), mark.model.as_bytes(), mark.server.as_bytes()], &prompt)
    }

    /// The cache key of a task's evidence for this clerk, as SHA-256 in hex.
    ///
    /// It covers provider, model, server, exact prompt and the whole question, except for the moment, the last decision, and the complaint
    /// about an earlier answer. Of the description it covers the hash.
    #[must_use]
    pub fn evidence_key(&self, question: &ClerkQuestion) -> String {
        let first = ClerkQuestion { complaint: None, ..question.without_last_decision() };
        let (mark, prompt) = self.judge_prompt(&first, None);
        let head = [mark.provider.as_bytes(), mark.model.as_bytes(), mark.server.as_bytes(), &prompt];
        hash_key(&head, &first.evidence_bytes())
    }

    /// Names provider, model, server and prompts, so that no measurement mixes two clerks.
    #[must_use]
    pub fn identify(&self) -> String {
        let note = RecordPath::new(RecordKind::Task, "note").unwrap_or_else(|e| unreachable!("a plain name: {e}"));
        let subject = QuestionSubject {
            task: note.clone(),
            task_name: String::new(),
            matter: note,
            matter_name: String::new(),
            state: RecordState::Open,
            surface_class: SurfaceClass::Normal,
            due: None,
            description_hash: None,
            last_decision: None,
        };
        let question = ClerkQuestion { subject, evidence: Vec::new(), complaint: None, asked_at: DateTime::UNIX_EPOCH };
        let event = ExtractQuestion {
            source: String::new(),
            author: None,
            subject: None,
            text: String::new(),
            offers: Vec::new(),
            complaint: None,
        };
        sha256_hex(format!("{} {}", self.evidence_key(&question), self.extract_key(&event)).as_bytes())
    }

    /// Reports whether an answer was given to exactly what this clerk would send about a task.
    ///
    /// Another process of the fleet may have another clerk.
    #[must_use]
    pub fn would_ask_the_same(
        &self,
        question: &ClerkQuestion,
        description: Option<&str>,
        answered: &ClerkMark,
    ) -> bool {
        let (ours, _) = self.judge_prompt(question, description);
        let identity =
            |mark: &ClerkMark| [&mark.provider, &mark.model, &mark.server, &mark.prompt_sha256].map(String::clone);
        identity(&ours) == identity(answered)
    }

    /// The prompt that would be sent about a task, and the mark of its answer.
    fn judge_prompt(&self, question: &ClerkQuestion, description: Option<&str>) -> (ClerkMark, Vec<u8>) {
        match self {
            Self::Rules(rules) => {
                let prompt = rules.render_prompt(question);
                (rules::build_mark(rules::MODEL, &prompt), prompt)
            }
            Self::Remote(remote) => {
                let prompt = remote.render_prompt(question, description);
                (remote.build_mark(&prompt), prompt)
            }
        }
    }
}

/// Hashes each part of the head with its length, so that no two heads give the same bytes.
fn hash_key(head: &[&[u8]], rest: &[u8]) -> String {
    let mut bytes = Vec::new();
    for part in head {
        bytes.extend(format!("{}:", part.len()).bytes());
        bytes.extend(*part);
    }
    bytes.extend(rest);
    sha256_hex(&bytes)
}

/// Logs a call that is about no task.
fn log_call(reservation: &Reservation, clerk: &ClerkMark, outcome: &'static str, purpose: &'static str) {
    tracing::info!(
        call_id = %reservation.call_id(),
        provider = %clerk.provider,
        model = %clerk.model,
        outcome,
        prompt_tokens = clerk.tokens.prompt_tokens,
        completion_tokens = clerk.tokens.completion_tokens,
        "clerk asked {purpose}"
    );
}

fn outcome_name(outcome: &ClerkCallOutcome) -> &'static str {
    match outcome {
        ClerkCallOutcome::Answered { .. } => "answered",
        ClerkCallOutcome::BadAnswer { .. } => "bad_answer",
        ClerkCallOutcome::RateLimited { .. } => "rate_limited",
        ClerkCallOutcome::Failed { .. } => "failed",
        ClerkCallOutcome::NotSent { .. } => "not_sent",
    }
}

fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
pub(crate) mod tests;

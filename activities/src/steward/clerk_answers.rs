//! Remembers the clerk's answers, so that the same evidence costs one call.
//!
//! An answer is cached under the hash of everything that it could depend on ([`Clerk::evidence_key`]). It is kept only
//! if this process's own clerk would have sent exactly the same request, because another process may have another model
//! or other rules. An answer that is used again is checked against its question again. Invalid answers and fallbacks
//! are not kept. Losing this memory only costs calls.
//!
//! [`Clerk::evidence_key`]: crate::steward::clerks::Clerk::evidence_key

use crate::failure::retryable_failure;
use crate::steward::tick::StewardActivities;
use crate::vault::run_blocking;
use chrono::{TimeDelta, Utc};
use steward_domain::record::path::RecordPath;
use steward_domain::steward::clerk::{AttributedVerdict, ClerkQuestion, hash_description};
use steward_vault::steward::description::read_description;
use temporalio_common::ActivityError;

/// How long a cached answer is used again: 7 days, because the model behind a name changes.
///
/// This is shorter than for events, because a change may follow from an answer about a task.
const KEEP_ANSWERS: TimeDelta = TimeDelta::days(7);

impl StewardActivities {
    /// Finds an answer to this evidence from the last 7 days.
    pub(crate) async fn recall_verdict(
        &self,
        question: &ClerkQuestion,
    ) -> Result<Option<AttributedVerdict>, ActivityError> {
        let key = self.clerk.evidence_key(question);
        let cached = self
            .vault
            .index
            .cursors()
            .find_cached_answer(&key, Utc::now() - KEEP_ANSWERS)
            .await
            .map_err(retryable_failure)?;
        let judged: Option<AttributedVerdict> = cached.and_then(|text| serde_json::from_str(&text).ok());
        let known = judged.and_then(|judged| judged.recall_for(question));
        if known.is_some() {
            tracing::info!(task = %question.subject.task, "the same evidence was judged before; no clerk is asked");
        }
        Ok(known)
    }

    /// What a clerk sees of a note's description.
    pub(crate) async fn read_description(&self, note: &RecordPath) -> Result<Option<String>, ActivityError> {
        let (root, note) = (self.vault.writer.root().clone(), note.clone());
        run_blocking(move || read_description(&root, &note)).await
    }

    /// Caches an answer. An error here is only logged: the same question then costs another call.
    pub(crate) async fn remember_verdict(&self, question: &ClerkQuestion, judged: &AttributedVerdict) {
        let mut description = None;
        if let Some(hash) = &question.subject.description_hash {
            description = self.read_description(&question.subject.task).await.ok().flatten();
            if description.as_deref().map(hash_description).as_ref() != Some(hash) {
                // The answer may have been given without it, or to another one.
                return;
            }
        }
        if !self.clerk.would_ask_the_same(question, description.as_deref(), &judged.clerk) {
            return;
        }
        let Ok(text) = serde_json::to_string(judged) else { return };
        if let Err(e) =
            self.vault.index.cursors().cache_answer(&self.clerk.evidence_key(question), &text, Utc::now()).await
        {
            tracing::warn!(error = %e, "failed to cache a clerk's answer");
        }
    }
}

#[cfg(test)]
mod tests;

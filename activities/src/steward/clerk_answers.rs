//! What was answered about evidence, remembered, so that the same evidence costs one call.
//!
//! An answer is kept under the hash of everything that it could depend on ([`ActionClerk::evidence_key`]), and
//! only if it was given to exactly what this process's own clerk would have sent: calls are made anywhere in
//! the fleet, and another process may have another model or other rules. Given again, it is held against its
//! question once more. Bad answers and stand-ins are not kept. Losing this memory costs calls and nothing else.
//!
//! [`ActionClerk::evidence_key`]: crate::steward::clerks::Clerk::evidence_key

use crate::failure::retryable_failure;
use crate::vault::VaultContext;
use chrono::{TimeDelta, Utc};
use steward_domain::steward::clerk::{AttributedVerdict, ClerkQuestion};
use temporalio_common::ActivityError;

/// How long an answer is given again: 7 days; models behind one name change.
const GIVEN_AGAIN: TimeDelta = TimeDelta::days(7);

impl VaultContext {
    /// What was answered to this evidence within the last 7 days.
    pub(crate) async fn recall_verdict(
        &self,
        question: &ClerkQuestion,
    ) -> Result<Option<AttributedVerdict>, ActivityError> {
        let key = self.clerk.evidence_key(question);
        let kept = self.index.find_cached_answer(&key, Utc::now() - GIVEN_AGAIN).await.map_err(retryable_failure)?;
        let judged: Option<AttributedVerdict> = kept.and_then(|text| serde_json::from_str(&text).ok());
        let known = judged.and_then(|judged| judged.recall_for(question));
        if known.is_some() {
            tracing::info!(task = %question.subject.task, "judged before; no clerk is asked");
        }
        Ok(known)
    }

    /// An answer that cannot be kept is not worth a failure: the same question then costs another call.
    pub(crate) async fn remember_verdict(&self, question: &ClerkQuestion, judged: &AttributedVerdict) {
        if !self.clerk.would_ask_the_same(question, &judged.clerk) {
            return;
        }
        let Ok(text) = serde_json::to_string(judged) else { return };
        if let Err(e) = self.index.cache_answer(&self.clerk.evidence_key(question), &text, Utc::now()).await {
            tracing::warn!(error = %e, "failed to keep an answer");
        }
    }
}

#[cfg(test)]
mod tests;

//! The models that write and check the pages of wikis, and the guard that their calls go through.
//!
//! They may be others than that of the stewards. They decide nothing: what the writer says is judged turn by turn, and what the
//! verifier says can only hold a run.

use crate::steward::clerks::Clerk;
use chrono::Utc;
use std::sync::Arc;
use steward_domain::steward::clerk::TokenUsage;
use steward_domain::steward::conversation::{Conversation, TurnOutcome};
use steward_domain::steward::guard::{
    CallId, GuardCap, GuardRefusal, Reservation, ReserveOutcome, ReserveRequest, Settlement, SettlementOutcome,
};
use steward_vault::steward::guard::Ledger;

/// Who writes the pages of wikis, and who checks them.
#[derive(Clone)]
pub struct WikiWriter {
    /// A clerk that is no model writes by fixed rules.
    pub clerk: Arc<Clerk>,
    /// A clerk that is no model checks nothing.
    pub verifier: Arc<Clerk>,
    pub ledger: Arc<Ledger>,
    /// Whether pages that no model checked may be committed without a person.
    pub allows_unverified: bool,
}

impl WikiWriter {
    /// The model with its provider, as in `openai/gpt-4.1`; `None` for fixed rules.
    #[must_use]
    pub fn describe_model(&self) -> Option<String> {
        self.clerk.describe_model()
    }

    /// Whether a model checks what another one wrote.
    #[must_use]
    pub fn has_verifier(&self) -> bool {
        self.verifier.describe_model().is_some()
    }

    /// Reserves a call about a wiki.
    ///
    /// # Errors
    /// The refusal of the guard.
    pub(super) async fn reserve(
        &self,
        clerk: &Clerk,
        wiki: &str,
        call_id: String,
        conversation: &Conversation,
    ) -> Result<Reservation, GuardRefusal> {
        if self.ledger.has_gate() {
            let refuse = |reason| GuardRefusal { cap: GuardCap::Gate, clears_at: None, reason };
            clerk.wait_for_turn().await.map_err(refuse)?;
        }
        let request = ReserveRequest {
            call_id: CallId(call_id),
            wiki: Some(wiki.to_owned()),
            tokens: clerk.estimate_turn_tokens(conversation),
            ..ReserveRequest::default()
        };
        match self.ledger.reserve(&request, Utc::now()).await {
            ReserveOutcome::Reserved(reservation) => Ok(reservation),
            ReserveOutcome::Refused(refusal) => Err(refusal),
        }
    }

    /// Records how a call ended. If the ledger cannot, the reservation counts as used.
    pub(super) async fn settle(&self, reservation: &Reservation, outcome: SettlementOutcome) {
        let settlement = Settlement { call_id: reservation.call_id().clone(), outcome };
        if let Err(error) = self.ledger.settle(&settlement, Utc::now()).await {
            tracing::warn!(%error, call_id = %reservation.call_id(), "the end of a call was not recorded");
        }
    }
}

/// How the call of a turn is settled, which used so many tokens.
pub(super) fn describe_settlement(outcome: &TurnOutcome, usage: TokenUsage) -> SettlementOutcome {
    match outcome {
        TurnOutcome::Answered(_) => SettlementOutcome::Answered { usage },
        TurnOutcome::NoTools { .. } | TurnOutcome::Failed { .. } => SettlementOutcome::Failed,
        TurnOutcome::RateLimited { retry_after_seconds } => {
            SettlementOutcome::RateLimited { retry_after_seconds: retry_after_seconds.map(|seconds| seconds as f64) }
        }
        TurnOutcome::NotSent { .. } => SettlementOutcome::NotSent,
    }
}

//! When the router meets a signal again.
//!
//! A deferral rests on the actions that the router knew. If another one is filed meanwhile, the signal is due at once.

use super::RoutingRound;
use crate::failure::retryable_failure;
use crate::signals::SignalActivities;
use chrono::TimeDelta;
use steward_domain::action::plan::ActionId;
use steward_domain::record::path::RecordPath;
use steward_domain::record::plain_text;
use steward_vault::index::{DeferralBasis, RouteDeferral};
use temporalio_common::ActivityError;

/// When the router meets a signal again, and why.
pub(super) struct SignalRevisit {
    pub(super) wait: TimeDelta,
    /// The record of its action is filed.
    pub(super) filed: bool,
    pub(super) reason: String,
    pub(super) question: Option<ActionId>,
    /// What the decision rests on, if a later action on the target may change it.
    pub(super) basis: Option<DeferralBasis>,
}

impl SignalRevisit {
    /// Checks the signal again after `wait`, for this reason.
    pub(super) fn schedule_after(wait: TimeDelta, reason: &str) -> Self {
        Self { wait, filed: false, reason: plain_text::to_one_line(reason), question: None, basis: None }
    }
}

impl SignalActivities {
    pub(super) async fn record_revisit(
        &self,
        round: &RoutingRound,
        reference: &RecordPath,
        revisit: SignalRevisit,
    ) -> Result<(), ActivityError> {
        let SignalRevisit { wait, filed, reason, question, basis } = revisit;
        let (acts, now) = (round.acts, round.now);
        let deferral = RouteDeferral { acts, until: now + wait, now, filed, reason, question, basis };
        self.vault.index.signals().record_route_deferral(reference, &deferral).await.map_err(retryable_failure)
    }
}

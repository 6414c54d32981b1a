//! Drops stream events that have served: extracted, and older than a week or what the operator said.
//!
//! The index says which, the keeper looks at each file again before it goes. Events that wait or were
//! parked stay until a human has dealt with them. That they were taken in is remembered for longer, so
//! none comes back.

use crate::failure::retryable_failure;
use crate::vault::VaultContext;
use chrono::{DateTime, TimeDelta, Utc};
use std::sync::Arc;
use steward_workflows::activities::{PurgeInput, PurgeOutput};
use temporalio_common::ActivityError;

/// How long an extracted event is kept where nobody says otherwise: 7 days, as long as what came of it
/// can be undone.
pub const KEEP_EVENTS_DAYS: u32 = 7;

pub(crate) async fn purge_events(
    host: &VaultContext,
    ask: &PurgeInput,
    now: DateTime<Utc>,
) -> Result<PurgeOutput, ActivityError> {
    let before = now - TimeDelta::days(host.settings.keep_events_days.into());
    let limit = usize::try_from(ask.limit).unwrap_or(usize::MAX);
    let old = host.index.list_events_to_purge(before, limit).await.map_err(retryable_failure)?;
    let more = old.len() == limit;
    let (keeper, events) = (Arc::clone(&host.keeper), old.clone());
    let gone = tokio::task::spawn_blocking(move || keeper.remove_extracted_events(&events, before))
        .await
        .map_err(retryable_failure)?;
    // Also after a failure: some are gone by now.
    host.index.sync_paths(host.keeper.root(), &old, now).await.map_err(retryable_failure)?;
    let gone = gone.map_err(retryable_failure)?;
    tracing::info!(gone, "old events dropped");
    Ok(PurgeOutput { gone, more: more && gone > 0 })
}

//! Removes old stream events: those that were extracted and are older than a week, or than the configured age.
//!
//! The index lists them, and the vault writer checks each file again before it removes it. Events that wait or were
//! parked stay until a person has dealt with them. The index remembers for longer that an event was ingested, so none
//! comes back.

use crate::failure::retryable_failure;
use crate::vault::VaultContext;
use chrono::{DateTime, TimeDelta, Utc};
use std::sync::Arc;
use steward_workflows::activities::{PurgeInput, PurgeOutput};
use temporalio_common::ActivityError;

/// How long an extracted event is kept by default: 7 days, as long as a change that it caused can be undone.
pub const KEEP_EVENTS_DAYS: u32 = 7;

pub(crate) async fn purge_events(
    vault: &VaultContext,
    input: &PurgeInput,
    now: DateTime<Utc>,
) -> Result<PurgeOutput, ActivityError> {
    let before = now - TimeDelta::days(vault.settings.keep_events_days.into());
    let limit = usize::try_from(input.limit).unwrap_or(usize::MAX);
    let old = vault.index.signals().list_events_to_purge(before, limit).await.map_err(retryable_failure)?;
    let more = old.len() == limit;
    let (writer, events) = (Arc::clone(&vault.writer), old.clone());
    let gone = tokio::task::spawn_blocking(move || writer.remove_extracted_events(&events, before))
        .await
        .map_err(retryable_failure)?;
    // Also after a failure, because some files are gone by now.
    vault.index.sync_paths(vault.writer.root(), &old, now).await.map_err(retryable_failure)?;
    let gone = gone.map_err(retryable_failure)?;
    tracing::info!(gone, "old events removed");
    Ok(PurgeOutput { gone, more: more && gone > 0 })
}

//! The deliveries that are owed to the tracker.
//!
//! The index lists them, and the small files of the outbox hold the last error of each. The tracker itself is not
//! asked, and no text of it is shown.

use super::VaultViews;
use chrono::{DateTime, Utc};
use serde::Serialize;
use steward_vault::index::IndexError;
use steward_vault::tracker::outbox;

/// How many deliveries are owed, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrackerDebt {
    /// The tracker's address; `None` if none is set.
    pub base_url: Option<String>,
    pub owed: usize,
    /// How many of `owed` have failed at least once.
    pub failed: usize,
    /// When the oldest of `owed` was recorded.
    pub oldest_at: Option<DateTime<Utc>>,
    /// The last error of the delivery that failed most often, in Steward's own words.
    pub last_error: Option<String>,
}

impl VaultViews {
    /// Reads what is owed to the tracker at this address. Reads one small file for each delivery.
    ///
    /// # Errors
    /// [`IndexError::Sql`].
    pub async fn read_tracker_debt(&self, base_url: Option<String>) -> Result<TrackerDebt, IndexError> {
        let deliveries = self.index.actions().list_owed_deliveries().await?;
        let root = self.root.clone();
        let counted = tokio::task::spawn_blocking(move || {
            let mut debt = TrackerDebt { base_url, owed: deliveries.len(), ..TrackerDebt::default() };
            let mut most = 0;
            for delivery in deliveries {
                debt.oldest_at = debt.oldest_at.into_iter().chain([delivery.at]).min();
                let (tries, error) = match outbox::read_delivery_progress(&root, &delivery.id) {
                    Ok(progress) => progress.map_or((0, None), |p| (p.tries, p.last_error)),
                    Err(e) => (u32::MAX, Some(e.to_string())),
                };
                debt.failed += usize::from(tries > 0);
                if tries > most {
                    (most, debt.last_error) = (tries, error);
                }
            }
            debt
        });
        Ok(counted.await?)
    }
}

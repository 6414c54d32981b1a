//! What is owed to the tracker.
//!
//! That something is owed is told by the index, why it still is by the small files of the outbox. The tracker itself is
//! not asked; its words never get here.

use serde::Serialize;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::{Index, IndexError};
use steward_vault::tracker::outbox;

/// What is owed, and why it still is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrackerDebt {
    /// Where it is; `None` where none is set.
    pub base_url: Option<String>,
    pub owed: usize,
    /// Those of `owed` that were tried in vain.
    pub failed: usize,
    /// Of the one that failed most often, in words of ours.
    pub last_error: Option<String>,
}

/// What is owed to the tracker at this address. Reads one small file for each.
///
/// # Errors
/// [`IndexError::Sql`].
pub async fn read_debt(root: &VaultRoot, index: &Index, base_url: Option<String>) -> Result<TrackerDebt, IndexError> {
    let owing = index.list_owed_deliveries().await?;
    let root = root.clone();
    let counted = tokio::task::spawn_blocking(move || {
        let mut debt = TrackerDebt { base_url, owed: owing.len(), ..TrackerDebt::default() };
        let mut most = 0;
        for one in owing {
            let (tries, error) = match outbox::read_delivery_progress(&root, &one.id) {
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

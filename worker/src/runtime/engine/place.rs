//! Follows whether the vault's folder is where this process opened it.
//!
//! A folder that was moved away is waited for: nothing is written meanwhile (the keeper holds that), and the vault is
//! read as a whole once it is back. Another folder in its place is another vault to this process: its lock, journal and
//! databases are open in the old one. The process ends then, so that it can be started for the new one.

use std::sync::Arc;
use std::time::Duration;
use steward_vault::files::root::{FolderPlacement, VaultRoot};
use tokio::sync::{Notify, mpsc};
use tokio::time::{MissedTickBehavior, interval};

/// How often the folder is looked for: 1 s.
const EVERY: Duration = Duration::from_secs(1);

/// Says in the log when the folder goes and comes back, and tells `returned`; ends the process by `failed` when another
/// folder took its place.
pub(super) async fn follow_vault_folder(
    root: VaultRoot,
    returned: Arc<Notify>,
    failed: mpsc::UnboundedSender<anyhow::Error>,
) {
    let (mut clock, mut is_away) = (interval(EVERY), false);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let path = root.path().display();
    loop {
        clock.tick().await;
        match root.placement() {
            FolderPlacement::Here if is_away => {
                tracing::info!("the vault's folder is back at {path}: it is read anew and served");
                is_away = false;
                returned.notify_one();
            }
            FolderPlacement::Gone if !is_away => {
                tracing::warn!("the vault's folder is not at {path} any more: nothing is written until it is back");
                is_away = true;
            }
            FolderPlacement::Here | FolderPlacement::Gone => {}
            FolderPlacement::Replaced => {
                let replaced = anyhow::anyhow!("another folder is at {path} than the one that was opened: start again");
                // The receiver is gone only when the process ends anyway.
                let _ = failed.send(replaced);
                return;
            }
        }
    }
}

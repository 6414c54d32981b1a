//! Watches whether the vault's folder is still where this process opened it.
//!
//! If the folder was moved away, the process waits for it. Meanwhile the vault writer must not write anything. Once the
//! folder is back, the whole vault is read again. If another folder takes its place, the process ends, because its
//! lock, journal and databases are open in the old folder. It can then be started for the new one.

use std::sync::Arc;
use std::time::Duration;
use steward_vault::files::root::{FolderPlacement, VaultRoot};
use tokio::sync::{Notify, mpsc};
use tokio::time::{MissedTickBehavior, interval};

/// How often the folder is checked: 1 s.
const EVERY: Duration = Duration::from_secs(1);

/// Logs when the folder disappears and returns, and notifies `returned`.
///
/// Ends the process through `failed` if another folder took its place.
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
                tracing::info!("the vault's folder is back at {path}: the vault is read again and served");
                is_away = false;
                returned.notify_one();
            }
            FolderPlacement::Gone if !is_away => {
                tracing::warn!("the vault's folder is no longer at {path}: nothing is written until it is back");
                is_away = true;
            }
            FolderPlacement::Here | FolderPlacement::Gone => {}
            FolderPlacement::Replaced => {
                let replaced =
                    anyhow::anyhow!("another folder replaced the vault's folder at {path}: start again to serve it");
                // The receiver is gone only if the process is ending anyway.
                let _ = failed.send(replaced);
                return;
            }
        }
    }
}

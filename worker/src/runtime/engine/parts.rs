//! The parts of a vault that its process holds, opened in good order.
//!
//! The lock first, then the index, brought up to date, then the rate guard's ledger. Nothing is begun here:
//! whoever opened them starts what works with them.

use super::log_problems;
use super::wait_for_stop;
use crate::config::StewardConfig;
use crate::runtime::reading_progress::log_index_progress;
use chrono::Utc;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use steward_domain::steward::guard::CallCaps;
use steward_vault::action::writer::{LockError, VaultWriter};
use steward_vault::files::private::tighten_state;
use steward_vault::files::root::{OWN_FOLDER, VaultRoot};
use steward_vault::index::Index;
use steward_vault::steward::guard::Ledger;
use steward_vault::tracker::outbox::TrackerSite;
use tokio::sync::watch as flag;

/// How often a process that waits for the lock tries again: 2 s.
const LOCK_RETRY: Duration = Duration::from_secs(2);

/// The parts of a vault that need no Temporal.
pub(crate) struct OpenedVault {
    pub(crate) keeper: Arc<VaultWriter>,
    pub(crate) index: Arc<Index>,
    pub(crate) ledger: Arc<Ledger>,
}

impl OpenedVault {
    /// Takes the lock and brings the index up to date.
    ///
    /// # Errors
    /// [`LockError::Held`] inside when another process writes this vault.
    pub(crate) async fn open(config: &StewardConfig) -> anyhow::Result<Self> {
        let root = VaultRoot::open(config.vault_folder()?)?;
        let tracker = config.tracker.as_ref().map(|tracker| TrackerSite { project: tracker.project.clone() });
        let keeper = tokio::task::spawn_blocking(move || VaultWriter::lock(root)).await??.with_tracker(tracker);
        let keeper = Arc::new(keeper);
        let state = config.state_dir()?;
        tighten_state(&keeper.root().path().join(OWN_FOLDER));
        tighten_state(&state);
        let index = Arc::new(Index::open(&state).await?);
        index.record_service_start(Utc::now()).await?;
        let report = log_index_progress(&index, index.sync_all(keeper.root(), Utc::now())).await?;
        log_problems(&report);
        let ledger = Arc::new(open_ledger(config.caps, keeper.root(), &state)?);
        Ok(Self { keeper, index, ledger })
    }

    /// As [`OpenedVault::open`], waiting while another process holds the lock.
    ///
    /// # Errors
    /// Anything but a held lock; `None` when told to stop before it was free.
    pub(crate) async fn open_when_unlocked(
        config: &StewardConfig,
        stop: &mut flag::Receiver<bool>,
    ) -> anyhow::Result<Option<Self>> {
        let mut told = false;
        loop {
            let opened = tokio::select! {
                opened = Self::open(config) => opened,
                () = wait_for_stop(stop) => return Ok(None),
            };
            match opened {
                Ok(parts) => return Ok(Some(parts)),
                Err(e) if matches!(e.downcast_ref::<LockError>(), Some(LockError::Held { .. })) => {
                    if !told {
                        tracing::info!("another process holds the vault; serving clerk calls and waiting for its turn");
                        told = true;
                    }
                }
                Err(e) => return Err(e),
            }
            tokio::select! {
                () = tokio::time::sleep(LOCK_RETRY) => {}
                () = wait_for_stop(stop) => return Ok(None),
            }
        }
    }
}

/// Opens the rate guard's ledger of a vault.
pub(crate) fn open_ledger(caps: CallCaps, root: &VaultRoot, state: &Path) -> anyhow::Result<Ledger> {
    let marker = root.path().join(OWN_FOLDER).join("ledger.json");
    Ok(Ledger::open(&state.join("ledger.db"), caps, &marker)?)
}

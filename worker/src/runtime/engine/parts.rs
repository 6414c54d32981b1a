//! Opens the parts of a vault that its process holds, in a fixed order.
//!
//! First it takes the lock, then it opens the index and brings it up to date, then it opens the rate guard's ledger. It
//! must not start any work: the caller does that.

use super::log_problems;
use super::wait_for_stop;
use crate::commands::open_index;
use crate::config::StewardConfig;
use crate::config::mapping::MappingStatus;
use crate::fleet;
use crate::runtime::reading_progress::log_index_progress;
use anyhow::bail;
use chrono::Utc;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use steward_activities::vault::{create_ownership_check, create_provider_gate};
use steward_domain::steward::guard::CallCaps;
use steward_fleet::VaultOwnership;
use steward_vault::action::moves::{follow_moves_in_ledger, settle_moves};
use steward_vault::action::writer::{LockError, VaultWriter};
use steward_vault::files::private::tighten_state;
use steward_vault::files::root::{OWN_FOLDER, VaultRoot};
use steward_vault::index::Index;
use steward_vault::steward::guard::Ledger;
use steward_vault::tracker::outbox::TrackerSite;
use tokio::sync::watch as flag;

/// The pause between two attempts to take the lock: 2 s.
const LOCK_RETRY: Duration = Duration::from_secs(2);

/// The parts of a vault that need no Temporal.
#[derive(Clone)]
pub(crate) struct OpenedVault {
    pub(crate) writer: Arc<VaultWriter>,
    pub(crate) index: Arc<Index>,
    pub(crate) ledger: Arc<Ledger>,
    /// `None` for a vault that belongs to no fleet.
    pub(crate) ownership: Option<VaultOwnership>,
}

impl OpenedVault {
    /// Takes the lock and brings the index up to date.
    ///
    /// # Errors
    /// [`LockError::Held`] inside if another process holds this vault.
    pub(crate) async fn open(config: &StewardConfig) -> anyhow::Result<Self> {
        let root = VaultRoot::open(config.vault_folder()?)?;
        config.mapping.refuse_unmapped_notes(&root)?;
        let tenant = fleet::check_vault(config, &root).await?;
        let tracker = config.tracker.as_ref().map(|tracker| TrackerSite { project: tracker.project.clone() });
        let writer = tokio::task::spawn_blocking(move || VaultWriter::lock(root)).await??.with_tracker(tracker);
        let ownership = match &tenant {
            Some(tenant) => Some(fleet::claim_vault(config, &tenant.store, &writer).await?),
            None => None,
        };
        let writer = match ownership.clone() {
            Some(ownership) => writer.with_ownership(create_ownership_check(ownership)),
            None => writer,
        };
        let state = config.state_dir()?;
        tighten_state(&writer.root().path().join(OWN_FOLDER));
        tighten_state(&state);
        // It may have been accepted anew while another process held the vault.
        let mut config = config.clone();
        config.mapping = MappingStatus::read(writer.root().path());
        if VaultRoot::open(writer.root().path())?.steward_folder() != writer.root().steward_folder() {
            bail!("a mapping was accepted at this moment: start again");
        }
        let index = Arc::new(open_index(&config).await?);
        index.trust().record_service_start(Utc::now()).await?;
        if ownership.as_ref().is_some_and(VaultOwnership::was_taken) {
            index.cursors().release_all_leases().await?;
        }
        let report = log_index_progress(&index, index.sync_all(writer.root(), Utc::now())).await?;
        log_problems(&report);
        let gate = ownership.clone().filter(|_| config.clerk.is_remote()).map(create_provider_gate);
        let ledger = Arc::new(open_ledger(config.caps, writer.root(), &state)?.with_gate(gate));
        let writer = Arc::new(writer.with_index(&index));
        settle_moves(&writer, &index, Utc::now()).await?;
        follow_moves_in_ledger(&index, &ledger).await?;
        Ok(Self { writer, index, ledger, ownership })
    }

    /// As [`OpenedVault::open`], waiting while another process holds the lock.
    ///
    /// # Errors
    /// Any failure but a held lock. Returns `None` if the process is asked to stop first.
    pub(crate) async fn open_when_unlocked(
        config: &StewardConfig,
        stop: &mut flag::Receiver<bool>,
    ) -> anyhow::Result<Option<Self>> {
        let mut is_logged = false;
        loop {
            let opened = tokio::select! {
                opened = Self::open(config) => opened,
                () = wait_for_stop(stop) => return Ok(None),
            };
            match opened {
                Ok(parts) => return Ok(Some(parts)),
                Err(e) if matches!(e.downcast_ref::<LockError>(), Some(LockError::Held { .. })) => {
                    if !is_logged {
                        tracing::info!("another process holds the vault; waiting for its lock");
                        is_logged = true;
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

/// The database of the rate guard, in the state folder.
pub(crate) const LEDGER_FILE: &str = "ledger.db";

/// Opens the rate guard's ledger of a vault.
pub(crate) fn open_ledger(caps: CallCaps, root: &VaultRoot, state: &Path) -> anyhow::Result<Ledger> {
    let marker = root.path().join(OWN_FOLDER).join("ledger.json");
    Ok(Ledger::open(&state.join(LEDGER_FILE), caps, &marker)?)
}

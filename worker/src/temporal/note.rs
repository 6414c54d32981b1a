//! Builds the note that this process writes as the holder of a vault.
//!
//! [`steward_server::http::holder`] describes the note, compares it with the lock, and reads it. This module only fills
//! in the values of this process. It must not put a secret into the note: URLs are stripped of passwords and keys.

use crate::config::{BackupSettings, ClerkChoice, StewardConfig};
use crate::runtime::clerks::strip_url_secrets;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use steward_domain::steward::guard::CallCaps;
use steward_server::http::holder::{HolderBackups, HolderServiceSettings};
pub(crate) use steward_server::http::holder::{HolderRecord, VaultHolder};
pub(crate) use steward_server::http::serving::{ListenerRecord, ServerEndpoint};
use steward_vault::files::root::VaultRoot;

/// The note of this process, which uses the Temporal server at `address`.
pub(crate) fn describe_this_process(config: &StewardConfig, command: &str, address: &str) -> HolderRecord {
    HolderRecord {
        command: command.to_owned(),
        pid: std::process::id(),
        address: address.to_owned(),
        ui: config.temporal_ui.clone(),
        listen: None,
        encrypted: config.tls.is_some(),
        host: config.hosts.first().cloned(),
        server_pid: None,
        task_queue: config.task_queue.clone(),
        policy: config.policy.clone(),
        cadence: Some(config.cadence),
        default_ceiling: Some(config.default_ceiling),
        reversal_budget: Some(config.reversal_budget),
        live_per_source_day: Some(config.live_per_source_day),
        scan_seconds: Some(config.scan_seconds),
        schedule_check_seconds: Some(config.schedule_check_seconds),
        asks: build_holder_asks(EffectiveHolderSettings::from_config(config)),
        obstacle: None,
        fleet_fault: None,
        backup: config.backup.clone().map(|BackupSettings { folder, every_seconds }| HolderBackups {
            folder,
            every_seconds,
            fault: None,
        }),
    }
}

/// Changes of the note of this process are made one after the other.
static NOTE_CHANGES: Mutex<()> = Mutex::new(());

/// Changes the note of this process, if it holds the vault and has written one.
fn change_note(root: &VaultRoot, state_dir: &Path, change: impl FnOnce(&mut HolderRecord)) {
    let _turn = NOTE_CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
    let VaultHolder::Runs(mut record) = VaultHolder::read(root, state_dir) else { return };
    change(&mut record);
    // The log has the reason too.
    if let Err(e) = record.write(state_dir) {
        tracing::error!("{e}");
    }
}

/// Writes into the note of this process why nothing lands, so that pages and commands can say it; `None` once it does.
pub(crate) fn record_fleet_fault(root: &VaultRoot, state_dir: &Path, fault: Option<&str>) {
    change_note(root, state_dir, |record| record.fleet_fault = fault.map(str::to_owned));
}

/// Writes into the note of this process why the last backup failed; `None` once one is made.
pub(crate) fn record_backup_fault(root: &VaultRoot, state_dir: &Path, fault: Option<&str>) {
    change_note(root, state_dir, |record| {
        if let Some(backup) = &mut record.backup {
            backup.fault = fault.map(str::to_owned);
        }
    });
}

fn build_holder_asks(own: EffectiveHolderSettings) -> Option<HolderServiceSettings> {
    let clerk = serde_json::to_value(own.clerk).ok()?;
    Some(HolderServiceSettings { caps: own.caps, clerk, tracker: own.tracker })
}

/// The settings of the vault's holder as its note has them; this process's own ones where the note is silent.
pub(crate) fn read_holder_settings(config: &StewardConfig, holder: &HolderRecord) -> EffectiveHolderSettings {
    let own = EffectiveHolderSettings::from_config(config);
    let Some(asks) = &holder.asks else { return own };
    let clerk = serde_json::from_value(asks.clerk.clone()).unwrap_or(own.clerk);
    EffectiveHolderSettings { caps: asks.caps, clerk, tracker: asks.tracker.clone() }
}

/// The clerk and the tracker of the process that decides, and how often it may ask the clerk.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EffectiveHolderSettings {
    pub(crate) caps: CallCaps,
    pub(crate) clerk: ClerkChoice,
    /// The address of the tracker; `None` if none is configured.
    pub(crate) tracker: Option<String>,
}

impl EffectiveHolderSettings {
    /// The settings of this process.
    pub(crate) fn from_config(config: &StewardConfig) -> Self {
        let tracker = config.tracker.as_ref().map(|tracker| strip_url_secrets(&tracker.base_url));
        Self { caps: config.caps, clerk: config.clerk.strip_secrets(), tracker }
    }
}

/// The note of this process as a listener that is not the holder of the vault.
pub(crate) fn describe_this_listener(config: &StewardConfig, listen: SocketAddr) -> ListenerRecord {
    let HolderRecord { pid, encrypted, host, .. } = describe_this_process(config, "serve", "");
    ListenerRecord { pid, endpoint: ServerEndpoint { listen, encrypted, host } }
}

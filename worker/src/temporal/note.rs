//! The note that a process of this configuration leaves as the holder of a vault.
//!
//! What it is, how it is held against the lock, and who reads it is in [`steward_server::http::holder`]; here is only what this
//! process says of itself.

use crate::config::{ClerkChoice, StewardConfig};
use crate::runtime::clerks::strip_url_secrets;
use std::net::SocketAddr;
use steward_domain::steward::guard::CallCaps;
use steward_server::http::holder::HolderServiceSettings;
pub(crate) use steward_server::http::holder::{HolderRecord, VaultHolder};
pub(crate) use steward_server::http::serving::{ListenerRecord, ServerEndpoint};

/// A note of this process, which uses the Temporal server at this address.
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
        scan_seconds: Some(config.scan_seconds),
        schedule_check_seconds: Some(config.schedule_check_seconds),
        asks: build_holder_asks(EffectiveHolderSettings::from_config(config)),
    }
}

fn build_holder_asks(own: EffectiveHolderSettings) -> Option<HolderServiceSettings> {
    let clerk = serde_json::to_value(own.clerk).ok()?;
    Some(HolderServiceSettings { caps: own.caps, clerk, tracker: own.tracker })
}

/// These settings, with what the holder of the vault says of its own in their place.
pub(crate) fn read_holder_settings(config: &StewardConfig, holder: &HolderRecord) -> EffectiveHolderSettings {
    let own = EffectiveHolderSettings::from_config(config);
    let Some(asks) = &holder.asks else { return own };
    let clerk = serde_json::from_value(asks.clerk.clone()).unwrap_or(own.clerk);
    EffectiveHolderSettings { caps: asks.caps, clerk, tracker: asks.tracker.clone() }
}

/// Whom the process that decides asks and tells, and how often it may ask.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EffectiveHolderSettings {
    pub(crate) caps: CallCaps,
    pub(crate) clerk: ClerkChoice,
    /// The address of the tracker; `None` where none is set.
    pub(crate) tracker: Option<String>,
}

impl EffectiveHolderSettings {
    /// Those of this process.
    pub(crate) fn from_config(config: &StewardConfig) -> Self {
        let tracker = config.tracker.as_ref().map(|tracker| strip_url_secrets(&tracker.base_url));
        Self { caps: config.caps, clerk: config.clerk.strip_secrets(), tracker }
    }
}

/// The note of this process, which listens there beside whoever holds the vault.
pub(crate) fn describe_this_listener(config: &StewardConfig, listen: SocketAddr) -> ListenerRecord {
    let HolderRecord { pid, encrypted, host, .. } = describe_this_process(config, "serve", "");
    ListenerRecord { pid, door: ServerEndpoint { listen, encrypted, host } }
}

//! The note that a process of this configuration leaves as the holder of a vault.
//!
//! What it is, how it is held against the lock, and who reads it is in [`steward_server::holder`]; here is only what this
//! process says of itself.

use crate::clerks::without_secrets;
use crate::config::{ClerkChoice, Config};
use std::net::SocketAddr;
use std::path::absolute;
use steward_domain::guard::CallCaps;
use steward_server::holder::HolderAsks;
pub(crate) use steward_server::holder::{Holder, UpNote};
pub(crate) use steward_server::serving::{Door, Serving};

/// A note of this process, which uses the Temporal server at this address.
pub(crate) fn of_this_process(config: &Config, command: &str, address: &str) -> UpNote {
    UpNote {
        command: command.to_owned(),
        pid: std::process::id(),
        address: address.to_owned(),
        ui: config.temporal_ui.clone(),
        listen: None,
        encrypted: config.tls.is_some(),
        certificate: config.tls.as_ref().map(|tls| absolute(&tls.chain).unwrap_or_else(|_| tls.chain.clone())),
        host: config.hosts.first().cloned(),
        server_pid: None,
        task_queue: config.task_queue.clone(),
        policy: config.policy.clone(),
        cadence: Some(config.cadence),
        default_ceiling: Some(config.default_ceiling),
        scan_seconds: Some(config.scan_seconds),
        schedule_check_seconds: Some(config.schedule_check_seconds),
        asks: asks(HeldSettings::of(config)),
    }
}

fn asks(own: HeldSettings) -> Option<HolderAsks> {
    let clerk = serde_json::to_value(own.clerk).ok()?;
    Some(HolderAsks { caps: own.caps, clerk, tracker: own.tracker })
}

/// These settings, with what the holder of the vault says of its own in their place.
pub(crate) fn held_settings(config: &Config, holder: &UpNote) -> HeldSettings {
    let own = HeldSettings::of(config);
    let Some(asks) = &holder.asks else { return own };
    let clerk = serde_json::from_value(asks.clerk.clone()).unwrap_or(own.clerk);
    HeldSettings { caps: asks.caps, clerk, tracker: asks.tracker.clone() }
}

/// Whom the process that decides asks and tells, and how often it may ask.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeldSettings {
    pub(crate) caps: CallCaps,
    pub(crate) clerk: ClerkChoice,
    /// The address of the tracker; `None` where none is set.
    pub(crate) tracker: Option<String>,
}

impl HeldSettings {
    /// Those of this process.
    pub(crate) fn of(config: &Config) -> Self {
        let tracker = config.tracker.as_ref().map(|tracker| without_secrets(&tracker.base_url));
        Self { caps: config.caps, clerk: config.clerk.without_secrets(), tracker }
    }
}

/// The note of this process, which listens there beside whoever holds the vault.
pub(crate) fn of_this_listener(config: &Config, listen: SocketAddr) -> Serving {
    let UpNote { pid, encrypted, certificate, host, .. } = of_this_process(config, "serve", "");
    Serving { pid, door: Door { listen, encrypted, certificate, host } }
}

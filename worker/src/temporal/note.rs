//! The note that a process of this configuration leaves as the holder of a vault.
//!
//! What it is, how it is held against the lock, and who reads it is in [`steward_server::holder`]; here is only what this
//! process says of itself.

use crate::config::Config;
use std::net::SocketAddr;
use std::path::absolute;
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
    }
}

/// The note of this process, which listens there beside whoever holds the vault.
pub(crate) fn of_this_listener(config: &Config, listen: SocketAddr) -> Serving {
    let UpNote { pid, encrypted, certificate, host, .. } = of_this_process(config, "serve", "");
    Serving { pid, door: Door { listen, encrypted, certificate, host } }
}

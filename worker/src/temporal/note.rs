//! The note that a process of this configuration leaves as the holder of a vault.
//!
//! What it is, how it is held against the lock, and who reads it is in [`steward_server::holder`]; here is only what this
//! process says of itself.

use crate::config::Config;
pub(crate) use steward_server::holder::{Holder, UpNote};

/// A note of this process, which uses the Temporal server at this address.
pub(crate) fn of_this_process(config: &Config, command: &str, address: &str) -> UpNote {
    UpNote {
        command: command.to_owned(),
        pid: std::process::id(),
        address: address.to_owned(),
        ui: None,
        listen: None,
        encrypted: config.tls.is_some(),
        server_pid: None,
        task_queue: config.task_queue.clone(),
        policy: config.policy.clone(),
    }
}

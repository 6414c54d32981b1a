//! Why no resolution is taken for the moment: a drain, or a process that does not poll yet.
//!
//! A resolution is a workflow run, and a run that begins before a new build polls could break it. So every interface
//! refuses with the reason and a time to try again. A stop is something else: undo and dismiss work under it.

use crate::http::holder::VaultHolder;
use chrono::Utc;
use std::path::Path;
use steward_domain::time::format_seconds;
use steward_vault::files::root::VaultRoot;
use steward_vault::gates::drain::{self, VaultDrain};

/// When to try again during a drain, in seconds: it takes up to 5 minutes.
const DRAIN_RETRY: u32 = 300;
/// When to try again while the fleet's database does not answer, in seconds: two heartbeats.
const FLEET_RETRY: u32 = 10;
/// When to try again while a process does not poll, in seconds: the next check.
const OBSTACLE_RETRY: u32 = 30;

/// The kind of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum PauseKind {
    Drain,
    /// The process does not poll yet: the boot check holds it.
    BootCheck,
    /// The fleet's database does not answer.
    Fleet,
}

/// Why no resolution is taken, and when to try again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePause {
    pub kind: PauseKind,
    /// May contain foreign text.
    pub reason: String,
    pub retry_after_seconds: u32,
}

/// Finds out whether resolutions are taken; `None` if they are.
#[must_use]
pub fn find_service_pause(root: &VaultRoot, holder: &VaultHolder) -> Option<ServicePause> {
    if let Some(drain) = drain::read_drain(root) {
        return Some(ServicePause {
            kind: PauseKind::Drain,
            reason: describe_drain(&drain),
            retry_after_seconds: DRAIN_RETRY,
        });
    }
    let VaultHolder::Runs(record) = holder else { return None };
    if let Some(fault) = &record.fleet_fault {
        let reason = format!("nothing lands: {fault}");
        return Some(ServicePause { kind: PauseKind::Fleet, reason, retry_after_seconds: FLEET_RETRY });
    }
    let obstacle = record.obstacle.as_ref()?;
    let reason = format!("process {} does not poll yet: {obstacle}", record.pid);
    Some(ServicePause { kind: PauseKind::BootCheck, reason, retry_after_seconds: OBSTACLE_RETRY })
}

/// Reads the holder of the vault first.
#[must_use]
pub fn read_service_pause(root: &VaultRoot, state_dir: &Path) -> Option<ServicePause> {
    find_service_pause(root, &VaultHolder::read(root, state_dir))
}

/// Describes a drain and how it ends.
#[must_use]
pub fn describe_drain(drain: &VaultDrain) -> String {
    let since = drain.at.map_or_else(String::new, |at| format!(" since {}", format_seconds(at)));
    let forgotten = if drain.is_forgotten(Utc::now()) { ". It stands for more than 10 minutes" } else { "" };
    format!("{} drains the vault{since} for a new build, until `steward drain --end`{forgotten}", drain.by)
}

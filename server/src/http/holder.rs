//! The record of the process that holds a vault (`up.json`): where its server listens, and its settings.
//!
//! The holder of the writer's lock writes the record into the state folder and removes it when it ends. The record
//! counts only while the lock is held. A record without a lock means that its process died. Other commands read it to
//! find the server and to show the policy in force.

use crate::http::serving::ServerEndpoint;
use crate::views::schedules::registered::CHECK_SECONDS;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use steward_domain::gates::mode::{Ceiling, DecisionPolicy};
use steward_domain::steward::guard::CallCaps;
use steward_domain::steward::tick::Cadence;
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::private;
use steward_vault::files::root::VaultRoot;

const FILE: &str = "up.json";

/// The record of the holder cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to write {}: {source}", path.display())]
pub struct ProcessRecordError {
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
}

/// What the holder of a vault records about itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HolderRecord {
    /// `up` or `worker`.
    pub command: String,
    pub pid: u32,
    /// The Temporal server it uses.
    pub address: String,
    /// The URL of that server's web page, if it is known.
    pub ui: Option<String>,
    /// The address of its dashboard and API; `None` if it does not listen.
    #[serde(default)]
    pub listen: Option<std::net::SocketAddr>,
    /// Whether it uses TLS there.
    #[serde(default)]
    pub encrypted: bool,
    /// The first host name of `STEWARD_HOSTS`, perhaps with a port.
    #[serde(default)]
    pub host: Option<String>,
    /// The process id of the Temporal server that it started; `None` when it uses one that was set.
    pub server_pid: Option<u32>,
    pub task_queue: String,
    /// The policy of the running process, which may differ from a command's environment.
    pub policy: DecisionPolicy,
    /// How often it checks; `None` in older records.
    #[serde(default)]
    pub cadence: Option<Cadence>,
    /// Its ceiling of sources for which no human has set one; `None` in older records.
    #[serde(default)]
    pub default_ceiling: Option<Ceiling>,
    /// The share of live changes that may be undone, 0 to 1; `None` in older records.
    #[serde(default)]
    pub reversal_budget: Option<f64>,
    /// Live changes that one source may lead to in 24 hours; `None` in older records.
    #[serde(default)]
    pub live_per_source_day: Option<u32>,
    /// How often it scans every file, in seconds.
    #[serde(default)]
    pub scan_seconds: Option<u64>,
    /// How often it compares the schedules with those at the Temporal server, in seconds.
    #[serde(default)]
    pub schedule_check_seconds: Option<u64>,
    /// The services that it uses and their limits; `None` in older records.
    #[serde(default)]
    pub asks: Option<HolderServiceSettings>,
    /// Why it does not poll yet: its build would break open runs, or they could not be checked. `None` if it polls.
    #[serde(default)]
    pub obstacle: Option<String>,
    /// Why nothing lands: the fleet's database does not answer. `None` if it does, or without a fleet.
    #[serde(default)]
    pub fleet_fault: Option<String>,
    /// Where and how often it makes backups; `None` if it makes none.
    #[serde(default)]
    pub backup: Option<HolderBackups>,
}

/// The backups that the holder of a vault makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderBackups {
    /// The folder that holds them.
    pub folder: PathBuf,
    /// Seconds between two of them.
    pub every_seconds: u32,
    /// Why the last attempt failed; `None` if it did not.
    #[serde(default)]
    pub fault: Option<String>,
}

/// The services that the holder of a vault uses, without any secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HolderServiceSettings {
    /// The caps of the rate guard.
    pub caps: CallCaps,
    /// The clerk as `steward status` shows it: its kind, and its address and model if it has them.
    pub clerk: serde_json::Value,
    /// The tracker's address; `None` if none is set.
    pub tracker: Option<String>,
}

impl HolderRecord {
    /// The endpoint of its server; `None` if it does not listen.
    #[must_use]
    pub fn server_endpoint(&self) -> Option<ServerEndpoint> {
        let listen = self.listen?;
        Some(ServerEndpoint { listen, encrypted: self.encrypted, host: self.host.clone() })
    }

    /// How often it compares the schedules with those at the Temporal server.
    #[must_use]
    pub fn schedule_check_interval(&self) -> Duration {
        Duration::from_secs(self.schedule_check_seconds.unwrap_or(CHECK_SECONDS))
    }

    /// Writes the record. Only the holder of the lock may call this.
    ///
    /// # Errors
    /// [`ProcessRecordError`] when the state folder cannot be written.
    pub fn write(&self, state_dir: &Path) -> Result<(), ProcessRecordError> {
        let (path, temporary) = (state_dir.join(FILE), state_dir.join(format!("{FILE}.new")));
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        // Renamed into place, because other processes may read it at any moment.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(private::FILE);
        let written = options.open(&temporary).and_then(|mut file| file.write_all(text.as_bytes()));
        let renamed = written.and_then(|()| std::fs::rename(&temporary, &path));
        renamed.map_err(|source| ProcessRecordError { path, source })
    }

    /// Removes the record of this process.
    pub fn remove(state_dir: &Path) {
        if Self::read(state_dir).is_some_and(|record| record.pid == std::process::id()) {
            // A record that stays behind does no harm: its process does not hold the lock.
            let _ = std::fs::remove_file(state_dir.join(FILE));
        }
    }

    fn read(state_dir: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(state_dir.join(FILE)).ok()?;
        serde_json::from_str(&text).ok()
    }
}

/// Whether a process holds a vault, and which.
#[derive(Clone, Debug)]
pub enum VaultHolder {
    /// No process holds it, and the last holder ended normally.
    Nobody,
    /// No process holds it, and the last holder died without removing its record.
    Died(HolderRecord),
    /// The process of this record holds it.
    Runs(HolderRecord),
    /// A process holds it but has written no record, or not yet: `process <number>`.
    Silent(String),
}

impl VaultHolder {
    /// Reads the record and compares it with the lock.
    #[must_use]
    pub fn read(root: &VaultRoot, state_dir: &Path) -> Self {
        match (VaultWriter::find_lock_holder(root), HolderRecord::read(state_dir)) {
            (Some(holder), Some(record)) if holder == format!("process {}", record.pid) => Self::Runs(record),
            (Some(holder), _) => Self::Silent(holder),
            (None, Some(record)) => Self::Died(record),
            (None, None) => Self::Nobody,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(pid: u32) -> HolderRecord {
        HolderRecord {
            command: "up".into(),
            pid,
            address: "127.0.0.1:1".into(),
            ui: None,
            listen: None,
            encrypted: false,
            host: None,
            server_pid: None,
            task_queue: "q".into(),
            policy: DecisionPolicy::default(),
            cadence: None,
            default_ceiling: None,
            reversal_budget: None,
            live_per_source_day: None,
            scan_seconds: None,
            schedule_check_seconds: None,
            asks: None,
            obstacle: None,
            fleet_fault: None,
            backup: None,
        }
    }

    #[test]
    fn a_record_counts_only_with_the_lock_of_the_process_that_wrote_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        assert!(matches!(VaultHolder::read(&root, dir.path()), VaultHolder::Nobody));
        record(std::process::id()).write(dir.path()).unwrap();
        assert!(matches!(VaultHolder::read(&root, dir.path()), VaultHolder::Died(_)));
        let writer = VaultWriter::lock(root.clone()).unwrap();
        assert!(matches!(VaultHolder::read(&root, dir.path()), VaultHolder::Runs(_)));
        record(1).write(dir.path()).unwrap();
        let VaultHolder::Silent(holder) = VaultHolder::read(&root, dir.path()) else { panic!() };
        assert_eq!(holder, format!("process {}", std::process::id()));
        HolderRecord::remove(dir.path());
        drop(writer);
        // A process that another test is just starting has a copy of every open file for a moment, the lock's too.
        let left = (0..100_000).find_map(|_| match VaultHolder::read(&root, dir.path()) {
            VaultHolder::Runs(_) | VaultHolder::Silent(_) => {
                std::thread::yield_now();
                None
            }
            left => Some(left),
        });
        assert!(matches!(left, Some(VaultHolder::Died(_))), "the record of another process must not be removed");
    }
}

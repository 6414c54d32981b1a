//! The note of the process that holds a vault: where its server is and what it may do.
//!
//! Whoever holds the writer's lock leaves it in the state folder, and takes it away in the end. A note
//! counts only together with the lock: without it, the process that wrote it is gone and said nothing.
//! The other commands find the server by it, and show the policy that decides.

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

/// The note cannot be left.
#[derive(Debug, thiserror::Error)]
#[error("failed to write {}: {source}", path.display())]
pub struct ProcessRecordError {
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
}

/// What the holder of a vault says of itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HolderRecord {
    /// `up` or `worker`.
    pub command: String,
    pub pid: u32,
    /// The Temporal server it uses.
    pub address: String,
    /// The web page of that server, where it is known.
    pub ui: Option<String>,
    /// Where its dashboard and control API are.
    #[serde(default)]
    pub listen: Option<std::net::SocketAddr>,
    /// It is spoken to by TLS there.
    #[serde(default)]
    pub encrypted: bool,
    /// The first name by which others reach it, perhaps with a port.
    #[serde(default)]
    pub host: Option<String>,
    /// The server that it started; `None` when it uses one that was set.
    pub server_pid: Option<u32>,
    pub task_queue: String,
    /// The policy of the process that runs, which may differ from a command's environment.
    pub policy: DecisionPolicy,
    /// How often it looks; older notes do not say.
    #[serde(default)]
    pub cadence: Option<Cadence>,
    /// Its ceiling of sources on which no human has set one; older notes do not say.
    #[serde(default)]
    pub default_ceiling: Option<Ceiling>,
    /// How often it looks at every file.
    #[serde(default)]
    pub scan_seconds: Option<u64>,
    /// How often it compares the schedules with those at the server.
    #[serde(default)]
    pub schedule_check_seconds: Option<u64>,
    /// Whom it asks and how often it may; older notes do not say.
    #[serde(default)]
    pub asks: Option<HolderServiceSettings>,
}

/// Whom the holder of a vault asks and tells, without any secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HolderServiceSettings {
    /// Of the rate guard.
    pub caps: CallCaps,
    /// As `steward status` shows it: its kind, and where it has one its address and model.
    pub clerk: serde_json::Value,
    /// The address of the tracker; `None` where none is set.
    pub tracker: Option<String>,
}

impl HolderRecord {
    /// Where it listens, if it does.
    #[must_use]
    pub fn server_endpoint(&self) -> Option<ServerEndpoint> {
        let listen = self.listen?;
        Some(ServerEndpoint { listen, encrypted: self.encrypted, host: self.host.clone() })
    }

    /// How often it compares the schedules with those at the server.
    #[must_use]
    pub fn schedule_check_interval(&self) -> Duration {
        Duration::from_secs(self.schedule_check_seconds.unwrap_or(CHECK_SECONDS))
    }

    /// Leaves the note; only for the holder of the lock.
    ///
    /// # Errors
    /// [`ProcessRecordError`] when the state folder cannot be written.
    pub fn write(&self, state_dir: &Path) -> Result<(), ProcessRecordError> {
        let (path, fresh) = (state_dir.join(FILE), state_dir.join(format!("{FILE}.new")));
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        // Renamed into place, because others read it at any moment.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(private::FILE);
        let opened = options.open(&fresh).and_then(|mut file| file.write_all(text.as_bytes()));
        let written = opened.and_then(|()| std::fs::rename(&fresh, &path));
        written.map_err(|source| ProcessRecordError { path, source })
    }

    /// Takes the note of this process away.
    pub fn remove(state_dir: &Path) {
        if Self::read(state_dir).is_some_and(|note| note.pid == std::process::id()) {
            // Left behind it would only name a process that no longer holds the lock.
            let _ = std::fs::remove_file(state_dir.join(FILE));
        }
    }

    fn read(state_dir: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(state_dir.join(FILE)).ok()?;
        serde_json::from_str(&text).ok()
    }
}

/// Whether a vault is served, and by whom.
#[derive(Clone, Debug)]
pub enum VaultHolder {
    /// Nobody holds it, and the last one who did ended in good order.
    Nobody,
    /// Nobody holds it, and the last one who did could not say that it ends.
    Died(HolderRecord),
    /// The process of this note holds it.
    Runs(HolderRecord),
    /// Somebody holds it and left no note, yet or at all: `process <number>`.
    Silent(String),
}

impl VaultHolder {
    /// Holds the note against the lock.
    #[must_use]
    pub fn read(root: &VaultRoot, state_dir: &Path) -> Self {
        match (VaultWriter::find_lock_holder(root), HolderRecord::read(state_dir)) {
            (Some(holder), Some(note)) if holder == format!("process {}", note.pid) => Self::Runs(note),
            (Some(holder), _) => Self::Silent(holder),
            (None, Some(note)) => Self::Died(note),
            (None, None) => Self::Nobody,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(pid: u32) -> HolderRecord {
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
            scan_seconds: None,
            schedule_check_seconds: None,
            asks: None,
        }
    }

    #[test]
    fn a_note_counts_only_with_the_lock_of_the_process_that_wrote_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        assert!(matches!(VaultHolder::read(&root, dir.path()), VaultHolder::Nobody));
        note(std::process::id()).write(dir.path()).unwrap();
        assert!(matches!(VaultHolder::read(&root, dir.path()), VaultHolder::Died(_)));
        let keeper = VaultWriter::lock(root.clone()).unwrap();
        assert!(matches!(VaultHolder::read(&root, dir.path()), VaultHolder::Runs(_)));
        note(1).write(dir.path()).unwrap();
        let VaultHolder::Silent(holder) = VaultHolder::read(&root, dir.path()) else { panic!() };
        assert_eq!(holder, format!("process {}", std::process::id()));
        HolderRecord::remove(dir.path());
        drop(keeper);
        // A process that another test is just starting has a copy of every open file for a moment, the lock's too.
        let left = (0..100_000).find_map(|_| match VaultHolder::read(&root, dir.path()) {
            VaultHolder::Runs(_) | VaultHolder::Silent(_) => {
                std::thread::yield_now();
                None
            }
            left => Some(left),
        });
        assert!(matches!(left, Some(VaultHolder::Died(_))), "another process's note was removed");
    }
}

//! Records of the processes that listen for a vault, as `steward serve` does. Another process may hold the vault.
//!
//! Each process keeps one record as a file in the state folder, and locks it while it lives. A record without a lock is
//! ignored, because its process has died. Commands find the server's address by these records. A different record
//! describes the process that holds the vault: see [`crate::http::holder`].

use crate::http::holder::{ProcessRecordError, VaultHolder};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use steward_vault::files::private;
use steward_vault::files::root::VaultRoot;

const PREFIX: &str = "serve-";
const SUFFIX: &str = ".json";

/// Where the dashboard and the control API of a vault are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerEndpoint {
    pub listen: SocketAddr,
    /// Whether the server uses TLS.
    #[serde(default)]
    pub encrypted: bool,
    /// The first host name of the server, perhaps with a port.
    #[serde(default)]
    pub host: Option<String>,
}

impl ServerEndpoint {
    /// Formats the URL, as in `https://127.0.0.1:8420`.
    #[must_use]
    pub fn to_url(&self) -> String {
        format!("{}://{}", if self.encrypted { "https" } else { "http" }, self.listen)
    }

    /// Builds the address under which a person's browser reaches it. A proxy that people configured speaks TLS.
    #[must_use]
    pub fn build_address(&self, is_proxied: bool) -> String {
        let address = self.listen;
        // A browser cannot open an unspecified address such as 0.0.0.0; without a host name, use this machine's own.
        let is_unspecified = address.ip().is_unspecified();
        let own_address = if is_unspecified { format!("127.0.0.1:{}", address.port()) } else { address.to_string() };
        let is_proxied = is_proxied && self.host.is_some();
        let scheme = if self.encrypted || is_proxied { "https" } else { "http" };
        let host = match &self.host {
            Some(name) if is_proxied || name.contains(':') => name.clone(),
            Some(name) => format!("{name}:{}", address.port()),
            None => own_address,
        };
        format!("{scheme}://{host}")
    }

    /// Finds the endpoint of a vault: that of the process that holds it, otherwise that of another listening process.
    #[must_use]
    pub fn find_for_vault(root: &VaultRoot, state_dir: &Path) -> Option<Self> {
        let held = match VaultHolder::read(root, state_dir) {
            VaultHolder::Runs(note) => note.server_endpoint(),
            VaultHolder::Died(_) | VaultHolder::Silent(_) | VaultHolder::Nobody => None,
        };
        held.or_else(|| ListenerRecord::read_all(state_dir).into_iter().next().map(|serving| serving.endpoint))
    }
}

/// The record of a process that listens and holds no vault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerRecord {
    pub pid: u32,
    #[serde(flatten)]
    pub endpoint: ServerEndpoint,
}

/// Holds the lock of a written record. Dropping it deletes the record.
#[derive(Debug)]
pub struct ListenerRecordGuard {
    path: PathBuf,
    _lock: File,
}

impl Drop for ListenerRecordGuard {
    fn drop(&mut self) {
        // If the file stays, it has no lock and is ignored.
        let _ = fs::remove_file(&self.path);
    }
}

impl ListenerRecord {
    /// Writes the record, and deletes the records of processes that died.
    ///
    /// # Errors
    /// [`ProcessRecordError`] if the state folder cannot be written.
    pub fn write_locked(&self, state_dir: &Path) -> Result<ListenerRecordGuard, ProcessRecordError> {
        for (path, note) in list_records(state_dir) {
            if note.is_none() {
                // If it stays, the next reader ignores it too.
                let _ = fs::remove_file(path);
            }
        }
        // Process ids repeat, for example in two containers, so the port is part of the name.
        let name = format!("{PREFIX}{}-{}", self.pid, self.endpoint.listen.port());
        let (path, fresh) = (state_dir.join(format!("{name}{SUFFIX}")), state_dir.join(format!("{name}.new")));
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(private::FILE);
        let written = options.open(&fresh).and_then(|lock| {
            lock.lock()?;
            io::Write::write_all(&mut &lock, text.as_bytes())?;
            // It is locked before it is visible. Otherwise a reader could take its process for dead.
            fs::rename(&fresh, &path)?;
            Ok(ListenerRecordGuard { path: path.clone(), _lock: lock })
        });
        written.map_err(|source| ProcessRecordError { path, source })
    }

    /// Reads the records of all listening processes, in the order of process id and port.
    #[must_use]
    pub fn read_all(state_dir: &Path) -> Vec<Self> {
        let mut all: Vec<Self> = list_records(state_dir).into_iter().filter_map(|(_, note)| note).collect();
        all.sort_by_key(|serving| (serving.pid, serving.endpoint.listen.port()));
        all
    }
}

/// Lists all record files, with `None` for a record without a lock.
fn list_records(state_dir: &Path) -> Vec<(PathBuf, Option<ListenerRecord>)> {
    let Ok(entries) = fs::read_dir(state_dir) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let ours = paths.filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(PREFIX) && name.ends_with(SUFFIX)
    });
    ours.map(|path| (read_live_record(&path), path)).map(|(note, path)| (path, note)).collect()
}

fn read_live_record(path: &Path) -> Option<ListenerRecord> {
    let file = File::open(path).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => serde_json::from_str(&fs::read_to_string(path).ok()?).ok(),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serving(pid: u32, port: u16) -> ListenerRecord {
        let listen = SocketAddr::from(([127, 0, 0, 1], port));
        ListenerRecord { pid, endpoint: ServerEndpoint { listen, encrypted: false, host: None } }
    }

    #[test]
    fn a_note_counts_as_long_as_its_process_lives_and_goes_with_it() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(ListenerRecord::read_all(dir.path()), []);
        let (one, other) = (serving(7, 2), serving(7, 1));
        let (left, beside) = (one.write_locked(dir.path()).unwrap(), other.write_locked(dir.path()).unwrap());
        assert_eq!(ListenerRecord::read_all(dir.path()), [other.clone(), one]);
        drop(left);
        assert_eq!(ListenerRecord::read_all(dir.path()), [other], "its own note alone went");
        drop(beside);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_note_of_a_process_that_died_counts_no_more_and_is_swept_out() {
        let dir = tempfile::tempdir().unwrap();
        let died = dir.path().join("serve-9-9.json");
        fs::write(&died, serde_json::to_string(&serving(9, 9)).unwrap()).unwrap();
        assert_eq!(ListenerRecord::read_all(dir.path()), []);
        let root = VaultRoot::open(dir.path()).unwrap();
        assert_eq!(ServerEndpoint::find_for_vault(&root, dir.path()), None);
        let _left = serving(8, 8).write_locked(dir.path()).unwrap();
        assert!(!died.exists());
        assert_eq!(
            ServerEndpoint::find_for_vault(&root, dir.path()).map(|endpoint| endpoint.to_url()).as_deref(),
            Some("http://127.0.0.1:8")
        );
    }
}

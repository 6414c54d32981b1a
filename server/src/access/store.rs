//! The files of `access/`: one for each token and link, named after the hash of its secret, and the keys.
//!
//! A secret is found by its hash. So nobody who reads these files learns a secret, and no secret is compared byte by
//! byte. A file is written completely or not at all. If several processes remove a file at once, one of them succeeds.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Shortest valid key, in characters. A shorter file was cut off by somebody or by a full disk.
const LEAST_KEY: usize = 40;

/// Why the access files could not be used, or a name was refused.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    #[error("{}: {source}: check that the state folder exists and belongs to you", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: cannot be read ({reason}): remove it and create a new one", path.display())]
    Form { path: PathBuf, reason: String },
    #[error("`{name}` is not a valid name: {reason}")]
    Name { name: String, reason: &'static str },
    #[error("{reason}")]
    Limits { reason: &'static str },
    #[error("the system provides no random bytes: {0}")]
    Random(String),
}

/// The folder `access/`, with one file per secret.
#[derive(Clone, Debug)]
pub struct SecretStore {
    dir: PathBuf,
}

impl SecretStore {
    /// Names the store in a vault's state folder; creates nothing yet.
    #[must_use]
    pub fn new(state_dir: &Path) -> Self {
        Self { dir: state_dir.join("access") }
    }

    fn io_error(path: &Path, source: io::Error) -> AccessError {
        AccessError::Io { path: path.to_owned(), source }
    }

    fn create_folder(&self, kind: &str) -> Result<PathBuf, AccessError> {
        let folder = self.dir.join(kind);
        let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        created.map_err(|e| Self::io_error(&folder, e))?;
        Ok(folder)
    }

    fn secret_path(&self, kind: &str, secret: &str) -> PathBuf {
        self.dir.join(kind).join(hash_secret(secret))
    }

    /// Stores a value under the hash of a secret; the secret itself is not stored.
    pub(super) fn put<T: Serialize>(&self, kind: &str, secret: &str, value: &T) -> Result<(), AccessError> {
        let path = self.create_folder(kind)?.join(hash_secret(secret));
        let text =
            serde_json::to_vec(value).map_err(|e| AccessError::Form { path: path.clone(), reason: e.to_string() })?;
        write_new_file(&path, &text).map_err(|e| Self::io_error(&path, e))
    }

    /// Reads the value of a secret; `None` for an unknown secret.
    pub(super) fn get<T: DeserializeOwned>(&self, kind: &str, secret: &str) -> Result<Option<T>, AccessError> {
        read_file(&self.secret_path(kind, secret))
    }

    /// Whether a file exists for a secret, readable or not.
    pub(super) fn has_secret(&self, kind: &str, secret: &str) -> Result<bool, AccessError> {
        let path = self.secret_path(kind, secret);
        path.try_exists().map_err(|e| Self::io_error(&path, e))
    }

    /// Reads the value of a secret and removes it. If several callers take it at once, one of them gets it.
    pub(super) fn take<T: DeserializeOwned>(&self, kind: &str, secret: &str) -> Result<Option<T>, AccessError> {
        let path = self.secret_path(kind, secret);
        let Some(found) = read_file(&path)? else { return Ok(None) };
        match fs::remove_file(&path) {
            Ok(()) => Ok(Some(found)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Self::io_error(&path, e)),
        }
    }

    /// Reads all values of a kind, each with its file, in no order. Temporary files that a crash left are ignored.
    pub(super) fn read_all<T: DeserializeOwned>(&self, kind: &str) -> Result<Vec<(PathBuf, T)>, AccessError> {
        let folder = self.create_folder(kind)?;
        let mut found = Vec::new();
        for entry in fs::read_dir(&folder).map_err(|e| Self::io_error(&folder, e))? {
            let path = entry.map_err(|e| Self::io_error(&folder, e))?.path();
            let is_complete = path.extension().is_none();
            match read_file(&path) {
                Ok(Some(value)) if is_complete => found.push((path, value)),
                Err(e) if is_complete => tracing::warn!("ignored an access file: {e}"),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(found)
    }

    /// Reads a key and creates it if it is missing or too short, like an empty file that a full disk left. Removing the
    /// file revokes everything that was signed with the key.
    pub(crate) fn ensure_key(&self, name: &str) -> Result<String, AccessError> {
        let path = self.create_folder("keys")?.join(name);
        match fs::read_to_string(&path) {
            Ok(key) if key.len() >= LEAST_KEY => return Ok(key),
            Ok(_) => fs::remove_file(&path).map_err(|e| Self::io_error(&path, e))?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(Self::io_error(&path, e)),
        }
        match write_new_file(&path, super::generate_secret()?.as_bytes()) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(Self::io_error(&path, e)),
            Ok(()) | Err(_) => {}
        }
        fs::read_to_string(&path).map_err(|e| Self::io_error(&path, e))
    }

    /// Reads a key; `None` if it is missing or too short.
    pub(crate) fn read_key(&self, name: &str) -> Result<Option<String>, AccessError> {
        let path = self.dir.join("keys").join(name);
        match fs::read_to_string(&path) {
            Ok(key) => Ok(Some(key).filter(|key| key.len() >= LEAST_KEY)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Self::io_error(&path, e)),
        }
    }
}

fn hash_secret(secret: &str) -> String {
    Sha256::digest(secret.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read_file<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, AccessError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(SecretStore::io_error(path, e)),
    };
    let read = serde_json::from_slice(&bytes);
    read.map(Some).map_err(|e| AccessError::Form { path: path.to_owned(), reason: e.to_string() })
}

/// Writes a temporary file and links it into place, so that two writers cannot mix their bytes. Fails if the file
/// exists.
fn write_new_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static NEXT_NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
    let temporary = path.with_extension(format!("new-{}-{number}", std::process::id()));
    let written = (|| {
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::hard_link(&temporary, path)
    })();
    // The temporary file is of no use, whether the link succeeded or not.
    let _ = fs::remove_file(&temporary);
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_only_by_itself_and_is_in_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let store = SecretStore::new(dir.path());
        store.put("tokens", "hush", &"known".to_owned()).unwrap();
        assert_eq!(store.get::<String>("tokens", "hush").unwrap().as_deref(), Some("known"));
        assert_eq!(store.get::<String>("tokens", "Hush").unwrap(), None);
        assert_eq!(store.get::<String>("tokens", "../tokens").unwrap(), None);
        for (path, _) in store.read_all::<String>("tokens").unwrap() {
            assert!(!path.display().to_string().contains("hush"));
            assert!(!fs::read_to_string(path).unwrap().contains("hush"));
        }
    }

    #[test]
    fn concurrent_callers_get_one_key_and_a_cut_key_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let store = SecretStore::new(dir.path());
        let keys: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| store.ensure_key("k").unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0] && key.len() >= LEAST_KEY), "{keys:?}");
        let file = dir.path().join("access/keys/k");
        for cut in ["", "A"] {
            fs::write(&file, cut).unwrap();
            assert_eq!(store.read_key("k").unwrap(), None);
            assert!(store.ensure_key("k").unwrap().len() >= LEAST_KEY);
        }
    }

    #[test]
    fn a_value_can_be_taken_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = SecretStore::new(dir.path());
        store.put("links", "x", &1).unwrap();
        assert_eq!(store.take::<i32>("links", "x").unwrap(), Some(1));
        assert_eq!(store.take::<i32>("links", "x").unwrap(), None);
    }

    #[test]
    fn a_key_is_made_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = SecretStore::new(dir.path());
        let key = store.ensure_key("sessions").unwrap();
        assert_eq!(store.ensure_key("sessions").unwrap(), key);
        assert!(key.len() > 40);
        assert_eq!(fs::read_dir(dir.path().join("access/keys")).unwrap().count(), 1, "nothing is left beside it");
    }
}

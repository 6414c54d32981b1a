//! The files of `access/`: one for each token and link, named after the hash of its secret, and the key of sessions.
//!
//! A secret is looked up by its hash, so nothing here can be used by who reads it, and nothing is compared
//! byte by byte. A file is written whole or not at all; its removal has one winner.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Shortest key, in characters: what is shorter somebody has cut, or a full disk.
const LEAST_KEY: usize = 40;

/// Why something cannot be said of tokens and links.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    #[error("{}: {source}: is the state folder there, and yours?", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: cannot be read ({reason}): remove it, and make a new one", path.display())]
    Form { path: PathBuf, reason: String },
    #[error("`{name}` cannot be a name: {reason}")]
    Name { name: String, reason: &'static str },
    #[error("the system has no random bytes to give: {0}")]
    Random(String),
}

/// Where the hashes lie.
#[derive(Clone, Debug)]
pub struct SecretStore {
    dir: PathBuf,
}

impl SecretStore {
    /// In the state folder of a vault.
    #[must_use]
    pub fn new(state_dir: &Path) -> Self {
        Self { dir: state_dir.join("access") }
    }

    fn io_error(path: &Path, source: io::Error) -> AccessError {
        AccessError::Io { path: path.to_owned(), source }
    }

    fn create_folder(&self, kind: &str) -> Result<PathBuf, AccessError> {
        let folder = self.dir.join(kind);
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|e| Self::io_error(&folder, e))?;
        Ok(folder)
    }

    fn secret_path(&self, kind: &str, secret: &str) -> PathBuf {
        self.dir.join(kind).join(hash_secret(secret))
    }

    /// Keeps what is known of a secret, and not the secret.
    pub(super) fn put<T: Serialize>(&self, kind: &str, secret: &str, value: &T) -> Result<(), AccessError> {
        let path = self.create_folder(kind)?.join(hash_secret(secret));
        let text =
            serde_json::to_vec(value).map_err(|e| AccessError::Form { path: path.clone(), reason: e.to_string() })?;
        write_new_file(&path, &text).map_err(|e| Self::io_error(&path, e))
    }

    /// What is known of a secret; `None` of one that nobody gave out.
    pub(super) fn get<T: DeserializeOwned>(&self, kind: &str, secret: &str) -> Result<Option<T>, AccessError> {
        read_file(&self.secret_path(kind, secret))
    }

    /// Whether anything is kept of a secret, readable or not.
    pub(super) fn has_secret(&self, kind: &str, secret: &str) -> Result<bool, AccessError> {
        let path = self.secret_path(kind, secret);
        path.try_exists().map_err(|e| Self::io_error(&path, e))
    }

    /// As [`SecretStore::get`], and never again: of several at once, one gets it.
    pub(super) fn take<T: DeserializeOwned>(&self, kind: &str, secret: &str) -> Result<Option<T>, AccessError> {
        let path = self.secret_path(kind, secret);
        let Some(found) = read_file(&path)? else { return Ok(None) };
        match fs::remove_file(&path) {
            Ok(()) => Ok(Some(found)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Self::io_error(&path, e)),
        }
    }

    /// Everything of a kind, with the file each lies in, in no order; what a crash left beside them is none.
    pub(super) fn read_all<T: DeserializeOwned>(&self, kind: &str) -> Result<Vec<(PathBuf, T)>, AccessError> {
        let folder = self.create_folder(kind)?;
        let mut found = Vec::new();
        for entry in fs::read_dir(&folder).map_err(|e| Self::io_error(&folder, e))? {
            let path = entry.map_err(|e| Self::io_error(&folder, e))?.path();
            let is_whole = path.extension().is_none();
            match read_file(&path) {
                Ok(Some(value)) if is_whole => found.push((path, value)),
                Err(e) if is_whole => tracing::warn!("passed over: {e}"),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(found)
    }

    /// A key that is made the first time it is asked for: whoever removes the file ends every session. What is shorter than
    /// a key is none, as an empty file that a full disk left.
    pub(super) fn ensure_key(&self, name: &str) -> Result<String, AccessError> {
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

    /// A key that was made; `None` before that, and once it was taken away.
    pub(super) fn read_key(&self, name: &str) -> Result<Option<String>, AccessError> {
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

/// Linked into place whole: two that write at once cannot leave half of each.
fn write_new_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static ANOTHER: AtomicU32 = AtomicU32::new(0);
    let number = ANOTHER.fetch_add(1, Ordering::Relaxed);
    let beside = path.with_extension(format!("new-{}-{number}", std::process::id()));
    let written = (|| {
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::hard_link(&beside, path)
    })();
    // Whatever came of it, what was beside it is no more than that.
    let _ = fs::remove_file(&beside);
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_by_itself_alone_and_stands_in_no_file() {
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
    fn a_key_is_one_for_all_who_ask_at_once_and_what_is_cut_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let store = SecretStore::new(dir.path());
        let keys: Vec<String> = std::thread::scope(|scope| {
            let asked: Vec<_> = (0..8).map(|_| scope.spawn(|| store.ensure_key("k").unwrap())).collect();
            asked.into_iter().map(|one| one.join().unwrap()).collect()
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
    fn what_is_taken_is_gone() {
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

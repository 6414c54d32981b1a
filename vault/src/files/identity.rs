//! The identity of a vault: a random id in `.steward/vault.json`, and the place where the vault is now.
//!
//! The first holder of the writer's lock creates the id, and it never changes. It distinguishes the schedules of one
//! vault from those of another. A file that cannot be read is an error. It must never lead to a new id.

use crate::files::durable;
use crate::files::root::{OWN_FOLDER, VaultRoot};
use cap_std::fs::Dir;
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, openat, statx};
use rustix::io::Errno;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;
use steward_domain::fleet::TenantId;
use steward_domain::record::path::RecordPath;
use uuid::Uuid;

const FILE: &str = "vault.json";
/// The longest content that is read, in bytes. Ours has about 50.
const MAX_BYTES: u64 = 4096;
/// The file in which Linux shows the name of this machine.
const HOST: &str = "/proc/sys/kernel/hostname";

/// The id of a vault: a random UUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VaultId(Uuid);

/// The text is not a UUID.
#[derive(Debug, thiserror::Error)]
#[error("`{}` is not the id of a vault", .0.escape_debug())]
pub struct InvalidVaultId(String);

/// The place of a vault when its schedules were registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VaultPlace {
    /// The absolute path of its folder, links resolved.
    pub folder: String,
    /// The name of the machine.
    pub host: String,
    /// The inode and the time of birth of its `vault.json`, which distinguish it from a copy. They survive a restart
    /// and a move within a file system. A copy has others.
    pub file: String,
}

/// A vault's id and the place where it is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VaultIdentity {
    pub id: VaultId,
    /// The tenant that the vault belongs to; `None` for a vault alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantId>,
    /// Steward's folder, in a vault with a mapping.
    #[serde(skip)]
    folder: Option<String>,
    pub place: VaultPlace,
}

/// Why the identity of a vault is unknown.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error(
        "{OWN_FOLDER}/{FILE}: {reason}: put the file back from a backup, or remove it and run `steward schedules adopt`"
    )]
    Damaged { reason: String },
    #[error("{OWN_FOLDER}/{FILE}: {0}")]
    Io(#[from] io::Error),
}

#[derive(Serialize, Deserialize)]
struct IdentityFile {
    id: VaultId,
    /// Steward's folder, in a vault with a mapping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    /// The tenant of the vault in a fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tenant: Option<TenantId>,
}

impl VaultIdentity {
    /// The identity of a vault alone.
    #[must_use]
    pub fn new(id: VaultId, place: VaultPlace) -> Self {
        Self { id, tenant: None, folder: None, place }
    }

    /// Reads the identity of a vault; `None` if no process has held the vault yet, or if the file was lost.
    ///
    /// # Errors
    /// [`IdentityError`] if the file exists and cannot be used.
    pub fn read(root: &VaultRoot) -> Result<Option<Self>, IdentityError> {
        let Some(own) = root.find_own_folder(None)? else { return Ok(None) };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match openat(&own, FILE, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => {
                return Err(IdentityError::Damaged { reason: "is a link, which is not followed".into() });
            }
            Err(e) => return Err(io::Error::from(e).into()),
        };
        let mut bytes = Vec::new();
        (&file).take(MAX_BYTES).read_to_end(&mut bytes)?;
        let content: IdentityFile = serde_json::from_slice(&bytes)
            .map_err(|e| IdentityError::Damaged { reason: format!("cannot be read ({e})") })?;
        // A copy gets a new time of birth, and a change of owner keeps it. It is 0 if the file system has none.
        let stat =
            statx(&file, "", AtFlags::EMPTY_PATH, StatxFlags::INO | StatxFlags::BTIME).map_err(io::Error::from)?;
        let place = VaultPlace {
            folder: root.path().to_string_lossy().into_owned(),
            host: std::fs::read_to_string(HOST).unwrap_or_default().trim().to_owned(),
            file: format!("{}-{}.{:09}", stat.stx_ino, stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec),
        };
        Ok(Some(Self { id: content.id, tenant: content.tenant, folder: content.folder, place }))
    }

    /// Reads the identity, and creates it if there is none. Only the holder of the lock may call this.
    pub(crate) fn read_or_create(root: &VaultRoot) -> Result<Self, IdentityError> {
        if let Some(identity) = Self::read(root)? {
            return Ok(identity);
        }
        let own = root.make_own_folder(None)?;
        write_identity_file(&own, &IdentityFile { id: VaultId(Uuid::new_v4()), folder: None, tenant: None })?;
        Self::read(root)?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound).into())
    }

    /// Keeps the name of Steward's folder. Only the holder of the lock may call this.
    pub(crate) fn write_steward_folder(&self, root: &VaultRoot, folder: &str) -> Result<(), IdentityError> {
        let own = root.make_own_folder(None)?;
        let content = IdentityFile { id: self.id, folder: Some(folder.to_owned()), tenant: self.tenant.clone() };
        Ok(write_identity_file(&own, &content)?)
    }

    /// Keeps the tenant of the vault; `None` makes it a vault alone. Only the holder of the lock may call this.
    ///
    /// # Errors
    /// [`IdentityError::Io`].
    pub fn write_tenant(&self, root: &VaultRoot, tenant: Option<&TenantId>) -> Result<(), IdentityError> {
        let own = root.make_own_folder(None)?;
        let content = IdentityFile { id: self.id, folder: self.folder.clone(), tenant: tenant.cloned() };
        Ok(write_identity_file(&own, &content)?)
    }

    /// Whether the vault in a folder of this machine is another vault with the same id.
    #[must_use]
    pub fn has_twin_in(&self, folder: &Path) -> bool {
        let there = VaultRoot::open(folder).ok().and_then(|root| Self::read(&root).ok().flatten());
        there.is_some_and(|there| there.id == self.id && there.place.file != self.place.file)
    }
}

/// Steward's folder as `vault.json` names it. An unreadable file names none; whoever locks the vault reports it.
pub(crate) fn read_steward_folder(vault: &Dir) -> Option<String> {
    let bytes = vault.read(format!("{OWN_FOLDER}/{FILE}")).ok()?;
    let content: IdentityFile = serde_json::from_slice(&bytes).ok()?;
    // A path that is not plain names no folder; whoever locks the vault compares it with the accepted one.
    content.folder.filter(|folder| RecordPath::parse(&format!("{folder}/x.md")).is_ok())
}

fn write_identity_file(own: &Dir, content: &IdentityFile) -> io::Result<()> {
    let text = serde_json::to_string(content).map_err(io::Error::from)?;
    durable::replace_private_file(own, FILE, format!("{text}\n").as_bytes())?;
    durable::sync_folder(own)
}

impl fmt::Display for VaultId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for VaultId {
    type Err = InvalidVaultId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = Uuid::parse_str(text).ok().filter(|id| !id.is_nil());
        read.map(Self).ok_or_else(|| InvalidVaultId(text.chars().take(100).collect()))
    }
}

impl Serialize for VaultId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for VaultId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::writer::VaultWriter;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    struct Folders {
        _dir: tempfile::TempDir,
        vault: PathBuf,
        other: PathBuf,
    }

    fn folders() -> Folders {
        let dir = tempfile::tempdir().unwrap();
        let (vault, other) = (dir.path().join("vault"), dir.path().join("other"));
        std::fs::create_dir(&vault).unwrap();
        Folders { _dir: dir, vault, other }
    }

    fn identity(vault: &Path) -> VaultIdentity {
        VaultWriter::lock(VaultRoot::open(vault).unwrap()).unwrap().identity().clone()
    }

    fn copy(from: &Path, to: &Path) {
        assert!(std::process::Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
    }

    #[test]
    fn a_vault_gets_an_id_once_that_its_owner_alone_can_read() {
        let Folders { _dir, vault, .. } = folders();
        assert_eq!(VaultIdentity::read(&VaultRoot::open(&vault).unwrap()).unwrap(), None);
        let first = identity(&vault);
        assert_eq!(identity(&vault), first);
        let mode = std::fs::metadata(vault.join(".steward/vault.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_ne!(identity(tempfile::tempdir().unwrap().path()).id, first.id);
    }

    #[test]
    fn a_damaged_file_is_named_and_never_replaced() {
        let Folders { _dir, vault, .. } = folders();
        identity(&vault);
        let file = vault.join(".steward/vault.json");
        for bad in ["", "{}", "{\"id\": \"1\"}", "{\"id\": \"00000000-0000-0000-0000-000000000000\"}", "\u{0}"] {
            std::fs::write(&file, bad).unwrap();
            let message = VaultWriter::lock(VaultRoot::open(&vault).unwrap()).unwrap_err().to_string();
            assert!(message.starts_with(".steward/vault.json: ") && message.contains("adopt"), "{message}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), bad);
        }
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", &file).unwrap();
        let message = VaultWriter::lock(VaultRoot::open(&vault).unwrap()).unwrap_err().to_string();
        assert!(message.contains("link"), "{message}");
    }

    #[test]
    fn a_copy_is_a_twin_and_a_vault_that_moved_is_none() {
        let Folders { _dir, vault, other } = folders();
        let first = identity(&vault);
        std::fs::rename(&vault, &other).unwrap();
        let moved = identity(&other);
        assert_eq!((moved.id, &moved.place.file), (first.id, &first.place.file));
        assert!(!moved.has_twin_in(&vault) && !moved.has_twin_in(&other));
        copy(&other, &vault);
        let copied = identity(&vault);
        assert_eq!(copied.id, first.id);
        assert_ne!(copied.place.file, first.place.file);
        assert!(copied.has_twin_in(&other) && moved.has_twin_in(&vault));
        assert!(!copied.has_twin_in(&vault) && !copied.has_twin_in(Path::new("/nowhere")));
    }
}

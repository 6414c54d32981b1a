//! The lock of the one process that writes a vault.
//!
//! The operating system holds the lock, so it ends with its process, however that ends. The text in the lock file only
//! shows people who holds it. A link in the file's place is never followed: a vault may come from elsewhere, and the
//! file that the link names would be overwritten.

use super::LockError;
use crate::files::durable;
use crate::files::private;
use crate::files::root::{FolderPlacement, OWN_FOLDER, RESTORING, VaultRoot};
use cap_std::fs::Dir;
use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat, statat};
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::time::Duration;

const FILE: &str = "lock";
const IGNORE: &str = ".gitignore";
/// The longest name of a holder that is shown, in bytes.
const MAX_HOLDER_BYTES: u64 = 200;

/// The path of the lock file, for messages.
pub(super) fn display_path() -> String {
    format!("{OWN_FOLDER}/{FILE}")
}

/// How often the lock is tried before it counts as held. A process that only checks the lock holds it for a moment.
const TRIES: u32 = 8;
/// The pause between two tries: 25 ms.
const PAUSE: Duration = Duration::from_millis(25);

/// The holder of the lock, by the text in the file; `None` if the lock is free or cannot be checked.
pub(super) fn find_holder(root: &VaultRoot) -> Option<String> {
    let own = root.find_own_folder(None).ok()??;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(openat(&own, FILE, flags, Mode::empty()).ok()?);
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)).then(|| read_holder(&file))
}

/// Takes the lock.
pub(super) fn take_lock(root: &VaultRoot) -> Result<File, LockError> {
    let failed = |path: String| move |source| LockError::Io { path, source };
    let own = root.make_own_folder(None).map_err(failed(format!("{OWN_FOLDER}/")))?;
    write_gitignore(&own).map_err(failed(format!("{OWN_FOLDER}/{IGNORE}")))?;
    let mut file = open_lock_file(&own).map_err(failed(display_path()))?;
    let mut tries = 1;
    while tries < TRIES && matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
        std::thread::sleep(PAUSE);
        tries += 1;
    }
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(LockError::Held { path: display_path(), holder: read_holder(&file) });
        }
        Err(TryLockError::Error(source)) => return Err(failed(display_path())(source)),
    }
    verify_ownership(root, &file).map_err(failed(display_path()))?;
    if root.dir().exists(format!("{OWN_FOLDER}/{RESTORING}")) {
        return Err(LockError::Restoring(root.path().display().to_string()));
    }
    file.set_len(0).and_then(|()| write!(file, "process {}", std::process::id())).map_err(failed(display_path()))?;
    Ok(file)
}

/// Checks that the vault is still at its path, and that our lock file is still the one that others would lock.
pub(super) fn verify_ownership(root: &VaultRoot, file: &File) -> io::Result<()> {
    if root.placement() != FolderPlacement::Here {
        let reason = format!("the vault's folder is not at {} any more: move it back there", root.path().display());
        return Err(io::Error::new(io::ErrorKind::NotFound, reason));
    }
    let held = fstat(file)?;
    let lost = || {
        let reason = "was removed or replaced while this process held it, so another process may write as well: \
                      restart Steward";
        io::Error::new(io::ErrorKind::NotFound, reason)
    };
    let own = root.find_own_folder(None)?.ok_or_else(lost)?;
    match statat(&own, FILE, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(there) if (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino) => Ok(()),
        Ok(_) | Err(rustix::io::Errno::NOENT) => Err(lost()),
        Err(e) => Err(e.into()),
    }
}

fn open_lock_file(own: &Dir) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    match openat(own, FILE, flags, Mode::from_raw_mode(private::FILE)) {
        Ok(fd) => Ok(File::from(fd)),
        Err(rustix::io::Errno::LOOP) => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "is a link, which is not followed: remove it"))
        }
        Err(e) => Err(e.into()),
    }
}

fn read_holder(file: &File) -> String {
    let mut text = String::new();
    let read = file.take(MAX_HOLDER_BYTES).read_to_string(&mut text);
    match (read, text.trim()) {
        (Err(_), _) | (Ok(_), "") => "unknown".into(),
        (Ok(_), holder) => holder.escape_default().to_string(),
    }
}

/// Keeps our folder out of the vault's git history.
fn write_gitignore(own: &Dir) -> io::Result<()> {
    match durable::create_file(own, IGNORE, b"*\n") {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
        Ok(()) | Err(_) => Ok(()),
    }
}

//! Checks whether a folder can be written, and why not: its disk is full, read-only or broken.
//!
//! The check writes a small file and removes it again. Free bytes and permissions do not suffice: quotas, space
//! reserved for root and read-only mounts all differ. It must not touch any other file.

use cap_std::fs::Dir;
use rustix::fs::{Mode, OFlags, openat, statvfs};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The size of the sample that a check writes: 64 KiB, more than a usual record with its audit record and intent.
const SAMPLE: usize = 64 * 1024;
/// The sample's name, for file systems that have no unnamed files.
const NAME: &str = "disk-check.tmp";
const PRIVATE: u32 = 0o600;

/// A folder that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum DiskFault {
    #[error("{folder}: the disk is full ({free} bytes free): free some space; Steward continues by itself")]
    Full { folder: PathBuf, free: u64 },
    #[error("{folder}: the disk is read-only ({free} bytes free): mount it for writing; Steward continues by itself")]
    ReadOnly { folder: PathBuf, free: u64 },
    #[error("{folder}: cannot be written ({source}): check the disk and the permissions of the folder")]
    Broken { folder: PathBuf, source: io::Error },
}

/// Checks that a folder can be written; returns the free bytes of its disk.
///
/// # Errors
/// [`DiskFault`], which names the folder and the fix.
pub fn check_writable(folder: &Path) -> Result<u64, DiskFault> {
    write_sample(folder).map_err(|source| classify_fault(folder, source))?;
    Ok(count_free_bytes(folder))
}

/// The space of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    pub total_bytes: u64,
    /// What a process without special rights may still write.
    pub free_bytes: u64,
    /// Files that the disk can hold; 0 if it has no such limit.
    pub total_inodes: u64,
    pub free_inodes: u64,
}

/// Measures the disk of a folder; `None` if it is unknown.
#[must_use]
pub fn measure_space(folder: &Path) -> Option<DiskSpace> {
    let disk = statvfs(folder).ok()?;
    Some(DiskSpace {
        total_bytes: disk.f_blocks.saturating_mul(disk.f_frsize),
        free_bytes: disk.f_bavail.saturating_mul(disk.f_frsize),
        total_inodes: disk.f_files,
        free_inodes: disk.f_favail,
    })
}

/// Whether an error means that the disk is full, read-only or broken.
#[must_use]
pub fn is_disk_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::ReadOnlyFilesystem
    ) || error.raw_os_error() == Some(Errno::IO.raw_os_error())
}

/// The fix for an error of the disk, as the end of a message; empty if none is known.
pub(crate) fn disk_error_hint(e: &io::Error) -> &'static str {
    match e.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ": free some space on the vault's disk",
        io::ErrorKind::FileTooLarge => ": raise the limit of file sizes (ulimit -f) of Steward's process",
        io::ErrorKind::ReadOnlyFilesystem => ": make the vault writable",
        // What Steward itself refuses says how to allow it.
        io::ErrorKind::PermissionDenied if e.raw_os_error().is_some() => ": let Steward's user read and write it",
        _ => "",
    }
}

/// Whether an error means that no space is left.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn classify_fault(folder: &Path, source: io::Error) -> DiskFault {
    let (folder, free) = (folder.to_owned(), count_free_bytes(folder));
    match source.kind() {
        _ if is_full(&source) => DiskFault::Full { folder, free },
        io::ErrorKind::ReadOnlyFilesystem => DiskFault::ReadOnly { folder, free },
        _ => DiskFault::Broken { folder, source },
    }
}

/// The free bytes of the folder's disk; 0 if they are unknown.
fn count_free_bytes(folder: &Path) -> u64 {
    measure_space(folder).map_or(0, |space| space.free_bytes)
}

fn write_sample(folder: &Path) -> io::Result<()> {
    let dir = Dir::open_ambient_dir(folder, cap_std::ambient_authority())?;
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    match openat(&dir, ".", flags | OFlags::TMPFILE, Mode::from_raw_mode(PRIVATE)) {
        Ok(file) => File::from(file).write_all(&[0; SAMPLE]),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {
            let named = flags | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
            let mut file = File::from(openat(&dir, NAME, named, Mode::from_raw_mode(PRIVATE))?);
            let written = file.write_all(&[0; SAMPLE]);
            match dir.remove_file(NAME) {
                // Another check has removed it.
                Err(e) if e.kind() != io::ErrorKind::NotFound => written.and(Err(e)),
                Ok(()) | Err(_) => written,
            }
        }
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_can_be_written_keeps_no_trace_of_the_check() {
        let dir = tempfile::tempdir().unwrap();
        let space = measure_space(dir.path()).unwrap();
        assert!(check_writable(dir.path()).unwrap() > 0 && space.free_bytes <= space.total_bytes);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_nobody_can_write_is_named_with_the_fix() {
        // No user can create a file there, not even root.
        let message = check_writable(Path::new("/proc/self")).unwrap_err().to_string();
        assert!(
            message.starts_with("/proc/self: cannot be written (") && message.contains("check the disk"),
            "{message}"
        );
    }
}

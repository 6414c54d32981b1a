//! Checks whether the file system of a vault can do what a change needs, by doing it.
//!
//! A change exchanges two files, a record must not replace another one, and both must survive a power cut. Not every file
//! system can do that, and one that several machines share does it without a promise between them.

use rustix::fs::{CWD, RenameFlags, renameat_with, statfs};
use rustix::io::Errno;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Why changes cannot be made live in a folder.
#[derive(Debug, thiserror::Error)]
pub enum StorageFault {
    #[error(
        "{folder}: the file system cannot {what} ({source}), so nothing can be changed live: use a local one, such as ext4, xfs or btrfs"
    )]
    Unable { folder: PathBuf, what: &'static str, source: io::Error },
    #[error(
        "{folder}: {kind} is shared by machines, and makes no promise between them: use a disk that only this machine mounts"
    )]
    Shared { folder: PathBuf, kind: &'static str },
}

/// Tries everything in a folder of its own below this one, and removes it again.
///
/// # Errors
/// [`StorageFault`].
pub fn check_storage(folder: &Path) -> Result<(), StorageFault> {
    let unable =
        |what: &'static str| move |source: io::Error| StorageFault::Unable { folder: folder.to_owned(), what, source };
    let place = folder.join(format!(".storage-check-{}.tmp", std::process::id()));
    // What a check left behind that was interrupted.
    let _ = std::fs::remove_dir_all(&place);
    DirBuilder::new().mode(0o700).create(&place).map_err(unable("make a folder"))?;
    let tried = try_steps(&place, &unable);
    let removed = std::fs::remove_dir_all(&place).map_err(unable("remove a folder"));
    tried.and(removed)?;
    let kind = statfs(folder).ok().and_then(|found| find_shared_kind(u64::try_from(found.f_type).ok()?));
    kind.map_or(Ok(()), |kind| Err(StorageFault::Shared { folder: folder.to_owned(), kind }))
}

fn try_steps<F>(place: &Path, unable: &impl Fn(&'static str) -> F) -> Result<(), StorageFault>
where
    F: FnOnce(io::Error) -> StorageFault,
{
    let (one, two) = (place.join("one"), place.join("two"));
    let write = || std::fs::write(&one, "1").and_then(|()| std::fs::write(&two, "2"));
    write().map_err(unable("write a file"))?;
    let exchanged = renameat_with(CWD, &one, CWD, &two, RenameFlags::EXCHANGE).map_err(io::Error::from);
    let is_swapped = exchanged.and_then(|()| Ok(std::fs::read(&one)? == b"2" && std::fs::read(&two)? == b"1"));
    let swapped = is_swapped.and_then(|swapped| if swapped { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) });
    swapped.map_err(unable("exchange two files"))?;
    match renameat_with(CWD, &one, CWD, &two, RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) => {}
        Err(e) => return Err(unable("move a file without replacing another")(e.into())),
        Ok(()) => return Err(unable("keep a file from being replaced")(io::ErrorKind::InvalidData.into())),
    }
    let sync = |path: &Path| File::open(path)?.sync_all();
    sync(&one).and_then(|()| sync(place)).map_err(unable("make a file durable"))
}

/// The name of a file system that machines share, by the magic numbers of Linux' `statfs(2)`.
fn find_shared_kind(magic: u64) -> Option<&'static str> {
    match magic & 0xffff_ffff {
        0x6969 => Some("NFS"),
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => Some("SMB"),
        0x00c3_6400 => Some("CephFS"),
        0x0bd0_0bd0 => Some("Lustre"),
        0x0116_1970 => Some("GFS2"),
        0x7461_636f => Some("OCFS2"),
        0x0102_1997 => Some("9p"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_disk_passes_and_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        check_storage(dir.path()).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_takes_nothing_says_what_it_cannot_do() {
        let missing = Path::new("/proc/self");
        let refused = check_storage(missing).unwrap_err().to_string();
        assert!(refused.contains("cannot make a folder") && refused.contains("ext4"), "{refused}");
    }

    #[test]
    fn shared_file_systems_are_known_by_their_numbers() {
        assert_eq!(find_shared_kind(0x6969), Some("NFS"));
        assert_eq!(find_shared_kind(0xffff_ffff_ff53_4d42), Some("SMB"));
        for local in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994] {
            assert_eq!(find_shared_kind(local), None, "{local:x}");
        }
    }
}

//! The clock of processes, which a test sets while they run: Debian's `libfaketime`, loaded into each.
//!
//! Only the clock on the wall is wrong, as on a real machine: the monotonic clock and the one that counts since the start of
//! the machine stay right. The times of files are those of the kernel, so they stay right too, which a real wrong clock would
//! not leave them. A process sees a new time within a second.

use crate::run;
use crate::steward::Steward;
use chrono::TimeDelta;
use std::path::{Path, PathBuf};

/// Where glibc keeps shared memory; the library leaves some there for each process that is killed.
const SHARED_MEMORY: &str = "/dev/shm";

/// A clock that several processes may have.
#[derive(Debug)]
pub struct ProcessClock {
    file: PathBuf,
}

impl ProcessClock {
    /// A clock that is right.
    #[must_use]
    pub fn new() -> Self {
        let (folder, _) = run::new_folder();
        // A server that runs as another user reads the file as well.
        std::fs::set_permissions(run::folder(), std::os::unix::fs::PermissionsExt::from_mode(0o711)).unwrap();
        let clock = Self { file: folder.join("clock") };
        clock.set(TimeDelta::zero());
        clock
    }

    /// Sets how far the clock is ahead.
    pub fn set(&self, ahead: TimeDelta) {
        let next = self.file.with_extension("next");
        std::fs::write(&next, format!("{:+}\n", ahead.num_seconds())).unwrap();
        // A process may read at any moment.
        std::fs::rename(next, &self.file).unwrap();
    }

    /// The environment of a process that has this clock.
    #[must_use]
    pub fn variables(&self) -> [(&'static str, String); 5] {
        [
            ("LD_PRELOAD", find_library().display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.display().to_string()),
            ("FAKETIME_CACHE_DURATION", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ("NO_FAKE_STAT", "1".to_owned()),
        ]
    }

    /// Gives this clock to the processes that are started from now on.
    pub fn give_to(&self, steward: &mut Steward) {
        for (name, value) in self.variables() {
            steward.set(name, value);
        }
    }
}

impl Default for ProcessClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for ProcessClock {
    /// Removes what the library has left of processes that are gone.
    fn drop(&mut self) {
        for entry in std::fs::read_dir(SHARED_MEMORY).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let pid = ["faketime_shm_", "sem.faketime_sem_"].iter().find_map(|start| name.strip_prefix(start));
            if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
                // Another test may have removed it.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// The library for programs with several threads.
fn find_library() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let mut libraries = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1"));
    libraries.find(|library| library.is_file()).expect("libfaketime; `make tools` installs it")
}

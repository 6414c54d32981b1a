//! Reads and writes the files of a staged run.
//!
//! Only their owner can read them. A file may have been replaced by a link or a pipe, which is not followed.

use super::StagedRunError;
use crate::files::durable;
use cap_std::fs::{Dir, OpenOptions};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{File, TryLockError};
use std::io::{self, Read};
use steward_domain::wiki::run::RunId;

const LOCK: &str = "lock";

pub(super) fn write_json(dir: &Dir, name: &str, value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec_pretty(value)?;
    durable::replace_private_file(dir, name, &text)?;
    durable::sync_folder(dir)
}

/// The most bytes of a file that describes a run.
const MAX_DESCRIPTION: usize = 4 * 1024 * 1024;

pub(super) fn read_json<T: DeserializeOwned>(dir: &Dir, name: &str) -> io::Result<Option<T>> {
    match read_bytes(dir, name, MAX_DESCRIPTION)? {
        Some(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        None => Ok(None),
    }
}

pub(crate) fn read_bytes(dir: &Dir, name: &str, limit: usize) -> io::Result<Option<Vec<u8>>> {
    match dir.symlink_metadata(name) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
        Ok(meta) if !meta.is_file() => return Err(io::Error::other(format!("{name} is not a file"))),
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    dir.open(name)?.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    match bytes.len() > limit {
        true => Err(io::Error::other(format!("{name} has more than {limit} bytes"))),
        false => Ok(Some(bytes)),
    }
}

/// Locks the folder of a run for this process.
pub(super) fn lock(dir: &Dir, run: &RunId) -> Result<File, StagedRunError> {
    let failed = |source| StagedRunError::Io { path: run.to_string(), source };
    let mut options = OpenOptions::new();
    options.create(true).write(true);
    let file = dir.open_with(LOCK, &options).map_err(failed)?.into_std();
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StagedRunError::Busy(run.clone())),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

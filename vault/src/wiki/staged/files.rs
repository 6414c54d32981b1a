//! Reads and writes the files of a staged run.
//!
//! Only their owner can read them. A file may have been replaced by a link or a pipe, which is not followed.

use crate::files::durable;
use cap_std::fs::Dir;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read};

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

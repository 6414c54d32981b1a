//! Append-only logs beside the audit chain: files in `.steward/` with one JSON value per line.
//!
//! They record events without the process that writes the audit chain, because that process may hang. A line must never
//! be changed or removed. A line that a power cut tore is skipped, and the next one begins on its own line.

use crate::files::durable;
use crate::files::root::{OWN_FOLDER, VaultRoot};
use cap_std::fs::{File, OpenOptions, OpenOptionsExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// The longest part of a log that is read, from its end: 64 KiB.
const READ: u64 = 64 * 1024;
/// Only the owner may read who did what.
const PRIVATE: u32 = 0o600;

/// Adds one line in one write, and returns when the line is durable.
pub(crate) fn append_line<T: Serialize>(root: &VaultRoot, name: &str, value: &T) -> io::Result<()> {
    root.dir().create_dir_all(OWN_FOLDER)?;
    let path = format!("{OWN_FOLDER}/{name}");
    // A vault may come from elsewhere, so a link is refused: the file that it names would be written into.
    let is_new = match root.dir().symlink_metadata(&path) {
        Ok(there) if there.is_file() => false,
        Ok(_) => return Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file: remove it")),
        Err(e) if e.kind() == io::ErrorKind::NotFound => true,
        Err(e) => return Err(e),
    };
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(PRIVATE);
    let mut file = root.dir().open_with(&path, &options)?;
    let gap = if is_torn(&mut file)? { "\n" } else { "" };
    file.write_all(format!("{gap}{}\n", serde_json::to_string(value)?).as_bytes())?;
    file.sync_all()?;
    if is_new { durable::sync_folder(&root.dir().open_dir(OWN_FOLDER)?) } else { Ok(()) }
}

fn is_torn(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// The last lines, newest first, at most `limit`; empty if none can be read.
pub(crate) fn read_newest_lines<T: DeserializeOwned>(root: &VaultRoot, name: &str, limit: usize) -> Vec<T> {
    let read = || -> io::Result<String> {
        let mut file = root.dir().open(format!("{OWN_FOLDER}/{name}"))?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(READ)))?;
        let mut bytes = Vec::new();
        file.take(READ).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    text.lines().rev().filter_map(|line| serde_json::from_str(line).ok()).take(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const LOG: &str = "log.jsonl";

    fn vault() -> (tempfile::TempDir, VaultRoot, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let (root, file) = (VaultRoot::open(dir.path()).unwrap(), dir.path().join(OWN_FOLDER).join(LOG));
        (dir, root, file)
    }

    #[test]
    fn a_torn_line_costs_itself_and_not_the_next() {
        let (_dir, root, file) = vault();
        append_line(&root, LOG, &1).unwrap();
        std::fs::write(&file, "1\n{\"cut").unwrap();
        append_line(&root, LOG, &2).unwrap();
        append_line(&root, LOG, &3).unwrap();
        assert_eq!(read_newest_lines::<u32>(&root, LOG, 9), [3, 2, 1]);
        assert_eq!(read_newest_lines::<u32>(&root, LOG, 2), [3, 2]);
        assert_eq!(std::fs::read_to_string(file).unwrap(), "1\n{\"cut\n2\n3\n");
    }

    #[test]
    fn a_log_is_its_owners_and_no_way_into_another_file() {
        let (dir, root, file) = vault();
        append_line(&root, LOG, &1).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::remove_file(&file).unwrap();
        std::fs::write(dir.path().join("note.md"), "mine").unwrap();
        std::os::unix::fs::symlink("../note.md", &file).unwrap();
        assert!(append_line(&root, LOG, &1).is_err());
        assert_eq!(std::fs::read_to_string(dir.path().join("note.md")).unwrap(), "mine");
    }

    #[test]
    fn of_a_long_log_the_end_is_read() {
        let (_dir, root, file) = vault();
        append_line(&root, LOG, &"first").unwrap();
        std::fs::write(&file, format!("{}\"last\"\n", "\"early\"\n".repeat(20_000))).unwrap();
        assert_eq!(read_newest_lines::<String>(&root, LOG, 2), ["last", "early"]);
        assert!(read_newest_lines::<String>(&root, LOG, 20_000).len() < 10_000);
    }
}

//! The id of this copy of the vault: a random text in `.steward/copy`.
//!
//! In a fleet one copy of a vault may act. A backup leaves this file out, so a restored vault is another copy, which a
//! person must let take over. A copy of the whole folder has the same id; the vault's lock and its place tell those apart
//! on one machine.

use crate::files::durable;
use crate::files::root::VaultRoot;
use cap_std::fs::Dir;
use std::io::{self, Read};
use uuid::Uuid;

/// The file's name. Backups leave it out.
const COPY_FILE: &str = "copy";
/// The longest content that is read, in bytes.
const MAX_BYTES: u64 = 64;

/// Reads the id of this copy, and creates it if there is none.
///
/// # Errors
/// The file cannot be read or written.
pub fn read_or_create_copy_id(root: &VaultRoot) -> io::Result<String> {
    let own = root.make_own_folder(None)?;
    if let Some(id) = read_copy_id(&own)? {
        return Ok(id);
    }
    let id = Uuid::new_v4().to_string();
    durable::replace_private_file(&own, COPY_FILE, format!("{id}\n").as_bytes())?;
    durable::sync_folder(&own)?;
    Ok(id)
}

/// Reads the id of this copy and writes nothing; `None` if it has none.
///
/// # Errors
/// The file cannot be read.
pub fn find_copy_id(root: &VaultRoot) -> io::Result<Option<String>> {
    root.find_own_folder(None)?.map_or(Ok(None), |own| read_copy_id(&own))
}

/// The id in the file; `None` if there is no file or no id in it.
fn read_copy_id(own: &Dir) -> io::Result<Option<String>> {
    let file = match own.open(COPY_FILE) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(text.trim().parse::<Uuid>().ok().map(|id| id.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_keeps_its_id_and_one_without_the_file_gets_another() {
        let dir = tempfile::tempdir().unwrap();
        let root = VaultRoot::open(dir.path()).unwrap();
        let first = read_or_create_copy_id(&root).unwrap();
        assert_eq!(read_or_create_copy_id(&root).unwrap(), first);
        std::fs::write(dir.path().join(".steward/copy"), "../../x").unwrap();
        assert_ne!(read_or_create_copy_id(&root).unwrap(), first);
        std::fs::remove_file(dir.path().join(".steward/copy")).unwrap();
        assert_ne!(read_or_create_copy_id(&root).unwrap(), first);
    }
}

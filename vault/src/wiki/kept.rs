//! Logs of what is kept about a wiki outside of it: lists of JSON lines below `.steward/wiki/<name>/`.
//!
//! Only their owner can read them. They may have been edited, so a line that cannot be read is left out. One process at a time
//! changes them.

use crate::files::durable;
use crate::files::root::{VaultRoot, make_real_folder, open_real_folder};
use crate::wiki::staged::files::read_bytes;
use crate::wiki::state::{ReadWikiError, find_wiki_folder};
use cap_std::fs::OpenOptions;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io;

/// The folder of what is kept about wikis, in our own folder.
const WIKI: &str = "wiki";
const LOCK: &str = "lock";
/// The largest log, in bytes.
const MAX_LOG: usize = 128 * 1024 * 1024;

/// Reads a log; empty if there is none.
///
/// # Errors
/// [`ReadWikiError`], also if there is no such wiki: the name may come from an address.
pub(crate) fn read_log<T: DeserializeOwned>(root: &VaultRoot, wiki: &str, file: &str) -> Result<Vec<T>, ReadWikiError> {
    find_wiki_folder(root, wiki)?;
    let failed = |source| ReadWikiError::Io { path: format!(".steward/{WIKI}/{wiki}/{file}"), source };
    let Some(all) = root.find_own_folder(Some(WIKI)).map_err(failed)? else { return Ok(Vec::new()) };
    let Some(dir) = open_real_folder(&all, wiki).map_err(failed)? else { return Ok(Vec::new()) };
    let bytes = read_bytes(&dir, file, MAX_LOG).map_err(failed)?.unwrap_or_default();
    Ok(bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

/// Changes a log. Returns after the change is durable.
///
/// # Errors
/// [`ReadWikiError`].
pub(crate) fn change_log<T: Serialize + DeserializeOwned>(
    root: &VaultRoot,
    wiki: &str,
    file: &str,
    change: impl FnOnce(&mut Vec<T>),
) -> Result<(), ReadWikiError> {
    find_wiki_folder(root, wiki)?;
    let failed = |source: io::Error| ReadWikiError::Io { path: format!(".steward/{WIKI}/{wiki}/{file}"), source };
    let all = root.make_own_folder(Some(WIKI)).map_err(failed)?;
    let dir = make_real_folder(&all, wiki).map_err(failed)?;
    let lock = dir.open_with(LOCK, OpenOptions::new().create(true).write(true)).map_err(failed)?;
    let lock: File = lock.into_std();
    lock.lock().map_err(failed)?;
    let mut lines = read_log(root, wiki, file)?;
    change(&mut lines);
    let text = lines.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>().map_err(|e| failed(e.into()))?;
    let text: String = text.into_iter().map(|line| line + "\n").collect();
    durable::replace_private_file(&dir, file, text.as_bytes()).map_err(failed)?;
    durable::sync_folder(&dir).map_err(failed)
}

//! Checks a backup: every file against the list, the index, and the chain of audit records.
//!
//! It reads everything and changes nothing, also no side file of a database.

use super::files::hash_content;
use super::manifest::{FileHashes, parse_manifest};
use super::{Backup, BackupError, BackupInfo, FILES, FORMAT, INFO, STATE, VAULT};
use crate::action::chain::verify_chain;
use crate::files::root::VaultRoot;
use serde::Serialize;
use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use steward_domain::action::plan::ContentHash;
use tokio::runtime::Handle;

/// Faults that are named; the others are counted.
const NAMED: usize = 20;

/// The result of checking a backup.
#[derive(Clone, Debug, Serialize)]
pub struct BackupVerification {
    #[serde(flatten)]
    pub backup: Backup,
    /// What is wrong with it: none if it is whole. At most 21.
    pub faults: Vec<String>,
    /// What was wrong with the audit records of the vault when it was made, which keeps nobody from restoring it. At most
    /// 21.
    pub audit_faults: Vec<String>,
}

/// Reads what a backup is.
///
/// # Errors
/// [`BackupError::Incomplete`].
pub fn read_backup_info(folder: &Path) -> Result<BackupInfo, BackupError> {
    let incomplete = |reason: String| BackupError::Incomplete { folder: folder.to_owned(), reason };
    let text = std::fs::read_to_string(folder.join(INFO)).map_err(|e| incomplete(format!("{INFO}: {e}")))?;
    let info: BackupInfo = serde_json::from_str(&text).map_err(|e| incomplete(format!("{INFO}: {e}")))?;
    match info.format {
        FORMAT => Ok(info),
        other => Err(incomplete(format!("its layout is {other}, and this build knows {FORMAT}"))),
    }
}

pub(super) fn read_manifest(folder: &Path) -> Result<FileHashes, BackupError> {
    let incomplete = |reason: String| BackupError::Incomplete { folder: folder.to_owned(), reason };
    let text = std::fs::read(folder.join(FILES)).map_err(|e| incomplete(format!("{FILES}: {e}")))?;
    parse_manifest(&text).map_err(|line| incomplete(format!("{FILES}: line {line} cannot be read")))
}

/// Checks a backup. Blocks; call it on a thread that may block, inside a runtime.
///
/// # Errors
/// [`BackupError::Incomplete`] if the folder is no backup. What is wrong inside one is in the result.
pub fn verify_backup(folder: &Path) -> Result<BackupVerification, BackupError> {
    let (info, listed) = (read_backup_info(folder)?, read_manifest(folder)?);
    let found = list_files(folder)?;
    let mut faults: Vec<String> =
        found.others.iter().map(|path| format!("{}: is no file, folder or link", path.display())).collect();
    for path in listed.keys().filter(|path| !found.files.contains(*path)) {
        faults.push(format!("{}: is missing", path.display()));
    }
    for path in &found.files {
        match listed.get(path) {
            None if path == Path::new(FILES) => {}
            None => faults.push(format!("{}: is not in the list", path.display())),
            Some(hash) => match hash_path(&folder.join(path)) {
                Ok(now) if now == *hash => {}
                Ok(_) => faults.push(format!("{}: was changed", path.display())),
                Err(e) => faults.push(format!("{}: {e}", path.display())),
            },
        }
    }
    let names: BTreeSet<&String> = info.links.keys().chain(found.links.keys()).collect();
    let changed = names.into_iter().filter(|name| info.links.get(*name) != found.links.get(*name));
    faults.extend(changed.map(|name| format!("{name}: this link is missing, or is not in backup.json as it is here")));
    let mut audit_faults = Vec::new();
    // A fault of a file is named once.
    if faults.is_empty() {
        faults.extend(Handle::current().block_on(check_index(&folder.join(STATE).join(crate::index::FILE))));
        match verify_chain(&VaultRoot::open(&folder.join(VAULT))?) {
            Ok(chain) => audit_faults.extend(chain.faults),
            Err(e) => audit_faults.push(e.to_string()),
        }
    }
    let (faults, audit_faults) = (name_some(faults), name_some(audit_faults));
    Ok(BackupVerification { backup: Backup { folder: folder.to_owned(), info }, faults, audit_faults })
}

/// The first faults, and how many more there are.
fn name_some(mut faults: Vec<String>) -> Vec<String> {
    if faults.len() > NAMED {
        let more = faults.len() - NAMED;
        faults.truncate(NAMED);
        faults.push(format!("and {more} more"));
    }
    faults
}

/// What lies below a folder, by the paths in it.
#[derive(Debug, Default)]
struct FoundFiles {
    files: BTreeSet<PathBuf>,
    /// Links and what each names.
    links: BTreeMap<String, String>,
    /// Neither files, nor folders, nor links.
    others: Vec<PathBuf>,
}

fn list_files(folder: &Path) -> Result<FoundFiles, BackupError> {
    let (mut found, mut waiting) = (FoundFiles::default(), vec![PathBuf::new()]);
    while let Some(inner) = waiting.pop() {
        let path = folder.join(&inner);
        let failed = |e: io::Error| BackupError::wrap_io(&path)(e);
        for entry in std::fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (kind, path) = (entry.file_type().map_err(failed)?, inner.join(entry.file_name()));
            if kind.is_dir() {
                waiting.push(path);
            } else if kind.is_file() {
                found.files.insert(path);
            } else if kind.is_symlink() {
                let target = std::fs::read_link(entry.path()).map_err(failed)?;
                found.links.insert(path.to_string_lossy().into_owned(), target.to_string_lossy().into_owned());
            } else {
                found.others.push(path);
            }
        }
    }
    Ok(found)
}

pub(super) fn hash_path(path: &Path) -> io::Result<ContentHash> {
    hash_content(&mut std::fs::File::open(path)?)
}

/// What is wrong with the copy of the index.
async fn check_index(file: &Path) -> Option<String> {
    let options =
        SqliteConnectOptions::new().filename(file).read_only(true).immutable(true).disable_statement_logging();
    let checked = async {
        let mut connection = options.connect().await?;
        sqlx::query_scalar::<_, String>("PRAGMA quick_check(1)").fetch_one(&mut connection).await
    };
    match checked.await {
        Ok(found) if found == "ok" => None,
        Ok(found) => Some(format!("{STATE}/{}: {found}", crate::index::FILE)),
        Err(e) => Some(format!("{STATE}/{}: {e}", crate::index::FILE)),
    }
}

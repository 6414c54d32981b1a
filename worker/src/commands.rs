//! The commands of the command line, one file for each.
//!
//! A command reads what it needs, asks the server or the vault, and hands one value to [`crate::cli::output`]. That
//! module prints it for a person or a program. A command must not decide anything about the vault: it holds only texts
//! and exit codes. This file holds the lookups that several commands share.

pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod clerk;
pub(crate) mod doctor;
pub(crate) mod drain;
pub(crate) mod example;
pub(crate) mod fleet;
pub(crate) mod healthz;
pub(crate) mod index;
pub(crate) mod init;
pub(crate) mod mcp;
pub(crate) mod moved;
pub(crate) mod names;
pub(crate) mod policy;
pub(crate) mod preflight;
pub(crate) mod read_document;
pub(crate) mod resolve;
pub(crate) mod schedules;
pub(crate) mod serve;
pub(crate) mod shell;
pub(crate) mod signals;
pub(crate) mod simulate;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod streams;
pub(crate) mod tick;
pub(crate) mod token;
pub(crate) mod trust;
pub(crate) mod up;
pub(crate) mod why;
pub(crate) mod wiki;

use crate::config::StewardConfig;
use crate::runtime::engine::OpenedVault;
use crate::runtime::reading_progress::show_index_progress;
use anyhow::{Context, bail};
use chrono::Utc;
use rustix::fs::{Access, access};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use steward_domain::action::plan::ContentHash;
use steward_domain::record::path::RecordPath;
use steward_domain::record::schema::NoteSchema;
use steward_server::views::VaultViews;
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::{ActionLookup, Index, SyncReport};
use uuid::Uuid;

/// Refuses to run as root for a vault that somebody else serves: their process could not read what root writes.
///
/// # Errors
/// This process runs as root, and the state folder belongs to another user.
pub(crate) fn refuse_root_for_others(config: &StewardConfig) -> anyhow::Result<()> {
    let owner = config.state_dir().ok().and_then(|state| Some(std::fs::metadata(state).ok()?.uid()));
    match owner.filter(|owner| *owner != 0 && rustix::process::geteuid().is_root()) {
        None => Ok(()),
        Some(owner) => bail!(
            "you are root, and this vault is served by the user with the number {owner}, who could not read what root writes: \
             run the command as that user, as in `runuser -u <name> -- steward …`"
        ),
    }
}

/// A vault and its index, for commands that only read.
pub(crate) struct ReadOnlyVault {
    pub(crate) root: VaultRoot,
    pub(crate) index: Index,
    /// The values that every interface shows.
    pub(crate) views: VaultViews,
    /// The copy of the index that is in use; `None` if the state folder can be written.
    _copy: Option<TemporaryIndexCopy>,
}

impl ReadOnlyVault {
    fn new(root: VaultRoot, index: Index, copy: Option<TemporaryIndexCopy>) -> Self {
        let views = VaultViews::new(root.clone(), index.clone());
        Self { root, index, views, _copy: copy }
    }
}

/// Opens a vault for reading. If the state folder is missing or cannot be written, a temporary copy of the index is updated
/// instead, and removed with the command: a folder that no steward has ever had stays as it is.
///
/// Reading commands use the files even if a server listens. The result is the same, it works while that server hangs,
/// and a person who may read the vault needs no permission from the server.
pub(crate) async fn open_read_only(config: &StewardConfig) -> anyhow::Result<ReadOnlyVault> {
    let state = config.state_dir()?;
    let is_writable = access(&state, Access::WRITE_OK).is_ok();
    open_index_or_copy(config, state, is_writable).await
}

/// Opens a vault as [`open_read_only`] does, but creates a missing state folder if that is possible.
pub(crate) async fn open_for_server(config: &StewardConfig) -> anyhow::Result<ReadOnlyVault> {
    let state = config.state_dir()?;
    // The nearest existing ancestor decides whether it can be created.
    let nearest = state.ancestors().find(|path| path.exists()).unwrap_or(&state);
    let is_writable = access(nearest, Access::WRITE_OK).is_ok();
    open_index_or_copy(config, state, is_writable).await
}

async fn open_index_or_copy(
    config: &StewardConfig,
    state: PathBuf,
    is_writable: bool,
) -> anyhow::Result<ReadOnlyVault> {
    if is_writable {
        let (root, index) = open_vault(config).await?;
        return Ok(ReadOnlyVault::new(root, index, None));
    }
    let root = VaultRoot::open(config.vault_folder()?)?;
    let from = state.clone();
    let copy = tokio::task::spawn_blocking(move || TemporaryIndexCopy::create_from(&from)).await?;
    let copy = copy.with_context(|| format!("failed to copy the index from {}", state.display()))?;
    let index = Index::open(&copy.0).await?.with_schema(config.mapping.note_schema()?, config.mapping.list_accepted());
    show_index_progress(&index, index.sync_all(&root, Utc::now())).await?;
    Ok(ReadOnlyVault::new(root, index, Some(copy)))
}

/// A copy of an index, removed when it is dropped.
struct TemporaryIndexCopy(PathBuf);

impl TemporaryIndexCopy {
    /// A folder for an index that is filled anew.
    fn create_empty() -> std::io::Result<Self> {
        let copy = Self(std::env::temp_dir().join(format!("steward-{}", Uuid::new_v4())));
        std::fs::DirBuilder::new().mode(0o700).create(&copy.0)?;
        Ok(copy)
    }

    fn create_from(state: &Path) -> std::io::Result<Self> {
        let copy = Self::create_empty()?;
        for file in ["state.db", "state.db-wal"] {
            // Copied from file to file, because the index of a million records may be larger than the memory.
            match std::fs::copy(state.join(file), copy.0.join(file)) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
                // The original may be read-only, and the copy must be writable.
                Ok(_) => std::fs::set_permissions(copy.0.join(file), std::fs::Permissions::from_mode(0o600))?,
                Err(_) => {}
            }
        }
        Ok(copy)
    }
}

impl Drop for TemporaryIndexCopy {
    fn drop(&mut self) {
        // A copy that is left behind does no harm: it is a temporary folder that only its owner can read.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An index outside the vault and its state folder. It is removed when it is dropped.
pub(crate) struct TemporaryIndex {
    pub(crate) index: Index,
    _folder: TemporaryIndexCopy,
}

impl TemporaryIndex {
    /// An empty index that reads notes by this schema.
    pub(crate) async fn create(
        schema: NoteSchema,
        accepted: impl IntoIterator<Item = ContentHash>,
    ) -> anyhow::Result<Self> {
        let folder = TemporaryIndexCopy::create_empty()?;
        let index = Index::open(&folder.0).await?.with_schema(schema, accepted);
        Ok(Self { index, _folder: folder })
    }

    /// Reads a whole vault into it.
    pub(crate) async fn read_vault(&self, root: &VaultRoot) -> anyhow::Result<SyncReport> {
        Ok(show_index_progress(&self.index, self.index.sync_all(root, Utc::now())).await?)
    }
}

/// Opens a vault, and updates its index unless a worker holds the vault.
///
/// A worker must find the changes itself, because it wakes matters and registers schedules for what is new.
pub(crate) async fn open_vault(config: &StewardConfig) -> anyhow::Result<(VaultRoot, Index)> {
    let root = VaultRoot::open(config.vault_folder()?)?;
    let index = open_index(config).await?;
    if !VaultWriter::is_locked(&root) {
        show_index_progress(&index, index.sync_all(&root, Utc::now())).await?;
    }
    Ok((root, index))
}

/// Looks for notes that were renamed, unless a process serves the vault and does so itself.
pub(crate) async fn settle_moves_if_unserved(
    config: &StewardConfig,
    root: &VaultRoot,
    index: &Index,
) -> anyhow::Result<()> {
    if !VaultWriter::is_locked(root) {
        OpenedVault::open(config).await?;
        index.load_note_moves().await?;
    }
    Ok(())
}

/// Opens the index of the configured vault, under its mapping.
pub(crate) async fn open_index(config: &StewardConfig) -> anyhow::Result<Index> {
    let schema = config.mapping.note_schema()?;
    let index = Index::open(&config.state_dir()?).await?.with_schema(schema, config.mapping.list_accepted());
    if let Ok(root) = VaultRoot::open(config.vault_folder()?) {
        index.load_accepted_mappings(&root).await?;
    }
    index.load_note_moves().await?;
    Ok(index)
}

/// Finds the audit record whose id begins with these digits.
pub(crate) async fn find_action_record(index: &Index, action: &str) -> anyhow::Result<RecordPath> {
    match index.actions().find_action(action).await? {
        ActionLookup::One(path) => Ok(path),
        ActionLookup::None => bail!("no action has the id {action}: list the actions with `steward audit list`"),
        ActionLookup::Many(paths) => bail!("{} action ids begin with {action}: give more digits", paths.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_index_copy_is_writable_and_removed_with_its_command() {
        let dir = tempfile::tempdir().unwrap();
        let original = dir.path().join("state.db");
        std::fs::write(&original, "x").unwrap();
        std::fs::set_permissions(&original, std::fs::Permissions::from_mode(0o444)).unwrap();
        let copy = TemporaryIndexCopy::create_from(dir.path()).unwrap();
        let folder = copy.0.clone();
        assert_eq!(std::fs::read(folder.join("state.db")).unwrap(), b"x");
        assert_eq!(std::fs::metadata(folder.join("state.db")).unwrap().permissions().mode() & 0o777, 0o600);
        drop(copy);
        assert!(!folder.exists());
    }
}

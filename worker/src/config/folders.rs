//! Where the vault and its databases lie.
//!
//! Nothing is made here. The folder of the databases lies outside of a vault that is read by a mapping.

use super::StewardConfig;
use super::user_file::locate_state_folder;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use steward_vault::files::root::OWN_FOLDER;

impl StewardConfig {
    /// The folder of the vault.
    ///
    /// # Errors
    /// When no vault is set.
    pub(crate) fn vault_folder(&self) -> anyhow::Result<&Path> {
        self.vault.as_deref().context("no vault is set: pass --vault <folder> or set STEWARD_VAULT")
    }

    /// The folder of the databases: `STEWARD_STATE_DIR`, or `.steward` inside the vault. That of a vault with a mapping
    /// lies outside it.
    ///
    /// # Errors
    /// When no vault is set.
    pub(crate) fn state_dir(&self) -> anyhow::Result<PathBuf> {
        match &self.state_dir {
            Some(dir) => Ok(dir.clone()),
            None if self.mapping.is_mapped() => self.mapped_state_dir(),
            None => Ok(self.vault_folder()?.join(OWN_FOLDER)),
        }
    }

    /// The folder of the databases of a vault with a mapping.
    ///
    /// # Errors
    /// When no vault is set, or there is no home folder.
    pub(crate) fn mapped_state_dir(&self) -> anyhow::Result<PathBuf> {
        if let Some(dir) = &self.state_dir {
            return Ok(dir.clone());
        }
        locate_state_folder(self.vault_folder()?)
            .context("set HOME or XDG_STATE_HOME: the databases of a vault with a mapping lie there")
    }
}

/// Returns one spelling for one folder, independent of the current folder and of links, because processes find each
/// other's files and locks by it.
pub(super) fn canonicalize_folder(path: &Path, setting: &str) -> anyhow::Result<PathBuf> {
    let canonical = path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned());
    if canonical.to_str().is_none() {
        bail!("{setting} is {}, whose name is not UTF-8: rename that folder", canonical.display());
    }
    Ok(canonical)
}

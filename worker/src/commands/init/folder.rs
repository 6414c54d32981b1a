//! Steward's folder of a vault, as `steward init` makes it, moves it, or finds it in another place.
//!
//! It must not make a folder anew that went missing: that would drop the audit chain and every limit.

use crate::cli::InitArgs;
use anyhow::{Context, bail};
use std::path::Path;
use std::time::Duration;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_vault::action::writer::VaultWriter;
use steward_vault::files::root::VaultRoot;
use steward_vault::files::steward_folder::{establish_steward_folder, is_stewards_folder, propose_steward_folder};

/// Makes Steward's folder if the vault has none, and takes the lock.
pub(super) async fn open_writer(vault: &Path, init: &InitArgs) -> anyhow::Result<VaultWriter> {
    let (vault, take_over, named) = (vault.to_owned(), init.take_over, init.folder.clone());
    let lock = move || -> anyhow::Result<VaultWriter> {
        let root = VaultRoot::open(&vault)?;
        let folder = match (root.steward_folder(), named) {
            (Some(_), None) if !take_over => return Ok(VaultWriter::lock(root)?),
            (Some(folder), None) => folder.to_owned(),
            (Some(folder), Some(named)) => move_folder(&root, folder, &named)?,
            (None, named) => {
                refuse_old_records(&root)?;
                named.map_or_else(|| Ok(propose_steward_folder(&root)?), |named| check_free_folder(&root, &named))?
            }
        };
        // The first lock makes the vault's id, and nobody else writes meanwhile.
        let first = VaultWriter::lock_without_folder(root.clone())?;
        establish_steward_folder(&root, first.identity(), &folder, take_over)?;
        drop(first);
        Ok(VaultWriter::lock(VaultRoot::open(&vault)?)?)
    };
    tokio::task::spawn_blocking(lock).await?
}

/// Moves Steward's folder, unless a person did. Returns its new path in the vault.
fn move_folder(root: &VaultRoot, from: &str, to: &str) -> anyhow::Result<String> {
    let to = check_name(to)?;
    let (old, new) = (root.path().join(from), root.path().join(&to));
    if to == from || is_stewards_folder(root, &to) {
        if to != from && is_stewards_folder(root, from) {
            bail!("{} and {} both hold Steward's files: remove the one that is a copy", old.display(), new.display());
        }
        return Ok(to);
    }
    if !is_stewards_folder(root, from) {
        bail!("neither {} nor {} is Steward's folder: put it back first", old.display(), new.display());
    }
    if new.exists() {
        bail!("{}: this folder is there already, and it is not Steward's: give another name", new.display());
    }
    // Nobody may write while it moves, and no change may be unfinished: its record would not be found.
    let held = VaultWriter::lock(root.clone())?;
    held.settle_swaps_older_than(Duration::ZERO)?;
    std::fs::create_dir_all(new.parent().unwrap_or(&new))?;
    std::fs::rename(&old, &new).with_context(|| format!("failed to move {} to {}", old.display(), new.display()))?;
    Ok(to)
}

fn check_free_folder(root: &VaultRoot, name: &str) -> anyhow::Result<String> {
    let name = check_name(name)?;
    let folder = root.path().join(&name);
    if folder.exists() && !is_stewards_folder(root, &name) {
        bail!("{}: this folder is there already: Steward needs one of its own", folder.display());
    }
    Ok(name)
}

/// Checks a folder as a person names it, relative to the vault.
fn check_name(name: &str) -> anyhow::Result<String> {
    let name = name.trim_start_matches("./").trim_end_matches('/');
    let inside = RecordPath::parse(&format!("{name}/x.md")).ok().filter(|path| path.folder_kind().is_none());
    if name.is_empty() || inside.is_none() {
        bail!("`{name}` cannot be Steward's folder: give the path of a folder in the vault, such as `Meta/Steward`");
    }
    Ok(name.to_owned())
}

/// A vault that Steward looked after without a mapping has its records in the root.
fn refuse_old_records(root: &VaultRoot) -> anyhow::Result<()> {
    let kinds = [RecordKind::Event, RecordKind::Signal, RecordKind::Instinct, RecordKind::Stream];
    for kind in kinds {
        if !root.list_files(kind)?.is_empty() {
            bail!(
                "{}/ holds files, and a mapping needs that name for Steward's own: move or rename that folder first",
                root.path().join(kind.folder()).display()
            );
        }
    }
    Ok(())
}

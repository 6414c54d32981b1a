//! The user's file of one vault: its configuration and, beside it, the mapping that was accepted for it.
//!
//! Both lie in `~/.config/steward/`, outside the vault, where nobody else may write. Their names follow from the real
//! path of the vault. `steward init` makes the file; a person edits it. It is used for its own vault alone.

use super::faults::check_settings;
use anyhow::{Context, bail};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use steward_domain::action::plan::ContentHash;
use steward_vault::files::identity::{VaultId, VaultIdentity};
use steward_vault::files::root::{OWN_FOLDER, VaultRoot};
use toml::{Table, Value};

/// What a new file holds after the vault and its id. A key comes last, because `steward streams add` writes tables behind
/// it, and a line below a table belongs to that table.
const TEMPLATE: &str = "\
# Variables of the environment come before this file.

# A language model instead of the fixed rules, which read English only: see docs/clerks.md.
# clerk = \"ollama\"
# clerk_model = \"qwen2.5:7b\"

# Mail, calendars and webhooks: see docs/streams.md. `steward streams add` writes them here.

# How far Steward may go in this vault.
# Watch: nothing is changed, and every proposal is only recorded. Begin with this.
# Suggest: proposals wait for your yes. For that, set these two instead of the last line:
# live_mode = \"live\"
# default_ceiling = \"confirm\"
live_mode = \"shadow\"
";

/// The user's file of a vault.
#[derive(Clone, Debug)]
pub(crate) struct UserFile {
    pub(super) path: PathBuf,
    /// Its keys, without those that say for which vault it is.
    pub(super) table: Table,
}

impl UserFile {
    /// Reads the file of this vault; `None` if there is none.
    ///
    /// # Errors
    /// It cannot be read, or it is for another vault.
    pub(super) fn read(vault: &Path) -> anyhow::Result<Option<Self>> {
        let Some(path) = locate_user_file(vault, "toml") else { return Ok(None) };
        let id = VaultRoot::open(vault).ok().and_then(|root| VaultIdentity::read(&root).ok().flatten());
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e).with_context(|| format!("failed to read {}", path.display())),
        };
        let mut table: Table = text.parse().with_context(|| format!("failed to read {}", path.display()))?;
        let is_this = |value: Option<Value>, wanted: &str| value.is_none_or(|value| value.as_str() == Some(wanted));
        let is_here = is_this(table.remove("vault"), &vault.to_string_lossy());
        let has_id = is_this(table.remove("id"), &id.map(|identity| identity.id.to_string()).unwrap_or_default());
        if !is_here || !has_id {
            bail!(
                "{}: it is for another vault than {}: `vault` and `id` must be this one's; `steward init` writes a new one \
                 if you move it away",
                path.display(),
                vault.display()
            );
        }
        check_settings(&path, &text, &table)?;
        Ok(Some(Self { path, table }))
    }

    /// Makes the file of a vault if it has none, for its owner alone. Returns its path.
    ///
    /// # Errors
    /// There is no home folder, or the file cannot be written.
    pub(crate) fn create_if_missing(vault: &Path, id: VaultId) -> anyhow::Result<PathBuf> {
        let path =
            locate_user_file(vault, "toml").context("set HOME or XDG_CONFIG_HOME: your configuration lies there")?;
        let mut head = Table::new();
        head.insert("vault".into(), vault.to_string_lossy().into_owned().into());
        head.insert("id".into(), id.to_string().into());
        let text = format!("# This file is for one vault alone.\n{head}\n{TEMPLATE}");
        match write_new_private_file(&path, text.as_bytes()) {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(e).with_context(|| format!("failed to write {}", path.display()))
            }
            Ok(()) | Err(_) => Ok(path),
        }
    }
}

/// Where a file of the user for this vault lies: `<folder name>-<hash8 of the real path>.<extension>`.
pub(super) fn locate_user_file(vault: &Path, extension: &str) -> Option<PathBuf> {
    let folder = find_base_folder("XDG_CONFIG_HOME", ".config")?;
    Some(folder.join("steward").join(format!("{}.{extension}", name_after_vault(vault))))
}

/// Where the databases of a vault with a mapping lie, outside the vault.
pub(super) fn locate_state_folder(vault: &Path) -> Option<PathBuf> {
    Some(find_base_folder("XDG_STATE_HOME", ".local/state")?.join("steward").join(name_after_vault(vault)))
}

/// The user's file of a vault with this id that was in another place before.
pub(super) fn find_file_of_moved_vault(vault: &Path, id: VaultId) -> Option<PathBuf> {
    let own = locate_user_file(vault, "toml")?;
    let id = id.to_string();
    let has_id = |path: &PathBuf| {
        let table = std::fs::read_to_string(path).ok().and_then(|text| text.parse::<Table>().ok());
        table.is_some_and(|table| table.get("id").and_then(Value::as_str) == Some(&id))
    };
    let files = std::fs::read_dir(own.parent()?).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    files.filter(|path| *path != own && path.extension().is_some_and(|extension| extension == "toml")).find(has_id)
}

/// The vault in or above this folder: the nearest one that Steward has looked after.
pub(super) fn find_enclosing_vault(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().find(|folder| folder.join(OWN_FOLDER).join("vault.json").is_file()).map(Path::to_owned)
}

/// Replaces a file with one for its owner alone.
pub(super) fn replace_private_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut staged = path.as_os_str().to_owned();
    staged.push(".new");
    let staged = PathBuf::from(staged);
    let _ = std::fs::remove_file(&staged);
    write_new_private_file(&staged, bytes)?;
    std::fs::rename(&staged, path)
}

fn write_new_private_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    std::fs::create_dir_all(path.parent().unwrap_or(path))?;
    let mut out = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    out.write_all(bytes)?;
    out.sync_all()
}

fn find_base_folder(variable: &str, below_home: &str) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set(variable).filter(|path| path.is_absolute()).or_else(|| Some(set("HOME")?.join(below_home)))
}

fn name_after_vault(vault: &Path) -> String {
    let real = vault.canonicalize().unwrap_or_else(|_| vault.to_owned());
    let hash = ContentHash::hash_bytes(real.as_os_str().as_encoded_bytes());
    let name = real.file_name().map_or_else(|| "vault".into(), |name| name.to_string_lossy().into_owned());
    format!("{name}-{}", &hash.as_str()[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_a_valid_configuration_and_begins_in_shadow() {
        let table: Table = TEMPLATE.parse().unwrap();
        assert_eq!(table.get("live_mode").and_then(Value::as_str), Some("shadow"));
        assert_eq!(table.len(), 1);
        assert!(
            TEMPLATE.trim_end().ends_with("live_mode = \"shadow\""),
            "nothing may stand below the tables of streams"
        );
        let suggest: String = TEMPLATE.replace("# live_mode", "live_mode").replace("live_mode = \"shadow\"\n", "");
        assert!(suggest.replace("# default", "default").parse::<Table>().is_ok());
    }

    #[test]
    fn a_command_finds_the_vault_that_it_is_run_in() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("notes/Projects/deep");
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(find_enclosing_vault(&deep), None);
        std::fs::create_dir(dir.path().join("notes/.steward")).unwrap();
        std::fs::write(dir.path().join("notes/.steward/vault.json"), "{}").unwrap();
        assert_eq!(find_enclosing_vault(&deep), Some(dir.path().join("notes")));
    }
}

//! The sources of the configuration: a file, and the environment, which overrides it.
//!
//! This module finds and merges keys and values. It must not check the values: [`super::StewardConfig`] does that.
//! People and synchronisation tools write into a vault. So a file inside the vault must not set how far its steward may
//! go, which programs it runs or which servers it uses.

use super::faults::check_settings;
use super::settings::{SETTINGS, Setting};
use super::user_file::{UserFile, find_enclosing_vault, locate_user_file};
use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use steward_domain::gates::mode::Ceiling;
use steward_vault::files::root::OWN_FOLDER;
use toml::{Table, Value};

pub(super) const PREFIX: &str = "STEWARD_";
/// Variables of Steward that are not configuration keys: secrets, the log filter, test switches.
const OTHER_VARIABLES: [&str; 9] = [
    "STEWARD_CONFIG",
    "STEWARD_LOG",
    "STEWARD_CLERK_API_KEY",
    "STEWARD_WIKI_CLERK_API_KEY",
    "STEWARD_WIKI_VERIFIER_API_KEY",
    "STEWARD_TRACKER_API_KEY",
    "STEWARD_TOKEN",
    "STEWARD_CRASH_AT",
    "STEWARD_YAML_SUITE",
];
/// Tables whose keys the environment spells with a prefix.
const TABLES: [&str; 3] = ["cadence", "caps", "tracker"];
/// Configuration variables: their full names and their values.
pub(super) type EnvironmentVariables = Vec<(String, String)>;

/// The configuration file, or an empty one.
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    pub(super) table: Table,
    /// Whether `STEWARD_CONFIG` names it; otherwise it is the one in the current folder.
    pub(super) named: bool,
    /// The user's file of the vault, and the keys whose values come from it.
    pub(super) user: Option<(PathBuf, BTreeSet<String>)>,
    /// The file in the current folder is a vault's own, which configures nothing.
    is_of_vault: bool,
}

/// The path of the configuration file, existing or not, and whether it was named: `STEWARD_CONFIG`, else
/// `steward.toml` in the current folder.
fn locate_config_file() -> (PathBuf, bool) {
    let named = std::env::var_os("STEWARD_CONFIG").filter(|name| !name.is_empty()).map(PathBuf::from);
    (named.clone().unwrap_or_else(|| "steward.toml".into()), named.is_some())
}

fn is_limit(key: &str) -> bool {
    Setting::find(key).is_some_and(|setting| setting.is_limit)
}

/// The vault: the flag, the variable, the file, or the vault in which the command is run.
pub(super) fn find_vault(
    flag: Option<&Path>,
    variables: &EnvironmentVariables,
    file: &ConfigFile,
) -> anyhow::Result<Option<PathBuf>> {
    let variable = variables.iter().find(|(name, value)| name == "STEWARD_VAULT" && !value.is_empty());
    let set = flag
        .map(Path::to_owned)
        .or_else(|| variable.map(|(_, value)| value.into()))
        .or_else(|| file.table.get("vault").and_then(Value::as_str).map(PathBuf::from))
        .or_else(|| find_enclosing_vault(&std::env::current_dir().ok()?));
    set.map(|vault| super::canonicalize_folder(&vault, "the vault (--vault, STEWARD_VAULT)")).transpose()
}

/// The value of a key in the environment, which overrides the file.
pub(crate) fn read_environment_value(key: &str) -> Option<String> {
    let value = std::env::var_os(format!("{PREFIX}{}", key.to_ascii_uppercase()))?;
    Some(value.to_string_lossy().into_owned()).filter(|value| !value.is_empty() || is_limit(key))
}

impl ConfigFile {
    /// Reads the file that `STEWARD_CONFIG` names, else `steward.toml` in the current folder if it exists.
    pub(super) fn find() -> anyhow::Result<Self> {
        let (path, named) = locate_config_file();
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let parsed = text.parse::<Table>();
                // A vault's own file proposes a mapping. Whoever may write there must not configure the process, nor keep
                // a person from stopping it.
                let is_of_vault = !named && is_file_of_vault(&path, parsed.as_ref().ok());
                let table = if is_of_vault { Ok(Table::new()) } else { parsed };
                let table = table.with_context(|| format!("failed to read {}", path.display()))?;
                check_settings(&path, &text, &table)?;
                Ok(Self { is_of_vault, ..Self::new(path, table, named) })
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && !named => Ok(Self::new(path, Table::new(), named)),
            Err(e) => Err(e).with_context(|| format!("failed to read {}", path.display())),
        }
    }

    pub(super) fn new(path: PathBuf, table: Table, named: bool) -> Self {
        Self { path, table, named, user: None, is_of_vault: false }
    }

    /// Adds the keys of the user's file that this one does not set. Of ceilings the lower one holds.
    pub(super) fn add_user_file(&mut self, user: UserFile) {
        let mut keys = BTreeSet::new();
        for (key, value) in user.table {
            match self.table.get_mut(&key) {
                Some(Value::Table(here)) if TABLES.contains(&key.as_str()) || key == "streams" || key == "wiki" => {
                    for (inner, value) in value.as_table().into_iter().flatten() {
                        here.entry(inner.clone()).or_insert_with(|| value.clone());
                    }
                }
                Some(here) if !(is_ceiling(&key) && is_lower(&value, here)) => {}
                Some(_) | None => {
                    self.table.insert(key.clone(), value);
                    keys.insert(key);
                }
            }
        }
        self.user = Some((user.path, keys));
    }

    /// The file that sets a key.
    pub(super) fn origin_of(&self, key: &str) -> &Path {
        match &self.user {
            Some((path, keys)) if keys.contains(key) => path,
            Some(_) | None => &self.path,
        }
    }

    /// The file in which a person changes the configuration.
    pub(super) fn editable_path(&self) -> PathBuf {
        match &self.user {
            Some((path, _)) if !self.named && (self.is_of_vault || !self.path.exists()) => path.clone(),
            Some(_) | None => self.path.clone(),
        }
    }

    /// Names what stands in a vault's own file beside `[map]`: the file of this vault, and the one in the current folder if
    /// it is a vault's. It configures nothing there.
    pub(super) fn list_ignored_keys(&self, vault: Option<&Path>) -> Vec<String> {
        let own = vault.map(|vault| vault.join("steward.toml"));
        let other = self.path.canonicalize().ok().filter(|path| self.is_of_vault && Some(path) != own.as_ref());
        own.into_iter().chain(other).filter_map(|file| describe_ignored_keys(&file, vault)).collect()
    }

    /// Refuses a server from a file that happens to lie in the current folder. A token is sent to that server, so a
    /// person must name it or the file.
    pub(super) fn refuse_unnamed_server(&self) -> anyhow::Result<()> {
        if self.table.contains_key("server") && !self.named {
            bail!(
                "{} sets `server`, to which a token would be sent: set {PREFIX}SERVER, or name the file in \
                 STEWARD_CONFIG",
                self.path.display()
            );
        }
        Ok(())
    }

    /// Refuses a file inside the vault that sets a trusted key ([`Setting::is_trusted`]).
    pub(super) fn refuse_vault_overrides(&self, vault: &Path) -> anyhow::Result<()> {
        let trusted = SETTINGS.iter().filter(|setting| setting.is_trusted);
        let mut keys = trusted.map(|setting| setting.key.split('.').next().unwrap_or(setting.key));
        let Some(key) = keys.find(|key| self.table.contains_key(*key)) else { return Ok(()) };
        let Ok(vault) = vault.canonicalize() else { return Ok(()) };
        let folder = self.path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // For a link both its own folder and its target count, because either may be in the vault.
        let inside = [folder, &self.path].iter().any(|p| p.canonicalize().is_ok_and(|p| p.starts_with(&vault)));
        if inside {
            bail!(
                "{} sets `{key}`, but the file lies in the vault, where others may write: set {PREFIX}{}, or keep the \
                 file elsewhere and name it in STEWARD_CONFIG",
                self.path.display(),
                key.to_ascii_uppercase()
            );
        }
        Ok(())
    }
}

/// Selects our configuration variables. Other variables are ignored and may hold any bytes.
pub(super) fn collect_variables(
    all: impl Iterator<Item = (OsString, OsString)>,
) -> anyhow::Result<EnvironmentVariables> {
    let ours = all.filter(|(name, _)| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()));
    let mut variables = Vec::new();
    for (name, value) in ours {
        let Ok(name) = name.into_string() else {
            bail!("the name of an environment variable that begins with {PREFIX} is not UTF-8: unset it");
        };
        if OTHER_VARIABLES.contains(&name.as_str()) {
            continue;
        }
        let Ok(value) = value.into_string() else {
            bail!("the environment variable {name} is not UTF-8: set it to text that is");
        };
        variables.push((name, value));
    }
    Ok(variables)
}

/// Whether a file in the current folder is that of a vault: it proposes a mapping, or lies where a vault begins.
fn is_file_of_vault(path: &Path, table: Option<&Table>) -> bool {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_root = [".obsidian", ".git", OWN_FOLDER].iter().any(|name| folder.join(name).exists());
    let is_inside = || folder.canonicalize().is_ok_and(|folder| find_enclosing_vault(&folder).is_some());
    table.is_some_and(|table| table.contains_key("map")) || is_root || is_inside()
}

fn describe_ignored_keys(file: &Path, vault: Option<&Path>) -> Option<String> {
    let table: Table = std::fs::read_to_string(file).ok()?.parse().ok()?;
    let keys: Vec<String> = table.keys().filter(|key| *key != "map").map(|key| format!("`{key}`")).collect();
    if keys.is_empty() {
        return None;
    }
    let user = vault.and_then(|vault| locate_user_file(vault, "toml"));
    let user = user.map(|path| format!("; {} is", path.display())).unwrap_or_default();
    let (file, keys) = (file.display(), keys.join(", "));
    Some(format!("{file}: {keys} ignored, because a file in a vault is no configuration{user}"))
}

fn is_ceiling(key: &str) -> bool {
    key.ends_with("_ceiling")
}

/// Whether a ceiling in a file is lower than the one in a variable.
pub(super) fn is_lower_ceiling(key: &str, in_file: &Value, variable: &str) -> bool {
    is_ceiling(key) && is_lower(in_file, &Value::String(variable.to_owned()))
}

/// Whether one ceiling is lower than another. An invalid one counts as `ask`.
fn is_lower(one: &Value, other: &Value) -> bool {
    let read = |value: &Value| Ceiling::parse_or_ask(value.as_str().unwrap_or_default());
    read(one) < read(other)
}

/// Overrides the values of the file with those of the environment. Of ceilings the lower one holds.
pub(super) fn merge_variables(mut table: Table, variables: EnvironmentVariables) -> anyhow::Result<Table> {
    for (variable, value) in variables {
        let name = variable.strip_prefix(PREFIX).unwrap_or(&variable).to_ascii_lowercase();
        if !value.is_empty() || is_limit(&name) {
            insert_value(&mut table, name, &value)?;
        }
    }
    Ok(table)
}

fn insert_value(into: &mut Table, name: String, value: &str) -> anyhow::Result<()> {
    let value = parse_value(&name, value);
    for table in TABLES {
        if let Some(key) = name.strip_prefix(&format!("{table}_")) {
            let inner = into.entry(table).or_insert_with(|| Value::Table(Table::new()));
            let Value::Table(inner) = inner else { bail!("`{table}` must be a table") };
            inner.insert(key.to_owned(), value);
            return Ok(());
        }
    }
    if is_ceiling(&name) && into.get(&name).is_some_and(|there| is_lower(there, &value)) {
        return Ok(());
    }
    into.insert(name, value);
    Ok(())
}

fn parse_value(name: &str, value: &str) -> Value {
    if Setting::find(name).is_some_and(|setting| setting.is_text) {
        return Value::String(value.to_owned());
    }
    if let Ok(yes) = value.parse::<bool>() {
        return Value::Boolean(yes);
    }
    if let Ok(number) = value.parse::<i64>() {
        return Value::Integer(number);
    }
    match value.parse::<f64>() {
        Ok(number) => Value::Float(number),
        Err(_) => Value::String(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    fn bytes(text: &[u8]) -> OsString {
        OsString::from_vec(text.to_vec())
    }

    #[test]
    fn other_variables_may_hold_any_bytes_and_an_invalid_one_of_ours_is_named() {
        let others = [(bytes(b"LATIN"), bytes(b"caf\xe9")), (bytes(b"N\xe9"), bytes(b"x"))];
        assert_eq!(collect_variables(others.into_iter()).unwrap(), []);
        let ours = [(bytes(b"STEWARD_VAULT"), bytes(b"caf\xe9"))];
        let message = collect_variables(ours.into_iter()).unwrap_err().to_string();
        assert!(message.contains("STEWARD_VAULT") && message.contains("UTF-8"), "{message}");
        assert!(collect_variables([(bytes(b"STEWARD_N\xe9"), bytes(b"x"))].into_iter()).is_err());
    }

    #[test]
    fn a_file_inside_the_vault_must_not_widen_what_its_steward_may_do() {
        let dir = tempfile::tempdir().unwrap();
        let vault = dir.path().join("vault");
        std::fs::create_dir_all(vault.join("notes")).unwrap();
        let bold = [
            "live_mode = \"live\"",
            "temporal_cli = \"./x\"",
            "caps = {}",
            "live_per_source_day = 9",
            "reversal_budget = 0.9",
            "clerk_base_url = \"http://x\"",
            "tracker = {kind = \"plane\"}",
            "clerk_model = \"dear\"",
        ];
        let held = |path: &Path, text: &str| {
            std::fs::write(path, text).unwrap();
            ConfigFile::new(path.to_owned(), text.parse().unwrap(), false).refuse_vault_overrides(&vault)
        };
        for text in bold {
            for inside in ["steward.toml", "notes/steward.toml"] {
                let message = held(&vault.join(inside), text).unwrap_err().to_string();
                assert!(message.contains(text.split(' ').next().unwrap()) && message.contains("vault"), "{message}");
            }
            held(&dir.path().join("steward.toml"), text).unwrap();
        }
        let server = |named| ConfigFile::new("steward.toml".into(), "server = \"https://x\"".parse().unwrap(), named);
        assert!(server(false).refuse_unnamed_server().unwrap_err().to_string().contains("STEWARD_CONFIG"));
        server(true).refuse_unnamed_server().unwrap();
        held(&vault.join("steward.toml"), "task_queue = \"q\"\nscan_seconds = 5").unwrap();
        // A link, either way.
        std::os::unix::fs::symlink(dir.path().join("steward.toml"), vault.join("link.toml")).unwrap();
        std::fs::write(vault.join("real.toml"), "").unwrap();
        std::os::unix::fs::symlink(vault.join("real.toml"), dir.path().join("back.toml")).unwrap();
        for path in [vault.join("link.toml"), dir.path().join("back.toml")] {
            let file = ConfigFile::new(path, bold[0].parse().unwrap(), false);
            assert!(file.refuse_vault_overrides(&vault).is_err());
        }
    }
}

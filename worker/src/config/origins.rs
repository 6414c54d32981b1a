//! Where each setting that limits a steward, and each stream, was set: in the environment, in a file, or by default.
//!
//! It holds names only: the variable, or the file with the line and the key. The values are in [`super::StewardConfig`],
//! and invalid values are among its warnings.

use super::mapping::find_line;
use super::settings::SETTINGS;
use super::sources::{self, ConfigFile, EnvironmentVariables};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The origin of each setting that limits a steward ([`super::settings::Setting::is_limit`]), and of each stream as
/// `streams.<name>`; a missing one has its default.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct SettingOrigins(BTreeMap<String, String>);

impl SettingOrigins {
    pub(super) fn from_sources(file: &ConfigFile, variables: &EnvironmentVariables) -> Self {
        let origin = |key: &'static str| {
            let name = format!("STEWARD_{}", key.to_ascii_uppercase());
            let in_file = file.table.get(key);
            // Of ceilings the lower one holds.
            let is_set = |(variable, value): &&(String, String)| {
                *variable == name && !in_file.is_some_and(|there| sources::is_lower_ceiling(key, there, value))
            };
            if variables.iter().any(|variable| is_set(&variable)) {
                return Some((key.to_owned(), name));
            }
            in_file.map(|_| (key.to_owned(), format!("{} ({key})", locate(file.origin_of(key), &[key]))))
        };
        let limits = SETTINGS.iter().filter(|setting| setting.is_limit).map(|setting| setting.key).filter_map(origin);
        let streams = file.table.get("streams").and_then(toml::Value::as_table);
        let files = || [file.path.as_path()].into_iter().chain(file.user.as_ref().map(|(path, _)| path.as_path()));
        let stream = |name: &String| {
            let keys = ["streams", name.as_str()];
            let found = files().find_map(|path| find_key_line(path, &keys).map(|_| locate(path, &keys)));
            (format!("streams.{name}"), found.unwrap_or_else(|| locate(file.origin_of("streams"), &keys)))
        };
        Self(limits.chain(streams.into_iter().flat_map(|streams| streams.keys()).map(stream)).collect())
    }

    /// Describes the origin of a key: the variable, the file with the key, or `default`.
    pub(crate) fn describe_key_origin(&self, key: &str) -> String {
        self.0.get(key).map_or_else(|| "default".to_owned(), String::clone)
    }

    /// Describes where a stream is set.
    pub(crate) fn describe_stream_origin(&self, name: &str) -> String {
        let found = self.0.get(&format!("streams.{name}"));
        found.map_or_else(|| "built in, nothing to set".to_owned(), String::clone)
    }

    /// The origins of all keys that are set.
    pub(crate) fn describe_all(&self) -> BTreeMap<String, String> {
        self.0.clone()
    }
}

/// A file with the line of a key, as in `steward.toml:3`; the file alone if the key cannot be found there.
fn locate(path: &Path, keys: &[&str]) -> String {
    let line = find_key_line(path, keys).map(|line| format!(":{line}")).unwrap_or_default();
    format!("{}{line}", path.display())
}

fn find_key_line(path: &Path, keys: &[&str]) -> Option<usize> {
    let text = std::fs::read_to_string(path).ok()?;
    let table: toml::Table = text.parse().ok()?;
    let (last, tables) = keys.split_last()?;
    let inner = tables.iter().try_fold(&table, |table, key| table.get(*key)?.as_table())?;
    let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    inner.contains_key(*last).then(|| find_line(&text, &keys)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_comes_before_the_file_and_the_file_before_the_default() {
        let table = "live_mode = \"live\"\nrelated_ceiling = \"ask\"".parse().unwrap();
        let file = ConfigFile::new("steward.toml".into(), table, false);
        let variables = vec![("STEWARD_LIVE_MODE".to_owned(), String::new())];
        let origins = SettingOrigins::from_sources(&file, &variables);
        let found = ["live_mode", "related_ceiling", "default_ceiling"].map(|key| origins.describe_key_origin(key));
        assert_eq!(found, ["STEWARD_LIVE_MODE", "steward.toml (related_ceiling)", "default"]);
    }

    #[test]
    fn a_file_is_named_with_the_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("steward.toml");
        let text = "# mine\nrelated_ceiling = \"ask\"\n\n[streams.mail]\nkind = \"maildir\"\n";
        std::fs::write(&path, text).unwrap();
        let origins =
            SettingOrigins::from_sources(&ConfigFile::new(path.clone(), text.parse().unwrap(), false), &Vec::new());
        assert_eq!(origins.describe_key_origin("related_ceiling"), format!("{}:2 (related_ceiling)", path.display()));
        assert_eq!(origins.describe_stream_origin("mail"), format!("{}:4", path.display()));
        assert_eq!(origins.describe_stream_origin("inbox"), "built in, nothing to set");
        assert_eq!(find_key_line(&path, &["streams", "chat"]), None, "another file may have it");
    }
}

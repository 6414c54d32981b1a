//! Where each setting that limits a steward was set: in the environment, in the file, or by default.
//!
//! It holds names only: the variable, or the file with the key. The values are in [`super::StewardConfig`], and invalid
//! values are among its warnings.

use super::settings::SETTINGS;
use super::sources::{self, ConfigFile, EnvironmentVariables};
use serde::Serialize;
use std::collections::BTreeMap;

/// The origin of each setting that limits a steward ([`super::settings::Setting::is_limit`]); a missing one has its default.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct SettingOrigins(BTreeMap<&'static str, String>);

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
                return Some((key, name));
            }
            in_file.map(|_| (key, format!("{} ({key})", file.origin_of(key).display())))
        };
        Self(SETTINGS.iter().filter(|setting| setting.is_limit).map(|setting| setting.key).filter_map(origin).collect())
    }

    /// Describes the origin of a key: the variable, the file with the key, or `default`.
    pub(crate) fn describe_key_origin(&self, key: &str) -> String {
        self.0.get(key).map_or_else(|| "default".to_owned(), String::clone)
    }
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
}

//! Where each setting that decides was set, for whoever asks why it holds.
//!
//! Of names only: which variable, which key of which file, or neither. The values are [`super::StewardConfig`]'s, and a
//! value that was not usable is among its warnings.

use super::sources::{ConfigFile, EnvironmentVariables};
use serde::Serialize;
use std::collections::BTreeMap;

/// The keys that decide how far a steward goes. None of them is unset by an empty variable.
const KEYS: [&str; 9] = [
    "live_mode",
    "confidence_threshold",
    "high_confidence_threshold",
    "default_ceiling",
    "state_change_ceiling",
    "context_edit_ceiling",
    "parent_matter_ceiling",
    "related_ceiling",
    "live_per_source_day",
];

/// Where the settings that decide were set; what is not in it has its default.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct SettingOrigins(BTreeMap<&'static str, String>);

impl SettingOrigins {
    pub(super) fn from_sources(file: &ConfigFile, variables: &EnvironmentVariables) -> Self {
        let origin = |key: &'static str| {
            let name = format!("STEWARD_{}", key.to_ascii_uppercase());
            if variables.iter().any(|(variable, _)| *variable == name) {
                return Some((key, name));
            }
            file.table.contains_key(key).then(|| (key, format!("{} ({key})", file.path.display())))
        };
        Self(KEYS.into_iter().filter_map(origin).collect())
    }

    /// The variable, the file with its key, or `default`.
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
        let file = ConfigFile { path: "steward.toml".into(), table, named: false };
        let variables = vec![("STEWARD_LIVE_MODE".to_owned(), String::new())];
        let origins = SettingOrigins::from_sources(&file, &variables);
        let found = ["live_mode", "related_ceiling", "default_ceiling"].map(|key| origins.describe_key_origin(key));
        assert_eq!(found, ["STEWARD_LIVE_MODE", "steward.toml (related_ceiling)", "default"]);
    }
}

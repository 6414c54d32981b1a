//! The settings that a recommendation consists of, by the names under which people set them.
//!
//! All matters share one mode. So a recommendation is that mode, ceilings for everything that must not act under it,
//! and `ceiling: act` in the instinct of each source that may act. This module must not set anything: a person does
//! that. `steward backtest --recommended` replays the same settings ([`PolicyOverrides::from_choice`]).

use crate::config::StewardConfig;
use crate::config::rules::PolicyOverrides;
use serde::Serialize;
use std::collections::BTreeMap;
use steward_domain::action::mutation::MutationClass;
use steward_domain::gates::mode::Ceiling;
use steward_domain::record::path::RecordPath;
use steward_domain::trust::report::advice::SettingsChoice;

/// The settings that a recommendation asks for.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct RecommendedSettings {
    /// Settings of the environment or of `steward.toml`.
    pub(super) variables: Vec<RecommendedVariable>,
    /// Files that need `ceiling: act`, so that their source may act although others may not.
    pub(super) instincts: Vec<String>,
}

/// One setting.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct RecommendedVariable {
    /// The name of the environment variable.
    pub(super) name: String,
    /// The key in `steward.toml`.
    pub(super) key: String,
    pub(super) value: &'static str,
    /// The current value.
    pub(super) now: &'static str,
}

impl RecommendedVariable {
    /// Names the environment variable after the key in `steward.toml`.
    fn new(key: String, value: &'static str, now: &'static str) -> Self {
        Self { name: format!("STEWARD_{}", key.to_ascii_uppercase()), key, value, now }
    }
}

impl RecommendedSettings {
    pub(super) fn from_choice(
        choice: &SettingsChoice,
        config: &StewardConfig,
        files: &BTreeMap<String, RecordPath>,
    ) -> Self {
        let (policy, overrides) = (&config.policy, PolicyOverrides::from_choice(choice, &config.policy));
        let default = overrides.default_ceiling.unwrap_or(config.default_ceiling);
        let mut variables = vec![
            RecommendedVariable::new("live_mode".into(), choice.mode.as_str(), policy.mode.as_str()),
            RecommendedVariable::new("default_ceiling".into(), default.as_str(), config.default_ceiling.as_str()),
        ];
        for class in MutationClass::ALL {
            let now = policy.class_ceiling(class);
            let value = overrides.ceilings[class as usize].unwrap_or(now);
            // A class that acts by default and keeps that needs no line.
            if value != Ceiling::Act || now != Ceiling::Act {
                variables.push(RecommendedVariable::new(
                    format!("{}_ceiling", class.as_str()),
                    value.as_str(),
                    now.as_str(),
                ));
            }
        }
        Self { variables, instincts: choice.sources.iter().map(|key| instinct_path(key, files)).collect() }
    }
}

/// The file that sets the ceiling of a source.
pub(super) fn instinct_path(key: &str, files: &BTreeMap<String, RecordPath>) -> String {
    files.get(key).map_or_else(|| format!("instinct/{key}.md"), ToString::to_string)
}

//! The very settings that a choice amounts to, by the names under which they are set.
//!
//! There is one mode for the whole fleet, so a choice is that mode, a ceiling for whatever may not act under it, and a
//! word in the instinct of each source that may. Nothing is set here: a person does that, and
//! `steward backtest --recommended` replays the very same ([`PolicyOverrides::from_choice`]).

use crate::config::StewardConfig;
use crate::config::rules::PolicyOverrides;
use serde::Serialize;
use std::collections::BTreeMap;
use steward_domain::action::mutation::MutationClass;
use steward_domain::gates::mode::Ceiling;
use steward_domain::record::path::RecordPath;
use steward_domain::trust::report::advice::SettingsChoice;

/// What a choice asks to be set.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct RecommendedSettings {
    /// In the environment, or in `steward.toml`.
    pub(super) variables: Vec<RecommendedVariable>,
    /// `ceiling: act` in each of these, so that the source may act although others may not.
    pub(super) instincts: Vec<String>,
}

/// One setting.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct RecommendedVariable {
    /// As the environment spells it.
    pub(super) name: String,
    /// As `steward.toml` spells it.
    pub(super) key: String,
    pub(super) value: &'static str,
    /// What is set by now.
    pub(super) now: &'static str,
}

impl RecommendedVariable {
    /// A setting by its key in `steward.toml`.
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
        let (policy, wish) = (&config.policy, PolicyOverrides::from_choice(choice, &config.policy));
        let default = wish.default_ceiling.unwrap_or(config.default_ceiling);
        let mut variables = vec![
            RecommendedVariable::new("live_mode".into(), choice.mode.as_str(), policy.mode.as_str()),
            RecommendedVariable::new("default_ceiling".into(), default.as_str(), config.default_ceiling.as_str()),
        ];
        for class in MutationClass::ALL {
            let now = policy.class_ceiling(class);
            let value = wish.ceilings[class as usize].unwrap_or(now);
            // One that acts by default and may is not worth a line.
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

/// Where the ceiling of a source is set.
pub(super) fn instinct_path(key: &str, files: &BTreeMap<String, RecordPath>) -> String {
    files.get(key).map_or_else(|| format!("instinct/{key}.md"), ToString::to_string)
}

//! The very settings that a choice amounts to, by the names under which they are set.
//!
//! There is one mode for the whole fleet, so a choice is that mode, a ceiling for whatever may not act under it, and a
//! word in the instinct of each source that may. Nothing is set here: a person does that.

use crate::config::Config;
use serde::Serialize;
use std::collections::BTreeMap;
use steward_domain::mode::Ceiling;
use steward_domain::mutation::MutationClass;
use steward_domain::path::RecordPath;
use steward_domain::trust::advice::Choice;

/// What a choice asks to be set.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Settings {
    /// In the environment, or in `steward.toml`.
    pub(super) variables: Vec<Variable>,
    /// `ceiling: act` in each of these, so that the source may act although others may not.
    pub(super) instincts: Vec<String>,
}

/// One setting.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Variable {
    /// As the environment spells it.
    pub(super) name: String,
    /// As `steward.toml` spells it.
    pub(super) key: String,
    pub(super) value: &'static str,
    /// What is set by now.
    pub(super) now: &'static str,
}

impl Variable {
    /// A setting by its key in `steward.toml`.
    fn new(key: String, value: &'static str, now: &'static str) -> Self {
        Self { name: format!("STEWARD_{}", key.to_ascii_uppercase()), key, value, now }
    }
}

impl Settings {
    pub(super) fn of(choice: &Choice, config: &Config, files: &BTreeMap<String, RecordPath>) -> Self {
        let hold = Ceiling::Confirm.word();
        let policy = &config.policy;
        let mut variables = vec![
            Variable::new("live_mode".into(), choice.mode.word(), policy.mode.word()),
            Variable::new("default_ceiling".into(), hold, config.default_ceiling.word()),
        ];
        for class in MutationClass::ALL {
            let now = policy.ceiling_of(class);
            let value = if choice.classes.contains(&class) { Ceiling::Act } else { now.min(Ceiling::Confirm) };
            // One that acts by default and may is not worth a line.
            if value != Ceiling::Act || now != Ceiling::Act {
                variables.push(Variable::new(format!("{}_ceiling", class.word()), value.word(), now.word()));
            }
        }
        let file = |key: &String| files.get(key).map_or_else(|| format!("instinct/{key}.md"), ToString::to_string);
        Self { variables, instincts: choice.sources.iter().map(file).collect() }
    }
}

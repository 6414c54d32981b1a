//! Reads the settings that a backtest replays, from options and files, without setting anything.
//!
//! An unknown mode or key is an error here. Nothing falls back to a default, because a backtest of other settings than
//! the person means is worse than none. Ceilings of sources can be replayed too, but they stand in the vault, and only
//! a person sets them.

use super::RawConfig;
use super::StewardConfig;
use super::sources::ConfigFile;
use crate::cli::output::escape_text;
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::path::Path;
use steward_domain::action::mutation::MutationClass;
use steward_domain::gates::mode::{Ceiling, DecisionPolicy, Mode};
use steward_domain::signals::signal::source_key;
use steward_domain::trust::case::ReplayRules;
use steward_domain::trust::demotion::REVERSAL_BUDGET;
use steward_domain::trust::report::advice::SettingsChoice;
use toml::{Table, Value};

/// Settings to replay; `None` keeps the current value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PolicyOverrides {
    pub(crate) mode: Option<Mode>,
    /// 0 to 1.
    pub(crate) confidence: Option<f64>,
    /// 0 to 1.
    pub(crate) high_confidence: Option<f64>,
    /// The ceiling of sources that have none of their own.
    pub(crate) default_ceiling: Option<Ceiling>,
    /// The ceilings by class, in the order of [`MutationClass::ALL`].
    pub(crate) ceilings: [Option<Ceiling>; 4],
    /// The ceilings of sources, by the key of the source.
    pub(crate) sources: BTreeMap<String, Ceiling>,
}

impl PolicyOverrides {
    /// The settings of a recommendation; everything that it does not name is held at `confirm`.
    pub(crate) fn from_choice(choice: &SettingsChoice, policy: &DecisionPolicy) -> Self {
        let ceiling = |class: MutationClass| {
            let held = policy.class_ceiling(class).min(Ceiling::Confirm);
            Some(if choice.classes.contains(&class) { Ceiling::Act } else { held })
        };
        Self {
            mode: Some(choice.mode),
            default_ceiling: Some(Ceiling::Confirm),
            ceilings: MutationClass::ALL.map(ceiling),
            sources: choice.sources.iter().map(|key| (key.clone(), Ceiling::Act)).collect(),
            ..Self::default()
        }
    }

    /// Reads the settings from a file in the format of `steward.toml`.
    ///
    /// # Errors
    /// The file cannot be read, or a key or value is not valid in the configuration.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let read = || -> anyhow::Result<Self> {
            let table: Table = std::fs::read_to_string(path)?.parse()?;
            let known: RawConfig = table.clone().try_into()?;
            drop(known);
            Self::from_table(&table)
        };
        read().with_context(|| format!("failed to read {}", path.display()))
    }

    fn from_table(table: &Table) -> anyhow::Result<Self> {
        let text = |key: &str| match table.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => bail!("`{key}` is not text"),
        };
        let number = |key: &str| match table.get(key) {
            None => Ok(None),
            Some(value) => {
                let number = value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
                check_threshold(key, number.with_context(|| format!("`{key}` is not a number"))?).map(Some)
            }
        };
        let ceiling = |key: &str| text(key)?.map(parse_ceiling).transpose();
        let mut overrides = Self {
            mode: text("live_mode")?.map(parse_mode).transpose()?,
            confidence: number("confidence_threshold")?,
            high_confidence: number("high_confidence_threshold")?,
            default_ceiling: ceiling("default_ceiling")?,
            ..Self::default()
        };
        for class in MutationClass::ALL {
            overrides.ceilings[class as usize] = ceiling(&format!("{}_ceiling", class.as_str()))?;
        }
        Ok(overrides)
    }

    /// Adds a ceiling given as `CLASS=WORD`, `default=WORD` or `source:NAME=WORD`.
    ///
    /// # Errors
    /// The text has none of these forms, or its class or ceiling is unknown.
    pub(crate) fn add_ceiling(&mut self, pair: &str) -> anyhow::Result<()> {
        let (name, ceiling) =
            pair.rsplit_once('=').with_context(|| format!("`{}` is not of the form CLASS=WORD", escape_text(pair)))?;
        let (name, ceiling) = (name.trim(), parse_ceiling(ceiling)?);
        if let Some(source) = name.strip_prefix("source:").filter(|source| !source.trim().is_empty()) {
            self.sources.insert(source_key(source), ceiling);
            return Ok(());
        }
        match name.parse::<MutationClass>().ok() {
            Some(class) => self.ceilings[class as usize] = Some(ceiling),
            None if name == "default" => self.default_ceiling = Some(ceiling),
            None => bail!(
                "`{}` is not a class: use state_change, context_edit, parent_matter, related, `default` for all \
                 sources, or `source:NAME` for one source",
                escape_text(name)
            ),
        }
        Ok(())
    }

    /// Whether these settings include a key of `steward.toml`.
    pub(crate) fn has_key(&self, key: &str) -> bool {
        let is_key_of = |class: &MutationClass| key.strip_suffix("_ceiling") == Some(class.as_str());
        match key {
            "live_mode" => self.mode.is_some(),
            "confidence_threshold" => self.confidence.is_some(),
            "high_confidence_threshold" => self.high_confidence.is_some(),
            "default_ceiling" => self.default_ceiling.is_some(),
            _ => {
                MutationClass::ALL.into_iter().any(|class| is_key_of(&class) && self.ceilings[class as usize].is_some())
            }
        }
    }

    /// The given settings with these applied over them.
    pub(crate) fn apply_to(&self, rules: &ReplayRules) -> ReplayRules {
        let mut rules = rules.clone();
        let policy = &mut rules.policy;
        policy.mode = self.mode.unwrap_or(policy.mode);
        policy.confidence_threshold = self.confidence.unwrap_or(policy.confidence_threshold);
        policy.high_confidence_threshold = self.high_confidence.unwrap_or(policy.high_confidence_threshold);
        rules.default_ceiling = self.default_ceiling.unwrap_or(rules.default_ceiling);
        for class in MutationClass::ALL {
            let ceiling = self.ceilings[class as usize].unwrap_or(policy.class_ceiling(class));
            match class {
                MutationClass::StateChange => policy.state_change_ceiling = ceiling,
                MutationClass::ContextEdit => policy.context_edit_ceiling = ceiling,
                MutationClass::ParentMatter => policy.parent_matter_ceiling = ceiling,
                MutationClass::Related => policy.related_ceiling = ceiling,
            }
        }
        rules.sources.extend(self.sources.clone());
        rules
    }
}

/// The settings of a file alone, with the defaults for the rest.
///
/// They equal [`StewardConfig::decision_rules`] if the environment is empty. A missing file sets nothing.
///
/// # Errors
/// As [`PolicyOverrides::read`].
pub(crate) fn read_rules_file(path: &Path) -> anyhow::Result<ReplayRules> {
    let defaults = ReplayRules {
        policy: DecisionPolicy::default(),
        default_ceiling: Ceiling::default(),
        sources: BTreeMap::new(),
    };
    if !path.try_exists().with_context(|| format!("failed to read {}", path.display()))? {
        return Ok(defaults);
    }
    Ok(PolicyOverrides::read(path)?.apply_to(&defaults))
}

/// The reversal budget that a file sets, or the default.
///
/// # Errors
/// The file exists and cannot be read.
pub(crate) fn read_reversal_budget(path: &Path) -> anyhow::Result<f64> {
    let describe_failure = || format!("failed to read {}", path.display());
    if !path.try_exists().with_context(describe_failure)? {
        return Ok(REVERSAL_BUDGET);
    }
    let text = std::fs::read_to_string(path).with_context(describe_failure)?;
    let table: Table = text.parse().with_context(describe_failure)?;
    let budget = table.get("reversal_budget").and_then(Value::as_float);
    Ok(budget.filter(|budget| (0.0..=1.0).contains(budget)).unwrap_or(REVERSAL_BUDGET))
}

/// The reason why this file must not hold these settings; `None` if it may.
///
/// A file in the vault must not set how far its own steward goes.
///
/// # Errors
/// The text is not TOML.
pub(crate) fn refuse_file_in_vault(path: &Path, toml: &str, vault: &Path) -> anyhow::Result<Option<String>> {
    let file = ConfigFile::new(path.to_owned(), toml.parse()?, false);
    Ok(file.refuse_vault_overrides(vault).err().map(|e| e.to_string()))
}

/// Refuses a threshold for high confidence below the ordinary one, which would be pointless.
///
/// # Errors
/// The threshold for high confidence is lower than that of `live`.
pub(crate) fn check_threshold_order(rules: &ReplayRules) -> anyhow::Result<()> {
    let DecisionPolicy { confidence_threshold: least, high_confidence_threshold: high, .. } = rules.policy;
    if high < least {
        bail!(
            "high_confidence_threshold is {high}, below confidence_threshold, which is {least}: \
             live_high_confidence_only would act on more than live; raise the first or lower the second"
        );
    }
    Ok(())
}

impl StewardConfig {
    /// The current settings that a decision depends on.
    pub(crate) fn decision_rules(&self) -> ReplayRules {
        ReplayRules { policy: self.policy.clone(), default_ceiling: self.default_ceiling, sources: BTreeMap::new() }
    }
}

/// Parses a mode; an unknown word is an error.
pub(crate) fn parse_mode(text: &str) -> anyhow::Result<Mode> {
    Mode::parse(text).with_context(|| {
        format!("`{}` is not a mode: use shadow, live_high_confidence_only or live", escape_text(text))
    })
}

fn parse_ceiling(text: &str) -> anyhow::Result<Ceiling> {
    let ceiling = Ceiling::parse_or_ask(text);
    // The parser takes an unknown word for `ask`.
    if !text.trim().eq_ignore_ascii_case(ceiling.as_str()) {
        bail!("`{}` is not a ceiling: use ask, confirm or act", escape_text(text));
    }
    Ok(ceiling)
}

/// Checks that a threshold is from 0 to 1; returns it.
pub(crate) fn check_threshold(name: &str, number: f64) -> anyhow::Result<f64> {
    if !(0.0..=1.0).contains(&number) {
        bail!("`{name}` is {number}, expected 0 to 1");
    }
    Ok(number)
}

/// The keys of `steward.toml` that any of these overrides sets, with their values.
pub(crate) fn list_overridden_entries(
    overrides: &[PolicyOverrides],
    rules: &ReplayRules,
) -> Vec<(&'static str, toml_edit::Value)> {
    list_policy_entries(rules).into_iter().filter(|(key, _)| overrides.iter().any(|one| one.has_key(key))).collect()
}

/// The keys of `steward.toml` that a decision depends on, with their values.
pub(crate) fn list_policy_entries(rules: &ReplayRules) -> Vec<(&'static str, toml_edit::Value)> {
    let policy = &rules.policy;
    vec![
        ("live_mode", policy.mode.as_str().into()),
        ("confidence_threshold", policy.confidence_threshold.into()),
        ("high_confidence_threshold", policy.high_confidence_threshold.into()),
        ("default_ceiling", rules.default_ceiling.as_str().into()),
        ("state_change_ceiling", policy.state_change_ceiling.as_str().into()),
        ("context_edit_ceiling", policy.context_edit_ceiling.as_str().into()),
        ("parent_matter_ceiling", policy.parent_matter_ceiling.as_str().into()),
        ("related_ceiling", policy.related_ceiling.as_str().into()),
    ]
}

#[cfg(test)]
mod tests;

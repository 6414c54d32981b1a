//! Settings that decide, asked about without being set: read from options and files.
//!
//! What is asked about must be said rightly: a word that is no mode, or a key that there is not, is an error here and
//! falls back to nothing, because a backtest of other settings than one believes is worse than none. Ceilings of sources
//! are asked about here, but they stand in the vault, and only a human sets them.

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

/// Settings that somebody asks about; what is not said stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PolicyOverrides {
    pub(crate) mode: Option<Mode>,
    /// 0 to 1.
    pub(crate) confidence: Option<f64>,
    /// 0 to 1.
    pub(crate) high_confidence: Option<f64>,
    /// Of sources that have none of their own.
    pub(crate) default_ceiling: Option<Ceiling>,
    /// By class, in the order of [`MutationClass::ALL`].
    pub(crate) ceilings: [Option<Ceiling>; 4],
    /// By the key of a source.
    pub(crate) sources: BTreeMap<String, Ceiling>,
}

impl PolicyOverrides {
    /// What a choice of the report amounts to: everything that it does not name is held.
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

    /// What a file in the form of `steward.toml` says of them.
    ///
    /// # Errors
    /// The file cannot be read, or a key or value is not one of the configuration's.
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
        let mut wish = Self {
            mode: text("live_mode")?.map(parse_mode).transpose()?,
            confidence: number("confidence_threshold")?,
            high_confidence: number("high_confidence_threshold")?,
            default_ceiling: ceiling("default_ceiling")?,
            ..Self::default()
        };
        for class in MutationClass::ALL {
            wish.ceilings[class as usize] = ceiling(&format!("{}_ceiling", class.as_str()))?;
        }
        Ok(wish)
    }

    /// Takes in `CLASS=WORD`, `default=WORD` or `source:NAME=WORD`.
    ///
    /// # Errors
    /// It is none of them.
    pub(crate) fn add_ceiling(&mut self, pair: &str) -> anyhow::Result<()> {
        let (name, word) =
            pair.rsplit_once('=').with_context(|| format!("`{}` is not CLASS=WORD", escape_text(pair)))?;
        let (name, to) = (name.trim(), parse_ceiling(word)?);
        if let Some(source) = name.strip_prefix("source:").filter(|source| !source.trim().is_empty()) {
            self.sources.insert(source_key(source), to);
            return Ok(());
        }
        match MutationClass::ALL.into_iter().find(|class| class.as_str() == name) {
            Some(class) => self.ceilings[class as usize] = Some(to),
            None if name == "default" => self.default_ceiling = Some(to),
            None => bail!(
                "`{}` is no class: there are state_change, context_edit, parent_matter and related, `default` for sources, \
                 and `source:NAME` for one of them",
                escape_text(name)
            ),
        }
        Ok(())
    }

    /// Whether it says anything about a key of the file.
    pub(crate) fn has_key(&self, key: &str) -> bool {
        let of_class = |class: &MutationClass| key.strip_suffix("_ceiling") == Some(class.as_str());
        match key {
            "live_mode" => self.mode.is_some(),
            "confidence_threshold" => self.confidence.is_some(),
            "high_confidence_threshold" => self.high_confidence.is_some(),
            "default_ceiling" => self.default_ceiling.is_some(),
            _ => {
                MutationClass::ALL.into_iter().any(|class| of_class(&class) && self.ceilings[class as usize].is_some())
            }
        }
    }

    /// The settings with this wish granted.
    pub(crate) fn apply_to(&self, rules: &ReplayRules) -> ReplayRules {
        let mut rules = rules.clone();
        let policy = &mut rules.policy;
        policy.mode = self.mode.unwrap_or(policy.mode);
        policy.confidence_threshold = self.confidence.unwrap_or(policy.confidence_threshold);
        policy.high_confidence_threshold = self.high_confidence.unwrap_or(policy.high_confidence_threshold);
        rules.default_ceiling = self.default_ceiling.unwrap_or(rules.default_ceiling);
        for class in MutationClass::ALL {
            let to = self.ceilings[class as usize].unwrap_or(policy.class_ceiling(class));
            match class {
                MutationClass::StateChange => policy.state_change_ceiling = to,
                MutationClass::ContextEdit => policy.context_edit_ceiling = to,
                MutationClass::ParentMatter => policy.parent_matter_ceiling = to,
                MutationClass::Related => policy.related_ceiling = to,
            }
        }
        rules.sources.extend(self.sources.clone());
        rules
    }
}

/// What a file alone sets, with the defaults for the rest; the same as [`StewardConfig::rules`] where the environment is empty.
///
/// # Errors
/// As [`PolicyOverrides::read`]; a file that is not there sets nothing.
pub(crate) fn read_rules_file(path: &Path) -> anyhow::Result<ReplayRules> {
    let nothing = ReplayRules {
        policy: DecisionPolicy::default(),
        default_ceiling: Ceiling::default(),
        sources: BTreeMap::new(),
    };
    if !path.try_exists().with_context(|| format!("failed to read {}", path.display()))? {
        return Ok(nothing);
    }
    Ok(PolicyOverrides::read(path)?.apply_to(&nothing))
}

/// The reversal budget that a file sets, or the default.
///
/// # Errors
/// A file that is there and cannot be read.
pub(crate) fn read_reversal_budget(path: &Path) -> anyhow::Result<f64> {
    let failed = || format!("failed to read {}", path.display());
    if !path.try_exists().with_context(failed)? {
        return Ok(REVERSAL_BUDGET);
    }
    let table: Table = std::fs::read_to_string(path).with_context(failed)?.parse().with_context(failed)?;
    let set = table.get("reversal_budget").and_then(Value::as_float);
    Ok(set.filter(|budget| (0.0..=1.0).contains(budget)).unwrap_or(REVERSAL_BUDGET))
}

/// Why this file may not hold these settings; `None` if it may. A file in the vault must not set how far its steward goes.
///
/// # Errors
/// The text is not TOML.
pub(crate) fn refuse_file_in_vault(path: &Path, toml: &str, vault: &Path) -> anyhow::Result<Option<String>> {
    let file = ConfigFile { path: path.to_owned(), table: toml.parse()?, named: false };
    Ok(file.refuse_vault_overrides(vault).err().map(|e| e.to_string()))
}

/// Refuses settings of which one makes the other pointless.
///
/// # Errors
/// High confidence is less than what `live` asks for by itself.
pub(crate) fn check_threshold_order(rules: &ReplayRules) -> anyhow::Result<()> {
    let DecisionPolicy { confidence_threshold: least, high_confidence_threshold: high, .. } = rules.policy;
    if high < least {
        bail!(
            "high_confidence_threshold is {high}, below confidence_threshold, which is {least}: \
             live_high_confidence_only would act upon more than live; raise the one or lower the other"
        );
    }
    Ok(())
}

impl StewardConfig {
    /// The settings that decide, as they are now.
    pub(crate) fn decision_rules(&self) -> ReplayRules {
        ReplayRules { policy: self.policy.clone(), default_ceiling: self.default_ceiling, sources: BTreeMap::new() }
    }
}

/// Reads a mode that must be one.
pub(crate) fn parse_mode(text: &str) -> anyhow::Result<Mode> {
    Mode::parse(text).with_context(|| {
        format!("`{}` is no mode: there are shadow, live_high_confidence_only and live", escape_text(text))
    })
}

fn parse_ceiling(text: &str) -> anyhow::Result<Ceiling> {
    let read = Ceiling::parse_or_ask(text);
    if !text.trim().eq_ignore_ascii_case(read.as_str()) {
        bail!("`{}` is no ceiling: there are ask, confirm and act", escape_text(text));
    }
    Ok(read)
}

/// A threshold that must be one.
pub(crate) fn check_threshold(name: &str, number: f64) -> anyhow::Result<f64> {
    if !(0.0..=1.0).contains(&number) {
        bail!("`{name}` is {number}, expected 0 to 1");
    }
    Ok(number)
}

/// Those of the keys of the file, with their values, that any of these wishes is about.
pub(crate) fn list_overridden_entries(
    wishes: &[PolicyOverrides],
    rules: &ReplayRules,
) -> Vec<(&'static str, toml_edit::Value)> {
    list_policy_entries(rules).into_iter().filter(|(key, _)| wishes.iter().any(|wish| wish.has_key(key))).collect()
}

/// The keys of the file and their values.
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

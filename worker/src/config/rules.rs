//! Settings that decide, asked about without being set: read from options and files, and written into `steward.toml`.
//!
//! What is asked about must be said rightly: a word that is no mode, or a key that there is not, is an error here and
//! falls back to nothing, because a backtest of other settings than one believes is worse than none. Writing keeps
//! what a person wrote into the file, and is refused where a file of a vault would set what a vault may not.

use super::sources::File;
use super::{Config, Raw};
use crate::out::shown;
use anyhow::{Context, bail};
use std::path::Path;
use steward_domain::mode::{Ceiling, Mode};
use steward_domain::mutation::MutationClass;
use steward_domain::trust::case::Rules;
use toml::{Table, Value};
use toml_edit::{DocumentMut, Item};

/// How the lines begin that say what settings rest on; those of before are replaced.
const EVIDENCE: &str = "# backtest: ";

/// Settings that somebody asks about; what is not said stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Wish {
    pub(crate) mode: Option<Mode>,
    /// 0 to 1.
    pub(crate) confidence: Option<f64>,
    /// 0 to 1.
    pub(crate) high_confidence: Option<f64>,
    /// Of sources that have none of their own.
    pub(crate) default_ceiling: Option<Ceiling>,
    /// By class, in the order of [`MutationClass::ALL`].
    pub(crate) ceilings: [Option<Ceiling>; 4],
}

impl Wish {
    /// What a file in the form of `steward.toml` says of them.
    ///
    /// # Errors
    /// The file cannot be read, or a key or value is not one of the configuration's.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let read = || -> anyhow::Result<Self> {
            let table: Table = std::fs::read_to_string(path)?.parse()?;
            let known: Raw = table.clone().try_into()?;
            drop(known);
            Self::of(&table)
        };
        read().with_context(|| format!("failed to read {}", path.display()))
    }

    fn of(table: &Table) -> anyhow::Result<Self> {
        let text = |key: &str| match table.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => bail!("`{key}` is not text"),
        };
        let number = |key: &str| match table.get(key) {
            None => Ok(None),
            Some(value) => {
                let number = value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
                share(key, number.with_context(|| format!("`{key}` is not a number"))?).map(Some)
            }
        };
        let ceiling = |key: &str| text(key)?.map(ceiling).transpose();
        let mut wish = Self {
            mode: text("live_mode")?.map(mode).transpose()?,
            confidence: number("confidence_threshold")?,
            high_confidence: number("high_confidence_threshold")?,
            default_ceiling: ceiling("default_ceiling")?,
            ..Self::default()
        };
        for class in MutationClass::ALL {
            wish.ceilings[class as usize] = ceiling(&format!("{}_ceiling", class.word()))?;
        }
        Ok(wish)
    }

    /// Takes in `CLASS=WORD`, or `default=WORD`.
    ///
    /// # Errors
    /// It is neither.
    pub(crate) fn hold(&mut self, pair: &str) -> anyhow::Result<()> {
        let (name, word) = pair.split_once('=').with_context(|| format!("`{}` is not CLASS=WORD", shown(pair)))?;
        let to = Some(ceiling(word)?);
        match MutationClass::ALL.into_iter().find(|class| class.word() == name.trim()) {
            Some(class) => self.ceilings[class as usize] = to,
            None if name.trim() == "default" => self.default_ceiling = to,
            None => bail!(
                "`{}` is no class: there are state_change, context_edit, parent_matter and related, and `default` for sources",
                shown(name)
            ),
        }
        Ok(())
    }

    /// The settings with this wish granted.
    pub(crate) fn over(&self, rules: &Rules) -> Rules {
        let mut rules = rules.clone();
        let policy = &mut rules.policy;
        policy.mode = self.mode.unwrap_or(policy.mode);
        policy.confidence_threshold = self.confidence.unwrap_or(policy.confidence_threshold);
        policy.high_confidence_threshold = self.high_confidence.unwrap_or(policy.high_confidence_threshold);
        rules.default_ceiling = self.default_ceiling.unwrap_or(rules.default_ceiling);
        for class in MutationClass::ALL {
            let to = self.ceilings[class as usize].unwrap_or(policy.ceiling_of(class));
            match class {
                MutationClass::StateChange => policy.state_change_ceiling = to,
                MutationClass::ContextEdit => policy.context_edit_ceiling = to,
                MutationClass::ParentMatter => policy.parent_matter_ceiling = to,
                MutationClass::Related => policy.related_ceiling = to,
            }
        }
        rules
    }
}

impl Config {
    /// The settings that decide, as they are now.
    pub(crate) fn rules(&self) -> Rules {
        Rules { policy: self.policy.clone(), default_ceiling: self.default_ceiling }
    }
}

/// Reads a mode that must be one.
pub(crate) fn mode(text: &str) -> anyhow::Result<Mode> {
    Mode::parse(text)
        .with_context(|| format!("`{}` is no mode: there are shadow, live_high_confidence_only and live", shown(text)))
}

fn ceiling(text: &str) -> anyhow::Result<Ceiling> {
    let read = Ceiling::read(text);
    if !text.trim().eq_ignore_ascii_case(read.word()) {
        bail!("`{}` is no ceiling: there are ask, confirm and act", shown(text));
    }
    Ok(read)
}

/// A threshold that must be one.
pub(crate) fn share(name: &str, number: f64) -> anyhow::Result<f64> {
    if !(0.0..=1.0).contains(&number) {
        bail!("`{name}` is {number}, expected 0 to 1");
    }
    Ok(number)
}

/// The file's text with these settings and the lines that say what they rest on, everything else as it was.
///
/// # Errors
/// The text is no TOML, or lies in the vault, which may not set how far its steward goes.
pub(crate) fn with_rules(
    (path, text): (&Path, &str),
    rules: &Rules,
    evidence: &[String],
    vault: &Path,
) -> anyhow::Result<String> {
    let mut document: DocumentMut = text.parse()?;
    for (key, value) in entries(rules) {
        let mut value = value;
        if let Some(old) = document.get(key).and_then(Item::as_value) {
            *value.decor_mut() = old.decor().clone();
        }
        document[key] = Item::Value(value);
    }
    if let Some(mut key) = document.key_mut("live_mode") {
        let before = key.leaf_decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
        let mut lines: String = before.split_inclusive('\n').filter(|line| !line.starts_with(EVIDENCE)).collect();
        for line in evidence {
            lines.push_str(EVIDENCE);
            lines.extend(line.chars().map(|c| if c.is_control() { ' ' } else { c }));
            lines.push('\n');
        }
        key.leaf_decor_mut().set_prefix(lines);
    }
    let text = document.to_string();
    File { path: path.to_owned(), table: text.parse()? }.keep_to_its_place(vault)?;
    Ok(text)
}

/// The keys of the file and their values.
pub(crate) fn entries(rules: &Rules) -> Vec<(&'static str, toml_edit::Value)> {
    let policy = &rules.policy;
    vec![
        ("live_mode", policy.mode.word().into()),
        ("confidence_threshold", policy.confidence_threshold.into()),
        ("high_confidence_threshold", policy.high_confidence_threshold.into()),
        ("default_ceiling", rules.default_ceiling.word().into()),
        ("state_change_ceiling", policy.state_change_ceiling.word().into()),
        ("context_edit_ceiling", policy.context_edit_ceiling.word().into()),
        ("parent_matter_ceiling", policy.parent_matter_ceiling.word().into()),
        ("related_ceiling", policy.related_ceiling.word().into()),
    ]
}

#[cfg(test)]
mod tests;

//! Reads a matter's policy from its frontmatter, and reports every value that is invalid.
//!
//! A typing error must never widen what a steward may do. So a malformed value is replaced by the most restrictive
//! one: a list allows nothing, a budget is 0, a ceiling is `ask`. An unknown key, invalid quiet hours or an empty block
//! could have meant anything, so the ceiling is `ask` there too. Each of them is reported as a [`MatterPolicyFault`],
//! which names the line and the fix. The caller adds the name of the file.

use super::MatterPolicy;
use super::{QuietHours, QuietHoursError};
use crate::action::mutation::{Mutation, MutationClass};
use crate::gates::mode::Ceiling;
use crate::record::entity::escape_value;
use crate::record::frontmatter::{Document, RecordFields};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// The key of the block in a matter's frontmatter.
pub const BLOCK: &str = "steward";
/// The key of the matter's ceiling outside the block.
pub const CEILING: &str = "steward_ceiling";

const CEILINGS: &str = "`ask`, `confirm` or `act`";

/// An invalid value or key in a matter's policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatterPolicyFault {
    /// The path of keys to it.
    pub path: Vec<String>,
    /// Its line in the file, from 1. The line of the block if the key has none of its own.
    pub line: usize,
    /// What is wrong. It fits on one line.
    pub wrong: String,
    /// What to write instead, and what applies until then.
    pub hint: String,
}

impl fmt::Display for MatterPolicyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: `{}` {}: {}", self.line, escape_value(&self.path.join(".")), self.wrong, self.hint)
    }
}

/// Reads a matter's policy. It is `None` if the note has no block. The faults are in the order of the file.
#[must_use]
pub fn read_matter_policy(document: &Document) -> (Option<MatterPolicy>, Vec<MatterPolicyFault>) {
    let mut reader = MatterPolicyReader { faults: Vec::new() };
    reader.check_outer_ceiling(document.fields());
    let mut policy = document.fields().get(BLOCK).map(|block| reader.read_block(block));
    for (key, meant) in find_mistyped_keys(document.fields()) {
        let hint = format!("write `{meant}`, or remove it; until then the ceiling is `ask`");
        reader.report_fault(&[key], "is not a key of a matter".to_owned(), hint);
        policy.get_or_insert_default().ceiling = Some(Ceiling::Ask);
    }
    let mut faults = reader.faults;
    for fault in &mut faults {
        let path: Vec<&str> = fault.path.iter().map(String::as_str).collect();
        fault.line = document.line_of_key(&path).or_else(|| document.line_of_key(&path[..1])).unwrap_or(1);
    }
    faults.sort_by_key(|fault| fault.line);
    (policy, faults)
}

/// Finds keys that look like a mistyped `steward` or `steward_ceiling`, each with the key that was meant.
fn find_mistyped_keys(fields: &RecordFields) -> impl Iterator<Item = (&str, &'static str)> {
    let closest = |key: &str| {
        let typed = key.to_lowercase().replace(['-', ' '], "_");
        [BLOCK, CEILING].into_iter().find(|name| typed == *name || typed.strip_suffix('s') == Some(name))
    };
    let meant = move |key: &str| closest(key).filter(|name| *name != key);
    fields.keys().filter_map(move |key| Some((key.as_str(), meant(key)?)))
}

struct MatterPolicyReader {
    faults: Vec<MatterPolicyFault>,
}

impl MatterPolicyReader {
    fn report_fault(&mut self, path: &[&str], wrong: String, hint: String) {
        let path = path.iter().map(|&key| key.to_owned()).collect();
        self.faults.push(MatterPolicyFault { path, line: 0, wrong, hint });
    }

    /// Reports an invalid value of a key of the block, with the expected form and what applies until it is fixed.
    fn report_unreadable(&mut self, key: &str, value: &Value, expected: &str, fallback: &str) {
        self.report_fault(&[BLOCK, key], describe_value(value), format!("expected {expected}; until then {fallback}"));
    }

    fn check_outer_ceiling(&mut self, fields: &RecordFields) {
        if let Some(value) = fields.get(CEILING)
            && parse_ceiling(value).is_none()
        {
            self.report_fault(
                &[CEILING],
                describe_value(value),
                format!("expected {CEILINGS}; until then it is `ask`"),
            );
        }
    }

    fn read_block(&mut self, block: &Value) -> MatterPolicy {
        let Some(keys) = block.as_object() else {
            let hint = "indent its keys below it, or remove the line; until then the ceiling is `ask`".to_owned();
            self.report_fault(&[BLOCK], describe_value(block), hint);
            return MatterPolicy::ask_only();
        };
        let mut policy = MatterPolicy {
            classes: self.read_classes(keys),
            fields: self.read_fields(keys),
            ceiling: self.read_ceiling(keys),
            quiet_hours: None,
            trusted_sources: self.read_trusted_sources(keys),
            daily_budget: self.read_daily_budget(keys),
        };
        if let Some(value) = keys.get("quiet_hours") {
            policy.quiet_hours = self.read_quiet_hours(value);
            if policy.quiet_hours.is_none() {
                policy.ceiling = Some(Ceiling::Ask);
            }
        }
        for key in keys.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            let hint =
                format!("expected one of {}; until it is fixed or removed the ceiling is `ask`", KEYS.join(", "));
            self.report_fault(&[BLOCK, key], "is unknown".to_owned(), hint);
            policy.ceiling = Some(Ceiling::Ask);
        }
        policy
    }

    /// Reads the quiet hours. `None` if they are invalid, which the caller must not take for no quiet hours.
    fn read_quiet_hours(&mut self, value: &Value) -> Option<QuietHours> {
        let (key, fallback) = ("quiet_hours", "the ceiling is `ask`");
        match value.as_str().map_or(Err(QuietHoursError::Malformed), QuietHours::parse) {
            Ok(hours) => return Some(hours),
            Err(QuietHoursError::UnknownZone { zone }) => {
                let wrong = format!("names the unknown zone `{}`", escape_value(&zone));
                let hint = format!(
                    "expected a zone such as `Europe/Berlin`, or an offset such as `+01:00`; until then {fallback}"
                );
                self.report_fault(&[BLOCK, key], wrong, hint);
            }
            Err(QuietHoursError::Malformed) => {
                let expected = "hours such as `\"22:00-07:00 Europe/Berlin\"` or `\"22:00-07:00 +01:00\"` (UTC if \
                                neither a zone nor an offset is given)";
                self.report_unreadable(key, value, expected, fallback);
            }
        }
        None
    }

    fn read_ceiling(&mut self, keys: &Map<String, Value>) -> Option<Ceiling> {
        let value = keys.get("ceiling")?;
        Some(parse_ceiling(value).unwrap_or_else(|| {
            self.report_unreadable("ceiling", value, CEILINGS, "it is `ask`");
            Ceiling::Ask
        }))
    }

    fn read_classes(&mut self, keys: &Map<String, Value>) -> Option<Vec<MutationClass>> {
        let known = MutationClass::ALL.map(MutationClass::as_str);
        let words = self.read_word_list(keys, "classes", &known)?;
        Some(MutationClass::ALL.into_iter().filter(|class| words.iter().any(|word| word == class.as_str())).collect())
    }

    fn read_fields(&mut self, keys: &Map<String, Value>) -> Option<Vec<String>> {
        self.read_word_list(keys, "fields", &Mutation::writable_fields())
    }

    /// Reads a list of known words. An unknown word is reported and left out. Any other value allows nothing.
    fn read_word_list(&mut self, keys: &Map<String, Value>, key: &str, known: &[&str]) -> Option<Vec<String>> {
        let value = keys.get(key)?;
        let expected = format!("a list of any of {}", known.join(", "));
        let Some(items) = value.as_array() else {
            self.report_unreadable(key, value, &expected, "nothing is allowed");
            return Some(Vec::new());
        };
        let mut words = Vec::new();
        for item in items {
            match item.as_str().map(str::trim).filter(|word| known.contains(word)) {
                Some(word) => words.push(word.to_owned()),
                None => {
                    let wrong = format!("holds {}", quote_value(item));
                    self.report_fault(&[BLOCK, key], wrong, format!("expected {expected}; the other entries apply"));
                }
            }
        }
        Some(words)
    }

    fn read_trusted_sources(&mut self, keys: &Map<String, Value>) -> Option<Vec<String>> {
        let value = keys.get("trusted_sources")?;
        let expected = "a list of sources as signals name them (`source_type`)";
        let Some(items) = value.as_array() else {
            self.report_unreadable("trusted_sources", value, expected, "no source is trusted");
            return Some(Vec::new());
        };
        let mut names = Vec::new();
        for item in items {
            match item.as_str().map(str::trim).filter(|name| !name.is_empty()) {
                Some(name) => names.push(name.to_owned()),
                None => {
                    let wrong = format!("holds {}", quote_value(item));
                    self.report_fault(
                        &[BLOCK, "trusted_sources"],
                        wrong,
                        format!("expected {expected}; the other entries apply"),
                    );
                }
            }
        }
        Some(names)
    }

    fn read_daily_budget(&mut self, keys: &Map<String, Value>) -> Option<u32> {
        let value = keys.get("daily_budget")?;
        let budget = value.as_u64().and_then(|budget| u32::try_from(budget).ok());
        Some(budget.unwrap_or_else(|| {
            self.report_unreadable("daily_budget", value, "a whole number, 0 or more", "it is 0");
            0
        }))
    }
}

/// Every key of the block.
const KEYS: [&str; 6] = ["classes", "fields", "ceiling", "quiet_hours", "trusted_sources", "daily_budget"];

/// Reads the name of a ceiling in upper or lower case. Returns `None` if it is malformed.
fn parse_ceiling(value: &Value) -> Option<Ceiling> {
    let text = value.as_str()?;
    Some(Ceiling::parse_or_ask(text)).filter(|read| text.trim().eq_ignore_ascii_case(read.as_str()))
}

fn describe_value(value: &Value) -> String {
    if value.is_null() { "is empty".to_owned() } else { format!("is {}", quote_value(value)) }
}

fn quote_value(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    format!("`{}`", escape_value(&text))
}

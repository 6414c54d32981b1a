//! From the frontmatter of a matter to what its note allows, and what of it cannot be understood.
//!
//! A typing error must never free a steward. So a line that is there and cannot be read means the strictest that it
//! could: a list allows nothing, a budget is 0, a ceiling is `ask`. Where the whole could mean anything, as with a
//! key that nobody knows, hours that are none or a block that is empty, the ceiling is `ask` too. Each is a
//! [`MatterPolicyFault`], which says what to write instead; whoever has the file adds its name and the line.

use super::MatterPolicy;
use super::QuietHours;
use crate::action::mutation::{Mutation, MutationClass};
use crate::gates::mode::Ceiling;
use crate::record::entity::escape_value;
use crate::record::frontmatter::{Document, RecordFields};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// The key of the block in a matter's frontmatter.
pub const BLOCK: &str = "steward";
/// The key of a matter's ceiling outside of the block.
pub const CEILING: &str = "steward_ceiling";

const CEILINGS: &str = "`ask`, `confirm` or `act`";

/// Something that cannot be understood in what a note allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatterPolicyFault {
    /// The keys that lead there.
    pub path: Vec<String>,
    /// The line of the file on which it stands, from 1; where its key has none, that of the block.
    pub line: usize,
    /// What is wrong, on one line.
    pub wrong: String,
    /// What to write, and what holds until then.
    pub mend: String,
}

impl fmt::Display for MatterPolicyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: `{}` {}: {}", self.line, escape_value(&self.path.join(".")), self.wrong, self.mend)
    }
}

/// Reads what a matter's note allows; `None` where it has no block. The faults have the order of the file.
#[must_use]
pub fn read_matter_policy(document: &Document) -> (Option<MatterPolicy>, Vec<MatterPolicyFault>) {
    let mut reader = MatterPolicyReader { faults: Vec::new() };
    reader.check_outer_ceiling(document.fields());
    let mut policy = document.fields().get(BLOCK).map(|block| reader.read_block(block));
    for (key, meant) in find_mistyped_keys(document.fields()) {
        let mend = format!("write `{meant}`, or remove it; until then the ceiling `ask` holds");
        reader.report_fault(&[key], "is no key of a matter".to_owned(), mend);
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

/// Keys that were meant to be one of the two, and the one that was meant.
fn find_mistyped_keys(fields: &RecordFields) -> impl Iterator<Item = (&str, &'static str)> {
    let known = |key: &str| {
        let typed = key.to_lowercase().replace(['-', ' '], "_");
        [BLOCK, CEILING].into_iter().find(|name| typed == *name || typed.strip_suffix('s') == Some(name))
    };
    let of = move |key: &str| known(key).filter(|name| *name != key);
    fields.keys().filter_map(move |key| Some((key.as_str(), of(key)?)))
}

struct MatterPolicyReader {
    faults: Vec<MatterPolicyFault>,
}

impl MatterPolicyReader {
    fn report_fault(&mut self, path: &[&str], wrong: String, mend: String) {
        let path = path.iter().map(|&key| key.to_owned()).collect();
        self.faults.push(MatterPolicyFault { path, line: 0, wrong, mend });
    }

    /// Says of a key of the block that its value is none, what would be one, and what holds meanwhile.
    fn report_unreadable(&mut self, key: &str, value: &Value, expected: &str, holds: &str) {
        self.report_fault(&[BLOCK, key], describe_value(value), format!("expected {expected}; until then {holds}"));
    }

    fn check_outer_ceiling(&mut self, fields: &RecordFields) {
        if let Some(value) = fields.get(CEILING)
            && parse_ceiling(value).is_none()
        {
            self.report_fault(
                &[CEILING],
                describe_value(value),
                format!("expected {CEILINGS}; until then `ask` holds"),
            );
        }
    }

    fn read_block(&mut self, block: &Value) -> MatterPolicy {
        let Some(keys) = block.as_object() else {
            let mend = "indent its keys below it, or remove the line; until then the ceiling `ask` holds".to_owned();
            self.report_fault(&[BLOCK], describe_value(block), mend);
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
            policy.quiet_hours = value.as_str().and_then(QuietHours::parse);
            if policy.quiet_hours.is_none() {
                let expected = "hours such as `\"22:00-07:00 +01:00\"` (without an offset they are UTC's)";
                self.report_unreadable("quiet_hours", value, expected, "the ceiling `ask` holds");
                policy.ceiling = Some(Ceiling::Ask);
            }
        }
        for key in keys.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            let mend =
                format!("it is none of {}; until it is mended or removed the ceiling `ask` holds", KEYS.join(", "));
            self.report_fault(&[BLOCK, key], "is unknown".to_owned(), mend);
            policy.ceiling = Some(Ceiling::Ask);
        }
        policy
    }

    fn read_ceiling(&mut self, keys: &Map<String, Value>) -> Option<Ceiling> {
        let value = keys.get("ceiling")?;
        Some(parse_ceiling(value).unwrap_or_else(|| {
            self.report_unreadable("ceiling", value, CEILINGS, "`ask` holds");
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

    /// A list of some of these words; what is none of them allows nothing.
    fn read_word_list(&mut self, keys: &Map<String, Value>, key: &str, known: &[&str]) -> Option<Vec<String>> {
        let value = keys.get(key)?;
        let expected = format!("a list of some of {}", known.join(", "));
        let Some(items) = value.as_array() else {
            self.report_unreadable(key, value, &expected, "none is allowed");
            return Some(Vec::new());
        };
        let mut words = Vec::new();
        for item in items {
            match item.as_str().map(str::trim).filter(|word| known.contains(word)) {
                Some(word) => words.push(word.to_owned()),
                None => {
                    let wrong = format!("holds {}", quote_value(item));
                    self.report_fault(&[BLOCK, key], wrong, format!("expected {expected}; the others hold"));
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
                        format!("expected {expected}; the others hold"),
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
            self.report_unreadable("daily_budget", value, "a whole number from 0", "it is 0");
            0
        }))
    }
}

/// Every key of the block.
const KEYS: [&str; 6] = ["classes", "fields", "ceiling", "quiet_hours", "trusted_sources", "daily_budget"];

/// A ceiling's own word, in any case.
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

//! The state property of some notes, with the words that they use.
//!
//! A word that no note has is only proposed where a change needs one, and the reason says so. A word that is not
//! recognised is never given a meaning.

use super::super::StateProperty;
use super::super::words::fold_words;
use super::known::read_known_state;
use super::{NoteSample, find};
use crate::record::entity::RecordState;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The words of a state property: those that the notes use, the most frequent one first.
pub(super) fn build_state(notes: &[&NoteSample], property: &str) -> StateProperty {
    let mut counts: BTreeMap<String, (usize, Value)> = BTreeMap::new();
    for value in notes.iter().filter_map(|note| find(&note.fields, property)) {
        let plain = if let Value::Array(items) = value { items.first() } else { Some(value) };
        if let (Some(words), Some(plain)) = (fold_words(value), plain) {
            counts.entry(words).or_insert_with(|| (0, plain.clone())).0 += 1;
        }
    }
    let mut found: Vec<(usize, Value)> = counts.into_values().collect();
    found.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let words = |state: RecordState| -> Vec<Value> {
        found
            .iter()
            .filter(|(_, value)| read_known_state(value) == Some(state))
            .map(|(_, value)| value.clone())
            .collect()
    };
    let (mut open, mut done) = (words(RecordState::Open), words(RecordState::Done));
    let is_flag = open.iter().chain(&done).any(Value::is_boolean);
    let is_german = open.iter().chain(&done).any(|word| {
        word.as_str()
            .is_some_and(|word| ["offen", "in arbeit", "läuft", "wartet", "erledigt", "fertig"].contains(&word))
    });
    let default = |flag: bool, german: &str, english: &str| match (is_flag, is_german) {
        (true, _) => Value::from(flag),
        (false, true) => Value::from(german),
        (false, false) => Value::from(english),
    };
    if open.is_empty() {
        open.push(default(false, "offen", "open"));
    }
    if done.is_empty() {
        done.push(default(true, "erledigt", "done"));
    }
    StateProperty { property: property.to_owned(), open, done, archived: words(RecordState::Archived) }
}

pub(super) fn describe_state(state: &StateProperty, notes: &[&NoteSample]) -> String {
    let values = notes.iter().filter_map(|note| find(&note.fields, &state.property));
    let unknown: BTreeSet<String> =
        values.clone().filter(|value| state.read_state(value).is_none()).filter_map(fold_words).collect();
    let count = values.filter(|value| state.read_state(value).is_some()).count();
    let is_used = |word: &Value| {
        let mut used = notes.iter().filter_map(|note| find(&note.fields, &state.property));
        used.any(|value| fold_words(value) == fold_words(word))
    };
    let guessed = [&state.open, &state.done].into_iter().filter_map(|words| words.first()).find(|word| !is_used(word));
    let guess = guessed
        .map_or_else(String::new, |word| format!("; no note has {word} yet, so change it if you use another word"));
    let counted = format!("notes that have one of these words: {count}{guess}");
    if unknown.is_empty() {
        return counted;
    }
    let shown: Vec<String> = unknown.iter().take(5).map(|word| format!("`{}`", word.escape_debug())).collect();
    format!("{counted}; not mapped: {}", shown.join(", "))
}

//! `where` and `except` of a mapping: which notes are meant.
//!
//! A selector knows the place of a note and its properties as they are written. It must not look into a body.

use super::words::fold_words;
use crate::record::frontmatter::RecordFields;
use crate::record::link::fold_name;
use crate::record::path::RecordPath;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use unicode_normalization::UnicodeNormalization as _;

/// Selects notes by folder, tag and properties. Everything that is named must hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NoteSelector {
    /// A folder, with those below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    /// A tag in the property `tags`, with those nested in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    #[serde(flatten)]
    properties: BTreeMap<String, Value>,
}

impl NoteSelector {
    /// Selects a folder, with those below it.
    #[must_use]
    pub fn in_folder(folder: &str) -> Self {
        Self { folder: Some(folder.to_owned()), ..Self::default() }
    }

    /// Selects a tag, with those nested in it.
    #[must_use]
    pub(super) fn with_tag(tag: &str) -> Self {
        Self { tag: Some(tag.to_owned()), ..Self::default() }
    }

    /// Selects a value of a property.
    #[must_use]
    pub(super) fn with_property(property: &str, value: Value) -> Self {
        Self { properties: BTreeMap::from([(property.to_owned(), value)]), ..Self::default() }
    }

    /// The tags of a note, without their `#`.
    pub(super) fn list_tags(fields: &RecordFields) -> Vec<String> {
        let texts: Vec<&str> = match find_value(fields, "tags") {
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(text)) => text.split([',', ' ']).collect(),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
        };
        texts.into_iter().map(trim_tag).filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
    }

    /// The folder that it names.
    #[must_use]
    pub fn folder(&self) -> Option<&str> {
        self.folder.as_deref().map(trim_folder).filter(|folder| !folder.is_empty())
    }

    /// The folder and the properties of a note that it selects.
    pub(super) fn describe_member(&self) -> (&str, RecordFields) {
        let mut fields = RecordFields::new();
        for (property, value) in &self.properties {
            fields.insert(property.clone(), value.clone());
        }
        if let Some(tag) = &self.tag {
            fields.insert("tags".into(), Value::from(vec![trim_tag(tag)]));
        }
        (self.folder().unwrap_or_default(), fields)
    }

    /// The properties that it compares.
    pub fn properties(&self) -> impl Iterator<Item = &str> {
        self.properties.keys().map(String::as_str)
    }

    /// Whether it selects every note.
    #[must_use]
    pub fn matches_everything(&self) -> bool {
        let is_root = self.folder.as_deref().is_none_or(|folder| trim_folder(folder).is_empty());
        is_root && self.tag.is_none() && self.properties.is_empty()
    }

    /// Why it can select no note.
    pub(super) fn find_fault(&self) -> Option<String> {
        if self.tag.as_deref().is_some_and(|tag| trim_tag(tag).is_empty()) {
            return Some("the tag is empty".into());
        }
        if let Some(part) = self.folder.as_deref().and_then(|folder| {
            trim_folder(folder).split('/').find(|part| part.starts_with('.') || part.is_empty()).map(str::to_owned)
        }) {
            let is_root = self.folder.as_deref().is_some_and(|folder| trim_folder(folder).is_empty());
            return (!is_root).then(|| format!("the folder has a part `{part}`: Steward reads no hidden folder"));
        }
        let other = self.properties.iter().find(|(_, value)| value.is_array() || fold_words(value).is_none());
        other.map(|(property, _)| format!("the value of `{property}` is not text, a number, `true` or `false`"))
    }

    /// Whether a note in this place may be selected.
    #[must_use]
    pub fn matches_place(&self, note: &RecordPath) -> bool {
        let Some(folder) = self.folder() else { return true };
        let wanted: String = folder.nfc().collect();
        let path: String = note.as_str().nfc().collect();
        path.strip_prefix(&wanted).is_some_and(|below| below.starts_with('/'))
    }

    /// Whether it selects the note.
    #[must_use]
    pub fn matches(&self, note: &RecordPath, fields: &RecordFields) -> bool {
        self.matches_place(note)
            && self.tag.as_deref().is_none_or(|tag| has_tag(fields, trim_tag(tag)))
            && self.properties.iter().all(|(property, wanted)| has_value(fields, property, wanted))
    }
}

fn trim_folder(folder: &str) -> &str {
    folder.trim_matches('/')
}

fn trim_tag(tag: &str) -> &str {
    tag.trim().trim_start_matches('#').trim_end_matches('/')
}

/// The value of a property. Names of properties are compared without case.
fn find_value<'a>(fields: &'a RecordFields, property: &str) -> Option<&'a Value> {
    let wanted = fold_name(property);
    fields.get(property).or_else(|| fields.iter().find(|(key, _)| fold_name(key) == wanted).map(|(_, value)| value))
}

fn has_value(fields: &RecordFields, property: &str, wanted: &Value) -> bool {
    let wanted = fold_words(wanted);
    match find_value(fields, property) {
        Some(Value::Array(items)) => items.iter().any(|item| fold_words(item) == wanted),
        Some(value) => wanted.is_some() && fold_words(value) == wanted,
        None => false,
    }
}

/// Whether the property `tags` holds a tag or one nested in it. Obsidian also reads a text of several tags.
fn has_tag(fields: &RecordFields, wanted: &str) -> bool {
    let wanted = fold_name(wanted);
    let is_wanted = |tag: &str| {
        let tag = fold_name(trim_tag(tag));
        tag.strip_prefix(&wanted).is_some_and(|nested| nested.is_empty() || nested.starts_with('/'))
    };
    let in_text = |text: &str| text.split([',', ' ']).any(is_wanted);
    match find_value(fields, "tags").or_else(|| find_value(fields, "tag")) {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).any(in_text),
        Some(Value::String(text)) => in_text(text),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => false,
    }
}

//! What a wiki's manifest and the views of it amount to.
//!
//! A view is a `KNOWLEDGE.md` that extends another one. [`merge_manifests`] merges the chain from the wiki's own manifest to
//! the view and keeps for each value the file and the line that it came from. Under a manifest with `governance`, a view must
//! not weaken what stands above it, unless that manifest permits it.

mod merge;

use super::finding::Severity;
use super::names::{KNOWN_KINDS, name_kind};
use super::standard::FieldPath;
use crate::record::frontmatter::{Document, RecordFields};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

pub use merge::merge_manifests;

/// The kinds that only code or a question makes.
pub(super) const UNWRITABLE_KINDS: [&str; 4] = ["overview", "lint", "qa", "archive"];

/// The most manifests above a view.
pub const MAX_ANCESTORS: usize = 8;

/// A manifest of a chain.
#[derive(Clone, Debug)]
pub struct ManifestLayer {
    /// Its path, as it is shown.
    pub file: String,
    pub document: Document,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldOrigin {
    pub file: String,
    /// From 1.
    pub line: Option<usize>,
}

/// The manifest that holds for a wiki or a view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EffectiveManifest {
    pub fields: RecordFields,
    /// The origin of every value that is not a mapping. In `entityTypes` and `lints` that of each field of an item.
    pub origins: BTreeMap<FieldPath, FieldOrigin>,
    /// The declared kinds of pages, and the lints. What cannot be read is left out.
    pub entity_types: Vec<EntityType>,
    pub lints: Vec<LintRule>,
}

/// A kind of page that the manifest declares.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct EntityType {
    pub name: String,
    #[serde(default)]
    pub fields: Vec<String>,
}

/// What a lint of the manifest looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum LintKind {
    RequireSource,
    MaxAge,
    MinConfidence,
    BrokenRef,
    Orphan,
    /// Whatever the id says, which nobody here knows. Kinds of later versions count as this one.
    #[serde(other)]
    Custom,
}

/// A lint of the manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct LintRule {
    pub id: String,
    pub kind: LintKind,
    /// The kind of page; `None` for all pages.
    pub page_kind: Option<String>,
    pub severity: Severity,
    pub params: RecordFields,
}

impl LintRule {
    /// A number among its parameters.
    #[must_use]
    pub fn find_number(&self, name: &str) -> Option<f64> {
        self.params.get(name)?.as_f64()
    }
}

/// How `_index.md` is grouped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum IndexGrouping {
    #[default]
    Kind,
    Tag,
    Source,
}

impl EffectiveManifest {
    /// A text of the manifest by its path of keys; `None` if there is none.
    #[must_use]
    pub fn find_text(&self, keys: &[&str]) -> Option<&str> {
        let (first, rest) = keys.split_first()?;
        let found = rest.iter().try_fold(self.fields.get(*first)?, |value, key| value.get(key))?;
        found.as_str()
    }

    /// A manifest with these fields, whose types and lints are read.
    #[must_use]
    pub fn new(fields: RecordFields, origins: BTreeMap<FieldPath, FieldOrigin>) -> Self {
        let list = |field: &str| fields.get(field).and_then(Value::as_array).into_iter().flatten();
        let entity_types = list("entityTypes").filter_map(|item| serde_json::from_value(item.clone()).ok()).collect();
        let lints = list("lints").filter_map(read_lint).collect();
        Self { fields, origins, entity_types, lints }
    }

    #[must_use]
    pub fn grouping(&self) -> IndexGrouping {
        self.find_text(&["display", "defaultGrouping"]).and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    /// Whether a kind is declared, or is always known.
    #[must_use]
    pub fn knows_kind(&self, kind: &str) -> bool {
        KNOWN_KINDS.contains(&kind) || self.entity_types.iter().any(|declared| name_kind(&declared.name) == kind)
    }

    /// The kinds of pages that a writer may make.
    #[must_use]
    pub fn list_writable_kinds(&self) -> Vec<String> {
        let declared = self.entity_types.iter().map(|declared| name_kind(&declared.name));
        let mut kinds: Vec<String> = KNOWN_KINDS.iter().map(|kind| (*kind).to_owned()).chain(declared).collect();
        kinds.retain(|kind| !UNWRITABLE_KINDS.contains(&kind.as_str()));
        kinds.sort();
        kinds.dedup();
        kinds
    }
}

/// Reads a lint; `None` if a part of it is missing. A severity of a later version counts as `warn`.
pub(super) fn read_lint(value: &Value) -> Option<LintRule> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let kind = serde_json::from_value(value.get("kind")?.clone()).ok()?;
    let page_kind = Some(text("appliesTo")?).filter(|name| *name != "*").map(name_kind);
    let severity = text("severity")?.parse().unwrap_or(Severity::Warn);
    let params = value.get("params").and_then(Value::as_object).cloned().unwrap_or_default();
    Some(LintRule { id: text("id")?.to_owned(), kind, page_kind, severity, params })
}

#[cfg(test)]
mod tests;

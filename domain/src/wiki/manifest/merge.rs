//! Merges a chain of manifests from the wiki's own one to the view.
//!
//! Identity, `curator` and single values of the view win. Types merge by name and lints by id; the fields of a type are the
//! parent's, then the child's. `metadata` merges deeply. `extends` and `appliesTo` are not inherited.

use super::{EffectiveManifest, FieldOrigin, ManifestLayer};
use crate::record::frontmatter::RecordFields;
use crate::wiki::finding::{FindingCode, Severity, WikiFinding, find_line};
use crate::wiki::standard::FieldPath;
use serde_json::Value;
use std::collections::BTreeSet;

/// What a view does not inherit.
const LOCAL: [&str; 2] = ["extends", "appliesTo"];
/// Fields whose values are merged one by one.
const POLICIES: [&str; 4] = ["sources", "curation", "queryHints", "display"];
/// In `permits`: a view may bind another governance.
const PERMITS_GOVERNANCE: &str = "governance";
/// In `permits`: a view may soften any lint. `lints.<id>` permits one.
const PERMITS_LINTS: &str = "lints";

/// Merges manifests, the wiki's own one first. The findings name what a view tried and must not do.
#[must_use]
pub fn merge_manifests(layers: &[ManifestLayer]) -> (EffectiveManifest, Vec<WikiFinding>) {
    let mut merger = Merger::default();
    for layer in layers {
        merger.add_layer(layer);
    }
    (merger.merged, merger.findings)
}

#[derive(Default)]
struct Merger {
    merged: EffectiveManifest,
    findings: Vec<WikiFinding>,
    /// What the manifests above permit; `None` until one of them binds a governance.
    permits: Option<BTreeSet<String>>,
    /// What the manifests say so far that may come before a governance.
    said: BTreeSet<String>,
}

impl Merger {
    fn add_layer(&mut self, layer: &ManifestLayer) {
        LOCAL.iter().for_each(|name| self.remove(&FieldPath::of_field(name)));
        for (name, value) in layer.document.fields() {
            let path = FieldPath::of_field(name);
            match value {
                Value::Array(items) if name == "entityTypes" => self.merge_types(layer, items),
                Value::Array(items) if name == "lints" => self.merge_lints(layer, items),
                Value::Object(fields) if POLICIES.contains(&name.as_str()) || name == "metadata" => {
                    self.merge_fields(layer, &path, fields);
                }
                _ if name == "governance" && !self.may_bind(layer, value) => {}
                _ => self.set(layer, &path, &path, value),
            }
        }
        self.note_permits(layer);
    }

    /// What a manifest permits counts up to the one that binds the governance: a view must not permit itself anything.
    fn note_permits(&mut self, layer: &ManifestLayer) {
        if self.permits.is_some() {
            return;
        }
        let fields = layer.document.fields();
        let permits = fields.get("metadata").and_then(|m| m.get("steward")?.get("permits")?.as_array());
        self.said.extend(permits.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
        if fields.contains_key("governance") {
            self.permits = Some(self.said.clone());
        }
    }

    fn is_permitted(&self, names: &[&str]) -> bool {
        self.permits.as_ref().is_none_or(|permits| names.iter().any(|name| permits.contains(*name)))
    }

    /// Whether a layer may bind this governance. If not, that is reported.
    fn may_bind(&mut self, layer: &ManifestLayer, value: &Value) -> bool {
        let path = FieldPath::of_field("governance");
        let is_same = self.merged.fields.get("governance") == Some(value);
        if is_same || self.is_permitted(&[PERMITS_GOVERNANCE]) {
            return true;
        }
        let problem = "the manifest above binds a governance, and does not permit another one; its own stays in force";
        let fix = "remove the line, or add `governance` to `metadata.steward.permits` of the manifest above";
        self.report(layer, &path, FindingCode::GovernanceOverrideRefused, problem, fix);
        false
    }

    fn report(&mut self, layer: &ManifestLayer, path: &FieldPath, code: FindingCode, problem: &str, fix: &str) {
        let finding = WikiFinding::new(code, Severity::Warn, &layer.file, problem, fix);
        self.findings.push(finding.at_field(&layer.document, path));
    }

    /// Merges mappings value by value.
    fn merge_fields(&mut self, layer: &ManifestLayer, path: &FieldPath, fields: &RecordFields) {
        if !matches!(self.find(path), Some(Value::Object(_))) {
            self.put(path, Value::Object(RecordFields::new()));
        }
        for (name, value) in fields {
            let path = path.join_key(name);
            match value {
                Value::Object(fields) => self.merge_fields(layer, &path, fields),
                _ => self.set(layer, &path, &path, value),
            }
        }
    }

    fn merge_types(&mut self, layer: &ManifestLayer, items: &[Value]) {
        for (position, item) in items.iter().enumerate() {
            let source = FieldPath::of_field("entityTypes").join_item(position);
            let (target, parent) = self.find_item("entityTypes", "name", item);
            let mut merged = parent.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
            for (name, value) in item.as_object().into_iter().flatten() {
                let value = match (name.as_str(), merged.get(name), value) {
                    ("fields", Some(Value::Array(above)), Value::Array(own)) => join_lists(above, own),
                    _ => value.clone(),
                };
                merged.insert(name.clone(), value);
            }
            self.set_item(layer, &target, &source, Value::Object(merged));
        }
    }

    fn merge_lints(&mut self, layer: &ManifestLayer, items: &[Value]) {
        for (position, item) in items.iter().enumerate() {
            let source = FieldPath::of_field("lints").join_item(position);
            let (target, parent) = self.find_item("lints", "id", item);
            let id = item.get("id").and_then(Value::as_str).unwrap_or_default();
            let is_softer = parent.as_ref().is_some_and(|parent| is_softer(parent, item));
            if is_softer && !self.is_permitted(&[PERMITS_LINTS, &format!("lints.{id}")]) {
                let problem = format!(
                    "the lint `{id}` is weaker than above, which is not permitted; the one above stays in force"
                );
                let fix = format!("remove it, or add `lints.{id}` to `metadata.steward.permits` of the manifest above");
                self.report(layer, &source, FindingCode::GovernanceLintSofteningRefused, &problem, &fix);
            } else {
                self.set_item(layer, &target, &source, item.clone());
            }
        }
    }

    /// Where an item belongs in a merged list, and what stands there. An item without its key is a new one.
    fn find_item(&self, list: &str, key: &str, item: &Value) -> (FieldPath, Option<Value>) {
        let items = self.merged.fields.get(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let same = item.get(key).and_then(|own| items.iter().position(|other| other.get(key) == Some(own)));
        let path = FieldPath::of_field(list).join_item(same.unwrap_or(items.len()));
        (path, same.map(|at| items[at].clone()))
    }

    fn set_item(&mut self, layer: &ManifestLayer, target: &FieldPath, source: &FieldPath, item: Value) {
        self.merged.origins.insert(target.clone(), trace(layer, source));
        self.put(target, item);
    }

    /// Sets a value and its origin.
    fn set(&mut self, layer: &ManifestLayer, target: &FieldPath, source: &FieldPath, value: &Value) {
        self.remove(target);
        self.merged.origins.insert(target.clone(), trace(layer, source));
        self.put(target, value.clone());
    }

    fn remove(&mut self, path: &FieldPath) {
        self.merged.origins.retain(|known, _| !known.starts_with(path));
        if let [step] = path.steps() {
            self.merged.fields.shift_remove(&step.to_string());
        }
    }

    fn find(&self, path: &FieldPath) -> Option<&Value> {
        let (first, rest) = path.steps().split_first()?;
        let top = self.merged.fields.get(&first.to_string())?;
        rest.iter().try_fold(top, |value, step| step.find_in(value))
    }

    /// Writes a value. Mappings and lists on the way are made.
    fn put(&mut self, path: &FieldPath, value: Value) {
        let Some((first, rest)) = path.steps().split_first() else { return };
        let top = self.merged.fields.entry(first.to_string()).or_insert(Value::Null);
        let place = rest.iter().fold(top, |place, step| step.make_in(place));
        *place = value;
    }
}

fn trace(layer: &ManifestLayer, path: &FieldPath) -> FieldOrigin {
    FieldOrigin { file: layer.file.clone(), line: find_line(&layer.document, path) }
}

/// The items of both lists, each once.
fn join_lists(above: &[Value], own: &[Value]) -> Value {
    let mut joined: Vec<Value> = Vec::with_capacity(above.len() + own.len());
    for item in above.iter().chain(own) {
        if !joined.contains(item) {
            joined.push(item.clone());
        }
    }
    Value::Array(joined)
}

/// Whether a lint lets something pass that the one above it does not.
fn is_softer(above: &Value, own: &Value) -> bool {
    let severity = |lint: &Value| lint.get("severity").and_then(Value::as_str).and_then(|text| text.parse().ok());
    let (was, is): (Option<Severity>, Option<Severity>) = (severity(above), severity(own));
    let is_same = |key: &str| above.get(key) == own.get(key);
    let covers = is_same("appliesTo") || own.get("appliesTo").and_then(Value::as_str) == Some("*");
    is < was || !is_same("kind") || !covers || !is_same("params") && !are_params_stricter(above, own)
}

/// Whether the limits of a lint are as strict as those above it: fewer days, a higher confidence.
fn are_params_stricter(above: &Value, own: &Value) -> bool {
    let number = |lint: &Value, key: &str| lint.get("params").and_then(|params| params.get(key)?.as_f64());
    match above.get("kind").and_then(Value::as_str) {
        Some("max-age") => number(own, "days").zip(number(above, "days")).is_some_and(|(own, above)| own <= above),
        Some("min-confidence") => number(own, "min").zip(number(above, "min")).is_some_and(|(own, above)| own >= above),
        _ => false,
    }
}

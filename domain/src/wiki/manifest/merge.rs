//! Merges a chain of manifests from the wiki's own one to the view.
//!
//! Identity, `curator` and single values of the view win. Types merge by name and lints by id; the fields of a type are the
//! parent's, then the child's. `metadata` merges deeply. `extends` and `appliesTo` are not inherited. A value of the wrong form
//! replaces nothing.

use super::{EffectiveManifest, FieldOrigin, LintKind, LintRule, ManifestLayer, read_lint};
use crate::record::frontmatter::RecordFields;
use crate::wiki::finding::{FindingCode, Severity, WikiFinding, find_line};
use crate::wiki::standard::FieldPath;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What a view does not inherit.
const LOCAL: [&str; 2] = ["extends", "appliesTo"];
/// Fields whose values are merged one by one.
const MAPPINGS: [&str; 5] = ["sources", "curation", "queryHints", "display", "metadata"];
const TYPES: &str = "entityTypes";
const LINTS: &str = "lints";
/// In `permits`: a view may bind another governance.
const GOVERNANCE: &str = "governance";

/// Merges manifests, the wiki's own one first. The findings name what a view tried and must not do.
#[must_use]
pub fn merge_manifests(layers: &[ManifestLayer]) -> (EffectiveManifest, Vec<WikiFinding>) {
    let mut merger = ManifestMerger::default();
    for layer in layers {
        merger.add_layer(layer);
    }
    (EffectiveManifest::new(merger.fields, merger.origins), merger.findings)
}

#[derive(Default)]
struct ManifestMerger {
    fields: RecordFields,
    origins: BTreeMap<FieldPath, FieldOrigin>,
    findings: Vec<WikiFinding>,
    /// What the manifests above permit; `None` until one of them binds a governance.
    permits: Option<BTreeSet<String>>,
    /// What the manifests so far permit, in case that the next one binds a governance.
    permits_above: BTreeSet<String>,
}

impl ManifestMerger {
    fn add_layer(&mut self, layer: &ManifestLayer) {
        LOCAL.iter().for_each(|name| self.remove_value(&FieldPath::from_key(name)));
        for (name, value) in layer.document.fields() {
            let path = FieldPath::from_key(name);
            match (name.as_str(), value) {
                (TYPES, Value::Array(items)) => self.merge_types(layer, items),
                (LINTS, Value::Array(items)) => self.merge_lints(layer, items),
                (name, Value::Object(fields)) if MAPPINGS.contains(&name) => self.merge_fields(layer, &path, fields),
                // The standard refuses them, and a check of the manifest says so.
                (TYPES | LINTS, _) => {}
                (name, _) if MAPPINGS.contains(&name) => {}
                (GOVERNANCE, value) if !self.may_bind(layer, value) => {}
                (_, value) => self.set_value(layer, &path, &path, value),
            }
        }
        self.add_permits(layer);
    }

    /// What a manifest permits counts up to the one that binds the governance: a view must not permit itself anything.
    fn add_permits(&mut self, layer: &ManifestLayer) {
        if self.permits.is_some() {
            return;
        }
        let fields = layer.document.fields();
        let permits = fields.get("metadata").and_then(|m| m.get("steward")?.get("permits")?.as_array());
        self.permits_above.extend(permits.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
        if fields.get(GOVERNANCE).is_some_and(Value::is_string) {
            self.permits = Some(self.permits_above.clone());
        }
    }

    fn is_permitted(&self, names: &[&str]) -> bool {
        self.permits.as_ref().is_none_or(|permits| names.iter().any(|name| permits.contains(*name)))
    }

    /// Whether a layer may bind this governance. If not, that is reported.
    fn may_bind(&mut self, layer: &ManifestLayer, value: &Value) -> bool {
        if self.fields.get(GOVERNANCE) == Some(value) || self.is_permitted(&[GOVERNANCE]) {
            return true;
        }
        let problem = "the manifest above binds a governance, and does not permit another one; its own stays in force";
        let fix = "remove the line, or add `governance` to `metadata.steward.permits` of the manifest above";
        self.report(layer, &FieldPath::from_key(GOVERNANCE), FindingCode::GovernanceOverrideRefused, problem, fix);
        false
    }

    fn report(&mut self, layer: &ManifestLayer, path: &FieldPath, code: FindingCode, problem: &str, fix: &str) {
        let finding = WikiFinding::new(code, Severity::Warn, &layer.file, problem, fix);
        self.findings.push(finding.with_field(&layer.document, path));
    }

    /// Merges mappings value by value.
    fn merge_fields(&mut self, layer: &ManifestLayer, path: &FieldPath, fields: &RecordFields) {
        if !matches!(path.find_in(&self.fields), Some(Value::Object(_))) {
            self.remove_value(path);
            self.write_value(path, Value::Object(RecordFields::new()));
        }
        for (name, value) in fields {
            let path = path.join_key(name);
            match value {
                Value::Object(fields) => self.merge_fields(layer, &path, fields),
                _ => self.set_value(layer, &path, &path, value),
            }
        }
    }

    fn merge_types(&mut self, layer: &ManifestLayer, items: &[Value]) {
        for (position, item) in items.iter().enumerate() {
            let source = FieldPath::from_key(TYPES).join_item(position);
            let (target, parent) = self.find_item(TYPES, "name", item);
            let above = parent.as_ref().and_then(|parent| parent.get("fields")).and_then(Value::as_array);
            for (name, value) in item.as_object().into_iter().flatten() {
                let joined = match (name.as_str(), above, value) {
                    ("fields", Some(above), Value::Array(own)) => join_lists(above, own),
                    _ => value.clone(),
                };
                self.set_value(layer, &target.join_key(name), &source.join_key(name), &joined);
            }
        }
    }

    fn merge_lints(&mut self, layer: &ManifestLayer, items: &[Value]) {
        for (position, item) in items.iter().enumerate() {
            let source = FieldPath::from_key(LINTS).join_item(position);
            let (target, parent) = self.find_item(LINTS, "id", item);
            let id = item.get("id").and_then(Value::as_str).unwrap_or_default();
            let is_softer = parent.as_ref().is_some_and(|parent| is_softer(parent, item));
            if is_softer && !self.is_permitted(&[LINTS, &format!("lints.{id}")]) {
                let problem = format!(
                    "the lint `{id}` is weaker than above, which is not permitted; the one above stays in force"
                );
                let fix = format!("remove it, or add `lints.{id}` to `metadata.steward.permits` of the manifest above");
                self.report(layer, &source, FindingCode::GovernanceLintSofteningRefused, &problem, &fix);
                continue;
            }
            self.remove_value(&target);
            self.write_value(&target, Value::Object(RecordFields::new()));
            for (name, value) in item.as_object().into_iter().flatten() {
                self.set_value(layer, &target.join_key(name), &source.join_key(name), value);
            }
        }
    }

    /// Where an item belongs in a merged list, and what stands there. An item without its key is a new one.
    fn find_item(&self, list: &str, key: &str, item: &Value) -> (FieldPath, Option<Value>) {
        let items = self.fields.get(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let same = item.get(key).and_then(|own| items.iter().position(|other| other.get(key) == Some(own)));
        let path = FieldPath::from_key(list).join_item(same.unwrap_or(items.len()));
        (path, same.map(|at| items[at].clone()))
    }

    /// Sets a value and its origin.
    fn set_value(&mut self, layer: &ManifestLayer, target: &FieldPath, source: &FieldPath, value: &Value) {
        self.remove_value(target);
        let origin = FieldOrigin { file: layer.file.clone(), line: find_line(&layer.document, source) };
        self.origins.insert(target.clone(), origin);
        self.write_value(target, value.clone());
    }

    /// Forgets the origins of a value and of what is below it. A field of the manifest itself is removed.
    fn remove_value(&mut self, path: &FieldPath) {
        let below =
            self.origins.range(path.clone()..).map(|(known, _)| known).take_while(|known| known.starts_with(path));
        for known in below.cloned().collect::<Vec<_>>() {
            self.origins.remove(&known);
        }
        if let [step] = path.steps() {
            self.fields.shift_remove(&step.to_string());
        }
    }

    /// Writes a value. Mappings and lists on the way are made.
    fn write_value(&mut self, path: &FieldPath, value: Value) {
        let Some((first, rest)) = path.steps().split_first() else { return };
        let top = self.fields.entry(first.to_string()).or_insert(Value::Null);
        let place = rest.iter().fold(top, |place, step| step.make_in(place));
        *place = value;
    }
}

/// The items of both lists, each once.
fn join_lists(above: &[Value], own: &[Value]) -> Value {
    let mut seen = BTreeSet::new();
    let joined = above.iter().chain(own).filter(|item| seen.insert(item.to_string()));
    Value::Array(joined.cloned().collect())
}

/// Whether a lint lets something pass that the one above it does not. One that cannot be read lets everything pass.
fn is_softer(above: &Value, own: &Value) -> bool {
    let Some(was) = read_lint(above) else { return false };
    let Some(is) = read_lint(own) else { return true };
    let covers = is.page_kind.is_none() || is.page_kind == was.page_kind;
    is.severity < was.severity || is.kind != was.kind || !covers || has_weaker_params(&was, &is)
}

/// Whether a lint has weaker limits: more days, a lower confidence. A limit that is not set is the weakest. Limits of other lints
/// mean what only their author knows.
fn has_weaker_params(above: &LintRule, own: &LintRule) -> bool {
    let weaker = |name: &str, is_weaker: fn(f64, f64) -> bool| match (above.find_number(name), own.find_number(name)) {
        (Some(above), Some(own)) => is_weaker(own, above),
        (Some(_), None) => true,
        (None, _) => false,
    };
    match own.kind {
        LintKind::MaxAge => weaker("days", |own, above| own > above),
        LintKind::MinConfidence => weaker("min", |own, above| own < above),
        LintKind::RequireSource | LintKind::BrokenRef | LintKind::Orphan | LintKind::Custom => {
            own.params != above.params
        }
    }
}

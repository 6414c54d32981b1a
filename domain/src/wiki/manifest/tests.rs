//! Merges of chains, after the cases of the published guide for adapters, and what a view must not weaken.

use super::*;
use crate::record::frontmatter::read_document;
use crate::wiki::finding::{FindingCode, WikiFinding};
use serde_json::json;

fn layer(file: &str, yaml: &str) -> ManifestLayer {
    ManifestLayer { file: file.to_owned(), document: read_document(format!("---\n{yaml}---\n").as_bytes()).unwrap() }
}

fn merge(layers: &[(&str, &str)]) -> (EffectiveManifest, Vec<WikiFinding>) {
    let layers: Vec<ManifestLayer> = layers.iter().map(|(file, yaml)| layer(file, yaml)).collect();
    merge_manifests(&layers)
}

fn origin(manifest: &EffectiveManifest, path: &str) -> Option<(String, usize)> {
    let found = manifest.origins.iter().find(|(known, _)| known.to_string() == path)?;
    Some((found.1.file.clone(), found.1.line.unwrap()))
}

const WIKI: &str = "name: research-wiki
entityTypes:
  - name: Concept
    fields: [definition, sources, related]
  - name: Person
    icon: p
    fields: [name, role]
lints:
  - {id: require-source, kind: require-source, appliesTo: Concept, severity: error}
  - {id: max-age-90, kind: max-age, appliesTo: \"*\", severity: warn, params: {days: 90}}
sources: {retention: forever, signing: optional}
curation: {tone: neutral, depth: medium, conflictResolution: defer}
queryHints: {preferRecent: true, scopeTo: [Concept, Person]}
metadata: {a: {x: 1, y: 1}}
";

#[test]
fn a_chain_merges_as_the_published_example_does() {
    let team = "name: finance\nextends: ../research-wiki/KNOWLEDGE.md\nappliesTo: [ws://companies/acme]\nentityTypes:\n  - {name: Deal, fields: [stage]}\n\
        curation: {conflictResolution: recency}\nqueryHints: {scopeTo: [Concept, Deal]}\nmetadata: {a: {y: 2}, b: {}}\n";
    let view = "name: cfo\nextends: ../finance/KNOWLEDGE.md\ncuration: {tone: sales, depth: deep}\nqueryHints: {scopeTo: [Deal]}\n";
    let (merged, findings) = merge(&[("w", WIKI), ("t", team), ("v", view)]);
    assert_eq!(findings, []);
    let fields = &merged.fields;
    assert_eq!(fields["name"], "cfo");
    assert_eq!(fields["curation"], json!({"tone": "sales", "depth": "deep", "conflictResolution": "recency"}));
    assert_eq!(fields["queryHints"], json!({"preferRecent": true, "scopeTo": ["Deal"]}));
    assert_eq!(fields["metadata"], json!({"a": {"x": 1, "y": 2}, "b": {}}));
    assert_eq!(fields.get("appliesTo"), None, "a binding is not inherited");
    let names: Vec<String> = merged.entity_types.clone().into_iter().map(|declared| declared.name).collect();
    assert_eq!(names, ["Concept", "Person", "Deal"]);
    for (path, file, line) in [
        ("name", "v", 2),
        ("extends", "v", 3),
        ("curation.tone", "v", 4),
        ("curation.conflictResolution", "t", 7),
        ("queryHints.preferRecent", "w", 14),
        ("queryHints.scopeTo", "v", 5),
        ("entityTypes[1].icon", "w", 7),
        ("entityTypes[2].name", "t", 6),
        ("lints[1].severity", "w", 11),
        ("metadata.a.x", "w", 15),
        ("metadata.a.y", "t", 9),
    ] {
        assert_eq!(origin(&merged, path), Some((file.to_owned(), line)), "{path}");
    }
}

#[test]
fn a_type_keeps_what_a_view_does_not_say_and_joins_the_fields() {
    let view = "name: v\nentityTypes:\n  - {name: Investor, parent: Person, fields: [fund]}\n  - {name: Person, fields: [linkedin, name]}\n";
    let (merged, _) = merge(&[("w", WIKI), ("v", view)]);
    let expected = json!({"name": "Person", "icon": "p", "fields": ["name", "role", "linkedin"]});
    assert_eq!(merged.fields["entityTypes"][1], expected);
    assert_eq!(merged.fields["entityTypes"][2]["parent"], "Person");
}

#[test]
fn without_a_governance_a_view_may_soften_and_add_lints() {
    let view = "name: v\ngovernance: ../p.yaml\nlints:\n  - {id: max-age-90, kind: max-age, appliesTo: \"*\", severity: info}\n  - {id: sure, kind: min-confidence, appliesTo: Concept, severity: warn, params: {min: 0.6}}\n";
    let (merged, findings) = merge(&[("w", WIKI), ("v", view)]);
    assert_eq!(findings, []);
    let severities: Vec<Severity> = merged.lints.clone().into_iter().map(|lint| lint.severity).collect();
    assert_eq!(severities, [Severity::Error, Severity::Info, Severity::Warn]);
    assert_eq!(merged.fields["governance"], "../p.yaml");
}

#[test]
fn under_a_governance_nothing_is_weakened_and_each_attempt_is_reported() {
    let wiki = format!("governance: ../p.yaml\n{WIKI}");
    let stricter = "{id: max-age-90, kind: max-age, appliesTo: \"*\", severity: error, params: {days: 30}}";
    let (merged, findings) = merge(&[("w", &wiki), ("v", &format!("name: v\nlints: [{stricter}]\n"))]);
    assert_eq!((findings, merged.lints.clone()[1].severity), (Vec::new(), Severity::Error));
    for weaker in [
        "{id: max-age-90, kind: max-age, appliesTo: \"*\", severity: info, params: {days: 90}}",
        "{id: max-age-90, kind: max-age, appliesTo: \"*\", severity: warn, params: {days: 900}}",
        "{id: max-age-90, kind: max-age, appliesTo: \"*\", severity: warn}",
        "{id: max-age-90, kind: max-age, appliesTo: Concept, severity: warn, params: {days: 90}}",
        "{id: max-age-90, kind: custom, appliesTo: \"*\", severity: error, params: {days: 90}}",
    ] {
        let (merged, findings) = merge(&[("w", &wiki), ("v", &format!("name: v\nlints: [{weaker}]\n"))]);
        let codes: Vec<FindingCode> = findings.iter().map(|finding| finding.code).collect();
        assert_eq!(codes, [FindingCode::GovernanceLintSofteningRefused], "{weaker}");
        assert_eq!(merged.lints.clone()[1].severity, Severity::Warn, "{weaker}");
        assert_eq!(merged.fields["lints"][1]["params"]["days"], 90, "{weaker}");
    }
    let (merged, findings) = merge(&[("w", &wiki), ("v", "name: v\ngovernance: ../mine.yaml\n")]);
    assert_eq!(merged.fields["governance"], "../p.yaml");
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!((finding.code, finding.line), (FindingCode::GovernanceOverrideRefused, Some(3)));
}

#[test]
fn a_value_of_the_wrong_form_replaces_nothing() {
    let wiki = format!("governance: ../p.yaml\n{WIKI}");
    for wrong in ["lints: {}", "lints: null", "lints: 3", "entityTypes: null", "curation: 1", "metadata: [a]"] {
        let (merged, findings) = merge(&[("w", &wiki), ("v", &format!("name: v\n{wrong}\n"))]);
        assert_eq!((findings, merged.lints.len(), merged.entity_types.len()), (Vec::new(), 2, 2), "{wrong}");
        assert_eq!(merged.fields["curation"]["tone"], "neutral", "{wrong}");
    }
}

#[test]
fn a_limit_that_nobody_set_is_the_weakest() {
    let lint =
        |more: &str| format!("governance: p\nname: w\nlints: [{{id: a, kind: max-age, appliesTo: \"*\", {more}}}]\n");
    let refused = |above: &str, own: &str| merge(&[("w", &lint(above)), ("v", &lint(own))]).1.len();
    assert_eq!(refused("severity: warn", "severity: error, params: {days: 30}"), 0);
    assert_eq!(refused("severity: error, params: {days: 30}", "severity: error"), 1);
    assert_eq!(refused("severity: critical", "severity: info"), 1, "an unknown severity counts as warn");
}

#[test]
fn a_manifest_of_thousands_of_values_is_merged_in_one_pass() {
    // Work that grows with the square of the values would take minutes.
    let many: String = (0..4_500).map(|n| format!("  k{n}: {n}\n")).collect();
    let (merged, _) = merge(&[("w", &format!("metadata:\n{many}")), ("v", &format!("metadata:\n{many}"))]);
    assert_eq!(merged.origins.len(), 4_500);
}

#[test]
fn a_mapping_in_the_place_of_a_value_has_its_own_origins() {
    let (merged, _) = merge(&[("w", "metadata: {a: 1}\n"), ("v", "metadata: {a: {b: 2}}\n")]);
    assert_eq!((origin(&merged, "metadata.a"), origin(&merged, "metadata.a.b")), (None, Some(("v".to_owned(), 2))));
}

#[test]
fn only_what_stands_at_or_above_a_governance_permits() {
    let wiki = format!(
        "governance: ../p.yaml\n{}",
        WIKI.replace("metadata: {", "metadata: {steward: {permits: [lints.max-age-90]}, ")
    );
    let soft = "{id: max-age-90, kind: max-age, appliesTo: \"*\", severity: info}";
    let (merged, findings) = merge(&[("w", &wiki), ("v", &format!("name: v\nlints: [{soft}]\n"))]);
    assert_eq!((findings, merged.lints.clone()[1].severity), (Vec::new(), Severity::Info));
    // A view permits itself nothing, nor a view below it.
    let plain = format!("governance: ../p.yaml\n{WIKI}");
    let own = format!("name: v\nmetadata: {{steward: {{permits: [lints, governance]}}}}\nlints: [{soft}]\n");
    let (_, findings) = merge(&[("w", &plain), ("v", &own)]);
    assert_eq!(findings.len(), 1);
    let (merged, findings) = merge(&[
        ("w", &plain),
        ("m", "name: m\nmetadata: {steward: {permits: [lints, governance]}}\n"),
        ("v", "name: v\ngovernance: mine\n"),
    ]);
    assert_eq!((findings.len(), &merged.fields["governance"]), (1, &json!("../p.yaml")));
}

#[test]
fn kinds_are_those_that_are_declared_or_always_known() {
    let (merged, _) = merge(&[("w", "entityTypes: [{name: CustomerDeal}]\n")]);
    for (kind, is_known) in [("customer-deal", true), ("concept", true), ("deal", false)] {
        assert_eq!(merged.knows_kind(kind), is_known, "{kind}");
    }
}

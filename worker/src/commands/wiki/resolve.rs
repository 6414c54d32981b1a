//! `steward wiki resolve`: what a manifest amounts to, and where each value comes from.
//!
//! Both identities are shown: that of the wiki and that of the view.

use super::CheckReport;
use crate::cli::output::{CommandExit, CommandOutput, escape_text};
use crate::cli::table::create_table;
use serde_json::{Value, json};
use std::path::Path;
use steward_domain::wiki::finding::WikiFinding;
use steward_domain::wiki::manifest::{EffectiveManifest, FieldOrigin, ManifestLayer, merge_manifests};
use steward_domain::wiki::standard::FieldPath;
use steward_vault::wiki::chain::{ManifestPlace, check_manifest, check_standard, find_vault_around, resolve_chain};

pub(super) fn run(file: &Path, root: Option<&Path>, out: CommandOutput) -> anyhow::Result<CommandExit> {
    let root = root.map(Path::canonicalize).transpose()?.or_else(|| find_vault_around(file));
    let chain = resolve_chain(file, root.as_deref())?;
    let (manifest, mut findings) = merge_manifests(&chain.layers);
    findings.extend(chain.findings);
    let real = file.canonicalize()?;
    let place = ManifestPlace { folder: real.parent().unwrap_or(Path::new("/")), root: root.as_deref() };
    if let Some((own, above)) = chain.layers.split_last() {
        findings.extend(above.iter().flat_map(|layer| check_standard(&layer.file, &layer.document)));
        findings.extend(check_manifest(&own.file, &own.document, &place));
    }
    let report = CheckReport { findings, checked: chain.layers.len() };
    out.print_value(&to_json(&manifest, &chain.layers, &report.findings), || {
        describe(&manifest, &chain.layers, &report.findings)
    })?;
    Ok(report.exit())
}

/// The identity of a manifest: its name, title, description and version.
fn identify(layer: Option<&ManifestLayer>) -> Value {
    let fields = layer.map(|layer| layer.document.fields());
    let identity = ["name", "title", "description", "version"].map(|name| (name, fields.and_then(|it| it.get(name))));
    identity.into_iter().map(|(name, value)| (name.to_owned(), value.cloned().unwrap_or_default())).collect()
}

fn to_json(manifest: &EffectiveManifest, layers: &[ManifestLayer], findings: &[WikiFinding]) -> Value {
    let origins: serde_json::Map<String, Value> =
        manifest.origins.iter().map(|(path, origin)| (path.to_string(), json!(origin))).collect();
    let chain: Vec<&str> = layers.iter().map(|layer| layer.file.as_str()).collect();
    json!({
        "effective": manifest.fields,
        "identity": identify(layers.last()),
        "root_identity": identify(layers.first()),
        "chain": chain,
        "origins": origins,
        "findings": findings,
    })
}

fn describe(manifest: &EffectiveManifest, layers: &[ManifestLayer], findings: &[WikiFinding]) -> String {
    let mut table = create_table(&["field", "value", "from"], &["value", "from"]);
    for (path, origin) in &manifest.origins {
        let row = [path.to_string(), show_value(manifest, path), show_origin(layers, origin)];
        table.add_row(row.map(|cell| escape_text(&cell)));
    }
    let chain: String = layers.iter().enumerate().map(|(at, layer)| describe_layer(at + 1, layer)).collect();
    let found: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
    format!("{chain}\n{table}\n{found}").trim_end().to_owned()
}

/// The number of a manifest in the chain, who it is, and its file.
fn describe_layer(number: usize, layer: &ManifestLayer) -> String {
    let fields = layer.document.fields();
    let text = |name: &str| escape_text(fields.get(name).and_then(Value::as_str).unwrap_or("?"));
    format!("{number}  {} {}  {}\n", text("name"), text("version"), escape_text(&layer.file))
}

/// A value as JSON; a text without quotes.
fn show_value(manifest: &EffectiveManifest, path: &FieldPath) -> String {
    let value = path.find_in(&manifest.fields);
    value.map_or_else(String::new, |value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// The number of the manifest in the chain, and the line.
fn show_origin(layers: &[ManifestLayer], origin: &FieldOrigin) -> String {
    let number = layers.iter().position(|layer| layer.file == origin.file).map_or(0, |at| at + 1);
    origin.line.map_or_else(|| number.to_string(), |line| format!("{number}, line {line}"))
}

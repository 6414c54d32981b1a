//! The registry of a wiki's sources, `_sources.json`, and `_manifest.json`, which says what became of each source.
//!
//! A wiki without a registry may have sources that describe themselves in a frontmatter. Their hashes are what somebody
//! wrote there, so they are only compared.

use super::finding::{FindingCode, Severity, WikiFinding, judge_fault};
use super::standard::{self, Doctype};
use super::{PROVENANCE_FILE, SOURCES_FILE};
use crate::record::frontmatter::RecordFields;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A source that is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WikiSource {
    pub id: String,
    /// Relative to the wiki.
    pub path: String,
    pub title: String,
    pub captured_at: Option<DateTime<Utc>>,
    /// As in `sha256:55a2…`.
    pub content_hash: String,
}

/// `_manifest.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceProvenance {
    pub version: u32,
    #[serde(rename = "hashAlgo")]
    pub hash_algo: String,
    /// By the path of the source.
    pub sources: BTreeMap<String, IngestedSource>,
}

/// A source that pages were made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IngestedSource {
    #[serde(rename = "contentHash")]
    pub content_hash: String,
    pub slugs: BTreeSet<String>,
}

/// The registry, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryReading {
    /// By id.
    pub sources: BTreeMap<String, WikiSource>,
    pub findings: Vec<WikiFinding>,
}

/// Reads `_sources.json`: a list of objects of the doctype `knowledge.source/v1`.
#[must_use]
pub fn read_registry(text: &str) -> RegistryReading {
    let mut read = RegistryReading::default();
    let items = match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(items)) => items,
        Ok(_) => return read.add_fault("it is not a list", "write `[]`, or restore the file"),
        Err(e) => return read.add_fault(&format!("it is not JSON: {e}"), "restore the file"),
    };
    for (at, item) in items.iter().enumerate() {
        match item {
            Value::Object(fields) => read.add_source(&format!("item {at}"), SOURCES_FILE, fields),
            _ => read = read.add_fault(&format!("item {at} is not an object"), "remove it"),
        }
    }
    read
}

impl RegistryReading {
    fn add_fault(mut self, problem: &str, fix: &str) -> Self {
        let finding = WikiFinding::new(FindingCode::SourceInvalid, Severity::Error, SOURCES_FILE, problem, fix);
        self.findings.push(finding);
        self
    }

    /// Adds a source from its fields. `what` and `file` say where they stand.
    pub fn add_source(&mut self, what: &str, file: &str, fields: &RecordFields) {
        let mut report = |code, severity, problem: &str, fix: &str| {
            self.findings.push(WikiFinding::new(code, severity, file, problem, fix));
        };
        let faults = match Doctype::read(fields) {
            Some(Doctype::Source) => standard::find_faults(fields),
            _ => {
                return report(
                    FindingCode::SourceInvalid,
                    Severity::Error,
                    &format!("{what} is not a source"),
                    "write `schema: knowledge.source/v1`",
                );
            }
        };
        for fault in &faults {
            let (code, severity) = judge_fault(fault.kind, FindingCode::SourceInvalid);
            let problem = format!("{what}, {}: {}", fault.path, fault.problem);
            report(code, severity, &problem, &fault.fix);
        }
        let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        let (Some(id), Some(path), Some(content_hash)) = (text("id"), text("path"), text("content_hash")) else {
            return;
        };
        if self.sources.contains_key(&id) {
            let problem = format!("{what}: another source has the id `{id}`");
            return report(FindingCode::DuplicateId, Severity::Error, &problem, "give one of them another id");
        }
        let source = WikiSource {
            id: id.clone(),
            path,
            title: text("title").unwrap_or_else(|| id.clone()),
            captured_at: text("captured_at").and_then(|text| Some(DateTime::parse_from_rfc3339(&text).ok()?.to_utc())),
            content_hash,
        };
        self.sources.insert(id, source);
    }
}

/// Reads `_manifest.json`.
///
/// # Errors
/// A finding that says why it cannot be read.
pub fn read_provenance(text: &str) -> Result<SourceProvenance, WikiFinding> {
    serde_json::from_str(text).map_err(|e| {
        let problem = format!("it cannot be read: {e}");
        WikiFinding::new(FindingCode::SourceInvalid, Severity::Error, PROVENANCE_FILE, &problem, "restore the file")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn source(id: &str) -> Value {
        json!({"schema": "knowledge.source/v1", "id": id, "path": format!("sources/{id}.md"), "title": "A letter",
            "captured_at": "2026-11-20T10:00:00Z", "content_hash": "sha256:55a2"})
    }

    #[test]
    fn a_registry_is_read_by_id() {
        let read = read_registry(&json!([source("letter"), source("lease")]).to_string());
        assert_eq!(read.findings, []);
        assert_eq!(read.sources.keys().collect::<Vec<_>>(), ["lease", "letter"]);
        assert_eq!(read.sources["lease"].captured_at, Some("2026-11-20T10:00:00Z".parse().unwrap()));
    }

    #[test]
    fn what_is_wrong_with_a_registry_is_named() {
        for (text, code, part) in [
            ("{", FindingCode::SourceInvalid, "not JSON"),
            ("{}", FindingCode::SourceInvalid, "not a list"),
            ("[1]", FindingCode::SourceInvalid, "item 0"),
            (&json!([source("letter"), source("letter")]).to_string(), FindingCode::DuplicateId, "item 1"),
            (
                &json!([{"schema": "knowledge.source/v1", "id": "letter"}]).to_string(),
                FindingCode::SourceInvalid,
                "`path` is missing",
            ),
        ] {
            let found = read_registry(text).findings;
            assert!(
                found.iter().any(|finding| finding.code == code && finding.problem.contains(part)),
                "{text}: {found:#?}"
            );
        }
    }

    #[test]
    fn provenance_reads_back() {
        let text =
            r#"{"version":1,"hashAlgo":"sha256","sources":{"sources/a.md":{"contentHash":"55a2","slugs":["b","a"]}}}"#;
        let read = read_provenance(text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text.replace(r#"["b","a"]"#, r#"["a","b"]"#));
        assert!(read_provenance("{}").is_err());
    }
}

//! The registry of a wiki's sources, `_sources.json`, and `_manifest.json`, which says what became of each source.
//!
//! A wiki without a registry may have sources that describe themselves in a frontmatter. Their hashes are what somebody
//! wrote there, so they are only compared.

use super::finding::{FindingCode, Severity, WikiFinding, judge_fault};
use super::path::{WikiFileKind, find_kind};
use super::standard::{self, Doctype};
use super::{PROVENANCE_FILE, SOURCES_FILE, SOURCES_FOLDER};
use crate::action::plan::ContentHash;
use crate::record::frontmatter::RecordFields;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The field of a source that another one replaces.
const SUPERSEDED_BY: &str = "superseded_by";

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
    /// `None` for a source whose bytes are its text.
    pub text_file: Option<KeptText>,
    /// The id of the source that replaces it.
    pub superseded_by: Option<String>,
}

/// The file with the text of a source whose bytes are not its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptText {
    /// Relative to the wiki, as in `_text/letter.txt`.
    pub path: String,
    /// Of that file, as in `sha256:55a2…`.
    pub hash: String,
}

/// `_manifest.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceProvenance {
    pub version: u32,
    #[serde(rename = "hashAlgo")]
    pub hash_algo: String,
    /// By the path of the source.
    pub sources: BTreeMap<String, IngestedSource>,
    /// What other tools wrote there.
    #[serde(flatten)]
    pub other: serde_json::Map<String, Value>,
}

/// A source that pages were made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IngestedSource {
    #[serde(rename = "contentHash")]
    pub content_hash: String,
    pub slugs: BTreeSet<String>,
    #[serde(flatten)]
    pub other: serde_json::Map<String, Value>,
}

/// The registry, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryReading {
    /// By id.
    pub sources: BTreeMap<String, WikiSource>,
    pub findings: Vec<WikiFinding>,
}

/// The file of a document, relative to the wiki, by a path that may have the older folder: `raw/x` is `sources/x`.
#[must_use]
pub fn to_source_file(path: &str) -> String {
    path.strip_prefix("raw/").map_or_else(|| path.to_owned(), |rest| format!("{SOURCES_FOLDER}/{rest}"))
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

/// The ids of the sources that this one replaces.
#[must_use]
pub fn list_replaced<'a>(sources: &'a BTreeMap<String, WikiSource>, id: &str) -> Vec<&'a str> {
    let replaced = sources.values().filter(|source| source.superseded_by.as_deref() == Some(id));
    replaced.map(|source| source.id.as_str()).collect()
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
            text_file: read_kept_text(fields),
            superseded_by: text(SUPERSEDED_BY),
        };
        self.sources.insert(id, source);
    }
}

/// Where the text of a source is kept. A path elsewhere is none: it would lead to another file.
fn read_kept_text(fields: &RecordFields) -> Option<KeptText> {
    let own = fields.get("metadata")?.get("steward")?;
    let text = |name: &str| own.get(name).and_then(Value::as_str).map(str::to_owned);
    let path = text("text").filter(|path| find_kind(path) == Some(WikiFileKind::SourceText))?;
    Some(KeptText { path, hash: text("text_hash")? })
}

/// A source that is added to the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSource {
    pub id: String,
    /// Relative to the wiki.
    pub path: String,
    pub title: String,
    /// In RFC 3339.
    pub captured_at: String,
    /// As in `sha256:55a2…`.
    pub content_hash: String,
    /// `None` for a source whose bytes are its text.
    pub text_file: Option<KeptText>,
}

/// The hash of a source as the registry holds it, as in `sha256:55a2…`.
#[must_use]
pub fn hash_content(bytes: &[u8]) -> String {
    format!("sha256:{}", ContentHash::hash_bytes(bytes).as_str())
}

/// Adds a source to the text of the registry. Everything else in it stays. `None` stands for a registry that does not exist.
///
/// # Errors
/// Why the registry cannot be extended.
pub fn add_to_registry(text: Option<&str>, source: &NewSource) -> Result<String, String> {
    let mut items = text.map_or(Ok(Vec::new()), read_items)?;
    let mut item = json!({
        "schema": Doctype::Source.to_string(),
        "id": source.id,
        "path": source.path,
        "title": source.title,
        "captured_at": source.captured_at,
        "content_hash": source.content_hash,
    });
    if let Some(kept) = &source.text_file {
        item["metadata"] = json!({"steward": {"text": kept.path, "text_hash": kept.hash}});
    }
    items.push(item);
    render_items(&items)
}

/// Notes in the text of the registry that one source replaces another. If the other way round was noted, that note goes. Everything
/// else in it stays.
///
/// # Errors
/// Why it cannot be noted: one of the two is not registered, or the old one replaces the new one by way of others.
pub fn note_superseded(text: &str, old: &str, new: &str) -> Result<String, String> {
    let mut items = read_items(text)?;
    let find = |items: &[Value], id: &str| {
        let at = items.iter().position(|item| item.get("id").and_then(Value::as_str) == Some(id));
        at.ok_or_else(|| format!("source_missing: there is no source `{id}`"))
    };
    let (at, newer) = (find(&items, old)?, find(&items, new)?);
    let next = |id: &str| items[find(&items, id).ok()?].get(SUPERSEDED_BY)?.as_str();
    let mut later = next(new);
    let is_reversed = later == Some(old);
    for _ in 0..items.len() {
        later = later.filter(|_| !is_reversed).and_then(next);
        if at == newer || later == Some(old) {
            return Err(format!("`{old}` cannot be superseded by `{new}`: name the older source"));
        }
    }
    if is_reversed && let Some(fields) = items[newer].as_object_mut() {
        fields.remove(SUPERSEDED_BY);
    }
    items[at][SUPERSEDED_BY] = json!(new);
    render_items(&items)
}

fn read_items(text: &str) -> Result<Vec<Value>, String> {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(items)) => Ok(items),
        Ok(_) => Err(format!("{SOURCES_FILE} is not a list: restore the file")),
        Err(e) => Err(format!("{SOURCES_FILE} is not JSON: {e}: restore the file")),
    }
}

fn render_items(items: &[Value]) -> Result<String, String> {
    serde_json::to_string_pretty(items).map(|text| format!("{text}\n")).map_err(|e| e.to_string())
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
    fn a_source_is_added_and_everything_else_stays() {
        let mut other = source("letter");
        other["metadata"] = json!({"theirs": 1});
        let new = NewSource {
            id: "lease".into(),
            path: "sources/lease.md".into(),
            title: "The \"lease\"".into(),
            captured_at: "2026-11-22T09:15:04Z".into(),
            content_hash: "sha256:55a2".into(),
            text_file: Some(KeptText { path: "_text/lease.txt".into(), hash: "sha256:66b3".into() }),
        };
        let text = add_to_registry(Some(&json!([other]).to_string()), &new).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap()[0], other);
        let read = read_registry(&text);
        assert_eq!((read.sources.len(), read.findings), (2, vec![]));
        assert_eq!((&read.sources["lease"].text_file, &read.sources["letter"].text_file), (&new.text_file, &None));
        let elsewhere = text.replace("_text/lease.txt", "_text/../../secret.txt");
        assert_eq!(read_registry(&elsewhere).sources["lease"].text_file, None);
        assert_eq!(read_registry(&add_to_registry(None, &new).unwrap()).sources["lease"].title, "The \"lease\"");
        assert!(add_to_registry(Some("{}"), &new).is_err() && add_to_registry(Some("["), &new).is_err());
    }

    #[test]
    fn a_source_is_replaced_by_another_that_is_registered() {
        let text = json!([source("lease"), source("letter")]).to_string();
        let noted = note_superseded(&text, "lease", "letter").unwrap();
        assert_eq!(read_registry(&noted).findings, []);
        assert_eq!(read_registry(&noted).sources["lease"].superseded_by.as_deref(), Some("letter"));
        assert_eq!(read_registry(&noted).sources["letter"].superseded_by, None);
        assert_eq!(list_replaced(&read_registry(&noted).sources, "letter"), ["lease"]);
        assert_eq!(note_superseded(&noted, "lease", "letter").unwrap(), noted);
        for (old, new) in [("lease", "lease"), ("lease", "none"), ("none", "lease")] {
            assert!(note_superseded(&noted, old, new).is_err(), "{old} {new}");
        }
        // Said the other way round, the first note goes.
        let turned = read_registry(&note_superseded(&noted, "letter", "lease").unwrap()).sources;
        assert_eq!((&turned["lease"].superseded_by, turned["letter"].superseded_by.as_deref()), (&None, Some("lease")));
        let three = json!([source("a"), source("b"), source("c")]).to_string();
        let chain = note_superseded(&note_superseded(&three, "a", "b").unwrap(), "b", "c").unwrap();
        assert!(note_superseded(&chain, "c", "a").is_err());
        assert!(note_superseded("{}", "lease", "letter").is_err());
    }

    #[test]
    fn provenance_reads_back() {
        let text = r#"{"version":1,"hashAlgo":"sha256","sources":{"sources/a.md":{"contentHash":"55a2","slugs":["b","a"],"x":1}},"theirs":2}"#;
        let read = read_provenance(text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text.replace(r#"["b","a"]"#, r#"["a","b"]"#));
        assert!(read_provenance("{}").is_err());
    }
}

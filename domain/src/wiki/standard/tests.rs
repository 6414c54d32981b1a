//! The verdicts of the published schema, as python-jsonschema with its format checker gave them. `make aip-10` takes them again.

use super::*;
use serde_json::json;

/// A change of a valid frontmatter: a pointer, and the value there; `null` removes it.
fn change(fields: &mut Value, pointer: &str, value: Value) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let place = fields.pointer_mut(parent).unwrap();
    match (place, value) {
        (Value::Object(fields), Value::Null) => drop(fields.shift_remove(name)),
        (Value::Object(fields), value) => drop(fields.insert(name.to_owned(), value)),
        (Value::Array(items), value) => items.push(value),
        _ => panic!("{pointer}"),
    }
}

/// The cases of `tests/aip10/cases.json`: a base, its changes, and whether the result is valid.
fn read_cases() -> Vec<(String, Value, bool)> {
    let text = include_str!("../../../../tests/aip10/cases.json");
    let all: Value = serde_json::from_str(text).unwrap();
    let cases = all["cases"].as_array().unwrap().iter();
    cases
        .map(|case| {
            let mut fields = all["bases"][case["base"].as_str().unwrap()].clone();
            for (pointer, value) in case["change"].as_object().unwrap() {
                change(&mut fields, pointer, value.clone());
            }
            (case["change"].to_string(), fields, case["valid"].as_bool().unwrap())
        })
        .collect()
}

#[test]
fn every_verdict_is_that_of_the_published_schema() {
    let cases = read_cases();
    assert!(cases.len() >= 62, "{}", cases.len());
    for (name, fields, is_valid) in cases {
        let faults = find_faults(fields.as_object().unwrap());
        assert_eq!(faults.is_empty(), is_valid, "{name}: {faults:#?}");
    }
}

#[test]
fn a_fault_names_its_field_and_its_fix() {
    let fields = json!({"schema": "knowledge.workspace/v1", "name": "a-wiki", "title": "A", "description": "b",
        "version": "1.0", "lints": [{"id": "a", "kind": "max-age", "appliesTo": "*", "severity": "warning"}], "color": "red"});
    let faults = find_faults(fields.as_object().unwrap());
    let shown: Vec<(String, FaultKind)> = faults.iter().map(|fault| (fault.path.to_string(), fault.kind)).collect();
    let expected = [
        ("version", FaultKind::Invalid),
        ("lints[0].severity", FaultKind::UnknownValue),
        ("color", FaultKind::UnknownKey),
    ];
    assert_eq!(shown, expected.map(|(path, kind)| (path.to_owned(), kind)));
    assert_eq!(faults[1].problem, "`\"warning\"` is not allowed here");
    assert_eq!(faults[1].fix, "write one of error, warn, info");
}

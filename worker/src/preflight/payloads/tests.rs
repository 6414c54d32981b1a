//! Reads payloads of a type that has changed since.

use super::*;
use serde::Deserialize;

#[derive(Serialize, Deserialize)]
struct Renamed {
    judged: u32,
}

#[derive(Serialize, Deserialize)]
struct WithDefault {
    #[serde(default)]
    judged: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Outcome {
    Done { action: String },
}

#[derive(Serialize, Deserialize)]
struct Aliased {
    #[serde(alias = "seen")]
    judged: u32,
}

#[derive(Serialize, Deserialize)]
struct Lenient {
    kind: LenientKind,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LenientKind {
    Done,
    #[serde(other)]
    Other,
}

fn check<T: Serialize + for<'de> Deserialize<'de> + 'static>(recorded: &str) -> Result<(), String> {
    let payload = Payload {
        metadata: [("encoding".to_owned(), b"json/plain".to_vec())].into(),
        data: recorded.as_bytes().to_vec(),
        ..Payload::default()
    };
    check_payloads::<T>(vec![payload])
}

#[test]
fn what_reads_and_loses_nothing_passes() {
    assert_eq!(check::<Renamed>(r#"{"judged":1}"#), Ok(()));
    assert_eq!(check::<WithDefault>(r#"{"judged":1,"reason":"late"}"#), Ok(()));
    assert_eq!(check::<WithDefault>(r"{}"), Ok(()), "a new field has a default");
    assert_eq!(check::<WithDefault>(r#"{"judged":1,"reason":null,"gone":[]}"#), Ok(()), "an empty value is no loss");
    assert_eq!(check::<Outcome>(r#"{"kind":"done","action":"3f9a"}"#), Ok(()));
    assert_eq!(check::<Vec<String>>(r#"["a"]"#), Ok(()));
    assert_eq!(check::<Aliased>(r#"{"seen":1}"#), Ok(()), "the old name is still read");
    assert_eq!(check::<Lenient>(r#"{"kind":"done"}"#), Ok(()));
}

#[test]
fn a_changed_type_names_the_field() {
    assert_eq!(check::<Renamed>(r#"{"seen":1}"#).unwrap_err(), "judged is missing");
    assert_eq!(check::<WithDefault>(r#"{"seen":1}"#).unwrap_err(), "seen would be lost");
    assert_eq!(check::<Vec<WithDefault>>(r#"[{},{"why":"x"}]"#).unwrap_err(), "why would be lost");
    assert_eq!(check::<Lenient>(r#"{"kind":"over"}"#).unwrap_err(), "kind would be another text");
    assert!(check::<Renamed>(r#"{"judged":"one"}"#).unwrap_err().starts_with("invalid type"));
    assert!(check::<Outcome>(r#"{"kind":"over"}"#).unwrap_err().contains("unknown variant"));
}

#[test]
fn every_activity_that_the_workflows_call_has_its_types() {
    let types = PayloadTypes::of_this_build();
    let declared = include_str!("../../../../workflows/src/activities.rs");
    let names: Vec<&str> = declared
        .lines()
        .filter_map(|line| line.trim().strip_prefix("#[activity(name = \"")?.strip_suffix("\")]"))
        .collect();
    assert!(names.len() >= 17, "{names:?}");
    for name in &names {
        assert!(types.activities.contains_key(*name), "{name} is not listed in workflows/src/registry.rs");
    }
    assert_eq!(types.activities.len(), names.len());
    assert_eq!(types.workflows.len(), 18);
}

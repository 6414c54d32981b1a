use super::*;
use steward_domain::record::path::RecordPath;
use steward_domain::signals::extract::{ExtractAnswer, ExtractQuestion, TargetOffer, answer_schema as signals_schema};
use steward_domain::steward::clerk::{ClerkQuestion, SignalEvidence, Verdict, answer_schema};

fn question(sources: &[&str]) -> ClerkQuestion {
    let evidence = sources.iter().enumerate().map(|(n, source)| SignalEvidence {
        source: (*source).into(),
        ..crate::steward::clerks::tests::signal(&format!("s{n}"), 0, None)
    });
    crate::steward::clerks::tests::question(evidence.collect())
}

fn event() -> ExtractQuestion {
    let offer = |path: &str| TargetOffer {
        path: RecordPath::parse(path).unwrap(),
        kind: steward_domain::record::path::RecordKind::Task,
        name: "Pay".into(),
        matter_name: None,
        score: 0.9,
    };
    ExtractQuestion {
        source: "mail:a@b".into(),
        author: None,
        subject: None,
        text: "it was paid".into(),
        offers: vec![offer("task/pay.md"), offer("matter/m.md")],
        complaint: None,
    }
}

/// Checks that a schema holds only supported keywords, and field names that the API accepts.
fn is_taken(schema: &Value) {
    let known = ["type", "additionalProperties", "required", "properties", "enum", "items", "anyOf"];
    for (word, inner) in schema.as_object().unwrap() {
        assert!(known.contains(&word.as_str()), "{word}");
        match word.as_str() {
            "properties" => {
                for (name, inner) in inner.as_object().unwrap() {
                    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
                    assert!((1..=64).contains(&name.len()) && name.chars().all(plain), "{name}");
                    is_taken(inner);
                }
            }
            "items" => is_taken(inner),
            "anyOf" => inner.as_array().unwrap().iter().for_each(is_taken),
            "enum" => assert!(!inner.as_array().unwrap().is_empty()),
            "additionalProperties" => assert_eq!(inner, false),
            _ => (),
        }
    }
}

#[test]
fn the_schemas_hold_only_what_the_api_takes() {
    for sources in [&[][..], &["gmail"], &["mail:a@b.example", "minimum", "x\"}, \"y\": {", ""]] {
        let schema = answer_schema(&question(sources));
        is_taken(&convert_schema(&schema));
        let named =
            convert_schema(&schema)["properties"]["source_contributions"]["items"]["properties"]["name"].clone();
        assert_eq!(named.get("enum").is_some(), !sources.is_empty(), "what was given is still all there is");
    }
    is_taken(&convert_schema(&signals_schema(&event())));
}

#[test]
fn pairs_are_read_as_the_fields_that_were_asked_for() {
    let question = question(&["mail:a@b.example", "bank"]);
    let contributions = json!([{"name": "mail:a@b.example", "value": 0.5}, {"name": "bank", "value": 0}]);
    let verdict = json!({"decision": "still_active", "confidence": 0.5, "reasoning": "r", "evidence": [],
        "source_contributions": contributions});
    let read = Verdict::parse_answer(&restore_fields(&verdict.to_string()), &question).unwrap();
    assert_eq!(read.source_contributions["mail:a@b.example"], 0.5);
    assert_eq!(read.source_contributions["bank"], 0.0);
    let scores = json!([{"name": "task/pay.md", "value": 1}, {"name": "matter/m.md", "value": 0}]);
    let finding = json!({"quote": "paid", "target": null, "scores": scores, "effect": "none", "mutation": null,
        "effect_confidence": 0.5, "reasoning": "r"});
    let answer = json!({"signals": [finding]}).to_string();
    assert_eq!(ExtractAnswer::parse_answer(&restore_fields(&answer), &event()).unwrap().findings()[0].scores.len(), 2);
}

#[test]
fn pairs_of_another_form_stay_and_are_refused_by_the_check() {
    let question = question(&["bank"]);
    let with = |contributions: Value| {
        json!({"decision": "still_active", "confidence": 0.5, "reasoning": "r", "evidence": [],
            "source_contributions": contributions})
        .to_string()
    };
    assert!(Verdict::parse_answer(&restore_fields(&with(json!([{"name": "bank", "value": 1}]))), &question).is_ok());
    assert!(Verdict::parse_answer(&restore_fields(&with(json!({"bank": 1}))), &question).is_ok(), "as others write it");
    for bad in [
        json!([{"name": "bank", "value": 1}, {"name": "bank", "value": 0}]),
        json!([{"name": "bank", "value": 1, "more": 1}]),
        json!([{"name": "bank"}]),
        json!([{"name": "bank", "value": "1"}]),
        json!([{"name": "bank", "value": 2}]),
        json!([{"name": "fax", "value": 1}]),
        json!([]),
        json!(["bank", 1]),
        json!(7),
    ] {
        assert!(Verdict::parse_answer(&restore_fields(&with(bad.clone())), &question).is_err(), "{bad}");
    }
    assert_eq!(restore_fields("no JSON"), "no JSON");
}

//! The schema that is sent, held against a validator and against the check in code.

use crate::{good_answer, question, reservation};
use serde_json::{Value, json};
use steward_activities::steward::clerks::Clerk;
use steward_activities::steward::clerks::rules::RulesClerk;
use steward_domain::steward::clerk::{ClerkCallOutcome, ClerkQuestion, Verdict, answer_schema};

fn questions() -> Vec<ClerkQuestion> {
    vec![
        question(&[]),
        question(&[("a", "gmail")]),
        question(&[("a", "gmail"), ("b", "bank"), ("c", "gmail")]),
        question(&[("a", "gmail"), ("a", "gmail")]),
        question(&[("a", "x\"}, \"y\": {"), ("b", "")]),
    ]
}

fn validator(question: &ClerkQuestion) -> jsonschema::Validator {
    jsonschema::draft202012::new(&answer_schema(question)).unwrap()
}

#[test]
fn the_schema_is_a_json_schema_of_the_strict_subset() {
    for question in questions() {
        let schema = answer_schema(&question);
        jsonschema::draft202012::meta::validate(&schema).unwrap();
        only_strict_words(&schema);
    }
}

/// Strict mode wants every object closed and all its properties required, and few keywords.
fn only_strict_words(schema: &Value) {
    let known =
        ["type", "additionalProperties", "required", "properties", "enum", "minimum", "maximum", "items", "maxItems"];
    for word in schema.as_object().unwrap().keys() {
        assert!(known.contains(&word.as_str()), "{word}");
    }
    if schema["type"] == "object" {
        assert_eq!(schema["additionalProperties"], false);
        let properties = schema["properties"].as_object().unwrap();
        let mut named: Vec<&str> = properties.keys().map(String::as_str).collect();
        let mut required: Vec<&str> = schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        named.sort_unstable();
        required.sort_unstable();
        assert_eq!(named, required);
        properties.values().for_each(only_strict_words);
    }
    if schema["type"] == "array" {
        only_strict_words(&schema["items"]);
    }
    if let Some(words) = schema["enum"].as_array() {
        assert!(!words.is_empty() && words.iter().enumerate().all(|(i, w)| !words[..i].contains(w)), "{words:?}");
    }
}

#[test]
fn the_validator_takes_a_good_answer_and_refuses_bad_ones() {
    let validator = validator(&question(&[("a", "gmail")]));
    assert!(validator.is_valid(&good_answer()));
    for (field, value) in [
        ("confidence", json!(98)),
        ("decision", json!("delete")),
        ("evidence", json!(["signal/invented.md"])),
        ("evidence", json!(["signal/a.md", "signal/a.md"])),
        ("source_contributions", json!({"fax": 1})),
        ("extra", json!(1)),
    ] {
        let mut answer = good_answer();
        answer[field] = value;
        assert!(!validator.is_valid(&answer), "{answer}");
    }
}

/// Every combination of good and bad values for each field, and other shapes than an object.
fn answers() -> Vec<String> {
    let pools: [(&str, &[&str]); 5] = [
        ("decision", &["\"still_active\"", "\"likely_done\"", "\"Done\"", "{\"likely_done\": null}", "null"]),
        ("confidence", &["0", "1", "0.5", "-0.0", "1.0000001", "-1", "\"0.5\"", "1e400", "null"]),
        ("reasoning", &["\"because\"", "\" \"", "\"\"", "7"]),
        (
            "evidence",
            &[
                "[]",
                "[\"signal/a.md\"]",
                "[\"signal/a.md\", \"signal/b.md\"]",
                "[\"signal/a.md\", \"signal/a.md\"]",
                "[\"signal/z.md\"]",
                "[\"a\"]",
                "[null]",
                "{}",
                "\"signal/a.md\"",
            ],
        ),
        (
            "source_contributions",
            &[
                "{}",
                "{\"gmail\": 1}",
                "{\"gmail\": 0.5, \"bank\": 0}",
                "{\"gmail\": 2}",
                "{\"gmail\": 2, \"gmail\": 1}",
                "{\"bank\": 1}",
                "{\"x\\\"}, \\\"y\\\": {\": 1, \"\": 0}",
                "[]",
                "[[\"gmail\", 1]]",
                "null",
            ],
        ),
    ];
    let mut answers = vec![Vec::new()];
    for (_, pool) in &pools {
        answers = answers.iter().flat_map(|a| pool.iter().map(move |v| [a.as_slice(), &[*v]].concat())).collect();
    }
    let object = |values: &[&str]| {
        let fields: Vec<String> = pools.iter().zip(values).map(|((name, _), v)| format!("\"{name}\": {v}")).collect();
        fields
    };
    let mut texts: Vec<String> = answers.iter().map(|a| format!("{{{}}}", object(a).join(", "))).collect();
    texts.extend(answers.iter().map(|a| format!("[{}]", a.join(", "))));
    let good = object(&["\"likely_done\"", "1", "\"because\"", "[\"signal/a.md\"]", "{\"gmail\": 1}"]);
    for i in 0..good.len() {
        let without: Vec<&str> = good.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, f)| f.as_str()).collect();
        texts.push(format!("{{{}}}", without.join(", ")));
        texts.push(format!("{{{}, {}}}", good.join(", "), good[i]));
    }
    texts.push(format!("{{{}, \"extra\": 1}}", good.join(", ")));
    texts
}

#[test]
fn whatever_the_check_accepts_the_schema_allows() {
    let answers = answers();
    for question in questions() {
        let validator = validator(&question);
        let mut accepted = 0;
        for answer in &answers {
            if Verdict::parse_answer(answer, &question).is_ok() {
                accepted += 1;
                let value: Value = serde_json::from_str(answer).unwrap();
                assert!(validator.is_valid(&value), "{answer}");
            }
        }
        assert!(accepted > 0, "no answer to {question:?} was accepted, so nothing was compared");
    }
}

#[tokio::test]
async fn the_rules_answer_within_the_schema() {
    for question in questions() {
        let reply = Clerk::Rules(RulesClerk).ask(&reservation(), &question, None).await;
        let ClerkCallOutcome::Answered { verdict } = reply.outcome else { panic!("{reply:?}") };
        let answer = serde_json::to_value(&verdict).unwrap();
        assert!(validator(&question).is_valid(&answer), "{answer}");
        assert_eq!(Verdict::parse_answer(&answer.to_string(), &question), Ok(verdict));
    }
}

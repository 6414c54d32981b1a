use super::*;

fn question() -> ClerkQuestion {
    let evidence = |slug: &str, source: &str| SignalEvidence {
        source: source.into(),
        reference: RecordPath::parse(&format!("signal/{slug}.md")).unwrap(),
        note: "paid in full".into(),
        created: DateTime::UNIX_EPOCH,
        effect: SignalEffect::Mutation,
        proposed_state: Some(RecordState::Done),
        target_confidence: 0.9,
        effect_confidence: 0.9,
        observations: 0,
        ceiling: Ceiling::Act,
    };
    ClerkQuestion {
        subject: QuestionSubject {
            task: RecordPath::parse("task/pay.md").unwrap(),
            task_name: "Pay".into(),
            matter: RecordPath::parse("matter/m.md").unwrap(),
            matter_name: "M".into(),
            state: RecordState::Open,
            surface_class: SurfaceClass::Normal,
            due: None,
            description_hash: None,
            last_decision: None,
        },
        evidence: vec![evidence("a", "gmail"), evidence("b", "bank")],
        complaint: None,
        asked_at: DateTime::UNIX_EPOCH,
    }
}

fn answer(change: impl Fn(&mut Value)) -> Result<Verdict, VerdictError> {
    let mut value = json!({
        "decision": "likely_done", "confidence": 0.9, "reasoning": "it says so",
        "evidence": ["signal/a.md"], "source_contributions": {"gmail": 1.0, "bank": 0}
    });
    change(&mut value);
    Verdict::parse_answer(&value.to_string(), &question())
}

#[test]
fn a_good_answer_is_taken() {
    assert_eq!(answer(|_| ()).unwrap().decision, Judgement::LikelyDone);
}

#[test]
fn an_answer_outside_the_form_is_refused() {
    assert!(matches!(answer(|v| v["extra"] = json!(1)), Err(VerdictError::Form(_))));
    assert!(matches!(answer(|v| v["decision"] = json!("delete_everything")), Err(VerdictError::Form(_))));
    assert!(matches!(answer(|v| v["confidence"] = json!("high")), Err(VerdictError::Form(_))));
    assert!(matches!(answer(|v| v["evidence"] = json!(["../../etc/passwd"])), Err(VerdictError::Form(_))));
    assert!(matches!(answer(|v| v["decision"] = json!({"likely_done": null})), Err(VerdictError::Form(_))));
    for bad in ["sure! {", "", r#"["likely_done", 0.9, "it says so", ["signal/a.md"], {"gmail": 1, "bank": 0}]"#] {
        assert!(matches!(Verdict::parse_answer(bad, &question()), Err(VerdictError::Form(_))), "{bad}");
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    for bad in [json!(1.01), json!(-0.1), json!(98)] {
        assert!(matches!(answer(|v| v["confidence"] = bad.clone()), Err(VerdictError::Range { .. })));
    }
    assert!(matches!(answer(|v| v["source_contributions"]["gmail"] = json!(7)), Err(VerdictError::Range { .. })));
}

#[test]
fn invented_evidence_and_sources_are_refused() {
    assert_eq!(answer(|v| v["evidence"] = json!(["signal/zzz.md"])), Err(VerdictError::InventedEvidence));
    assert_eq!(answer(|v| v["evidence"] = json!(["signal/a.md", "signal/a.md"])), Err(VerdictError::RepeatedEvidence));
    assert_eq!(answer(|v| v["source_contributions"]["fax"] = json!(0.1)), Err(VerdictError::InventedSource));
}

#[test]
fn every_source_that_was_given_is_weighed() {
    let missing = answer(|v| v["source_contributions"] = json!({"gmail": 1}));
    assert_eq!(missing, Err(VerdictError::MissingSource("bank".into())));
}

#[test]
fn a_change_rests_on_evidence() {
    assert_eq!(answer(|v| v["evidence"] = json!([])), Err(VerdictError::NoEvidence("likely_done")));
    assert!(
        answer(|v| {
            v["evidence"] = json!([]);
            v["decision"] = json!("still_active");
        })
        .is_ok()
    );
}

#[test]
fn reasoning_is_bounded() {
    assert_eq!(answer(|v| v["reasoning"] = json!(" ")), Err(VerdictError::Reasoning));
    assert_eq!(answer(|v| v["reasoning"] = json!("x".repeat(2001))), Err(VerdictError::Reasoning));
}

#[test]
fn the_schema_is_closed_over_the_refs_that_were_given() {
    let schema = answer_schema(&question());
    assert_eq!(schema["properties"]["evidence"]["items"]["enum"], json!(["signal/a.md", "signal/b.md"]));
    assert_eq!(schema["additionalProperties"], json!(false));
    assert_eq!(schema["properties"]["source_contributions"]["required"], json!(["bank", "gmail"]));
}

#[test]
fn a_judgement_is_recalled_only_where_it_holds_and_says_that_nobody_was_asked() {
    let clerk = ClerkMark { tokens: TokenUsage { prompt_tokens: 7, completion_tokens: 3 }, ..ClerkMark::default() };
    let judged = AttributedVerdict { verdict: answer(|_| ()).unwrap(), clerk: clerk.clone() };
    let recalled = judged.clone().recall_for(&question()).unwrap();
    assert_eq!(recalled.verdict, judged.verdict);
    assert_eq!(recalled.clerk, ClerkMark { tokens: TokenUsage::default(), cached: true, ..clerk });
    let mut other = question();
    other.evidence.remove(0);
    assert_eq!(judged.recall_for(&other), None, "it cites what is not there");
}

#[test]
fn marks_of_before_there_was_a_memory_read_as_they_were_meant_and_are_written_alike() {
    let old = json!({"provider": "p", "model": "m", "prompt_sha256": "", "fallback": false,
        "tokens": {"prompt_tokens": 1, "completion_tokens": 2}});
    let mark: ClerkMark = serde_json::from_value(old.clone()).unwrap();
    assert!(!mark.cached);
    assert_eq!(serde_json::to_value(&mark).unwrap(), old);
}

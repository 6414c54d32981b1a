//! Questions and signals for the tests of the clerks, and the tests of cache keys.

mod keys;

use chrono::{DateTime, TimeDelta};
use steward_domain::gates::mode::Ceiling;
use steward_domain::record::entity::{RecordState, SignalEffect, SurfaceClass};
use steward_domain::record::path::RecordPath;
use steward_domain::steward::clerk::{ClerkQuestion, QuestionSubject, SignalEvidence};
use steward_domain::steward::guard::Reservation;

/// A reservation that is read from JSON, as in a payload, because only the ledger can create one.
pub(crate) fn reservation() -> Reservation {
    let travelling = r#"{"call_id": "tick-1/pay/1", "reserved_at": "2026-11-21T09:30:00Z", "probe": false}"#;
    serde_json::from_str(travelling).unwrap()
}

pub(super) fn signal(slug: &str, minute: i64, proposes: Option<RecordState>) -> SignalEvidence {
    SignalEvidence {
        source: "gmail".into(),
        reference: RecordPath::parse(&format!("signal/{slug}.md")).unwrap(),
        note: "paid in full".into(),
        created: DateTime::UNIX_EPOCH + TimeDelta::minutes(minute),
        effect: SignalEffect::Mutation,
        proposed_state: proposes,
        target_confidence: 0.9,
        effect_confidence: 0.8,
        observations: 3,
        ceiling: Ceiling::Act,
    }
}

pub(super) fn question(evidence: Vec<SignalEvidence>) -> ClerkQuestion {
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
        evidence,
        complaint: None,
        asked_at: DateTime::UNIX_EPOCH,
    }
}

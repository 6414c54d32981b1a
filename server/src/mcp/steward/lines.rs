//! How an action is shown: a line of a list, and all of its record.
//!
//! The values are those of the audit record, as the dashboard shows them. What the stewards read, and what people wrote, is outside words.

use crate::mcp::outside::OutsideWords;
use crate::views::action::{Action, ActionDetail, ActionEvidence, ActionGate};
use crate::views::why::explain_closed_gates;
use rmcp::schemars::{self, JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use std::borrow::Cow;
use steward_domain::time::format_seconds;

/// An action on a line.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct ActionLine {
    pub(super) id: String,
    /// `steward-action` is a decision.
    pub(super) kind: String,
    pub(super) at: String,
    /// Outside words: the path of the note.
    pub(super) target: OutsideWords,
    pub(super) decision: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) confidence: Option<f64>,
    /// `recorded`, `shadow`, `pending` or `live`.
    pub(super) disposition: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) field: Option<String>,
    /// Outside words: the old value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) before: Option<OutsideWords>,
    /// Outside words: the new value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<OutsideWords>,
    /// It waits for a person.
    pub(super) waits: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) undo_until: Option<String>,
    /// How it was resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) resolution: Option<String>,
    /// The action that it resolves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) resolves: Option<String>,
    /// Outside words: who resolved it, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) by: Option<OutsideWords>,
}

impl ActionLine {
    pub(super) fn new(action: &Action) -> Self {
        let change = action.change.as_ref();
        let reason = action.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        Self {
            id: action.id.clone(),
            kind: action.kind.clone(),
            at: format_seconds(action.at),
            target: action.target.as_str().into(),
            decision: action.decision.clone(),
            confidence: Some(action.confidence),
            disposition: action.disposition.clone(),
            field: change.map(|change| change.field.clone()),
            before: change.and_then(|change| change.before.clone()).map(Into::into),
            after: change.and_then(|change| change.after.clone()).map(Into::into),
            waits: action.waits,
            undo_until: action.undo_until.map(format_seconds),
            resolution: action.resolution.clone(),
            resolves: action.resolves.clone(),
            by: action.by.as_ref().map(|by| format!("{by}{reason}").into()),
        }
    }
}

/// A check that a change passed or did not pass.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct GateLine {
    gate: String,
    open: bool,
    /// Outside words: the value that decided.
    found: OutsideWords,
    /// Outside words: what it needed.
    needed: OutsideWords,
}

impl From<&ActionGate> for GateLine {
    fn from(gate: &ActionGate) -> Self {
        Self {
            gate: gate.gate.clone(),
            open: gate.open,
            found: gate.found.as_str().into(),
            needed: gate.needed.as_str().into(),
        }
    }
}

/// A signal on which a decision rests.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct EvidenceLine {
    /// Outside words: the path of the signal.
    signal: OutsideWords,
    /// Outside words: who said it.
    source: OutsideWords,
    /// Outside words: the quote.
    quote: OutsideWords,
    target_confidence: f64,
    effect_confidence: f64,
    /// Whether it supports the decision.
    supports: bool,
}

impl From<&ActionEvidence> for EvidenceLine {
    fn from(cited: &ActionEvidence) -> Self {
        Self {
            signal: cited.signal.as_str().into(),
            source: cited.source.as_str().into(),
            quote: cited.words.as_str().into(),
            target_confidence: cited.target_confidence,
            effect_confidence: cited.effect_confidence,
            supports: cited.supports,
        }
    }
}

/// What an action holds beside its line.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct ActionDetails {
    mode: String,
    /// Whether a person can confirm it as it is.
    confirmable: bool,
    gates: Vec<GateLine>,
    evidence: Vec<EvidenceLine>,
    /// Outside words: what a model wrote about it.
    reasoning: OutsideWords,
    /// Outside words: what would have changed it.
    would_change_it: OutsideWords,
    /// Outside words: the tracker's part.
    #[serde(skip_serializing_if = "Option::is_none")]
    tracker: Option<OutsideWords>,
    /// Outside words: why its record cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<OutsideWords>,
}

impl From<&ActionDetail> for ActionDetails {
    fn from(detail: &ActionDetail) -> Self {
        let action = &detail.action;
        Self {
            mode: action.mode.clone(),
            confirmable: action.confirmable,
            gates: action.gates.iter().map(Into::into).collect(),
            evidence: action.evidence.iter().map(Into::into).collect(),
            reasoning: action.reasoning.as_str().into(),
            would_change_it: explain_closed_gates(action).join("\n").into(),
            tracker: detail.tracker.as_deref().map(Into::into),
            problem: action.problem.as_deref().map(Into::into),
        }
    }
}

/// What other tools show of an action. Its schema is that of `steward_actions`, which stands in the list of tools once.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct ShownAction<T>(pub(super) T);

impl<T> JsonSchema for ShownAction<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ShownAction".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object"})
    }
}

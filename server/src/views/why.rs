//! Explains what would have changed a decision: each closed gate, with the value found and the value needed.
//!
//! The values are those of the audit record; no gate is evaluated again. `steward why` and the page of an action show
//! the same text for a gate. What a person can do now is shown as buttons on the page.

use super::action::{Action, ActionGate};
use steward_domain::gates::result::GateName;

/// Explains what would have changed the decision of an action.
#[must_use]
pub fn explain_closed_gates(action: &Action) -> Vec<String> {
    if action.kind != "steward-action" {
        return Vec::new();
    }
    let mut hints = Vec::new();
    match action.disposition.as_str() {
        "pending" if !action.waits => {}
        "pending" if action.confirmable => hints.push("confirm it to apply the change".into()),
        "pending" => {
            hints.push("make the change by hand: a ceiling of `ask` or the matter's note leaves it to you".into());
        }
        "recorded" => return vec!["a new signal that proposes a change".into()],
        _ => {}
    }
    hints.extend(action.gates.iter().filter(|gate| !gate.open).filter_map(explain_gate));
    hints
}

fn explain_gate(gate: &ActionGate) -> Option<String> {
    Some(describe_opening_condition(gate.gate.parse().ok()?, &gate.found, &gate.needed))
}

/// Describes what would have opened a closed gate.
#[must_use]
pub fn describe_opening_condition(gate: GateName, found: &str, needed: &str) -> String {
    match gate {
        GateName::Caller => "a tick that may change records".into(),
        GateName::Mode => "a mode that permits changes: STEWARD_LIVE_MODE=live, or `live_mode` in your file".into(),
        GateName::Confidence => format!("more confidence: it was {found}, and {needed} is needed"),
        GateName::Discretion => {
            format!("stronger evidence, or a source that is right more often: {found}, needs {needed}")
        }
        GateName::Ceiling => format!("a higher ceiling of source, matter or class: it was `{found}`"),
        GateName::RateGuard => "free calls under the caps of the rate guard".into(),
        GateName::Steward => "a human's decision: the steward did not choose it when it saw other messages".into(),
        GateName::SourceBudget => format!("room in the budget of its sources: {found}, needs {needed}"),
        GateName::Trust => format!("{found}: {needed}"),
        GateName::Policy => format!("the `steward:` block of its matter: {found}, needs {needed}"),
    }
}

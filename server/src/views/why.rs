//! What would have changed an answer: the gates that stood closed, in words.
//!
//! The values are those that decided, as the record keeps them; nothing is weighed again. Of a gate `steward why` and the
//! page of an action say the same; what may be done now stands on the page as buttons.

use super::action::{Action, ActionGate};
use steward_domain::gates::result::GateName;

/// What would have changed it.
#[must_use]
pub fn explain_closed_gates(action: &Action) -> Vec<String> {
    if action.kind != "steward-action" {
        return Vec::new();
    }
    let mut hints = Vec::new();
    match action.landing.as_str() {
        "pending" if !action.waits => {}
        "pending" if action.confirmable => hints.push("your confirmation lets it happen".into()),
        "pending" => {
            hints.push("make the change by hand: a ceiling of `ask`, or the matter's note, leaves it to you".into());
        }
        "recorded" => return vec!["a new signal that proposes a change".into()],
        _ => {}
    }
    hints.extend(action.gates.iter().filter(|gate| !gate.open).filter_map(explain_gate));
    hints
}

fn explain_gate(gate: &ActionGate) -> Option<String> {
    let name = GateName::ALL.into_iter().find(|name| name.as_str() == gate.gate)?;
    Some(describe_opening_condition(name, &gate.found, &gate.needed))
}

/// What would have opened a gate that stood closed.
#[must_use]
pub fn describe_opening_condition(gate: GateName, found: &str, needed: &str) -> String {
    match gate {
        GateName::Caller => "a tick that was not asked to change nothing".into(),
        GateName::Mode => "STEWARD_LIVE_MODE=live".into(),
        GateName::Confidence => format!("more confidence: it was {found}, and {needed} is needed"),
        GateName::Discretion => {
            format!("stronger evidence, or a source that was right more often: {found}, needs {needed}")
        }
        GateName::Ceiling => format!("a higher ceiling of source, matter or class: it was `{found}`"),
        GateName::RateGuard => "room under the caps of the rate guard".into(),
        GateName::Steward => "a human's word: it was passed over while other messages spoke".into(),
        GateName::SourceBudget => format!("room for its sources: {found}, needed {needed}"),
        GateName::Trust => format!("{found}: {needed}"),
        GateName::Policy => format!("the `steward:` block of its matter: {found}, needs {needed}"),
        GateName::Brake => "`steward resume`: the fleet was stopped".into(),
    }
}

//! The gate `policy`: what a matter's own note allows, in the `steward:` block of its frontmatter.
//!
//! The block holds for the matter and for all of its tasks. It only narrows: every line of it is one more gate
//! ([`GateName::Policy`]), and no gate opens another. [`mod@read`] parses it, and replaces a malformed value by the most
//! restrictive one. A tick and the router evaluate it as they saw it; when a plan lands, it is evaluated again as it is
//! then, with the changes of the day. A person's own undo and confirmation do not pass here.

mod quiet_hours;
pub mod read;

pub use quiet_hours::QuietHours;

use crate::action::audit::AuditDraft;
use crate::action::mutation::{Mutation, MutationClass};
use crate::gates::mode::{Ceiling, ceiling_gate};
use crate::gates::result::{GateName, GateResult, LandingGate};
use crate::record::path::RecordPath;
use crate::signals::signal::source_key;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

/// What a note allows; what it does not speak of is as it is elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MatterPolicy {
    /// The classes of change that are allowed; none if it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<MutationClass>>,
    /// The fields that may be written, of those that ever may ([`Mutation::fields`]); none if it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<String>>,
    /// Goes with the matter's other ceiling: the lower one holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
    /// When nothing is changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_hours: Option<QuietHours>,
    /// The sources that may lead to live changes, by their names in signals; nobody if it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted_sources: Option<Vec<String>>,
    /// Live changes in 24 h of the matter and its tasks together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daily_budget: Option<u32>,
}

/// A note as it stands when a plan lands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatterPolicyUsage {
    pub matter: RecordPath,
    pub policy: MatterPolicy,
    /// Live changes of the matter and its tasks within [`crate::gates::source_budget::BUDGET_WINDOW`], this one not counted.
    pub spent: u32,
}

impl MatterPolicy {
    /// What a note allows that cannot be read at all: to ask.
    #[must_use]
    pub fn ask_only() -> Self {
        Self { ceiling: Some(Ceiling::Ask), ..Self::default() }
    }

    /// How far it lets a steward go.
    #[must_use]
    pub fn effective_ceiling(&self) -> Ceiling {
        self.ceiling.unwrap_or_default()
    }

    /// The end of its quiet hours, if they are now.
    #[must_use]
    pub fn quiet_until(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.quiet_hours.and_then(|hours| hours.end_if_active(now))
    }

    /// When a steward's turn with a signal ends that has one interval: its quiet hours do not count.
    #[must_use]
    pub fn steward_turn_end(&self, first_seen: DateTime<Utc>, interval: TimeDelta) -> DateTime<Utc> {
        let plain = first_seen + interval;
        let quiet = self.quiet_until(first_seen).or_else(|| self.quiet_until(plain));
        quiet.map_or(plain, |until| until + interval)
    }

    /// Whether a change is not the steward's to make here: its class or its field is not among the allowed ones.
    #[must_use]
    pub fn forbids_mutation(&self, mutation: &Mutation) -> bool {
        !self.allows_class(mutation) || !self.allows_field(mutation)
    }

    fn allows_class(&self, mutation: &Mutation) -> bool {
        self.classes.as_ref().is_none_or(|allowed| allowed.contains(&mutation.class()))
    }

    fn allows_field(&self, mutation: &Mutation) -> bool {
        self.fields.as_ref().is_none_or(|allowed| allowed.iter().any(|field| field == mutation.field()))
    }

    /// A gate for each line that concerns a change that rests on these sources; none where the note is silent. The
    /// ceiling has a gate of its own, and the daily budget is evaluated at landing.
    pub(crate) fn evaluate_gates(&self, mutation: &Mutation, sources: &[&str], at: DateTime<Utc>) -> Vec<GateResult> {
        let mut gates = Vec::new();
        let mut gate =
            |open, found: String, needed: String| gates.push(GateResult::new(GateName::Policy, open, found, needed));
        if let Some(allowed) = &self.classes {
            let words: Vec<&str> = allowed.iter().map(|class| class.as_str()).collect();
            let found = format!("class {}", mutation.class().as_str());
            gate(self.allows_class(mutation), found, format_allowed("classes", &words));
        }
        if let Some(allowed) = &self.fields {
            let words: Vec<&str> = allowed.iter().map(String::as_str).collect();
            gate(self.allows_field(mutation), format!("field {}", mutation.field()), format_allowed("fields", &words));
        }
        if let Some(trusted) = &self.trusted_sources {
            let is_trusted = |source: &&&str| trusted.iter().any(|name| source_key(name) == source_key(source));
            let stranger = sources.iter().find(|source| !is_trusted(source));
            let shown = stranger.or(sources.first()).map_or_else(|| "no source".to_owned(), |s| format!("source {s}"));
            let open = !sources.is_empty() && stranger.is_none();
            gate(open, shown, format!("trusted_sources alone, {} named", trusted.len()));
        }
        if let Some(hours) = self.quiet_hours {
            gate(
                hours.end_if_active(at).is_none(),
                hours.format_local_time(at),
                format!("outside of quiet_hours {hours}"),
            );
        }
        gates
    }
}

fn format_allowed(key: &str, words: &[&str]) -> String {
    if words.is_empty() { format!("{key}: none is allowed") } else { format!("{key}: {}", words.join(", ")) }
}

/// The gates that the notes close when a plan lands, and the open ones of their daily budgets: what was open when it was
/// decided stands in the record already. Most plans meet one note; a task that moves meets those of both matters.
pub(crate) fn landing_gates(draft: &AuditDraft, notes: &[MatterPolicyUsage], now: DateTime<Utc>) -> Vec<LandingGate> {
    let Some(mutation) = draft.proposal.as_ref().map(|proposal| &proposal.mutation) else { return Vec::new() };
    let sources: Vec<&str> = draft.evidence.iter().map(|cited| cited.source.as_str()).collect();
    let mut gates = Vec::new();
    for MatterPolicyUsage { matter, policy, spent } in notes {
        gates.extend(policy.evaluate_gates(mutation, &sources, now).into_iter().filter(|gate| !gate.open));
        if policy.effective_ceiling() < Ceiling::Act {
            gates.push(ceiling_gate(policy.effective_ceiling()));
        }
        if let Some(budget) = policy.daily_budget {
            let found = format!("{spent} live changes in 24 h under {matter}");
            let needed = format!("fewer than daily_budget {budget}");
            gates.push(GateResult::new(GateName::Policy, *spent < budget, found, needed));
        }
    }
    gates.into_iter().map(LandingGate::waiting).collect()
}

#[cfg(test)]
mod tests;

//! The gate `policy`: what a matter's own note allows, in the `steward:` block of its frontmatter.
//!
//! The block applies to the matter and all of its tasks. It must only narrow what is allowed: every line adds a gate
//! ([`GateName::Policy`]), and no gate opens another. [`mod@read`] parses the block, and replaces a malformed value by
//! the most restrictive one. A tick and the router evaluate the policy that they observed. It is evaluated again when a
//! plan is applied, with the policy of that moment and the changes of the day. A person's undo is not held by these
//! gates, and neither is a confirmation.

mod quiet_hours;
pub mod read;

pub use quiet_hours::{QuietHours, QuietHoursError};

use crate::action::audit::AuditDraft;
use crate::action::mutation::{Mutation, MutationClass};
use crate::gates::mode::{Ceiling, ceiling_gate};
use crate::gates::result::{GateName, GateResult, LandingGate};
use crate::record::path::RecordPath;
use crate::signals::signal::source_key;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

/// What a matter's note allows. A missing line restricts nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MatterPolicy {
    /// The classes of change that are allowed. An empty list allows none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<MutationClass>>,
    /// The fields that may be written, out of [`Mutation::writable_fields`]. An empty list allows none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<String>>,
    /// The ceiling of the block. The lower one of this and the matter's `steward_ceiling` holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
    /// The hours in which nothing is changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_hours: Option<QuietHours>,
    /// The sources that may lead to live changes, by their names in signals. An empty list allows none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted_sources: Option<Vec<String>>,
    /// The limit of live changes in 24 h, for the matter and its tasks together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daily_budget: Option<u32>,
}

/// A matter's policy when a plan is applied, and how much of its budget is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatterPolicyUsage {
    pub matter: RecordPath,
    pub policy: MatterPolicy,
    /// The live changes of the matter and its tasks within [`crate::gates::source_budget::BUDGET_WINDOW`], without this
    /// one.
    pub spent: u32,
}

impl MatterPolicy {
    /// The policy of a note that cannot be read at all: the ceiling is `ask`.
    #[must_use]
    pub fn ask_only() -> Self {
        Self { ceiling: Some(Ceiling::Ask), ..Self::default() }
    }

    /// How far the note lets a steward go.
    #[must_use]
    pub fn effective_ceiling(&self) -> Ceiling {
        self.ceiling.unwrap_or_default()
    }

    /// The end of the quiet hours if `now` is within them.
    #[must_use]
    pub fn quiet_until(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.quiet_hours.and_then(|hours| hours.end_if_active(now))
    }

    /// When the steward's turn with a signal ends. A turn lasts one interval, and the quiet hours do not count.
    #[must_use]
    pub fn steward_turn_end(&self, first_seen: DateTime<Utc>, interval: TimeDelta) -> DateTime<Utc> {
        let end = first_seen + interval;
        let quiet = self.quiet_until(first_seen).or_else(|| self.quiet_until(end));
        quiet.map_or(end, |until| until + interval)
    }

    /// Whether the note forbids the steward this change, because its class or its field is not allowed.
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

    /// Evaluates a gate for each line of the note. A missing line has no gate. The ceiling has a gate of its own, and
    /// the daily budget is evaluated when the plan is applied.
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
            let untrusted = sources.iter().find(|source| !is_trusted(source));
            let shown = untrusted.or(sources.first()).map_or_else(|| "no source".to_owned(), |s| format!("source {s}"));
            let open = !sources.is_empty() && untrusted.is_none();
            gate(open, shown, format!("only trusted_sources ({} listed)", trusted.len()));
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

/// The gates that the notes close when a plan is applied, and the gates of their daily budgets, open or closed.
///
/// Other open gates are left out, because the record holds them since the decision. Most plans concern one note. A task
/// that moves concerns the notes of both matters.
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

//! The ceiling that a person sets on a source: its plan and its audit record.
//!
//! It changes one field of the source's instinct on the one write path, and can be undone. It is no class of mutation,
//! so no clerk and no signal can propose it. Whether the cases support a source that acts is decided by
//! [`crate::trust::report::sender`].

use crate::action::audit::{AuditDraft, WorkflowRef};
use crate::action::plan::{ActionId, Disposition, Plan, PlanBasis, PlannedChange};
use crate::gates::mode::{Ceiling, Mode};
use crate::record::entity::Instinct;
use crate::record::frontmatter::RecordFields;
use crate::record::path::{RecordKind, RecordPath};
use crate::trust::mark::{TrustMark, TrustSubject, short_source_name};
use chrono::{DateTime, Utc};
use serde_json::Value;

/// The field of an instinct.
pub const FIELD: &str = "ceiling";
/// The longest name of a person that a record keeps, in characters.
const MAX_BY_CHARS: usize = 200;

/// A person's wish to set the ceiling of a source.
#[derive(Clone, Debug)]
pub struct CeilingRequest<'a> {
    /// The source's [`crate::signals::signal::source_key`].
    pub source: &'a str,
    /// Its name in the newest case. Untrusted.
    pub name: &'a str,
    pub to: Ceiling,
    /// The person's name, as they gave it. Untrusted.
    pub by: &'a str,
    /// When the person asked for it.
    pub at: DateTime<Utc>,
    /// The mode of the process that holds the vault.
    pub mode: Mode,
    pub workflow: WorkflowRef,
}

impl CeilingRequest<'_> {
    /// Whether an instinct with these fields has the ceiling already.
    #[must_use]
    pub fn is_set_in(&self, fields: &RecordFields) -> bool {
        fields.get(FIELD).and_then(Value::as_str) == Some(self.to.as_str())
    }

    /// Plans the change of one instinct with these fields.
    ///
    /// The plan's id comes from the path, the moment and the wish, so it is the same for every try.
    #[must_use]
    pub fn plan_for_instinct(&self, instinct: &RecordPath, fields: &RecordFields) -> Plan {
        let from = Instinct::read(fields).ceiling;
        let written = fields.get(FIELD).filter(|value| !value.is_null());
        let mark = TrustMark::CeilingSet {
            subject: TrustSubject::Source(self.source.to_owned()),
            name: short_source_name(self.source, self.name),
            from,
            to: self.to,
            by: self.by.chars().take(MAX_BY_CHARS).collect(),
        };
        let (kind, at) = (mark.action_kind(), crate::time::format_millis(self.at));
        let id = ActionId::derive(&[kind.as_str(), instinct.as_str(), self.to.as_str(), &at]);
        let draft = AuditDraft {
            mode: self.mode,
            disposition: Disposition::Live,
            trust: Some(mark),
            ..AuditDraft::new_recorded(kind, id, instinct.clone(), RecordKind::Instinct, self.workflow.clone(), self.at)
        };
        let value = Value::from(self.to.as_str());
        let change = PlannedChange::Set { field: FIELD.to_owned(), expect: written.cloned(), value };
        Plan { draft, basis: PlanBasis::Fields, change }
    }
}

#[cfg(test)]
mod tests;

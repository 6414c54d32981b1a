//! The audit record of a mapping that a person accepted.
//!
//! Records name the mapping under which they were made by its hash. This record holds the mapping itself, so that such a
//! change can be undone after the mapping was replaced.

use crate::action::audit::{ActionKind, AuditDraft, WorkflowRef};
use crate::action::plan::{ActionId, Plan, PlanBasis, PlannedChange};
use crate::record::mapping::VaultMapping;
use crate::record::path::{PathError, RecordKind, RecordPath};
use chrono::{DateTime, Utc};

/// The subject of these records. It has no file, and no source's key has a dot.
const SUBJECT: &str = "vault.mapping";

/// Plans the record of an acceptance. `by` is the person's name, as they gave it.
///
/// # Errors
/// [`PathError`] if the name of the subject is invalid. It cannot happen.
pub fn plan_acceptance(mapping: &VaultMapping, by: &str, now: DateTime<Utc>) -> Result<Plan, PathError> {
    let (kind, hash) = (ActionKind::MappingAccepted, mapping.hash());
    let target = RecordPath::new(RecordKind::Instinct, SUBJECT)?;
    let id = ActionId::derive(&[kind.as_str(), hash.as_str(), &crate::time::format_millis(now)]);
    let workflow = WorkflowRef::default();
    let draft = AuditDraft {
        reasoning: format!("Accepted by {by}."),
        ..AuditDraft::new_recorded(kind, id, target, RecordKind::Instinct, workflow, now)
    };
    Ok(Plan { draft, basis: PlanBasis::Fields, change: PlannedChange::AcceptMapping(Box::new(mapping.clone())) })
}

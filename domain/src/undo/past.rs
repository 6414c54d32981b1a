//! The other changes of a record: which of them must be undone first, and what they made of a set.
//!
//! All of it comes from the audit records, which are the truth. A record that is not one that Steward
//! writes may bar the way of an older one, but its lines are not followed.

use super::{Refusal, changed_by};
use crate::audit::{ActionKind, AuditRecord, FieldPatch, short_name};
use crate::frontmatter::SetStep;
use crate::mutation::Mutation;
use crate::path::RecordPath;
use crate::plan::{ActionId, is_set};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How many characters the moment in a record's name has.
pub const MOMENT_CHARS: usize = 19;

/// A change that was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    pub record: AuditRecord,
    /// The number of the record by which it was undone.
    pub undone: Option<u64>,
}

impl Past {
    fn patches(&self) -> &[FieldPatch] {
        patches_of(&self.record)
    }
}

/// Whether a file of this name may be the record of a change of the target.
#[must_use]
pub fn is_of(file_name: &str, target: &RecordPath) -> bool {
    let named = file_name.strip_suffix(".md").and_then(|name| name.strip_suffix(&short_name(target)));
    let Some((kind, moment)) = named.and_then(|name| name.strip_suffix('-')?.rsplit_once('-')) else { return false };
    let changes = [ActionKind::Action, ActionKind::Confirmed].iter().any(|k| k.word() == kind);
    changes && moment.len() == MOMENT_CHARS
}

/// The newer changes of the same field, or the same member of a set, that stand: what is to be undone first, in
/// that order.
#[must_use]
pub fn newer(record: &AuditRecord, past: &[Past]) -> Vec<ActionId> {
    let ours = patches_of(record);
    let bars = |p: &&Past| p.patches().iter().any(|theirs| ours.iter().any(|patch| touch(patch, theirs)));
    let mut newer: Vec<&Past> =
        past.iter().filter(|p| p.record.seq > record.seq && p.undone.is_none()).filter(bars).collect();
    newer.sort_by_key(|p| Reverse(p.record.seq));
    newer.into_iter().map(|p| p.record.draft.id.clone()).collect()
}

/// Refuses while a newer change of the same field, or the same member of a set, stands.
pub(super) fn check_order(record: &AuditRecord, past: &[Past]) -> Result<(), Refusal> {
    match newer(record, past).first() {
        None => Ok(()),
        Some(newest) => Err(Refusal::NotTheNewest {
            id: record.draft.id.to_string(),
            fields: patches_of(record).iter().map(|patch| patch.field.clone()).collect(),
            newer: newest.to_string(),
        }),
    }
}

fn patches_of(record: &AuditRecord) -> &[FieldPatch] {
    record.undo_recipe.as_ref().map_or(&[], |recipe| &recipe.vault_patch)
}

fn touch(a: &FieldPatch, b: &FieldPatch) -> bool {
    let apart = matches!((member(a), member(b)), (Some(a), Some(b)) if a != b);
    a.field == b.field && !apart
}

fn member(patch: &FieldPatch) -> Option<String> {
    match changed_by(patch) {
        Some(Mutation::Related { member, .. }) => Some(member),
        Some(Mutation::StateChange { .. } | Mutation::ContextEdit { .. } | Mutation::ParentMatter { .. }) | None => {
            None
        }
    }
}

/// What is known of the life of the set that is concerned, in its order; nothing for other fields.
pub(super) fn life(patches: &[FieldPatch], past: &[Past]) -> Vec<SetStep> {
    let [ours] = patches else { return Vec::new() };
    if !is_set(&ours.field) {
        return Vec::new();
    }
    let mut steps = BTreeMap::new();
    for p in past {
        let [theirs] = p.patches() else { continue };
        let Some(change) = theirs.undo.clone().filter(|_| theirs.field == ours.field && member(theirs).is_some())
        else {
            continue;
        };
        steps.insert(p.record.seq, SetStep::Made(p.record.seq, change));
        if let Some(at) = p.undone {
            steps.insert(at, SetStep::TakenBack(p.record.seq));
        }
    }
    steps.into_values().collect()
}

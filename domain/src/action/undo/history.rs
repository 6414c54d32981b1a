//! The change history of a target: the changes that must be undone first, and the steps of a set.
//!
//! All of it comes from the audit records. A forged record can block the undo of an older one, but its lines must not
//! be used.

use super::ResolutionRefusal;
use super::infer_related_mutation;
use crate::action::audit::{ActionKind, AuditRecord, FieldPatch, short_name};
use crate::action::mutation::Mutation;
use crate::action::plan::{ActionId, is_set_field};
use crate::record::frontmatter::SetHistoryStep;
use crate::record::path::{RecordKind, RecordPath};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The length of the moment in a record's name, in characters.
pub const MOMENT_CHARS: usize = 19;

/// A change that was applied.
#[derive(Clone, Debug, PartialEq)]
pub struct PastChange {
    pub record: AuditRecord,
    /// The number of the record that undid it, if there is one.
    pub undone: Option<u64>,
}

impl PastChange {
    fn undo_patches(&self) -> &[FieldPatch] {
        recipe_patches(&self.record)
    }
}

/// Whether a file with this name may be the record of a change of the target.
#[must_use]
pub fn is_change_record(file_name: &str, target: &RecordPath, kind: RecordKind) -> bool {
    let named = file_name.strip_suffix(".md").and_then(|name| name.strip_suffix(&short_name(target, kind)));
    let Some((kind, moment)) = named.and_then(|name| name.strip_suffix('-')?.rsplit_once('-')) else { return false };
    let changes =
        [ActionKind::Action, ActionKind::Confirmed, ActionKind::CeilingSet].iter().any(|k| k.as_str() == kind);
    changes && moment.len() == MOMENT_CHARS
}

/// The newer changes of the same field, or of the same member of a set, that are not undone. They must be undone
/// first, in this order.
#[must_use]
pub fn find_newer_changes(record: &AuditRecord, past: &[PastChange]) -> Vec<ActionId> {
    let ours = recipe_patches(record);
    let overlaps =
        |p: &&PastChange| p.undo_patches().iter().any(|theirs| ours.iter().any(|patch| is_overlapping(patch, theirs)));
    let mut newer: Vec<&PastChange> =
        past.iter().filter(|p| p.record.seq > record.seq && p.undone.is_none()).filter(overlaps).collect();
    newer.sort_by_key(|p| Reverse(p.record.seq));
    newer.into_iter().map(|p| p.record.draft.id.clone()).collect()
}

/// Refuses an undo while a newer change of the same field, or of the same member of a set, is not undone.
pub(super) fn check_undo_order(record: &AuditRecord, past: &[PastChange]) -> Result<(), ResolutionRefusal> {
    match find_newer_changes(record, past).first() {
        None => Ok(()),
        Some(newest) => Err(ResolutionRefusal::NotTheNewest {
            id: record.draft.id.to_string(),
            fields: recipe_patches(record).iter().map(|patch| patch.field.clone()).collect(),
            newer: newest.to_string(),
        }),
    }
}

fn recipe_patches(record: &AuditRecord) -> &[FieldPatch] {
    record.undo_recipe.as_ref().map_or(&[], |recipe| &recipe.vault_patch)
}

fn is_overlapping(a: &FieldPatch, b: &FieldPatch) -> bool {
    let other_members = matches!((changed_member(a), changed_member(b)), (Some(a), Some(b)) if a != b);
    a.key() == b.key() && !other_members
}

fn changed_member(patch: &FieldPatch) -> Option<String> {
    match infer_related_mutation(patch) {
        Some(Mutation::Related { member, .. }) => Some(member),
        Some(Mutation::StateChange { .. } | Mutation::ContextEdit { .. } | Mutation::ParentMatter { .. }) | None => {
            None
        }
    }
}

/// The known history of the affected set, in order. Empty for other fields.
pub(super) fn collect_set_steps(patches: &[FieldPatch], past: &[PastChange]) -> Vec<SetHistoryStep> {
    let [ours] = patches else { return Vec::new() };
    if !is_set_field(&ours.field) {
        return Vec::new();
    }
    let mut steps = BTreeMap::new();
    for p in past {
        let [theirs] = p.undo_patches() else { continue };
        let Some(change) =
            theirs.undo.clone().filter(|_| theirs.key() == ours.key() && changed_member(theirs).is_some())
        else {
            continue;
        };
        steps.insert(p.record.seq, SetHistoryStep::Applied(p.record.seq, change));
        if let Some(at) = p.undone {
            steps.insert(at, SetHistoryStep::Reverted(p.record.seq));
        }
    }
    steps.into_values().collect()
}

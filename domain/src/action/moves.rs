//! The audit record of notes that people renamed or moved.
//!
//! Everything that Steward keeps about a note follows from this record, so that a rebuilt index finds the same.

use crate::action::audit::{ActionKind, AuditDraft, WorkflowRef};
use crate::action::plan::{ActionId, Plan, PlanBasis, PlannedChange};
use crate::record::moves::NoteMove;
use crate::record::path::{PathError, RecordKind, RecordPath};
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

/// The subject of these records. It has no file, and no source's key has a dot.
const SUBJECT: &str = "vault.notes";
/// The most bytes of paths in one record: half of what frontmatter may have, which leaves room for quotes and keys.
const MAX_PATH_BYTES: usize = 32 * 1024;

/// Plans the records of moves, one if they fit into one. `by` says who noticed it: a person's name, or that the files
/// showed it.
///
/// Moves that depend on each other, such as two notes that changed places, stay in one record.
///
/// # Errors
/// [`PathError`] if the name of the subject is invalid. It cannot happen.
pub fn plan_moves(moves: &[NoteMove], by: &str, now: DateTime<Utc>) -> Result<Vec<Plan>, PathError> {
    let mut plans = Vec::new();
    let mut batch: Vec<NoteMove> = Vec::new();
    for group in group_connected(moves) {
        let bytes = |moves: &[NoteMove]| moves.iter().map(count_bytes).sum::<usize>();
        if !batch.is_empty() && bytes(&batch) + bytes(&group) > MAX_PATH_BYTES {
            plans.push(plan_batch(std::mem::take(&mut batch), by, now)?);
        }
        batch.extend(group);
    }
    if !batch.is_empty() {
        plans.push(plan_batch(batch, by, now)?);
    }
    Ok(plans)
}

fn plan_batch(moves: Vec<NoteMove>, by: &str, now: DateTime<Utc>) -> Result<Plan, PathError> {
    let kind = ActionKind::NotesMoved;
    let named: Vec<String> = moves.iter().map(|m| format!("{} {:?}", m.from, m.to)).collect();
    let at = crate::time::format_millis(now);
    let parts: Vec<&str> = [kind.as_str(), &at].into_iter().chain(named.iter().map(String::as_str)).collect();
    let id = ActionId::derive(&parts);
    let target = RecordPath::new(RecordKind::Instinct, SUBJECT)?;
    let workflow = WorkflowRef::default();
    let draft = AuditDraft {
        reasoning: format!("Noticed by {by}."),
        ..AuditDraft::new_recorded(kind, id, target, RecordKind::Instinct, workflow, now)
    };
    Ok(Plan { draft, basis: PlanBasis::Fields, change: PlannedChange::RecordMoves(moves) })
}

fn count_bytes(moved: &NoteMove) -> usize {
    moved.from.as_str().len() + moved.to.as_ref().map_or(0, |to| to.as_str().len())
}

/// Moves that share a path, in groups; the groups are in the order of their first move.
fn group_connected(moves: &[NoteMove]) -> Vec<Vec<NoteMove>> {
    let mut groups: Vec<Vec<NoteMove>> = Vec::new();
    let mut group_of: BTreeMap<&RecordPath, usize> = BTreeMap::new();
    for moved in moves {
        let paths = || std::iter::once(&moved.from).chain(&moved.to);
        let known: Vec<usize> = paths().filter_map(|path| group_of.get(path).copied()).collect();
        let group = known.first().copied().unwrap_or_else(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        for other in known.into_iter().filter(|other| *other != group) {
            let joined = std::mem::take(&mut groups[other]);
            groups[group].extend(joined);
            group_of.values_mut().filter(|of| **of == other).for_each(|of| *of = group);
        }
        groups[group].push(moved.clone());
        group_of.extend(paths().map(|path| (path, group)));
    }
    groups.retain(|group| !group.is_empty());
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RecordPath {
        RecordPath::parse(text).unwrap()
    }

    fn moved(from: &str, to: &str) -> NoteMove {
        NoteMove { from: path(from), to: Some(path(to)) }
    }

    fn now() -> DateTime<Utc> {
        crate::time::parse("2026-11-24T10:00:00Z").unwrap()
    }

    #[test]
    fn moves_that_depend_on_each_other_stay_in_one_record() {
        let long = "x".repeat(200);
        let mut moves: Vec<NoteMove> =
            (0..200).map(|n| moved(&format!("{long}{n}.md"), &format!("new/{long}{n}.md"))).collect();
        // A cycle whose parts lie far from each other.
        moves.insert(0, moved("a.md", "b.md"));
        moves.insert(100, moved("c.md", "a.md"));
        moves.push(moved("b.md", "c.md"));
        let plans = plan_moves(&moves, "the files", now()).unwrap();
        assert!(plans.len() > 1, "200 moves of 400 bytes do not fit into one record");
        let all: usize = plans.iter().map(|plan| plan.recorded_moves().len()).sum();
        assert_eq!(all, moves.len());
        let with_cycle = |plan: &&Plan| plan.recorded_moves().iter().any(|m| m.from.as_str().len() == 4);
        let cycle: Vec<&Plan> = plans.iter().filter(with_cycle).collect();
        assert_eq!(cycle.len(), 1);
        assert_eq!(cycle[0].recorded_moves().iter().filter(|m| m.from.as_str().len() == 4).count(), 3);
        let ids: std::collections::BTreeSet<_> = plans.iter().map(Plan::id).collect();
        assert_eq!(ids.len(), plans.len(), "each record has its own id");
    }

    #[test]
    fn nothing_is_recorded_if_nothing_moved() {
        assert!(plan_moves(&[], "the files", now()).unwrap().is_empty());
    }
}

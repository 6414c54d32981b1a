//! The changes that were made to one record, read from the audit records.
//!
//! The names in `event/` show which audit records may be about the record. So one listing is read, and no other file
//! is opened. The name of an undo's record shows which change was reverted. An audit record that cannot be read blocks
//! only the undo of older changes: its name holds the moment of its decision.

use crate::action::chain::{self, ChainError};
use crate::files::root::VaultRoot;
use steward_domain::action::audit::{ActionKind, AuditRecord};
use steward_domain::action::undo::{MOMENT_CHARS, PastChange, is_change_record};
use steward_domain::record::moves::MoveHistory;
use steward_domain::record::path::{RecordKind, RecordPath};

/// Every change of the record that this action changed, in no order.
///
/// `names` are the names in `event/`; if they are `None`, the folder is listed.
pub(crate) fn read_target_changes(
    root: &VaultRoot,
    record: &AuditRecord,
    names: Option<&[String]>,
    moves: &MoveHistory,
) -> Result<Vec<PastChange>, ChainError> {
    let target = &record.draft.target;
    // Records are named after the path that the target had.
    let mut paths = vec![target.clone()];
    paths.extend(moves.list_former_paths(target));
    let listed = match names {
        Some(_) => Vec::new(),
        None => root.list_names(RecordKind::Event)?,
    };
    let is_ours = |name: &&String| paths.iter().any(|path| is_change_record(name, path, record.draft.target_kind));
    let change_records = names.unwrap_or(&listed).iter().filter(is_ours);
    let mut past = Vec::new();
    for path in change_records.filter_map(|name| RecordPath::parse(&format!("event/{name}")).ok()) {
        let found = match chain::read_record_if_present(root, &path) {
            Err(ChainError::Record { .. }) if is_decided_before(&path, record) => None,
            found => found?,
        };
        let Some(found) = found.filter(|found| !found.has_ended(moves)) else { continue };
        let found = found.follow_moves(moves);
        let draft = &found.draft;
        if &draft.target != target || found.undo_recipe.is_none() || draft.record_path().as_ref() != Ok(&path) {
            continue;
        }
        let undone = match draft.follow_up_path(ActionKind::Reversed) {
            Ok(follower) => chain::read_record_if_present(root, &follower)?.map(|undo| undo.seq),
            Err(_) => None,
        };
        past.push(PastChange { record: found, undone });
    }
    Ok(past)
}

/// Whether an action was decided before this one, by the names alone.
///
/// A confirmation is named after the action that it confirms, so it may be newer than its name says.
fn is_decided_before(path: &RecordPath, record: &AuditRecord) -> bool {
    let Ok(own) = record.draft.record_path() else { return false };
    let decided = format!("{}-", ActionKind::Action.as_str());
    let moment =
        |path: &RecordPath| path.slug().strip_prefix(&decided).map(|rest| rest.get(..MOMENT_CHARS).map(str::to_owned));
    matches!((moment(path), moment(&own)), (Some(a), Some(b)) if a < b)
}

//! The changes that were made to one record, from the audit records themselves.
//!
//! The names in `event/` tell which records may be about it, so one listing is read and no other record is
//! opened. What was taken back is told by the name that an undo's record has. One that cannot be read bars the
//! way of older ones only: when it was decided stands in its name.

use crate::action::chain::{self, ChainError};
use crate::files::root::{VaultRoot, VaultRootError};
use steward_domain::action::audit::{ActionKind, AuditRecord};
use steward_domain::action::undo::{MOMENT_CHARS, PastChange, is_change_record};
use steward_domain::record::path::{RecordKind, RecordPath};

/// Every change of the record that this one changed, in no order; by these names of `event/`, or those of now.
pub(crate) fn read_target_changes(
    root: &VaultRoot,
    record: &AuditRecord,
    names: Option<&[String]>,
) -> Result<Vec<PastChange>, ChainError> {
    let target = &record.draft.target;
    let of_now = match names {
        Some(_) => Vec::new(),
        None => root.list_names(RecordKind::Event)?,
    };
    let ours = names.unwrap_or(&of_now).iter().filter(|name| is_change_record(name, target));
    let mut past = Vec::new();
    for path in ours.filter_map(|name| RecordPath::parse(&format!("event/{name}")).ok()) {
        let found = match read_record_if_present(root, &path) {
            Err(ChainError::Record { .. }) if is_decided_before(&path, record) => None,
            found => found?,
        };
        let Some(found) = found else { continue };
        let draft = &found.draft;
        if &draft.target != target || found.undo_recipe.is_none() || draft.record_path().as_ref() != Ok(&path) {
            continue;
        }
        let undone = match draft.follow_up_path(ActionKind::Reversed) {
            Ok(follower) => read_record_if_present(root, &follower)?.map(|undo| undo.seq),
            Err(_) => None,
        };
        past.push(PastChange { record: found, undone });
    }
    Ok(past)
}

/// Told by names alone; a confirmation is named after what it answers, and may be newer than that.
fn is_decided_before(path: &RecordPath, record: &AuditRecord) -> bool {
    let Ok(own) = record.draft.record_path() else { return false };
    let decided = format!("{}-", ActionKind::Action.as_str());
    let moment =
        |path: &RecordPath| path.slug().strip_prefix(&decided).map(|rest| rest.get(..MOMENT_CHARS).map(str::to_owned));
    matches!((moment(path), moment(&own)), (Some(a), Some(b)) if a < b)
}

/// A record; `None` when it is not there.
fn read_record_if_present(root: &VaultRoot, path: &RecordPath) -> Result<Option<AuditRecord>, ChainError> {
    match chain::read_audit_record(root, path) {
        Ok((record, _)) => Ok(Some(record)),
        Err(ChainError::Root(VaultRootError::Missing { .. })) => Ok(None),
        Err(e) => Err(e),
    }
}

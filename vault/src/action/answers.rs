//! How an action stands now: the answer of a person that holds, and the newest reopening before it.
//!
//! An answer that was taken back leaves its record, and so does the reopening. Later answers are named after the
//! reopening. So the names alone lead from the action to the answer that holds.

use crate::action::chain;
use crate::action::writer::ApplyError;
use crate::files::root::VaultRoot;
use steward_domain::action::audit::{ActionKind, AuditDraft, AuditRecord, Reopening};
use steward_domain::record::path::{PathError, RecordPath};

/// The kinds of answers. An action has at most one that holds.
const ANSWERS: [ActionKind; 6] = [
    ActionKind::Reversed,
    ActionKind::Confirmed,
    ActionKind::Dismissed,
    ActionKind::Raised,
    ActionKind::Right,
    ActionKind::Wrong,
];

/// An audit record and its path.
#[derive(Clone, Debug)]
pub struct FoundRecord {
    pub path: RecordPath,
    pub record: AuditRecord,
}

/// How an action stands now.
#[derive(Clone, Debug, Default)]
pub struct ActionStanding {
    /// The answer that holds.
    pub answer: Option<FoundRecord>,
    /// The newest reopening, if an earlier answer was taken back.
    pub reopened: Option<Reopening>,
    /// The answer that it took back.
    pub taken_back: Option<AuditRecord>,
}

/// Reads how an action stands.
///
/// # Errors
/// [`ApplyError::Chain`] if one of its answers exists and cannot be read.
pub fn read_standing(root: &VaultRoot, action: &AuditDraft) -> Result<ActionStanding, ApplyError> {
    let mut standing = ActionStanding::default();
    while let Some(answer) = find_answer(root, action, standing.reopened.as_ref())? {
        let reopening = match answer.record.draft.kind.can_be_taken_back() {
            true => find_reopening(root, &answer.record.draft)?,
            false => None,
        };
        let Some(reopening) = reopening else {
            return Ok(ActionStanding { answer: Some(answer), ..standing });
        };
        let draft = reopening.record.draft;
        // Only records that somebody edited could lead back, and then for ever.
        if standing.reopened.as_ref().map_or(action.timestamp, |before| before.at) >= draft.timestamp {
            return Ok(ActionStanding { answer: Some(answer), ..standing });
        }
        standing.reopened = Some(Reopening { id: draft.id, at: draft.timestamp });
        standing.taken_back = Some(answer.record);
    }
    Ok(standing)
}

/// Finds the record that took an answer back; `None` if it holds.
///
/// # Errors
/// [`ApplyError::Chain`] if it exists and cannot be read.
pub fn find_reopening(root: &VaultRoot, answer: &AuditDraft) -> Result<Option<FoundRecord>, ApplyError> {
    let found = read_if_present(root, answer.follow_up_path(ActionKind::Reopened))?;
    // A copied or edited file takes nothing back.
    let is_about_it = |found: &FoundRecord| {
        let draft = &found.record.draft;
        draft.kind == ActionKind::Reopened
            && draft.record_path().as_ref() == Ok(&found.path)
            && draft.resolution.as_ref().is_some_and(|resolution| resolution.action_id == answer.id)
    };
    Ok(found.filter(is_about_it))
}

fn find_answer(
    root: &VaultRoot,
    action: &AuditDraft,
    reopened: Option<&Reopening>,
) -> Result<Option<FoundRecord>, ApplyError> {
    for kind in ANSWERS {
        if let Some(found) = read_if_present(root, action.answer_path(kind, reopened))? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn read_if_present(root: &VaultRoot, path: Result<RecordPath, PathError>) -> Result<Option<FoundRecord>, ApplyError> {
    let path = path.map_err(|e| ApplyError::Form(e.to_string()))?;
    Ok(chain::read_record_if_present(root, &path)?.map(|record| FoundRecord { path, record }))
}

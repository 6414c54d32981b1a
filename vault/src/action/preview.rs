//! What an undo would do now, told before it is done.
//!
//! Read only and without the lock, for any process that can read the vault. It plans by the very code of the undo
//! itself ([`crate::action::resolve`], `Plan::prepare`) and stops before anything is staged, so that what is shown and what
//! happens cannot differ but by what people write in between. Values are those of the vault, as they stand there;
//! all of them are untrusted text.

use crate::action::apply::read_and_prepare;
use crate::action::chain;
use crate::action::resolve::{
    IncomingResolution, OtherRecords, PlannedResolution, ResolutionError, prepare_resolution, read_action_record,
    read_change_history, retry_while_changing,
};
use crate::action::writer::ApplyError;
use crate::files::root::{RecordSnapshot, VaultRoot, VaultRootError};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use steward_domain::action::audit::{ActionKind, AuditRecord, FieldPatch, WorkflowRef};
use steward_domain::action::plan::{ActionId, PreparedChange};
use steward_domain::action::undo::{self, ResolutionKind, ResolutionRefusal};
use steward_domain::gates::mode::{Ceiling, DecisionPolicy};
use steward_domain::record::frontmatter;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::tracker::{self, PlaneAction};

/// What may follow a record, in the order in which it is told.
const FOLLOWERS: [ActionKind; 8] = [
    ActionKind::Reversed,
    ActionKind::Confirmed,
    ActionKind::Dismissed,
    ActionKind::Raised,
    ActionKind::DoneAnyway,
    ActionKind::Opposed,
    ActionKind::Tracked,
    ActionKind::TrackFailed,
];

/// What an undo of one action would do now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UndoPreview {
    pub action: ActionId,
    /// Its audit record.
    pub record: RecordPath,
    pub target: RecordPath,
    /// The fields that the action changed; none where it changed nothing. All else in the file stays as it is, byte
    /// for byte.
    pub fields: Vec<FieldPreview>,
    /// Newer changes of the same that are to be undone first, in that order.
    pub newer: Vec<ActionId>,
    /// The records that answer the action or tell what came of it.
    pub followers: Vec<FollowingRecord>,
    /// What the undo would owe to the tracker; `None` where nothing was told there, or where it would be refused.
    pub tracker: Option<PlaneAction>,
    /// Until when it can be undone; `None` where there is nothing to undo.
    pub until: Option<DateTime<Utc>>,
    /// Why it would be refused now; nothing would be changed then.
    pub refusal: Option<PreviewRefusal>,
}

/// One field of the target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FieldPreview {
    pub field: String,
    /// Before the action; `None` where it was absent.
    pub before: Option<Value>,
    /// As the action left it; `None` where that was absent.
    pub made: Option<Value>,
    /// As it is now; `None` where it is absent, or the file cannot be read.
    pub now: Option<Value>,
    /// As it would be after the undo.
    pub then: Option<Value>,
    pub fate: FieldUndoOutcome,
}

/// What would become of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldUndoOutcome {
    /// It is put back; of a set what others brought in or took out since stays so.
    Restored,
    /// It says already what it would be put back to.
    AsBefore,
    /// A human edited it since: what they wrote is kept, and the undo is refused for it.
    EditedSince,
    /// It stays, because the undo is refused for another reason.
    Untouched,
}

/// A record that answers an action or tells what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FollowingRecord {
    pub kind: ActionKind,
    pub id: ActionId,
    pub record: RecordPath,
    pub at: DateTime<Utc>,
    /// Who said so, as they named themselves. Untrusted.
    pub by: String,
    /// The follower changed something itself that can be undone: a confirmation.
    pub undoable: bool,
}

/// A refusal with its HTTP status and its words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PreviewRefusal {
    pub status: u16,
    pub refusal: ResolutionRefusal,
    pub message: String,
}

impl From<ResolutionRefusal> for PreviewRefusal {
    fn from(refusal: ResolutionRefusal) -> Self {
        Self { status: refusal.http_status(), message: refusal.to_string(), refusal }
    }
}

/// Says what an undo of the action that this record tells of would do now.
///
/// # Errors
/// [`ResolutionError::Refused`] where there is no such record or it cannot be read, so that nothing can be shown;
/// [`ResolutionError::Apply`] when the vault cannot be read. Every other refusal is part of the preview.
pub fn preview_undo(root: &VaultRoot, record: &RecordPath, now: DateTime<Utc>) -> Result<UndoPreview, ResolutionError> {
    preview_undo_among(root, (record, &list_event_names(root)?), now)
}

/// The same of several, in their order; what else lies in `event/` is listed once for all of them.
///
/// # Errors
/// [`ResolutionError::Apply`] when that cannot be listed.
pub fn preview_undos(
    root: &VaultRoot,
    records: &[RecordPath],
    now: DateTime<Utc>,
) -> Result<Vec<Result<UndoPreview, ResolutionError>>, ResolutionError> {
    let names = list_event_names(root)?;
    Ok(records.iter().map(|record| preview_undo_among(root, (record, &names), now)).collect())
}

fn list_event_names(root: &VaultRoot) -> Result<Vec<String>, ResolutionError> {
    Ok(root.list_names(RecordKind::Event).map_err(ApplyError::from)?)
}

fn preview_undo_among(
    root: &VaultRoot,
    (record, names): (&RecordPath, &[String]),
    now: DateTime<Utc>,
) -> Result<UndoPreview, ResolutionError> {
    let asked = IncomingResolution {
        kind: ResolutionKind::Undo,
        record,
        by: "",
        reason: None,
        edited: None,
        together: None,
        policy: &DecisionPolicy::default(),
        ceiling: Ceiling::Act,
        workflow: WorkflowRef { id: String::new(), run_id: String::new() },
        now,
    };
    let answered = retry_while_changing(|| read_action_record(root, record))?;
    let attempt = || {
        match prepare_resolution(root, &asked, (&answered, OtherRecords::Names(names)))? {
            PlannedResolution::Now(plan) => Ok(Some(read_and_prepare(root, &plan)?)),
            // Of no run there is an answer.
            PlannedResolution::Before(_) => Ok(None),
        }
    };
    let outcome = match retry_while_changing(attempt) {
        Ok(ready) => Ok(ready),
        Err(ResolutionError::Refused(refusal)) => Err(refusal),
        Err(e @ ResolutionError::Apply(_)) => return Err(e),
    };
    let newer = match &outcome {
        Err(ResolutionRefusal::NotTheNewest { .. }) => {
            undo::find_newer_changes(&answered, &read_change_history(root, &answered, Some(names))?)
        }
        Ok(_) | Err(_) => Vec::new(),
    };
    Ok(UndoPreview {
        action: answered.draft.id.clone(),
        record: record.clone(),
        target: answered.draft.target.clone(),
        fields: preview_fields(root, &answered, &outcome)?,
        newer,
        followers: list_followers(root, &answered)?,
        tracker: outcome.as_ref().ok().and_then(|_| tracker::derive_owed_revert(&answered)),
        until: answered.undo_recipe.as_ref().map(|_| answered.undo_deadline()),
        refusal: outcome.err().map(PreviewRefusal::from),
    })
}

/// The fields of the recipe, as they are and as they would be.
fn preview_fields(
    root: &VaultRoot,
    record: &AuditRecord,
    outcome: &Result<Option<(RecordSnapshot, PreparedChange)>, ResolutionRefusal>,
) -> Result<Vec<FieldPreview>, ResolutionError> {
    let Some(recipe) = &record.undo_recipe else { return Ok(Vec::new()) };
    let (current, patch) = match outcome {
        Ok(Some((current, prepared))) => (Some(current.clone()), prepared.patch.as_slice()),
        Ok(None) | Err(_) => (read_target(root, &record.draft.target)?, [].as_slice()),
    };
    let is = current.and_then(|current| frontmatter::read_document(&current.bytes).ok());
    let value = |field: &str| is.as_ref()?.fields().get(field).filter(|v| !v.is_null()).cloned();
    let one = |made: &FieldPatch| {
        let now = value(&made.field);
        let (then, fate) = match outcome {
            Ok(_) => match patch.iter().find(|p| p.field == made.field) {
                Some(patch) => (patch.value.clone(), FieldUndoOutcome::Restored),
                None => (now.clone(), FieldUndoOutcome::AsBefore),
            },
            Err(ResolutionRefusal::Conflict { fields }) if fields.contains(&made.field) => {
                (now.clone(), FieldUndoOutcome::EditedSince)
            }
            Err(_) => (now.clone(), FieldUndoOutcome::Untouched),
        };
        let (field, before, made) = (made.field.clone(), made.prior.clone(), made.value.clone());
        FieldPreview { field, before, made, now, then, fate }
    };
    Ok(recipe.vault_patch.iter().map(one).collect())
}

/// `None` where there is no file that could be a record.
fn read_target(root: &VaultRoot, target: &RecordPath) -> Result<Option<RecordSnapshot>, ResolutionError> {
    match root.read_file(target) {
        Ok(current) => Ok(Some(current)),
        Err(e @ (VaultRootError::Io { .. } | VaultRootError::Open { .. })) => Err(ApplyError::from(e).into()),
        Err(VaultRootError::Missing { .. } | VaultRootError::Link { .. }) => Ok(None),
        Err(VaultRootError::NotAFile { .. } | VaultRootError::TooLarge { .. }) => Ok(None),
    }
}

/// What has followed by now; one that cannot be read is none.
fn list_followers(root: &VaultRoot, record: &AuditRecord) -> Result<Vec<FollowingRecord>, ResolutionError> {
    let mut found = Vec::new();
    for kind in FOLLOWERS {
        let path = record.draft.follow_up_path(kind).map_err(|e| ApplyError::Form(e.to_string()))?;
        let Ok((follower, _)) = chain::read_audit_record(root, &path) else { continue };
        let answers = follower.draft.answers.as_ref().filter(|answers| answers.of == record.draft.id);
        let Some(by) = answers.map(|answers| answers.by.clone()) else { continue };
        let undoable = follower.undo_recipe.is_some();
        let (id, at) = (follower.draft.id, follower.draft.timestamp);
        found.push(FollowingRecord { kind, id, record: path, at, by, undoable });
    }
    Ok(found)
}

//! Previews an undo: what it would do now.
//!
//! It only reads and takes no lock, so any process that can read the vault may use it. It plans with the code of the
//! undo itself ([`crate::action::resolve`], `Plan::prepare`) and stops before anything is staged. So the undo can
//! differ from its preview only by what people write in between. The values are those of the vault; all of them are
//! untrusted text.

use crate::action::apply::read_and_prepare;
use crate::action::chain;
use crate::action::resolve::{
    OtherRecords, PlannedResolution, ResolutionError, check_target, prepare_resolution, read_action_record,
    read_change_history, retry_while_changing,
};
use crate::action::writer::ApplyError;
use crate::files::root::{RecordSnapshot, VaultRoot, VaultRootError};
use crate::index::{Index, NoteCatalog};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use steward_domain::action::audit::{ActionKind, AuditRecord, FieldPatch, ResolverKind, WorkflowRef};
use steward_domain::action::plan::{ActionId, PreparedChange};
use steward_domain::action::undo::{self, ResolutionKind, ResolutionRefusal, ResolutionRequest};
use steward_domain::gates::mode::{Ceiling, DecisionPolicy};
use steward_domain::record::frontmatter;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::record::schema::NoteAccess;
use steward_domain::tracker::{self, PlaneAction};

/// The kinds of records that may follow an action, in the order in which they are shown.
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
    /// The fields that the action changed; empty if it changed nothing. The rest of the file stays as it is, byte for
    /// byte.
    pub fields: Vec<FieldPreview>,
    /// Newer changes of the same fields, which must be undone first, in this order.
    pub newer: Vec<ActionId>,
    /// The records that resolve the action or report its outcome.
    pub followers: Vec<FollowingRecord>,
    /// What the undo would owe to the tracker; `None` if it owes nothing or would be refused.
    pub tracker: Option<PlaneAction>,
    /// The end of the undo window; `None` if there is nothing to undo.
    pub until: Option<DateTime<Utc>>,
    /// Why the undo would be refused now. A refused undo changes nothing.
    pub refusal: Option<PreviewRefusal>,
}

/// One field of the target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FieldPreview {
    pub field: String,
    /// The value before the action; `None` if the field was absent.
    pub before: Option<Value>,
    /// The value that the action wrote; `None` if it removed the field.
    pub made: Option<Value>,
    /// The value now; `None` if the field is absent or the file cannot be read.
    pub now: Option<Value>,
    /// The value after the undo.
    pub then: Option<Value>,
    pub fate: FieldUndoOutcome,
}

/// What the undo would do to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldUndoOutcome {
    /// It is restored. In a set, members that others added or removed since stay so.
    Restored,
    /// It has its old value already.
    AsBefore,
    /// A person edited it since. Their value is kept, and the undo is refused because of it.
    EditedSince,
    /// It stays, because the undo is refused for another reason.
    Untouched,
}

/// A record that resolves an action or reports its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FollowingRecord {
    pub kind: ActionKind,
    pub id: ActionId,
    pub record: RecordPath,
    pub at: DateTime<Utc>,
    /// The person who did it, by the name that they gave. Untrusted.
    pub by: String,
    /// Whether the follower made a change that can be undone, as a confirmation does.
    pub undoable: bool,
}

/// A refusal with its HTTP status and its message.
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

/// Previews an undo of the action of this audit record.
///
/// # Errors
/// [`ResolutionError::Refused`] if the record does not exist or cannot be read, so that nothing can be shown.
/// [`ResolutionError::Apply`] if the vault cannot be read. Every other refusal is part of the preview.
pub fn preview_undo(
    root: &VaultRoot,
    index: Option<&Index>,
    record: &RecordPath,
    now: DateTime<Utc>,
) -> Result<UndoPreview, ResolutionError> {
    preview_undo_among(root, &find_catalog(index), record, &list_event_names(root)?, now)
}

/// Previews undos of several actions, in their order. `event/` is listed once for all of them.
///
/// # Errors
/// [`ResolutionError::Apply`] if `event/` cannot be listed.
pub fn preview_undos(
    root: &VaultRoot,
    index: Option<&Index>,
    records: &[RecordPath],
    now: DateTime<Utc>,
) -> Result<Vec<Result<UndoPreview, ResolutionError>>, ResolutionError> {
    let (names, notes) = (list_event_names(root)?, find_catalog(index));
    Ok(records.iter().map(|record| preview_undo_among(root, &notes, record, &names, now)).collect())
}

/// The mappings and names of the vault's notes. Without an index the vault has no mapping.
fn find_catalog(index: Option<&Index>) -> NoteCatalog {
    index.map(|index| index.notes.clone()).unwrap_or_default()
}

fn list_event_names(root: &VaultRoot) -> Result<Vec<String>, ResolutionError> {
    Ok(root.list_names(RecordKind::Event).map_err(ApplyError::from)?)
}

fn preview_undo_among(
    root: &VaultRoot,
    notes: &NoteCatalog,
    record: &RecordPath,
    names: &[String],
    now: DateTime<Utc>,
) -> Result<UndoPreview, ResolutionError> {
    let request = ResolutionRequest {
        kind: ResolutionKind::Undo,
        by: "",
        reason: None,
        edited: None,
        batch_id: None,
        resolved_by: ResolverKind::Human,
        policy: &DecisionPolicy::default(),
        ceiling: Ceiling::Act,
        workflow: WorkflowRef::default(),
        now,
    };
    let (note_names, moves) = (notes.names_or_empty(), notes.moves());
    let written = retry_while_changing(|| read_action_record(root, record))?;
    let target = check_target(&written, &request, &moves);
    let action = written.follow_moves(&moves);
    let schema = notes.find_schema(&action);
    let attempt = || {
        let unknown = || ResolutionRefusal::UnknownMapping { id: action.draft.id.to_string() };
        target.clone()?;
        let access = NoteAccess { schema: schema.as_deref().ok_or_else(unknown)?, names: &note_names, moves: &moves };
        match prepare_resolution(root, &request, &action, OtherRecords::Names(names), access)? {
            PlannedResolution::Now(plan) => Ok(Some(read_and_prepare(root, &plan, access)?)),
            // Not reached: the request has no run id, so it cannot have an earlier resolution.
            PlannedResolution::Before(..) => Ok(None),
        }
    };
    let outcome = match retry_while_changing(attempt) {
        Ok(prepared) => Ok(prepared),
        Err(ResolutionError::Refused(refusal)) => Err(refusal),
        Err(e @ ResolutionError::Apply(_)) => return Err(e),
    };
    let newer = match &outcome {
        Err(ResolutionRefusal::NotTheNewest { .. }) => {
            undo::find_newer_changes(&action, &read_change_history(root, &action, Some(names), &moves)?)
        }
        Ok(_) | Err(_) => Vec::new(),
    };
    Ok(UndoPreview {
        action: action.draft.id.clone(),
        record: record.clone(),
        target: action.draft.target.clone(),
        fields: preview_fields(root, &action, &outcome)?,
        newer,
        followers: list_followers(root, &action)?,
        tracker: outcome.as_ref().ok().and_then(|_| tracker::derive_owed_revert(&action)),
        until: action.undo_recipe.as_ref().map(|_| action.undo_deadline()),
        refusal: outcome.err().map(PreviewRefusal::from),
    })
}

/// The fields of the undo recipe, with their values now and after the undo.
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
    let document = current.and_then(|current| frontmatter::read_document(&current.bytes).ok());
    let value = |field: &str| document.as_ref()?.fields().get(field).filter(|v| !v.is_null()).cloned();
    let preview = |made: &FieldPatch| {
        let now = value(made.key());
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
    Ok(recipe.vault_patch.iter().map(preview).collect())
}

/// Reads the target; `None` if there is no file that could be a record.
fn read_target(root: &VaultRoot, target: &RecordPath) -> Result<Option<RecordSnapshot>, ResolutionError> {
    match root.read_file(target) {
        Ok(current) => Ok(Some(current)),
        Err(e @ (VaultRootError::Io { .. } | VaultRootError::Open { .. })) => Err(ApplyError::from(e).into()),
        Err(VaultRootError::Missing { .. } | VaultRootError::Link { .. }) => Ok(None),
        Err(VaultRootError::NotAFile { .. } | VaultRootError::TooLarge { .. }) => Ok(None),
    }
}

/// The records that follow the action. Records that cannot be read are left out.
fn list_followers(root: &VaultRoot, record: &AuditRecord) -> Result<Vec<FollowingRecord>, ResolutionError> {
    let mut found = Vec::new();
    for kind in FOLLOWERS {
        let path = record.draft.follow_up_path(kind).map_err(|e| ApplyError::Form(e.to_string()))?;
        let Ok((follower, _)) = chain::read_audit_record(root, &path) else { continue };
        let answers = follower.draft.resolution.as_ref().filter(|answers| answers.action_id == record.draft.id);
        let Some(by) = answers.map(|answers| answers.by.clone()) else { continue };
        let undoable = follower.undo_recipe.is_some();
        let (id, at) = (follower.draft.id, follower.draft.timestamp);
        found.push(FollowingRecord { kind, id, record: path, at, by, undoable });
    }
    Ok(found)
}

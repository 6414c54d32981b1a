//! A person's resolution of an action: find the record, check for an earlier resolution, plan, apply.
//!
//! Of two clicks only one wins: the vault writer's lock is held from the check for an earlier resolution until the
//! resolution is written. A click that is retried after a crash is recognised by its workflow run and gets the same
//! receipt as before.

use crate::action::answers::{self, ActionStanding, FoundRecord};
use crate::action::chain::{self, ChainError};
use crate::action::history;
use crate::action::ownership::ChangeNeeds;
use crate::action::writer::{ActionReceipt, ApplyError, VaultWriter};
use crate::files::root::{VaultRoot, VaultRootError};
use crate::gates::stop;
use std::sync::Arc;
use std::time::Duration;
use steward_domain::action::audit::{ActionKind, AuditDraft, AuditRecord, Reopening};
use steward_domain::action::mutation::Mutation;
use steward_domain::action::plan::Plan;
use steward_domain::action::undo::{
    PastChange, ResolutionCase, ResolutionKind, ResolutionRefusal, ResolutionRequest, build_resolution_plan,
};
use steward_domain::record::moves::MoveHistory;
use steward_domain::record::path::RecordPath;
use steward_domain::record::schema::{NoteAccess, NoteSchema};
use steward_domain::time;
use steward_domain::tracker::{self, PlaneAction};

/// How often a record that people keep changing is read before giving up.
const TRIES: usize = 20;
/// Pause before reading it again: 5 ms, longer than an editor takes to truncate and write a file.
const PAUSE: Duration = Duration::from_millis(5);

/// An action whose resolution is filed.
#[derive(Clone, Debug)]
pub struct ResolvedAction {
    /// The receipt of the resolution.
    pub receipt: ActionReceipt,
    /// The record of the action that was resolved.
    pub original: AuditRecord,
    /// The human chose another value than the proposed one.
    pub edited: bool,
    /// The undo owes the tracker the removal of what the action made there.
    pub owes_revert: bool,
}

impl ResolvedAction {
    fn new(receipt: ActionReceipt, original: AuditRecord, draft: &AuditDraft, owed: Option<&PlaneAction>) -> Self {
        let edited = draft.resolution.as_ref().is_some_and(|resolution| resolution.edited);
        Self { receipt, original, edited, owes_revert: matches!(owed, Some(PlaneAction::RevertOwed { .. })) }
    }
}

/// Why a resolution was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ResolutionError {
    #[error(transparent)]
    Refused(#[from] ResolutionRefusal),
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

impl VaultWriter {
    /// Applies a person's resolution of a recorded action.
    ///
    /// # Errors
    /// [`ResolutionError::Refused`] by the rules of `docs/api.md`; [`ResolutionError::Apply`] if the vault cannot be
    /// read or written.
    pub fn resolve_action(
        &self,
        path: &RecordPath,
        request: &ResolutionRequest<'_>,
    ) -> Result<ResolvedAction, ResolutionError> {
        retry_while_changing(|| self.resolve_action_once(path, request))
    }

    fn resolve_action_once(
        &self,
        path: &RecordPath,
        request: &ResolutionRequest<'_>,
    ) -> Result<ResolvedAction, ResolutionError> {
        let mut state = self.lock_state()?;
        let (names, moves) = (self.note_names().unwrap_or_default(), self.note_moves());
        let record = match request.kind {
            ResolutionKind::Reopen => read_answer_to_reopen(self.root(), path)?,
            _ => read_action_record(self.root(), path)?,
        };
        check_target(&record, request, &moves)?;
        let record = record.follow_moves(&moves);
        let schema = self.find_resolution_schema(&record, request)?;
        let notes = NoteAccess { schema: &schema, names: &names, moves: &moves };
        let others = OtherRecords::Newest(state.head.seq);
        let plan = match prepare_resolution(self.root(), request, &record, others, notes)? {
            PlannedResolution::Before(receipt, found) => {
                return Ok(ResolvedAction::new(receipt, record, &found.draft, found.plane_action.as_ref()));
            }
            PlannedResolution::Now(_) if request.kind == ResolutionKind::Confirm && self.is_stopped_elsewhere() => {
                return Err(ResolutionRefusal::Stopped.into());
            }
            PlannedResolution::Now(plan) => plan,
        };
        let is_undo = request.kind == ResolutionKind::Undo;
        if let Some(edited) = record.edited_expiry().filter(|_| is_undo) {
            let fault = chain::describe_edited_expiry(path, edited, record.undo_deadline());
            tracing::warn!(record = %path, "{fault}");
        }
        let needs = match request.kind {
            ResolutionKind::Confirm => ChangeNeeds::NoStop,
            _ => ChangeNeeds::Ownership,
        };
        let owed = if is_undo { tracker::derive_owed_revert(&record) } else { None };
        let receipt = self.write_plan_once(&mut state, &plan, needs, owed.clone(), &schema)?;
        Ok(ResolvedAction::new(receipt, record, plan.draft(), owed.as_ref()))
    }

    /// The schema under which the record was made. A confirmation changes a note, so it needs the mapping in force.
    fn find_resolution_schema(
        &self,
        record: &AuditRecord,
        request: &ResolutionRequest<'_>,
    ) -> Result<Arc<NoteSchema>, ResolutionError> {
        let id = || record.draft.id.to_string();
        if request.kind == ResolutionKind::Confirm && record.mapping_sha256.as_ref() != self.note_schema().hash() {
            return Err(ResolutionRefusal::OtherMapping { id: id() }.into());
        }
        self.find_schema(record).ok_or_else(|| ResolutionRefusal::UnknownMapping { id: id() }.into())
    }
}

/// The result of planning a resolution on the vault as it is now.
pub(crate) enum PlannedResolution {
    /// The same run has resolved the action before, with this record.
    Before(ActionReceipt, Box<AuditRecord>),
    /// The plan to apply now.
    Now(Box<Plan>),
}

/// What is known about the other audit records.
#[derive(Clone, Copy)]
pub(crate) enum OtherRecords<'a> {
    /// The number of the newest record.
    Newest(u64),
    /// The names of all files in `event/`.
    Names(&'a [String]),
}

/// Plans a resolution of this record's action. Changes nothing.
pub(crate) fn prepare_resolution(
    root: &VaultRoot,
    request: &ResolutionRequest<'_>,
    record: &AuditRecord,
    others: OtherRecords<'_>,
    notes: NoteAccess<'_>,
) -> Result<PlannedResolution, ResolutionError> {
    let reopened = match find_earlier_resolution(root, request, record)? {
        EarlierResolution::SameRun(receipt, found) => return Ok(PlannedResolution::Before(receipt, found)),
        EarlierResolution::None { reopened } => reopened,
    };
    if let Some(Mutation::ParentMatter { to }) = request.edited
        && !root.exists(to)
    {
        let reason = format!("there is no {to}");
        return Err(ResolutionRefusal::NotAnEdit { id: record.draft.id.to_string(), reason }.into());
    }
    if request.kind == ResolutionKind::Confirm && stop::is_stopped(root) {
        return Err(ResolutionRefusal::Stopped.into());
    }
    // No change can be newer than the newest record.
    let (is_newest, files) = match others {
        OtherRecords::Newest(seq) => (seq == record.seq, None),
        OtherRecords::Names(names) => (false, Some(names)),
    };
    let needs_history = request.kind == ResolutionKind::Undo && record.undo_recipe.is_some() && !is_newest;
    let past = if needs_history { read_change_history(root, record, files, notes.moves)? } else { Vec::new() };
    let case = ResolutionCase { request, record, history: &past, notes, reopened: reopened.as_ref() };
    let plan = build_resolution_plan(&case)?;
    Ok(PlannedResolution::Now(Box::new(plan)))
}

/// Refuses a resolution of an action whose note is no more, unless it changes no note.
pub(crate) fn check_target(
    record: &AuditRecord,
    request: &ResolutionRequest<'_>,
    moves: &MoveHistory,
) -> Result<(), ResolutionRefusal> {
    if request.kind.leaves_notes_alone() || !record.has_ended(moves) {
        return Ok(());
    }
    let reason = format!("{}: another note was moved to its path, so this one is no more", record.draft.target);
    Err(ResolutionRefusal::Record { reason })
}

/// Reads the audit record of the action to resolve.
pub(crate) fn read_action_record(root: &VaultRoot, path: &RecordPath) -> Result<AuditRecord, ResolutionError> {
    match chain::read_audit_record(root, path) {
        Ok((record, _)) if record.draft.record_path().as_ref() == Ok(path) => Ok(record),
        Ok(_) => {
            let reason = format!("{path}: not the name under which this record was filed: rename it back");
            Err(ResolutionRefusal::Record { reason }.into())
        }
        Err(ChainError::Root(VaultRootError::Missing { .. })) => {
            Err(ResolutionRefusal::Unknown { id: path.slug().to_owned() }.into())
        }
        Err(e @ ChainError::Record { .. }) => Err(ResolutionRefusal::Record { reason: e.to_string() }.into()),
        Err(e) => Err(ApplyError::from(e).into()),
    }
}

/// Reads the other changes of the same target, which an undo has to know.
pub(crate) fn read_change_history(
    root: &VaultRoot,
    record: &AuditRecord,
    names: Option<&[String]>,
    moves: &MoveHistory,
) -> Result<Vec<PastChange>, ResolutionError> {
    history::read_target_changes(root, record, names, moves).map_err(|e| match e {
        ChainError::Record { .. } => {
            ResolutionRefusal::Record { reason: format!("{e}: run `steward audit verify`") }.into()
        }
        e => ApplyError::from(e).into(),
    })
}

/// What a resolution finds of earlier ones.
enum EarlierResolution {
    /// The same run has filed it before, with this record.
    SameRun(ActionReceipt, Box<AuditRecord>),
    /// None holds. An earlier one may have been taken back.
    None { reopened: Option<Reopening> },
}

/// Reads the answer that a reopening takes back. A person may name the action or its answer.
fn read_answer_to_reopen(root: &VaultRoot, path: &RecordPath) -> Result<AuditRecord, ResolutionError> {
    let record = read_action_record(root, path)?;
    if record.draft.resolution.is_some() {
        return Ok(record);
    }
    let standing = answers::read_standing(root, &record.draft)?;
    // A second try of the same run finds the answer that the first one took back.
    let answer = standing.answer.map(|answer| answer.record).or(standing.taken_back);
    Ok(answer.unwrap_or(record))
}

/// The receipt of the same run, or a refusal if somebody else was faster.
fn find_earlier_resolution(
    root: &VaultRoot,
    request: &ResolutionRequest<'_>,
    record: &AuditRecord,
) -> Result<EarlierResolution, ResolutionError> {
    let standing = match request.kind {
        ResolutionKind::Reopen => {
            ActionStanding { answer: answers::find_reopening(root, &record.draft)?, ..ActionStanding::default() }
        }
        _ => answers::read_standing(root, &record.draft)?,
    };
    if let Some(FoundRecord { path, record: found }) = standing.answer {
        let run = &request.workflow.run_id;
        if found.draft.kind == request.kind.record_kind() && !run.is_empty() && &found.draft.workflow.run_id == run {
            let (id, disposition) = (found.draft.id.clone(), found.draft.disposition);
            let receipt = ActionReceipt { id, record: path, disposition, repeated: true };
            return Ok(EarlierResolution::SameRun(receipt, Box::new(found)));
        }
        return Err(refuse_second_resolution(root, request, record, &found)?.into());
    }
    // A person made the same change by hand, and it is filed as such. A later confirmation adds nothing.
    let by_hand = record.draft.follow_up_path(ActionKind::DoneAnyway).map_err(|e| ApplyError::Form(e.to_string()))?;
    if request.kind == ResolutionKind::Confirm && root.exists(&by_hand) {
        let (found, _) = chain::read_audit_record(root, &by_hand).map_err(ApplyError::from)?;
        return Err(refuse_second_resolution(root, request, record, &found)?.into());
    }
    Ok(EarlierResolution::None { reopened: standing.reopened })
}

/// Tries again for a moment if the record changes while it is read: a half-written save is not final.
pub(crate) fn retry_while_changing<T>(attempt: impl Fn() -> Result<T, ResolutionError>) -> Result<T, ResolutionError> {
    let mut tries = 1;
    loop {
        let result = attempt();
        let is_transient = match &result {
            Err(ResolutionError::Apply(ApplyError::ChangedMeanwhile { .. } | ApplyError::Record { .. })) => true,
            Ok(_) | Err(_) => false,
        };
        if !is_transient || tries == TRIES {
            return result.map_err(ResolutionError::convert_to_refusal);
        }
        tries += 1;
        std::thread::sleep(PAUSE);
    }
}

impl ResolutionError {
    /// Turns a fault of the record itself into a refusal that the person sees. A fault of the machine stays an error.
    fn convert_to_refusal(self) -> Self {
        match self {
            Self::Apply(ApplyError::Conflict { fields, .. }) => ResolutionRefusal::Conflict { fields }.into(),
            Self::Apply(e @ ApplyError::Record { .. }) => ResolutionRefusal::Record { reason: e.to_string() }.into(),
            Self::Apply(ApplyError::Root(e)) => match e {
                VaultRootError::Io { .. } | VaultRootError::Open { .. } => Self::Apply(e.into()),
                VaultRootError::Missing { .. }
                | VaultRootError::Link { .. }
                | VaultRootError::NotAFile { .. }
                | VaultRootError::TooLarge { .. } => ResolutionRefusal::Record { reason: e.to_string() }.into(),
            },
            Self::Refused(_) | Self::Apply(_) => self,
        }
    }
}

/// The refusal of an action that `found` resolved. It names what became of a confirmation, or how to undo it.
fn refuse_second_resolution(
    root: &VaultRoot,
    request: &ResolutionRequest<'_>,
    record: &AuditRecord,
    found: &AuditRecord,
) -> Result<ResolutionRefusal, ApplyError> {
    let undo_path = found.draft.follow_up_path(ActionKind::Reversed).map_err(|e| ApplyError::Form(e.to_string()))?;
    let is_confirmation = found.draft.kind == ActionKind::Confirmed;
    let undone = if is_confirmation && root.exists(&undo_path) {
        let (undo, _) = chain::read_audit_record(root, &undo_path)?;
        format!(", and that was undone at {}", time::format_millis(undo.draft.timestamp))
    } else {
        String::new()
    };
    let is_undoable =
        is_confirmation && undone.is_empty() && found.undo_recipe.is_some() && request.now < found.undo_deadline();
    let by = found.draft.resolution.as_ref().map_or("nobody", |a| a.by.as_str());
    Ok(ResolutionRefusal::AlreadyResolved {
        id: record.draft.id.to_string(),
        how: found.draft.kind.outcome_label().to_lowercase(),
        by: format!("{by} at {}{undone}", time::format_millis(found.draft.timestamp)),
        undo: is_undoable.then(|| found.draft.id.to_string()),
    })
}

//! A human's answer to an action: find the record, check that nobody answered, plan, apply.
//!
//! Two clicks have one winner because the look for an earlier answer and the answer itself are one
//! turn of the keeper. The same click tried again after a crash is recognised by its workflow run
//! and gets the same answer as before.

use crate::action::chain::{self, ChainError};
use crate::action::history;
use crate::action::writer::{ActionReceipt, ApplyError, VaultWriter};
use crate::files::root::{VaultRoot, VaultRootError};
use crate::gates::stop;
use chrono::{DateTime, Utc};
use std::time::Duration;
use steward_domain::action::audit::{ActionKind, AuditRecord, WorkflowRef};
use steward_domain::action::mutation::Mutation;
use steward_domain::action::plan::{ActionId, Plan};
use steward_domain::action::undo::{
    PastChange, ResolutionCase, ResolutionKind, ResolutionRefusal, build_resolution_plan,
};
use steward_domain::gates::mode::{Ceiling, DecisionPolicy};
use steward_domain::record::path::RecordPath;
use steward_domain::time;
use steward_domain::tracker;

/// How often a record that humans keep changing is read again before giving up.
const TRIES: usize = 20;
/// Pause before reading it again: 5 ms, longer than an editor takes to truncate and write a file.
const PAUSE: Duration = Duration::from_millis(5);

/// An answer as it arrives.
#[derive(Clone, Debug)]
pub struct IncomingResolution<'a> {
    pub kind: ResolutionKind,
    /// The audit record of the action that is answered.
    pub record: &'a RecordPath,
    pub by: &'a str,
    pub reason: Option<&'a str>,
    /// For a confirmation, what is to happen instead of what was proposed.
    pub edited: Option<&'a Mutation>,
    /// Where it is one of several that are given with one click.
    pub together: Option<&'a ActionId>,
    pub policy: &'a DecisionPolicy,
    /// The lowest ceiling that a human has set by now for the matter and for the cited sources.
    pub ceiling: Ceiling,
    pub workflow: WorkflowRef,
    pub now: DateTime<Utc>,
}

/// Why an answer was not taken.
#[derive(Debug, thiserror::Error)]
pub enum ResolutionError {
    #[error(transparent)]
    Refused(#[from] ResolutionRefusal),
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

impl VaultWriter {
    /// Takes a human's answer to a recorded action.
    ///
    /// # Errors
    /// [`ResolutionError::Refused`] by the rules of `docs/api.md`; [`ResolutionError::Apply`] when the vault
    /// cannot be read or written.
    pub fn resolve_action(&self, asked: &IncomingResolution<'_>) -> Result<ActionReceipt, ResolutionError> {
        retry_while_changing(|| self.resolve_action_once(asked))
    }

    fn resolve_action_once(&self, asked: &IncomingResolution<'_>) -> Result<ActionReceipt, ResolutionError> {
        let mut turn = self.lock_state()?;
        let record = read_action_record(self.root(), asked.record)?;
        match prepare_resolution(self.root(), asked, (&record, OtherRecords::Newest(turn.head.seq)))? {
            PlannedResolution::Before(receipt) => Ok(receipt),
            PlannedResolution::Now(plan) => {
                if let Some(says) = record.edited_expiry().filter(|_| asked.kind == ResolutionKind::Undo) {
                    let note = chain::describe_edited_expiry(asked.record, says, record.undo_deadline());
                    tracing::warn!(record = %asked.record, "{note}");
                }
                let owes = if asked.kind == ResolutionKind::Undo { tracker::derive_owed_revert(&record) } else { None };
                Ok(self.write_plan_once(&mut turn, &plan, owes)?)
            }
        }
    }
}

/// What an answer comes to on the vault as it is now.
pub(crate) enum PlannedResolution {
    /// This very run has answered before.
    Before(ActionReceipt),
    Now(Box<Plan>),
}

/// What is known of the other records.
#[derive(Clone, Copy)]
pub(crate) enum OtherRecords<'a> {
    /// The number of the newest of all.
    Newest(u64),
    /// The names of all that lie in `event/`.
    Names(&'a [String]),
}

/// Plans an answer to this record. Changes nothing.
pub(crate) fn prepare_resolution(
    root: &VaultRoot,
    asked: &IncomingResolution<'_>,
    (record, known): (&AuditRecord, OtherRecords<'_>),
) -> Result<PlannedResolution, ResolutionError> {
    if let Some(receipt) = find_earlier_resolution(root, asked, record)? {
        return Ok(PlannedResolution::Before(receipt));
    }
    if let Some(Mutation::ParentMatter { to }) = asked.edited
        && !root.exists(to)
    {
        let reason = format!("there is no {to}");
        return Err(ResolutionRefusal::NotAnEdit { id: record.draft.id.to_string(), reason }.into());
    }
    if asked.kind == ResolutionKind::Confirm && stop::is_stopped(root) {
        return Err(ResolutionRefusal::Stopped.into());
    }
    // After the newest record of all there is nothing.
    let (newest, names) = match known {
        OtherRecords::Newest(seq) => (seq == record.seq, None),
        OtherRecords::Names(names) => (false, Some(names)),
    };
    let alone = asked.kind != ResolutionKind::Undo || record.undo_recipe.is_none() || newest;
    let past = if alone { Vec::new() } else { read_change_history(root, record, names)? };
    let plan = build_resolution_plan(&ResolutionCase {
        kind: asked.kind,
        record,
        past: &past,
        by: asked.by,
        reason: asked.reason,
        edited: asked.edited,
        together: asked.together,
        policy: asked.policy,
        ceiling: asked.ceiling,
        workflow: asked.workflow.clone(),
        now: asked.now,
    })?;
    Ok(PlannedResolution::Now(Box::new(plan)))
}

/// The record of the action that is answered.
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

/// What else was changed in the same record, where an undo has to know.
pub(crate) fn read_change_history(
    root: &VaultRoot,
    record: &AuditRecord,
    names: Option<&[String]>,
) -> Result<Vec<PastChange>, ResolutionError> {
    history::read_target_changes(root, record, names).map_err(|e| match e {
        ChainError::Record { .. } => {
            ResolutionRefusal::Record { reason: format!("{e}: run `steward audit verify`") }.into()
        }
        e => ApplyError::from(e).into(),
    })
}

/// The receipt of this very run, or a refusal when somebody else was faster.
fn find_earlier_resolution(
    root: &VaultRoot,
    asked: &IncomingResolution<'_>,
    record: &AuditRecord,
) -> Result<Option<ActionReceipt>, ResolutionError> {
    for kind in [ActionKind::Reversed, ActionKind::Confirmed, ActionKind::Dismissed, ActionKind::Raised] {
        let path = record.draft.follow_up_path(kind).map_err(|e| ApplyError::Form(e.to_string()))?;
        if !root.exists(&path) {
            continue;
        }
        let (found, _) = chain::read_audit_record(root, &path).map_err(ApplyError::from)?;
        let run = &asked.workflow.run_id;
        if kind == asked.kind.record_kind() && !run.is_empty() && &found.draft.workflow.run_id == run {
            let (id, landing) = (found.draft.id, found.draft.landing);
            return Ok(Some(ActionReceipt { id, record: path, landing, repeated: true }));
        }
        return Err(already_resolved_refusal(record, kind, &found).into());
    }
    // The very change was made by hand, and stands as such: a click that crossed it says nothing new.
    let by_hand = record.draft.follow_up_path(ActionKind::DoneAnyway).map_err(|e| ApplyError::Form(e.to_string()))?;
    if asked.kind == ResolutionKind::Confirm && root.exists(&by_hand) {
        let (found, _) = chain::read_audit_record(root, &by_hand).map_err(ApplyError::from)?;
        return Err(already_resolved_refusal(record, ActionKind::DoneAnyway, &found).into());
    }
    Ok(None)
}

/// Tries again for a moment where the record is changed while it is read: half a save says nothing yet.
pub(crate) fn retry_while_changing<T>(attempt: impl Fn() -> Result<T, ResolutionError>) -> Result<T, ResolutionError> {
    let mut tries = 1;
    loop {
        let answered = attempt();
        let passing = match &answered {
            Err(ResolutionError::Apply(ApplyError::ChangedMeanwhile { .. } | ApplyError::Record { .. })) => true,
            Ok(_) | Err(_) => false,
        };
        if !passing || tries == TRIES {
            return answered.map_err(ResolutionError::convert_to_refusal);
        }
        tries += 1;
        std::thread::sleep(PAUSE);
    }
}

impl ResolutionError {
    /// What is wrong with the record itself is an answer to the human; trouble with the machine is not.
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

fn already_resolved_refusal(record: &AuditRecord, kind: ActionKind, found: &AuditRecord) -> ResolutionRefusal {
    let by = found.draft.answers.as_ref().map_or("nobody", |a| a.by.as_str());
    ResolutionRefusal::AlreadyAnswered {
        id: record.draft.id.to_string(),
        how: kind.outcome_label().to_lowercase(),
        by: format!("{by} at {}", time::format_millis(found.draft.timestamp)),
    }
}

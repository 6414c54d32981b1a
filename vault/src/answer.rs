//! A human's answer to an action: find the record, check that nobody answered, plan, apply.
//!
//! Two clicks have one winner because both would file their record under the same name, one at a
//! time. The same click tried again after a crash is recognised by its workflow run and gets the
//! same answer as before.

use crate::chain;
use crate::keeper::{ApplyError, Keeper, Receipt};
use chrono::{DateTime, Utc};
use steward_domain::audit::{ActionKind, Answer, AuditRecord, WorkflowRef};
use steward_domain::mode::Policy;
use steward_domain::path::RecordPath;
use steward_domain::time;
use steward_domain::undo::{AnswerKind, Refusal, Request, answer};

/// How often a record that humans keep changing is read again before giving up.
const TRIES: usize = 20;

/// An answer as it arrives.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    pub kind: AnswerKind,
    /// The audit record of the action that is answered.
    pub record: &'a RecordPath,
    pub by: &'a str,
    pub reason: Option<&'a str>,
    pub policy: &'a Policy,
    pub workflow: WorkflowRef,
    pub now: DateTime<Utc>,
}

/// Why an answer was not taken.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

impl Keeper {
    /// Takes a human's answer to a recorded action.
    ///
    /// # Errors
    /// [`AnswerError::Refused`] by the rules of section 6; [`AnswerError::Apply`] when the vault
    /// cannot be read or written.
    pub fn answer(&self, asked: &Asked<'_>) -> Result<Receipt, AnswerError> {
        let mut last = None;
        for _ in 0..TRIES {
            match self.answer_once(asked) {
                Err(AnswerError::Apply(e @ ApplyError::ChangedMeanwhile { .. })) => last = Some(e),
                Err(AnswerError::Apply(ApplyError::Conflict { fields, .. })) => {
                    return Err(Refusal::Conflict { fields }.into());
                }
                Err(AnswerError::Apply(e @ (ApplyError::Record { .. } | ApplyError::Root(_)))) => {
                    return Err(Refusal::Record { reason: e.to_string() }.into());
                }
                other => return other,
            }
        }
        let path = asked.record.clone();
        Err(AnswerError::Apply(last.unwrap_or(ApplyError::ChangedMeanwhile { path })))
    }

    fn answer_once(&self, asked: &Asked<'_>) -> Result<Receipt, AnswerError> {
        let (record, _) = chain::read(self.root(), asked.record).map_err(ApplyError::from)?;
        if let Some(receipt) = self.answered_before(asked, &record)? {
            return Ok(receipt);
        }
        let plan = answer(&Request {
            kind: asked.kind,
            record: &record,
            by: asked.by,
            reason: asked.reason,
            policy: asked.policy,
            workflow: asked.workflow.clone(),
            now: asked.now,
        })?;
        Ok(self.apply(plan)?)
    }

    /// The receipt of this very run, or a refusal when somebody else was faster.
    fn answered_before(&self, asked: &Asked<'_>, record: &AuditRecord) -> Result<Option<Receipt>, AnswerError> {
        for kind in [ActionKind::Reversed, ActionKind::Confirmed, ActionKind::Dismissed] {
            let mut draft = record.draft.clone();
            draft.kind = kind;
            let (of, at) = (draft.id.clone(), draft.timestamp);
            draft.answers = Some(Answer { of, at, by: String::new(), reason: None });
            let path = draft.file().map_err(|e| ApplyError::Form(e.to_string()))?;
            if !self.root().exists(&path) {
                continue;
            }
            let (found, _) = chain::read(self.root(), &path).map_err(ApplyError::from)?;
            if kind == asked.kind.record() && found.draft.workflow.run_id == asked.workflow.run_id {
                let (id, landing) = (found.draft.id, found.draft.landing);
                return Ok(Some(Receipt { id, record: path, landing, repeated: true }));
            }
            return Err(already(record, kind, &found).into());
        }
        Ok(None)
    }
}

fn already(record: &AuditRecord, kind: ActionKind, found: &AuditRecord) -> Refusal {
    let how = match kind {
        ActionKind::Reversed => "undone",
        ActionKind::Confirmed => "confirmed",
        ActionKind::Dismissed | ActionKind::Action => "dismissed",
    };
    let by = found.draft.answers.as_ref().map_or("nobody", |a| a.by.as_str());
    Refusal::AlreadyAnswered {
        id: record.draft.id.to_string(),
        how: how.into(),
        by: format!("{by} at {}", time::stamp(found.draft.timestamp)),
    }
}

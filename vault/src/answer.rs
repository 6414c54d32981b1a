//! A human's answer to an action: find the record, check that nobody answered, plan, apply.
//!
//! Two clicks have one winner because the look for an earlier answer and the answer itself are one
//! turn of the keeper. The same click tried again after a crash is recognised by its workflow run
//! and gets the same answer as before.

use crate::brake;
use crate::chain::{self, ChainError};
use crate::keeper::{ApplyError, Keeper, Receipt};
use crate::past;
use crate::root::RootError;
use chrono::{DateTime, Utc};
use std::time::Duration;
use steward_domain::audit::{ActionKind, AuditRecord, WorkflowRef};
use steward_domain::mode::{Ceiling, Policy};
use steward_domain::path::RecordPath;
use steward_domain::time;
use steward_domain::tracker;
use steward_domain::undo::{AnswerKind, Past, Refusal, Request, answer};

/// How often a record that humans keep changing is read again before giving up.
const TRIES: usize = 20;
/// Pause before reading it again: 5 ms, longer than an editor takes to truncate and write a file.
const PAUSE: Duration = Duration::from_millis(5);

/// An answer as it arrives.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    pub kind: AnswerKind,
    /// The audit record of the action that is answered.
    pub record: &'a RecordPath,
    pub by: &'a str,
    pub reason: Option<&'a str>,
    pub policy: &'a Policy,
    /// The lowest ceiling that a human has set by now for the matter and for the cited sources.
    pub ceiling: Ceiling,
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
        let mut tries = 1;
        loop {
            let answered = self.answer_once(asked);
            let passing = match &answered {
                Err(AnswerError::Apply(ApplyError::ChangedMeanwhile { .. } | ApplyError::Record { .. })) => true,
                Ok(_) | Err(_) => false,
            };
            if !passing || tries == TRIES {
                return answered.map_err(AnswerError::final_word);
            }
            tries += 1;
            std::thread::sleep(PAUSE);
        }
    }

    fn answer_once(&self, asked: &Asked<'_>) -> Result<Receipt, AnswerError> {
        let mut turn = self.turn()?;
        let record = self.asked_about(asked)?;
        if let Some(receipt) = self.answered_before(asked, &record)? {
            return Ok(receipt);
        }
        if asked.kind == AnswerKind::Confirm && brake::is_stopped(self.root()) {
            return Err(Refusal::ShadowNow.into());
        }
        let past = self.past(asked, &record, turn.head.seq)?;
        let plan = answer(&Request {
            kind: asked.kind,
            record: &record,
            past: &past,
            by: asked.by,
            reason: asked.reason,
            policy: asked.policy,
            ceiling: asked.ceiling,
            workflow: asked.workflow.clone(),
            now: asked.now,
        })?;
        let owes = if asked.kind == AnswerKind::Undo { tracker::revert(&record) } else { None };
        Ok(self.carry_out(&mut turn, &plan, owes)?)
    }

    fn asked_about(&self, asked: &Asked<'_>) -> Result<AuditRecord, AnswerError> {
        match chain::read(self.root(), asked.record) {
            Ok((record, _)) if record.draft.file().as_ref() == Ok(asked.record) => Ok(record),
            Ok(_) => {
                let reason =
                    format!("{}: not the name under which this record was filed: rename it back", asked.record);
                Err(Refusal::Record { reason }.into())
            }
            Err(ChainError::Root(RootError::Missing { .. })) => {
                Err(Refusal::Unknown { id: asked.record.slug().to_owned() }.into())
            }
            Err(e @ ChainError::Record { .. }) => Err(Refusal::Record { reason: e.to_string() }.into()),
            Err(e) => Err(ApplyError::from(e).into()),
        }
    }

    /// What else was changed in the same record, where an undo has to know: after the newest record of all
    /// there is nothing.
    fn past(&self, asked: &Asked<'_>, record: &AuditRecord, newest: u64) -> Result<Vec<Past>, AnswerError> {
        if asked.kind != AnswerKind::Undo || record.undo_recipe.is_none() || record.seq == newest {
            return Ok(Vec::new());
        }
        past::of(self.root(), record).map_err(|e| match e {
            ChainError::Record { .. } => Refusal::Record { reason: format!("{e}: run `steward audit verify`") }.into(),
            e => ApplyError::from(e).into(),
        })
    }

    /// The receipt of this very run, or a refusal when somebody else was faster.
    fn answered_before(&self, asked: &Asked<'_>, record: &AuditRecord) -> Result<Option<Receipt>, AnswerError> {
        for kind in [ActionKind::Reversed, ActionKind::Confirmed, ActionKind::Dismissed, ActionKind::Raised] {
            let path = record.draft.follower(kind).map_err(|e| ApplyError::Form(e.to_string()))?;
            if !self.root().exists(&path) {
                continue;
            }
            let (found, _) = chain::read(self.root(), &path).map_err(ApplyError::from)?;
            let run = &asked.workflow.run_id;
            if kind == asked.kind.record() && !run.is_empty() && &found.draft.workflow.run_id == run {
                let (id, landing) = (found.draft.id, found.draft.landing);
                return Ok(Some(Receipt { id, record: path, landing, repeated: true }));
            }
            return Err(already(record, kind, &found).into());
        }
        // The very change was made by hand, and stands as such: a click that crossed it says nothing new.
        let by_hand = record.draft.follower(ActionKind::DoneAnyway).map_err(|e| ApplyError::Form(e.to_string()))?;
        if asked.kind == AnswerKind::Confirm && self.root().exists(&by_hand) {
            let (found, _) = chain::read(self.root(), &by_hand).map_err(ApplyError::from)?;
            return Err(already(record, ActionKind::DoneAnyway, &found).into());
        }
        Ok(None)
    }
}

impl AnswerError {
    /// What is wrong with the record itself is an answer to the human; trouble with the machine is not.
    fn final_word(self) -> Self {
        match self {
            Self::Apply(ApplyError::Conflict { fields, .. }) => Refusal::Conflict { fields }.into(),
            Self::Apply(e @ ApplyError::Record { .. }) => Refusal::Record { reason: e.to_string() }.into(),
            Self::Apply(ApplyError::Root(e)) => match e {
                RootError::Io { .. } | RootError::Open { .. } => Self::Apply(e.into()),
                RootError::Missing { .. }
                | RootError::Link { .. }
                | RootError::NotAFile { .. }
                | RootError::TooLarge { .. } => Refusal::Record { reason: e.to_string() }.into(),
            },
            Self::Refused(_) | Self::Apply(_) => self,
        }
    }
}

fn already(record: &AuditRecord, kind: ActionKind, found: &AuditRecord) -> Refusal {
    let by = found.draft.answers.as_ref().map_or("nobody", |a| a.by.as_str());
    Refusal::AlreadyAnswered {
        id: record.draft.id.to_string(),
        how: kind.did().to_lowercase(),
        by: format!("{by} at {}", time::stamp(found.draft.timestamp)),
    }
}

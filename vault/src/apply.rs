//! The one write path: a plan becomes a change and its audit record, or nothing at all.
//!
//! Everything that needs space is written first (intent, audit record, new content); then the
//! files change places and the record is filed under its name. A crash anywhere leaves the intent
//! and the staged files, from which [`Keeper::lock`] finishes or takes back. The steward's own
//! changes, undo, confirm and dismiss all pass here.

use crate::brake;
use crate::chain::{self, Head};
use crate::crash;
use crate::journal::{self, Intent};
use crate::keeper::{ApplyError, Keeper, Receipt, staged_record};
use crate::root::OWN_FOLDER;
use crate::swap::{self, Swapped};
use std::io;
use std::time::Instant;
use steward_domain::audit::{ActionKind, AuditRecord, FieldPatch};
use steward_domain::path::RecordPath;
use steward_domain::plan::{ContentHash, Plan, PrepareError, Prepared};

impl Keeper {
    /// Carries a plan out, once however often it is asked.
    ///
    /// A pulled brake turns a steward's live change into a shadow one; it does not hold back a
    /// human's undo.
    ///
    /// # Errors
    /// [`ApplyError`]; nothing has been changed then, and asking again is safe.
    pub fn apply(&self, plan: Plan) -> Result<Receipt, ApplyError> {
        let mut turn = self.turn();
        let record = plan.draft().file().map_err(|e| ApplyError::Form(e.to_string()))?;
        if let Some(receipt) = self.done_before(&plan, &record)? {
            return Ok(receipt);
        }
        let undo = plan.draft().kind == ActionKind::Reversed;
        let plan = if !undo && brake::is_stopped(self.root()) { plan.braked() } else { plan };
        let receipt =
            Receipt { id: plan.id().clone(), record: record.clone(), landing: plan.landing(), repeated: false };
        let head = chain::head(self.root())?;
        let prepared = if plan.changes_the_record() { self.prepare(&plan)? } else { None };
        match prepared {
            Some(prepared) => turn.push((Instant::now(), self.change(&plan, &record, &head, prepared)?)),
            None => {
                self.remember(&plan, &record, &head, Vec::new())?;
                chain::file(self.root(), &staged_record(plan.id()), &record)?;
            }
        }
        Ok(receipt)
    }

    /// The bytes to write; `None` when the record already is as the plan wants it.
    fn prepare(&self, plan: &Plan) -> Result<Option<Prepared>, ApplyError> {
        let current = self.root().read(plan.target())?;
        let prepared = plan.prepare(&current.bytes).map_err(|e| refuse(plan.target(), e))?;
        Ok((prepared.after != current.bytes).then_some(prepared))
    }

    fn done_before(&self, plan: &Plan, record: &RecordPath) -> Result<Option<Receipt>, ApplyError> {
        if !self.root().exists(record) {
            return Ok(None);
        }
        let (found, _) = chain::read(self.root(), record)?;
        if found.draft.id != *plan.id() {
            return Err(ApplyError::Form(format!("{record}: another action has taken this name")));
        }
        Ok(Some(Receipt { id: found.draft.id, record: record.clone(), landing: found.draft.landing, repeated: true }))
    }

    /// Stages the record and announces it; filing it is then a rename.
    fn remember(&self, plan: &Plan, path: &RecordPath, head: &Head, patch: Vec<FieldPatch>) -> Result<(), ApplyError> {
        let record = AuditRecord::close(plan.draft().clone(), patch, head.next());
        let text = record.render().map_err(|e| ApplyError::Form(e.to_string()))?;
        let failed = |source| ApplyError::Io { path: path.to_string(), source };
        chain::stage(self.root(), &staged_record(plan.id()), &text).map_err(failed)?;
        crash::point("after-staging-record");
        chain::announce(self.root(), head, path).map_err(failed)?;
        crash::point("after-announcing-record");
        Ok(())
    }

    fn change(&self, plan: &Plan, record: &RecordPath, head: &Head, prepared: Prepared) -> Result<Intent, ApplyError> {
        let intent = Intent {
            id: plan.id().clone(),
            target: plan.target().clone(),
            record: record.clone(),
            before: prepared.before.clone(),
            after: ContentHash::of(&prepared.after),
        };
        match self.carry_out(plan, &intent, head, prepared) {
            Ok(()) => Ok(intent),
            Err(e) => {
                self.take_back(&intent);
                Err(e)
            }
        }
    }

    fn carry_out(&self, plan: &Plan, intent: &Intent, head: &Head, prepared: Prepared) -> Result<(), ApplyError> {
        let failed = |path: String| move |source: io::Error| ApplyError::Io { path, source };
        crash::point("before-journal");
        journal::write(self.root(), intent).map_err(failed(format!("{OWN_FOLDER}/journal")))?;
        crash::point("after-journal");
        self.remember(plan, &intent.record, head, prepared.patch)?;
        swap::stage(self.root(), &intent.swap(), &prepared.after).map_err(failed(intent.target.to_string()))?;
        crash::point("after-staging-target");
        match swap::exchange(self.root(), &intent.swap()).map_err(failed(intent.target.to_string()))? {
            Swapped::ChangedMeanwhile => Err(ApplyError::ChangedMeanwhile { path: intent.target.clone() }),
            Swapped::Done => self.file_staged(intent),
        }
    }

    /// Removes what an attempt left that changed nothing. What cannot be removed now is removed by
    /// the next recovery, so a failure here is not one of the attempt.
    fn take_back(&self, intent: &Intent) {
        let unchanged =
            matches!(swap::displaced(self.root(), &intent.swap()), Ok(swap::Staged::Absent | swap::Staged::Waiting));
        if unchanged {
            let _ = swap::discard(self.root(), intent.id.as_str());
            let _ = swap::discard(self.root(), &staged_record(&intent.id));
            let _ = journal::remove(self.root(), intent);
        }
    }
}

fn refuse(path: &RecordPath, e: PrepareError) -> ApplyError {
    match e {
        PrepareError::ChangedMeanwhile => ApplyError::ChangedMeanwhile { path: path.clone() },
        PrepareError::Conflict(fields) => ApplyError::Conflict { path: path.clone(), fields },
        PrepareError::Frontmatter(_) => ApplyError::Record { path: path.clone(), source: e },
    }
}

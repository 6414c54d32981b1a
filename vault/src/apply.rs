//! The one write path: a plan becomes a change and its audit record, or nothing at all.
//!
//! Everything that needs space is written first (audit record, new content, intent) and made
//! durable; then the files change places and the record is filed under its name. A crash anywhere
//! leaves the intent and the staged files, from which [`Keeper::lock`] finishes or takes back. The
//! steward's own changes, undo, confirm and dismiss all pass here; a stamp ([`Keeper::stamp`]) does too,
//! with nothing to file.

use crate::brake;
use crate::chain;
use crate::crash;
use crate::durable;
use crate::journal::{self, ContentChange, Filing, Intent, Key, Work};
use crate::keeper::{ApplyError, Keeper, Receipt, Turn};
use crate::root::{OWN_FOLDER, Root, Snapshot};
use crate::swap::{self, Look, Swapped};
use std::io;
use steward_domain::audit::{ActionKind, AuditRecord, FieldPatch};
use steward_domain::content::content_hash;
use steward_domain::frontmatter;
use steward_domain::path::RecordPath;
use steward_domain::plan::{ContentHash, Disposition, Plan, PreparePlanError, PreparedChange};
use steward_domain::tracker::{self, PlaneAction};

impl Keeper {
    /// Carries a steward's plan out, once however often it is asked.
    ///
    /// Under a stop nothing is filed; a plan that was filed before the stop is still found. What a human answers goes
    /// through [`Keeper::answer`], which sees to it that one answer wins.
    ///
    /// # Errors
    /// [`ApplyError`]; asking again is safe.
    pub fn apply(&self, plan: Plan) -> Result<Receipt, ApplyError> {
        if plan.draft().answers.is_some() {
            return Err(ApplyError::Form("a human's answer is no plan of a steward".into()));
        }
        let mut turn = self.turn()?;
        if brake::is_stopped(self.root()) {
            return self.done_before(&plan, &file_of(&plan)?)?.ok_or(ApplyError::Stopped);
        }
        self.carry_out(&mut turn, &plan, None)
    }

    /// Does what the plan says, or finds that it was done.
    ///
    /// `says` is what its record will say of the tracker; a change of a task's state says by itself what
    /// it owes.
    pub(crate) fn carry_out(
        &self,
        turn: &mut Turn,
        plan: &Plan,
        says: Option<PlaneAction>,
    ) -> Result<Receipt, ApplyError> {
        let record = file_of(plan)?;
        if let Some(receipt) = self.done_before(plan, &record)? {
            return Ok(receipt);
        }
        let ready = if plan.has_record_change() { self.prepare(plan)? } else { None };
        if plan.disposition() == Disposition::Pending {
            self.check_basis(plan)?;
        }
        let (patch, owed, content) = ready.map_or_else(Default::default, |r| (r.patch, r.owed, Some(r.content)));
        let closed = AuditRecord::from_draft(plan.draft().clone(), patch, turn.head.next())
            .with_tracker(says.or(owed))
            .with_content(content.as_ref().and_then(Content::said));
        let intent = self.stage(turn, &closed, &record, content)?;
        self.land(turn, intent)?;
        Ok(Receipt { id: plan.id().clone(), record, landing: plan.disposition(), repeated: false })
    }

    /// Does what is staged, or takes it back.
    pub(crate) fn land(&self, turn: &mut Turn, intent: Intent) -> Result<(), ApplyError> {
        let changed = || ApplyError::ChangedMeanwhile { path: intent.subject().clone() };
        match self.perform(&intent) {
            Ok(Swapped::Done) => {
                self.finish(turn, intent);
                Ok(())
            }
            Ok(Swapped::ChangedMeanwhile) => {
                self.forget(&intent);
                Err(changed())
            }
            Ok(Swapped::TakenBack) => {
                let error = changed();
                self.taken_back(turn, intent);
                Err(error)
            }
            Err(source) => {
                let error = ApplyError::io(intent.subject())(source);
                self.back_out(turn, intent);
                Err(error)
            }
        }
    }

    /// What is to be written; `None` when the record already is as the plan wants it.
    fn prepare(&self, plan: &Plan) -> Result<Option<Ready>, ApplyError> {
        let (current, prepared) = prepared(self.root(), plan)?;
        if prepared.after == current.bytes {
            return Ok(None);
        }
        let owed = self.owed(plan, &current, &prepared.patch)?;
        let content = Content::new(plan.target().clone(), &current, prepared.after);
        Ok(Some(Ready { content, patch: prepared.patch, owed }))
    }

    /// A human is only offered a change to the record as it was judged.
    fn check_basis(&self, plan: &Plan) -> Result<(), ApplyError> {
        let current = self.root().read(plan.target())?;
        if plan.is_based_on(&current.hash) {
            return Ok(());
        }
        Err(ApplyError::ChangedMeanwhile { path: plan.target().clone() })
    }

    /// What a change owes to the tracker; an undo owes what the record it undoes says.
    fn owed(&self, plan: &Plan, current: &Snapshot, patch: &[FieldPatch]) -> Result<Option<PlaneAction>, ApplyError> {
        let changes = matches!(plan.draft().kind, ActionKind::Action | ActionKind::Confirmed);
        let Some(site) = self.tracker().filter(|_| changes) else { return Ok(None) };
        let document = frontmatter::read(&current.bytes).map_err(|e| refuse(plan.target(), e.into()))?;
        Ok(tracker::derive_owed_action(plan.target(), document.fields(), patch, site.project.as_ref()))
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

    /// Writes all that the change will need, durable, the intent last.
    fn stage(
        &self,
        turn: &mut Turn,
        closed: &AuditRecord,
        record: &RecordPath,
        content: Option<Content>,
    ) -> Result<Intent, ApplyError> {
        let (change, bytes) = content.map(|c| (c.change, c.bytes)).unzip();
        let text = remembered(closed, record)?;
        let sha256 = ContentHash::hash_bytes(text.as_bytes());
        let filing = Filing { record: record.clone(), seq: closed.seq, sha256 };
        let key = Key::new(turn.number(), &closed.draft.id);
        let intent = Intent { key, work: Work::Action { filing, change } };
        self.write_or_forget(&intent, &text, bytes.as_deref())?;
        Ok(intent)
    }

    /// Stages a change that no record goes with.
    pub(crate) fn stage_stamp(&self, turn: &mut Turn, content: Content) -> Result<Intent, ApplyError> {
        let intent = Intent { key: Key::stamp(turn.number()), work: Work::Stamp(content.change) };
        self.write_or_forget(&intent, "", Some(&content.bytes))?;
        Ok(intent)
    }

    fn write_or_forget(&self, intent: &Intent, record: &str, content: Option<&[u8]>) -> Result<(), ApplyError> {
        self.write_all(intent, record, content).inspect_err(|_| self.forget(intent))
    }

    fn write_all(&self, intent: &Intent, record: &str, content: Option<&[u8]>) -> Result<(), ApplyError> {
        let root = self.root();
        crash::point("before-staging");
        if let Some(filing) = intent.filing() {
            chain::stage(root, &intent.key.record(), record).map_err(ApplyError::io(&filing.record))?;
            crash::point("after-staging-record");
        }
        if let (Some(swap), Some(bytes)) = (intent.swap(), content) {
            swap::stage(root, &swap, bytes).map_err(ApplyError::io(swap.target))?;
            crash::point("after-staging-content");
        }
        let synced = swap::staged_dir(root).and_then(|dir| durable::sync(&dir));
        synced.map_err(ApplyError::io(format!("{OWN_FOLDER}/")))?;
        journal::write(root, intent).map_err(ApplyError::io(intent.shown()))?;
        crash::point("after-journal");
        Ok(())
    }

    /// Removes what was staged in vain. What cannot be removed now is swept by the next recovery.
    fn forget(&self, intent: &Intent) {
        let _ = journal::remove(self.root(), intent);
        let _ = swap::discard(self.root(), intent.key.content());
        let _ = swap::discard(self.root(), &intent.key.record());
    }

    /// From here on nothing needs space but the name of the record in its folder.
    fn perform(&self, intent: &Intent) -> io::Result<Swapped> {
        let swapped = intent.swap().map_or(Ok(Swapped::Done), |swap| swap::exchange(self.root(), &swap))?;
        if swapped == Swapped::Done
            && let Some(filing) = intent.filing()
        {
            crash::point("before-filing");
            chain::file(self.root(), &intent.key, filing)?;
        }
        Ok(swapped)
    }

    /// The change is done and recorded; whatever fails from here on is made good later.
    fn finish(&self, turn: &mut Turn, intent: Intent) {
        if let Some(filing) = intent.filing() {
            turn.head = turn.head.clone().after(filing);
            if let Err(e) = chain::write_head(self.root(), &turn.head) {
                tracing::warn!(error = %e, "failed to write the head of the chain, its intent stands for it");
            }
        }
        // An editor that was half way through a save is done by now: its file belongs in place.
        match intent.swap().map(|swap| swap::look(self.root(), &swap)).transpose() {
            Ok(Some(Look::GivenBack)) => {
                tracing::info!(record = %intent.subject(), "an edit came at the same moment and stands")
            }
            Ok(Some(Look::Quiet | Look::Kept(_) | Look::Gone) | None) => {}
            Err(e) => tracing::warn!(record = %intent.subject(), error = %e, "failed to look for a late edit"),
        }
        turn.keep(intent);
    }
}

/// The path of a plan's audit record.
fn file_of(plan: &Plan) -> Result<RecordPath, ApplyError> {
    plan.draft().record_path().map_err(|e| ApplyError::Form(e.to_string()))
}

/// The target as it is now, and what the plan makes of it. Changes nothing.
pub(crate) fn prepared(root: &Root, plan: &Plan) -> Result<(Snapshot, PreparedChange), ApplyError> {
    let current = root.read(plan.target())?;
    let prepared = plan.prepare(&current.bytes).map_err(|e| refuse(plan.target(), e))?;
    Ok((current, prepared))
}

/// New content, ready to be staged, and what undoing it takes.
struct Ready {
    content: Content,
    patch: Vec<FieldPatch>,
    /// What the change owes to the tracker.
    owed: Option<PlaneAction>,
}

/// New content of a file.
pub(crate) struct Content {
    change: ContentChange,
    bytes: Vec<u8>,
}

impl Content {
    /// What it says, whatever its formatting; `None` where it cannot be read.
    fn said(&self) -> Option<ContentHash> {
        frontmatter::read(&self.bytes).ok().map(|document| content_hash(&document))
    }

    pub(crate) fn new(target: RecordPath, current: &Snapshot, bytes: Vec<u8>) -> Self {
        let change = ContentChange {
            target,
            before: current.hash.clone(),
            after: ContentHash::hash_bytes(&bytes),
            replaced: swap::replaced_words(&current.bytes, &bytes),
        };
        Self { change, bytes }
    }
}

/// The text of a record that is certain to be read back as what it is.
fn remembered(record: &AuditRecord, path: &RecordPath) -> Result<String, ApplyError> {
    let text = record.render().map_err(|e| ApplyError::Form(format!("{path}: {e}")))?;
    match AuditRecord::parse(text.as_bytes()) {
        Ok(read) if &read == record => Ok(text),
        Ok(_) => Err(ApplyError::Form(format!("{path}: the record would not read back as it was written"))),
        Err(e) => Err(ApplyError::Form(format!("{path}: the record could not be read back: {e}"))),
    }
}

fn refuse(path: &RecordPath, e: PreparePlanError) -> ApplyError {
    match e {
        PreparePlanError::ChangedMeanwhile => ApplyError::ChangedMeanwhile { path: path.clone() },
        PreparePlanError::Conflict(fields) => ApplyError::Conflict { path: path.clone(), fields },
        PreparePlanError::Frontmatter(_) | PreparePlanError::TooLong { .. } => {
            ApplyError::Record { path: path.clone(), source: e }
        }
    }
}

//! The one write path: a plan becomes a change and its audit record, or nothing at all.
//!
//! Everything that needs space is written first (audit record, new content, intent) and made
//! durable; then the files change places and the record is filed under its name. A crash anywhere
//! leaves the intent and the staged files, from which [`VaultWriter::lock`] finishes or takes back. The
//! steward's own changes, undo, confirm and dismiss all pass here; a stamp ([`VaultWriter::stamp`]) does too,
//! with nothing to file.

use crate::action::chain;
use crate::action::journal::{self, AttemptKey, ChangeIntent, ContentChange, IntentKind, RecordFiling};
use crate::action::swap::{self, LateEditCheck, SwapOutcome};
use crate::action::writer::{ActionReceipt, ApplyError, VaultWriter, WriterState};
use crate::files::crash;
use crate::files::durable;
use crate::files::root::{OWN_FOLDER, RecordSnapshot, VaultRoot};
use crate::gates::stop;
use std::io;
use steward_domain::action::audit::{ActionKind, AuditRecord, FieldPatch};
use steward_domain::action::plan::{ContentHash, Disposition, Plan, PreparePlanError, PreparedChange};
use steward_domain::record::content_hash::content_hash;
use steward_domain::record::frontmatter;
use steward_domain::record::path::RecordPath;
use steward_domain::tracker::{self, PlaneAction};

impl VaultWriter {
    /// Carries a steward's plan out, once however often it is asked.
    ///
    /// Under a stop nothing is filed; a plan that was filed before the stop is still found. What a human answers goes
    /// through [`VaultWriter::answer`], which sees to it that one answer wins.
    ///
    /// # Errors
    /// [`ApplyError`]; asking again is safe.
    pub fn apply_plan(&self, plan: Plan) -> Result<ActionReceipt, ApplyError> {
        if plan.draft().answers.is_some() {
            return Err(ApplyError::Form("a human's answer is no plan of a steward".into()));
        }
        let mut turn = self.lock_state()?;
        if stop::is_stopped(self.root()) {
            return self.find_receipt(&plan, &audit_record_path(&plan)?)?.ok_or(ApplyError::Stopped);
        }
        self.write_plan_once(&mut turn, &plan, None)
    }

    /// Does what the plan says, or finds that it was done.
    ///
    /// `says` is what its record will say of the tracker; a change of a task's state says by itself what
    /// it owes.
    pub(crate) fn write_plan_once(
        &self,
        turn: &mut WriterState,
        plan: &Plan,
        says: Option<PlaneAction>,
    ) -> Result<ActionReceipt, ApplyError> {
        let record = audit_record_path(plan)?;
        if let Some(receipt) = self.find_receipt(plan, &record)? {
            return Ok(receipt);
        }
        let ready = if plan.has_record_change() { self.prepare_change(plan)? } else { None };
        if plan.disposition() == Disposition::Pending {
            self.check_basis(plan)?;
        }
        let (patch, owed, content) = ready.map_or_else(Default::default, |r| (r.patch, r.owed, Some(r.content)));
        let closed = AuditRecord::from_draft(plan.draft().clone(), patch, turn.head.next_link())
            .with_tracker(says.or(owed))
            .with_content(content.as_ref().and_then(NewContent::parsed_hash));
        let intent = self.stage_change(turn, &closed, &record, content)?;
        self.commit_intent(turn, intent)?;
        Ok(ActionReceipt { id: plan.id().clone(), record, landing: plan.disposition(), repeated: false })
    }

    /// Does what is staged, or takes it back.
    pub(crate) fn commit_intent(&self, turn: &mut WriterState, intent: ChangeIntent) -> Result<(), ApplyError> {
        let changed = || ApplyError::ChangedMeanwhile { path: intent.subject().clone() };
        match self.swap_and_file(&intent) {
            Ok(SwapOutcome::Done) => {
                self.finish_change(turn, intent);
                Ok(())
            }
            Ok(SwapOutcome::ChangedMeanwhile) => {
                self.discard_staged(&intent);
                Err(changed())
            }
            Ok(SwapOutcome::TakenBack) => {
                let error = changed();
                self.keep_reverted_intent(turn, intent);
                Err(error)
            }
            Err(source) => {
                let error = ApplyError::wrap_io(intent.subject())(source);
                self.revert_intent(turn, intent);
                Err(error)
            }
        }
    }

    /// What is to be written; `None` when the record already is as the plan wants it.
    fn prepare_change(&self, plan: &Plan) -> Result<Option<ReadyChange>, ApplyError> {
        let (current, prepared) = read_and_prepare(self.root(), plan)?;
        if prepared.after == current.bytes {
            return Ok(None);
        }
        let owed = self.find_owed_action(plan, &current, &prepared.patch)?;
        let content = NewContent::new(plan.target().clone(), &current, prepared.after);
        Ok(Some(ReadyChange { content, patch: prepared.patch, owed }))
    }

    /// A human is only offered a change to the record as it was judged.
    fn check_basis(&self, plan: &Plan) -> Result<(), ApplyError> {
        let current = self.root().read_file(plan.target())?;
        if plan.is_based_on(&current.hash) {
            return Ok(());
        }
        Err(ApplyError::ChangedMeanwhile { path: plan.target().clone() })
    }

    /// What a change owes to the tracker; an undo owes what the record it undoes says.
    fn find_owed_action(
        &self,
        plan: &Plan,
        current: &RecordSnapshot,
        patch: &[FieldPatch],
    ) -> Result<Option<PlaneAction>, ApplyError> {
        let changes = matches!(plan.draft().kind, ActionKind::Action | ActionKind::Confirmed);
        let Some(site) = self.tracker_site().filter(|_| changes) else { return Ok(None) };
        let document =
            frontmatter::read_document(&current.bytes).map_err(|e| convert_prepare_error(plan.target(), e.into()))?;
        Ok(tracker::derive_owed_action(plan.target(), document.fields(), patch, site.project.as_ref()))
    }

    fn find_receipt(&self, plan: &Plan, record: &RecordPath) -> Result<Option<ActionReceipt>, ApplyError> {
        if !self.root().exists(record) {
            return Ok(None);
        }
        let (found, _) = chain::read_audit_record(self.root(), record)?;
        if found.draft.id != *plan.id() {
            return Err(ApplyError::Form(format!("{record}: another action has taken this name")));
        }
        Ok(Some(ActionReceipt {
            id: found.draft.id,
            record: record.clone(),
            landing: found.draft.landing,
            repeated: true,
        }))
    }

    /// Writes all that the change will need, durable, the intent last.
    fn stage_change(
        &self,
        turn: &mut WriterState,
        closed: &AuditRecord,
        record: &RecordPath,
        content: Option<NewContent>,
    ) -> Result<ChangeIntent, ApplyError> {
        let (change, bytes) = content.map(|c| (c.change, c.bytes)).unzip();
        let text = render_verified_record(closed, record)?;
        let sha256 = ContentHash::hash_bytes(text.as_bytes());
        let filing = RecordFiling { record: record.clone(), seq: closed.seq, sha256 };
        let key = AttemptKey::new(turn.take_number(), &closed.draft.id);
        let intent = ChangeIntent { key, work: IntentKind::Action { filing, change } };
        self.write_or_discard(&intent, &text, bytes.as_deref())?;
        Ok(intent)
    }

    /// Stages a change that no record goes with.
    pub(crate) fn stage_unrecorded_change(
        &self,
        turn: &mut WriterState,
        content: NewContent,
    ) -> Result<ChangeIntent, ApplyError> {
        let intent = ChangeIntent {
            key: AttemptKey::new_unrecorded(turn.take_number()),
            work: IntentKind::Stamp(content.change),
        };
        self.write_or_discard(&intent, "", Some(&content.bytes))?;
        Ok(intent)
    }

    fn write_or_discard(&self, intent: &ChangeIntent, record: &str, content: Option<&[u8]>) -> Result<(), ApplyError> {
        self.write_staged_files(intent, record, content).inspect_err(|_| self.discard_staged(intent))
    }

    fn write_staged_files(
        &self,
        intent: &ChangeIntent,
        record: &str,
        content: Option<&[u8]>,
    ) -> Result<(), ApplyError> {
        let root = self.root();
        crash::die_if_armed("before-staging");
        if let Some(filing) = intent.filing() {
            chain::stage_record(root, &intent.key.record_name(), record)
                .map_err(ApplyError::wrap_io(&filing.record))?;
            crash::die_if_armed("after-staging-record");
        }
        if let (Some(swap), Some(bytes)) = (intent.to_swap(), content) {
            swap::stage_content(root, &swap, bytes).map_err(ApplyError::wrap_io(swap.target))?;
            crash::die_if_armed("after-staging-content");
        }
        let synced = swap::open_staged_folder(root).and_then(|dir| durable::sync_folder(&dir));
        synced.map_err(ApplyError::wrap_io(format!("{OWN_FOLDER}/")))?;
        journal::write_intent(root, intent).map_err(ApplyError::wrap_io(intent.display_path()))?;
        crash::die_if_armed("after-journal");
        Ok(())
    }

    /// Removes what was staged in vain. What cannot be removed now is swept by the next recovery.
    fn discard_staged(&self, intent: &ChangeIntent) {
        let _ = journal::remove_intent(self.root(), intent);
        let _ = swap::discard_file(self.root(), intent.key.content_name());
        let _ = swap::discard_file(self.root(), &intent.key.record_name());
    }

    /// From here on nothing needs space but the name of the record in its folder.
    fn swap_and_file(&self, intent: &ChangeIntent) -> io::Result<SwapOutcome> {
        let swapped = intent.to_swap().map_or(Ok(SwapOutcome::Done), |swap| swap::swap_in(self.root(), &swap))?;
        if swapped == SwapOutcome::Done
            && let Some(filing) = intent.filing()
        {
            crash::die_if_armed("before-filing");
            chain::publish_staged_record(self.root(), &intent.key, filing)?;
        }
        Ok(swapped)
    }

    /// The change is done and recorded; whatever fails from here on is made good later.
    fn finish_change(&self, turn: &mut WriterState, intent: ChangeIntent) {
        if let Some(filing) = intent.filing() {
            turn.head = turn.head.clone().advance_to(filing);
            if let Err(e) = chain::write_head(self.root(), &turn.head) {
                tracing::warn!(error = %e, "failed to write the head of the chain, its intent stands for it");
            }
        }
        // An editor that was half way through a save is done by now: its file belongs in place.
        match intent.to_swap().map(|swap| swap::check_late_edit(self.root(), &swap)).transpose() {
            Ok(Some(LateEditCheck::GivenBack)) => {
                tracing::info!(record = %intent.subject(), "an edit came at the same moment and stands")
            }
            Ok(Some(LateEditCheck::Quiet | LateEditCheck::Kept(_) | LateEditCheck::Gone) | None) => {}
            Err(e) => tracing::warn!(record = %intent.subject(), error = %e, "failed to look for a late edit"),
        }
        turn.keep_unsettled(intent);
    }
}

/// The path of a plan's audit record.
fn audit_record_path(plan: &Plan) -> Result<RecordPath, ApplyError> {
    plan.draft().record_path().map_err(|e| ApplyError::Form(e.to_string()))
}

/// The target as it is now, and what the plan makes of it. Changes nothing.
pub(crate) fn read_and_prepare(root: &VaultRoot, plan: &Plan) -> Result<(RecordSnapshot, PreparedChange), ApplyError> {
    let current = root.read_file(plan.target())?;
    let prepared = plan.prepare(&current.bytes).map_err(|e| convert_prepare_error(plan.target(), e))?;
    Ok((current, prepared))
}

/// New content, ready to be staged, and what undoing it takes.
struct ReadyChange {
    content: NewContent,
    patch: Vec<FieldPatch>,
    /// What the change owes to the tracker.
    owed: Option<PlaneAction>,
}

/// New content of a file.
pub(crate) struct NewContent {
    change: ContentChange,
    bytes: Vec<u8>,
}

impl NewContent {
    /// What it says, whatever its formatting; `None` where it cannot be read.
    fn parsed_hash(&self) -> Option<ContentHash> {
        frontmatter::read_document(&self.bytes).ok().map(|document| content_hash(&document))
    }

    pub(crate) fn new(target: RecordPath, current: &RecordSnapshot, bytes: Vec<u8>) -> Self {
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
fn render_verified_record(record: &AuditRecord, path: &RecordPath) -> Result<String, ApplyError> {
    let text = record.render().map_err(|e| ApplyError::Form(format!("{path}: {e}")))?;
    match AuditRecord::parse(text.as_bytes()) {
        Ok(read) if &read == record => Ok(text),
        Ok(_) => Err(ApplyError::Form(format!("{path}: the record would not read back as it was written"))),
        Err(e) => Err(ApplyError::Form(format!("{path}: the record could not be read back: {e}"))),
    }
}

fn convert_prepare_error(path: &RecordPath, e: PreparePlanError) -> ApplyError {
    match e {
        PreparePlanError::ChangedMeanwhile => ApplyError::ChangedMeanwhile { path: path.clone() },
        PreparePlanError::Conflict(fields) => ApplyError::Conflict { path: path.clone(), fields },
        PreparePlanError::Frontmatter(_) | PreparePlanError::TooLong { .. } => {
            ApplyError::Record { path: path.clone(), source: e }
        }
    }
}

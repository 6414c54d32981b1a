//! The one write path: a plan becomes a change and its audit record, or nothing at all.
//!
//! Everything that needs space is written first and made durable: the audit record, the new contents and the intent.
//! Then the files change places ([`crate::action::transaction`]), and the record is filed under its name. A crash at any point leaves the intent and the
//! staged files. From them, [`VaultWriter::lock`] finishes the change or reverts it. A steward's changes and a person's
//! undo, confirm and dismiss all take this path. A timestamp write-back ([`VaultWriter::write_timestamps`]) takes it
//! too, but files no record.

use crate::action::chain;
use crate::action::journal::{self, AttemptKey, ChangeIntent, IntentKind, RecordFiling};
use crate::action::new_content::{NewContent, StagedRecord};
use crate::action::ownership::ChangeNeeds;
use crate::action::swap::{self, LateEditCheck};
use crate::action::transaction::{self, TransactionOutcome};
use crate::action::writer::{ActionReceipt, ApplyError, VaultWriter, WriterState};
use crate::files::crash;
use crate::files::durable;
use crate::files::root::{OWN_FOLDER, RecordSnapshot, VaultRoot};
use crate::gates::stop;
use chrono::{DateTime, Utc};
use std::borrow::Cow;
use std::io;
use steward_domain::action::acceptance;
use steward_domain::action::audit::{ActionKind, AuditRecord, FieldPatch};
use steward_domain::action::plan::{ActionId, ContentHash, Disposition, Plan, PreparePlanError, PreparedChange};
use steward_domain::record::frontmatter;
use steward_domain::record::mapping::VaultMapping;
use steward_domain::record::path::RecordPath;
use steward_domain::record::schema::{NoteAccess, NoteSchema};
use steward_domain::tracker::{self, PlaneAction};

impl VaultWriter {
    /// Carries out a steward's plan. Repeated calls apply it once.
    ///
    /// Under a stop nothing is filed. A plan that was filed before the stop is still found. A person's resolution goes
    /// through [`VaultWriter::resolve_action`], which ensures that only one resolution wins.
    ///
    /// # Errors
    /// [`ApplyError`]; calling again is safe.
    pub fn apply_plan(&self, plan: Plan) -> Result<ActionReceipt, ApplyError> {
        if plan.draft().resolution.is_some() {
            return Err(ApplyError::Form("a person's resolution cannot be applied as a steward's plan".into()));
        }
        let mut state = self.lock_state()?;
        if stop::is_stopped(self.root()) {
            return self.find_record_name(&plan)?.receipt.ok_or(ApplyError::Stopped);
        }
        let needs = ChangeNeeds::Mode(plan.draft().mode);
        self.write_plan_once(&mut state, &plan, needs, None, &self.note_schema())
    }

    /// Files the record that a person accepted a mapping. The record names that mapping by its hash, too.
    ///
    /// # Errors
    /// [`ApplyError`]; calling again files a second record.
    pub fn accept_mapping(
        &self,
        mapping: &VaultMapping,
        by: &str,
        now: DateTime<Utc>,
    ) -> Result<ActionReceipt, ApplyError> {
        let plan = acceptance::plan_acceptance(mapping, by, now).map_err(|e| ApplyError::Form(e.to_string()))?;
        let schema = NoteSchema::from_mapping(mapping.clone(), |_| None);
        let mut state = self.lock_state()?;
        self.write_plan_once(&mut state, &plan, ChangeNeeds::Ownership, None, &schema)
    }

    /// Carries out the plan, or finds that it was carried out before.
    ///
    /// `tracker_action` goes into the audit record. If it is `None`, a change of a task's state derives its own.
    /// `schema` is the one by which the target is read and written.
    pub(crate) fn write_plan_once(
        &self,
        state: &mut WriterState,
        plan: &Plan,
        needs: ChangeNeeds,
        tracker_action: Option<PlaneAction>,
        schema: &NoteSchema,
    ) -> Result<ActionReceipt, ApplyError> {
        let RecordName { plan, record, receipt } = self.find_record_name(plan)?;
        if let Some(receipt) = receipt {
            return Ok(receipt);
        }
        let plan = plan.as_ref();
        let ready = if plan.has_record_change() { self.prepare_change(plan, schema)? } else { None };
        if plan.disposition() == Disposition::Pending {
            self.check_basis(plan)?;
        }
        let (patch, owed, content) = ready.map_or_else(Default::default, |r| (r.patch, r.owed, Some(r.content)));
        let content_hash = content.as_ref().and_then(|content| self.hash_content(plan, content));
        let audit_record = AuditRecord::from_draft(plan.draft().clone(), patch, state.head.next_link())
            .with_tracker(tracker_action.or(owed))
            .with_content(content_hash)
            .with_mapping(schema.hash().cloned(), plan.accepted_mapping())
            .with_moves(plan.recorded_moves());
        let text = render_verified_record(&audit_record, &record)?;
        let staged = StagedRecord { path: record.clone(), text, id: plan.id(), seq: audit_record.seq };
        let intent = self.stage_change(state, staged, content.into_iter().collect())?;
        self.commit_intent(state, intent, needs)?;
        Ok(ActionReceipt { id: plan.id().clone(), record, disposition: plan.disposition(), repeated: false })
    }

    /// Applies the staged change, or reverts it.
    pub(crate) fn commit_intent(
        &self,
        state: &mut WriterState,
        mut intent: ChangeIntent,
        needs: ChangeNeeds,
    ) -> Result<(), ApplyError> {
        if let Err(reason) = self.check_change(needs) {
            self.discard_staged(&intent);
            return Err(ApplyError::NotPermitted { reason });
        }
        match self.exchange_and_file(&mut intent) {
            Ok(TransactionOutcome::InPlace { .. }) => {
                self.finish_change(state, intent);
                Ok(())
            }
            Ok(TransactionOutcome::ChangedMeanwhile { at }) => {
                self.discard_staged(&intent);
                Err(ApplyError::ChangedMeanwhile { path: intent.find_target(at) })
            }
            Ok(TransactionOutcome::TakenBack { at }) => {
                let error = ApplyError::ChangedMeanwhile { path: intent.find_target(at) };
                self.keep_reverted_intent(state, intent);
                Err(error)
            }
            Err(source) => {
                let error = ApplyError::wrap_io(intent.subject())(source);
                self.revert_intent(state, intent);
                Err(error)
            }
        }
    }

    /// Prepares the new content; `None` if the record already is as the plan wants it.
    fn prepare_change(&self, plan: &Plan, schema: &NoteSchema) -> Result<Option<ReadyChange>, ApplyError> {
        let (names, moves) = (self.note_names().unwrap_or_default(), self.note_moves());
        let notes = NoteAccess { schema, names: &names, moves: &moves };
        let (current, prepared) = read_and_prepare(self.root(), plan, notes)?;
        if prepared.after == current.bytes {
            return Ok(None);
        }
        let owed = self.find_owed_action(plan, &current, &prepared.patch, schema)?;
        let content = NewContent::new(plan.target().clone(), &current, prepared.after);
        Ok(Some(ReadyChange { content, patch: prepared.patch, owed }))
    }

    /// Checks that the record still is as it was judged: only then is the change offered to a person.
    fn check_basis(&self, plan: &Plan) -> Result<(), ApplyError> {
        let current = self.root().read_file(plan.target())?;
        if plan.is_based_on(&current.hash) {
            return Ok(());
        }
        Err(ApplyError::ChangedMeanwhile { path: plan.target().clone().into() })
    }

    /// What a steward's change or a confirmation owes to the tracker.
    ///
    /// What an undo owes comes from the record that it undoes, not from here.
    fn find_owed_action(
        &self,
        plan: &Plan,
        current: &RecordSnapshot,
        patch: &[FieldPatch],
        schema: &NoteSchema,
    ) -> Result<Option<PlaneAction>, ApplyError> {
        let changes = matches!(plan.draft().kind, ActionKind::Action | ActionKind::Confirmed);
        let Some(site) = self.tracker_site().filter(|_| changes) else { return Ok(None) };
        let document =
            frontmatter::read_document(&current.bytes).map_err(|e| convert_prepare_error(plan.target(), e.into()))?;
        let (kind, project) = (plan.draft().target_kind, site.project.as_ref());
        Ok(tracker::derive_owed_action(kind, document.fields(), patch, schema, project))
    }

    /// The hash of the target's content after the change, as the index will compute it; `None` if it cannot be parsed or
    /// is no note.
    fn hash_content(&self, plan: &Plan, content: &NewContent) -> Option<ContentHash> {
        if !plan.draft().target_kind.is_note() {
            return None;
        }
        let document = frontmatter::read_document(content.bytes.as_deref()?).ok()?;
        let (schema, names, moves) = (self.note_schema(), self.note_names().unwrap_or_default(), self.note_moves());
        let notes = NoteAccess { schema: &schema, names: &names, moves: &moves };
        let links = notes.links(plan.target(), plan.decided_at());
        Some(schema.content_hash(plan.draft().target_kind, &document, links))
    }

    /// Finds the name of the plan's audit record, and the record itself if it was filed before.
    ///
    /// Records are named by the millisecond. If another action has the name, the plan takes the next free millisecond.
    pub(crate) fn find_record_name<'a>(&self, plan: &'a Plan) -> Result<RecordName<'a>, ApplyError> {
        let mut plan = Cow::Borrowed(plan);
        for _ in 0..MOMENTS {
            let record = plan.draft().record_path().map_err(|e| ApplyError::Form(e.to_string()))?;
            let receipt = match self.find_name_holder(plan.id(), &record)? {
                NameHolder::Nobody => None,
                NameHolder::Ours(receipt) => Some(receipt),
                NameHolder::Another => {
                    if plan.draft().resolution.is_some() {
                        return Err(ApplyError::Form(format!("{record}: another action has taken this name")));
                    }
                    plan.to_mut().take_next_moment();
                    continue;
                }
            };
            return Ok(RecordName { plan, record, receipt });
        }
        Err(ApplyError::Form(format!("{}: too many actions at one moment", plan.target())))
    }

    /// Which action has filed a record of this name.
    pub(crate) fn find_name_holder(&self, id: &ActionId, record: &RecordPath) -> Result<NameHolder, ApplyError> {
        if !self.root().exists(record) {
            return Ok(NameHolder::Nobody);
        }
        let filed = chain::read_audit_record(self.root(), record)?.0.draft;
        if &filed.id != id {
            return Ok(NameHolder::Another);
        }
        let (id, disposition) = (filed.id, filed.disposition);
        Ok(NameHolder::Ours(ActionReceipt { id, record: record.clone(), disposition, repeated: true }))
    }

    /// Writes all files that the change needs and makes them durable. The intent comes last.
    pub(crate) fn stage_change(
        &self,
        state: &mut WriterState,
        record: StagedRecord<'_>,
        contents: Vec<NewContent>,
    ) -> Result<ChangeIntent, ApplyError> {
        let StagedRecord { path, text, id, seq } = record;
        let filing = RecordFiling { record: path, seq, sha256: ContentHash::hash_bytes(text.as_bytes()) };
        let (changes, bytes): (Vec<_>, Vec<_>) =
            contents.into_iter().map(|content| (content.change, content.bytes)).unzip();
        let key = AttemptKey::new(state.take_number(), id);
        let intent = ChangeIntent { key, work: IntentKind::Action { filing, changes }, reverted: false };
        self.write_or_discard(&intent, &text, &bytes)?;
        Ok(intent)
    }

    /// Stages a change that has no audit record.
    pub(crate) fn stage_unrecorded_change(
        &self,
        state: &mut WriterState,
        content: NewContent,
    ) -> Result<ChangeIntent, ApplyError> {
        let key = AttemptKey::new_unrecorded(state.take_number());
        let intent = ChangeIntent { key, work: IntentKind::Unrecorded(content.change), reverted: false };
        self.write_or_discard(&intent, "", &[content.bytes])?;
        Ok(intent)
    }

    fn write_or_discard(
        &self,
        intent: &ChangeIntent,
        record: &str,
        contents: &[Option<Vec<u8>>],
    ) -> Result<(), ApplyError> {
        self.write_staged_files(intent, record, contents).inspect_err(|_| self.discard_staged(intent))
    }

    fn write_staged_files(
        &self,
        intent: &ChangeIntent,
        record: &str,
        contents: &[Option<Vec<u8>>],
    ) -> Result<(), ApplyError> {
        let root = self.root();
        crash::die_if_armed("before-staging");
        if let Some(filing) = intent.filing() {
            chain::stage_record(root, &intent.key.record_name(), record)
                .map_err(ApplyError::wrap_io(&filing.record))?;
            crash::die_if_armed("after-staging-record");
        }
        for (file, bytes) in intent.exchanges().iter().zip(contents) {
            file.make_folders(root).map_err(ApplyError::wrap_io(file.target()))?;
            if let Some(bytes) = bytes {
                file.stage(root, bytes).map_err(ApplyError::wrap_io(file.target()))?;
                crash::die_if_armed("after-staging-content");
            }
        }
        let synced = swap::open_staged_folder(root).and_then(|dir| durable::sync_folder(&dir));
        synced.map_err(ApplyError::wrap_io(format!("{OWN_FOLDER}/")))?;
        journal::write_intent(root, intent).map_err(ApplyError::wrap_io(intent.display_path()))?;
        crash::die_if_armed("after-journal");
        Ok(())
    }

    /// Removes the staged files of a change that failed. The next recovery removes those that cannot be removed now.
    pub(crate) fn discard_staged(&self, intent: &ChangeIntent) {
        let _ = journal::remove_intent(self.root(), intent);
        for file in intent.exchanges() {
            let _ = swap::discard_file(self.root(), &file.name);
            file.remove_empty_trash(self.root());
        }
        let _ = swap::discard_file(self.root(), &intent.key.record_name());
    }

    /// Exchanges the files and files the record. Only the record's name in its folder still needs space. If the record has to
    /// say which files are missing, so does that.
    fn exchange_and_file(&self, intent: &mut ChangeIntent) -> io::Result<TransactionOutcome> {
        let outcome = transaction::put_in_place(self.root(), intent)?;
        if let TransactionOutcome::InPlace { missing } = &outcome {
            if !missing.is_empty() {
                transaction::record_missing_files(self.root(), intent, missing)?;
            }
            if let Some(filing) = intent.filing() {
                crash::die_if_armed("before-filing");
                chain::publish_staged_record(self.root(), &intent.key, filing)?;
            }
        }
        Ok(outcome)
    }

    /// Updates the chain's head after a change was recorded. A failure from here on is repaired later.
    fn finish_change(&self, state: &mut WriterState, intent: ChangeIntent) {
        if let Some(filing) = intent.filing() {
            state.head = chain::advance_head(state.head.clone(), filing);
            self.chain.publish(&state.head);
            if let Err(e) = chain::write_head(self.root(), &state.head) {
                tracing::warn!(error = %e, "failed to write the head of the audit chain; the intent replaces it");
            }
        }
        // An editor that was in the middle of a save has finished by now. Its file belongs in place.
        for file in intent.exchanges() {
            match file.check_late_edit(self.root()) {
                Ok(LateEditCheck::GivenBack) => {
                    tracing::info!(file = %file.target(), "a person edited it at the same moment; the edit is kept")
                }
                Ok(LateEditCheck::Quiet | LateEditCheck::Kept(_) | LateEditCheck::Gone) => {}
                Err(e) => tracing::warn!(file = %file.target(), error = %e, "failed to check for a late edit"),
            }
        }
        state.keep_unsettled(intent);
    }
}

/// How many milliseconds are tried for the name of a record. A target has a few actions in one second at most.
const MOMENTS: usize = 1_000;

/// Whose record has a name.
pub(crate) enum NameHolder {
    Nobody,
    /// The action had been carried out before.
    Ours(ActionReceipt),
    Another,
}

/// A plan with the moment after which its audit record is named.
pub(crate) struct RecordName<'a> {
    plan: Cow<'a, Plan>,
    record: RecordPath,
    /// The record, if it was filed before.
    pub(crate) receipt: Option<ActionReceipt>,
}

/// Reads the target and computes the plan's new content. Changes nothing.
pub(crate) fn read_and_prepare(
    root: &VaultRoot,
    plan: &Plan,
    notes: NoteAccess<'_>,
) -> Result<(RecordSnapshot, PreparedChange), ApplyError> {
    let current = root.read_file(plan.target())?;
    let prepared = plan.prepare(&current.bytes, notes).map_err(|e| convert_prepare_error(plan.target(), e))?;
    Ok((current, prepared))
}

/// New content, ready to be staged, with the patch that its undo needs.
struct ReadyChange {
    content: NewContent,
    patch: Vec<FieldPatch>,
    /// What the change owes to the tracker.
    owed: Option<PlaneAction>,
}

/// Renders an audit record, and checks that the text parses to the same record.
fn render_verified_record(record: &AuditRecord, path: &RecordPath) -> Result<String, ApplyError> {
    let text = record.render().map_err(|e| ApplyError::Form(format!("{path}: {e}")))?;
    match AuditRecord::parse(text.as_bytes()) {
        Ok(read) if &read == record => Ok(text),
        Ok(_) => Err(ApplyError::Form(format!("{path}: the audit record would not read back as it was written"))),
        Err(e) => Err(ApplyError::Form(format!("{path}: the audit record could not be read back: {e}"))),
    }
}

pub(crate) fn convert_prepare_error(path: &RecordPath, e: PreparePlanError) -> ApplyError {
    match e {
        PreparePlanError::ChangedMeanwhile => ApplyError::ChangedMeanwhile { path: path.clone().into() },
        PreparePlanError::Conflict(fields) => ApplyError::Conflict { path: path.clone(), fields },
        PreparePlanError::Frontmatter(_) | PreparePlanError::TooLong { .. } | PreparePlanError::NotWritable { .. } => {
            ApplyError::Record { path: path.clone(), source: e }
        }
    }
}

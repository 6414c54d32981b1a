//! One record of the audit chain: how a draft becomes one, and its file.
//!
//! The hash of each file stands in the next record, so a file must never be written again. Where notes have moved, the
//! record is followed in memory alone.

use super::{ActionKind, AuditDraft, AuditError, ChainLink, FieldPatch, UNDO_WINDOW_DAYS, UndoRecipe};
use crate::action::mutation::Mutation;
use crate::action::plan::ContentHash;
use crate::record::frontmatter;
use crate::record::mapping::VaultMapping;
use crate::record::moves::{MoveHistory, NoteMove, PathTime};
use crate::record::path::RecordPath;
use crate::record::plain_text;
use crate::record::unlinked;
use crate::time;
use crate::tracker::{PlaneAction, PlaneRevert};
use crate::wiki::details::WikiDetails;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One record of the audit chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditRecord {
    #[serde(flatten)]
    pub draft: AuditDraft,
    /// The position in the chain, counted from 1.
    pub seq: u64,
    /// The affected fields' values before the change.
    pub prior_frontmatter: Map<String, Value>,
    /// The tracker's part was not done, or not completely. `plane_action` says why.
    pub partially_applied: bool,
    /// `None` if the change does not concern the tracker.
    pub plane_action: Option<PlaneAction>,
    /// `None` if nothing was changed.
    pub undo_recipe: Option<UndoRecipe>,
    /// The hash of the target's content after the change (see [`crate::record::content_hash`]). `None` if nothing was
    /// changed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content_sha256: Option<ContentHash>,
    /// The hash of the mapping under which the target was read and written ([`VaultMapping::hash`]). `None` in a vault
    /// without a mapping.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mapping_sha256: Option<ContentHash>,
    /// The mapping that a person accepted, in the record of the acceptance alone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mapping: Option<Box<VaultMapping>>,
    /// The notes that have other paths from now on, in the record of their moves alone.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub moves: Vec<NoteMove>,
    /// The files of the action that are not as it left them, because people changed them at the same moment
    /// ([`MISSING_FILES`]).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub missing_files: Vec<String>,
    /// The SHA-256 of the previous record's file, or 64 zeros for the first record.
    pub prev_sha256: ContentHash,
}

/// The field of [`AuditRecord::missing_files`]. It is written when the files have been exchanged, right before the record is
/// filed.
pub const MISSING_FILES: &str = "missing_files";

impl AuditRecord {
    /// Completes a draft with the written patch and the link of the chain.
    ///
    /// Instants are cut to the millisecond and the reasoning becomes one line, as in the file. So a record that is read
    /// back equals the one that was written.
    #[must_use]
    pub fn from_draft(mut draft: AuditDraft, patch: Vec<FieldPatch>, link: ChainLink) -> Self {
        draft.timestamp = time::truncate_to_millis(draft.timestamp);
        if let Some(resolution) = &mut draft.resolution {
            resolution.decided_at = time::truncate_to_millis(resolution.decided_at);
            if let Some(reopening) = &mut resolution.reopened {
                reopening.at = time::truncate_to_millis(reopening.at);
            }
        }
        draft.reasoning = plain_text::to_one_line(&draft.reasoning);
        let mut prior = Map::new();
        for p in &patch {
            prior.insert(p.key().to_owned(), p.prior.clone().unwrap_or(Value::Null));
        }
        let is_mapped = patch.iter().any(|p| p.property.is_some());
        if let Some(written) = prior.get("state").filter(|_| !is_mapped) {
            draft.prior_state = written.as_str().map(str::to_owned);
        } else if !is_mapped {
            prior.insert("state".into(), draft.prior_state.clone().map_or(Value::Null, Value::from));
        }
        if let Some(proposal) = &draft.proposal
            && let Some(replaced) = proposal.replaces.as_ref().filter(|_| !is_mapped)
        {
            prior.entry(proposal.mutation.field()).or_insert_with(|| replaced.clone());
        }
        let undoable = draft.kind.is_change() && !patch.is_empty();
        let expires_at = compute_undo_deadline(&draft);
        Self {
            seq: link.seq,
            prior_frontmatter: prior,
            partially_applied: false,
            plane_action: None,
            undo_recipe: undoable.then_some(UndoRecipe { vault_patch: patch, plane_revert: None, expires_at }),
            content_sha256: None,
            mapping_sha256: None,
            mapping: None,
            moves: Vec::new(),
            missing_files: Vec::new(),
            prev_sha256: link.prev,
            draft,
        }
    }

    /// The same record under a mapping, and with the mapping that it accepts.
    #[must_use]
    pub fn with_mapping(self, mapping_sha256: Option<ContentHash>, accepted: Option<&VaultMapping>) -> Self {
        Self { mapping_sha256, mapping: accepted.cloned().map(Box::new), ..self }
    }

    /// The same record with these moves of notes.
    #[must_use]
    pub fn with_moves(self, moves: &[NoteMove]) -> Self {
        Self { moves: moves.to_vec(), ..self }
    }

    /// Whether nothing can be done about it any more, because another note was moved over its target, or over the matter
    /// that it waits to move a task to.
    #[must_use]
    pub fn has_ended(&self, moves: &MoveHistory) -> bool {
        let is_gone = |path: &RecordPath| moves.find_current(path, PathTime::Seq(self.seq)).is_none();
        let proposed = self.draft.proposal.as_ref().filter(|_| self.draft.pending_confirmation);
        is_gone(&self.draft.target) || proposed.and_then(|p| p.mutation.new_parent()).is_some_and(is_gone)
    }

    /// The same record as it would name its notes now. The name of its file and of the records that follow it stays.
    #[must_use]
    pub fn follow_moves(mut self, moves: &MoveHistory) -> Self {
        let find = |path: &RecordPath| moves.find_moved(path, PathTime::Seq(self.seq));
        let draft = &mut self.draft;
        if let Some(target) = find(&draft.target) {
            let old = std::mem::replace(&mut draft.target, target);
            draft.named_after.get_or_insert(old);
        }
        if let Some(proposal) = &mut draft.proposal {
            let parent = if let Mutation::ParentMatter { to } = &mut proposal.mutation { Some(to) } else { None };
            for path in parent.into_iter().chain(&mut proposal.moved_from) {
                if let Some(now) = find(path) {
                    *path = now;
                }
            }
        }
        self
    }

    /// When the undo window ends. An edited `expires_at` in the file has no effect.
    #[must_use]
    pub fn undo_deadline(&self) -> DateTime<Utc> {
        compute_undo_deadline(&self.draft)
    }

    /// Its `expires_at`, if somebody edited it so that it differs from the end of the undo window.
    #[must_use]
    pub fn edited_expiry(&self) -> Option<DateTime<Utc>> {
        self.undo_recipe.as_ref().map(|recipe| recipe.expires_at).filter(|expiry| *expiry != self.undo_deadline())
    }

    /// The same record with the hash of its target's content after the change.
    #[must_use]
    pub fn with_content(self, content: Option<ContentHash>) -> Self {
        Self { content_sha256: content, ..self }
    }

    /// The same record with its tracker action.
    #[must_use]
    pub fn with_tracker(mut self, plane_action: Option<PlaneAction>) -> Self {
        self.partially_applied = plane_action.as_ref().and_then(PlaneAction::missing_reason).is_some();
        if let (Some(recipe), Some(PlaneAction::Owed { issue, .. })) = (&mut self.undo_recipe, &plane_action) {
            let external_id = self.draft.id.clone();
            recipe.plane_revert = Some(PlaneRevert { issue: issue.clone(), external_id });
        }
        self.plane_action = plane_action;
        self
    }

    /// Renders the record's file: frontmatter, one line of evidence, the reasoning.
    ///
    /// # Errors
    /// [`AuditError::Form`] if a value cannot be written. It cannot happen for a record of [`AuditRecord::from_draft`].
    pub fn render(&self) -> Result<String, AuditError> {
        let value = serde_json::to_value(self).map_err(|e| AuditError::Form(e.to_string()))?;
        let Value::Object(mut fields) = value else {
            return Err(AuditError::Form("not a mapping".into()));
        };
        let reasoning =
            fields.shift_remove("reasoning").and_then(|r| r.as_str().map(str::to_owned)).unwrap_or_default();
        let body = format!("{}\n\n{}\n", self.evidence_line(), plain_text::escape_markdown(&reasoning));
        Ok(frontmatter::render_document(&fields, &body))
    }

    /// Reads a record back.
    ///
    /// # Errors
    /// [`AuditError`] if the file is not an audit record.
    pub fn parse(bytes: &[u8]) -> Result<Self, AuditError> {
        // The details of a wiki's record may be long, and only a rollback reads them.
        let document = frontmatter::read_document_fast(WikiDetails::strip(bytes))?;
        let body = document.body().trim_end();
        let reasoning = body.split_once("\n\n").map(|(_, r)| plain_text::unescape_markdown(r)).unwrap_or_default();
        let mut fields = Value::Object(document.into_fields());
        unlinked::relink_value(&mut fields);
        let mut record: Self = serde_json::from_value(fields).map_err(|e| AuditError::Form(e.to_string()))?;
        record.draft.reasoning = reasoning;
        Ok(record)
    }

    /// Who resolved the action and why, or the first signal on which the decision rests.
    fn evidence_line(&self) -> String {
        if let Some(resolution) = &self.draft.resolution {
            if self.draft.kind.is_tracker_outcome() {
                let outcome = self.plane_action.as_ref().map(ToString::to_string).unwrap_or_default();
                return format!(
                    "The tracker: {} (action {})",
                    plain_text::escape_one_line(&outcome),
                    resolution.action_id
                );
            }
            let label = match self.draft.kind {
                ActionKind::Confirmed if resolution.edited => "Changed and confirmed",
                ActionKind::Right if resolution.done => "Called right and done by hand",
                kind => kind.outcome_label(),
            };
            let reason = resolution.reason.as_deref().unwrap_or("no reason given");
            return format!(
                "{label} by {}: {} (action {})",
                plain_text::escape_one_line(&resolution.by),
                plain_text::escape_one_line(reason),
                resolution.action_id
            );
        }
        if let Some(mark) = &self.draft.trust {
            return plain_text::escape_one_line(&mark.to_string());
        }
        if let [first, rest @ ..] = self.moves.as_slice() {
            let to = first.to.as_ref().map_or_else(|| "nowhere".to_owned(), |to| format!("`{to}`"));
            let more = if rest.is_empty() { String::new() } else { format!(", and {} more", rest.len()) };
            return plain_text::escape_one_line(&format!("A note was moved: `{}` to {to}{more}", first.from));
        }
        if let Some(mapping) = &self.mapping {
            return format!("A person accepted this mapping of the vault (`{}`).", &mapping.hash().as_str()[..8]);
        }
        if let Some(mark) = &self.draft.wiki {
            let end = mark.rejection.as_ref().map(|it| format!(", {}", it.end)).unwrap_or_default();
            return format!("The wiki `{}`, run {} ({}){end}.", mark.wiki, mark.run, mark.run_type);
        }
        match self.draft.evidence.as_slice() {
            [] => "No signal was cited as evidence.".into(),
            [first, rest @ ..] => {
                let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
                let (source, note) =
                    (plain_text::escape_one_line(&first.source), plain_text::escape_one_line(&first.note));
                format!("Evidence: `{}` {source} said \"{note}\"{more}", first.reference)
            }
        }
    }
}

fn compute_undo_deadline(draft: &AuditDraft) -> DateTime<Utc> {
    draft.timestamp + TimeDelta::days(UNDO_WINDOW_DAYS)
}

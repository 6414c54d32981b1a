//! A human's resolution of an action: undo, confirm or dismiss. For a demotion: restore it (`raise`). For a proposal
//! made in Watch: call it right or wrong. An answer that changed nothing can be taken back (`reopen`).
//!
//! Each resolution becomes a [`Plan`], made from the record of the action. So it takes the same write path with journal
//! and audit as every other change. An undo keeps the mode of the action. A confirmation is a live change and must not
//! happen in shadow mode.

mod ceiling;
mod edit;
mod history;
mod refusal;

use crate::action::audit::{
    ActionKind, AuditDraft, AuditRecord, AuditResolution, FieldPatch, MutationProposal, Reopening, ResolverKind,
    UNDO_WINDOW_DAYS, WorkflowRef,
};
use crate::action::mutation::{Mutation, MutationClass, RelatedField};
use crate::action::plan::{ActionId, Disposition, Plan, PlanBasis, PlannedChange};
use crate::gates::evaluate::allows_confirmation;
use crate::gates::mode::{Ceiling, DecisionPolicy, Mode};
use crate::record::entity::RecordState;
use crate::record::frontmatter::{has_member, list_members, member_name};
use crate::record::schema::{NoteAccess, NoteSchema};
use crate::trust::mark::TrustMark;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use history::{MOMENT_CHARS, PastChange, find_newer_changes, is_change_record};
pub use refusal::{ResolutionRefusal, ResolutionRefusalDetails};

use refusal::refuse_wiki_change;

/// The longest name of a person that a record keeps, in characters.
const MAX_BY_CHARS: usize = 200;
/// The longest reason that a record keeps, in characters. It is as long as a clerk's reasoning may be.
const MAX_REASON_CHARS: usize = 2_000;

/// The kind of a resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ResolutionKind {
    Undo,
    Confirm,
    Dismiss,
    /// Ends the demotion of a source or a class.
    Raise,
    /// Says that a proposal made in Watch is right. It stays a proposal.
    Right,
    /// Says the same, and that the human has made the change.
    RightDone,
    /// Says that a proposal made in Watch is wrong, and ends it.
    Wrong,
    /// Takes back a dismissal, a `right` or a `wrong`.
    Reopen,
}

impl ResolutionKind {
    /// The spelling on the command line and in workflow ids.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The kind of its audit record.
    #[must_use]
    pub fn record_kind(self) -> ActionKind {
        match self {
            Self::Undo => ActionKind::Reversed,
            Self::Confirm => ActionKind::Confirmed,
            Self::Dismiss => ActionKind::Dismissed,
            Self::Raise => ActionKind::Raised,
            Self::Right | Self::RightDone => ActionKind::Right,
            Self::Wrong => ActionKind::Wrong,
            Self::Reopen => ActionKind::Reopened,
        }
    }

    /// Whether only a person may do this, in their own session or on the command line. It raises trust, so no token may.
    #[must_use]
    pub fn needs_person(self) -> bool {
        match self {
            Self::Right | Self::RightDone | Self::Wrong | Self::Reopen => true,
            Self::Undo | Self::Confirm | Self::Dismiss | Self::Raise => false,
        }
    }

    /// Whether it changes or checks no note, so that it is possible also when the note is gone.
    #[must_use]
    pub fn leaves_notes_alone(self) -> bool {
        match self {
            Self::Dismiss | Self::Raise | Self::Right | Self::RightDone | Self::Wrong | Self::Reopen => true,
            Self::Undo | Self::Confirm => false,
        }
    }
}

/// A resolution of one action, as it arrives.
#[derive(Clone, Debug)]
pub struct ResolutionRequest<'a> {
    pub kind: ResolutionKind,
    pub by: &'a str,
    pub reason: Option<&'a str>,
    /// For a confirmation: the change that a human chose instead of the proposed one.
    pub edited: Option<&'a Mutation>,
    /// The id of the batch, if several actions are resolved with one click.
    pub batch_id: Option<&'a ActionId>,
    pub resolved_by: ResolverKind,
    pub policy: &'a DecisionPolicy,
    /// The lowest ceiling that a human has set so far for the matter and for the cited sources.
    pub ceiling: Ceiling,
    pub workflow: WorkflowRef,
    pub now: DateTime<Utc>,
}

/// A request and all that its plan needs.
#[derive(Clone, Debug)]
pub struct ResolutionCase<'a> {
    pub request: &'a ResolutionRequest<'a>,
    pub record: &'a AuditRecord,
    /// For an undo: the changes of the same target. Changes before the oldest of them may be missing.
    pub history: &'a [PastChange],
    /// The mapping of the record, and the notes that links name.
    pub notes: NoteAccess<'a>,
    /// The newest reopening of the action, if an earlier answer was taken back.
    pub reopened: Option<&'a Reopening>,
}

/// Plans the resolution of a recorded action that nobody has resolved yet.
///
/// # Errors
/// The first [`ResolutionRefusal`] that applies.
pub fn build_resolution_plan(case: &ResolutionCase<'_>) -> Result<Plan, ResolutionRefusal> {
    if case.request.kind != ResolutionKind::Confirm && case.request.edited.is_some() {
        return Err(edit::refuse_edit(case.record, "only a confirmation may choose another value"));
    }
    match case.request.kind {
        ResolutionKind::Undo => plan_undo(case),
        ResolutionKind::Confirm => plan_confirmation(case),
        ResolutionKind::Dismiss => {
            if !case.record.draft.is_question() {
                check_pending(case)?;
            }
            Ok(plan_record_alone(draft_record(case, Disposition::Recorded)))
        }
        ResolutionKind::Raise => plan_trust_restoration(case),
        ResolutionKind::Right | ResolutionKind::RightDone | ResolutionKind::Wrong => plan_judgement(case),
        ResolutionKind::Reopen => plan_reopening(case),
    }
}

/// A plan that adds a record and changes no note.
fn plan_record_alone(draft: AuditDraft) -> Plan {
    Plan { draft, basis: PlanBasis::Fields, change: PlannedChange::Nothing }
}

/// Plans the record of a human who calls a proposal right or wrong, or who agrees with what an assistant undid or dismissed. It changes nothing.
fn plan_judgement(case: &ResolutionCase<'_>) -> Result<Plan, ResolutionRefusal> {
    let action = &case.record.draft;
    let is_shadow_proposal =
        action.kind == ActionKind::Action && action.disposition == Disposition::Shadow && action.class.is_some();
    let is_agreement = case.request.kind == ResolutionKind::Right && action.is_resolved_by_agent();
    if !is_shadow_proposal && !is_agreement {
        return Err(ResolutionRefusal::NotWatched { id: action.id.to_string() });
    }
    let mut draft = draft_record(case, Disposition::Recorded);
    if let Some(answer) = &mut draft.resolution {
        answer.done = case.request.kind == ResolutionKind::RightDone;
    }
    Ok(plan_record_alone(draft))
}

/// Plans to take back the answer that `case.record` is.
fn plan_reopening(case: &ResolutionCase<'_>) -> Result<Plan, ResolutionRefusal> {
    let answer = &case.record.draft;
    if !answer.kind.can_be_taken_back() {
        return Err(ResolutionRefusal::NothingToReopen { id: answer.id.to_string() });
    }
    let deadline = answer.timestamp + TimeDelta::days(UNDO_WINDOW_DAYS);
    if case.request.now >= deadline {
        let ended = crate::time::format_millis(deadline);
        return Err(ResolutionRefusal::ReopenExpired { id: answer.id.to_string(), ended });
    }
    Ok(plan_record_alone(draft_record(case, Disposition::Recorded)))
}

fn plan_trust_restoration(case: &ResolutionCase<'_>) -> Result<Plan, ResolutionRefusal> {
    let Some(TrustMark::Lowered { subject, .. } | TrustMark::Unrestored { subject, .. }) = &case.record.draft.trust
    else {
        return Err(ResolutionRefusal::NothingToRaise { id: case.record.draft.id.to_string() });
    };
    let trust = Some(TrustMark::Raised { subject: subject.clone() });
    Ok(plan_record_alone(AuditDraft { trust, ..draft_record(case, Disposition::Recorded) }))
}

/// Plans to restore every field that is still as we left it.
///
/// Two changes of one field, or of one member of a set, are undone in reverse order. Otherwise the older one could not
/// distinguish its own value from the newer one's.
fn plan_undo(case: &ResolutionCase<'_>) -> Result<Plan, ResolutionRefusal> {
    let record = &case.record.draft;
    refuse_wiki_change(record)?;
    let Some(recipe) = &case.record.undo_recipe else {
        return Err(ResolutionRefusal::NothingToUndo {
            id: record.id.to_string(),
            disposition: record.disposition.as_str().into(),
        });
    };
    let deadline = case.record.undo_deadline();
    if case.request.now >= deadline {
        let ended = crate::time::format_millis(deadline);
        return Err(ResolutionRefusal::Expired { id: record.id.to_string(), ended });
    }
    if record.kind == ActionKind::CeilingSet {
        ceiling::check_recipe(case.record, &recipe.vault_patch)?;
    } else {
        check_recipe(case.record, &recipe.vault_patch, case.notes.schema)?;
    }
    history::check_undo_order(case.record, case.history)?;
    let patches = recipe.vault_patch.clone();
    let life = history::collect_set_steps(&patches, case.history);
    let change = PlannedChange::Restore { number: case.record.seq, life, patches };
    Ok(Plan { draft: draft_record(case, Disposition::Live), basis: PlanBasis::Fields, change })
}

/// Checks that a recipe restores only what a steward may change.
///
/// A record is a file that anyone with access to the vault can write. So the recipe may restore only one field of the
/// record's class, and records of the target's kind must have that field.
fn check_recipe(record: &AuditRecord, patches: &[FieldPatch], schema: &NoteSchema) -> Result<(), ResolutionRefusal> {
    if let [patch] = patches
        && infer_mutation(patch, &record.draft, schema)
            .is_some_and(|mutation| record.draft.allows_mutation(&mutation, schema))
    {
        return Ok(());
    }
    Err(refuse_recipe(record))
}

fn refuse_recipe(record: &AuditRecord) -> ResolutionRefusal {
    let reason = format!(
        "{}: Steward writes no such undo recipe, so it is not used: run `steward audit verify`",
        record.draft.id
    );
    ResolutionRefusal::Record { reason }
}

/// The mutation that could have made this patch of the target.
fn infer_mutation(patch: &FieldPatch, draft: &AuditDraft, schema: &NoteSchema) -> Option<Mutation> {
    let kind = draft.target_kind;
    if patch.property.is_some() != schema.is_mapped() || !schema.has_role(kind, &patch.field, patch.key()) {
        return None;
    }
    if patch.field.parse::<RelatedField>().is_ok() {
        return infer_related_mutation(patch);
    }
    check_recorded_lines(patch)?;
    let is_scalar = |v: &Value| !v.is_array() && !v.is_object();
    let is_short_list = |v: &Value| v.as_array().is_some_and(|items| items.len() <= 1 && items.iter().all(is_scalar));
    let is_plain = |v: &Value| is_scalar(v) || (schema.is_mapped() && is_short_list(v));
    let was_plain = patch.prior.as_ref().is_none_or(is_plain);
    let set = json!({&patch.field: schema.read_value(kind, &draft.target, &patch.field, patch.value.as_ref()?)?});
    let class = match patch.field.as_str() {
        "state" => "state_change",
        "parent_matter" => "parent_matter",
        _ => "context_edit",
    };
    Mutation::from_proposal(&json!({"class": class, "set": set})).ok().filter(|_| was_plain)
}

/// Checks that the recorded lines hold the recorded values.
fn check_recorded_lines(patch: &FieldPatch) -> Option<()> {
    let undo = patch.undo.as_ref().filter(|u| u.field == patch.key())?;
    let (before, after) = undo.recorded_values().ok()?;
    let non_null = |value: Option<Value>| value.filter(|v| !v.is_null());
    (non_null(before) == patch.prior && non_null(after) == patch.value).then_some(())
}

/// The change of a set that could have made this patch.
fn infer_related_mutation(patch: &FieldPatch) -> Option<Mutation> {
    check_recorded_lines(patch)?;
    let field = patch.field.parse::<RelatedField>().ok()?;
    infer_member_mutation(field, list_members(patch.prior.as_ref())?, list_members(patch.value.as_ref())?)
}

fn infer_member_mutation(field: RelatedField, before: &[Value], after: &[Value]) -> Option<Mutation> {
    let present = after.len() > before.len();
    let (more, fewer) = if present { (after, before) } else { (before, after) };
    let at = more.iter().zip(fewer).take_while(|(a, b)| a == b).count();
    let differs_by_one = more.len() == fewer.len() + 1 && more[at + 1..] == fewer[at..];
    let member = differs_by_one.then(|| member_name(&more[at])).flatten()?;
    let mutation = Mutation::Related { field, member: member.to_owned(), present };
    // A member that we removed was a human's and may have any form. A member that we added may not.
    (!has_member(fewer, member) && (!present || mutation.is_sound())).then_some(mutation)
}

fn plan_confirmation(case: &ResolutionCase<'_>) -> Result<Plan, ResolutionRefusal> {
    let record = &case.record.draft;
    let is_question = record.is_question();
    let (proposed, chosen) = if is_question {
        (None, Some(edit::build_answer_to_question(case)?))
    } else {
        check_pending(case)?;
        let proposed = read_proposal(case)?;
        let chosen = edit::build_edited_proposal(case, proposed.as_ref())?;
        (proposed, chosen)
    };
    let class = proposed.as_ref().or(chosen.as_ref()).map(|proposal| proposal.mutation.class());
    let class_ceiling = class.map(|class| case.request.policy.class_ceiling(class)).unwrap_or_default();
    // A question proposes nothing, so nothing was said about who may change the note.
    if !(record.confirmable || is_question) || !allows_confirmation(case.request.ceiling.min(class_ceiling), None, &[])
    {
        return Err(ResolutionRefusal::HumanOnly { id: record.id.to_string() });
    }
    if case.request.policy.mode == Mode::Shadow {
        return Err(ResolutionRefusal::ShadowNow);
    }
    let mut draft = draft_record(case, Disposition::Live);
    if let Some(chosen) = chosen.clone() {
        edit::record_edit(&mut draft, chosen);
    }
    let change = chosen.or(proposed).map_or(PlannedChange::Nothing, |proposal| {
        PlannedChange::from_mutation(&proposal.mutation, proposal.replaces.as_ref())
    });
    Ok(Plan { draft, basis: PlanBasis::Fields, change })
}

/// The proposal of a record, if Steward writes such proposals.
fn read_proposal(case: &ResolutionCase<'_>) -> Result<Option<MutationProposal>, ResolutionRefusal> {
    let draft = &case.record.draft;
    let Some(proposal) = &draft.proposal else { return Ok(None) };
    let mutation = &proposal.mutation;
    if mutation.is_sound() && draft.allows_mutation(mutation, case.notes.schema) {
        return Ok(Some(proposal.clone()));
    }
    let reason =
        format!("{}: Steward writes no such proposal, so it is not used: run `steward audit verify`", draft.id);
    Err(ResolutionRefusal::Record { reason })
}

fn check_pending(case: &ResolutionCase<'_>) -> Result<(), ResolutionRefusal> {
    let record = &case.record.draft;
    refuse_wiki_change(record)?;
    if record.pending_confirmation {
        return Ok(());
    }
    Err(ResolutionRefusal::NotPending { id: record.id.to_string(), disposition: record.disposition.as_str().into() })
}

fn draft_record(case: &ResolutionCase<'_>, disposition: Disposition) -> AuditDraft {
    let resolved = &case.record.draft;
    let is_confirmation = case.request.kind == ResolutionKind::Confirm;
    let mut id_parts = vec![case.request.kind.as_str(), resolved.id.as_str()];
    id_parts.extend(case.reopened.map(|reopening| reopening.id.as_str()));
    AuditDraft {
        kind: case.request.kind.record_kind(),
        id: ActionId::derive(&id_parts),
        timestamp: case.request.now,
        proposed_state: resulting_state(case),
        proposal: resolved.proposal.clone().filter(|_| case.request.kind != ResolutionKind::Undo),
        disposition,
        gates: Vec::new(),
        pending_confirmation: false,
        mode: if is_confirmation { case.request.policy.mode } else { resolved.mode },
        // Only a confirmation changes the record for the reasons that the clerk gave.
        reasoning: if is_confirmation { resolved.reasoning.clone() } else { String::new() },
        clerk: None,
        workflow: case.request.workflow.clone(),
        resolution: Some(AuditResolution {
            by: case.request.by.chars().take(MAX_BY_CHARS).collect(),
            reason: case.request.reason.map(|r| r.chars().take(MAX_REASON_CHARS).collect()),
            batch_id: case.request.batch_id.cloned(),
            reopened: case.reopened.cloned(),
            resolved_by: case.request.resolved_by,
            ..AuditResolution::new(resolved, "", None)
        }),
        ..resolved.clone()
    }
}

/// The state after the resolution. An undo restores the old state, which is `open` if the field was absent.
fn resulting_state(case: &ResolutionCase<'_>) -> Option<RecordState> {
    let resolved = &case.record.draft;
    if case.request.kind != ResolutionKind::Undo {
        return resolved.proposed_state;
    }
    let is_state_change = resolved.kind != ActionKind::CeilingSet
        && resolved.class.is_none_or(|class| class == MutationClass::StateChange);
    let before = resolved.prior_state.as_deref().unwrap_or("open");
    if is_state_change { RecordState::parse(before) } else { None }
}

#[cfg(test)]
mod tests;

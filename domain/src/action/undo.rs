//! A human's answer to an action: undo, confirm, dismiss; and to a lowered mode: raise.
//!
//! Each makes a [`Plan`] from the record of the action, so that an answer goes through the same
//! apply, journal and audit as everything else. Undo inherits the mode of what it takes back; a
//! confirmation is a live change and needs a live mode.

mod edit;
mod history;

use crate::action::audit::{ActionKind, AuditDraft, AuditRecord, AuditResolution, FieldPatch, WorkflowRef};
use crate::action::mutation::{Mutation, MutationClass, RelatedField};
use crate::action::plan::{ActionId, Disposition, Plan, PlanBasis, PlannedChange};
use crate::gates::evaluate::allows_confirmation;
use crate::gates::mode::{Ceiling, DecisionPolicy, Mode};
use crate::record::entity::RecordState;
use crate::record::frontmatter::{has_member, list_members, member_name};
use crate::trust::mark::TrustMark;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use history::{MOMENT_CHARS, PastChange, find_newer_changes, is_change_record};

/// Longest name of a person that a record keeps, in characters.
const MAX_BY_CHARS: usize = 200;
/// Longest reason that a record keeps, in characters; as long as a clerk's reasoning may be.
const MAX_REASON_CHARS: usize = 2_000;

/// What a human asks of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResolutionKind {
    Undo,
    Confirm,
    Dismiss,
    /// Let a source or a class go as far as the mode allows again.
    Raise,
}

impl ResolutionKind {
    /// The word on the command line and in workflow ids.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Undo => "undo",
            Self::Confirm => "confirm",
            Self::Dismiss => "dismiss",
            Self::Raise => "raise",
        }
    }

    /// The kind of record it leaves.
    #[must_use]
    pub fn record_kind(self) -> ActionKind {
        match self {
            Self::Undo => ActionKind::Reversed,
            Self::Confirm => ActionKind::Confirmed,
            Self::Dismiss => ActionKind::Dismissed,
            Self::Raise => ActionKind::Raised,
        }
    }
}

/// Why an answer is not taken; [`ResolutionRefusal::status`] is its HTTP status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "refused", rename_all = "snake_case")]
pub enum ResolutionRefusal {
    #[error("no action has the id {id}: list them with `steward audit list`")]
    Unknown { id: String },
    #[error("{count} actions begin with {id}: give more digits")]
    Ambiguous { id: String, count: usize },
    #[error("an action is named by 4 to 16 hex digits of its id, not by `{id}`: list them with `steward audit list`")]
    Malformed { id: String },
    #[error("{id} changed nothing ({landing}), so there is nothing to undo")]
    NothingToUndo { id: String, landing: String },
    #[error("{id} is not waiting for an answer ({landing})")]
    NotPending { id: String, landing: String },
    #[error("{id} lowered nothing, so there is nothing to raise")]
    NothingToRaise { id: String },
    #[error(
        "{id} may only be carried out by hand: its ceiling is `ask` (as where its matter is missing) or its matter's note does not allow it, or so it was when it was proposed"
    )]
    HumanOnly { id: String },
    #[error("{id} was already {how} by {by}")]
    AlreadyAnswered { id: String, how: String, by: String },
    #[error("{id} cannot be confirmed with that value: {reason}")]
    NotAnEdit { id: String, reason: String },
    #[error("edited by a human since: {}; nothing was changed", fields.join(", "))]
    Conflict { fields: Vec<String> },
    #[error("{id} is not the newest change of {}: undo {newer} first", fields.join(", "))]
    NotTheNewest { id: String, fields: Vec<String>, newer: String },
    #[error(
        "{id} is not confirmed together with others: newer messages leave it unclear; look at it and confirm it alone"
    )]
    Unclear { id: String },
    #[error("the mode is shadow now, so nothing may change: set STEWARD_LIVE_MODE")]
    ShadowNow,
    #[error("the fleet is stopped, so nothing may change: `steward resume` lets it run again")]
    Stopped,
    #[error("{id} can no longer be undone: its window ended {ended}")]
    Expired { id: String, ended: String },
    #[error("{reason}")]
    Record { reason: String },
    #[error(
        "undone in the vault (see {record}), but not in the tracker: {reason}; what is left there stays owed, see `steward status`"
    )]
    Tracker { record: String, reason: String },
}

impl ResolutionRefusal {
    /// The HTTP status of this refusal.
    #[must_use]
    pub fn http_status(&self) -> u16 {
        match self {
            Self::Unknown { .. } => 404,
            Self::Ambiguous { .. }
            | Self::Malformed { .. }
            | Self::NothingToUndo { .. }
            | Self::NotPending { .. }
            | Self::NothingToRaise { .. }
            | Self::NotAnEdit { .. }
            | Self::HumanOnly { .. } => 400,
            Self::AlreadyAnswered { .. }
            | Self::Conflict { .. }
            | Self::NotTheNewest { .. }
            | Self::Unclear { .. }
            | Self::ShadowNow
            | Self::Stopped => 409,
            Self::Expired { .. } => 410,
            Self::Record { .. } => 422,
            Self::Tracker { .. } => 502,
        }
    }

    /// What goes with it beside its words.
    #[must_use]
    pub fn details(&self) -> ResolutionRefusalDetails<'_> {
        let none = ResolutionRefusalDetails::default();
        match self {
            Self::Conflict { fields } => ResolutionRefusalDetails { fields, ..none },
            Self::NotTheNewest { fields, newer, .. } => ResolutionRefusalDetails { fields, newer, ..none },
            Self::Tracker { record, .. } => ResolutionRefusalDetails { record, ..none },
            Self::Unknown { .. }
            | Self::Ambiguous { .. }
            | Self::Malformed { .. }
            | Self::NothingToUndo { .. }
            | Self::NotPending { .. }
            | Self::NothingToRaise { .. }
            | Self::HumanOnly { .. }
            | Self::NotAnEdit { .. }
            | Self::AlreadyAnswered { .. }
            | Self::Unclear { .. }
            | Self::ShadowNow
            | Self::Stopped
            | Self::Expired { .. }
            | Self::Record { .. } => none,
        }
    }
}

/// What goes with some refusals; empty for all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResolutionRefusalDetails<'a> {
    /// The fields that humans edited since, or that a newer change holds.
    pub fields: &'a [String],
    /// The action to be undone first.
    pub newer: &'a str,
    /// The record that was filed in spite of it.
    pub record: &'a str,
}

/// A human's answer, ready to be planned.
#[derive(Clone, Debug)]
pub struct ResolutionCase<'a> {
    pub kind: ResolutionKind,
    pub record: &'a AuditRecord,
    /// For an undo, every change of the same target; what is older than all of them may be missing.
    pub past: &'a [PastChange],
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

/// Plans an answer to a recorded action that nobody has answered yet.
///
/// # Errors
/// [`ResolutionRefusal`], the first that applies.
pub fn build_resolution_plan(request: &ResolutionCase<'_>) -> Result<Plan, ResolutionRefusal> {
    if request.kind != ResolutionKind::Confirm && request.edited.is_some() {
        return Err(edit::refuse_edit(request.record, "only a confirmation may choose another value"));
    }
    match request.kind {
        ResolutionKind::Undo => plan_undo(request),
        ResolutionKind::Confirm => plan_confirmation(request),
        ResolutionKind::Dismiss => {
            if !request.record.draft.is_question() {
                check_pending(request)?;
            }
            Ok(Plan {
                draft: draft_record(request, Disposition::Recorded),
                basis: PlanBasis::Fields,
                change: PlannedChange::Nothing,
            })
        }
        ResolutionKind::Raise => plan_trust_restoration(request),
    }
}

fn plan_trust_restoration(request: &ResolutionCase<'_>) -> Result<Plan, ResolutionRefusal> {
    let Some(TrustMark::Lowered { subject, .. } | TrustMark::Unrestored { subject, .. }) = &request.record.draft.trust
    else {
        return Err(ResolutionRefusal::NothingToRaise { id: request.record.draft.id.to_string() });
    };
    let trust = Some(TrustMark::Raised { subject: subject.clone() });
    let draft = AuditDraft { trust, ..draft_record(request, Disposition::Recorded) };
    Ok(Plan { draft, basis: PlanBasis::Fields, change: PlannedChange::Nothing })
}

/// Puts every field back that still stands as we left it. Two changes of one field, or of one member of a
/// set, go back in their own order: otherwise the older one could not tell its work from the newer one's.
fn plan_undo(request: &ResolutionCase<'_>) -> Result<Plan, ResolutionRefusal> {
    let record = &request.record.draft;
    let Some(recipe) = &request.record.undo_recipe else {
        return Err(ResolutionRefusal::NothingToUndo {
            id: record.id.to_string(),
            landing: record.landing.as_str().into(),
        });
    };
    let ends = request.record.undo_deadline();
    if request.now >= ends {
        let ended = crate::time::format_millis(ends);
        return Err(ResolutionRefusal::Expired { id: record.id.to_string(), ended });
    }
    check_recipe(request.record, &recipe.vault_patch)?;
    history::check_undo_order(request.record, request.past)?;
    let (number, patches) = (request.record.seq, recipe.vault_patch.clone());
    let change = PlannedChange::Restore { number, life: history::collect_set_steps(&patches, request.past), patches };
    Ok(Plan { draft: draft_record(request, Disposition::Live), basis: PlanBasis::Fields, change })
}

/// A record is a file that anyone with the vault can write: its recipe may only put back what a
/// steward may change, one field of the record's class that a record of its kind has.
fn check_recipe(record: &AuditRecord, patches: &[FieldPatch]) -> Result<(), ResolutionRefusal> {
    if let [patch] = patches
        && infer_mutation(patch)
            .is_some_and(|m| Some(m.class()) == record.draft.class && m.is_applicable_to(record.draft.target.kind()))
    {
        return Ok(());
    }
    let reason = format!(
        "{}: its recipe is not one that Steward writes, so it is not followed: run `steward audit verify`",
        record.draft.id
    );
    Err(ResolutionRefusal::Record { reason })
}

/// The mutation that could have left this patch.
fn infer_mutation(patch: &FieldPatch) -> Option<Mutation> {
    let undo = patch.undo.as_ref().filter(|u| u.field == patch.field)?;
    let (before, after) = undo.recorded_values().ok()?;
    let filled = |value: Option<Value>| value.filter(|v| !v.is_null());
    if filled(before) != patch.prior || filled(after) != patch.value {
        return None;
    }
    if let Some(field) = RelatedField::ALL.into_iter().find(|f| f.as_str() == patch.field) {
        return infer_member_mutation(field, list_members(patch.prior.as_ref())?, list_members(patch.value.as_ref())?);
    }
    let text = patch.prior.as_ref().is_none_or(|v| !v.is_array() && !v.is_object());
    let set = json!({&patch.field: patch.value.as_ref()?});
    let class = match patch.field.as_str() {
        "state" => "state_change",
        "parent_matter" => "parent_matter",
        _ => "context_edit",
    };
    Mutation::from_proposal(&json!({"class": class, "set": set})).ok().filter(|_| text)
}

fn infer_member_mutation(field: RelatedField, before: &[Value], after: &[Value]) -> Option<Mutation> {
    let present = after.len() > before.len();
    let (more, fewer) = if present { (after, before) } else { (before, after) };
    let at = more.iter().zip(fewer).take_while(|(a, b)| a == b).count();
    let one = more.len() == fewer.len() + 1 && more[at + 1..] == fewer[at..];
    let member = one.then(|| member_name(&more[at])).flatten()?;
    let mutation = Mutation::Related { field, member: member.to_owned(), present };
    // What a human wrote and we took out may have any form; what we brought may not.
    (!has_member(fewer, member) && (!present || mutation.is_sound())).then_some(mutation)
}

fn plan_confirmation(request: &ResolutionCase<'_>) -> Result<Plan, ResolutionRefusal> {
    check_pending(request)?;
    let record = &request.record.draft;
    let proposed = read_proposal(request.record)?;
    let chosen = edit::build_edited_proposal(request, proposed.as_ref())?;
    let class = proposed.as_ref().map(|(m, _)| request.policy.class_ceiling(m.class())).unwrap_or_default();
    if !record.confirmable || !allows_confirmation(request.ceiling.min(class), None, &[]) {
        return Err(ResolutionRefusal::HumanOnly { id: record.id.to_string() });
    }
    if request.policy.mode == Mode::Shadow {
        return Err(ResolutionRefusal::ShadowNow);
    }
    let mut draft = draft_record(request, Disposition::Live);
    if let Some(chosen) = chosen.clone() {
        edit::record_edit(&mut draft, chosen);
    }
    let happens = chosen.map(|chosen| (chosen.mutation, chosen.replaces)).or(proposed);
    let change = happens.map_or(PlannedChange::Nothing, |(mutation, replaces)| {
        PlannedChange::from_mutation(&mutation, replaces.as_ref())
    });
    Ok(Plan { draft, basis: PlanBasis::Fields, change })
}

/// What a record proposes and what that replaces; one of before there were other classes says only
/// the state.
fn read_proposal(record: &AuditRecord) -> Result<Option<(Mutation, Option<Value>)>, ResolutionRefusal> {
    let draft = &record.draft;
    let Some(proposal) = &draft.proposal else {
        let replaces = draft.prior_state.clone().map(Value::from);
        return Ok(draft.proposed_state.map(|to| (Mutation::StateChange { to }, replaces)));
    };
    let mutation = &proposal.mutation;
    if mutation.is_sound() && mutation.is_applicable_to(draft.target.kind()) && Some(mutation.class()) == draft.class {
        return Ok(Some((mutation.clone(), proposal.replaces.clone())));
    }
    let reason = format!(
        "{}: its proposal is not one that Steward writes, so it is not followed: run `steward audit verify`",
        draft.id
    );
    Err(ResolutionRefusal::Record { reason })
}

fn check_pending(request: &ResolutionCase<'_>) -> Result<(), ResolutionRefusal> {
    let record = &request.record.draft;
    if record.pending_confirmation {
        return Ok(());
    }
    Err(ResolutionRefusal::NotPending { id: record.id.to_string(), landing: record.landing.as_str().into() })
}

fn draft_record(request: &ResolutionCase<'_>, landing: Disposition) -> AuditDraft {
    let answered = &request.record.draft;
    AuditDraft {
        kind: request.kind.record_kind(),
        id: ActionId::derive(&[request.kind.as_str(), answered.id.as_str()]),
        timestamp: request.now,
        proposed_state: resulting_state(request),
        proposal: answered.proposal.clone().filter(|_| request.kind != ResolutionKind::Undo),
        landing,
        gates: Vec::new(),
        pending_confirmation: false,
        mode: if request.kind == ResolutionKind::Confirm { request.policy.mode } else { answered.mode },
        clerk: None,
        workflow: request.workflow.clone(),
        answers: Some(AuditResolution {
            of: answered.id.clone(),
            at: answered.timestamp,
            by: request.by.chars().take(MAX_BY_CHARS).collect(),
            reason: request.reason.map(|r| r.chars().take(MAX_REASON_CHARS).collect()),
            edited: false,
            together: request.together.cloned(),
        }),
        ..answered.clone()
    }
}

/// An undo proposes the state from before; where the field was absent that is `open`.
fn resulting_state(request: &ResolutionCase<'_>) -> Option<RecordState> {
    let answered = &request.record.draft;
    let of_the_state = answered.class.is_none_or(|class| class == MutationClass::StateChange);
    match request.kind {
        ResolutionKind::Undo if of_the_state => RecordState::parse(answered.prior_state.as_deref().unwrap_or("open")),
        ResolutionKind::Undo => None,
        ResolutionKind::Confirm | ResolutionKind::Dismiss | ResolutionKind::Raise => answered.proposed_state,
    }
}

#[cfg(test)]
mod tests;

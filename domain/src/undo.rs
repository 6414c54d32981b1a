//! A human's answer to an action: undo, confirm, dismiss; and to a lowered mode: raise.
//!
//! Each makes a [`Plan`] from the record of the action, so that an answer goes through the same
//! apply, journal and audit as everything else. Undo inherits the mode of what it takes back; a
//! confirmation is a live change and needs a live mode.

mod edit;
mod past;

use crate::audit::{ActionKind, Answer, AuditDraft, AuditRecord, FieldPatch, WorkflowRef};
use crate::frontmatter::{has_member, member_name, members};
use crate::mode::{Ceiling, Mode, Policy};
use crate::mutation::{Mutation, MutationClass, RelatedField};
use crate::plan::{ActionId, Basis, Change, Landing, Plan};
use crate::record::State;
use crate::trust::mark::TrustMark;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use past::{MOMENT_CHARS, Past, is_of, newer};

/// Longest name of a person that a record keeps, in characters.
const MAX_BY_CHARS: usize = 200;
/// Longest reason that a record keeps, in characters; as long as a clerk's reasoning may be.
const MAX_REASON_CHARS: usize = 2_000;

/// What a human asks of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    Undo,
    Confirm,
    Dismiss,
    /// Let a source or a class go as far as the mode allows again.
    Raise,
}

impl AnswerKind {
    /// The word on the command line and in workflow ids.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Undo => "undo",
            Self::Confirm => "confirm",
            Self::Dismiss => "dismiss",
            Self::Raise => "raise",
        }
    }

    /// The kind of record it leaves.
    #[must_use]
    pub fn record(self) -> ActionKind {
        match self {
            Self::Undo => ActionKind::Reversed,
            Self::Confirm => ActionKind::Confirmed,
            Self::Dismiss => ActionKind::Dismissed,
            Self::Raise => ActionKind::Raised,
        }
    }
}

/// Why an answer is not taken; [`Refusal::status`] is its HTTP status (section 6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "refused", rename_all = "snake_case")]
pub enum Refusal {
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

impl Refusal {
    /// The HTTP status of this refusal.
    #[must_use]
    pub fn status(&self) -> u16 {
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
    pub fn besides(&self) -> Besides<'_> {
        let none = Besides::default();
        match self {
            Self::Conflict { fields } => Besides { fields, ..none },
            Self::NotTheNewest { fields, newer, .. } => Besides { fields, newer, ..none },
            Self::Tracker { record, .. } => Besides { record, ..none },
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
pub struct Besides<'a> {
    /// The fields that humans edited since, or that a newer change holds.
    pub fields: &'a [String],
    /// The action to be undone first.
    pub newer: &'a str,
    /// The record that was filed in spite of it.
    pub record: &'a str,
}

/// A human's answer, ready to be planned.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub kind: AnswerKind,
    pub record: &'a AuditRecord,
    /// For an undo, every change of the same target; what is older than all of them may be missing.
    pub past: &'a [Past],
    pub by: &'a str,
    pub reason: Option<&'a str>,
    /// For a confirmation, what is to happen instead of what was proposed.
    pub edited: Option<&'a Mutation>,
    /// Where it is one of several that are given with one click.
    pub together: Option<&'a ActionId>,
    pub policy: &'a Policy,
    /// The lowest ceiling that a human has set by now for the matter and for the cited sources.
    pub ceiling: Ceiling,
    pub workflow: WorkflowRef,
    pub now: DateTime<Utc>,
}

/// Plans an answer to a recorded action that nobody has answered yet.
///
/// # Errors
/// [`Refusal`], by the rules of section 6.
pub fn answer(request: &Request<'_>) -> Result<Plan, Refusal> {
    if request.kind != AnswerKind::Confirm && request.edited.is_some() {
        return Err(edit::refused(request.record, "only a confirmation may choose another value"));
    }
    match request.kind {
        AnswerKind::Undo => undo(request),
        AnswerKind::Confirm => confirm(request),
        AnswerKind::Dismiss => {
            if !request.record.draft.asks() {
                pending(request)?;
            }
            Ok(Plan { draft: draft(request, Landing::Recorded), basis: Basis::Fields, change: Change::Nothing })
        }
        AnswerKind::Raise => raise(request),
    }
}

fn raise(request: &Request<'_>) -> Result<Plan, Refusal> {
    let Some(TrustMark::Lowered { subject, .. } | TrustMark::Unrestored { subject, .. }) = &request.record.draft.trust
    else {
        return Err(Refusal::NothingToRaise { id: request.record.draft.id.to_string() });
    };
    let trust = Some(TrustMark::Raised { subject: subject.clone() });
    let draft = AuditDraft { trust, ..draft(request, Landing::Recorded) };
    Ok(Plan { draft, basis: Basis::Fields, change: Change::Nothing })
}

/// Puts every field back that still stands as we left it. Two changes of one field, or of one member of a
/// set, go back in their own order: otherwise the older one could not tell its work from the newer one's.
fn undo(request: &Request<'_>) -> Result<Plan, Refusal> {
    let record = &request.record.draft;
    let Some(recipe) = &request.record.undo_recipe else {
        return Err(Refusal::NothingToUndo { id: record.id.to_string(), landing: record.landing.word().into() });
    };
    let ends = request.record.undo_ends();
    if request.now >= ends {
        let ended = crate::time::stamp(ends);
        return Err(Refusal::Expired { id: record.id.to_string(), ended });
    }
    check_recipe(request.record, &recipe.vault_patch)?;
    past::check_order(request.record, request.past)?;
    let (number, patches) = (request.record.seq, recipe.vault_patch.clone());
    let change = Change::Restore { number, life: past::life(&patches, request.past), patches };
    Ok(Plan { draft: draft(request, Landing::Live), basis: Basis::Fields, change })
}

/// A record is a file that anyone with the vault can write: its recipe may only put back what a
/// steward may change, one field of the record's class that a record of its kind has.
fn check_recipe(record: &AuditRecord, patches: &[FieldPatch]) -> Result<(), Refusal> {
    if let [patch] = patches
        && changed_by(patch)
            .is_some_and(|m| Some(m.class()) == record.draft.class && m.fits(record.draft.target.kind()))
    {
        return Ok(());
    }
    let reason = format!(
        "{}: its recipe is not one that Steward writes, so it is not followed: run `steward audit verify`",
        record.draft.id
    );
    Err(Refusal::Record { reason })
}

/// The mutation that could have left this patch.
fn changed_by(patch: &FieldPatch) -> Option<Mutation> {
    let undo = patch.undo.as_ref().filter(|u| u.field == patch.field)?;
    let (before, after) = undo.values().ok()?;
    let filled = |value: Option<Value>| value.filter(|v| !v.is_null());
    if filled(before) != patch.prior || filled(after) != patch.value {
        return None;
    }
    if let Some(field) = RelatedField::ALL.into_iter().find(|f| f.word() == patch.field) {
        return moved_member(field, members(patch.prior.as_ref())?, members(patch.value.as_ref())?);
    }
    let text = patch.prior.as_ref().is_none_or(|v| !v.is_array() && !v.is_object());
    let set = json!({&patch.field: patch.value.as_ref()?});
    let class = match patch.field.as_str() {
        "state" => "state_change",
        "parent_matter" => "parent_matter",
        _ => "context_edit",
    };
    Mutation::read(&json!({"class": class, "set": set})).ok().filter(|_| text)
}

fn moved_member(field: RelatedField, before: &[Value], after: &[Value]) -> Option<Mutation> {
    let present = after.len() > before.len();
    let (more, fewer) = if present { (after, before) } else { (before, after) };
    let at = more.iter().zip(fewer).take_while(|(a, b)| a == b).count();
    let one = more.len() == fewer.len() + 1 && more[at + 1..] == fewer[at..];
    let member = one.then(|| member_name(&more[at])).flatten()?;
    let mutation = Mutation::Related { field, member: member.to_owned(), present };
    // What a human wrote and we took out may have any form; what we brought may not.
    (!has_member(fewer, member) && (!present || mutation.is_sound())).then_some(mutation)
}

fn confirm(request: &Request<'_>) -> Result<Plan, Refusal> {
    pending(request)?;
    let record = &request.record.draft;
    let proposed = proposed(request.record)?;
    let chosen = edit::chosen(request, proposed.as_ref())?;
    let class = proposed.as_ref().map(|(m, _)| request.policy.ceiling_of(m.class())).unwrap_or_default();
    if !record.confirmable || request.ceiling.min(class) == Ceiling::Ask {
        return Err(Refusal::HumanOnly { id: record.id.to_string() });
    }
    if request.policy.mode == Mode::Shadow {
        return Err(Refusal::ShadowNow);
    }
    let mut draft = draft(request, Landing::Live);
    if let Some(chosen) = chosen.clone() {
        edit::put(&mut draft, chosen);
    }
    let happens = chosen.map(|chosen| (chosen.mutation, chosen.replaces)).or(proposed);
    let change = happens.map_or(Change::Nothing, |(mutation, replaces)| Change::of(&mutation, replaces.as_ref()));
    Ok(Plan { draft, basis: Basis::Fields, change })
}

/// What a record proposes and what that replaces; one of before there were other classes says only
/// the state.
fn proposed(record: &AuditRecord) -> Result<Option<(Mutation, Option<Value>)>, Refusal> {
    let draft = &record.draft;
    let Some(proposal) = &draft.proposal else {
        let replaces = draft.prior_state.clone().map(Value::from);
        return Ok(draft.proposed_state.map(|to| (Mutation::StateChange { to }, replaces)));
    };
    let mutation = &proposal.mutation;
    if mutation.is_sound() && mutation.fits(draft.target.kind()) && Some(mutation.class()) == draft.class {
        return Ok(Some((mutation.clone(), proposal.replaces.clone())));
    }
    let reason = format!(
        "{}: its proposal is not one that Steward writes, so it is not followed: run `steward audit verify`",
        draft.id
    );
    Err(Refusal::Record { reason })
}

fn pending(request: &Request<'_>) -> Result<(), Refusal> {
    let record = &request.record.draft;
    if record.pending_confirmation {
        return Ok(());
    }
    Err(Refusal::NotPending { id: record.id.to_string(), landing: record.landing.word().into() })
}

fn draft(request: &Request<'_>, landing: Landing) -> AuditDraft {
    let answered = &request.record.draft;
    AuditDraft {
        kind: request.kind.record(),
        id: ActionId::derive(&[request.kind.word(), answered.id.as_str()]),
        timestamp: request.now,
        proposed_state: goes_to(request),
        proposal: answered.proposal.clone().filter(|_| request.kind != AnswerKind::Undo),
        landing,
        gates: Vec::new(),
        pending_confirmation: false,
        mode: if request.kind == AnswerKind::Confirm { request.policy.mode } else { answered.mode },
        clerk: None,
        workflow: request.workflow.clone(),
        answers: Some(Answer {
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
fn goes_to(request: &Request<'_>) -> Option<State> {
    let answered = &request.record.draft;
    let of_the_state = answered.class.is_none_or(|class| class == MutationClass::StateChange);
    match request.kind {
        AnswerKind::Undo if of_the_state => State::parse(answered.prior_state.as_deref().unwrap_or("open")),
        AnswerKind::Undo => None,
        AnswerKind::Confirm | AnswerKind::Dismiss | AnswerKind::Raise => answered.proposed_state,
    }
}

#[cfg(test)]
mod tests;

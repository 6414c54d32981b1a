//! What a human did by hand about a change that was only proposed.
//!
//! The record is compared with the proposal: it says by now what was proposed (done anyway), something else than
//! before (opposed), or still what it said. Whoever puts a task off that was said to be over opposes as well,
//! because what is put off is not judged. A member of a set that is still missing says nothing. The outcome is
//! a record of its own, so that it is found once and kept. A change that was made is opposed by whoever writes back
//! what was there before; whatever else is written later is life going on.

use crate::action::audit::{ActionKind, AuditDraft, AuditRecord, AuditResolution, WorkflowRef};
use crate::action::mutation::Mutation;
use crate::action::plan::{ActionId, Disposition, Plan, PlanBasis, PlannedChange};
use crate::record::entity::RecordState;
use crate::record::frontmatter::{RecordFields, has_member, list_members};
use crate::record::path::{RecordKind, parse_link};
use crate::time;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use std::collections::BTreeMap;

/// For so long a proposal is compared with its record: 14 days.
pub const WATCHED: TimeDelta = TimeDelta::days(14);
/// Who is said to have done it: a file does not tell.
const SOMEBODY: &str = "hand";

/// What was done by hand by now; `None` while the record says what it said when the change was proposed.
#[must_use]
pub fn classify_manual_edit(
    mutation: &Mutation,
    replaces: Option<&Value>,
    now: (&RecordFields, DateTime<Utc>),
) -> Option<ActionKind> {
    let (fields, at) = now;
    let field = fields.get(mutation.field()).filter(|v| !v.is_null());
    let text = field.and_then(Value::as_str).map(str::trim);
    let judge = |same: bool, as_before: bool| match (same, as_before) {
        (true, _) => Some(ActionKind::DoneAnyway),
        (false, true) => None,
        (false, false) => Some(ActionKind::Opposed),
    };
    match mutation {
        Mutation::StateChange { to } => {
            let before = RecordState::parse(replaces.and_then(Value::as_str).unwrap_or("open"))?;
            let state = RecordState::parse(text.unwrap_or("open"))?;
            let put_off = fields.get("snoozed_until").and_then(Value::as_str).and_then(time::parse);
            judge(state == *to, state == before && put_off.is_none_or(|until| until <= at))
        }
        Mutation::ContextEdit { to, .. } => {
            let before = replaces.and_then(Value::as_str).map(str::trim);
            judge(text == Some(to.trim()), text.unwrap_or_default() == before.unwrap_or_default())
        }
        Mutation::ParentMatter { to } => {
            let parent = |text: &str| parse_link(RecordKind::Matter, text).ok();
            let (is, was) = (parent(text?)?, replaces.and_then(Value::as_str).and_then(parent));
            judge(is == *to, Some(is) == was)
        }
        Mutation::Related { member, present, .. } => judge(has_member(list_members(field)?, member) == *present, true),
    }
}

/// Whether a change that was made is taken back: the record says again what it said before.
#[must_use]
pub fn is_reverted(mutation: &Mutation, replaces: Option<&Value>, fields: &RecordFields) -> bool {
    let field = fields.get(mutation.field()).filter(|v| !v.is_null());
    let text = field.and_then(Value::as_str).map(str::trim);
    let before = replaces.and_then(Value::as_str).map(str::trim);
    match mutation {
        Mutation::StateChange { to } => {
            let before = RecordState::parse(before.unwrap_or("open"));
            before != Some(*to) && RecordState::parse(text.unwrap_or("open")) == before
        }
        Mutation::ContextEdit { to, .. } => {
            before != Some(to.trim()) && text.unwrap_or_default() == before.unwrap_or_default()
        }
        Mutation::ParentMatter { to } => {
            let parent = |text: &str| parse_link(RecordKind::Matter, text).ok();
            let (is, was) = (text.and_then(parent), before.and_then(parent));
            is.is_some() && is == was && is.as_ref() != Some(to)
        }
        Mutation::Related { member, present, .. } => {
            list_members(field).is_some_and(|all| has_member(all, member) != *present)
        }
    }
}

/// Plans the record of what was done by hand. It changes nothing but the chain, and is the same for every try.
#[must_use]
pub fn plan_manual_edit(proposed: &AuditRecord, did: ActionKind, workflow: WorkflowRef, now: DateTime<Utc>) -> Plan {
    let of = &proposed.draft;
    let reason = of.proposal.as_ref().map(|p| format!("`{}` of {}", p.mutation.field(), of.target));
    let draft = AuditDraft {
        kind: did,
        id: ActionId::derive(&[did.as_str(), of.id.as_str()]),
        timestamp: now,
        landing: Disposition::Recorded,
        gates: Vec::new(),
        proposed_state: None,
        proposal: None,
        confirmable: false,
        pending_confirmation: false,
        evidence: Vec::new(),
        source_contributions: BTreeMap::new(),
        reasoning: String::new(),
        clerk: None,
        workflow,
        answers: Some(AuditResolution {
            of: of.id.clone(),
            at: of.timestamp,
            by: SOMEBODY.into(),
            reason,
            edited: false,
            together: None,
        }),
        ..of.clone()
    };
    Plan { draft, basis: PlanBasis::Fields, change: PlannedChange::Nothing }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::mutation::{ContextField, RelatedField};
    use crate::record::path::RecordPath;
    use serde_json::json;

    fn now(fields: &Value) -> (RecordFields, DateTime<Utc>) {
        (fields.as_object().unwrap().clone(), time::parse("2026-11-22T08:00:00Z").unwrap())
    }

    #[test]
    fn a_change_is_taken_back_by_what_was_there_before_and_by_nothing_else() {
        let done = Mutation::StateChange { to: RecordState::Done };
        let owner = Mutation::ContextEdit { field: ContextField::Owner, to: "Ann".into() };
        let moved = Mutation::ParentMatter { to: RecordPath::parse("matter/barn.md").unwrap() };
        let member =
            |present| Mutation::Related { field: RelatedField::RelatedOrgs, member: "[[ato]]".into(), present };
        let house = json!("[[matter/house]]");
        for (mutation, replaces, fields, expected) in [
            (&done, Some(&json!("open")), json!({"state": "Open"}), true),
            (&done, None, json!({}), true),
            (&done, Some(&json!("open")), json!({"state": "done"}), false),
            (&done, Some(&json!("open")), json!({"state": "archived"}), false),
            (&owner, Some(&json!("Bob")), json!({"owner": "Bob"}), true),
            (&owner, None, json!({}), true),
            (&owner, Some(&json!("Bob")), json!({"owner": "Ann"}), false),
            (&owner, Some(&json!("Bob")), json!({"owner": "Cy"}), false),
            (&moved, Some(&house), json!({"parent_matter": "house"}), true),
            (&moved, Some(&house), json!({"parent_matter": "barn"}), false),
            (&moved, Some(&house), json!({}), false),
            (&member(true), None, json!({"related_orgs": []}), true),
            (&member(true), None, json!({"related_orgs": ["[[ato]]"]}), false),
            (&member(false), None, json!({"related_orgs": ["[[ato]]"]}), true),
            (&member(false), None, json!({}), false),
        ] {
            let (fields, _) = now(&fields);
            assert_eq!(is_reverted(mutation, replaces, &fields), expected, "{mutation:?} {fields:?}");
        }
    }

    #[test]
    fn the_very_change_another_one_and_none_are_told_apart() {
        let (anyway, opposed) = (Some(ActionKind::DoneAnyway), Some(ActionKind::Opposed));
        let done = Mutation::StateChange { to: RecordState::Done };
        let owner = Mutation::ContextEdit { field: ContextField::Owner, to: "Ann".into() };
        let moved = Mutation::ParentMatter { to: RecordPath::parse("matter/barn.md").unwrap() };
        let member =
            |present| Mutation::Related { field: RelatedField::RelatedOrgs, member: "[[ato]]".into(), present };
        let open = json!("open");
        let house = json!("[[matter/house]]");
        for (mutation, replaces, fields, expected) in [
            (&done, Some(&open), json!({"state": "DONE"}), anyway),
            (&done, Some(&open), json!({"state": "archived"}), opposed),
            (&done, Some(&open), json!({"state": "open"}), None),
            (&done, Some(&open), json!({}), None),
            (&done, None, json!({"state": "open"}), None),
            (&done, Some(&open), json!({"state": "half"}), None),
            (&done, Some(&open), json!({"state": "open", "snoozed_until": "2026-12-24"}), opposed),
            (&done, Some(&open), json!({"state": "done", "snoozed_until": "2026-12-24"}), anyway),
            (&done, Some(&open), json!({"state": "open", "snoozed_until": "2026-11-01"}), None),
            (&owner, None, json!({}), None),
            (&owner, None, json!({"owner": null}), None),
            (&owner, None, json!({"owner": " Ann "}), anyway),
            (&owner, Some(&json!("Bob")), json!({"owner": "Bob"}), None),
            (&owner, Some(&json!("Bob")), json!({"owner": "Cy"}), opposed),
            (&owner, Some(&json!("Bob")), json!({}), opposed),
            (&moved, Some(&house), json!({"parent_matter": "barn"}), anyway),
            (&moved, Some(&house), json!({"parent_matter": "house"}), None),
            (&moved, Some(&house), json!({"parent_matter": "[[matter/yard]]"}), opposed),
            (&moved, Some(&house), json!({}), None),
            (&member(true), None, json!({"related_orgs": ["[[ato]]"]}), anyway),
            (&member(true), None, json!({"related_orgs": ["[[bank]]"]}), None),
            (&member(false), None, json!({"related_orgs": ["[[bank]]"]}), anyway),
            (&member(true), None, json!({"related_orgs": "ato"}), None),
        ] {
            let (fields, at) = now(&fields);
            assert_eq!(classify_manual_edit(mutation, replaces, (&fields, at)), expected, "{mutation:?} {fields:?}");
        }
    }
}

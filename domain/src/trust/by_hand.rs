//! Manual edits: what a human did by hand about a proposed or an applied change.
//!
//! For a proposal, the record is compared with it. The record may hold the proposed value by now (done anyway), a third
//! value (opposed), or still the old one (nothing). To snooze a task that was proposed as done opposes as well,
//! because a snoozed task is not judged. A set member that is still missing means nothing. The outcome becomes an
//! audit record, so that it is found only once. An applied change is reverted if its old value is there again.
//! Any other later edit must not count against it.

use crate::action::audit::{ActionKind, AuditRecord, WorkflowRef};
use crate::action::mutation::Mutation;
use crate::action::plan::{Plan, PlanBasis, PlannedChange};
use crate::record::entity::RecordState;
use crate::record::frontmatter::{RecordFields, has_member, list_members};
use crate::record::moves::LinkReader;
use crate::time;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

/// How long a proposal is compared with its record: 14 days. A later edit says little about the proposal.
pub const ANSWER_WINDOW: TimeDelta = TimeDelta::days(14);
/// The person in the record of a manual edit. A file does not tell who edited it.
const SOMEBODY: &str = "hand";

/// Compares a record with a proposal. Returns `None` while the record still holds the old value.
#[must_use]
pub fn classify_manual_edit(
    mutation: &Mutation,
    replaces: Option<&Value>,
    fields: &RecordFields,
    links: LinkReader<'_>,
    now: DateTime<Utc>,
) -> Option<ActionKind> {
    let field = fields.get(mutation.field()).filter(|v| !v.is_null());
    let text = field.and_then(Value::as_str).map(str::trim);
    let classify = |is_proposed: bool, is_old: bool| match (is_proposed, is_old) {
        (true, _) => Some(ActionKind::DoneAnyway),
        (false, true) => None,
        (false, false) => Some(ActionKind::Opposed),
    };
    match mutation {
        Mutation::StateChange { to } => {
            let before = RecordState::parse(replaces.and_then(Value::as_str).unwrap_or("open"))?;
            let state = RecordState::parse(text.unwrap_or("open"))?;
            let snoozed_until = fields.get("snoozed_until").and_then(Value::as_str).and_then(time::parse);
            classify(state == *to, state == before && snoozed_until.is_none_or(|until| until <= now))
        }
        Mutation::ContextEdit { to, .. } => {
            let before = replaces.and_then(Value::as_str).map(str::trim);
            classify(text == Some(to.trim()), text.unwrap_or_default() == before.unwrap_or_default())
        }
        Mutation::ParentMatter { to } => {
            let was = replaces.and_then(Value::as_str).and_then(|link| links.read_former_matter(link));
            let is = links.read_matter(text?)?;
            classify(is == *to, Some(is) == was)
        }
        Mutation::Related { member, present, .. } => {
            classify(holds_member(list_members(field)?, member, links) == *present, true)
        }
    }
}

/// Whether an applied change is reverted: the record holds its old value again.
#[must_use]
pub fn is_reverted(
    mutation: &Mutation,
    replaces: Option<&Value>,
    fields: &RecordFields,
    links: LinkReader<'_>,
) -> bool {
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
            let is = text.and_then(|link| links.read_matter(link));
            let was = before.and_then(|link| links.read_former_matter(link));
            is.is_some() && is == was && is.as_ref() != Some(to)
        }
        Mutation::Related { member, present, .. } => {
            list_members(field).is_some_and(|all| holds_member(all, member, links) != *present)
        }
    }
}

/// Whether a list holds a member, also under the name that its note has now.
fn holds_member(all: &[Value], member: &str, links: LinkReader<'_>) -> bool {
    let list = Value::Array(all.to_vec());
    has_member(all, member) || links.rename_member(member, Some(&list)).is_some_and(|member| has_member(all, &member))
}

/// Plans the record of a manual edit. It only adds to the chain, and it is the same for every try.
#[must_use]
pub fn plan_manual_edit(proposed: &AuditRecord, kind: ActionKind, workflow: WorkflowRef, now: DateTime<Utc>) -> Plan {
    let action = &proposed.draft;
    let reason = action.proposal.as_ref().map(|p| format!("`{}` of {}", p.mutation.field(), action.target));
    let draft = action.derive_follow_up(kind, SOMEBODY, reason, workflow, now);
    Plan { draft, basis: PlanBasis::Fields, change: PlannedChange::Nothing }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::mutation::{ContextField, RelatedField};
    use crate::record::path::RecordPath;
    use crate::record::schema::NoteAccess;
    use serde_json::json;
    use std::sync::LazyLock;

    /// No note is known, so a link names the path that it spells.
    fn links() -> LinkReader<'static> {
        static NAMES: LazyLock<crate::record::link::NoteNames> = LazyLock::new(Default::default);
        static NOTE: LazyLock<RecordPath> = LazyLock::new(|| RecordPath::parse("task/t.md").unwrap());
        NoteAccess { names: &NAMES, ..NoteAccess::unmapped() }.links(&NOTE, DateTime::UNIX_EPOCH)
    }

    fn now(fields: &Value) -> (RecordFields, DateTime<Utc>) {
        (fields.as_object().unwrap().clone(), time::parse("2026-11-22T08:00:00Z").unwrap())
    }

    #[test]
    fn a_change_is_reverted_by_its_old_value_and_by_nothing_else() {
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
            assert_eq!(is_reverted(mutation, replaces, &fields, links()), expected, "{mutation:?} {fields:?}");
        }
    }

    #[test]
    fn the_proposed_change_another_one_and_none_are_distinguished() {
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
            assert_eq!(
                classify_manual_edit(mutation, replaces, &fields, links(), at),
                expected,
                "{mutation:?} {fields:?}"
            );
        }
    }
}

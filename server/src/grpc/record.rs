//! Encodes audit records as messages.
//!
//! A row of the index names the record, and the record's file has the rest. Nothing is decided here, and foreign text
//! is not changed; the contract says which fields are untrusted.

use super::values::{encode_moment, encode_value};
use crate::grpc::enums;
use steward_domain::action::audit::{ActionKind, AuditRecord, FieldPatch};
use steward_domain::action::mutation::Mutation;
use steward_domain::tracker::PlaneAction;
use steward_proto::v1::{self, change, tracker_delivery};
use steward_vault::index::ActionRow;
use steward_vault::tracker::outbox::DeliveryStatus;

/// Encodes a row of a list, with the values of its record if that can be read.
pub(super) fn encode_summary(row: &ActionRow, record: Option<&AuditRecord>) -> v1::ActionSummary {
    v1::ActionSummary {
        id: row.id.to_string(),
        record: row.path.to_string(),
        kind: enums::kind(row.kind),
        target: row.target.to_string(),
        time: Some(encode_moment(row.at)),
        decision: enums::judgement(row.decision),
        confidence: row.confidence,
        disposition: enums::disposition(row.disposition),
        mode: enums::mode(row.mode),
        change_class: row.class.map(enums::class).unwrap_or_default(),
        proposed: record.and_then(encode_proposal),
        pending: row.pending,
        settled: row.settled,
        confirmable: record.is_some_and(|record| record.draft.confirmable),
        resolves: row.resolves.as_ref().map(ToString::to_string).unwrap_or_default(),
        resolution: row.resolution.map(enums::kind).unwrap_or_default(),
        resolution_id: row.resolved_by.as_ref().map(ToString::to_string).unwrap_or_default(),
        batch_id: row.batch_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        seq: row.seq,
    }
}

/// Encodes the proposed change. Records from before there were other classes only have the proposed state.
fn encode_proposal(record: &AuditRecord) -> Option<v1::Change> {
    let draft = &record.draft;
    let state = draft.proposed_state.filter(|_| draft.kind == ActionKind::Action);
    let proposal = draft.proposal.as_ref().map(|proposal| encode_change(&proposal.mutation));
    proposal.or_else(|| state.map(|to| encode_change(&Mutation::StateChange { to })))
}

/// Encodes the change of one field.
#[must_use]
pub fn encode_change(mutation: &Mutation) -> v1::Change {
    let change = match mutation {
        Mutation::StateChange { to } => change::Change::StateChange(v1::StateChange { to: enums::state(*to) }),
        Mutation::ContextEdit { field, to } => {
            change::Change::ContextEdit(v1::ContextEdit { field: enums::context(*field), to: to.clone() })
        }
        Mutation::ParentMatter { to } => change::Change::ParentMatter(v1::ParentMatter { to: to.to_string() }),
        Mutation::Related { field, member, present } => change::Change::Related(v1::Related {
            field: enums::related(*field),
            member: member.clone(),
            present: *present,
        }),
    };
    v1::Change { change: Some(change) }
}

/// Encodes a complete record.
pub(super) fn encode_action(
    summary: v1::ActionSummary,
    record: &AuditRecord,
    tracker: Option<&DeliveryStatus>,
) -> v1::Action {
    let draft = &record.draft;
    let recipe = record.undo_recipe.as_ref();
    let undone = summary.resolution == enums::kind(ActionKind::Reversed);
    v1::Action {
        summary: Some(summary),
        gates: draft.gates.iter().map(encode_gate).collect(),
        evidence: draft.evidence.iter().map(encode_evidence).collect(),
        source_contributions: draft.source_contributions.iter().map(|(name, share)| (name.clone(), *share)).collect(),
        reasoning: draft.reasoning.clone(),
        clerk: draft.clerk.as_ref().map(encode_clerk),
        workflow: Some(v1::WorkflowRun { id: draft.workflow.id.clone(), run_id: draft.workflow.run_id.clone() }),
        replaces: draft.proposal.as_ref().and_then(|proposal| proposal.replaces.as_ref()).map(encode_value),
        changes: recipe.map(|recipe| recipe.vault_patch.iter().map(encode_patch).collect()).unwrap_or_default(),
        undo_expires_at: recipe.filter(|_| !undone).map(|_| encode_moment(record.undo_deadline())),
        resolution: draft.resolution.as_ref().map(|answer| v1::ResolutionMark {
            of_time: Some(encode_moment(answer.decided_at)),
            by: answer.by.clone(),
            reason: answer.reason.clone().unwrap_or_default(),
        }),
        tracker: tracker.map(encode_tracker_status),
        partially_applied: record.partially_applied,
        trust: draft.trust.as_ref().map(ToString::to_string).unwrap_or_default(),
        prev_sha256: record.prev_sha256.as_str().to_owned(),
    }
}

fn encode_gate(gate: &steward_domain::gates::result::GateResult) -> v1::Gate {
    v1::Gate { name: enums::gate(gate.gate), open: gate.open, found: gate.found.clone(), needed: gate.needed.clone() }
}

fn encode_evidence(cited: &steward_domain::action::audit::CitedSignal) -> v1::Evidence {
    v1::Evidence {
        signal: cited.reference.to_string(),
        source: cited.source.clone(),
        note: cited.note.clone(),
        target_confidence: cited.target_confidence,
        effect_confidence: cited.effect_confidence,
        supports: cited.supports,
    }
}

fn encode_clerk(mark: &steward_domain::steward::clerk::ClerkMark) -> v1::ClerkMark {
    v1::ClerkMark {
        provider: mark.provider.clone(),
        model: mark.model.clone(),
        server: mark.server.clone(),
        prompt_sha256: mark.prompt_sha256.clone(),
        prompt_tokens: mark.tokens.prompt_tokens,
        completion_tokens: mark.tokens.completion_tokens,
        fallback: mark.fallback,
        cached: mark.cached,
    }
}

fn encode_patch(patch: &FieldPatch) -> v1::FieldChange {
    let (prior, value) = (patch.prior.as_ref().map(encode_value), patch.value.as_ref().map(encode_value));
    v1::FieldChange { field: patch.field.clone(), prior, value, property: patch.property.clone().unwrap_or_default() }
}

fn encode_tracker_status(delivery: &DeliveryStatus) -> v1::TrackerDelivery {
    let latest = delivery.came.as_ref().map_or(&delivery.says, |(_, outcome)| outcome);
    let is_owed = delivery.came.is_none();
    let progress = delivery.progress.as_ref().filter(|_| is_owed);
    let is_failing = is_owed && delivery.failed.is_some();
    v1::TrackerDelivery {
        status: if is_failing { tracker_delivery::Status::Failed } else { encode_delivery_status(latest) }.into(),
        text: latest.to_string(),
        issue: find_issue_id(latest).or_else(|| find_issue_id(&delivery.says)).unwrap_or_default(),
        outcome_record: delivery.came.as_ref().map(|(record, _)| record.to_string()).unwrap_or_default(),
        tries: progress.map_or(0, |progress| progress.tries),
        last_error: progress.and_then(|progress| progress.last_error.clone()).unwrap_or_default(),
        next_try: progress.and_then(|progress| progress.next_try).map(encode_moment),
    }
}

fn encode_delivery_status(action: &PlaneAction) -> tracker_delivery::Status {
    match action {
        PlaneAction::Owed { .. } => tracker_delivery::Status::Owed,
        PlaneAction::RevertOwed { .. } => tracker_delivery::Status::RevertOwed,
        PlaneAction::Unusable { .. } => tracker_delivery::Status::Unusable,
        PlaneAction::Failed { .. } => tracker_delivery::Status::Failed,
        PlaneAction::GivenUp { .. } => tracker_delivery::Status::GivenUp,
        PlaneAction::Delivered { .. } => tracker_delivery::Status::Delivered,
        PlaneAction::Reverted { .. } => tracker_delivery::Status::Reverted,
    }
}

fn find_issue_id(action: &PlaneAction) -> Option<String> {
    match action {
        PlaneAction::Unusable { .. } => None,
        PlaneAction::Owed { issue, .. }
        | PlaneAction::RevertOwed { issue, .. }
        | PlaneAction::Failed { issue, .. }
        | PlaneAction::GivenUp { issue, .. }
        | PlaneAction::Delivered { issue, .. }
        | PlaneAction::Reverted { issue, .. } => Some(issue.issue.to_string()),
    }
}

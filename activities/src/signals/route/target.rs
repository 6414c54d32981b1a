//! Reads the note that a signal is about, as it is now.
//!
//! Whether it is a task or a matter is known from the index. A file that the index knows as neither is no target, whatever
//! it holds.

use steward_domain::action::mutation::Mutation;
use steward_domain::record::entity::{Matter, RecordState, Task};
use steward_domain::record::frontmatter;
use steward_domain::record::path::{RecordKind, RecordPath};
use steward_domain::record::schema::NoteSchema;
use steward_domain::signals::route::RouteTarget;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::RouteFacts;

/// What is asked about a target.
#[derive(Clone, Copy)]
pub(super) struct TargetQuery<'a> {
    pub(super) facts: Option<&'a RouteFacts>,
    pub(super) proposal: Option<&'a Mutation>,
}

/// Reads a target from its file: `None` if it does not exist, an error if it cannot be parsed.
pub(super) fn read_target(
    root: &VaultRoot,
    schema: &NoteSchema,
    path: RecordPath,
    query: TargetQuery<'_>,
) -> Result<Option<RouteTarget>, String> {
    let TargetQuery { facts, proposal } = query;
    let Some(kind) = facts.and_then(|f| f.kind).filter(|_| root.exists(&path)) else {
        let problem = facts.and_then(|f| f.problem.as_ref());
        return problem.map_or(Ok(None), |problem| Err(format!("{path}: {problem}")));
    };
    let content = root.read_file(&path).map_err(|e| e.to_string())?;
    let document = frontmatter::read_document(&content.bytes).map_err(|e| format!("{path}: failed to {e}"))?;
    let fields = schema.read_note(kind, &path, document.fields()).fields;
    let unusable = |e| format!("{path}: {e}");
    let (own, snoozed_until) = if kind == RecordKind::Task {
        let task = Task::read(&fields).map_err(unusable)?;
        (task.state, task.snoozed_until)
    } else {
        (Matter::read(&fields).map_err(unusable)?.state, None)
    };
    // A task under a closed matter is left alone, as in the checks of its steward.
    let matter = facts.and_then(|f| f.matter).unwrap_or(RecordState::Open);
    let state = if own == RecordState::Open { matter } else { own };
    let has_twin = facts.is_some_and(|f| f.has_twin);
    Ok(Some(RouteTarget {
        path,
        kind,
        parent: facts.and_then(|f| f.parent.clone()),
        state,
        snoozed_until,
        has_twin,
        hash: content.hash,
        fields,
        is_writable: proposal.is_none_or(|mutation| schema.can_write_into(kind, mutation, document.fields())),
    }))
}
